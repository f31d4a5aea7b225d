//! A model's matrices: floats, or blocks of 4 or 8 bits that are decoded where they are read.

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::nn::{Field, Module, Visitor, layer};
use crate::op::quantized::BlockFormat;
use crate::tensor::{QuantizedMatrix, Tensor};

/// What a model's matrices are in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightStorage {
    /// As the file has them, if products decode it: Q8_0, Q4_0 and Q4_1 of a GGUF file. Everything else is f32. It is what generating
    /// wants, and adapters; such matrices are not trained themselves.
    #[default]
    AsStored,
    /// f32: all of the model can be trained.
    Floats,
    /// The products of the layers are rounded to blocks, if their rows are whole blocks of 32. The table of tokens and the head are as
    /// stored.
    Blocks(BlockFormat),
}

impl WeightStorage {
    /// The format that a layer's matrix of floats is rounded to, if it is.
    pub(in crate::models) fn format_of(self, shape: &[usize]) -> Option<BlockFormat> {
        match self {
            WeightStorage::Blocks(format) => {
                matches!(shape, [rows, columns] if *rows > 0 && *columns > 0 && columns.is_multiple_of(BLOCK))
                    .then_some(format)
            }
            _ => None,
        }
    }
}

/// How many weights share a scale.
const BLOCK: usize = 32;

/// Outputs × inputs, or tokens × width.
pub(in crate::models) enum Weight {
    Floats(Tensor),
    Blocks(QuantizedMatrix),
}

impl Weight {
    pub fn rows(&self) -> usize {
        match self {
            Weight::Floats(t) => t.size(0),
            Weight::Blocks(matrix) => matrix.rows(),
        }
    }

    pub fn columns(&self) -> usize {
        match self {
            Weight::Floats(t) => t.size(1),
            Weight::Blocks(matrix) => matrix.columns(),
        }
    }

    /// What products and rows of it are.
    pub fn dtype(&self) -> DType {
        match self {
            Weight::Floats(t) => t.dtype(),
            Weight::Blocks(_) => DType::F32,
        }
    }

    pub fn device(&self) -> Device {
        match self {
            Weight::Floats(t) => t.device(),
            Weight::Blocks(matrix) => matrix.device(),
        }
    }

    /// All of it as floats. Of blocks this is a copy that lives as long as it is used.
    pub fn floats(&self) -> Result<Tensor> {
        match self {
            Weight::Floats(t) => Ok(t.clone()),
            Weight::Blocks(matrix) => matrix.try_dequantize(),
        }
    }

    /// x · weightᵀ + bias.
    pub fn linear(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        match self {
            Weight::Floats(t) => x.try_linear(t, bias),
            Weight::Blocks(matrix) => x.try_quantized_linear(matrix, bias),
        }
    }

    /// The rows that integers name.
    fn rows_of(&self, index: &Tensor) -> Result<Tensor> {
        match self {
            Weight::Floats(t) => t.try_embedding(index),
            Weight::Blocks(matrix) => matrix.try_embedding(index),
        }
    }

    /// What a description of the layer says of it.
    pub fn note(&self) -> String {
        match self {
            Weight::Floats(_) => String::new(),
            Weight::Blocks(matrix) => format!(", {}", matrix.format().name()),
        }
    }
}

impl Field for Weight {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        match self {
            Weight::Floats(t) => visitor.field(name, t),
            Weight::Blocks(matrix) => visitor.buffer_field(name, matrix),
        }
    }
}

/// The table of tokens.
pub(in crate::models) struct Table {
    /// Tokens × width.
    pub weight: Weight,
}

impl Module for Table {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || self.weight.rows_of(x))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
    }

    fn kind(&self) -> &'static str {
        "Embedding"
    }

    fn describe(&self) -> String {
        format!("{} × {}{}", self.weight.rows(), self.weight.columns(), self.weight.note())
    }
}
