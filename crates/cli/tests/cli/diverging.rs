//! Runs whose numbers become NaN or infinite: they stop, say so, and leave what was good.

use super::{Folder, ok, text, tiny, values, volta};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use volta::io::{Weights, save_safetensors};
use volta_testing::test;

/// A run that diverges within a few steps, with this much more said.
fn diverging(folder: &Folder, steps: &str, more: &[&str]) -> Output {
    let mut command = volta(folder);
    command.args(["train", "--data", "short", "--device", "cpu", "--layers", "1", "--width", "16"]);
    command.args([
        "--heads",
        "2",
        "--context",
        "16",
        "--batch",
        "4",
        "--warmup",
        "0",
        "--sample-length",
        "5",
    ]);
    command.args(["--learning-rate", "10", "--optimizer", "sgd", "--schedule", "constant", "--steps", steps]);
    command.args(more).output().unwrap()
}

fn is_finite(path: &Path) -> bool {
    Weights::open(path)
        .unwrap()
        .load()
        .unwrap()
        .iter()
        .all(|(name, t)| name.contains("step") || t.to_vec::<f32>().iter().all(|x| x.is_finite()))
}

/// All checkpoints of the only run there is.
fn checkpoints(folder: &Folder) -> Vec<PathBuf> {
    let run = std::fs::read_dir(folder.0.join("models")).unwrap().flatten().find(|e| e.path().is_dir());
    let mut files: Vec<PathBuf> = std::fs::read_dir(run.unwrap().path().join("checkpoints"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_run_that_turns_nan_stops_and_its_last_finite_checkpoint_stays() {
    let folder = Folder::new("nan");
    let output = diverging(
        &folder,
        "40",
        &["--clip", "0", "--checkpoint-interval", "1", "--valid-interval", "1", "--quiet"],
    );
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for part in ["diverged", "in step ", "learning rate", "clipped", "warmup"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let there = checkpoints(&folder);
    let last = there.last().expect("a checkpoint is left");
    assert!(there.iter().all(|path| is_finite(path)), "{there:?}");
    let name = last.strip_prefix(&folder.0).unwrap().to_str().unwrap();
    assert!(said.contains(name), "{name} in\n{said}");
    // The step that is named is the one after it, as there is a checkpoint after every step.
    let step: u64 =
        name.split(['-', '.']).find_map(|part| part.parse().ok().filter(|&n: &u64| n > 0)).unwrap();
    assert!((1..=2).any(|more| said.contains(&format!("in step {}, ", step + more))), "{said}");
    assert!(!folder.0.join("models/short-L1-H2-E16-cpu.safetensors").exists(), "no model of NaN");

    // The command that is printed works as it stands, and begins with what was good.
    let command = said.lines().find_map(|line| line.trim().strip_prefix("volta train ")).expect("a command");
    assert!(command.contains("--from=models/") && command.contains("best.safetensors"), "{command}");
    let script = format!("exec '{}' train {command}", env!("CARGO_BIN_EXE_volta"));
    let mut shell = Command::new("sh");
    shell.current_dir(&folder.0).env("VOLTA_THREADS", "1").args(["-c", &script]);
    ok(&shell.output().unwrap());
    assert!(is_finite(&folder.0.join("models/short-L1-H2-E16-cpu-2.safetensors")));
}

#[test]
fn machines_are_told_where_a_run_has_diverged() {
    let folder = Folder::new("nan-json");
    let output = diverging(&folder, "40", &["--clip", "0", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let last: Value = serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "diverged");
    assert!(last["step"].as_u64() < Some(40) && last["checkpoint"].is_null(), "{last}");
}

#[test]
fn steps_that_half_precision_skips_are_counted_and_skipping_without_end_stops_the_run() {
    let folder = Folder::new("skips");
    let output =
        diverging(&folder, "80", &["--precision", "f16", "--clip", "0", "--momentum", "0.99", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stderr).contains("skipped steps in a row"), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let skipped = events.filter(|e| e["event"] == "train").filter_map(|e| e["skipped_steps"].as_f64());
    assert!(skipped.sum::<f64>() >= 32.0, "{said}");
}

/// The file of a model whose weights are NaN.
fn broken(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.0.join(format!("models/{name}.safetensors"));
    let weights = Weights::open(&path).unwrap();
    let state = weights.load().unwrap().iter().map(|(n, t)| (n.to_string(), t * f64::NAN)).collect();
    let broken = folder.0.join("models/broken.safetensors");
    save_safetensors(&broken, &state, weights.metadata()).unwrap();
    broken
}

#[test]
fn the_best_model_and_checkpoints_are_models_like_others_and_one_of_nan_fails() {
    let folder = Folder::new("best");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "12", "--name", "a", "--quiet"]).output().unwrap());
    let run = |arguments: &str| volta(&folder).args(arguments.split(' ')).output().unwrap();
    let loss = |model: &str| -> f64 {
        let said = ok(&run(&format!("eval --json --device cpu --model {model}")));
        serde_json::from_str::<Value>(said.trim()).unwrap()["loss"].as_f64().unwrap()
    };
    let step = "models/a/checkpoints/step-00000012.safetensors";
    assert_eq!(loss("a"), loss(step), "the last checkpoint is the model at the end");
    assert_eq!(loss("models/a/best.safetensors"), loss("a/best"), "by its path and by its name");
    for model in ["a/best", step] {
        ok(&run(&format!("generate --device cpu --length 5 --seed 1 --model {model} The")));
    }
    let about = Weights::open(folder.0.join("models/a/best.safetensors")).unwrap().metadata().clone();
    assert!(["10", "12"].contains(&&about["steps"][..]) && !about["valid_loss"].is_empty(), "{about:?}");

    // With a rate of next to nothing a new run stays where it begins: at the weights of the old one.
    let from = "train --device cpu --from a/best --steps 2 --warmup 0 --quiet --learning-rate 1e-30 --weight-decay 0";
    ok(&run(&format!("{from} --name b")));
    let begun: HashMap<_, _> = values(&folder.0.join("models/b.safetensors")).into_iter().collect();
    for (name, best) in values(&folder.0.join("models/a/best.safetensors")) {
        assert_eq!(begun[&name], best, "{name}");
    }
    ok(&run(&format!("{from} --name c --layers 1 --width 16 --data short")));
    ok(&run(&format!("{from} --name c --layers 1 --width 16 --data short --resume")));
    let refused = run(&format!("{from} --layers 2 --tokenizer bytes"));
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for part in ["layers = 2", "the model has 1", "tokenizer = bytes", "a/best"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }

    let broken = broken(&folder, "a");
    for model in [broken.to_str().unwrap(), "broken"] {
        let output = run(&format!("eval --device cpu --model {model}"));
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(
            text(&output.stderr).contains("diverged") && output.stdout.is_empty(),
            "{}",
            text(&output.stderr)
        );
    }
}
