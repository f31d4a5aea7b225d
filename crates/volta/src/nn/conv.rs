//! Convolutions over images and over sequences.

use super::call::{forward, layer, misuse, on_device};
use super::pair::fmt_pair;
use super::{Module, Pair, Visitor, init};
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::tensor::{ConvOptions, Tensor};

/// `f` of a batch with `rank` axes; an example without the axis of the batch is a batch of one.
pub(super) fn batched(x: &Tensor, rank: usize, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if x.rank() + 1 != rank {
        return f(x);
    }
    f(&x.try_unsqueeze(0)?)?.try_squeeze(0)
}

/// An error unless both numbers of channels divide into groups.
#[track_caller]
pub(super) fn check_groups(name: &'static str, inputs: usize, outputs: usize, groups: usize) -> Result<()> {
    if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
        let message =
            format!("{inputs} input and {outputs} output channels do not divide into {groups} groups");
        return Err(misuse(name, ErrorKind::Argument, message));
    }
    Ok(())
}

/// What every convolution says of itself, after its channels.
pub(super) fn described(kernel: &str, options: &ConvOptions, bias: bool) -> String {
    let ConvOptions { stride, padding, dilation, groups, output_padding } = *options;
    let mut text = format!("kernel {kernel}");
    for (name, value, usual) in [
        ("stride", stride, [1, 1]),
        ("padding", padding, [0, 0]),
        ("dilation", dilation, [1, 1]),
        ("output padding", output_padding, [0, 0]),
    ] {
        if value != usual {
            let value = if value[0] == value[1] { value[0].to_string() } else { fmt_pair(value) };
            text += &format!(", {name} {value}");
        }
    }
    if groups > 1 {
        text += &format!(", {groups} groups");
    }
    if !bias {
        text += ", no bias";
    }
    text
}

/// A convolution over (batch, channels, height, width), or the same without the batch.
///
/// ```
/// use volta::{Conv2d, Module, Tensor};
/// let layer = Conv2d::new(3, 64, 3, 1, 1, true);
/// assert_eq!(layer.forward(&Tensor::zeros([2, 3, 8, 8])).shape()[..], [2, 64, 8, 8]);
/// let wide = Conv2d::new(3, 6, [1, 5], 1, [0, 2], false).with_groups(3);
/// assert_eq!(wide.weight.shape()[..], [6, 1, 1, 5]);
/// ```
pub struct Conv2d {
    /// Outputs × inputs / groups × height × width.
    pub weight: Tensor,
    /// One number an output channel.
    pub bias: Option<Tensor>,
    /// Stride, padding, dilation and groups.
    pub options: ConvOptions,
}

impl Conv2d {
    /// With uniform first values within ±1/√(inputs · height · width). Sizes are one number for both axes, or one each.
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        stride: impl Into<Pair>,
        padding: impl Into<Pair>,
        bias: bool,
    ) -> Conv2d {
        let options =
            ConvOptions { stride: stride.into().0, padding: padding.into().0, ..ConvOptions::default() };
        Conv2d::with_options(inputs, outputs, kernel, options, bias)
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
    ) -> Conv2d {
        on_device(device, || Conv2d::new(inputs, outputs, kernel, stride, padding, bias))
    }

    /// With all options of a convolution.
    #[track_caller]
    pub fn with_options(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        options: ConvOptions,
        bias: bool,
    ) -> Conv2d {
        Conv2d::try_with_options(inputs, outputs, kernel, options, bias).unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        inputs: usize,
        outputs: usize,
        kernel: impl Into<Pair>,
        options: ConvOptions,
        bias: bool,
    ) -> Result<Conv2d> {
        let [height, width] = kernel.into().0;
        check_groups("Conv2d", inputs, outputs, options.groups)?;
        let inputs = inputs / options.groups;
        let fan_in = inputs * height * width;
        let weight = init::by_fan_in([outputs, inputs, height, width], fan_in);
        Ok(Conv2d { weight, bias: bias.then(|| init::by_fan_in([outputs], fan_in)), options })
    }

    /// With the elements of a window this far apart.
    pub fn with_dilation(mut self, dilation: impl Into<Pair>) -> Conv2d {
        self.options.dilation = dilation.into().0;
        self
    }

    /// With blocks of channels that do not see each other; parameters are drawn anew, where they were.
    #[track_caller]
    pub fn with_groups(self, groups: usize) -> Conv2d {
        self.try_with_groups(groups).unwrap_or_else(|e| e.raise())
    }

    /// [`with_groups`](Self::with_groups) that returns its error.
    #[track_caller]
    pub fn try_with_groups(self, groups: usize) -> Result<Conv2d> {
        let shape = self.weight.shape();
        let options = ConvOptions { groups, ..self.options };
        let (inputs, kernel) = (shape[1] * self.options.groups, [shape[2], shape[3]]);
        on_device(self.weight.device(), || {
            Conv2d::try_with_options(inputs, shape[0], kernel, options, self.bias.is_some())
        })
    }
}

impl Module for Conv2d {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || batched(x, 4, |x| x.try_conv2d(&self.weight, self.bias.as_ref(), self.options)))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        let s = self.weight.shape();
        let kernel = described(&fmt_pair([s[2], s[3]]), &self.options, self.bias.is_some());
        format!("{} → {}, {kernel}", s[1] * self.options.groups, s[0])
    }
}

/// A convolution over (batch, channels, length), or the same without the batch.
pub struct Conv1d {
    /// Outputs × inputs / groups × length.
    pub weight: Tensor,
    /// One number an output channel.
    pub bias: Option<Tensor>,
    /// Stride, padding, dilation and groups; the first of each pair counts.
    pub options: ConvOptions,
}

impl Conv1d {
    /// With uniform first values within ±1/√(inputs · length).
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        bias: bool,
    ) -> Conv1d {
        let options = ConvOptions { stride: [stride; 2], padding: [padding; 2], ..ConvOptions::default() };
        Conv1d::with_options(inputs, outputs, kernel, options, bias)
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        bias: bool,
        device: Device,
    ) -> Conv1d {
        on_device(device, || Conv1d::new(inputs, outputs, kernel, stride, padding, bias))
    }

    /// With all options of a convolution.
    #[track_caller]
    pub fn with_options(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        options: ConvOptions,
        bias: bool,
    ) -> Conv1d {
        Conv1d::try_with_options(inputs, outputs, kernel, options, bias).unwrap_or_else(|e| e.raise())
    }

    /// [`with_options`](Self::with_options) that returns its error.
    #[track_caller]
    pub fn try_with_options(
        inputs: usize,
        outputs: usize,
        kernel: usize,
        options: ConvOptions,
        bias: bool,
    ) -> Result<Conv1d> {
        check_groups("Conv1d", inputs, outputs, options.groups)?;
        let inputs = inputs / options.groups;
        let fan_in = inputs * kernel;
        let weight = init::by_fan_in([outputs, inputs, kernel], fan_in);
        Ok(Conv1d { weight, bias: bias.then(|| init::by_fan_in([outputs], fan_in)), options })
    }

    /// With the elements of a window this far apart.
    pub fn with_dilation(mut self, dilation: usize) -> Conv1d {
        self.options.dilation = [dilation; 2];
        self
    }

    /// With blocks of channels that do not see each other; parameters are drawn anew, where they were.
    #[track_caller]
    pub fn with_groups(self, groups: usize) -> Conv1d {
        self.try_with_groups(groups).unwrap_or_else(|e| e.raise())
    }

    /// [`with_groups`](Self::with_groups) that returns its error.
    #[track_caller]
    pub fn try_with_groups(self, groups: usize) -> Result<Conv1d> {
        let shape = self.weight.shape();
        let options = ConvOptions { groups, ..self.options };
        on_device(self.weight.device(), || {
            let inputs = shape[1] * self.options.groups;
            Conv1d::try_with_options(inputs, shape[0], shape[2], options, self.bias.is_some())
        })
    }
}

impl Module for Conv1d {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || batched(x, 3, |x| x.try_conv1d(&self.weight, self.bias.as_ref(), self.options)))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        let s = self.weight.shape();
        let kernel = described(&s[2].to_string(), &self.options, self.bias.is_some());
        format!("{} → {}, {kernel}", s[1] * self.options.groups, s[0])
    }
}
