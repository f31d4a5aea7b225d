//! Convolutions.

use super::Tensor;
use super::record::record;
use crate::error::{Result, bail};
use crate::op::{ConvAttrs, ConvKind, NativeOp, Op};
use crate::shape::Shape;
use volta_derive::op;

/// Stride, padding, dilation and groups of a convolution; one number for both axes, or one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// How far the window moves.
    pub stride: [usize; 2],
    /// Zeros added at both ends.
    pub padding: [usize; 2],
    /// How far a window's elements stand apart.
    pub dilation: [usize; 2],
    /// Blocks of channels that do not see each other.
    pub groups: usize,
    /// Elements added at the far end of a transposed convolution.
    pub output_padding: [usize; 2],
}

impl Default for ConvOptions {
    fn default() -> Self {
        ConvOptions { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1, output_padding: [0, 0] }
    }
}

impl ConvOptions {
    fn attrs(&self) -> Result<ConvAttrs> {
        let ConvOptions { stride, padding, dilation, groups, .. } = *self;
        if stride.contains(&0) || dilation.contains(&0) || groups == 0 {
            bail!(
                Argument,
                "stride {stride:?}, dilation {dilation:?} and groups {groups} must be at least 1"
            );
        }
        // Far beyond any image, and products of two of them do not overflow.
        const MAX_EXTENT: usize = 1 << 30;
        if [stride, padding, dilation, [groups, 0]].iter().flatten().any(|&n| n > MAX_EXTENT) {
            bail!(
                Argument,
                "stride {stride:?}, padding {padding:?}, dilation {dilation:?} or groups {groups} is too large"
            );
        }
        Ok(ConvAttrs { stride, padding, dilation, groups })
    }
}

impl Tensor {
    /// One of the three maps of a convolution; `shape` is the result's.
    pub(crate) fn conv_primitive(
        kind: ConvKind,
        a: &Tensor,
        b: &Tensor,
        attrs: ConvAttrs,
        shape: Shape,
    ) -> Result<Tensor> {
        record(Op::Native(NativeOp::Conv(kind, Box::new(attrs))), &[a, b], shape, a.dtype())
    }

    fn check_conv(&self, weight: &Tensor, rank: usize) -> Result<()> {
        let (x, w) = (self.shape(), weight.shape());
        if x.rank() != rank || w.rank() != rank {
            bail!(Shape, "input {x} and weight {w} must both have {rank} axes");
        }
        if self.autocast_operand()?.dtype() != weight.autocast_operand()?.dtype() || !self.dtype().is_float()
        {
            bail!(
                DType,
                "input is {} and weight {}: both must be the same float type",
                self.dtype(),
                weight.dtype()
            );
        }
        Ok(())
    }

    fn with_bias(self, bias: Option<&Tensor>, channels: usize) -> Result<Tensor> {
        let Some(bias) = bias else { return Ok(self) };
        if bias.shape()[..] != [channels] {
            bail!(Shape, "the bias has shape {}, and there are {channels} output channels", bias.shape());
        }
        let mut extents = vec![1; self.rank()];
        extents[1] = channels;
        self.try_add(&bias.autocast_operand()?.reshape_to(Shape::of(&extents))?)
    }
}

impl Tensor {
    /// The convolution of (batch, channels, height, width) with (out, channels / groups, height, width).
    #[op]
    pub fn try_conv2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions) -> Result<Tensor> {
        self.check_conv(weight, 4)?;
        let attrs = options.attrs()?;
        let (x, w) = (self.shape(), weight.shape());
        if x[1] != w[1] * attrs.groups || w[0] % attrs.groups != 0 {
            bail!(
                Shape,
                "input {x} has {} channels, weight {w} with {} groups takes {} and gives {}",
                x[1],
                attrs.groups,
                w[1] * attrs.groups,
                w[0]
            );
        }
        let mut extents = [x[0], w[0], 0, 0];
        for k in 0..2 {
            let (padded, reach) =
                (x[2 + k] + 2 * attrs.padding[k], attrs.dilation[k] * w[2 + k].saturating_sub(1) + 1);
            if w[2 + k] == 0 || reach > padded {
                bail!(
                    Shape,
                    "a kernel of {w} does not fit into input {x} with padding {:?} and dilation {:?}",
                    attrs.padding,
                    attrs.dilation
                );
            }
            extents[2 + k] = (padded - reach) / attrs.stride[k] + 1;
        }
        let (input, weight) = (self.autocast_operand()?, weight.autocast_operand()?);
        let y = Tensor::conv_primitive(ConvKind::Forward, &input, &weight, attrs, Shape::new(&extents)?)?;
        y.with_bias(bias, w[0])
    }

    /// The convolution of (batch, channels, length) with (out, channels / groups, length); the first of each
    /// pair of options counts.
    #[op]
    pub fn try_conv1d(&self, weight: &Tensor, bias: Option<&Tensor>, options: ConvOptions) -> Result<Tensor> {
        self.check_conv(weight, 3)?;
        let flat = ConvOptions {
            stride: [1, options.stride[0]],
            padding: [0, options.padding[0]],
            dilation: [1, options.dilation[0]],
            ..options
        };
        self.try_unsqueeze(2)?.try_conv2d(&weight.try_unsqueeze(2)?, bias, flat)?.try_squeeze(2)
    }

    /// The transposed convolution of (batch, channels, height, width) with (channels, out / groups, height,
    /// width): the gradient of a convolution with respect to its input.
    #[op]
    pub fn try_conv_transpose2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: ConvOptions,
    ) -> Result<Tensor> {
        self.check_conv(weight, 4)?;
        let attrs = options.attrs()?;
        let (x, w) = (self.shape(), weight.shape());
        if x[1] != w[0] || w[0] % attrs.groups != 0 {
            bail!(
                Shape,
                "input {x} has {} channels, weight {w} with {} groups takes {}",
                x[1],
                attrs.groups,
                w[0]
            );
        }
        let channels = w[1] * attrs.groups;
        let mut extents = [x[0], channels, 0, 0];
        for k in 0..2 {
            let extra = options.output_padding[k];
            if extra >= attrs.stride[k].max(attrs.dilation[k]) {
                bail!(
                    Argument,
                    "output padding {:?} must be smaller than stride {:?} or dilation {:?}",
                    options.output_padding,
                    attrs.stride,
                    attrs.dilation
                );
            }
            let full = (x[2 + k].max(1) - 1) * attrs.stride[k]
                + attrs.dilation[k] * w[2 + k].saturating_sub(1)
                + 1
                + extra;
            if x[2 + k] == 0 || w[2 + k] == 0 || full <= 2 * attrs.padding[k] {
                bail!(Shape, "nothing is left of input {x} and weight {w} with padding {:?}", attrs.padding);
            }
            extents[2 + k] = full - 2 * attrs.padding[k];
        }
        let (input, weight) = (self.autocast_operand()?, weight.autocast_operand()?);
        let y = Tensor::conv_primitive(ConvKind::InputGrad, &input, &weight, attrs, Shape::new(&extents)?)?;
        y.with_bias(bias, channels)
    }
}
