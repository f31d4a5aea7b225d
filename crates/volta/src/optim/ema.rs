//! Running averages of parameters, which often do better than the parameters themselves.

use super::rule::follow;
use crate::autograd::no_grad;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::state::{State, Stateful};
use crate::tensor::{Tensor, try_realize_all};

/// A running average of every parameter: `average ← decay·average + (1 − decay)·parameter`.
///
/// ```
/// use volta::{Tensor, optim::Ema};
/// let w = Tensor::vector(&[1.0]).requires_grad(true);
/// let mut ema = Ema::new(vec![w.clone()], 0.5);
/// w.assign(&Tensor::vector(&[3.0]));
/// ema.update(); // after every step
/// ema.swap(); // the parameters are the averages now
/// assert_eq!(w.to_vec::<f32>(), [2.0]);
/// ema.swap();
/// assert_eq!(w.to_vec::<f32>(), [3.0]);
/// ```
pub struct Ema {
    parameters: Vec<Tensor>,
    averages: Vec<Tensor>,
    decay: f64,
    swapped: bool,
}

impl Ema {
    /// Averages that start as the parameters are.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, decay: f64) -> Ema {
        Ema::try_new(parameters, decay).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(parameters: Vec<Tensor>, decay: f64) -> Result<Ema> {
        let _call = Call::enter("Ema");
        if !(0.0..=1.0).contains(&decay) {
            bail!(Argument, "the decay is {decay}, and must lie between 0 and 1");
        }
        let averages = parameters.iter().map(Tensor::variable).collect();
        Ok(Ema { parameters, averages, decay, swapped: false })
    }

    /// Takes in what the parameters are now: once a step.
    #[track_caller]
    pub fn update(&mut self) {
        self.try_update().unwrap_or_else(|e| e.raise());
    }

    /// [`update`](Self::update) that returns its error.
    #[track_caller]
    pub fn try_update(&mut self) -> Result<()> {
        let _call = Call::enter("update");
        if self.swapped {
            bail!(Argument, "the averages stand in for the parameters: swap them back first");
        }
        no_grad(|| {
            for (average, p) in self.averages.iter().zip(&self.parameters) {
                follow(average, p)?;
                let moved = average.in_wide(|average| {
                    average.try_mul(self.decay)?.try_add(&p.cast(average.dtype())?.try_mul(1.0 - self.decay)?)
                })?;
                average.try_assign(&moved)?;
            }
            Ok(())
        })?;
        try_realize_all(&self.averages)
    }

    /// The averages, in the order of the parameters.
    pub fn averages(&self) -> &[Tensor] {
        if self.swapped { &self.parameters } else { &self.averages }
    }

    /// Gives other tensors, such as the parameters of a second network, the values of the averages.
    #[track_caller]
    pub fn copy_to(&self, targets: &[Tensor]) {
        self.try_copy_to(targets).unwrap_or_else(|e| e.raise());
    }

    /// [`copy_to`](Self::copy_to) that returns its error.
    #[track_caller]
    pub fn try_copy_to(&self, targets: &[Tensor]) -> Result<()> {
        let _call = Call::enter("copy_to");
        let averages = self.averages();
        if targets.len() != averages.len() {
            bail!(
                Argument,
                "there are {} averages, and {} tensors to copy them to",
                averages.len(),
                targets.len()
            );
        }
        for (target, average) in targets.iter().zip(averages) {
            target.try_assign(
                &average.detach().try_to_device(target.device())?.try_to_dtype(target.dtype())?,
            )?;
        }
        Ok(())
    }

    /// Exchanges parameters and averages: once before an evaluation and once after it. Nothing is copied.
    #[track_caller]
    pub fn swap(&mut self) {
        self.try_swap().unwrap_or_else(|e| e.raise());
    }

    /// [`swap`](Self::swap) that returns its error.
    #[track_caller]
    pub fn try_swap(&mut self) -> Result<()> {
        let _call = Call::enter("swap");
        for (average, p) in self.averages.iter().zip(&self.parameters) {
            follow(average, p)?;
            let value = p.detach();
            p.try_assign(average)?;
            average.try_assign(&value)?;
        }
        self.swapped = !self.swapped;
        Ok(())
    }
}

impl Stateful for Ema {
    /// `decay`, and the average of parameter 0 as `0`.
    fn state(&self) -> State {
        let state = State::new().with("decay", self.decay);
        self.averages().iter().enumerate().fold(state, |s, (k, t)| s.with_tensor(&k.to_string(), t.clone()))
    }

    #[track_caller]
    fn load_state(&mut self, state: &State) -> Result<()> {
        let _call = Call::enter("load_state");
        if state.tensors.len() != self.averages.len() {
            bail!(
                Data,
                "the saved state has {} averages, and there are {} parameters",
                state.tensors.len(),
                self.averages.len()
            );
        }
        let load = |(k, p): (usize, &Tensor)| -> Result<Tensor> {
            let given = state.tensor(&k.to_string())?;
            if given.shape() != p.shape() {
                bail!(
                    Data,
                    "average {k} was saved with shape {}, and the parameter has {}",
                    given.shape(),
                    p.shape()
                );
            }
            given.detach().try_to_device(p.device())?.try_to_dtype(p.dtype())
        };
        let decay = state.float("decay")?;
        let loaded = self.parameters.iter().enumerate().map(load).collect::<Result<Vec<_>>>()?;
        for (average, value) in self.averages().iter().zip(&loaded) {
            average.try_assign(value)?;
        }
        self.decay = decay;
        Ok(())
    }
}
