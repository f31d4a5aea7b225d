//! A process that is killed while it saves leaves a checkpoint that can be read, the last one or the one before.

use crate::scratch::Scratch;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use volta::{Checkpoint, CheckpointFolder, Linear, Module, Tensor};
use volta_testing::test;

const PATH: &str = "VOLTA_TEST_CRASH_PATH";

/// Not a test of its own: what the test below runs in another process, until it is killed.
#[test(ignored = "run by a_killed_process_leaves_a_checkpoint_that_can_be_read")]
fn saves_until_it_is_killed() {
    let path = std::env::var(PATH).expect("the path comes from the test that runs this one");
    let net = Linear::new(512, 1024, false);
    for step in 1i64.. {
        net.parameters()[0].assign(&Tensor::full([1024, 512], step as f64));
        Checkpoint::new().with_module("model", &net).with_value("step", step).save(&path).unwrap();
        println!("saved {step}");
    }
}

fn start(path: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::saves_until_it_is_killed", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_process_leaves_a_checkpoint_that_can_be_read() {
    let scratch = Scratch::new("crash");
    let path = scratch.file("last.safetensors");
    let net = Linear::new(512, 1024, false);
    let mut cut = 0;
    for round in 1..=6i64 {
        let mut child = start(&path);
        // As soon as it says that the n-th is there it is at the next, and is killed in the middle of it.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let reached = lines.filter(|line| line.contains("saved ")).take(round as usize).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(reached, round as usize, "the child ended by itself");
        let checkpoint = Checkpoint::load(&path).unwrap();
        let step = checkpoint.int("step").unwrap();
        assert!(step >= round, "the checkpoint of step {round} was there and is gone");
        checkpoint.restore_module("model", &net).unwrap();
        assert!(
            net.parameters()[0].to_vec::<f32>().iter().all(|&x| x == step as f32),
            "a mixture of two steps"
        );
        cut += scratch.names().iter().filter(|name| name.ends_with(".unfinished")).count();
        // What was cut off is cleared away by whoever owns the folder.
        CheckpointFolder::open(scratch.path()).unwrap();
        assert_eq!(scratch.names(), ["last.safetensors"]);
    }
    println!("{cut} of 6 children were killed with a file half written");
}
