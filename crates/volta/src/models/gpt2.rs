//! GPT-2 as Hugging Face stores it: its names translated, its shape read from its tables.

use super::{Gpt, GptOptions};
use crate::call::Call;
use crate::error::{Result, bail};
use crate::io::{NameMap, Weights};

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

/// The width of a head, in all sizes of GPT-2.
const HEAD_WIDTH: usize = 64;

/// The most blocks that are looked for.
const MAX_LAYERS: usize = 1 << 12;

/// The shape of a file's model, from the shapes of its tensors.
fn shape(weights: &Weights, heads: Option<usize>) -> Option<GptOptions> {
    let table = |name: &str| {
        let entry = weights.entry(name)?;
        <[usize; 2]>::try_from(entry.shape()).ok()
    };
    let ([vocabulary, width], [context, _]) = (table("tokens.weight")?, table("positions.weight")?);
    let is_there = |k: &usize| weights.entry(&format!("blocks.{k}.norm1.weight")).is_some();
    let layers = (0..MAX_LAYERS).take_while(is_there).count();
    let heads = heads.unwrap_or((width / HEAD_WIDTH).max(1));
    Some(GptOptions { vocabulary, context, layers, heads, width, tied: true, ..GptOptions::default() })
}

impl Gpt {
    /// GPT-2 from Hugging Face's weights, on the default device. The number of heads stands in `config.json` as `n_head`; without it,
    /// each is 64 wide, as in all models that OpenAI published.
    #[track_caller]
    pub fn try_from_gpt2(weights: &Weights, heads: Option<usize>) -> Result<Gpt> {
        let _call = Call::enter("Gpt::from_gpt2");
        let weights = weights.renamed(&names())?;
        let Some(options) = shape(&weights, heads).filter(|options| options.layers > 0) else {
            bail!(
                Data,
                "this is no GPT-2: its tables of tokens (wte.weight) and positions (wpe.weight) and its blocks (h.0…) are not all there"
            );
        };
        let model = Gpt::try_new(options)?;
        weights.load_into(&model, true)?;
        Ok(model)
    }
}
