//! A model as a GGUF file: llama.cpp's names and its order of rows.

use super::CausalLm;
use super::gguf::{architecture, names};
use super::hugging_face::relative;
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
        if let Some(number) = kind.file_type() {
            writer.set("general.file_type", number);
            writer.set("general.quantization_version", 2u32);
        }
        for entry in like.tensors() {
            let Some(name) = names.find(entry.name())?.map(|new| new.name) else {
                writer.copy(like, entry.name(), entry.name())?;
                continue;
            };
            let Some(t) = state.get(&name) else {
                bail!(Argument, "{} has {}, and the model has no {name}", like.label(), entry.name());
            };
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
            writer.tensor(entry.name(), &t, kind)?;
        }
        Ok(writer)
    }
}

/// Rows in llama.cpp's order: the two of a rotation side by side.
fn permuted(t: &Tensor, heads: usize) -> Result<Tensor> {
    let (shape, rows) = (t.shape(), t.size(0));
    let halves = t.try_reshape([heads, 2, rows / heads / 2, t.numel() / rows])?;
    halves.try_transpose(1, 2)?.try_reshape(shape)
}
