//! Stochastic gradient descent.

use super::{Optimizer, assign_if, update_all};
use crate::error::Result;
use crate::tensor::Tensor;

/// Gradient descent with momentum and weight decay, as PyTorch has it.
pub struct SGD {
    parameters: Vec<Tensor>,
    velocity: Vec<Option<Tensor>>,
    learning_rate: f64,
    momentum: f64,
    weight_decay: f64,
}

impl SGD {
    /// With a learning rate, momentum and weight decay (0 for none).
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64, weight_decay: f64) -> SGD {
        let velocity = vec![None; parameters.len()];
        SGD { parameters, velocity, learning_rate, momentum, weight_decay }
    }

    /// The learning rate of the next steps.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }
}

impl Optimizer for SGD {
    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    #[track_caller]
    fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()> {
        let (velocity, parameters) = (&mut self.velocity, &self.parameters);
        update_all(parameters, |k, p, g| {
            let mut g = g.clone();
            if self.weight_decay != 0.0 {
                g = g.try_add(&p.try_mul(self.weight_decay)?)?;
            }
            if self.momentum != 0.0 {
                g = match &velocity[k] {
                    Some(v) => {
                        let next = v.try_mul(self.momentum)?.try_add(&g)?;
                        assign_if(v, &next, condition)?;
                        next
                    }
                    None => {
                        // What is skipped leaves no velocity behind.
                        let first = match condition {
                            Some(condition) => condition.try_where_(&g, 0.0)?,
                            None => g.clone(),
                        };
                        velocity[k] = Some(first.variable());
                        g
                    }
                };
            }
            assign_if(&parameters[k], &p.try_sub(&g.try_mul(self.learning_rate)?)?, condition)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_steps_agree_with_the_formula() {
        for (momentum, decay) in [(0.0, 0.0), (0.9, 0.0), (0.9, 0.01)] {
            let p = Tensor::vector(&[1.0]).to_dtype(crate::DType::F64).requires_grad(true);
            let mut sgd = SGD::new(vec![p.clone()], 0.05, momentum, decay);
            let (mut x, mut v) = (1.0f64, 0.0);
            for t in 0..30 {
                p.zero_grad();
                (&p - 3.0).square().sum().backward();
                sgd.step();
                let g = 2.0 * (x - 3.0) + decay * x;
                v = if t == 0 { g } else { momentum * v + g };
                x -= 0.05 * if momentum != 0.0 { v } else { g };
            }
            assert!((p.item::<f64>() - x).abs() < 1e-12);
        }
    }
}
