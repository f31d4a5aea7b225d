//! Weights that stay in blocks: a model computes what it does with the same weights decoded.

use super::files::{distance, fixture, oracle};
use std::path::PathBuf;
use volta::io::{Gguf, GgufType, GgufWriter};
use volta::models::{Generation, Llm, Lora, LoraOptions, WeightStorage};
use volta::text::{Sampler, SamplerOptions};
use volta::{BlockFormat, Device, Module, SGD, Tensor, no_grad};
use volta_testing::test;

/// A file whose matrices are blocks, where rows are whole blocks.
struct Quantized(PathBuf);

impl Quantized {
    fn new(name: &str, kind: GgufType) -> Quantized {
        let file = Gguf::open(fixture("llama.gguf")).unwrap();
        let mut writer = GgufWriter::new();
        writer.set_all(file.metadata());
        for t in file.tensors() {
            if t.shape().len() == 2 && t.shape()[1] % 32 == 0 {
                writer.tensor(t.name(), &file.tensor(t.name(), Device::Cpu).unwrap(), kind).unwrap();
            } else {
                writer.copy(&file, t.name(), t.name()).unwrap();
            }
        }
        let path = std::env::temp_dir().join(format!("volta-{name}-{}.gguf", std::process::id()));
        writer.write(&path).unwrap();
        Quantized(path)
    }
}

impl Drop for Quantized {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn logits(llm: &Llm) -> Vec<f32> {
    let tokens = oracle("llama", "tokens").to_device(volta::default_device());
    no_grad(|| llm.forward(&tokens)).to_vec()
}

fn greedy(llm: &Llm) -> Vec<u32> {
    let sampler = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
    let mut text = Generation::new(llm, Sampler::new(sampler).unwrap());
    text.read(&[47, 211, 154, 81]).unwrap();
    (0..24).map(|_| text.write().unwrap()).collect()
}

fn bytes(llm: &Llm) -> usize {
    llm.state_dict().iter().map(|(_, t)| t.numel() * t.dtype().size()).sum()
}

#[test]
fn weights_in_place_have_the_logits_of_decoded_ones() {
    for kind in [GgufType::Q4_0, GgufType::Q4_1, GgufType::Q8_0] {
        let file = Quantized::new(&format!("in-place-{}", kind.name()), kind);
        let [here, decoded] = [WeightStorage::AsStored, WeightStorage::Floats]
            .map(|storage| Llm::load_with(&file.0, storage).unwrap());
        let apart = distance(&logits(&here), &logits(&decoded));
        assert!(apart < 1e-5, "{}: {apart}", kind.name());
        assert_eq!(greedy(&here), greedy(&decoded), "{}", kind.name());
        // Queries are turned to Hugging Face's order, and the table is the head as well.
        for name in ["model.layers.0.self_attn.q_proj.weight.words", "model.embed_tokens.weight.scales"] {
            assert!(here.state_dict().get(name).is_some(), "{name}");
        }
        assert!(bytes(&here) < bytes(&decoded) / 2, "{} {}", bytes(&here), bytes(&decoded));
        assert!(decoded.buffers().is_empty());
    }
}

#[test]
fn adapters_learn_beside_blocks_as_beside_decoded_weights() {
    let file = Quantized::new("adapters", GgufType::Q4_1);
    let losses = [WeightStorage::AsStored, WeightStorage::Floats].map(|storage| {
        let mut llm = Llm::load_with(&file.0, storage).unwrap();
        volta::manual_seed(3);
        let model = llm.causal_lm_mut().unwrap();
        let lora = Lora::attach(model, LoraOptions { dora: true, ..LoraOptions::default() }).unwrap();
        let tokens = oracle("llama", "tokens").to_device(volta::default_device());
        let (x, y) = (tokens.narrow(1, 0, 19), tokens.narrow(1, 1, 19));
        let mut optimizer = SGD::new(lora.parameters(model), 0.5, 0.0, 0.0);
        let losses: Vec<f32> = (0..6)
            .map(|_| {
                let loss = model.loss(&x, &y);
                optimizer.zero_grad();
                loss.backward();
                optimizer.step();
                loss.item()
            })
            .collect();
        lora.merge(model).unwrap();
        (losses, logits(&llm))
    });
    assert!(distance(&losses[0].0, &losses[1].0) < 1e-4, "{losses:?}");
    assert!(losses[0].0[5] < losses[0].0[0] - 0.1, "{:?}", losses[0].0);
    // Steps on a GPU add in another order for blocks, which six of them make more of.
    let merged = distance(&losses[0].1, &losses[1].1);
    assert!(merged < 1e-3, "{merged}");
}

#[test]
fn layers_are_rounded_when_that_is_asked_for() {
    let exact = logits(&Llm::load(fixture("llama")).unwrap());
    for (name, format, most) in [
        ("llama", BlockFormat::Int8, 0.05),
        ("llama.gguf", BlockFormat::Int8, 0.05),
        ("llama", BlockFormat::Int4, 0.6),
    ] {
        let llm = Llm::load_with(fixture(name), WeightStorage::Blocks(format)).unwrap();
        let apart = distance(&logits(&llm), &exact);
        assert!(apart > 1e-5 && apart < most, "{name} {format:?}: {apart}");
        let state = llm.state_dict();
        assert!(state.get("model.layers.1.mlp.up_proj.weight.words").is_some());
        // Rows of 48 are no whole blocks, and the table is left as it is.
        for name in ["model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"] {
            assert!(state.get(name).is_some(), "{name}");
        }
    }
}

#[test]
fn a_model_in_blocks_is_not_written_as_floats() {
    let file = Quantized::new("written", GgufType::Q8_0);
    let to = file.0.with_extension("other.gguf");
    let error = Llm::load(&file.0).unwrap().save_gguf(&file.0, &to, GgufType::F16).unwrap_err();
    assert!(error.message().contains("WeightStorage::Floats"), "{error}");
    let llm = Llm::load_with(&file.0, WeightStorage::Floats).unwrap();
    assert!(llm.save_gguf(&file.0, &file.0, GgufType::F16).is_err());
    llm.save_gguf(&file.0, &to, GgufType::F32).unwrap();
    assert_eq!(logits(&Llm::load(&to).unwrap()), logits(&llm));
    std::fs::remove_file(to).unwrap();
}

#[test]
fn a_folder_is_written_and_read_again() {
    let to = std::env::temp_dir().join(format!("volta-folder-{}", std::process::id()));
    let llm = Llm::load(fixture("gemma3")).unwrap();
    llm.save_folder(fixture("gemma3"), &to, volta::DType::BF16).unwrap();
    let tokens = Tensor::arange(3, 20).reshape([1, 17]);
    let of = |llm: &Llm| no_grad(|| llm.forward(&tokens)).to_vec::<f32>();
    assert_eq!(of(&Llm::load(&to).unwrap()), of(&llm));
    std::fs::remove_dir_all(to).unwrap();
}

#[test]
fn a_folder_becomes_a_file_that_computes_the_same() {
    for name in ["llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3", "phi3", "stablelm"] {
        let to = std::env::temp_dir().join(format!("volta-{name}-{}.gguf", std::process::id()));
        let llm = Llm::load(fixture(name)).unwrap();
        llm.save_gguf(fixture(name), &to, GgufType::F32).unwrap();
        let again = Llm::load(&to).unwrap();
        let tokens = Tensor::arange(3, 20).reshape([1, 17]);
        let of = |llm: &Llm| no_grad(|| llm.forward(&tokens)).to_vec::<f32>();
        let apart = distance(&of(&again), &of(&llm));
        assert!(apart < 1e-5, "{name}: {apart}");
        let text = "naïve 🙂 中文字, I'LL go\t12345!  The river.";
        assert_eq!(again.prompt(text).unwrap(), llm.prompt(text).unwrap(), "{name}");
        assert_eq!((again.chats(), again.end_token()), (llm.chats(), llm.end_token()), "{name}");
        std::fs::remove_file(to).unwrap();
    }
}

#[test]
fn what_a_file_cannot_say_is_not_written() {
    // llama.cpp takes the width of a head for what scores are scaled by, and this one is scaled by another.
    let to = std::env::temp_dir().join(format!("volta-gemma2-{}.gguf", std::process::id()));
    let error =
        Llm::load(fixture("gemma2")).unwrap().save_gguf(fixture("gemma2"), &to, GgufType::F16).unwrap_err();
    assert!(error.message().contains("write a folder instead"), "{error}");
    assert!(!to.exists());
}
