//! The mean of all ranks' gradients, for training loops of one's own.

use super::buckets::{Buckets, Reading};
use super::exchange::{Exchange, ExchangeCost, ExchangeOptions};
use super::world::World;
use crate::error::{Result, bail};
use crate::tensor::Tensor;
use std::sync::Arc;

/// Gives parameters the mean of all ranks' gradients, in buckets: a thread sends one while the device computes the next.
///
/// ```
/// use volta::Tensor;
/// use volta::parallel::{ExchangeOptions, GradientExchange, ThreadWorld};
/// let gradients = ThreadWorld::run(2, |world| {
///     let weight = Tensor::vector(&[1.0, 2.0]).requires_grad(true);
///     let loss = weight.mul(world.rank() as f64).sum();
///     loss.backward();
///     GradientExchange::new(world, ExchangeOptions::default())?.average(&[weight.clone()])?;
///     Ok(weight.grad().unwrap().to_vec::<f32>())
/// });
/// assert!(gradients.into_iter().all(|gradient| gradient.unwrap() == [0.5, 0.5]));
/// ```
pub struct GradientExchange {
    world: Arc<dyn World>,
    options: ExchangeOptions,
    exchange: Exchange,
    /// Those whose gradients went last, and how.
    known: Option<(Vec<Tensor>, Buckets)>,
}

impl GradientExchange {
    /// Among the ranks of a world.
    pub fn new(world: Arc<dyn World>, options: ExchangeOptions) -> Result<GradientExchange> {
        let exchange = Exchange::new(world.clone())?;
        Ok(GradientExchange { world, options, exchange, known: None })
    }

    /// Replaces every parameter's gradient by its mean over all ranks. All ranks give the same parameters, each of which has a gradient,
    /// and all compute with f32 on the way.
    ///
    /// # Errors
    /// A parameter without a gradient, found before anything is sent; what the device or the world cannot do.
    #[track_caller]
    pub fn average(&mut self, parameters: &[Tensor]) -> Result<()> {
        if let Some(k) = parameters.iter().position(|p| p.grad().is_none()) {
            bail!(Autograd, "parameter {k} of shape {} has no gradient to exchange", parameters[k].shape());
        }
        let is_known = |known: &[Tensor]| {
            known.len() == parameters.len() && known.iter().zip(parameters).all(|(a, b)| a.is_same(b))
        };
        if !self.known.as_ref().is_some_and(|(known, _)| is_known(known)) {
            let buckets = Buckets::new(parameters, self.options.bucket_bytes).shared(&*self.world)?;
            self.known = Some((parameters.to_vec(), buckets));
        }
        let Some((_, buckets)) = &self.known else { return Ok(()) };
        let (exchange, summation) = (&mut self.exchange, self.options.summation(false));
        let share = 1.0 / self.world.size() as f32;
        // Divided before they are added: f16 holds the mean of what it holds, and not the sum.
        let mut send = |mut numbers: Vec<f32>| {
            numbers.iter_mut().for_each(|number| *number *= share);
            exchange.send(numbers, summation)
        };
        let mut on_the_way = Vec::new();
        for b in 0..buckets.len() {
            match buckets.take(parameters, b)? {
                Reading::Here(numbers) => send(numbers)?,
                // A device goes on with the next bucket while this one is read.
                reading => on_the_way.push(reading),
            }
        }
        on_the_way.into_iter().try_for_each(|reading| send(reading.wait()?))?;
        (0..buckets.len()).try_for_each(|b| buckets.give(parameters, b, &exchange.receive()?))
    }

    /// What all of it has cost so far.
    pub fn cost(&self) -> ExchangeCost {
        self.exchange.cost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::ThreadWorld;

    #[test]
    fn buckets_of_ranks_that_computed_in_another_order_are_those_of_the_first() {
        let results = ThreadWorld::run(2, |world| {
            let all = [0.0, 1.0].map(|x| Tensor::vector(&[x, x + 1.0]).requires_grad(true));
            let mut order = [0, 1];
            if world.rank() == 1 {
                order.reverse();
            }
            // Each by itself, so that the order of the gradients is that of the losses.
            order.iter().for_each(|&k| all[k].mul((k + world.rank()) as f64).sum().backward());
            let options = ExchangeOptions { bucket_bytes: 1, ..ExchangeOptions::default() };
            let mut exchange = GradientExchange::new(world, options)?;
            exchange.average(&all)?;
            let missing = {
                all[1].zero_grad();
                exchange.average(&all).unwrap_err().message().to_string()
            };
            Ok((all[0].grad().unwrap().to_vec::<f32>(), missing))
        });
        for result in results {
            let (gradient, missing) = result.unwrap();
            assert_eq!(gradient, [0.5, 0.5]);
            assert!(missing.contains("parameter 1"), "{missing}");
        }
    }
}
