//! Training: ten steps have the losses of PyTorch, and texts that share a row do not see each other.

use super::files::{fixture, floats, numbers};
use serde_json::Value;
use volta::models::{CausalLm, IGNORED, Llm, Lora};
use volta::optim::AdamWOptions;
use volta::{AdamW, Module, Tensor};
use volta_testing::test;

/// Two texts in one row of tokens, segments and next tokens, of which the last few of each are learnt.
fn row(texts: &[Vec<u32>], learnt: &[u32], length: usize) -> [Tensor; 3] {
    let [mut tokens, mut segments, mut next] = [const { Vec::new() }; 3];
    for (k, (text, &count)) in texts.iter().zip(learnt).enumerate() {
        let places = text.len() - 1;
        tokens.extend(text[..places].iter().map(|&t| t as i32));
        segments.resize(tokens.len(), k as i32);
        let first = places - count as usize;
        next.extend((0..places).map(|at| if at < first { IGNORED } else { text[at + 1] as i32 }));
    }
    tokens.resize(length, 0);
    segments.resize(length, texts.len() as i32);
    next.resize(length, IGNORED);
    [tokens, segments, next].map(|row| Tensor::from_vec(row, [1, length]))
}

fn answers() -> (Vec<Vec<u32>>, Vec<u32>, Value) {
    let text = std::fs::read_to_string(fixture("training.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let texts = all["texts"].as_array().unwrap().iter().map(numbers).collect();
    (texts, numbers(&all["learnt"]), all)
}

fn ten_steps(model: &CausalLm, parameters: Vec<Tensor>, expected: &Value) {
    let (texts, learnt, _) = answers();
    let [tokens, segments, next] = row(&texts, &learnt, 24);
    let options = AdamWOptions { learning_rate: 2e-3, weight_decay: 0.0, ..AdamWOptions::default() };
    let mut optimizer = AdamW::with(parameters, options);
    for expected in floats(expected) {
        let loss = model.packed_loss(&tokens, &segments, &next);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        let found = loss.item::<f32>();
        assert!((found - expected).abs() < 1e-4 * expected.max(1.0), "{found} {expected}");
    }
}

#[test]
fn ten_steps_of_all_weights_have_the_losses_of_pytorch() {
    let llm = Llm::load(fixture("llama")).unwrap();
    ten_steps(llm.causal_lm().unwrap(), llm.parameters(), &answers().2["full"]);
}

#[test]
fn ten_steps_of_adapters_have_the_losses_of_peft() {
    let mut llm = Llm::load(fixture("llama")).unwrap();
    let lora = Lora::load(llm.causal_lm_mut().unwrap(), fixture("llama-lora")).unwrap();
    let parameters = lora.parameters(llm.causal_lm().unwrap());
    ten_steps(llm.causal_lm().unwrap(), parameters, &answers().2["lora"]);
}

#[test]
fn texts_in_a_row_do_not_see_each_other() {
    let (texts, learnt, _) = answers();
    // Full attention, a window, and both with capped scores.
    for name in ["llama", "mistral", "gemma2"] {
        let llm = Llm::load(fixture(name)).unwrap();
        let model = llm.causal_lm().unwrap();
        let loss = |texts: &[Vec<u32>], learnt: &[u32], length| {
            let [tokens, segments, next] = row(texts, learnt, length);
            model.packed_loss(&tokens, &segments, &next).item::<f32>()
        };
        let alone = loss(&texts[1..], &learnt[1..], 13);
        let behind = loss(&texts, &[0, learnt[1]], 24);
        assert!((alone - behind).abs() < 1e-4 * alone, "{name}: {alone} {behind}");
        // Both, as many of each as are learnt.
        let both = loss(&texts, &learnt, 32);
        let first = loss(&texts[..1], &learnt[..1], 8);
        let mean = (4.0 * first + 6.0 * alone) / 10.0;
        assert!((both - mean).abs() < 1e-4 * mean, "{name}: {both} {mean}");
    }
}

#[test]
fn likelihoods_are_the_sums_of_losses() {
    let (texts, learnt, _) = answers();
    let llm = Llm::load(fixture("gemma2")).unwrap();
    let model = llm.causal_lm().unwrap();
    let [tokens, segments, next] = row(&texts[1..], &learnt[1..], 13);
    let mean = model.packed_loss(&tokens, &segments, &next).item::<f32>();
    let sum = model.try_log_likelihood(&tokens, &next).unwrap().to_vec::<f32>();
    assert!((sum[0] + 6.0 * mean).abs() < 1e-3, "{sum:?} {mean}");
    assert!(model.try_packed_loss(&tokens, &segments.narrow(1, 0, 4), &next).is_err());
}
