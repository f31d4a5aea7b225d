//! Adapters: PEFT's files both ways, and training as PEFT's.

use super::files::{distance, fixture, oracle};
use std::path::PathBuf;
use volta::models::{CausalLm, Llm, Lora, LoraOptions};
use volta::{Module, SGD, Tensor, Weights, no_grad};
use volta_testing::test;

fn adapted() -> (Llm, Lora) {
    let mut llm = Llm::load(fixture("llama")).unwrap();
    let lora = Lora::load(llm.causal_lm_mut().unwrap(), fixture("llama-lora")).unwrap();
    llm.eval();
    (llm, lora)
}

/// The last logits for the oracle's tokens.
fn logits(model: &impl Module, shown: usize) -> Vec<f32> {
    let tokens = oracle("llama-lora", "tokens").to_device(volta::default_device());
    let all = no_grad(|| model.forward(&tokens));
    all.narrow(1, tokens.size(1) - shown, shown).to_vec()
}

fn close(model: &impl Module) {
    let expected = oracle("llama-lora", "logits");
    let apart = distance(&logits(model, expected.size(1)), &expected.to_vec::<f32>());
    assert!(apart < 1e-4, "{apart}");
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("volta-lora-{}-{name}", std::process::id()))
}

#[test]
fn an_adapter_of_peft_computes_what_it_did_there() {
    let (mut llm, lora) = adapted();
    close(&llm);
    lora.merge(llm.causal_lm_mut().unwrap()).unwrap();
    close(&llm);
    assert!(llm.state_dict().iter().all(|(name, _)| !name.contains("lora")));
}

#[test]
fn an_adapter_comes_back_from_its_files_under_pefts_names() {
    let (mut llm, lora) = adapted();
    let path = folder("files");
    lora.save(llm.causal_lm().unwrap(), &path, "llama").unwrap();
    let names = |path: PathBuf| {
        let weights = Weights::open(path.join("adapter_model.safetensors")).unwrap();
        let mut names: Vec<String> = weights.names().map(String::from).collect();
        names.sort();
        names
    };
    assert_eq!(names(path.clone()), names(fixture("llama-lora")));
    lora.detach(llm.causal_lm_mut().unwrap());
    let again = Lora::load(llm.causal_lm_mut().unwrap(), &path).unwrap();
    assert_eq!(again.options.rank, 4);
    close(&llm);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn ten_steps_have_the_losses_of_peft() {
    let (mut llm, lora) = adapted();
    let model: &mut CausalLm = llm.causal_lm_mut().unwrap();
    let tokens = oracle("llama-lora", "tokens").to_device(volta::default_device());
    let (x, y) = (tokens.narrow(1, 0, 19), tokens.narrow(1, 1, 19));
    let frozen = model.state_dict().get("model.embed_tokens.weight").unwrap().to_vec::<f32>();
    let mut optimizer = SGD::new(lora.parameters(model), 0.05, 0.0, 0.0);
    for expected in oracle("llama-lora", "losses").to_vec::<f32>() {
        let loss = model.loss(&x, &y);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        let found = loss.item::<f32>();
        assert!((found - expected).abs() < 1e-4 * expected, "{found} {expected}");
    }
    assert_eq!(model.state_dict().get("model.embed_tokens.weight").unwrap().to_vec::<f32>(), frozen);
}

#[test]
fn what_cannot_be_attached_is_an_error() {
    let mut model = CausalLm::new(Default::default());
    let with = |targets: &[&str]| LoraOptions {
        targets: targets.iter().map(ToString::to_string).collect(),
        ..LoraOptions::default()
    };
    for (options, expected) in [
        (with(&["lm_head"]), "lm_head"),
        (with(&[]), "no layer"),
        (LoraOptions { rank: 0, ..LoraOptions::default() }, "rank"),
        (LoraOptions { dropout: 1.0, ..LoraOptions::default() }, "dropout"),
    ] {
        let error = Lora::attach(&mut model, options).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
    Lora::attach(&mut model, with(&["up_proj"])).unwrap();
    assert!(Lora::attach(&mut model, with(&["up_proj"])).is_err());
    let trained = model.parameters().iter().filter(|p| p.is_tracked()).count();
    assert_eq!(trained, 4);
}

#[test]
fn fields_of_peft_that_are_not_understood_are_named() {
    let path = folder("wrong");
    std::fs::create_dir_all(&path).unwrap();
    let from = fixture("llama-lora");
    std::fs::copy(from.join("adapter_model.safetensors"), path.join("adapter_model.safetensors")).unwrap();
    let text = std::fs::read_to_string(from.join("adapter_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (key, value) in [
        ("use_dora", serde_json::json!(true)),
        ("modules_to_save", serde_json::json!(["lm_head"])),
        ("peft_type", serde_json::json!("IA3")),
        ("target_modules", serde_json::json!("all-linear")),
        ("target_modules", serde_json::json!(["q_proj"])),
        ("rank_pattern", serde_json::json!({"q_proj": 2})),
    ] {
        let mut config = config.clone();
        config[key] = value.clone();
        std::fs::write(path.join("adapter_config.json"), config.to_string()).unwrap();
        let mut llm = Llm::load(fixture("llama")).unwrap();
        let error = Lora::load(llm.causal_lm_mut().unwrap(), &path).unwrap_err();
        let expected = if value == serde_json::json!(["q_proj"]) { "down_proj" } else { key };
        assert!(error.message().contains(expected), "{key}: {error}");
        // The model is what it was.
        assert!(llm.state_dict().iter().all(|(name, _)| !name.contains("lora")));
    }
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_merged_adapter_is_gone() {
    let mut model = CausalLm::new(Default::default());
    let lora = Lora::attach(&mut model, LoraOptions::default()).unwrap();
    lora.merge(&mut model).unwrap();
    assert!(model.parameters().iter().all(Tensor::is_tracked));
}
