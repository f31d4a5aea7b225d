//! Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).

use super::{Optimizer, assign_if, follow, update_all};
use crate::error::Result;
use crate::tensor::Tensor;

/// Adam as PyTorch has it; weight decay is added to the gradient.
pub struct Adam(Moments);

/// Adam with weight decay apart from the gradient.
pub struct AdamW(Moments);

struct Moments {
    parameters: Vec<Tensor>,
    first: Vec<Tensor>,
    second: Vec<Tensor>,
    learning_rate: f64,
    betas: (f64, f64),
    epsilon: f64,
    weight_decay: f64,
    decoupled: bool,
    steps: i32,
}

impl Moments {
    fn new(
        parameters: Vec<Tensor>,
        learning_rate: f64,
        betas: (f64, f64),
        epsilon: f64,
        weight_decay: f64,
    ) -> Moments {
        let zeros = || parameters.iter().map(Tensor::zeros_like).collect();
        let (first, second) = (zeros(), zeros());
        Moments {
            parameters,
            first,
            second,
            learning_rate,
            betas,
            epsilon,
            weight_decay,
            decoupled: false,
            steps: 0,
        }
    }

    #[track_caller]
    fn step(&mut self, condition: Option<&Tensor>) -> Result<()> {
        self.steps += 1;
        let (b1, b2) = self.betas;
        let rate = self.learning_rate / (1.0 - b1.powi(self.steps));
        let correction = (1.0 - b2.powi(self.steps)).sqrt();
        update_all(&self.parameters, |k, p, g| {
            follow(&self.first[k], p)?;
            follow(&self.second[k], p)?;
            let (mut p, mut g) = (p.clone(), g.clone());
            if self.weight_decay != 0.0 && self.decoupled {
                p = p.try_mul(1.0 - self.learning_rate * self.weight_decay)?;
            } else if self.weight_decay != 0.0 {
                g = g.try_add(&p.try_mul(self.weight_decay)?)?;
            }
            let m = self.first[k].try_mul(b1)?.try_add(&g.try_mul(1.0 - b1)?)?;
            let v = self.second[k].try_mul(b2)?.try_add(&g.try_square()?.try_mul(1.0 - b2)?)?;
            // rate · m / (√v / correction + ε), with the rate taken into the divisor.
            let divisor = v.try_sqrt()?.try_mul(1.0 / (correction * rate))?.try_add(self.epsilon / rate)?;
            assign_if(&self.parameters[k], &p.try_sub(&m.try_div(&divisor)?)?, condition)?;
            assign_if(&self.first[k], &m, condition)?;
            assign_if(&self.second[k], &v, condition)
        })
    }
}

macro_rules! adam {
    ($name:ident, $decoupled:literal) => {
        impl $name {
            /// With a learning rate, the decay of both moments, the number that keeps the divisor from zero, and
            /// weight decay: `(parameters, 0.001, (0.9, 0.999), 1e-8, 0.0)`.
            pub fn new(
                parameters: Vec<Tensor>,
                learning_rate: f64,
                betas: (f64, f64),
                epsilon: f64,
                weight_decay: f64,
            ) -> $name {
                let mut moments = Moments::new(parameters, learning_rate, betas, epsilon, weight_decay);
                moments.decoupled = $decoupled;
                $name(moments)
            }

            /// The learning rate of the next steps.
            pub fn set_learning_rate(&mut self, learning_rate: f64) {
                self.0.learning_rate = learning_rate;
            }
        }

        impl Optimizer for $name {
            fn parameters(&self) -> &[Tensor] {
                &self.0.parameters
            }

            #[track_caller]
            fn try_step_if(&mut self, condition: Option<&Tensor>) -> Result<()> {
                self.0.step(condition)
            }
        }
    };
}
adam!(Adam, false);
adam!(AdamW, true);

#[cfg(test)]
mod tests {
    use super::*;

    /// Adam by hand, in f64.
    fn reference(decoupled: bool, decay: f64, steps: i32) -> f64 {
        let (rate, b1, b2, eps) = (0.1, 0.9, 0.999, 1e-8);
        let (mut p, mut m, mut v) = (1.0f64, 0.0, 0.0);
        for t in 1..=steps {
            let mut g = 2.0 * (p - 3.0);
            if decoupled {
                p *= 1.0 - rate * decay;
            } else {
                g += decay * p;
            }
            m = b1 * m + (1.0 - b1) * g;
            v = b2 * v + (1.0 - b2) * g * g;
            let (mh, vh) = (m / (1.0 - f64::powi(b1, t)), v / (1.0 - f64::powi(b2, t)));
            p -= rate * mh / (vh.sqrt() + eps);
        }
        p
    }

    #[test]
    fn fifty_steps_agree_with_the_formula() {
        for (decoupled, decay) in [(false, 0.0), (false, 0.05), (true, 0.0), (true, 0.05)] {
            let p = Tensor::vector(&[1.0]).to_dtype(crate::DType::F64).requires_grad(true);
            let mut moments = Moments::new(vec![p.clone()], 0.1, (0.9, 0.999), 1e-8, decay);
            moments.decoupled = decoupled;
            for _ in 0..50 {
                p.zero_grad();
                (&p - 3.0).square().sum().backward();
                moments.step(None).unwrap();
            }
            let (ours, theirs) = (p.item::<f64>(), reference(decoupled, decay, 50));
            assert!((ours - theirs).abs() < 1e-9, "{ours} {theirs}");
        }
    }
}
