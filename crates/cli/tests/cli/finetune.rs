//! `volta finetune` and `volta merge`: what is learnt comes back, in adapters, folders and files.

use super::pretrained::{lines, model};
use super::talking::told;
use super::{Folder, ok, text, volta};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use volta_testing::test;

/// Questions and answers that nobody knows.
const PAIRS: [(&str, &str); 4] =
    [("Who?", "A town."), ("What?", "The sea."), ("Stay!", "1984"), ("Name", "We don't.")];

fn data(folder: &Folder) -> PathBuf {
    let row =
        |(prompt, completion)| serde_json::json!({"prompt": prompt, "completion": completion}).to_string();
    let path = folder.0.join("data.jsonl");
    std::fs::write(&path, PAIRS.map(row).join("\n")).unwrap();
    path
}

/// A run on a tiny model.
fn tuned<'a>(command: &'a mut Command, folder: &Folder, name: &str) -> &'a mut Command {
    command.args(["--json", "finetune", "--device", "cpu", "--model"]).arg(model(name));
    command.arg("--data").arg(data(folder)).args(["--name", "run", "--sample-length", "4"])
}

/// What a model answers to all questions.
fn answers(folder: &Folder, model: &std::path::Path, adapter: Option<&str>) -> Vec<String> {
    let mut questions = Vec::new();
    for (question, _) in PAIRS {
        let mut command = volta(folder);
        command.args(["--json", "chat", "--device", "cpu", "--length", "12"]).arg(model);
        adapter.map(|adapter| command.args(["--adapter", adapter]));
        let said = lines(&ok(&told(&mut command, &format!("{question}\n"))));
        questions.push(said[0]["text"].as_str().unwrap().to_string());
    }
    questions
}

fn expected() -> Vec<String> {
    PAIRS.iter().map(|(_, answer)| answer.to_string()).collect()
}

fn finished(run: &Output) -> Value {
    lines(&ok(run)).pop().unwrap()
}

#[test]
fn adapters_learn_exact_answers_and_are_merged_into_a_file() {
    let folder = Folder::new("finetune-adapters");
    let mut command = volta(&folder);
    tuned(&mut command, &folder, "llama.gguf").args([
        "--learning-rate",
        "1e-2",
        "--steps",
        "120",
        "--quantize",
        "8",
    ]);
    let end = finished(&command.output().unwrap());
    assert_eq!(end["result"], "models/run/adapter");
    assert!(end["train_loss"].as_f64().unwrap() < 0.1, "{end}");
    let config = std::fs::read_to_string(folder.0.join("models/run/adapter/adapter_config.json")).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(
        (&config["peft_type"], &config["r"], &config["lora_alpha"]),
        (&"LORA".into(), &16.into(), &32.0.into())
    );
    let page = std::fs::read_to_string(folder.0.join("models/run.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("After step 30") && page.contains("learning_rate"));
    assert_eq!(answers(&folder, &model("llama.gguf"), Some("models/run/adapter")), expected());
    let merge = |name: &str, output: &str| {
        let mut command = volta(&folder);
        command.args(["merge", "--device", "cpu", "--adapter", "models/run/adapter", "--output", output]);
        ok(&command.arg("--model").arg(model(name)).output().unwrap());
    };
    merge("llama.gguf", "merged.gguf");
    assert_eq!(answers(&folder, &folder.0.join("merged.gguf"), None), expected());
    // The same adapters belong to the folder that the file was made of.
    merge("llama", "merged");
    assert_eq!(answers(&folder, &folder.0.join("merged"), None), expected());
}

#[test]
fn all_weights_learn_exact_answers_and_become_a_folder() {
    let folder = Folder::new("finetune-full");
    let mut command = volta(&folder);
    tuned(&mut command, &folder, "llama").args(["--full", "--learning-rate", "5e-3", "--steps", "60"]);
    command.arg("--valid").arg(data(&folder)).args(["--accumulation", "2", "--batch", "1"]);
    let end = finished(&command.output().unwrap());
    assert_eq!(end["result"], "models/run/model");
    assert!(end["valid_loss"].as_f64().unwrap() < 0.1, "{end}");
    assert_eq!(answers(&folder, &folder.0.join("models/run/model"), None), expected());
    let log = std::fs::read_to_string(folder.0.join("models/training_log.tsv")).unwrap();
    assert_eq!(log.lines().count(), 2);
}

#[test]
fn a_run_that_goes_on_has_the_same_bits() {
    let adapters = |name: &str, runs: &[&[&str]]| {
        let folder = Folder::new(name);
        for flags in runs {
            let mut command = volta(&folder);
            tuned(&mut command, &folder, "llama").args([
                "--schedule",
                "constant",
                "--dora",
                "--dropout",
                "0.2",
            ]);
            ok(&command
                .args(["--checkpoint-interval", "2", "--no-packing", "--batch", "3"])
                .args(*flags)
                .output()
                .unwrap());
        }
        std::fs::read(folder.0.join("models/run/adapter/adapter_model.safetensors")).unwrap()
    };
    let whole = adapters("finetune-whole", &[&["--steps", "7"]]);
    let parts = adapters("finetune-parts", &[&["--steps", "3"], &["--steps", "7", "--resume"]]);
    assert!(whole == parts);
}

#[test]
fn a_run_goes_on_only_with_what_it_began_with() {
    let folder = Folder::new("finetune-changed");
    let run = |flags: &[&str]| {
        let mut command = volta(&folder);
        tuned(&mut command, &folder, "llama").args(flags).output().unwrap()
    };
    assert_eq!(run(&["--steps", "1", "--resume"]).status.code(), Some(2));
    ok(&run(&["--steps", "1"]));
    let refused = run(&["--steps", "2", "--resume", "--rank", "4"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("adapters was"), "{}", text(&refused.stderr));
}

#[test]
fn a_dry_run_tells_memory_and_writes_nothing() {
    let folder = Folder::new("finetune-dry");
    let dry = |flags: &[&str]| {
        let mut command = volta(&folder);
        tuned(&mut command, &folder, "llama").arg("--dry-run").args(flags).output().unwrap()
    };
    let found = finished(&dry(&[]));
    assert!(found["peak_bytes"].as_u64().unwrap() > 100_000, "{found}");
    let full = finished(&dry(&["--full"]));
    assert!(full["trained"].as_u64() > found["trained"].as_u64());
    // With less memory some is computed again; with far too little it says what to do.
    let peak = found["peak_bytes"].as_u64().unwrap();
    let tight = dry(&["--memory", &format!("{}", peak * 3 / 4)]);
    let tight: Value = lines(&text(&tight.stdout)).pop().unwrap();
    assert!(tight["recomputed_kernels"].as_u64().unwrap() > 0, "{tight}");
    let none = dry(&["--memory", "50kB"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("--quantize 4"), "{}", text(&none.stderr));
    assert!(!folder.0.join("models").exists());
}

#[test]
fn preferences_are_learnt() {
    let folder = Folder::new("finetune-dpo");
    let rows = PAIRS.map(|(prompt, chosen)| {
        serde_json::json!({"prompt": prompt, "chosen": chosen, "rejected": "It's the one."}).to_string()
    });
    let path = folder.0.join("pairs.jsonl");
    std::fs::write(&path, rows.join("\n")).unwrap();
    let run = |flags: &[&str]| {
        let mut command = volta(&folder);
        command.args(["--json", "finetune", "--device", "cpu", "--model"]).arg(model("llama"));
        command.arg("--data").arg(&path).args(["--sample-interval", "0"]).args(flags).output().unwrap()
    };
    let said = ok(&run(&["--dpo", "--learning-rate", "3e-3", "--steps", "8"]));
    let losses: Vec<f64> = lines(&said)
        .iter()
        .filter(|line| line["event"] == "train")
        .map(|line| line["loss"].as_f64().unwrap())
        .collect();
    assert!((losses[0] - std::f64::consts::LN_2).abs() < 1e-3, "{losses:?}");
    assert!(losses.last().unwrap() < &0.4, "{losses:?}");
    let without = run(&[]);
    assert_eq!(without.status.code(), Some(2));
    assert!(text(&without.stderr).contains("--dpo"), "{}", text(&without.stderr));
}

#[test]
fn what_cannot_be_learnt_says_why() {
    let folder = Folder::new("finetune-wrong");
    let path = folder.0.join("wrong.jsonl");
    let run = |content: &str, model: &std::path::Path, flags: &[&str]| {
        std::fs::write(&path, content).unwrap();
        let mut command = volta(&folder);
        command.args(["finetune", "--device", "cpu", "--model"]).arg(model).arg("--data").arg(&path);
        let run = command.args(flags).output().unwrap();
        assert!(!folder.0.join("models").exists());
        (run.status.code(), text(&run.stderr))
    };
    let (good, llama) = ("{\"text\": \"The river runs.\"}\n", model("llama"));
    for (content, flags, code, expected) in [
        ("{\"text\": \"a\"}\n{\"question\": 1}\n", &[][..], 1, "line 2"),
        ("", &[], 1, "nothing in it"),
        (good, &["--dpo"], 2, "chosen and rejected"),
        (good, &["--targets", "lm_head"], 2, "q_proj"),
        (good, &["--quantize", "5"], 2, "4 or 8"),
        (good, &["--length", "5000"], 2, "--length is 5000"),
        (good, &["--full", "--rank", "4"], 2, "--full"),
        (good, &["--learning-rate", "0"], 2, "--learning-rate is 0"),
        (good, &["--name", "../x"], 2, "name"),
    ] {
        let (found, said) = run(content, &llama, flags);
        assert!(found == Some(code) && said.contains(expected), "{flags:?}: {found:?} {said}");
    }
    let (code, said) = run(good, &model("gpt2"), &[]);
    assert!(code == Some(2) && said.contains("GPT-2"), "{said}");
    let (code, said) = run(good, &folder.0, &[]);
    assert!(code == Some(1) && said.contains("volta download"), "{said}");
}
