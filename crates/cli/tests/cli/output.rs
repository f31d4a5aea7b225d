//! What becomes of a command when nobody takes what it writes: a disk that is full, a reader that has gone.

use super::{Folder, ok, text, tiny, volta};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use volta_testing::test;

/// A folder with a tiny model.
fn trained(name: &str) -> Folder {
    let folder = Folder::new(name);
    ok(&tiny(&mut volta(&folder)).args(["--steps", "4", "--quiet"]).output().unwrap());
    folder
}

const MODEL: &str = "models/short-L1-H2-E16-cpu.safetensors";

/// Every command that writes something and is over soon.
const COMMANDS: [&str; 13] = [
    "--help",
    "--version",
    "models",
    "models --json",
    "inspect models/short-L1-H2-E16-cpu.safetensors",
    "inspect --json models/short-L1-H2-E16-cpu.safetensors",
    "eval --json --device cpu",
    "generate --device cpu --length 5 The",
    "generate --device cpu --length 5 --json The",
    "completions bash",
    "download",
    "train --dry-run --data short --device cpu --layers 1 --width 16 --heads 2 --context 16",
    "bench --workloads xor --iters 1",
];

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_an_error_of_every_command() {
    let folder = trained("full-output");
    for arguments in COMMANDS {
        let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let run = volta(&folder).args(arguments.split(' ')).stdout(full()).output().unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("cannot write to standard output"), "{arguments}: {said}");
        assert!(!said.contains("panicked"), "{arguments}: {said}");
    }
    // Where standard error takes nothing there is nobody to tell; the exit code still is what it was.
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let run = volta(&folder).args(["chat", "nobody"]).stderr(full()).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    let run =
        volta(&folder).args(["generate", "--device", "cpu", "--length", "5", "The"]).stderr(full()).output();
    assert!(ok(&run.unwrap()).starts_with("The"));
}

/// A pipe whose reader has gone.
#[cfg(unix)]
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_gone_ends_every_command_quietly() {
    let folder = trained("closed-pipe");
    for arguments in COMMANDS {
        let run = volta(&folder).args(arguments.split(' ')).stdout(unread()).output().unwrap();
        let said = text(&run.stderr);
        assert_eq!((run.status.code(), said.as_str()), (Some(141), ""), "{arguments}");
    }
}

#[cfg(unix)]
#[test]
fn a_text_that_nobody_reads_any_more_is_not_written_on() {
    let folder = trained("text-unread");
    let mut command = volta(&folder);
    command.args(["generate", "--device", "cpu", "--length", "100000000", "The"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut begun = [0; 8];
    run.stdout.take().unwrap().read_exact(&mut begun).unwrap();
    assert!(begun.starts_with(b"The"));
    let run = run.wait_with_output().unwrap();
    // Nobody is told of tokens that nobody got.
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(141), String::new()));
}

#[cfg(unix)]
#[test]
fn a_chat_ends_when_its_reader_has_gone() {
    let folder = trained("chat-unread");
    let mut command = volta(&folder);
    command.args(["chat", "--device", "cpu", "--length", "3", "--stop", ""]).stdin(Stdio::piped());
    let mut run = command.stdout(unread()).stderr(Stdio::piped()).spawn().unwrap();
    // It goes on being talked to until it listens no more.
    let mut input = run.stdin.take().unwrap();
    while input.write_all(b"The cat\n").is_ok() {}
    let run = run.wait_with_output().unwrap();
    assert_eq!((run.status.code(), text(&run.stderr)), (Some(141), String::new()));
}

#[cfg(unix)]
#[test]
fn a_training_whose_reader_has_gone_saves_what_it_has_and_says_how_to_go_on() {
    let folder = Folder::new("training-unread");
    let mut command = volta(&folder);
    tiny(&mut command).args(["--steps", "1000000", "--json"]).stdout(unread());
    let run = command.output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(141), "{said}");
    assert!(said.contains("Go on with: volta train --resume "), "{said}");
    assert!(folder.0.join(MODEL).is_file(), "{said}");
}

#[test]
fn the_tokens_that_are_reported_are_those_that_were_written() {
    let folder = trained("tokens-reported");
    let run = volta(&folder).args(["generate", "--json", "--device", "cpu", "--length", "7", "The"]).output();
    let line: Value = serde_json::from_str(ok(&run.unwrap()).trim()).unwrap();
    assert_eq!(line["tokens"], 7);
}

/// Runs a shell's line in which `volta` is this program.
#[cfg(unix)]
pub fn pasted(folder: &Folder, line: &str) -> Command {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_volta"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [program.parent().unwrap().to_path_buf()].into_iter().chain(std::env::split_paths(&path));
    let mut shell = Command::new("sh");
    shell
        .current_dir(&folder.0)
        .env_remove("VOLTA_DATA")
        .env_remove("VOLTA_DEVICE")
        .env("VOLTA_THREADS", "1");
    shell.env("PATH", std::env::join_paths(folders).unwrap()).args(["-c", line]).stdin(Stdio::null());
    shell
}

/// The command that a run says its model can be talked with.
#[cfg(unix)]
fn invitation(said: &str) -> &str {
    let line = said.lines().find_map(|line| line.strip_prefix("Talk with it: "));
    line.unwrap_or_else(|| panic!("no invitation in\n{said}"))
}

#[cfg(unix)]
#[test]
fn the_command_that_talks_with_a_model_works_when_pasted() {
    let folder = Folder::new("pasted");
    for (more, expected) in [
        (&[][..], "volta chat short-L1-H2-E16-cpu"),
        (&["--output", "my models", "--name", "it's"], r"volta chat '--models=my models' 'it'\''s'"),
        (&["--output", "-out", "--name", "-x"], "volta chat --models=-out -- -x"),
        (&["--output", "./models", "--name", "deep/one"], "volta chat --models=./models deep/one"),
    ] {
        let more: Vec<String> = match more {
            [] => Vec::new(),
            pairs => pairs.chunks(2).map(|pair| format!("{}={}", pair[0], pair[1])).collect(),
        };
        let said = ok(&tiny(&mut volta(&folder)).args(["--steps", "2"]).args(more).output().unwrap());
        let command = invitation(&said);
        assert_eq!(command, expected);
        ok(&pasted(&folder, command).output().unwrap());
    }
}

#[cfg(unix)]
#[test]
fn rustyflows_folder_of_models_is_one() {
    let folder = Folder::new("model-path");
    let settings = "DATASET=short\nSEQ_LEN=16\nEMBED_DIM=16\nNUM_HEADS=2\nNUM_LAYERS=1\nBATCH_SIZE=4\n";
    for (path, listed) in [("models", "models"), ("runs/all/", "runs/all"), ("runs/one.bin", "runs")] {
        std::fs::write(folder.0.join("config.env"), format!("{settings}MODEL_PATH={path}\n")).unwrap();
        let mut command = volta(&folder);
        command.args(["train", "--config", "config.env", "--device", "cpu", "--steps", "2", "--warmup", "0"]);
        let said = ok(&command.output().unwrap());
        ok(&pasted(&folder, invitation(&said)).output().unwrap());
        let models = ok(&volta(&folder).args(["models", "--json", listed]).output().unwrap());
        assert_eq!(models.lines().count(), 1, "{path}: {models}");
    }
    assert!(!folder.0.join("models.safetensors").exists());
}

#[cfg(unix)]
#[test]
fn a_run_that_variables_configured_goes_on_without_them_when_its_command_is_pasted() {
    let folder = Folder::new("variables-pasted");
    let mut command = volta(&folder);
    tiny(&mut command)
        .args(["--steps", "1000000", "--json"])
        .env("VOLTA_TRAIN_NAME", "a b")
        .env("VOLTA_TRAIN_SEED", "7");
    // It stops after its first steps.
    let said = text(&command.stdout(unread()).output().unwrap().stderr);
    let (_, command) = said.split_once("Go on with: ").unwrap_or_else(|| panic!("{said}"));
    let shorter = command.trim_end().replace("--steps=1000000", "--steps=20 --quiet");
    ok(&pasted(&folder, &shorter).output().unwrap());
    let model = volta::io::Weights::open(folder.0.join("models/a b.safetensors")).unwrap();
    assert_eq!(model.metadata()["steps"], "20");
}
