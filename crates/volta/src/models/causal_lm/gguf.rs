//! A GGUF file's metadata as [`CausalLmOptions`], and its tensors under Hugging Face's names and in its layout.

use super::CausalLm;
use super::hugging_face::{Relative, relative};
use super::options::{CausalLmOptions, NormKind};
use super::rotary::{RotaryOptions, RotaryScaling};
use super::weight::WeightStorage;
use crate::call::Call;
use crate::device::Device;
use crate::error::Result;
use crate::io::{FromGguf, Gguf, GgufTensor, GgufValue, NameMap};
use crate::nn::Module;
use crate::op::quantized::BlockFormat;
use crate::state::StateDict;
use crate::tensor::{QuantizedMatrix, Tensor, try_realize_all};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// An architecture of llama.cpp.
pub(super) struct Architecture {
    pub name: &'static str,
    /// Hugging Face's `model_type` for it.
    pub model_type: &'static str,
    /// Whether rows of queries and keys stand in llama.cpp's order, pairs of a rotation side by side.
    pub permuted: bool,
    /// Layers without a window are every n-th, if the file has a window and says nothing else.
    full_each: Option<usize>,
    /// The number of layers of the one size whose scores are scaled by its width over its heads.
    scaled_by_width: Option<usize>,
}

const LLAMA: Architecture = Architecture {
    name: "llama",
    model_type: "llama",
    permuted: true,
    full_each: None,
    scaled_by_width: None,
};

static ARCHITECTURES: [Architecture; 7] = [
    LLAMA,
    Architecture { name: "qwen2", model_type: "qwen2", permuted: false, ..LLAMA },
    Architecture { name: "qwen3", model_type: "qwen3", permuted: false, ..LLAMA },
    Architecture {
        name: "gemma2",
        model_type: "gemma2",
        permuted: false,
        full_each: Some(2),
        scaled_by_width: Some(46),
    },
    Architecture {
        name: "gemma3",
        model_type: "gemma3_text",
        permuted: false,
        full_each: Some(6),
        scaled_by_width: Some(62),
    },
    Architecture { name: "phi3", model_type: "phi3", permuted: false, ..LLAMA },
    Architecture { name: "stablelm", model_type: "stablelm", permuted: false, ..LLAMA },
];

/// Keys of an architecture that change nothing that is computed.
const HARMLESS: [&str; 4] =
    ["vocab_size", "rope.scaling.finetuned", "attention.max_alibi_bias", "attention.clamp_kqv"];

/// What a file says of its architecture, and which of it was asked for.
struct Keys<'a> {
    file: &'a Gguf,
    prefix: String,
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Keys<'a> {
    fn get<T: FromGguf<'a>>(&self, name: &str) -> Result<Option<T>> {
        let key = format!("{}.{name}", self.prefix);
        let found = self.file.get(&key);
        self.used.borrow_mut().insert(key);
        found
    }

    fn need<T: FromGguf<'a>>(&self, name: &str) -> Result<T> {
        match self.get(name)? {
            Some(value) => Ok(value),
            None => self.file.require(&format!("{}.{name}", self.prefix)),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.get::<f32>(name)?.map(f64::from))
    }

    /// An error that names a key that nobody asked for and that says something.
    fn finish(self) -> Result<()> {
        let used = self.used.borrow();
        let prefix = format!("{}.", self.prefix);
        let says = |value: &GgufValue| !matches!(value.to_string().as_str(), "0" | "false" | "0.0" | "");
        let unknown = self.file.metadata().iter().find(|(key, value)| {
            key.strip_prefix(&prefix).is_some_and(|name| !HARMLESS.contains(&name))
                && !used.contains(*key)
                && says(value)
        });
        match unknown {
            Some((key, value)) => Err(self.file.wrong(format!(
                "its metadata has {key:?} = {value}, which Volta does not know, so that it may compute something else"
            ))),
            None => Ok(()),
        }
    }
}

pub(super) fn architecture(file: &Gguf) -> Result<&'static Architecture> {
    let name: &str = file.require("general.architecture")?;
    ARCHITECTURES.iter().find(|a| a.name == name).ok_or_else(|| {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|a| a.name).collect();
        file.wrong(format!("general.architecture is {name:?}: Volta knows {}", known.join(", ")))
    })
}

/// The architecture that models of a `model_type` have in llama.cpp, if there is one.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn architecture_for(model_type: &str) -> Option<&'static Architecture> {
    let model_type = if model_type == "mistral" { LLAMA.model_type } else { model_type };
    ARCHITECTURES.iter().find(|a| a.model_type == model_type)
}

impl CausalLmOptions {
    /// What a GGUF file describes.
    ///
    /// # Errors
    /// A key that is missing, cannot be, or is not understood; the message names it.
    #[track_caller]
    pub fn from_gguf(file: &Gguf) -> Result<CausalLmOptions> {
        let _call = Call::enter("CausalLmOptions::from_gguf");
        let architecture = architecture(file)?;
        let keys = Keys { file, prefix: architecture.name.to_string(), used: RefCell::default() };
        let options = read(&keys, architecture, relative(architecture.model_type))?;
        keys.finish()?;
        options.check().map_err(|e| e.with_context(file.label()))?;
        Ok(options)
    }
}

fn read(keys: &Keys<'_>, a: &Architecture, relative: &Relative) -> Result<CausalLmOptions> {
    let file = keys.file;
    let has = |name: &str| file.find(name).is_some();
    let table = file.require_tensor("token_embd.weight")?;
    let (width, heads): (usize, usize) = (keys.need("embedding_length")?, keys.need("attention.head_count")?);
    let layers: usize = keys.need("block_count")?;
    // Every layer has tensors, so that a file of few cannot ask for many.
    if layers > file.tensors().len() {
        return Err(file
            .wrong(format!("it is said to have {layers} layers, and has {} tensors", file.tensors().len())));
    }
    let head_width = match keys.get::<usize>("attention.key_length")? {
        Some(head_width) => head_width,
        None if heads > 0 && width.is_multiple_of(heads) => width / heads,
        None => return Err(file.wrong(format!("a width of {width} does not divide into {heads} heads"))),
    };
    if let Some(other) = keys.get::<usize>("attention.value_length")?.filter(|&other| other != head_width) {
        return Err(
            file.wrong(format!("attention.value_length is {other}, and attention.key_length {head_width}"))
        );
    }
    let eps = match relative.norm {
        NormKind::Rms => "attention.layer_norm_rms_epsilon",
        NormKind::Layer => "attention.layer_norm_epsilon",
    };
    let context: usize = keys.need("context_length")?;
    let (rotary, window_rotary) = rotary(keys, relative, (head_width, context))?;
    let (window, windowed) = windows(keys, a, layers)?;
    let softcap = |name: &str| if relative.scaled_attention { keys.number(name) } else { Ok(None) };
    let scaled_by = if a.scaled_by_width == Some(layers) { width / heads } else { head_width };
    for name in ["use_parallel_residual", "attention.causal"] {
        let usual = name == "attention.causal";
        if keys.get::<bool>(name)?.is_some_and(|value| value != usual) {
            return Err(file.wrong(format!("{}.{name} is {}: Volta has no such model", a.name, !usual)));
        }
    }
    Ok(CausalLmOptions {
        vocabulary: table.shape().first().copied().unwrap_or(0),
        context,
        layers,
        width,
        hidden: keys.need("feed_forward_length")?,
        heads,
        kv_heads: keys.get("attention.head_count_kv")?.unwrap_or(heads),
        head_width,
        norm: relative.norm,
        norm_eps: keys.need::<f32>(eps).map(f64::from)?,
        norm_offset: relative.norm_offset,
        post_norms: relative.post_norms,
        qk_norm: relative.qk_norm,
        gate: relative.usual_gate(),
        qkv_bias: has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias"),
        output_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_down.bias"),
        fused: relative.fused,
        tied: !has("output.weight"),
        embedding_scale: if relative.scaled_embedding { (width as f64).sqrt() } else { 1.0 },
        attention_scale: relative.scaled_attention.then(|| 1.0 / (scaled_by as f64).sqrt()),
        attention_softcap: softcap("attn_logit_softcapping")?,
        logit_softcap: softcap("final_logit_softcapping")?,
        rotary,
        window_rotary,
        window,
        windowed,
    })
}

/// The window, and which layers have it.
fn windows(keys: &Keys<'_>, a: &Architecture, layers: usize) -> Result<(Option<usize>, Vec<bool>)> {
    let window = keys.get::<usize>("attention.sliding_window")?.filter(|&window| window > 0);
    const PATTERN: &str = "attention.sliding_window_pattern";
    let pattern = match keys.file.metadata().value(&format!("{}.{PATTERN}", keys.prefix)) {
        Some(GgufValue::List(_)) => Some(keys.need::<&[bool]>(PATTERN)?.to_vec()),
        Some(_) => {
            let each: usize = keys.need(PATTERN)?;
            Some((0..layers).map(|layer| each == 0 || !(layer + 1).is_multiple_of(each)).collect())
        }
        None => None,
    };
    if let Some(pattern) = &pattern
        && pattern.len() != layers
    {
        let count = pattern.len();
        return Err(keys
            .file
            .wrong(format!("{}.{PATTERN} has {count} elements for {layers} layers", a.name)));
    }
    let usual = || {
        let full = |layer: usize| a.full_each.is_some_and(|each| (layer + 1).is_multiple_of(each));
        (0..layers).map(|layer| !full(layer)).collect()
    };
    Ok(match window {
        None => (None, Vec::new()),
        Some(window) => (Some(window), pattern.unwrap_or_else(usual)),
    })
}

fn rotary(
    keys: &Keys<'_>,
    relative: &Relative,
    (head_width, context): (usize, usize),
) -> Result<(RotaryOptions, Option<RotaryOptions>)> {
    let file = keys.file;
    let base = keys.number("rope.freq_base")?.unwrap_or(10_000.0);
    let width = keys.get("rope.dimension_count")?.unwrap_or(head_width);
    let factor = keys.number("rope.scaling.factor")?;
    let original = keys.get::<usize>("rope.scaling.original_context_length")?.map(|n| n as f64);
    let attention = keys.number("rope.scaling.attn_factor")?;
    let kind = keys.get::<&str>("rope.scaling.type")?;
    let needed = || file.wrong(format!("{}.rope.scaling.factor is missing", keys.prefix));
    let mut scaling = match kind {
        None | Some("none") if factor.is_none_or(|f| f == 1.0) => RotaryScaling::None,
        // Files before there were types.
        None | Some("linear") => RotaryScaling::Linear { factor: factor.ok_or_else(needed)? },
        Some("yarn") => {
            let factor = factor.ok_or_else(needed)?;
            RotaryScaling::Yarn {
                factor,
                context: original.unwrap_or(context as f64),
                beta_fast: keys.number("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                beta_slow: keys.number("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                attention: attention.unwrap_or(1.0) * (1.0 + 0.1 * factor.ln()),
                truncate: true,
            }
        }
        Some(other) => {
            return Err(file.wrong(format!(
                "{}.rope.scaling.type is {other:?}: Volta knows none, linear and yarn",
                keys.prefix
            )));
        }
    };
    if file.find("rope_factors_long.weight").is_some() {
        return Err(file.wrong("rope_factors_long.weight is there: Volta does not know this rotary scaling"));
    }
    if file.find("rope_freqs.weight").is_some() {
        if scaling != RotaryScaling::None {
            return Err(file.wrong("rope_freqs.weight is there beside another rotary scaling"));
        }
        let factors = file.tensor("rope_freqs.weight", Device::Cpu)?;
        scaling = RotaryScaling::Factors(factors.try_to_vec::<f32>()?);
    }
    // Gemma 3's layers with a window are not stretched.
    let local = keys.number("rope.freq_base_swa")?.unwrap_or(10_000.0);
    let near = (relative.name == "gemma3_text").then(|| RotaryOptions::new(local, width));
    Ok((RotaryOptions { base, width, scaling }, near))
}

/// llama.cpp's names of what a layer has, with Hugging Face's.
fn layer_names(relative: &Relative) -> [(&'static str, &'static str); 14] {
    let behind = "post_attention_layernorm";
    [
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_qkv", "self_attn.qkv_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("attn_q_norm", "self_attn.q_norm"),
        ("attn_k_norm", "self_attn.k_norm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", if relative.fused { "mlp.gate_up_proj" } else { "mlp.up_proj" }),
        ("ffn_down", "mlp.down_proj"),
        ("attn_norm", "input_layernorm"),
        ("ffn_norm", if relative.post_norms { "pre_feedforward_layernorm" } else { behind }),
        ("post_attention_norm", behind),
        ("post_ffw_norm", "post_feedforward_layernorm"),
    ]
}

/// llama.cpp's names of what is outside of layers, with Hugging Face's.
const OUTER_NAMES: [(&str, &str); 3] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.{}", "model.norm.{}"),
    ("output.weight", "lm_head.weight"),
];

/// Hugging Face's names for llama.cpp's.
pub(super) fn names(relative: &Relative) -> NameMap {
    let start = NameMap::new().drop("rope_freqs.weight");
    let start = OUTER_NAMES.iter().fold(start, |map, (theirs, ours)| map.rename(theirs, ours));
    layer_names(relative).iter().fold(start, |map, (theirs, ours)| {
        map.rename(&format!("blk.{{}}.{theirs}.{{}}"), &format!("model.layers.{{}}.{ours}.{{}}"))
    })
}

/// llama.cpp's names for Hugging Face's.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn names_in_gguf(relative: &Relative) -> NameMap {
    let start = OUTER_NAMES.iter().fold(NameMap::new(), |map, (theirs, ours)| map.rename(ours, theirs));
    layer_names(relative).iter().fold(start, |map, (theirs, ours)| {
        map.rename(&format!("model.layers.{{}}.{ours}.{{}}"), &format!("blk.{{}}.{theirs}.{{}}"))
    })
}

/// Rows in Hugging Face's order: the two of a rotation half a head apart.
fn unpermuted(t: &Tensor, heads: usize) -> Result<Tensor> {
    let (shape, rows) = (t.shape(), t.size(0));
    let pairs = t.try_reshape([heads, rows / heads / 2, 2, t.numel() / rows])?;
    pairs.try_transpose(1, 2)?.try_reshape(shape)
}

/// [`unpermuted`] of blocks: a row's words and scales stand in rows of their own.
fn unpermuted_blocks(matrix: &QuantizedMatrix, heads: usize) -> Result<QuantizedMatrix> {
    let (words, scales) = (unpermuted(matrix.words(), heads)?, unpermuted(matrix.scales(), heads)?);
    try_realize_all(&[words.clone(), scales.clone()])?;
    QuantizedMatrix::from_parts(&words, &scales, matrix.format(), matrix.columns())
}

impl CausalLm {
    /// The model of a GGUF file, on the default device, in f32.
    ///
    /// # Errors
    /// Metadata that is not understood, and tensors that are missing or of another shape.
    #[track_caller]
    pub fn try_from_gguf(file: &Gguf) -> Result<CausalLm> {
        CausalLm::try_from_gguf_with(file, WeightStorage::Floats)
    }

    /// [`try_from_gguf`](Self::try_from_gguf) with a choice of what matrices are in memory.
    #[track_caller]
    pub fn try_from_gguf_with(file: &Gguf, storage: WeightStorage) -> Result<CausalLm> {
        let _call = Call::enter("CausalLm::from_gguf");
        let architecture = architecture(file)?;
        let names = names(relative(architecture.model_type));
        let mut model = CausalLm::try_new(CausalLmOptions::from_gguf(file)?)?;
        let own = model.state_dict();
        let (mut state, mut blocks) = (StateDict::new(), BTreeMap::new());
        for entry in file.tensors() {
            let Some(name) = names.find(entry.name())?.map(|new| new.name) else { continue };
            // What is of another shape is named by the module.
            let fits = own.get(&name).is_some_and(|p| p.shape()[..] == *entry.shape());
            let heads = match name.rsplit('.').nth(1) {
                Some("q_proj") => Some(model.options.heads),
                Some("k_proj") => Some(model.options.kv_heads),
                _ => None,
            };
            let heads = heads.filter(|_| architecture.permuted && fits);
            let format = storage.format_in_file(&name, entry).filter(|_| fits);
            if let Some(format) = format {
                let matrix = file.requantized(entry.name(), format, Device::Cpu)?;
                let matrix = heads.map_or(Ok(matrix.clone()), |heads| unpermuted_blocks(&matrix, heads))?;
                blocks.insert(name, matrix);
                continue;
            }
            let mut t = file.tensor(entry.name(), Device::Cpu)?;
            if let Some(heads) = heads {
                t = unpermuted(&t, heads)?;
            }
            // llama.cpp's factors are complete.
            let offset = model.options.norm_offset;
            if offset != 0.0 && name.ends_with("norm.weight") {
                t = t.try_to_dtype(crate::DType::F32)?.try_sub(offset)?;
            }
            state.insert(name, t);
        }
        model.fill(state, blocks).map_err(|e| e.with_context(file.label()))?;
        Ok(model)
    }
}

impl WeightStorage {
    /// The format that a tensor of a file is kept in, if it is kept in blocks. What has as few bits already is not rounded again.
    fn format_in_file(self, name: &str, entry: &GgufTensor) -> Option<BlockFormat> {
        let stored = entry.kind().block_format();
        match (self, stored) {
            (WeightStorage::Floats, _) => None,
            (WeightStorage::Blocks(wanted), Some(stored))
                if wanted == BlockFormat::Int8 || stored != BlockFormat::Int8 =>
            {
                Some(stored)
            }
            (WeightStorage::Blocks(_), _) if name.contains(".layers.") => self.format_of(entry.shape()),
            _ => stored,
        }
    }
}
