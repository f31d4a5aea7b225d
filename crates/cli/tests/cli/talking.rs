//! `volta chat` and `volta generate`, from standard input too.

use super::{Folder, ok, text, tiny, volta};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use volta_testing::test;

/// Runs with `said` on standard input.
pub fn told(command: &mut Command, said: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(said.as_bytes()).expect("the program reads");
    drop(input);
    child.wait_with_output().expect("the program ends")
}

fn trained(name: &str) -> Folder {
    let folder = Folder::new(name);
    ok(&tiny(&mut volta(&folder)).args(["--steps", "10", "--quiet"]).output().unwrap());
    folder
}

#[test]
fn a_chat_answers_every_line_the_same_way_for_the_same_seed() {
    let folder = trained("chat");
    let chat = |seed: &str, said: &str| {
        let mut command = volta(&folder);
        command.args(["--json", "chat", "--device", "cpu", "--length", "12", "--stop", "", "--seed", seed]);
        command.args([
            "--temperature",
            "0.9",
            "--top-k",
            "20",
            "--top-p",
            "0.95",
            "--repetition-penalty",
            "1.1",
        ]);
        let said = ok(&told(&mut command, said));
        said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let answers = chat("3", "The cat\nand the dog\n");
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["prompt"], "The cat");
    assert!(!answers[1]["text"].as_str().unwrap().is_empty());
    assert_eq!(answers, chat("3", "The cat\nand the dog\n"));
    // What was said before is in the context: the same line is answered otherwise.
    assert_ne!(answers[1]["text"], chat("3", "and the dog\n")[0]["text"]);
}

#[test]
fn a_prompt_comes_from_standard_input_and_the_context_may_overflow() {
    let folder = trained("generate");
    let mut command = volta(&folder);
    // Three times the context, and a prompt that is longer than it.
    command.args(["--json", "generate", "--device", "cpu", "--length", "48", "--seed", "1", "-"]);
    let said = ok(&told(&mut command, "The early bird catches the worm, and the late one sleeps."));
    let line: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(line["tokens"], 48);
    assert!(line["tokens_per_second"].as_f64().unwrap() > 0.0);
    // Without JSON the prompt is followed by what the model writes.
    let mut command = volta(&folder);
    command.args(["generate", "--device", "cpu", "--length", "5", "--seed", "1", "The"]);
    let output = command.output().unwrap();
    assert!(ok(&output).starts_with("The"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("a second"), "{}", text(&output.stderr));
}
