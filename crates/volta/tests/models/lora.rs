//! Adapters: PEFT's files both ways, and training as PEFT's.

use super::files::{distance, fixture, oracle};
use std::path::PathBuf;
use volta::models::{CausalLm, Llm, Lora, LoraOptions, LoraSet};
use volta::{Module, SGD, Tensor, Weights, no_grad};
use volta_testing::test;

/// The adapters that PEFT has written: products, and products with lengths.
const ADAPTERS: [&str; 2] = ["llama-lora", "llama-dora"];

fn adapted(name: &str) -> (Llm, Lora) {
    let mut llm = Llm::load(fixture("llama")).unwrap();
    let lora = Lora::load(llm.causal_lm_mut().unwrap(), fixture(name)).unwrap();
    llm.eval();
    (llm, lora)
}

/// The last logits for the oracle's tokens.
fn logits(model: &impl Module, name: &str, shown: usize) -> Vec<f32> {
    let tokens = oracle(name, "tokens").to_device(volta::default_device());
    let all = no_grad(|| model.forward(&tokens));
    all.narrow(1, tokens.size(1) - shown, shown).to_vec()
}

fn close(model: &impl Module, name: &str) {
    let expected = oracle(name, "logits");
    let apart = distance(&logits(model, name, expected.size(1)), &expected.to_vec::<f32>());
    assert!(apart < 1e-4, "{apart}");
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("volta-lora-{}-{name}", std::process::id()))
}

#[test]
fn an_adapter_of_peft_computes_what_it_did_there() {
    for name in ADAPTERS {
        let (mut llm, lora) = adapted(name);
        close(&llm, name);
        lora.merge(llm.causal_lm_mut().unwrap()).unwrap();
        close(&llm, name);
        assert!(llm.state_dict().iter().all(|(name, _)| !name.contains("lora")));
    }
}

#[test]
fn an_adapter_comes_back_from_its_files_under_pefts_names() {
    for name in ADAPTERS {
        let (mut llm, lora) = adapted(name);
        let path = folder(name);
        lora.save(llm.causal_lm().unwrap(), &path, "llama").unwrap();
        let names = |path: PathBuf| {
            let weights = Weights::open(path.join("adapter_model.safetensors")).unwrap();
            let mut names: Vec<String> = weights.names().map(String::from).collect();
            names.sort();
            names
        };
        assert_eq!(names(path.clone()), names(fixture(name)));
        lora.detach(llm.causal_lm_mut().unwrap());
        let again = Lora::load(llm.causal_lm_mut().unwrap(), &path).unwrap();
        assert_eq!((again.options.rank, again.options.dora), (4, name == "llama-dora"));
        close(&llm, name);
        std::fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn ten_steps_have_the_losses_of_peft() {
    for (name, rate, length) in [("llama-lora", 0.05, 19), ("llama-dora", 0.02, 19)] {
        let (mut llm, lora) = adapted(name);
        let model: &mut CausalLm = llm.causal_lm_mut().unwrap();
        let tokens = oracle(name, "tokens").to_device(volta::default_device());
        let (x, y) = (tokens.narrow(1, 0, length), tokens.narrow(1, 1, length));
        let frozen = model.state_dict().get("model.embed_tokens.weight").unwrap().to_vec::<f32>();
        let mut optimizer = SGD::new(lora.parameters(model), rate, 0.0, 0.0);
        for expected in oracle(name, "losses").to_vec::<f32>() {
            let loss = model.loss(&x, &y);
            optimizer.zero_grad();
            loss.backward();
            optimizer.step();
            let found = loss.item::<f32>();
            assert!((found - expected).abs() < 1e-4 * expected, "{name}: {found} {expected}");
        }
        assert_eq!(model.state_dict().get("model.embed_tokens.weight").unwrap().to_vec::<f32>(), frozen);
    }
}

#[test]
fn lengths_that_are_those_of_the_weight_change_nothing() {
    let mut llm = Llm::load(fixture("qwen2")).unwrap();
    llm.eval();
    let plain = logits(&llm, "llama-lora", 12);
    let options = LoraOptions { dora: true, ..LoraOptions::default() };
    let lora = Lora::attach(llm.causal_lm_mut().unwrap(), options).unwrap();
    // Queries have a bias there, which is not turned.
    assert!(distance(&logits(&llm, "llama-lora", 12), &plain) < 1e-5);
    assert_eq!(lora.parameters(llm.causal_lm().unwrap()).len(), 2 * 2 * 3);
}

#[test]
fn several_adapters_are_switched_while_the_model_stays() {
    let mut llm = Llm::load(fixture("llama")).unwrap();
    llm.eval();
    let plain = logits(&llm, "llama-lora", 12);
    let mut adapters = LoraSet::new();
    let model = llm.causal_lm_mut().unwrap();
    for name in ADAPTERS {
        adapters.load(model, name, fixture(name)).unwrap();
    }
    assert_eq!((adapters.selected(), adapters.names().count()), (None, 2));
    for name in [ADAPTERS[0], ADAPTERS[1], ADAPTERS[0]] {
        adapters.select(llm.causal_lm_mut().unwrap(), Some(name)).unwrap();
        close(&llm, name);
    }
    let model = llm.causal_lm_mut().unwrap();
    assert!(adapters.load(model, ADAPTERS[1], fixture(ADAPTERS[1])).is_err());
    let error = adapters.select(model, Some("other")).unwrap_err();
    assert!(error.message().contains("llama-dora, llama-lora"), "{error}");
    assert_eq!(adapters.selected(), Some(ADAPTERS[0]));
    adapters.select(model, None).unwrap();
    assert_eq!(logits(&llm, "llama-lora", 12), plain);
    // They do not fit a model of another shape.
    let mut other = CausalLm::new(Default::default());
    let error = adapters.select(&mut other, Some(ADAPTERS[0])).unwrap_err();
    assert!(error.message().contains("q_proj") || error.message().contains("down_proj"), "{error}");
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
        ("lora_bias", serde_json::json!(true)),
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
