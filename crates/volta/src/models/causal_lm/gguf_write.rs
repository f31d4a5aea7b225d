//! A model as a GGUF file: llama.cpp's names, its order of rows, and its keys for what the model looks like.

use super::CausalLm;
use super::gguf::{Architecture, architecture, architecture_for, names, names_in_gguf};
use super::hugging_face::relative;
use super::options::{CausalLmOptions, NormKind};
use super::rotary::{RotaryOptions, RotaryScaling};
use crate::error::{Result, bail};
use crate::io::{Gguf, GgufType, GgufWriter};
use crate::state::StateDict;
use crate::tensor::Tensor;

impl CausalLm {
    /// A file that says what `like` says, with the weights of `state`. Matrices become `kind`, or F16 where their rows are no whole blocks;
    /// everything else is F32.
    pub(in crate::models) fn gguf(
        &self,
        like: &Gguf,
        state: &StateDict,
        kind: GgufType,
    ) -> Result<GgufWriter> {
        let architecture = architecture(like)?;
        let names = names(relative(architecture.model_type));
        let mut writer = GgufWriter::new();
        writer.set_all(like.metadata());
        set_file_type(&mut writer, kind);
        for entry in like.tensors() {
            let Some(name) = names.find(entry.name())?.map(|new| new.name) else {
                writer.copy(like, entry.name(), entry.name())?;
                continue;
            };
            let Some(t) = state.get(&name) else {
                bail!(Argument, "{} has {}, and the model has no {name}", like.label(), entry.name());
            };
            self.add_to(&mut writer, architecture, (&name, entry.name()), t, kind)?;
        }
        Ok(writer)
    }

    /// A file that describes the model, which Hugging Face calls a `model_type`, with the weights of `state`; without a vocabulary.
    ///
    /// # Errors
    /// A model that llama.cpp has no architecture for.
    pub(in crate::models) fn new_gguf(
        &self,
        model_type: &str,
        state: &StateDict,
        kind: GgufType,
    ) -> Result<GgufWriter> {
        let Some(architecture) = architecture_for(model_type) else {
            bail!(Argument, "a model of the type {model_type:?} has no architecture in GGUF files");
        };
        let names = names_in_gguf(relative(architecture.model_type));
        let mut writer = GgufWriter::new();
        describe(&mut writer, architecture, &self.options);
        set_file_type(&mut writer, kind);
        for (name, t) in state.iter() {
            let Some(new) = names.find(name)? else { continue };
            self.add_to(&mut writer, architecture, (name, &new.name), t, kind)?;
        }
        if let RotaryScaling::Llama3 { .. } | RotaryScaling::Factors(_) = self.options.rotary.scaling {
            let plain = RotaryOptions { scaling: RotaryScaling::None, ..self.options.rotary.clone() };
            let (plain, stretched) = (plain.frequencies().0, self.options.rotary.frequencies().0);
            let factors: Vec<f32> = plain.iter().zip(&stretched).map(|(a, b)| a / b).collect();
            let shape = [factors.len()];
            let factors = crate::with_device(crate::Device::Cpu, || Tensor::try_from_vec(factors, shape))?;
            writer.tensor("rope_freqs.weight", &factors, GgufType::F32)?;
        }
        Ok(writer)
    }

    fn add_to(
        &self,
        writer: &mut GgufWriter,
        architecture: &Architecture,
        (name, new): (&str, &str),
        t: &Tensor,
        kind: GgufType,
    ) -> Result<()> {
        let mut t = t.detach().try_to_dtype(crate::DType::F32)?;
        let heads = match name.rsplit('.').nth(1) {
            Some("q_proj") => Some(self.options.heads),
            Some("k_proj") => Some(self.options.kv_heads),
            _ => None,
        };
        if let Some(heads) = heads.filter(|_| architecture.permuted) {
            t = permuted(&t, heads)?;
        }
        if self.options.norm_offset != 0.0 && name.ends_with("norm.weight") {
            t = t.try_add(self.options.norm_offset)?;
        }
        let kind = match t.rank() {
            2 if t.size(1).is_multiple_of(kind.block().0) => kind,
            2 => GgufType::F16,
            _ => GgufType::F32,
        };
        writer.tensor(new, &t, kind)
    }
}

fn set_file_type(writer: &mut GgufWriter, kind: GgufType) {
    if let Some(number) = kind.file_type() {
        writer.set("general.file_type", number);
        writer.set("general.quantization_version", 2u32);
    }
}

/// Rows in llama.cpp's order: the two of a rotation side by side.
fn permuted(t: &Tensor, heads: usize) -> Result<Tensor> {
    let (shape, rows) = (t.shape(), t.size(0));
    let halves = t.try_reshape([heads, 2, rows / heads / 2, t.numel() / rows])?;
    halves.try_transpose(1, 2)?.try_reshape(shape)
}

/// Sets the keys of an architecture.
fn describe(writer: &mut GgufWriter, architecture: &Architecture, o: &CausalLmOptions) {
    writer.set("general.architecture", architecture.name);
    let key = |name: &str| format!("{}.{name}", architecture.name);
    for (name, value) in [
        ("vocab_size", Some(o.vocabulary)),
        ("context_length", Some(o.context)),
        ("embedding_length", Some(o.width)),
        ("block_count", Some(o.layers)),
        ("feed_forward_length", Some(o.hidden)),
        ("attention.head_count", Some(o.heads)),
        ("attention.head_count_kv", Some(o.kv_heads)),
        ("attention.key_length", Some(o.head_width)),
        ("attention.value_length", Some(o.head_width)),
        ("rope.dimension_count", Some(o.rotary.width)),
        ("attention.sliding_window", o.window.filter(|_| (0..o.layers).any(|k| o.window_of(k).is_some()))),
    ] {
        if let Some(value) = value {
            writer.set(key(name), value as u32);
        }
    }
    let eps = match o.norm {
        NormKind::Rms => "attention.layer_norm_rms_epsilon",
        NormKind::Layer => "attention.layer_norm_epsilon",
    };
    for (name, value) in [
        (eps, Some(o.norm_eps)),
        ("rope.freq_base", Some(o.rotary.base)),
        ("rope.freq_base_swa", o.window_rotary.as_ref().map(|rotary| rotary.base)),
        ("attn_logit_softcapping", o.attention_softcap),
        ("final_logit_softcapping", o.logit_softcap),
    ] {
        if let Some(value) = value {
            writer.set(key(name), value as f32);
        }
    }
    let windowed: Vec<bool> = (0..o.layers).map(|k| o.window_of(k).is_some()).collect();
    if windowed.contains(&true) && windowed.contains(&false) {
        writer.set(key("attention.sliding_window_pattern"), windowed);
    }
    match &o.rotary.scaling {
        RotaryScaling::None | RotaryScaling::Llama3 { .. } | RotaryScaling::Factors(_) => {}
        RotaryScaling::Linear { factor } => {
            writer.set(key("rope.scaling.type"), "linear");
            writer.set(key("rope.scaling.factor"), *factor as f32);
        }
        RotaryScaling::Yarn { factor, context, beta_fast, beta_slow, attention, .. } => {
            writer.set(key("rope.scaling.type"), "yarn");
            writer.set(key("rope.scaling.original_context_length"), *context as u32);
            let usual = 1.0 + 0.1 * factor.ln();
            for (name, value) in [
                ("factor", *factor),
                ("yarn_beta_fast", *beta_fast),
                ("yarn_beta_slow", *beta_slow),
                ("attn_factor", attention / usual),
            ] {
                writer.set(key(&format!("rope.scaling.{name}")), value as f32);
            }
        }
    }
}

impl CausalLmOptions {
    /// Whether a model that a file describes computes what this one does, as far as the numbers of files go.
    pub(in crate::models) fn is_described_by(&self, other: &CausalLmOptions) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * a.abs().max(b.abs());
        let alike = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
            (Some(a), Some(b)) => near(*a, *b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let turned = |a: &RotaryOptions, b: &RotaryOptions| {
            let ((a, scale_a), (b, scale_b)) = (a.frequencies(), b.frequencies());
            let pairs = || a.iter().zip(&b);
            near(scale_a, scale_b)
                && a.len() == b.len()
                && pairs().all(|(&a, &b)| near(f64::from(a), f64::from(b)))
        };
        let usual = 1.0 / (self.head_width as f64).sqrt();
        let scale = |o: &CausalLmOptions| o.attention_scale.unwrap_or(usual);
        // Layers with a window turn as the others unless they are said to turn otherwise.
        let near_rotary = |o: &CausalLmOptions| o.window_rotary.clone().unwrap_or_else(|| o.rotary.clone());
        // What is compared above is made the same, so that the rest can be compared at once.
        let rest = |o: &CausalLmOptions| CausalLmOptions {
            norm_eps: 1.0,
            attention_scale: None,
            attention_softcap: None,
            logit_softcap: None,
            embedding_scale: 1.0,
            rotary: RotaryOptions::new(10_000.0, 2),
            window_rotary: None,
            window: None,
            windowed: Vec::new(),
            ..o.clone()
        };
        near(self.norm_eps, other.norm_eps)
            && near(scale(self), scale(other))
            && near(self.embedding_scale, other.embedding_scale)
            && alike(&self.attention_softcap, &other.attention_softcap)
            && alike(&self.logit_softcap, &other.logit_softcap)
            && turned(&self.rotary, &other.rotary)
            && turned(&near_rotary(self), &near_rotary(other))
            && (0..self.layers).all(|k| self.window_of(k) == other.window_of(k))
            && rest(self) == rest(other)
    }
}
