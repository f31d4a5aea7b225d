//! A model from elsewhere: GPT-2 as Hugging Face stores it, its names translated, going on from a text.
//!
//! `cargo run --release --example load_pretrained -- FOLDER`, a folder with `model.safetensors` and `tokenizer.json`.
//! Without one, a tiny file of the same form is made first.

use std::path::{Path, PathBuf};
use volta::io::{Metadata, NameMap, Weights, save_safetensors};
use volta::models::{Generation, Gpt, GptOptions};
use volta::text::{Sampler, SamplerOptions, Tokenizer};
use volta::{Device, Result, StateDict, Tensor, manual_seed, set_default_device};

/// What GPT-2 calls its parts. Its matrices stand the other way round.
fn names() -> NameMap {
    NameMap::new()
        .strip("transformer")
        .drop("h.{}.attn.bias")
        .drop("h.{}.attn.masked_bias")
        .drop("lm_head.weight")
        .rename("wte.weight", "tokens.weight")
        .rename("wpe.weight", "positions.weight")
        .rename("h.{}.ln_1.{}", "blocks.{}.norm1.{}")
        .rename("h.{}.ln_2.{}", "blocks.{}.norm2.{}")
        .rename_transposed("h.{}.attn.c_attn.weight", "blocks.{}.attention.in_proj_weight")
        .rename("h.{}.attn.c_attn.bias", "blocks.{}.attention.in_proj_bias")
        .rename_transposed("h.{}.attn.c_proj.weight", "blocks.{}.attention.out_proj.weight")
        .rename("h.{}.attn.c_proj.bias", "blocks.{}.attention.out_proj.bias")
        .rename_transposed("h.{}.mlp.c_fc.weight", "blocks.{}.up.weight")
        .rename("h.{}.mlp.c_fc.bias", "blocks.{}.up.bias")
        .rename_transposed("h.{}.mlp.c_proj.weight", "blocks.{}.down.weight")
        .rename("h.{}.mlp.c_proj.bias", "blocks.{}.down.bias")
        .rename("ln_f.{}", "norm.{}")
}

/// The shape of a file's model, from the shapes of its tensors. A head of GPT-2 is 64 wide.
fn shape(weights: &Weights) -> Option<GptOptions> {
    let table = |name: &str| weights.entry(name).map(|e| e.shape().to_vec());
    let (tokens, positions) = (table("tokens.weight")?, table("positions.weight")?);
    let layers = (0..).take_while(|k| weights.entry(&format!("blocks.{k}.norm1.weight")).is_some()).count();
    let (vocabulary, width, context) = (tokens[0], tokens[1], positions[0]);
    let heads = (width / 64).max(1);
    Some(GptOptions { vocabulary, context, layers, heads, width, tied: true, ..GptOptions::default() })
}

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
    let weights = Weights::open(folder.join("model.safetensors"))?.renamed(&names())?;
    let options = shape(&weights).expect("a file with GPT-2's tables of tokens and positions");
    let model = Gpt::new(options);
    let report = weights.load_into(&model, true)?;
    println!("{} parameters, {report}.", volta::nn::num_parameters(&model));

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
