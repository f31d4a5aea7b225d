//! Transposed convolutions, which make images larger.

use super::call::{forward, layer, on_device};
use super::conv::{batched, check_groups, described};
use super::pair::fmt_pair;
use super::{Module, Pair, Visitor, init};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::{ConvOptions, Tensor};

/// A transposed convolution over (batch, channels, height, width), or the same without the batch: the gradient of a
/// convolution with respect to its input.
pub struct ConvTranspose2d {
    /// Inputs × outputs / groups × height × width.
    pub weight: Tensor,
    /// One number an output channel.
    pub bias: Option<Tensor>,
    /// Stride, padding, dilation, groups and output padding.
    pub options: ConvOptions,
}

impl ConvTranspose2d {
    /// With uniform first values within ±1/√(outputs · height · width), as PyTorch draws them.
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        stride: impl Into<Pair>,
        padding: impl Into<Pair>,
        bias: bool,
    ) -> ConvTranspose2d {
        let options =
            ConvOptions { stride: stride.into().0, padding: padding.into().0, ..ConvOptions::default() };
        ConvTranspose2d::with_options(inputs, outputs, kernel, options, bias)
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        stride: impl Into<Pair>,
        padding: impl Into<Pair>,
        bias: bool,
        device: Device,
    ) -> ConvTranspose2d {
        on_device(device, || ConvTranspose2d::new(inputs, outputs, kernel, stride, padding, bias))
    }

    /// With all options of a convolution.
    #[track_caller]
    pub fn with_options(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        options: ConvOptions,
        bias: bool,
    ) -> ConvTranspose2d {
        ConvTranspose2d::try_with_options(inputs, outputs, kernel, options, bias)
            .unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        options: ConvOptions,
        bias: bool,
    ) -> Result<ConvTranspose2d> {
        let [height, width] = kernel.into().0;
        check_groups("ConvTranspose2d", inputs, outputs, options.groups)?;
        let each = outputs / options.groups;
        let fan_in = each * height * width;
        let weight = init::by_fan_in([inputs, each, height, width], fan_in);
        Ok(ConvTranspose2d { weight, bias: bias.then(|| init::by_fan_in([outputs], fan_in)), options })
    }

    /// With the elements of a window this far apart.
    pub fn with_dilation(mut self, dilation: impl Into<Pair>) -> ConvTranspose2d {
        self.options.dilation = dilation.into().0;
        self
    }

    /// With elements added at the far ends, to choose among the sizes that a stride allows.
    pub fn with_output_padding(mut self, padding: impl Into<Pair>) -> ConvTranspose2d {
        self.options.output_padding = padding.into().0;
        self
    }

    /// With blocks of channels that do not see each other; parameters are drawn anew, where they were.
    #[track_caller]
    pub fn with_groups(self, groups: usize) -> ConvTranspose2d {
        self.try_with_groups(groups).unwrap_or_else(|e| e.raise())
    }

    /// [`with_groups`](Self::with_groups) that returns its error.
    #[track_caller]
    pub fn try_with_groups(self, groups: usize) -> Result<ConvTranspose2d> {
        let shape = self.weight.shape();
        let options = ConvOptions { groups, ..self.options };
        let (outputs, kernel) = (shape[1] * self.options.groups, [shape[2], shape[3]]);
        on_device(self.weight.device(), || {
            ConvTranspose2d::try_with_options(shape[0], outputs, kernel, options, self.bias.is_some())
        })
    }
}

impl Module for ConvTranspose2d {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref();
        layer(self, || batched(x, 4, |x| x.try_conv_transpose2d(&self.weight, bias, self.options)))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        let s = self.weight.shape();
        let kernel = described(&fmt_pair([s[2], s[3]]), &self.options, self.bias.is_some());
        format!("{} → {}, {kernel}", s[0], s[1] * self.options.groups)
    }
}
