//! Normalization of each example by itself: over its last axes, or over groups of channels.

use super::call::{forward, layer, misuse, on_device};
use super::{Module, Visitor, init};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::{Dims, Shape};
use crate::tensor::Tensor;

/// The extents of the axes that are normalized.
#[track_caller]
fn extents(name: &'static str, shape: impl Into<Dims>) -> Shape {
    let shape = shape.into();
    shape
        .extents()
        .map_err(|e| misuse(name, ErrorKind::Shape, e.message()))
        .unwrap_or_else(|e: Error| e.raise())
}

/// Normalizes over the last axes, then scales and shifts.
pub struct LayerNorm {
    /// One factor an element.
    pub weight: Option<Tensor>,
    /// One number an element.
    pub bias: Option<Tensor>,
    /// The extents of the axes that are normalized.
    pub shape: Shape,
    /// Keeps the divisor from zero.
    pub eps: f64,
}

impl LayerNorm {
    /// Over the last axes, whose extents are `shape`; one number stands for the last axis.
    #[track_caller]
    pub fn new(shape: impl Into<Dims>) -> LayerNorm {
        let shape = extents("LayerNorm", shape);
        LayerNorm { weight: Some(init::ones(shape)), bias: Some(init::zeros(shape)), shape, eps: 1e-5 }
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(shape: impl Into<Dims>, device: Device) -> LayerNorm {
        on_device(device, || LayerNorm::new(shape))
    }

    /// With another number that keeps the divisor from zero.
    pub fn with_eps(self, eps: f64) -> LayerNorm {
        LayerNorm { eps, ..self }
    }

    /// Without a shift.
    pub fn without_bias(self) -> LayerNorm {
        LayerNorm { bias: None, ..self }
    }

    /// Without scale and shift.
    pub fn without_affine(self) -> LayerNorm {
        LayerNorm { weight: None, bias: None, ..self }
    }
}

impl Module for LayerNorm {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_layer_norm(self.shape, self.weight.as_ref(), self.bias.as_ref(), self.eps))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        self.shape.to_string()
    }
}

/// Divides by the root of the mean square over the last axes, then scales.
pub struct RMSNorm {
    /// One factor an element.
    pub weight: Option<Tensor>,
    /// The extents of the axes that are normalized.
    pub shape: Shape,
    /// Keeps the divisor from zero; without one it is the input type's smallest step at 1.
    pub eps: Option<f64>,
}

impl RMSNorm {
    /// Over the last axes, whose extents are `shape`; one number stands for the last axis.
    #[track_caller]
    pub fn new(shape: impl Into<Dims>) -> RMSNorm {
        let shape = extents("RMSNorm", shape);
        RMSNorm { weight: Some(init::ones(shape)), shape, eps: None }
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(shape: impl Into<Dims>, device: Device) -> RMSNorm {
        on_device(device, || RMSNorm::new(shape))
    }

    /// With a number of choice that keeps the divisor from zero.
    pub fn with_eps(self, eps: f64) -> RMSNorm {
        RMSNorm { eps: Some(eps), ..self }
    }

    /// Without a scale.
    pub fn without_affine(self) -> RMSNorm {
        RMSNorm { weight: None, ..self }
    }
}

/// The distance from 1 to the next number of a type.
fn smallest_step(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => half::f16::EPSILON.to_f64(),
        DType::BF16 => half::bf16::EPSILON.to_f64(),
        _ => f64::from(f32::EPSILON),
    }
}

impl Module for RMSNorm {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let eps = self.eps.unwrap_or_else(|| smallest_step(x.dtype()));
        layer(self, || x.try_rms_norm(self.shape, self.weight.as_ref(), eps))
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
    }

    fn describe(&self) -> String {
        self.shape.to_string()
    }
}

/// Normalizes every block of channels (axis 1) of every example, then scales and shifts each channel.
pub struct GroupNorm {
    /// One factor a channel.
    pub weight: Option<Tensor>,
    /// One number a channel.
    pub bias: Option<Tensor>,
    /// How many blocks there are.
    pub groups: usize,
    /// How many channels there are.
    pub channels: usize,
    /// Keeps the divisor from zero.
    pub eps: f64,
}

impl GroupNorm {
    /// `channels` in `groups` blocks.
    #[track_caller]
    pub fn new(groups: usize, channels: usize) -> GroupNorm {
        GroupNorm::try_new(groups, channels).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(groups: usize, channels: usize) -> Result<GroupNorm> {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let message = format!("{channels} channels do not divide into {groups} groups");
            return Err(misuse("GroupNorm", ErrorKind::Argument, message));
        }
        let (weight, bias) = (Some(init::ones([channels])), Some(init::zeros([channels])));
        Ok(GroupNorm { weight, bias, groups, channels, eps: 1e-5 })
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(groups: usize, channels: usize, device: Device) -> GroupNorm {
        on_device(device, || GroupNorm::try_new(groups, channels)).unwrap_or_else(|e| e.raise())
    }

    /// With another number that keeps the divisor from zero.
    pub fn with_eps(self, eps: f64) -> GroupNorm {
        GroupNorm { eps, ..self }
    }

    /// Without scale and shift.
    pub fn without_affine(self) -> GroupNorm {
        GroupNorm { weight: None, bias: None, ..self }
    }
}

impl Module for GroupNorm {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            if x.rank() > 1 && x.size(1) != self.channels {
                let message =
                    format!("the input has shape {}, and {} channels are needed", x.shape(), self.channels);
                return Err(misuse("group_norm", ErrorKind::Shape, message));
            }
            x.try_group_norm(self.groups, self.weight.as_ref(), self.bias.as_ref(), self.eps)
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
    }

    fn describe(&self) -> String {
        format!("{} channels in {} groups", self.channels, self.groups)
    }
}
