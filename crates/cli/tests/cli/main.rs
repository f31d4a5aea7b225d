//! The program as its users run it: commands, files, errors, exit codes, interruption.

mod devices;
mod diverging;
mod download;
mod elsewhere;
mod finetune;
#[cfg(unix)]
mod kills;
mod learning;
mod onnx;
mod output;
mod pretrained;
mod quantize;
mod runs;
#[cfg(feature = "serve")]
mod serve;
mod talking;
mod trouble;
mod variables;
mod web;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use volta::io::Weights;
use volta_testing::test;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("volta-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn volta(folder: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volta"));
    command
        .current_dir(&folder.0)
        .env_remove("VOLTA_DATA")
        .env_remove("VOLTA_DEVICE")
        .env("VOLTA_THREADS", "1");
    command
}

/// A model that is trained in seconds.
fn tiny(command: &mut Command) -> &mut Command {
    tiny_on("short", command)
}

fn tiny_on<'a>(data: &str, command: &'a mut Command) -> &'a mut Command {
    command
        .args(["train", "--data", data, "--device", "cpu", "--layers", "1", "--width", "16", "--heads", "2"]);
    command.args([
        "--context",
        "16",
        "--batch",
        "8",
        "--warmup",
        "2",
        "--valid-interval",
        "10",
        "--dropout",
        "0.1",
    ]);
    command.args(["--sample-interval", "10", "--sample-length", "20", "--checkpoint-interval", "4"])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// All tensors of a model file.
fn values(path: &Path) -> Vec<(String, Vec<f32>)> {
    let state = Weights::open(path).unwrap().load().unwrap();
    state.iter().map(|(name, t)| (name.to_string(), t.to_vec::<f32>())).collect()
}

#[test]
fn a_model_is_trained_used_and_listed() {
    let folder = Folder::new("whole");
    let said = ok(&tiny(&mut volta(&folder)).args(["--steps", "20"]).output().unwrap());
    for part in
        ["parameters", "validation loss", "Profiling report", "matmul", "outside kernels", "it writes now"]
    {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let name = "short-L1-H2-E16-cpu";
    let models = folder.0.join("models");
    for file in [format!("{name}.safetensors"), format!("{name}.html"), "training_log.tsv".into()] {
        assert!(models.join(&file).exists(), "{file}");
    }
    let page = std::fs::read_to_string(models.join(format!("{name}.html"))).unwrap();
    assert!(
        page.contains("<svg") && page.contains("After step 10") && !page.contains("http-equiv"),
        "{page}"
    );
    let log = std::fs::read_to_string(models.join("training_log.tsv")).unwrap();
    assert_eq!(log.lines().count(), 2);
    assert_eq!(
        log.lines().next().unwrap().split('\t').count(),
        log.lines().nth(1).unwrap().split('\t').count()
    );

    let listed = ok(&volta(&folder).args(["models", "--json"]).output().unwrap());
    let entry: Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!((entry["name"].as_str(), entry["steps"].as_u64()), (Some(name), Some(20)));

    let generate = |seed: &str| {
        let mut command = volta(&folder);
        command.args([
            "generate", "--json", "--device", "cpu", "--num", "2", "--length", "30", "--seed", seed, "The",
        ]);
        let texts: Vec<String> = ok(&command.output().unwrap())
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap()["text"].as_str().unwrap().to_string())
            .collect();
        assert_eq!(texts.len(), 2);
        texts
    };
    assert_eq!(generate("5"), generate("5"));
    assert_ne!(generate("5"), generate("6"));

    let evaluated =
        ok(&volta(&folder).args(["eval", "--json", "--device", "cpu", "--model", name]).output().unwrap());
    let evaluated: Value = serde_json::from_str(evaluated.trim()).unwrap();
    let (loss, perplexity) = (evaluated["loss"].as_f64().unwrap(), evaluated["perplexity"].as_f64().unwrap());
    assert!(
        (loss.exp() - perplexity).abs() < 1e-9 && (loss - entry["valid_loss"].as_f64().unwrap()).abs() < 1e-4
    );

    let file = format!("models/{name}.safetensors");
    let inspected = ok(&volta(&folder).args(["inspect", &file]).output().unwrap());
    assert!(
        inspected.contains("blocks.0.attention.in_proj_weight") && inspected.contains("[48, 16]"),
        "{inspected}"
    );
}

#[test]
fn what_is_said_twice_gets_a_folder_of_its_own() {
    let folder = Folder::new("twice");
    for _ in 0..2 {
        ok(&tiny(&mut volta(&folder)).args(["--steps", "4", "--quiet"]).output().unwrap());
    }
    let models = folder.0.join("models");
    assert!(models.join("short-L1-H2-E16-cpu").is_dir() && models.join("short-L1-H2-E16-cpu-2").is_dir());
}

#[test]
fn a_dry_run_tells_the_plan_and_writes_nothing() {
    let folder = Folder::new("dry");
    let said = ok(&tiny(&mut volta(&folder)).arg("--dry-run").output().unwrap());
    for part in ["Embedding", "GFLOP", "MB of memory", "kernels"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    assert!(!folder.0.join("models").exists());
}

/// The parameters alone would be 1.6 GB, and a step needs four times that.
#[cfg(target_os = "linux")]
#[test]
fn a_dry_run_takes_no_memory_for_the_model() {
    let folder = Folder::new("dry-large");
    let script = format!(
        "ulimit -v 1000000; exec '{}' train --dry-run --json --data short --device cpu --layers 2 --width 4096 --heads 4 \
         --context 16 --batch 2",
        env!("CARGO_BIN_EXE_volta")
    );
    let mut shell = Command::new("bash");
    shell.current_dir(&folder.0).env_remove("VOLTA_DATA").env("VOLTA_THREADS", "1").args(["-c", &script]);
    let run = shell.output().unwrap();
    let line: Value = serde_json::from_str(text(&run.stdout).trim())
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&run.stdout), text(&run.stderr)));
    let (needed, there) = (line["peak_bytes"].as_u64().unwrap(), line["available_bytes"].as_u64().unwrap());
    assert!(line["parameters"].as_u64() > Some(400_000_000) && needed > 4 * 1_600_000_000, "{line}");
    // It may be more than this machine has, and is an error then.
    assert_eq!(run.status.code(), Some(i32::from(needed > there)), "{}", text(&run.stderr));
}

#[test]
fn mistakes_are_named_before_anything_starts() {
    let folder = Folder::new("mistakes");
    std::fs::write(folder.0.join("config.toml"), "layers = 2\nlayerz = 3\n").unwrap();
    for (arguments, parts) in [
        (&["train", "--heads", "3"][..], &["heads", "3", "width"][..]),
        (&["train", "--config", "config.toml"], &["layerz", "line 2", "layers"]),
        (&["train", "--learning-rate", "-1"], &["learning-rate", "-1"]),
        (&["train", "--nonsense"], &["--nonsense"]),
        (&["train", "--resume"], &["no run to go on with"]),
    ] {
        let output = volta(&folder).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{}", text(&output.stderr));
        for part in parts {
            assert!(text(&output.stderr).contains(part), "{part} in\n{}", text(&output.stderr));
        }
        assert!(output.stdout.is_empty() || !folder.0.join("models").exists());
    }
    for (arguments, part) in [
        (&["train", "--data", "missing.txt"][..], "missing.txt"),
        (&["chat", "nobody"], "nobody"),
        (&["inspect", "nothing.safetensors"], "nothing.safetensors"),
    ] {
        let output = volta(&folder).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}\n{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
}

/// Runs until an event with at least this step, then sends a signal; the exit code.
#[cfg(unix)]
fn stopped_at(folder: &Folder, event: &str, step: u64, signal: &str) -> Option<i32> {
    let mut command =
        tiny(&mut volta(folder)).args(["--steps", "400", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(command.stdout.take().unwrap()).lines();
    for line in lines {
        let Ok(said) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        if said["event"] == event && said["step"].as_u64() >= Some(step) {
            let id = command.id().to_string();
            assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
            // Reading on lets the program say what it has to.
            break;
        }
    }
    command.wait().unwrap().code()
}

#[cfg(unix)]
#[test]
fn an_interrupted_and_a_killed_run_go_on_to_the_same_bits() {
    let (whole, parts) = (Folder::new("uninterrupted"), Folder::new("interrupted"));
    let steps = ["--steps", "400", "--quiet"];
    ok(&tiny(&mut volta(&whole)).args(steps).output().unwrap());
    assert_ne!(stopped_at(&parts, "saved", 8, "-KILL"), Some(0));
    let name = "models/short-L1-H2-E16-cpu.safetensors";
    assert!(!parts.0.join(name).exists(), "it was killed early");
    ok(&tiny(&mut volta(&parts)).args(steps).arg("--resume").output().unwrap());
    assert_eq!(values(&whole.0.join(name)), values(&parts.0.join(name)));
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let folder = Folder::new("ctrl-c");
    let code = stopped_at(&folder, "train", 2, "-INT");
    assert_eq!(code, Some(130));
    let name = folder.0.join("models/short-L1-H2-E16-cpu.safetensors");
    assert!(name.exists(), "the model so far");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "400", "--quiet", "--resume"]).output().unwrap());
    let about = Weights::open(&name).unwrap().metadata()["steps"].clone();
    assert_eq!(about, "400");
}

#[test]
fn completions_and_help_name_every_command() {
    let folder = Folder::new("help");
    let (help, completions) = (
        ok(&volta(&folder).arg("--help").output().unwrap()),
        ok(&volta(&folder).args(["completions", "bash"]).output().unwrap()),
    );
    for command in [
        "train",
        "chat",
        "generate",
        "eval",
        "models",
        "devices",
        "download",
        "inspect",
        "quantize",
        "bench",
        "completions",
    ] {
        assert!(help.contains(command) && completions.contains(command), "{command}");
    }
}

volta_testing::main!();
