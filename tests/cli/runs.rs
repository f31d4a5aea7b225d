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
