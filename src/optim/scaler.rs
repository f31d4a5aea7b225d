//! Loss scaling for f16: small gradients would vanish in half precision, so the loss is made large and the gradients
//! small again before they are used.

use super::Optimizer;
use super::total::sum_of_all;
use crate::autograd::no_grad;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::state::{State, Stateful};
use crate::tensor::Tensor;

/// Scales losses, and skips the steps whose gradients overflowed, as PyTorch's scaler does. The scale, the check and
/// the decision live on the device: nothing is read back.
///
/// ```
/// use volta::{Adam, DType, GradScaler, Optimizer, Tensor, autocast, mse_loss};
/// let w = Tensor::ones([1, 3]).requires_grad(true);
/// let (x, y) = (Tensor::rand([8, 3]), Tensor::rand([8, 1]));
/// let mut adam = Adam::new(vec![w.clone()], 0.01, (0.9, 0.999), 1e-8, 0.0);
/// let mut scaler = GradScaler::new();
/// for _ in 0..3 {
///     adam.zero_grad();
///     let loss = autocast(DType::F16, || mse_loss(&x.linear(&w, None).to_dtype(DType::F32), &y));
///     scaler.scale(&loss).backward();
///     scaler.step(&mut adam);
/// }
/// ```
pub struct GradScaler {
    scale: Tensor,
    /// Steps since the scale changed.
    steps: Tensor,
    /// Which optimizers' gradients are unscaled already, by their first parameter, and whether all of them are finite.
    unscaled: Vec<(usize, Option<Tensor>)>,
    growth: f64,
    backoff: f64,
    interval: f64,
}

impl Default for GradScaler {
    fn default() -> Self {
        GradScaler::new()
    }
}

impl GradScaler {
    /// PyTorch's defaults: a scale of 65536 that doubles after 2000 good steps and halves after a bad one.
    pub fn new() -> GradScaler {
        GradScaler::with(65536.0, 2.0, 0.5, 2000)
    }

    /// With a first scale, what it is multiplied by after `interval` good steps, and after a bad one.
    pub fn with(scale: f64, growth: f64, backoff: f64, interval: u32) -> GradScaler {
        let (scale, steps) = (Tensor::scalar(scale), Tensor::scalar(0.0));
        let (interval, unscaled) = (f64::from(interval), Vec::new());
        GradScaler { scale, steps, unscaled, growth, backoff, interval }
    }

    /// The loss to call `backward` on.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Tensor {
        loss * &self.scale.to_device(loss.device())
    }

    /// The scale now; reading it waits for the device.
    pub fn current(&self) -> f32 {
        self.scale.item()
    }

    /// Makes the gradients small again before the step, so that they can be clipped: once a step. With several
    /// optimizers, unscale all of them before the first one steps and the scale changes.
    ///
    /// ```
    /// use volta::{GradScaler, Optimizer, SGD, Tensor, optim::clip_grad_norm};
    /// let w = Tensor::ones([3]).requires_grad(true);
    /// let (mut sgd, mut scaler) = (SGD::new(vec![w.clone()], 0.1, 0.0, 0.0), GradScaler::new());
    /// scaler.scale(&w.square().sum()).backward();
    /// scaler.unscale(&sgd);
    /// clip_grad_norm(sgd.parameters(), 1.0);
    /// scaler.step(&mut sgd);
    /// ```
    #[track_caller]
    pub fn unscale(&mut self, optimizer: &dyn Optimizer) {
        self.try_unscale(optimizer).unwrap_or_else(|e| e.raise());
    }

    /// [`unscale`](Self::unscale) that returns its error.
    #[track_caller]
    pub fn try_unscale(&mut self, optimizer: &dyn Optimizer) -> Result<()> {
        let _call = Call::enter("unscale");
        let optimizer = (identity(optimizer), optimizer.parameters());
        if self.unscaled.iter().any(|(known, _)| *known == optimizer.0) {
            bail!(
                Argument,
                "the gradients of this optimizer are unscaled already, and it has not stepped since"
            );
        }
        let finite = no_grad(|| self.unscale_all(optimizer.1))?;
        self.unscaled.push((optimizer.0, finite));
        Ok(())
    }

    /// Makes the gradients small again, if [`unscale`](Self::unscale) has not, and steps, unless one of them is not
    /// finite; then adapts the scale.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        self.try_step(optimizer).unwrap_or_else(|e| e.raise());
    }

    /// [`step`](Self::step) that returns its error.
    #[track_caller]
    pub fn try_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let _call = Call::enter("step");
        let known = self.unscaled.iter().position(|(known, _)| *known == identity(optimizer));
        let finite = match known {
            Some(place) => self.unscaled.remove(place).1,
            None => no_grad(|| self.unscale_all(optimizer.parameters()))?,
        };
        let Some(finite) = finite else { return optimizer.try_step() };
        no_grad(|| self.adapt(&finite))?;
        optimizer.try_step_if(Some(&finite))
    }

    /// Brings the scale to where the gradients are: from then on no step waits for another device.
    fn follow(&self, parameters: &[Tensor]) -> Result<()> {
        let Some(device) = parameters.iter().find(|p| p.grad().is_some()).map(Tensor::device) else {
            return Ok(());
        };
        let mut away = [&self.scale, &self.steps].into_iter().filter(|t| t.device() != device);
        away.try_for_each(|t| t.try_move(device, t.dtype()))
    }

    /// Divides the gradients by the scale; whether all of them are finite, if there are any.
    fn unscale_all(&self, parameters: &[Tensor]) -> Result<Option<Tensor>> {
        self.follow(parameters)?;
        let inverse = self.scale.try_recip()?;
        let mut traces = Vec::new();
        for p in parameters {
            let Some(g) = p.grad() else { continue };
            // Zero times anything finite is zero, of anything else NaN.
            traces.push(g.try_mul(0.0)?);
            p.set_grad(Some(g.try_mul(&inverse)?));
        }
        sum_of_all(&traces)?.map(|total| total.try_eq(0.0)).transpose()
    }

    fn adapt(&self, finite: &Tensor) -> Result<()> {
        let steps = self.steps.try_add(1.0)?;
        let due = steps.try_ge(self.interval)?;
        let larger = due.try_where_(&self.scale.try_mul(self.growth)?, &self.scale)?;
        let scale = finite.try_where_(&larger, &self.scale.try_mul(self.backoff)?)?;
        let go_on = finite.try_logical_and(&due.try_logical_not()?)?;
        self.steps.try_assign(&go_on.try_where_(&steps, 0.0)?)?;
        self.scale.try_assign(&scale)
    }
}

/// What tells an optimizer from others, wherever it stands in memory.
fn identity(optimizer: &dyn Optimizer) -> usize {
    optimizer.parameters().first().map_or(0, Tensor::address)
}

impl Stateful for GradScaler {
    fn state(&self) -> State {
        let numbers = [("growth", self.growth), ("backoff", self.backoff), ("interval", self.interval)];
        let state =
            State::new().with_tensor("scale", self.scale.clone()).with_tensor("steps", self.steps.clone());
        numbers.into_iter().fold(state, |state, (name, x)| state.with(name, x))
    }

    #[track_caller]
    fn load_state(&mut self, state: &State) -> Result<()> {
        let _call = Call::enter("load_state");
        let tensor = |name: &str, own: &Tensor| -> Result<Tensor> {
            let given = state.tensor(name)?.detach();
            if given.numel() != 1 {
                bail!(Data, "{name:?} of the saved state is one number, and has shape {}", given.shape());
            }
            given.try_reshape(own.shape())?.try_to_device(own.device())?.try_to_dtype(own.dtype())
        };
        let (scale, steps) = (tensor("scale", &self.scale)?, tensor("steps", &self.steps)?);
        let (growth, backoff) = (state.float("growth")?, state.float("backoff")?);
        self.interval = state.float("interval")?;
        (self.growth, self.backoff) = (growth, backoff);
        self.scale.try_assign(&scale)?;
        self.steps.try_assign(&steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SGD;

    #[test]
    fn an_overflow_skips_the_step_and_halves_the_scale() {
        let w = Tensor::vector(&[1.0]).requires_grad(true);
        let mut sgd = SGD::new(vec![w.clone()], 0.5, 0.5, 0.0);
        let mut scaler = GradScaler::with(8.0, 2.0, 0.5, 2);
        let mut step = |factor: f32| {
            sgd.zero_grad();
            scaler.scale(&w.mul(factor).sum()).backward();
            scaler.step(&mut sgd);
            (w.item::<f32>(), scaler.current())
        };
        assert_eq!(step(f32::MAX), (1.0, 4.0));
        assert_eq!(step(1.0), (0.5, 4.0), "the velocity starts with the first good step");
        assert_eq!(step(0.0), (0.25, 8.0), "two good steps double the scale");
    }
}
