//! `volta train` on several devices, and with batches in parts.

use super::{Folder, ok, text, values, volta};
use std::process::Output;
use volta_testing::test;

/// A model that is trained in a moment, on the CPU unless the arguments say where.
fn train(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = volta(folder);
    command.args(
        "train --data short --layers 1 --width 16 --heads 2 --context 16 --batch 8 --warmup 1".split(' '),
    );
    command.args("--sample-interval 0 --sample-length 1 --valid-interval 0 --valid-batches 1".split(' '));
    for (flag, value) in [("--device", "cpu"), ("--steps", "4"), ("--dropout", "0.1")] {
        if !arguments.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command.args(arguments).output().unwrap()
}

#[test(needs(four_gpus))]
fn two_and_four_devices_train_the_model_of_one() {
    let folder = Folder::new("devices");
    let mut models = Vec::new();
    for (name, devices) in [("one", "gpu:0"), ("two", "gpu:0,gpu:1"), ("all", "gpus")] {
        let arguments = ["--device", devices, "--gradient-parts", "4", "--name", name];
        let said = ok(&train(&folder, &arguments));
        assert!(name != "two" || said.matches("gpu:0, gpu:1").count() >= 2, "{said}");
        models.push(values(&folder.0.join(format!("models/{name}.safetensors"))));
    }
    assert!(models[1] == models[0] && models[2] == models[0]);
    // A run of two goes on with one, in the middle of nowhere: the checkpoint of step 4.
    let on = |devices: &str, steps: &str, name: &str, more: &[&str]| {
        let arguments =
            ["--device", devices, "--gradient-parts", "4", "--name", name, "--schedule", "constant"];
        ok(&train(&folder, &[&arguments[..], &["--steps", steps], more].concat()));
        values(&folder.0.join(format!("models/{name}.safetensors")))
    };
    let whole = on("gpu:2", "6", "whole", &[]);
    on("gpu:0,gpu:1", "4", "moved", &[]);
    assert!(on("gpu:0", "6", "moved", &["--resume"]) == whole);
}

#[test]
fn what_several_devices_cannot_share_is_said_before_anything_is_written() {
    let folder = Folder::new("shares");
    for (arguments, parts) in [
        (&["--device", "cpu,cpu"][..], &["cpu is named twice"][..]),
        (&["--device", "cpu,tpu"], &["cpu,tpu", "gpus for all"]),
        (&["--device", "cpu,gpu:15"], &["gpu:15"]),
        (&["--gradient-parts", "9"], &["gradient-parts = 9", "batch = 8"]),
        (&["--gradient-parts", "0"], &["gradient-parts = 0", "from 1"]),
        (&["--zero", "4"], &["zero = 4", "3"]),
        (&["--zero", "1", "--optimizer", "muon"], &["zero = 1", "optimizer = muon"]),
        (&["--zero", "2", "--sync-every", "50"], &["zero = 2", "sync-every = 50"]),
        (&["--gradient-parts", "2", "--sync-every", "50"], &["gradient-parts = 2", "sync-every = 50"]),
        (&["--sync-every", "7"], &["checkpoint-interval", "sync-every = 7"]),
        (&["--outer-lr", "0.5"], &["outer-lr = 0.5", "sync-every"]),
    ] {
        let run = train(&folder, arguments);
        let said = text(&run.stderr);
        assert!(matches!(run.status.code(), Some(1 | 2)), "{arguments:?}: {:?}\n{said}", run.status);
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
        assert!(!folder.0.join("models").exists(), "{said}");
    }
}

#[test]
fn parts_of_a_batch_learn_what_the_whole_batch_learns() {
    let folder = Folder::new("parts");
    let without = ["--dropout", "0", "--name"];
    ok(&train(&folder, &[&without[..], &["whole"]].concat()));
    ok(&train(&folder, &[&without[..], &["parts", "--gradient-parts", "4", "--shares", "speed"]].concat()));
    let model = |name: &str| values(&folder.0.join(format!("models/{name}.safetensors")));
    for ((name, whole), (_, parts)) in model("whole").iter().zip(&model("parts")) {
        assert!(whole.iter().zip(parts).all(|(a, b)| (a - b).abs() < 1e-3), "{name}");
    }
}
