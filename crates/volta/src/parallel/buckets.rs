//! Gradients in buckets: what is computed, read and sent at once.

use super::world::World;
use crate::autograd::no_grad;
use crate::default_device::with_device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::tensor::{Tensor, compute_only};
use crate::wait::wait_for;
use std::future::Future;
use std::pin::Pin;

/// Which gradients are sent together: those that a backward pass has first come first.
pub(crate) struct Buckets {
    /// Numbers of parameters.
    all: Vec<Vec<usize>>,
}

/// Numbers that are on their way to the host.
pub(crate) enum Reading {
    Here(Vec<f32>),
    OnTheWay(Vec<ReadingOne>),
}

type ReadingOne = Pin<Box<dyn Future<Output = Result<Vec<f32>>>>>;

impl Reading {
    /// Waits for the device.
    pub fn wait(self) -> Result<Vec<f32>> {
        match self {
            Reading::Here(numbers) => Ok(numbers),
            Reading::OnTheWay(parts) => {
                let mut numbers = Vec::new();
                for mut part in parts {
                    numbers.extend(wait_for(part.as_mut())?);
                }
                Ok(numbers)
            }
        }
    }
}

impl Buckets {
    /// Of the parameters that have gradients, as a backward pass has recorded them; each of so many bytes, if a gradient is not larger.
    pub fn new(parameters: &[Tensor], bytes: usize) -> Buckets {
        let gradients = parameters.iter().enumerate().filter_map(|(k, p)| Some((p.grad()?, k)));
        // A node that was recorded first is computed first.
        let mut order: Vec<(u64, usize)> = gradients.map(|(gradient, k)| (gradient.node().id, k)).collect();
        order.sort_unstable();
        let (mut all, mut size): (Vec<Vec<usize>>, usize) = (Vec::new(), 0);
        for (_, k) in order {
            let more = 4 * parameters[k].numel();
            match all.last_mut() {
                Some(last) if size + more <= bytes => last.push(k),
                _ => {
                    all.push(vec![k]);
                    size = 0;
                }
            }
            size += more;
        }
        Buckets { all }
    }

    /// The same buckets on all ranks: those of rank 0.
    pub fn shared(self, world: &dyn World) -> Result<Buckets> {
        let words = |bucket: &Vec<usize>| bucket.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let own = self.all.iter().map(words).collect::<Vec<_>>().join("\n");
        let first = world.broadcast_text(0, &own)?;
        let numbers = |line: &str| line.split(' ').filter_map(|word| word.parse().ok()).collect();
        Ok(Buckets { all: first.lines().map(numbers).collect() })
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The parameters of a bucket, by number.
    pub fn parameters(&self, bucket: usize) -> &[usize] {
        &self.all[bucket]
    }

    /// Computes the gradients of a bucket, which the parameters do not have any longer, and begins to read them.
    pub fn take(&self, parameters: &[Tensor], bucket: usize) -> Result<Reading> {
        let own = &self.all[bucket];
        let mut gradients = Vec::with_capacity(own.len());
        for &k in own {
            let Some(gradient) = parameters[k].grad() else {
                bail!(
                    Autograd,
                    "parameter {k} of shape {} had a gradient in the first step and has none in this one: ranks exchange \
                     those of all parameters in every step",
                    parameters[k].shape()
                );
            };
            parameters[k].set_grad(None);
            gradients.push(no_grad(|| gradient.try_to_dtype(DType::F32))?);
        }
        // What the others are made of is kept, and not computed again.
        compute_only(&gradients)?;
        if gradients.iter().any(|g| g.device().is_gpu()) {
            let read = |g: &Tensor| Box::pin(g.to_vec_async::<f32>()) as ReadingOne;
            return Ok(Reading::OnTheWay(gradients.iter().map(read).collect()));
        }
        let mut numbers = Vec::with_capacity(gradients.iter().map(Tensor::numel).sum());
        for gradient in gradients {
            numbers.extend_from_slice(bytemuck::cast_slice(gradient.try_host_memory()?.bytes()));
        }
        Ok(Reading::Here(numbers))
    }

    /// Gives the parameters of a bucket their gradients; what follows behind them is left.
    pub fn give(&self, parameters: &[Tensor], bucket: usize, numbers: &[f32]) -> Result<()> {
        let mut rest = numbers;
        for &k in &self.all[bucket] {
            let parameter = &parameters[k];
            let (own, behind) = rest.split_at(parameter.numel());
            rest = behind;
            let shape = parameter.shape();
            let gradient =
                with_device(parameter.device(), || Tensor::try_from_vec(own.to_vec(), &shape[..]))?;
            parameter.set_grad(Some(gradient.try_to_dtype(parameter.dtype())?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_layers_gradients_come_first_and_are_given_back() {
        let x = Tensor::vector(&[1.0, 2.0]).reshape([1, 2]);
        let (first, second) = (
            Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], [2, 2]).requires_grad(true),
            Tensor::from_vec(vec![5f32, 6.0], [2, 1]).requires_grad(true),
        );
        let parameters = [first.clone(), second.clone()];
        x.matmul(&first).relu().matmul(&second).sum().backward();
        let expected: Vec<Vec<f32>> = parameters.iter().map(|p| p.grad().unwrap().to_vec()).collect();
        first.zero_grad();
        second.zero_grad();
        x.matmul(&first).relu().matmul(&second).sum().backward();
        let buckets = Buckets::new(&parameters, 4);
        assert_eq!(buckets.all, [[1], [0]]);
        assert_eq!(Buckets::new(&parameters, 1 << 20).all, [[1, 0]]);
        for (bucket, k) in [(0, 1), (1, 0)] {
            let numbers = buckets.take(&parameters, bucket).unwrap().wait().unwrap();
            assert_eq!(numbers, expected[k]);
            assert!(parameters[k].grad().is_none());
            buckets.give(&parameters, bucket, &numbers).unwrap();
            assert_eq!(parameters[k].grad().unwrap().to_vec::<f32>(), expected[k]);
        }
        first.zero_grad();
        assert!(buckets.take(&parameters, 1).is_err());
    }
}
