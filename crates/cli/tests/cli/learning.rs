//! Models that learn: a made text by heart, and a real one where `VOLTA_DATA` names its folder.

use super::{Folder, ok, volta};
use serde_json::Value;
use std::path::Path;
use volta_testing::test;

/// What a training on `data` tells last of its validation.
fn validated(folder: &Folder, data: &Path, options: &str) -> Value {
    let mut command = volta(folder);
    command.env_remove("VOLTA_THREADS").args(["--json", "train", "--device", "cpu", "--data"]).arg(data);
    command.args(["--layers", "1", "--heads", "2", "--width", "32", "--context", "32"]);
    // An interval of 0 validates at the end.
    command.args(["--valid-interval", "0", "--sample-interval", "0"]).args(options.split(' '));
    let said = ok(&command.output().unwrap());
    let mut lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).rev();
    lines.find(|line| line["event"] == "validation").unwrap_or_else(|| panic!("no validation in\n{said}"))
}

#[test]
fn a_made_text_is_learnt_in_seconds() {
    let folder = Folder::new("learns");
    let made: String = (0..400).map(|k| format!("{} follows {}; ", (k + 1) % 10, k % 10)).collect();
    std::fs::write(folder.0.join("made.txt"), made).unwrap();
    let options = "--batch 8 --steps 150 --learning-rate 0.01 --warmup 10";
    let loss = validated(&folder, Path::new("made.txt"), options)["loss"].as_f64().unwrap();
    // Of 32 characters the first few cannot be known; guessing among the 20 there are would be 3.0.
    assert!(loss < 0.6, "{loss}");
}

#[test]
fn an_epoch_of_wikitexts_validation_text_lowers_its_perplexity() {
    let Some(data) = std::env::var_os("VOLTA_DATA").filter(|folder| !folder.is_empty()) else {
        eprintln!("VOLTA_DATA is not set: nothing to test");
        return;
    };
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join(data).join("wikitext-2/wiki.valid.tokens");
    let folder = Folder::new("wikitext");
    let options = "--tokenizer words --vocabulary 2000 --batch 32 --epochs 1 --learning-rate 0.003";
    let perplexity = validated(&folder, &text, options)["perplexity"].as_f64().unwrap();
    // Knowing only how often each of the 2,000 words occurs leaves 84.
    assert!(perplexity < 80.0, "{perplexity}");
}
