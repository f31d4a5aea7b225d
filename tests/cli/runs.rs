//! Runs by their names: which one is new, which one goes on and with what, and what is said about each at its end.

use super::{Folder, ok, volta};
use serde_json::Value;
use std::process::Command;

/// A tiny model, without anything said about when to do what.
fn plain<'a>(data: &str, command: &'a mut Command) -> &'a mut Command {
    command.args(["train", "--data", data, "--device", "cpu", "--layers", "1", "--width", "16"]);
    command.args(["--heads", "2", "--context", "16", "--warmup", "0", "--sample-length", "5"])
}

/// What a run says at its end.
fn finished(command: &mut Command) -> Value {
    let said = ok(&command.arg("--json").output().unwrap());
    let last = said.lines().last().unwrap_or_default();
    let last: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in\n{said}"));
    assert_eq!(last["event"], "finished", "{said}");
    last
}

#[test]
fn the_loss_that_is_told_is_the_final_models() {
    let folder = Folder::new("final-loss");
    for (name, interval) in
        [("few", &[][..]), ("odd", &["--valid-interval", "3"]), ("end", &["--valid-interval", "0"])]
    {
        let mut command = volta(&folder);
        plain("short", &mut command).args(["--steps", "5", "--name", name]).args(interval);
        let told =
            finished(&mut command)["valid_loss"].as_f64().unwrap_or_else(|| panic!("{name} tells none"));
        let evaluated = volta(&folder).args(["eval", "--json", "--device", "cpu", "--model", name]).output();
        let evaluated: Value = serde_json::from_str(ok(&evaluated.unwrap()).trim()).unwrap();
        assert!((evaluated["loss"].as_f64().unwrap() - told).abs() < 1e-4, "{name}: {told} and {evaluated}");
        let listed = ok(&volta(&folder).args(["models", "--json"]).output().unwrap());
        let entries = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let entry = entries.into_iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!(entry["valid_loss"].as_f64(), Some(told));
    }
}

#[test]
fn what_a_step_is_and_how_fast_it_was_counts_what_there_is() {
    let folder = Folder::new("counts");
    // 360 characters to learn from are 22 sequences of 16: one batch, smaller than 64 and alone in its epoch.
    std::fs::write(folder.0.join("made.txt"), "0123456789".repeat(40)).unwrap();
    let arguments = ["--batch", "64", "--accumulation", "4", "--steps", "3"];
    let said = ok(&plain("made.txt", &mut volta(&folder)).args(arguments).output().unwrap());
    assert!(said.contains("3 steps of 22 × 16 tokens"), "{said}");
    let told = finished(plain("made.txt", &mut volta(&folder)).args(arguments));
    assert_eq!(told["profile"]["tokens"].as_u64(), Some(3 * 22 * 16));
    // Five batches of four, the last step of an epoch has two of them.
    let arguments = ["--batch", "4", "--accumulation", "3", "--steps", "3"];
    let said = ok(&plain("made.txt", &mut volta(&folder)).args(arguments).output().unwrap());
    assert!(said.contains("3 steps of 12 × 16 tokens, the last of an epoch of 8 × 16"), "{said}");
    let told = finished(plain("made.txt", &mut volta(&folder)).args(arguments));
    assert_eq!(told["profile"]["tokens"].as_u64(), Some((3 + 2 + 3) * 4 * 16));
    let log = std::fs::read_to_string(folder.0.join("models/training_log.tsv")).unwrap();
    let epochs: Vec<&str> = log.lines().skip(1).map(|line| line.split('\t').nth(5).unwrap()).collect();
    assert_eq!(epochs, ["3.00", "3.00", "1.60", "1.60"]);
}

#[test]
fn a_run_of_more_epochs_than_can_be_counted_has_as_many_steps_as_can_be() {
    let folder = Folder::new("epochs");
    let arguments = ["--dry-run", "--epochs", "4611686018427387904"];
    let said = ok(&plain("short", &mut volta(&folder)).args(arguments).output().unwrap());
    assert!(said.contains(&format!("{} steps", u64::MAX)), "{said}");
}

#[test]
fn a_dry_run_plans_what_the_run_does() {
    let folder = Folder::new("dry-as-wet");
    let numbers = |arguments: &[&str]| -> Value {
        let mut command = volta(&folder);
        plain("short", &mut command).args(["--dry-run", "--json"]).args(arguments);
        serde_json::from_str(ok(&command.output().unwrap()).trim()).unwrap()
    };
    let (one, half) = (numbers(&[]), numbers(&["--precision", "f16"]));
    assert_ne!(one["bytes_moved"], half["bytes_moved"]);
    assert_ne!(one["peak_bytes"], half["peak_bytes"]);
    let four = numbers(&["--accumulation", "4"]);
    let times = four["flops"].as_f64().unwrap() / one["flops"].as_f64().unwrap();
    assert!((3.0..4.5).contains(&times), "{one} {four}");
    let mut command = volta(&folder);
    let said = ok(&plain("short", &mut command).args(["--dry-run", "--accumulation", "4"]).output().unwrap());
    assert!(said.contains(&format!("A step of {} tokens", 4 * 16 * 16)), "{said}");
}
