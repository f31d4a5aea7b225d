//! Normalization by the statistics of a batch, and by their running averages in evaluation.

use super::call::{forward, layer, misuse, on_device};
use super::{Mode, Module, Visitor, init};
use crate::autograd::no_grad;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::tensor::{Tensor, try_realize_all};
use std::sync::atomic::{AtomicU32, Ordering};

/// As many updates of the running averages may wait for a plan. An optimizer's step computes them; a loop that never
/// takes one would let them pile up.
const MAX_WAITING_UPDATES: u32 = 32;

/// Averages of what training has seen.
pub struct RunningStatistics {
    /// The mean of every channel.
    pub mean: Tensor,
    /// The unbiased variance of every channel.
    pub variance: Tensor,
    /// How many batches were seen.
    pub batches: Tensor,
    /// Updates since one was last found computed.
    waiting: AtomicU32,
}

impl RunningStatistics {
    #[track_caller]
    fn new(channels: usize) -> RunningStatistics {
        RunningStatistics {
            mean: Tensor::zeros([channels]).variable(),
            variance: Tensor::ones([channels]).variable(),
            // PyTorch's is i64, which not every GPU has; nobody sees 2³¹ batches.
            batches: Tensor::full_of([0i32; 0], 0, DType::I32).variable(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Weighs in the statistics of a batch with `count` values a channel, all of it where the tensors are; of a batch without
    /// values there are none. Without a momentum the averages are over all batches.
    fn update(&self, mean: &Tensor, variance: &Tensor, count: usize, momentum: Option<f64>) -> Result<()> {
        self.hold_back()?;
        no_grad(|| {
            self.batches.try_assign(&self.batches.try_add(1)?)?;
            if count == 0 {
                return Ok(());
            }
            let unbiased = variance.try_mul(count as f64 / (count - 1) as f64)?;
            for (running, seen) in [(&self.mean, mean), (&self.variance, &unbiased)] {
                let change = seen.detach().try_to_dtype(running.dtype())?.try_sub(running)?;
                let part = match momentum {
                    Some(momentum) => change.try_mul(momentum)?,
                    None => change.try_div(&self.batches.try_to_dtype(running.dtype())?)?,
                };
                running.try_assign(&running.try_add(&part)?)?;
            }
            Ok(())
        })
    }

    fn hold_back(&self) -> Result<()> {
        if self.mean.is_realized() {
            self.waiting.store(0, Ordering::Relaxed);
        } else if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING_UPDATES {
            try_realize_all(&[self.mean.clone(), self.variance.clone(), self.batches.clone()])?;
        }
        Ok(())
    }
}

/// Normalizes every channel (axis 1) by its mean and variance in the batch while training, and by their running
/// averages in evaluation; then scales and shifts it. `SPACE` is the number of axes behind the channels.
///
/// The running averages are updated where they are, in the same plan as the step that trains.
pub struct BatchNorm<const SPACE: usize> {
    /// One factor a channel.
    pub weight: Option<Tensor>,
    /// One number a channel.
    pub bias: Option<Tensor>,
    /// The running averages, if they are kept.
    pub running: Option<RunningStatistics>,
    /// How many channels there are.
    pub channels: usize,
    /// Keeps the divisor from zero.
    pub eps: f64,
    /// How much a batch counts in the running averages; without one they are over all batches.
    pub momentum: Option<f64>,
    /// Whether it trains.
    pub mode: Mode,
}

/// [`BatchNorm`] of (batch, channels) or (batch, channels, length).
pub type BatchNorm1d = BatchNorm<1>;
/// [`BatchNorm`] of (batch, channels, height, width).
pub type BatchNorm2d = BatchNorm<2>;

impl<const SPACE: usize> BatchNorm<SPACE> {
    /// For this many channels, with a momentum of 0.1.
    #[track_caller]
    pub fn new(channels: usize) -> Self {
        BatchNorm {
            weight: Some(init::ones([channels])),
            bias: Some(init::zeros([channels])),
            running: Some(RunningStatistics::new(channels)),
            channels,
            eps: 1e-5,
            momentum: Some(0.1),
            mode: Mode::default(),
        }
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(channels: usize, device: Device) -> Self {
        on_device(device, || Self::new(channels))
    }

    /// With another number that keeps the divisor from zero.
    pub fn with_eps(self, eps: f64) -> Self {
        BatchNorm { eps, ..self }
    }

    /// With another momentum; none averages over all batches.
    pub fn with_momentum(self, momentum: Option<f64>) -> Self {
        BatchNorm { momentum, ..self }
    }

    /// Without scale and shift.
    pub fn without_affine(self) -> Self {
        BatchNorm { weight: None, bias: None, ..self }
    }

    /// Without running averages: the batch counts in evaluation too.
    pub fn without_running_stats(self) -> Self {
        BatchNorm { running: None, ..self }
    }

    /// The name in errors and summaries.
    const NAME: &str = match SPACE {
        1 => "BatchNorm1d",
        2 => "BatchNorm2d",
        _ => "BatchNorm",
    };

    fn check(&self, x: &Tensor) -> Result<()> {
        let shape = x.shape();
        let axes = shape.rank() == SPACE + 2 || (SPACE == 1 && shape.rank() == 2);
        if !axes || shape[1] != self.channels {
            let space = ["", ", length", ", height, width"].get(SPACE).copied().unwrap_or(", …");
            let message =
                format!("the input has shape {shape}, and (batch, {}{space}) is needed", self.channels);
            return Err(misuse(Self::NAME, ErrorKind::Shape, message));
        }
        Ok(())
    }
}

impl<const SPACE: usize> Module for BatchNorm<SPACE> {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        layer(self, || {
            self.check(x)?;
            match &self.running {
                Some(running) if !self.mode.is_training() => {
                    x.try_batch_norm_eval(&running.mean, &running.variance, weight, bias, self.eps)
                }
                running => {
                    let (y, mean, variance) = x.try_batch_norm_train(weight, bias, self.eps)?;
                    if let Some(running) = running {
                        let count = x.shape().without(0b10).numel();
                        running.update(&mean, &variance, count, self.momentum)?;
                    }
                    Ok(y)
                }
            }
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("weight", &self.weight);
        visitor.field("bias", &self.bias);
        if let Some(running) = &self.running {
            visitor.buffer("running_mean", &running.mean);
            visitor.buffer("running_var", &running.variance);
            visitor.buffer("num_batches_tracked", &running.batches);
        }
        visitor.field("mode", &self.mode);
    }

    fn kind(&self) -> &'static str {
        Self::NAME
    }

    fn describe(&self) -> String {
        self.channels.to_string()
    }
}
