//! A model from elsewhere: GPT-2 as Hugging Face stores it, going on from a text.
//!
//! `cargo run --release --example load_pretrained -- FOLDER`, a folder with `model.safetensors` and `tokenizer.json`.
//! Without one, a tiny file of the same form is made first.

use std::path::{Path, PathBuf};
use volta::io::{Metadata, Weights, save_safetensors};
use volta::models::{Generation, Gpt};
use volta::text::{Sampler, SamplerOptions, Tokenizer};
use volta::{Device, Result, StateDict, Tensor, manual_seed, set_default_device};

/// A model of GPT-2's form with random numbers, for want of the real one.
fn tiny(folder: &Path) -> Result<()> {
    let width = 32;
    let mut state = StateDict::new();
    let mut put = |name: String, shape: &[usize]| {
        state.insert(name, Tensor::randn(shape) * 0.05);
    };
    put("transformer.wte.weight".into(), &[256, width]);
    put("transformer.wpe.weight".into(), &[64, width]);
    for block in 0..2 {
        let at = |part: &str| format!("transformer.h.{block}.{part}");
        for norm in ["ln_1", "ln_2"] {
            put(at(&format!("{norm}.weight")), &[width]);
            put(at(&format!("{norm}.bias")), &[width]);
        }
        for (part, inputs, outputs) in [
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ] {
            put(at(&format!("{part}.weight")), &[inputs, outputs]);
            put(at(&format!("{part}.bias")), &[outputs]);
        }
        put(at("attn.bias"), &[1, 1, 64, 64]);
    }
    put("transformer.ln_f.weight".into(), &[width]);
    put("transformer.ln_f.bias".into(), &[width]);
    save_safetensors(folder.join("model.safetensors"), &state, &Metadata::new())
}

fn main() -> Result<()> {
    set_default_device(Device::auto());
    manual_seed(0);
    let given = std::env::args().nth(1).map(PathBuf::from);
    let made = std::env::temp_dir().join(format!("volta-pretrained-{}", std::process::id()));
    let folder = given.as_ref().unwrap_or(&made);
    if given.is_none() {
        std::fs::create_dir_all(&made).expect("a folder for temporary files");
        tiny(&made)?;
    }
    let weights = Weights::open(folder.join("model.safetensors"))?;
    let model = Gpt::try_from_gpt2(&weights, None)?;
    println!("{} parameters.", volta::nn::num_parameters(&model));

    let tokenizer = folder.join("tokenizer.json");
    let tokenizer = if tokenizer.exists() { Some(Tokenizer::from_file(&tokenizer)?) } else { None };
    let prompt = tokenizer.as_ref().map_or(vec![1, 2, 3], |t| t.encode("The meaning of life is"));
    let mut text =
        Generation::new(&model, Sampler::new(SamplerOptions { temperature: 0.0, ..Default::default() })?);
    text.read(&prompt)?;
    let written: Vec<u32> = (0..20).map(|_| text.write()).collect::<Result<_>>()?;
    match tokenizer {
        Some(t) => println!("The meaning of life is{}", t.decode(&written)),
        None => println!("It goes on with the tokens {written:?}."),
    }
    if given.is_none() {
        let _ = std::fs::remove_dir_all(&made);
    }
    Ok(())
}
