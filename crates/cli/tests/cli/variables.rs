//! Variables and values that cannot be: errors that name them, with exit code 2, before anything starts.

use super::{Folder, ok, text, tiny, volta};
use std::io::Write;
use std::process::{Output, Stdio};
use volta_testing::test;

/// That a command was refused, with all of this in its reason.
fn refused(output: &Output, parts: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_variable_that_cannot_be_is_named_by_every_command() {
    let folder = Folder::new("variables");
    for (name, value) in [
        ("VOLTA_THREADS", "abc"),
        ("VOLTA_THREADS", "-1"),
        ("VOLTA_THREADS", "0"),
        ("VOLTA_THREADS", "100000"),
        ("VOLTA_DEVICE", "tpu"),
        ("VOLTA_GUARDS", "perhaps"),
        ("VOLTA_LIMITS", "none"),
        ("VOLTA_BLOCK_BYTES", "many"),
        ("VOLTA_MAX_DISPATCH_MS", "soon"),
        ("VOLTA_TIER_UP_RUNS", "-1"),
        ("VOLTA_MIRROR", "here"),
    ] {
        let run = volta(&folder).arg("models").env(name, value).output().unwrap();
        refused(&run, &[name, value, "must be"]);
    }
    for arguments in ["devices", "bench --workloads xor --iters 1", "generate The", "completions bash"] {
        let run = volta(&folder).args(arguments.split(' ')).env("VOLTA_THREADS", "x").output().unwrap();
        refused(&run, &["VOLTA_THREADS"]);
    }
}

#[test]
fn many_threads_compute_and_too_many_are_refused() {
    let folder = Folder::new("many-threads");
    let bench = |threads: &str| {
        let arguments = ["bench", "--workloads", "matmul-256", "--iters", "1", "--threads", threads];
        volta(&folder).args(arguments).output().unwrap()
    };
    assert!(ok(&bench("200")).contains("tflops"));
    refused(&bench("100000"), &["100000", "1024"]);
}

/// Where the system refuses threads, those that there are compute.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_the_system_refuses_are_done_without() {
    let folder = Folder::new("refused-threads");
    let script = format!(
        "ulimit -v 1500000; exec '{}' bench --workloads matmul-256 --iters 1",
        env!("CARGO_BIN_EXE_volta")
    );
    let mut shell = std::process::Command::new("bash");
    shell.current_dir(&folder.0).env("VOLTA_THREADS", "1000").args(["-c", &script]);
    let run = shell.output().unwrap();
    let said = ok(&run);
    assert!(said.contains("tflops"), "{said}");
    assert!(text(&run.stderr).contains("VOLTA_THREADS"), "{}", text(&run.stderr));
}

#[test]
fn values_that_cannot_be_are_usage_errors() {
    let folder = Folder::new("usage");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "2", "--quiet"]).output().unwrap());
    for (arguments, parts) in [
        ("generate --device cpu --temperature -1 The", &["temperature", "-1"][..]),
        ("generate --device cpu --top-p 5 The", &["top_p", "5"]),
        ("generate --device cpu --repetition-penalty 0 The", &["repetition_penalty", "0"]),
        ("generate --device tpu The", &["tpu", "gpu:N"]),
        ("generate --length 0 The", &["0"]),
        ("chat --device cpu --top-p 0", &["top_p", "0"]),
        ("bench --workloads nonsense", &["nonsense", "gpt-small"]),
        ("bench --workloads matmul-x", &["matmul-x"]),
        ("bench --modes f99", &["f99", "f16"]),
        ("bench --device tpu", &["tpu", "gpu:N"]),
        ("tune --device tpu --workloads xor", &["tpu", "gpu:N"]),
        ("tune --workloads nonsense", &["nonsense"]),
        ("train --name ../x", &["../x", "name"]),
        ("train --name /tmp/x", &["/tmp/x", "name"]),
        ("train --log ./models", &["models", "log", "folder"]),
        ("train --dry-run --log ./models", &["models", "log", "folder"]),
    ] {
        let mut command = volta(&folder);
        let run = command.args(arguments.split(' ')).stdin(Stdio::null()).output().unwrap();
        refused(&run, parts);
    }
    assert!(!folder.0.join("x").exists() && !folder.0.join("x.safetensors").exists());
}

#[test]
fn a_log_that_cannot_be_written_is_found_before_the_first_step() {
    let folder = Folder::new("log");
    std::fs::write(folder.0.join("file"), "").unwrap();
    let run =
        tiny(&mut volta(&folder)).args(["--steps", "4", "--json", "--log", "file/log.tsv"]).output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write") && said.contains("file/log.tsv"), "{said}");
    assert!(!text(&run.stdout).contains("\"step\""), "{}", text(&run.stdout));
}

#[test]
fn the_device_that_the_variable_names_is_the_one() {
    let folder = Folder::new("device");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "2", "--quiet"]).output().unwrap());
    // There is no such GPU: whoever looks for it has read the variable.
    let commands = [
        "generate --length 3 The",
        "chat",
        "eval",
        "bench --workloads xor --iters 1",
        "tune --workloads xor",
        "train --data short --steps 2 --layers 1 --width 16 --heads 2 --context 16 --warmup 0 --sample-length 5",
    ];
    for arguments in commands {
        let mut command = volta(&folder);
        command.args(arguments.split(' ')).env("VOLTA_DEVICE", "gpu:15").stdin(Stdio::null());
        let run = command.output().unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("gpu:15"), "{arguments}: {said}");
        // A flag wins.
        if !arguments.starts_with("tune") && !arguments.starts_with("bench") {
            command.args(["--device", "cpu"]);
            ok(&command.output().unwrap());
        }
    }
}

#[test]
fn an_adapter_that_is_not_there_is_what_is_blamed() {
    let folder = Folder::new("adapter");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "2", "--quiet"]).output().unwrap());
    for arguments in ["generate --length 3 The", "eval", "chat", "train --data short --steps 2"] {
        let mut command = volta(&folder);
        command.args(arguments.split(' ')).env("VOLTA_ADAPTER", "nonsense").stdin(Stdio::null());
        let run = command.output().unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("nonsense") && said.contains("VOLTA_ADAPTER"), "{arguments}: {said}");
        assert!(!said.contains("safetensors"), "{arguments}: {said}");
    }
}

#[test]
fn a_line_that_is_not_utf_8_does_not_end_a_chat() {
    let folder = Folder::new("chat-bytes");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "2", "--quiet"]).output().unwrap());
    let chat = |flags: &[&str]| {
        let mut command = volta(&folder);
        command.args(["chat", "--device", "cpu", "--length", "3", "--seed", "1"]).args(flags);
        let mut run =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        run.stdin.take().unwrap().write_all(b"The cat\ncaf\xe9\nThe dog\n").unwrap();
        run.wait_with_output().unwrap()
    };
    let run = chat(&["--json"]);
    let lines: Vec<serde_json::Value> = ok(&run).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((&lines[0]["prompt"], &lines[2]["prompt"]), (&"The cat".into(), &"The dog".into()));
    assert!(lines[1]["error"].as_str().unwrap().contains("UTF-8"), "{}", lines[1]);
    let run = chat(&[]);
    ok(&run);
    assert!(text(&run.stderr).contains("UTF-8"), "{}", text(&run.stderr));
}

#[test]
fn devices_are_listed_without_noise_where_there_is_no_session() {
    let folder = Folder::new("no-session");
    for arguments in ["devices", "devices --verbose", "devices --verbose --json"] {
        let mut command = volta(&folder);
        command.args(arguments.split(' ')).env_remove("XDG_RUNTIME_DIR");
        let run = command.output().unwrap();
        assert!(ok(&run).contains("cpu"));
        assert!(!text(&run.stderr).contains("XDG_RUNTIME_DIR"), "{arguments}: {}", text(&run.stderr));
    }
}

/// A driver that cannot be loaded is no reason to say anything, unless somebody asks.
#[cfg(target_os = "linux")]
#[test]
fn what_drivers_find_wrong_is_shown_when_asked_for() {
    let folder = Folder::new("driver-trouble");
    let run = |verbose: &[&str]| {
        let mut command = volta(&folder);
        command.arg("devices").args(verbose).env_remove("VOLTA_ADAPTER");
        command.env("VK_DRIVER_FILES", "nowhere.json").env("VK_ICD_FILENAMES", "nowhere.json");
        let run = command.output().unwrap();
        assert_eq!(text(&run.stderr), "");
        ok(&run)
    };
    let (quiet, verbose) = (run(&[]), run(&["--verbose"]));
    assert!(verbose.lines().count() > quiet.lines().count(), "{quiet}\n{verbose}");
}
