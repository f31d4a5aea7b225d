//! Two optimizers as one, for parameters that want different ones.

use super::Optimizer;
use crate::error::{Result, bail};
use crate::state::{State, Stateful};
use crate::tensor::Tensor;

/// Two optimizers that step together, such as Muon for matrices and AdamW for the rest.
pub struct Chained {
    first: Box<dyn Optimizer>,
    second: Box<dyn Optimizer>,
    parameters: Vec<Tensor>,
}

impl Chained {
    /// The groups of `first`, then those of `second`.
    pub fn new(first: Box<dyn Optimizer>, second: Box<dyn Optimizer>) -> Chained {
        let parameters = first.parameters().iter().chain(second.parameters()).cloned().collect();
        Chained { first, second, parameters }
    }
}

impl Optimizer for Chained {
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    #[track_caller]
    fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()> {
        self.first.try_step_if(condition)?;
        self.second.try_step_if(condition)
    }

    fn is_elementwise(&self) -> bool {
        self.first.is_elementwise() && self.second.is_elementwise()
    }

    fn parameter_of_state(&self, name: &str) -> Option<usize> {
        match name.split_once('.')? {
            ("first", name) => self.first.parameter_of_state(name),
            ("second", name) => {
                self.second.parameter_of_state(name).map(|k| self.first.parameters().len() + k)
            }
            _ => None,
        }
    }

    fn learning_rates(&self) -> Vec<f64> {
        [self.first.learning_rates(), self.second.learning_rates()].concat()
    }

    fn set_learning_rates(&mut self, rates: &[f64]) {
        let (first, second) = rates.split_at(self.first.learning_rates().len().min(rates.len()));
        self.first.set_learning_rates(first);
        self.second.set_learning_rates(second);
    }
}

impl Stateful for Chained {
    fn state(&self) -> State {
        State::new().with_part("first", &self.first.state()).with_part("second", &self.second.state())
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let before = self.first.state();
        self.first.load_state(&state.part("first"))?;
        if let Err(error) = self.second.load_state(&state.part("second")) {
            if self.first.load_state(&before).is_err() {
                bail!(Data, "{} (and the first optimizer could not be put back)", error.message());
            }
            return Err(error);
        }
        Ok(())
    }
}
