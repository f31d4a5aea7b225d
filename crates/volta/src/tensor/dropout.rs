//! Dropout: elements, or whole channels, set to zero at random while training.

use super::Tensor;
use crate::default_device::with_device;
use crate::error::{Result, bail};
use crate::shape::Shape;
use volta_derive::op;

/// True with probability `p`, on the device of `x`.
fn random_mask(x: &Tensor, p: f64, shape: Shape) -> Result<Tensor> {
    with_device(x.device(), || Tensor::try_bernoulli(p, shape))
}

/// Drops what a random mask of `shape`, broadcast to `x`, says.
fn dropped(x: &Tensor, p: f64, train: bool, shape: Shape) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        bail!(Argument, "{p} is not a probability");
    }
    x.check_float()?;
    if !train || p == 0.0 {
        return Ok(x.clone());
    }
    if p == 1.0 {
        return x.try_mul(0.0);
    }
    let kept = random_mask(x, 1.0 - p, shape)?;
    x.in_wide(|x| kept.try_where_(&x.try_mul(1.0 / (1.0 - p))?, 0.0))
}

impl Tensor {
    /// While training, every element is zero with probability `p` and the others grow by 1/(1 − p), so that
    /// the mean stays; otherwise nothing happens.
    #[op]
    pub fn try_dropout(&self, p: f64, train: bool) -> Result<Tensor> {
        dropped(self, p, train, self.shape())
    }

    /// [`dropout`](Self::dropout) of whole channels of (batch, channels, height, width), or of the same
    /// without the batch.
    #[op]
    pub fn try_dropout2d(&self, p: f64, train: bool) -> Result<Tensor> {
        let shape = self.shape();
        if shape.rank() != 3 && shape.rank() != 4 {
            bail!(
                Shape,
                "the input has shape {shape}: (batch, channels, height, width), or the same without the batch, is needed"
            );
        }
        let images = 0b11 << (shape.rank() - 2);
        dropped(self, p, train, shape.keep(images))
    }
}
