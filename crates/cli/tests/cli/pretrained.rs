//! Models of others by their paths: `chat`, `generate`, `eval`, `embed`, and names of the Hub.

use super::talking::told;
use super::{Folder, ok, text, volta};
use serde_json::Value;
use std::path::{Path, PathBuf};
use volta_testing::test;

/// A tiny model with random weights.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../volta/tests/models/fixtures").join(name)
}

pub fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_chat_speaks_the_models_template_from_a_folder_and_from_a_file() {
    let folder = Folder::new("pretrained-chat");
    let answers = ["llama", "llama.gguf"].map(|name| {
        let mut command = volta(&folder);
        command.args(["--json", "chat", "--device", "cpu", "--length", "6"]).arg(model(name));
        lines(&ok(&told(&mut command, "Hi\n\nWho?\n")))
    });
    // An empty line says nothing.
    assert_eq!(answers[0].len(), 2);
    assert_eq!((&answers[0][0]["prompt"], &answers[0][1]["prompt"]), (&"Hi".into(), &"Who?".into()));
    assert!(answers[0].iter().all(|a| a["tokens"].as_u64().unwrap() <= 6));
    // Greedy, as its files say, so that both are the same.
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_model_without_a_template_goes_on_and_does_not_chat() {
    let folder = Folder::new("pretrained-generate");
    let mut command = volta(&folder);
    command.args(["--json", "generate", "--device", "cpu", "--length", "5", "--model"]).arg(model("qwen3"));
    let line = &lines(&ok(&command.arg("The river").output().unwrap()))[0];
    assert_eq!(line["prompt"], "The river");
    assert!(line["tokens"].as_u64().unwrap() <= 5);
    let run = told(volta(&folder).args(["chat", "--device", "cpu"]).arg(model("qwen3")), "Hi\n");
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("no chat template"), "{}", text(&run.stderr));
}

#[test]
fn a_text_is_measured() {
    let folder = Folder::new("pretrained-eval");
    let data = folder.0.join("data.txt");
    std::fs::write(&data, "The river runs to the sea. ".repeat(30)).unwrap();
    let mut command = volta(&folder);
    command
        .args(["--json", "eval", "--device", "cpu", "--part", "all", "--model"])
        .arg(model("gpt2"))
        .arg(&data);
    let line = &lines(&ok(&command.output().unwrap()))[0];
    assert_eq!(line["model"], "gpt2");
    assert!(line["loss"].as_f64().unwrap() > 1.0, "{line}");
    let run =
        volta(&folder).args(["eval", "--device", "cpu", "--model"]).arg(model("gpt2")).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
}

#[test]
fn texts_become_vectors() {
    let folder = Folder::new("pretrained-embed");
    let mut command = volta(&folder);
    command.args(["--json", "embed", "--device", "cpu", "--model"]).arg(model("bert"));
    let found = lines(&ok(&told(&mut command, "The river runs.\nStay!\n")));
    assert_eq!(found.len(), 2);
    assert_eq!(found[1]["text"], "Stay!");
    let length: f64 =
        found[0]["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-5);
    let mut command = volta(&folder);
    command.args(["embed", "--device", "cpu", "--model"]).arg(model("bert")).arg("Stay!");
    assert_eq!(ok(&command.output().unwrap()).trim().split(' ').count(), 32);
}

#[test]
fn what_is_not_there_says_how_to_fetch_it() {
    let folder = Folder::new("pretrained-missing");
    let with = |name: &str| {
        let mut command = volta(&folder);
        command.env("HF_HOME", &folder.0).env("HF_TOKEN", "hf_secret").env_remove("HF_HUB_CACHE");
        command.args(["chat", "--device", "cpu", name]).output().unwrap()
    };
    let run = with("hf:me/missing");
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains("`volta download hf:me/missing`"), "{}", text(&run.stderr));
    assert!(!text(&run.stderr).contains("hf_secret"));
    assert_eq!(with("hf:../missing").status.code(), Some(2));
}

#[test]
fn a_model_in_the_hubs_cache_is_found_by_its_name() {
    let folder = Folder::new("pretrained-cache");
    let home = folder.0.join("hub/models--me--tiny");
    let snapshot = home.join("snapshots/abc");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(home.join("refs")).unwrap();
    std::fs::write(home.join("refs/main"), "abc").unwrap();
    for entry in std::fs::read_dir(model("llama")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, snapshot.join(path.file_name().unwrap())).unwrap();
    }
    let mut command = volta(&folder);
    command.env("HF_HOME", &folder.0).env_remove("HF_HUB_CACHE");
    command.args(["--json", "generate", "--device", "cpu", "--length", "3", "--model", "hf:me/tiny", "The"]);
    assert_eq!(lines(&ok(&command.output().unwrap()))[0]["prompt"], "The");
}

#[test]
#[cfg(feature = "download")]
fn a_name_that_is_none_is_found_before_anything_is_fetched() {
    let folder = Folder::new("pretrained-download");
    let mut command = volta(&folder);
    command.env("HF_HOME", &folder.0).env("HF_ENDPOINT", "http://127.0.0.1:9");
    assert_eq!(command.args(["download", "hf:me"]).output().unwrap().status.code(), Some(2));
    let mut command = volta(&folder);
    command.env("HF_HOME", &folder.0).env("HF_ENDPOINT", "nowhere");
    let run = command.args(["download", "hf:me/tiny"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("HF_ENDPOINT"), "{}", text(&run.stderr));
}
