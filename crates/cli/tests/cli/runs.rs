//! Runs by their names: which one is new, which one goes on and with what, and what is said about each at its end.

use super::{Folder, ok, text, tiny, tiny_on, volta};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use volta::io::Weights;
use volta_testing::test;

const NAME: &str = "short-L1-H2-E16-cpu";

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

fn steps(model: &Path) -> String {
    Weights::open(model).unwrap().metadata()["steps"].clone()
}

fn model(folder: &Folder, name: &str) -> PathBuf {
    folder.0.join(format!("models/{name}.safetensors"))
}

/// That a command was refused, with all of this in its reason.
fn refused(output: &Output, parts: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part} in\n{said}");
    }
}

#[test]
fn runs_that_start_at_once_have_names_of_their_own() {
    let folder = Folder::new("at-once");
    let start = |_| {
        let mut command = volta(&folder);
        tiny(&mut command).args(["--steps", "4", "--quiet"]).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..4).map(start).collect();
    for run in running {
        ok(&run.wait_with_output().unwrap());
    }
    for name in [NAME.to_string(), format!("{NAME}-2"), format!("{NAME}-3"), format!("{NAME}-4")] {
        assert!(folder.0.join("models").join(&name).is_dir(), "{name}");
        assert_eq!(steps(&model(&folder, &name)), "4");
    }
}

#[test]
fn a_model_and_a_page_without_a_folder_are_not_written_over() {
    let folder = Folder::new("not-over");
    let models = folder.0.join("models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join(format!("{NAME}.safetensors")), "a model").unwrap();
    std::fs::write(models.join(format!("{NAME}-2.html")), "a page").unwrap();
    ok(&tiny(&mut volta(&folder)).args(["--steps", "4", "--quiet"]).output().unwrap());
    let there = |file: &str| std::fs::read_to_string(models.join(file)).unwrap();
    assert_eq!(there(&format!("{NAME}.safetensors")), "a model");
    assert_eq!(there(&format!("{NAME}-2.html")), "a page");
    assert_eq!(steps(&model(&folder, &format!("{NAME}-3"))), "4");
}

#[test]
fn the_run_that_goes_on_is_the_last_one_even_if_others_are_gone() {
    let folder = Folder::new("gap");
    let run = |more: &[&str]| ok(&tiny(&mut volta(&folder)).args(more).arg("--quiet").output().unwrap());
    for _ in 0..3 {
        run(&["--steps", "4"]);
    }
    let second = format!("{NAME}-2");
    std::fs::remove_dir_all(folder.0.join("models").join(&second)).unwrap();
    std::fs::remove_file(model(&folder, &second)).unwrap();
    std::fs::remove_file(folder.0.join(format!("models/{second}.html"))).unwrap();
    run(&["--steps", "8", "--resume"]);
    assert_eq!(steps(&model(&folder, NAME)), "4");
    assert_eq!(steps(&model(&folder, &format!("{NAME}-3"))), "8");
    // A new run comes after all of them, so that it is the last one then.
    run(&["--steps", "4"]);
    assert_eq!(steps(&model(&folder, &format!("{NAME}-4"))), "4");
}

#[test]
fn a_number_in_somebodys_own_name_does_not_make_it_a_later_run_of_another() {
    let folder = Folder::new("own-number");
    let run = |name: &str, more: &[&str]| {
        let arguments = ["--name", name, "--quiet"];
        ok(&tiny(&mut volta(&folder)).args(arguments).args(more).output().unwrap())
    };
    run("tale", &["--steps", "4"]);
    run("tale-2000", &["--steps", "4"]);
    run("tale", &["--steps", "8", "--resume"]);
    assert_eq!(
        (steps(&model(&folder, "tale")), steps(&model(&folder, "tale-2000"))),
        ("8".into(), "4".into())
    );
}

#[test]
fn a_folder_without_a_checkpoint_is_not_gone_on_with() {
    let folder = Folder::new("no-checkpoint");
    let run = folder.0.join("models").join(NAME);
    std::fs::create_dir_all(&run).unwrap();
    let measured = "step,epoch,name,value\n1,1,train/loss,0.5\n";
    std::fs::write(run.join("metrics.csv"), measured).unwrap();
    let output = tiny(&mut volta(&folder)).args(["--steps", "4", "--resume"]).output().unwrap();
    refused(&output, &["no checkpoint", NAME, "leave out --resume"]);
    assert_eq!(std::fs::read_to_string(run.join("metrics.csv")).unwrap(), measured);
}

#[test]
fn what_a_run_began_with_cannot_change_when_it_goes_on() {
    let folder = Folder::new("changed");
    let run = |arguments: &str| {
        tiny(&mut volta(&folder)).args(arguments.split(' ')).arg("--quiet").output().unwrap()
    };
    ok(&run("--name a --steps 4 --betas 0.8,0.9"));
    let before = std::fs::read(model(&folder, "a")).unwrap();
    for (changed, parts) in [
        ("--betas 0.8,0.9 --learning-rate 0.5", &["learning-rate", "0.001", "0.5"][..]),
        ("--betas 0.8,0.9 --weight-decay 0.3", &["weight-decay", "0.01", "0.3"]),
        ("--betas 0.8,0.9 --seed 7", &["seed", "0", "7"]),
        ("--betas 0.8,0.9 --clip 0", &["clip", "1", "0"]),
        ("--betas 0.8,0.9 --accumulation 2", &["accumulation", "1", "2"]),
        ("--betas 0.8,0.9 --precision f16", &["precision", "f32", "f16"]),
        ("--betas 0.8,0.9 --tokenizer bytes", &["tokenizer", "chars", "bytes"]),
        ("--betas 0.9,0.95", &["betas", "0.8", "0.95"]),
        ("--learning-rate 0.5", &["betas", "none", "learning-rate"]),
    ] {
        let output = run(&format!("--name a --steps 8 --resume {changed}"));
        refused(&output, parts);
        assert_eq!(std::fs::read(model(&folder, "a")).unwrap(), before, "{changed}");
    }
    ok(&run("--name b --steps 4 --optimizer sgd --momentum 0.5"));
    refused(&run("--name b --steps 8 --optimizer sgd --momentum 0.6 --resume"), &["momentum", "0.5", "0.6"]);
    // How long it goes on, and what is shown meanwhile, is free.
    ok(&run(
        "--name a --betas 0.8,0.9 --steps 8 --temperature 0.5 --valid-batches 3 --log other.tsv --resume",
    ));
    assert_eq!(steps(&model(&folder, "a")), "8");
}

#[test]
fn another_text_is_not_gone_on_with_and_the_same_one_is_wherever_it_lies() {
    let folder = Folder::new("another-text");
    let put = |name: &str, text: &str| std::fs::write(folder.0.join(name), text.repeat(40)).unwrap();
    put("a.txt", "a cat and a dog; ");
    put("same.txt", "a cat and a dog; ");
    put("b.txt", "a cot and a dag; ");
    let run = |data: &str, arguments: &str| {
        let mut command = volta(&folder);
        tiny_on(data, &mut command).args(["--name", "x", "--quiet"]).args(arguments.split(' '));
        command.output().unwrap()
    };
    ok(&run("a.txt", "--steps 4"));
    refused(&run("b.txt", "--steps 8 --resume"), &["data", "a.txt", "b.txt"]);
    ok(&run("same.txt", "--steps 8 --resume"));
    put("same.txt", "a cot and a dag; ");
    refused(&run("same.txt", "--steps 12 --resume"), &["same.txt", "changed"]);
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

#[test]
fn a_dry_run_tells_what_each_rank_takes_when_they_share_out_what_they_have() {
    let folder = Folder::new("shared-out");
    let planned = |more: &[&str]| {
        let mut command = volta(&folder);
        // Larger than what is gathered at once.
        let size = [
            "train", "--data", "short", "--device", "cpu", "--layers", "12", "--width", "320", "--heads", "4",
        ];
        command.args(size).args(["--context", "8", "--batch", "8", "--dry-run", "--world", "8"]).args(more);
        ok(&command.output().unwrap())
    };
    let said: Value = serde_json::from_str(planned(&["--json", "--zero", "3"]).trim()).unwrap();
    let bytes = |stage: usize, of: &str| said["ranks_memory"][stage][of].as_f64().unwrap();
    let model = said["parameters"].as_f64().unwrap() * 4.0;
    assert_eq!(
        (bytes(0, "parameters"), bytes(0, "gradients"), bytes(0, "optimizer")),
        (model, model, 2.0 * model)
    );
    for (of, from) in [("optimizer", 1), ("gradients", 2), ("parameters", 3)] {
        assert!((0..from).all(|stage| bytes(stage, of) == bytes(0, of)), "{said}");
        let eighth = bytes(from, of) / bytes(0, of);
        assert!((0.125..0.126).contains(&eighth) && bytes(3, of) == bytes(from, of), "{said}");
    }
    let peaks: Vec<f64> = (0..4).map(|stage| bytes(stage, "peak_bytes")).collect();
    assert!(
        peaks.is_sorted_by(|a, b| a >= b) && peaks[1] < peaks[0] - 1.5 * model && peaks[3] < peaks[1],
        "{peaks:?}"
    );
    assert_eq!(said["peak_bytes"].as_f64().unwrap(), peaks[3]);
    let table = planned(&["--zero", "1"]);
    assert!(table.contains("each of 8 ranks") && table.contains("--zero 3"), "{table}");
}

#[test]
fn a_run_with_half_the_memory_learns_the_same_and_one_with_too_little_says_what_would_fit() {
    let folder = Folder::new("memory");
    let run = |arguments: &[&str]| {
        let mut command = volta(&folder);
        command.args([
            "train", "--data", "short", "--device", "cpu", "--layers", "3", "--width", "16", "--json",
        ]);
        command.args([
            "--heads",
            "2",
            "--context",
            "16",
            "--warmup",
            "0",
            "--sample-length",
            "5",
            "--dropout",
            "0.1",
        ]);
        command.args(arguments).output().unwrap()
    };
    let dry = |arguments: &[&str]| -> Value {
        let run = run(&[&["--dry-run"], arguments].concat());
        serde_json::from_str(text(&run.stdout).trim())
            .unwrap_or_else(|e| panic!("{e}: {}", text(&run.stderr)))
    };
    let large = ["--batch", "64"];
    let with = |memory: u64| dry(&[&large[..], &["--memory", &memory.to_string()]].concat());
    let whole = dry(&large);
    let peak = whole["peak_bytes"].as_u64().unwrap();
    assert_eq!((&whole["memory_limit"], &whole["recomputed_kernels"]), (&Value::Null, &0.into()), "{whole}");
    let planned = with(peak / 2);
    assert!(planned["peak_bytes"].as_u64().unwrap() <= peak / 2, "{planned}");
    assert_eq!(
        (&planned["memory_limit"], &planned["missing_bytes"]),
        (&(peak / 2).into(), &0.into()),
        "{planned}"
    );
    assert_eq!(planned["unlimited_peak_bytes"], peak, "{planned}");
    assert!(
        planned["recomputed_kernels"].as_u64() > Some(0) && planned["recomputed_flops"].as_u64() > Some(0)
    );
    assert!(planned["estimated_slowdown"].as_f64().unwrap() > 1.0, "{planned}");
    let learnt = |arguments: &[&str]| -> Value {
        let lines = ok(&run(&[&large, &["--steps", "4"], arguments].concat()));
        let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.rfind(|line| line["event"] == "finished").unwrap()["train_loss"].clone()
    };
    assert_eq!(learnt(&["--memory", &(peak / 2).to_string()]), learnt(&[]));
    let too_little =
        (4..40).map(|part| peak / part).find(|&memory| with(memory)["missing_bytes"] != 0).unwrap();
    let memory = too_little.to_string();
    let failed = run(&[&large[..], &["--steps", "4", "--memory", &memory]].concat());
    let why = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{why}");
    let batch: usize = why.split_once("--batch ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!(batch < 64 && why.contains(&format!("--accumulation {}", 64usize.div_ceil(batch))), "{why}");
    let smaller = dry(&["--memory", &memory, "--batch", &batch.to_string()]);
    assert_eq!(smaller["missing_bytes"], 0, "{smaller}");
    let least =
        why.split_once("a step needs ").unwrap().1.split_once(" of memory").unwrap().0.replace(' ', "");
    let enough = dry(&[&large[..], &["--memory", &least]].concat());
    assert_eq!(enough["missing_bytes"], 0, "{least}: {enough}");
}

#[cfg(unix)]
#[test]
fn a_run_that_is_under_way_is_not_gone_on_with_by_another_process() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new("locked");
    let mut command = volta(&folder);
    tiny(&mut command).args(["--steps", "1000000", "--json"]);
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut wait_for = |event: &str| {
        assert!(lines.any(|line| line.contains(event)), "it ended before {event}");
    };
    wait_for("\"validation\"");
    // Twice, while it goes on writing.
    for _ in 0..2 {
        let output = tiny(&mut volta(&folder)).args(["--steps", "1000000", "--resume"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("process {}", run.id())) && said.contains(NAME), "{said}");
        wait_for("\"saved\"");
    }
    // Whoever only reads may.
    let best = format!("{NAME}/best");
    ok(&volta(&folder).args(["eval", "--device", "cpu", "--model", &best]).output().unwrap());
    assert!(run.try_wait().unwrap().is_none(), "it still runs");
    run.kill().unwrap();
    run.wait().unwrap();
    let measured = volta::train::read_csv(folder.0.join("models").join(NAME).join("metrics.csv")).unwrap();
    let losses = measured.series("train/loss");
    assert!(losses.windows(2).all(|pair| pair[0].0 < pair[1].0), "{losses:?}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_with_a_warning() {
    let folder = Folder::new("damaged");
    let run = |more: &[&str]| {
        let arguments = ["--schedule", "constant", "--quiet"];
        let output = tiny(&mut volta(&folder)).args(more).args(arguments).output().unwrap();
        ok(&output);
        text(&output.stderr)
    };
    let (name, steps) = (["--name", "whole"], ["--steps", "12"]);
    run(&[name, steps].concat());
    run(&["--steps", "8"]);
    let run_folder = folder.0.join("models").join(NAME);
    let last = run_folder.join("checkpoints/step-00000008.safetensors");
    let bytes = std::fs::read(&last).unwrap();
    std::fs::write(&last, &bytes[..bytes.len() / 2]).unwrap();
    let said = run(&["--steps", "12", "--resume"]);
    for part in ["warning", "step-00000008", "damaged"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let values = |name: &str| super::values(&model(&folder, name));
    assert!(values(NAME) == values("whole"), "the steps that were made again are others");
    assert!(run_folder.join("checkpoints/step-00000008.safetensors.damaged").exists());
    assert_eq!(run(&["--steps", "16", "--resume"]), "", "once is enough");
    // Nothing is left to go on with.
    for file in std::fs::read_dir(run_folder.join("checkpoints")).unwrap() {
        std::fs::write(file.unwrap().path(), "nothing").unwrap();
    }
    let output = tiny(&mut volta(&folder)).args(["--steps", "20", "--resume"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("step-00000016"), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn the_command_that_goes_on_can_be_given_to_a_shell() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new("shell");
    std::fs::write(folder.0.join("a text $HOME.txt"), "a cat and a dog; ".repeat(40)).unwrap();
    let mut command = volta(&folder);
    tiny_on("a text $HOME.txt", &mut command).args(["--name", "it's mine", "--steps", "1000000", "--json"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"train\"")));
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    // Whoever reads lets the program say what it has to.
    lines.for_each(drop);
    let said = text(&run.wait_with_output().unwrap().stderr);
    let (_, command) = said.split_once("Go on with: volta ").unwrap_or_else(|| panic!("{said}"));
    let shorter = command.trim_end().replace("1000000", "\"$STEPS\"");
    let done = steps(&model(&folder, "it's mine")).parse::<u64>().unwrap();
    let script = format!("exec '{}' --quiet {shorter}", env!("CARGO_BIN_EXE_volta"));
    let mut shell = Command::new("sh");
    shell.current_dir(&folder.0).env("VOLTA_THREADS", "1").env("STEPS", (done + 4).to_string());
    ok(&shell.args(["-c", &script]).output().unwrap());
    assert_eq!(steps(&model(&folder, "it's mine")), (done + 4).to_string());
}
