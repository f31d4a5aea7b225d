//! Configurations that are not understood are errors that name the field.

use super::files::fixture;
use serde_json::{Value, json};
use volta::io::{Gguf, GgufValue, GgufWriter};
use volta::models::{CausalLmOptions, Llm};
use volta_testing::test;

fn read(config: &Value) -> Result<CausalLmOptions, String> {
    CausalLmOptions::from_config(&config.to_string()).map_err(|e| e.message().to_string())
}

fn config(name: &str) -> Value {
    let text = std::fs::read_to_string(fixture(name).join("config.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_is_not_understood_is_named() {
    let rope = |rule: Value| json!({"rope_parameters": rule});
    let cases = [
        ("llama", json!({"model_type": "mamba"}), "model_type"),
        ("llama", json!({"residual_multiplier": 0.22}), "residual_multiplier"),
        ("llama", json!({"quantization_config": {"bits": 4}}), "quantization_config"),
        ("llama", json!({"hidden_act": "relu"}), "hidden_act"),
        ("llama", json!({"hidden_size": "32"}), "hidden_size"),
        ("llama", json!({"hidden_size": null}), "hidden_size is missing"),
        ("llama", json!({"num_attention_heads": 5, "head_dim": null}), "hidden_size"),
        ("llama", json!({"num_key_value_heads": 3}), "heads of keys"),
        ("llama", json!({"num_hidden_layers": 0}), "layers"),
        ("llama", json!({"num_attention_heads": 0, "head_dim": null}), "hidden_size"),
        ("llama", json!({"vocab_size": 1e30}), "vocab_size"),
        ("llama", rope(json!({"rope_type": "longrope", "rope_theta": 1e4})), "rope_type"),
        ("llama", rope(json!({"rope_type": "linear", "rope_theta": 1e4})), "factor is missing"),
        ("llama", rope(json!({"rope_type": "linear", "factor": 0.0})), "factor"),
        ("llama", rope(json!({"rope_type": "default", "temperature": 2.0})), "temperature"),
        ("llama", rope(json!({"rope_type": "default", "partial_rotary_factor": 3.0})), "rotated"),
        ("qwen3", json!({"layer_types": ["full_attention"]}), "layer_types"),
        ("qwen3", json!({"layer_types": ["full_attention", "linear_attention"]}), "layer_types"),
        ("stablelm", json!({"use_parallel_residual": true}), "use_parallel_residual"),
        ("gemma2", json!({"hidden_activation": "quick_gelu"}), "hidden_activation"),
        ("gemma2", json!({"final_logit_softcapping": -1.0}), "logit_softcap"),
    ];
    for (name, changes, expected) in cases {
        let mut config = config(name);
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        let message = read(&config).expect_err(&format!("{name} with {changes}"));
        assert!(message.contains(expected), "{name} with {changes}: {message}");
    }
}

#[test]
fn both_forms_of_rotary_rules_say_the_same() {
    let new = json!({"rope_parameters": {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0}});
    let old = json!({"rope_parameters": null, "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}});
    let options = [new, old].map(|changes| {
        let mut config = config("llama");
        config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        read(&config).unwrap()
    });
    assert_eq!(options[0], options[1]);
    assert_eq!(options[0].rotary.base, 5e5);
}

/// A GGUF file with other values for some keys; those without a value are left out.
fn rewritten(changes: &[(&str, Option<GgufValue>)]) -> Gguf {
    let from = Gguf::open(fixture("llama.gguf")).unwrap();
    let mut to = GgufWriter::new();
    for (key, value) in from.metadata().iter().filter(|(key, _)| !changes.iter().any(|(k, _)| k == key)) {
        to.set(key, value.clone());
    }
    for (key, value) in changes {
        if let Some(value) = value {
            to.set(*key, value.clone());
        }
    }
    for tensor in from.tensors() {
        to.copy(&from, tensor.name(), tensor.name()).unwrap();
    }
    Gguf::from_bytes(to.to_bytes().unwrap()).unwrap()
}

#[test]
fn what_a_gguf_file_says_and_volta_does_not_know_is_named() {
    let text = |text: &str| Some(GgufValue::from(text));
    let cases: [(&str, Option<GgufValue>, &str); 9] = [
        ("general.architecture", text("mamba"), "general.architecture"),
        ("general.architecture", None, "general.architecture"),
        ("llama.block_count", None, "llama.block_count"),
        ("llama.block_count", Some(3u32.into()), "layers.2"),
        ("llama.block_count", Some(u32::MAX.into()), "layers"),
        ("llama.expert_count", Some(8u32.into()), "llama.expert_count"),
        ("llama.rope.scaling.type", text("longrope"), "rope.scaling.type"),
        ("tokenizer.ggml.pre", text("unheard-of"), "tokenizer.ggml.pre"),
        ("tokenizer.ggml.model", text("t5"), "tokenizer.ggml.model"),
    ];
    for (key, value, expected) in cases {
        let Err(error) = Llm::of_gguf(&rewritten(&[(key, value)])) else { panic!("{key} was understood") };
        assert!(error.message().contains(expected), "{key}: {error}");
    }
    assert!(Llm::of_gguf(&rewritten(&[])).is_ok());
}
