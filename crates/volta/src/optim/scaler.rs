//! Loss scaling for f16: small gradients would vanish in half precision, so the loss is made large and the gradients
//! small again before they are used.

use super::Optimizer;
use super::multi_tensor_sum::sum_of_all;
use crate::autograd::no_grad;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::state::{State, Stateful};
use crate::tensor::Tensor;
use std::sync::atomic::{AtomicBool, Ordering};

/// Scales losses, and skips the steps whose gradients overflowed, as PyTorch's scaler does. The scale, the check and
/// the decision live on the device: nothing is read back.
///
/// ```
/// use volta::{Adam, DType, GradScaler, Tensor, autocast, mse_loss};
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
///
/// Several optimizers may share a scaler. Their steps are a round until a loss is scaled again or one of them steps again:
/// all of them unscale by the scale that the round began with, and count as one step, which is good if it is for each.
pub struct GradScaler {
    scale: Tensor,
    /// Steps since the scale changed.
    steps: Tensor,
    /// Which optimizers' gradients are unscaled already, by their first parameter, and whether all of them are finite.
    unscaled: Vec<(usize, Option<Tensor>)>,
    /// The steps that were made since the scale was used last.
    round: Option<Round>,
    /// Whether a loss was scaled since the last step.
    is_in_use: AtomicBool,
    growth: f64,
    backoff: f64,
    interval: f64,
}

/// What steps have in common whose gradients were made with one scale.
struct Round {
    /// The scale and the number of steps it began with.
    scale: Tensor,
    steps: Tensor,
    /// Whether all gradients were finite.
    finite: Tensor,
    /// Which optimizers have stepped.
    stepped: Vec<usize>,
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
        let (interval, unscaled, is_in_use) = (f64::from(interval), Vec::new(), AtomicBool::new(false));
        GradScaler { scale, steps, unscaled, round: None, is_in_use, growth, backoff, interval }
    }

    /// The loss to call `backward` on.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Tensor {
        self.try_scale(loss).unwrap_or_else(|e| e.raise())
    }

    /// [`scale`](Self::scale) that returns its error.
    #[track_caller]
    pub fn try_scale(&self, loss: &Tensor) -> Result<Tensor> {
        self.is_in_use.store(true, Ordering::Relaxed);
        loss.widened()?.try_mul(&self.scale.try_to_device(loss.device())?)
    }

    /// What losses are multiplied by that are about to be differentiated, where it lies now.
    pub(crate) fn scale_in_use(&self) -> &Tensor {
        self.is_in_use.store(true, Ordering::Relaxed);
        &self.scale
    }

    /// What the gradients of the step under way are divided by.
    pub(crate) fn scale_of_step(&self) -> &Tensor {
        &self.scale
    }

    /// The scale now; reading it waits for the device.
    pub fn current(&self) -> f32 {
        self.scale.item()
    }

    /// [`current`](Self::current) as a future: the only way in a browser.
    pub fn current_async(&self) -> impl Future<Output = Result<f32>> + use<> {
        self.scale.item_async()
    }

    /// Makes the gradients small again before the step, so that they can be clipped: once a step.
    ///
    /// ```
    /// use volta::{GradScaler, SGD, Tensor, optim::clip_grad_norm};
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
        let (who, parameters) = (identity(optimizer), optimizer.parameters());
        if self.unscaled.iter().any(|(known, _)| *known == who) {
            bail!(
                Argument,
                "the gradients of this optimizer are unscaled already, and it has not stepped since"
            );
        }
        self.leave_round_before(who);
        let finite = no_grad(|| self.unscale_all(parameters))?;
        self.unscaled.push((who, finite));
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
        let who = identity(optimizer);
        self.leave_round_before(who);
        let known = self.unscaled.iter().position(|(known, _)| *known == who);
        let finite = match known {
            Some(place) => self.unscaled.remove(place).1,
            None => no_grad(|| self.unscale_all(optimizer.parameters()))?,
        };
        let Some(finite) = finite else { return optimizer.try_step() };
        no_grad(|| self.adapt(who, &finite))?;
        optimizer.try_step_if(Some(&finite))
    }

    /// Whether all gradients of an optimizer are finite, once they are [unscaled](Self::unscale) and until it steps: it will
    /// skip its step if they are not.
    pub(crate) fn finite(&self, optimizer: &dyn Optimizer) -> Option<&Tensor> {
        let who = identity(optimizer);
        self.unscaled.iter().find(|(known, _)| *known == who).and_then(|(_, finite)| finite.as_ref())
    }

    /// A round is over when a loss was scaled behind its steps, or the optimizer has made one of them.
    fn leave_round_before(&mut self, optimizer: usize) {
        let is_in_use = self.is_in_use.load(Ordering::Relaxed);
        self.round.take_if(|round| is_in_use || round.stepped.contains(&optimizer));
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
        let scale = match &self.round {
            Some(round) => round.scale.try_to_device(self.scale.device())?,
            None => self.scale.clone(),
        };
        let inverse = scale.try_recip()?;
        let mut traces = Vec::new();
        for p in parameters {
            let Some(g) = p.grad() else { continue };
            // Zero times anything finite is zero, of anything else NaN.
            traces.push(g.try_mul(0.0)?);
            p.set_grad(Some(g.widened()?.try_mul(&inverse)?));
        }
        sum_of_all(&traces)?.map(|total| total.try_eq(0.0)).transpose()
    }

    /// The round with one more step, or a new one.
    fn round_with(&self, optimizer: usize, finite: &Tensor) -> Result<Round> {
        let to = |t: &Tensor| t.try_to_device(self.scale.device());
        let (scale, steps) = (self.scale.detach(), self.steps.detach());
        let mut round = match &self.round {
            None => Round { scale, steps, finite: to(finite)?, stepped: Vec::new() },
            Some(round) => Round {
                scale: to(&round.scale)?,
                steps: to(&round.steps)?,
                finite: to(&round.finite)?.try_logical_and(&to(finite)?)?,
                stepped: round.stepped.clone(),
            },
        };
        round.stepped.push(optimizer);
        Ok(round)
    }

    /// Makes of what the round began with what follows from all its steps, of which this is the last.
    fn adapt(&mut self, optimizer: usize, finite: &Tensor) -> Result<()> {
        let round = self.round_with(optimizer, finite)?;
        let steps = round.steps.try_add(1.0)?;
        let due = steps.try_ge(self.interval)?;
        let grown = round.scale.try_mul(self.growth)?;
        let grows = due.try_logical_and(&grown.try_lt(f64::INFINITY)?)?;
        let larger = grows.try_where_(&grown, &round.scale)?;
        let scale = round.finite.try_where_(&larger, &round.scale.try_mul(self.backoff)?)?;
        let go_on = round.finite.try_logical_and(&due.try_logical_not()?)?;
        self.steps.try_assign(&go_on.try_where_(&steps, 0.0)?)?;
        self.scale.try_assign(&scale)?;
        self.round = Some(round);
        self.is_in_use.store(false, Ordering::Relaxed);
        Ok(())
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
        self.round = None;
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
