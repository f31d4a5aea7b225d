//! Hugging Face's `config.json` as [`CausalLmOptions`]. Defaults are those of `transformers`.

use super::options::{CausalLmOptions, Gate, NormKind};
use super::rotary::{RotaryOptions, RotaryScaling};
use crate::call::Call;
use crate::error::{Result, bail};
use crate::models::config_json::Fields;
use serde_json::Value;

/// What a member of the family does otherwise than Llama.
pub(super) struct Relative {
    /// Its `model_type`.
    pub name: &'static str,
    pub norm: NormKind,
    pub norm_offset: f64,
    pub post_norms: bool,
    pub qk_norm: bool,
    /// The field of the activation.
    activation: &'static str,
    biases: Biases,
    pub fused: bool,
    tied: bool,
    /// Whether tokens' vectors are multiplied by the root of the width.
    pub scaled_embedding: bool,
    /// Whether scores are divided by the root of `query_pre_attn_scalar`.
    pub scaled_attention: bool,
    windows: Windows,
    base: f64,
    /// The share of a head that is rotated.
    rotated: f64,
}

/// Where biases are.
enum Biases {
    None,
    /// In all of attention if `attention_bias` says so, and in feed-forward parts if `mlp_bias` does.
    Asked,
    /// For queries, keys and values.
    Qkv,
    /// For queries, keys and values if `use_qkv_bias` says so.
    QkvAsked,
}

/// Which layers see a window only.
enum Windows {
    None,
    /// All, if `sliding_window` has a number; this one where it is missing.
    All(Option<usize>),
    /// Those from `max_window_layers` on, if `use_sliding_window` says so.
    Last,
    /// All but every n-th.
    AllBut(usize),
}

const LLAMA: Relative = Relative {
    name: "llama",
    norm: NormKind::Rms,
    norm_offset: 0.0,
    post_norms: false,
    qk_norm: false,
    activation: "hidden_act",
    biases: Biases::Asked,
    fused: false,
    tied: false,
    scaled_embedding: false,
    scaled_attention: false,
    windows: Windows::None,
    base: 10_000.0,
    rotated: 1.0,
};

const GEMMA_2: Relative = Relative {
    name: "gemma2",
    norm_offset: 1.0,
    post_norms: true,
    activation: "hidden_activation",
    tied: true,
    scaled_embedding: true,
    scaled_attention: true,
    windows: Windows::AllBut(2),
    ..LLAMA
};

static FAMILY: [Relative; 8] = [
    LLAMA,
    Relative { name: "mistral", biases: Biases::None, windows: Windows::All(Some(4096)), ..LLAMA },
    Relative { name: "qwen2", biases: Biases::Qkv, windows: Windows::Last, ..LLAMA },
    Relative { name: "qwen3", qk_norm: true, windows: Windows::Last, ..LLAMA },
    GEMMA_2,
    Relative { name: "gemma3_text", qk_norm: true, windows: Windows::AllBut(6), base: 1e6, ..GEMMA_2 },
    Relative { name: "phi3", biases: Biases::None, fused: true, windows: Windows::All(None), ..LLAMA },
    Relative { name: "stablelm", norm: NormKind::Layer, biases: Biases::QkvAsked, rotated: 0.25, ..LLAMA },
];

/// The member of the family that a `model_type` of it means.
pub(super) fn relative(model_type: &'static str) -> &'static Relative {
    FAMILY.iter().find(|relative| relative.name == model_type).expect("a member of the family")
}

impl Relative {
    /// The activation where nothing is said.
    pub fn usual_gate(&self) -> Gate {
        if self.activation == "hidden_act" { Gate::Silu } else { Gate::GeluTanh }
    }
}

impl CausalLmOptions {
    /// What a `config.json` of Hugging Face describes.
    ///
    /// ```
    /// use volta::models::CausalLmOptions;
    /// let error = CausalLmOptions::from_config(r#"{"model_type": "mamba"}"#).unwrap_err();
    /// assert!(error.message().contains("model_type"));
    /// ```
    ///
    /// # Errors
    /// A field that is missing, cannot be, or is not understood; the message names it.
    #[track_caller]
    pub fn from_config(json: &str) -> Result<CausalLmOptions> {
        let _call = Call::enter("CausalLmOptions::from_config");
        match serde_json::from_str(json) {
            Ok(value) => CausalLmOptions::from_json(&value),
            Err(error) => bail!(Data, "config.json is no JSON: {error}"),
        }
    }

    pub(in crate::models) fn from_json(config: &Value) -> Result<CausalLmOptions> {
        let f = Fields::of("config.json", config)?;
        let name = f.text("model_type")?;
        let Some(relative) = FAMILY.iter().find(|relative| relative.name == name) else {
            let known: Vec<&str> = FAMILY.iter().map(|relative| relative.name).collect();
            return Err(f.wrong("model_type", &format!("Volta knows {}", known.join(", "))));
        };
        let options = read(&f, relative)?;
        f.finish()?;
        options.check().map_err(|e| e.with_context("config.json"))?;
        Ok(options)
    }
}

fn read(f: &Fields<'_>, relative: &Relative) -> Result<CausalLmOptions> {
    let (width, heads, layers) =
        (f.size("hidden_size")?, f.size("num_attention_heads")?, f.size("num_hidden_layers")?);
    let head_width = match f.size_if("head_dim")? {
        Some(head_width) => head_width,
        None if heads > 0 && width.is_multiple_of(heads) => width / heads,
        None => return Err(f.wrong("hidden_size", &format!("it does not divide into {heads} heads"))),
    };
    let context = f.size("max_position_embeddings")?;
    let (norm_eps, default) = match relative.norm {
        NormKind::Rms => (f.number_if("rms_norm_eps")?, if relative.name == "phi3" { 1e-5 } else { 1e-6 }),
        NormKind::Layer => (f.number_if("layer_norm_eps")?, 1e-5),
    };
    let (qkv_bias, output_bias, mlp_bias) = biases(f, relative)?;
    let (window, windowed) = windows(f, relative, layers)?;
    let (rotary, window_rotary) = rotary(f, relative, (head_width, context))?;
    let scale = |name: &str, default: f64| Ok::<f64, crate::Error>(f.number_if(name)?.unwrap_or(default));
    let softcap = |name: &str| if relative.scaled_attention { f.number_if(name) } else { Ok(None) };
    for name in ["use_parallel_residual", "qk_layernorm", "use_bidirectional_attention", "rope_interleaved"] {
        if f.switch(name)? {
            return Err(f.wrong(name, "Volta has no such model"));
        }
    }
    Ok(CausalLmOptions {
        vocabulary: f.size("vocab_size")?,
        context,
        layers,
        width,
        hidden: f.size("intermediate_size")?,
        heads,
        kv_heads: f.size_if("num_key_value_heads")?.unwrap_or(heads),
        head_width,
        norm: relative.norm,
        norm_eps: norm_eps.unwrap_or(default),
        norm_offset: relative.norm_offset,
        post_norms: relative.post_norms,
        qk_norm: relative.qk_norm,
        gate: gate(f, relative)?,
        qkv_bias,
        output_bias,
        mlp_bias,
        fused: relative.fused,
        tied: f.switch_if("tie_word_embeddings")?.unwrap_or(relative.tied),
        embedding_scale: if relative.scaled_embedding { (width as f64).sqrt() } else { 1.0 },
        attention_scale: match relative.scaled_attention {
            true => Some(1.0 / scale("query_pre_attn_scalar", 256.0)?.sqrt()),
            false => None,
        },
        attention_softcap: softcap("attn_logit_softcapping")?,
        logit_softcap: softcap("final_logit_softcapping")?,
        rotary,
        window_rotary,
        window,
        windowed,
    })
}

fn gate(f: &Fields<'_>, relative: &Relative) -> Result<Gate> {
    // Gemma's files have both fields, and the other one is older than what it computes.
    let other = f.get("hidden_act");
    let name = match f.text_if(relative.activation)? {
        Some(name) => name,
        None if relative.activation == "hidden_act" || other.is_none() => return Ok(relative.usual_gate()),
        None => return Err(f.wrong("hidden_act", "hidden_activation is needed beside it")),
    };
    match name {
        "silu" | "swish" => Ok(Gate::Silu),
        "gelu" => Ok(Gate::Gelu),
        "gelu_pytorch_tanh" | "gelu_new" => Ok(Gate::GeluTanh),
        _ => Err(f.wrong(relative.activation, "Volta knows silu, gelu and gelu_pytorch_tanh")),
    }
}

/// Whether there are biases for queries, keys and values, behind attention, and in feed-forward parts.
fn biases(f: &Fields<'_>, relative: &Relative) -> Result<(bool, bool, bool)> {
    Ok(match relative.biases {
        Biases::None => (false, false, false),
        Biases::Qkv => (true, false, false),
        Biases::QkvAsked => (f.switch("use_qkv_bias")?, false, false),
        Biases::Asked => {
            let attention = f.switch("attention_bias")?;
            (attention, attention, f.switch("mlp_bias")?)
        }
    })
}

/// The window, and which layers have it.
fn windows(f: &Fields<'_>, relative: &Relative, layers: usize) -> Result<(Option<usize>, Vec<bool>)> {
    const MAX_LAYERS: usize = 1 << 16;
    if layers > MAX_LAYERS {
        return Err(f.wrong("num_hidden_layers", &format!("at most {MAX_LAYERS} are read")));
    }
    let given = f.size_if("sliding_window")?;
    let pattern = match f.size_if("sliding_window_pattern")? {
        Some(pattern) => Some(pattern),
        None => f.size_if("_sliding_window_pattern")?,
    };
    let (window, rule): (Option<usize>, Vec<bool>) = match relative.windows {
        Windows::None if given.is_some() => return Err(f.wrong("sliding_window", "this model has none")),
        Windows::None => (None, Vec::new()),
        Windows::All(default) => {
            let window = if f.has("sliding_window") { given } else { default };
            (window, vec![window.is_some(); layers])
        }
        Windows::Last => {
            let from = f.size_if("max_window_layers")?;
            if !f.switch("use_sliding_window")? {
                (None, Vec::new())
            } else {
                let from = from.unwrap_or(layers);
                (given, (0..layers).map(|layer| layer >= from).collect())
            }
        }
        Windows::AllBut(each) => {
            let each = pattern.unwrap_or(each);
            let full = |layer: usize| each > 0 && (layer + 1).is_multiple_of(each);
            (Some(given.unwrap_or(4096)), (0..layers).map(|layer| !full(layer)).collect())
        }
    };
    let Some(types) = f.get("layer_types") else { return Ok((window, rule)) };
    let windowed = types.as_array().map(|types| {
        let each = types.iter().map(|kind| match kind.as_str() {
            Some("full_attention") => Some(false),
            Some("sliding_attention") => Some(true),
            _ => None,
        });
        each.collect::<Option<Vec<bool>>>()
    });
    match windowed.flatten().filter(|all| all.len() == layers) {
        Some(all) if window.is_none() && all.contains(&true) => {
            Err(f.wrong("layer_types", "a layer has a window, and sliding_window has no number"))
        }
        Some(all) => Ok((window, all)),
        None => {
            let what = format!("{layers} times full_attention or sliding_attention is needed");
            Err(f.wrong("layer_types", &what))
        }
    }
}

/// Rotations, and those of layers with a window where they differ.
fn rotary(
    f: &Fields<'_>,
    relative: &Relative,
    (head_width, context): (usize, usize),
) -> Result<(RotaryOptions, Option<RotaryOptions>)> {
    /// The base of Gemma 3's layers with a window.
    const LOCAL_BASE: f64 = 10_000.0;
    let share = f.number_if("partial_rotary_factor")?;
    // Read here, and used by rules that name no other.
    let original = f.number_if("original_max_position_embeddings")?;
    let has_local = relative.name == "gemma3_text";
    let base = f.number_if("rope_theta")?.unwrap_or(relative.base);
    let local = if has_local { f.number_if("rope_local_base_freq")?.unwrap_or(LOCAL_BASE) } else { base };
    let sizes =
        Sizes { head_width, context: context as f64, original, share: share.unwrap_or(relative.rotated) };
    // Since version 5 of transformers all of it is one object, or one for each kind of layer.
    if let Some(rules) = f.inner("rope_parameters")? {
        if f.get("rope_scaling").is_some() {
            return Err(f.wrong("rope_scaling", "rope_parameters is there as well"));
        }
        if !has_local {
            return Ok((scaled(rules, &sizes, base)?, None));
        }
        let of = |name: &str, base| match rules.inner(name)? {
            Some(rule) => scaled(rule, &sizes, base),
            None => Err(rules.wrong(name, "it is needed")),
        };
        let both = (of("full_attention", base)?, Some(of("sliding_attention", local)?));
        rules.finish()?;
        return Ok(both);
    }
    let full = match f.inner("rope_scaling")? {
        Some(rule) => scaled(rule, &sizes, base)?,
        None => RotaryOptions::new(base, sizes.rotated(sizes.share)),
    };
    Ok((full, has_local.then(|| RotaryOptions::new(local, sizes.rotated(sizes.share)))))
}

/// What rules of scaling are about.
struct Sizes {
    head_width: usize,
    context: f64,
    original: Option<f64>,
    share: f64,
}

impl Sizes {
    fn rotated(&self, share: f64) -> usize {
        (self.head_width as f64 * share) as usize
    }
}

/// One rule of scaling.
fn scaled(rule: Fields<'_>, sizes: &Sizes, base: f64) -> Result<RotaryOptions> {
    let base = rule.number_if("rope_theta")?.unwrap_or(base);
    let share = rule.number_if("partial_rotary_factor")?.unwrap_or(sizes.share);
    let name = match (rule.text_if("rope_type")?, rule.text_if("type")?) {
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => "default",
    };
    let original = rule.number_if("original_max_position_embeddings")?.or(sizes.original);
    let scaling = match name {
        "default" => RotaryScaling::None,
        "linear" => RotaryScaling::Linear { factor: rule.number("factor")? },
        "llama3" => RotaryScaling::Llama3 {
            factor: rule.number("factor")?,
            low: rule.number("low_freq_factor")?,
            high: rule.number("high_freq_factor")?,
            context: original.unwrap_or(sizes.context),
        },
        "yarn" => {
            let context = original.unwrap_or(sizes.context);
            let factor = rule.number_if("factor")?.unwrap_or(sizes.context / context);
            let growth = |by: f64| if factor <= 1.0 { 1.0 } else { 0.1 * by * factor.ln() + 1.0 };
            let attention = match (rule.number_if("mscale")?, rule.number_if("mscale_all_dim")?) {
                (Some(a), Some(b)) if a != 0.0 && b != 0.0 => growth(a) / growth(b),
                _ => growth(1.0),
            };
            RotaryScaling::Yarn {
                factor,
                context,
                beta_fast: rule.number_if("beta_fast")?.unwrap_or(32.0),
                beta_slow: rule.number_if("beta_slow")?.unwrap_or(1.0),
                attention: rule.number_if("attention_factor")?.unwrap_or(attention),
                truncate: rule.switch_if("truncate")?.unwrap_or(true),
            }
        }
        _ => {
            let key = if rule.has("rope_type") { "rope_type" } else { "type" };
            return Err(rule.wrong(key, "Volta knows default, linear, llama3 and yarn"));
        }
    };
    rule.finish()?;
    Ok(RotaryOptions { base, width: sizes.rotated(share), scaling })
}
