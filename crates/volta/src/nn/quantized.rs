//! x·Wᵀ + b with a weight of 4 or 8 bits.

use super::call::{forward, layer};
use super::{Module, Visitor};
use crate::error::Result;
use crate::tensor::{QuantizedMatrix, Tensor};

/// A fully connected layer whose weight is quantised and not trained: gradients flow to what it is given, and to the bias.
/// [`Linear::quantize`](crate::Linear::quantize) makes one.
///
/// ```
/// use volta::{BlockFormat, Linear, Module, Tensor};
///
/// let small = Linear::new(64, 10, true).quantize(BlockFormat::Int4)?;
/// assert_eq!(small.forward(&Tensor::randn([2, 64])).shape()[..], [2, 10]);
/// assert_eq!(small.weight.bytes(), 10 * 64 / 2 + 10 * 2 * 2);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct QuantizedLinear {
    /// Outputs × inputs.
    pub weight: QuantizedMatrix,
    /// One number an output.
    pub bias: Option<Tensor>,
}

impl Module for QuantizedLinear {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_quantized_linear(&self.weight, self.bias.as_ref()))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.buffer_field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        let (w, bias) = (&self.weight, if self.bias.is_some() { "" } else { ", no bias" });
        format!("{} → {}, {}{bias}", w.columns(), w.rows(), w.format().name())
    }
}
