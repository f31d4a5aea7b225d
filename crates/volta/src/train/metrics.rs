//! Numbers about a batch, and their means over many, kept on the device until somebody wants to read them.

use crate::autograd::no_grad;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::functional::try_cross_entropy;
use crate::state::State;
use crate::tensor::{Tensor, try_realize_all};
use crate::wait::wait_for;
use std::collections::BTreeMap;
use std::pin::pin;
use volta_derive::op;

/// What a step computes for a batch: the loss, and what else is worth knowing.
#[derive(Clone)]
pub struct Outcome {
    /// What is made smaller.
    pub loss: Tensor,
    /// Means over the batch, by name.
    pub metrics: Vec<(&'static str, Tensor)>,
    /// Whether e to the mean loss is reported too.
    pub perplexity: bool,
    /// How many targets the means are over, where that is not the number of samples: it is their weight among
    /// those of other batches.
    pub counted: Option<Tensor>,
    /// What speed is counted in, and how many of them the batch has; samples unless said otherwise.
    pub units: Option<(&'static str, usize)>,
}

impl From<Tensor> for Outcome {
    fn from(loss: Tensor) -> Outcome {
        Outcome { loss, metrics: Vec::new(), perplexity: false, counted: None, units: None }
    }
}

impl Outcome {
    /// With one more mean over the batch.
    #[must_use]
    pub fn with(mut self, name: &'static str, mean: &Tensor) -> Outcome {
        self.metrics.push((name, mean.detach()));
        self
    }

    /// Counts speed in something else than samples, of which the batch has `count`.
    #[must_use]
    pub fn with_units(mut self, name: &'static str, count: usize) -> Outcome {
        self.units = Some((name, count));
        self
    }

    /// With means over so many targets instead of the samples of the batch; one number.
    #[must_use]
    pub fn with_counted(mut self, count: &Tensor) -> Outcome {
        self.counted = Some(count.detach());
        self
    }

    /// With the perplexity, e to the mean loss.
    #[must_use]
    pub fn with_perplexity(mut self) -> Outcome {
        self.perplexity = true;
        self
    }
}

/// Cross-entropy and accuracy of logits (batch, classes, …), or (classes) alone. The classes are indices, of the same
/// shape without the axis of classes; −100 is no class, and does not count.
///
/// ```
/// use volta::{Tensor, train::classified};
/// let logits = Tensor::from_vec(vec![2f32, 0., 0., 1.], [2, 2]);
/// let outcome = classified(&logits, &Tensor::from_vec(vec![0, 0], [2]));
/// assert_eq!(outcome.metrics[0].1.item::<f32>(), 0.5);
/// ```
#[track_caller]
pub fn classified(logits: &Tensor, classes: &Tensor) -> Outcome {
    match try_classified(logits, classes) {
        Ok(outcome) => outcome,
        Err(error) => error.raise(),
    }
}

/// [`classified`] that returns its error.
#[track_caller]
pub fn try_classified(logits: &Tensor, classes: &Tensor) -> Result<Outcome> {
    let loss = try_cross_entropy(logits, classes)?;
    let accuracy = try_accuracy(logits, classes)?;
    let count = no_grad(|| number_of(&counts(classes)?))?;
    Ok(Outcome::from(loss).with("accuracy", &accuracy).with_counted(&count))
}

/// The target that losses leave out unless they are told otherwise.
const IGNORED: i64 = -100;

/// Where a target is a class, and not one that losses leave out.
fn counts(classes: &Tensor) -> Result<Tensor> {
    let classes = classes.try_to_dtype(classes.dtype().of_positions())?;
    if classes.dtype().holds(IGNORED) {
        return classes.try_ne(IGNORED);
    }
    Ok(classes.constant(true, classes.shape(), DType::Bool))
}

/// How often it is true.
fn number_of(truths: &Tensor) -> Result<Tensor> {
    truths.try_to_dtype(DType::F32)?.try_sum()
}

/// The share of rows whose largest logit is at the right class. The classes of the logits are on the same axis as
/// for [`cross_entropy`](crate::cross_entropy): (batch, classes, …), or (classes) alone. Rows whose class is −100,
/// which losses leave out, do not count; without any that do it is NaN, as the loss is.
#[op]
pub fn try_accuracy(logits: &Tensor, classes: &Tensor) -> Result<Tensor> {
    let shape = logits.shape();
    if shape.rank() == 0 {
        bail!(Shape, "the logits have no axis of classes: (batch, classes, …) or (classes) is needed");
    }
    let axis = usize::from(shape.rank() > 1);
    let rows = shape.without(1 << axis);
    if classes.shape() != rows {
        bail!(Shape, "the classes have shape {}, and the logits {shape} need {rows}", classes.shape());
    }
    no_grad(|| {
        let best = logits.try_argmax_dim(axis as isize, false)?;
        let right = best.try_eq(classes.try_to_dtype(best.dtype())?)?;
        number_of(&right)?.try_div(&number_of(&counts(classes)?)?)
    })
}

/// Means by name, loss first.
pub type Means = Vec<(&'static str, f64)>;

/// Means of [`Outcome`]s, weighted by the number of samples, or of what [counted](Outcome::counted) in them. Adding
/// reads nothing back.
#[derive(Clone, Default)]
pub struct Meter {
    /// Sums of value · weight, with their names; the loss is first.
    sums: Vec<(&'static str, Tensor)>,
    samples: f64,
    /// The sum of the weights: what the host knows, and what only the device does.
    weight: f64,
    counted: Option<Tensor>,
    perplexity: bool,
    /// Sums that were loaded and are waiting for outcomes of their names.
    loaded: BTreeMap<String, Tensor>,
    loaded_count: Option<Tensor>,
}

impl Meter {
    /// Nothing yet.
    pub fn new() -> Meter {
        Meter::default()
    }

    /// Takes the outcome of a batch in.
    #[track_caller]
    pub fn add(&mut self, outcome: &Outcome, samples: usize) {
        let loss = outcome.loss.detach();
        let values = std::iter::once(("loss", &loss)).chain(outcome.metrics.iter().map(|(n, t)| (*n, t)));
        no_grad(|| {
            let counted = outcome.counted.as_ref().map(|n| n.to_dtype(DType::F32));
            for (name, value) in values {
                let value = value.to_dtype(DType::F32);
                let part = match &counted {
                    // The mean of nothing is NaN, and must not count.
                    Some(n) => n.gt(0.0).where_(&(value * n), 0.0),
                    None => value * samples as f64,
                };
                match self.sums.iter().find(|(n, _)| *n == name) {
                    Some((_, sum)) => sum.assign(&(sum + part)),
                    None => self.sums.push((name, following(self.loaded.remove(name), part))),
                }
            }
            match (counted, &self.counted) {
                (Some(n), Some(sum)) => sum.assign(&(sum + n)),
                (Some(n), None) => self.counted = Some(following(self.loaded_count.take(), n)),
                (None, _) => self.weight += samples as f64,
            }
        });
        self.samples += samples as f64;
        self.perplexity |= outcome.perplexity;
    }

    /// How many samples were taken in.
    pub fn samples(&self) -> usize {
        self.samples as usize
    }

    /// Computes the sums so far, so that the graphs they come from can go. Nothing is read.
    pub fn realize(&self) -> Result<()> {
        let sums = self.sums.iter().map(|(_, t)| t).chain(&self.counted);
        try_realize_all(&sums.cloned().collect::<Vec<_>>())
    }

    /// The means so far; waits for the device. The meter is empty afterwards.
    pub fn read(&mut self) -> Result<Means> {
        wait_for(pin!(self.read_async()))
    }

    /// [`read`](Self::read) that blocks nobody: the only way in a browser, if the sums are on a GPU.
    pub async fn read_async(&mut self) -> Result<Means> {
        Ok(self.read_with(&[]).await?.0)
    }

    /// [`read_async`](Self::read_async), with other numbers that come along: all of them are read at once.
    pub(crate) async fn read_with(&mut self, others: &[Tensor]) -> Result<(Means, Vec<f64>)> {
        let meter = std::mem::take(self);
        let sums = meter.sums.iter().map(|(_, sum)| sum).chain(&meter.counted);
        let mut numbers = read_together(&sums.chain(others).cloned().collect::<Vec<_>>()).await?;
        let others = numbers.split_off(numbers.len() - others.len());
        let counted = if meter.counted.is_some() { numbers.pop().unwrap_or(0.0) } else { 0.0 };
        let weight = meter.weight + counted;
        let mut means = Vec::new();
        for ((name, _), sum) in meter.sums.iter().zip(numbers) {
            let mean = sum / weight;
            means.push((*name, mean));
            if *name == "loss" && meter.perplexity {
                means.push(("perplexity", mean.exp()));
            }
        }
        Ok((means, others))
    }

    /// What it has taken in, as numbers that can be sent to other ranks; it is still there afterwards.
    pub(crate) async fn totals(&self) -> Result<Totals> {
        let sums = self.sums.iter().map(|(_, sum)| sum).chain(&self.counted);
        let mut numbers = read_together(&sums.cloned().collect::<Vec<_>>()).await?;
        let counted = self.counted.as_ref().and_then(|_| numbers.pop());
        let names = self.sums.iter().map(|(name, _)| *name).collect();
        let Meter { samples, weight, perplexity, .. } = *self;
        Ok(Totals { names, sums: numbers, samples, weight, counted, perplexity })
    }

    /// What it has taken in so far, for a checkpoint in the middle of what the next reading is about.
    pub(crate) fn state(&self) -> State {
        let state = State::new()
            .with("samples", self.samples)
            .with("weight", self.weight)
            .with("perplexity", i64::from(self.perplexity));
        let state = self
            .sums
            .iter()
            .fold(state, |state, (name, sum)| state.with_tensor(&format!("{SUM}{name}"), sum.clone()));
        self.counted.iter().fold(state, |state, counted| state.with_tensor("counted", counted.clone()))
    }

    /// Goes on from what [`state`](Self::state) gave.
    pub(crate) fn load(&mut self, state: &State) -> Result<()> {
        let sums = state.tensors.iter().filter_map(|(name, sum)| Some((name.strip_prefix(SUM)?, sum)));
        *self = Meter {
            samples: state.float("samples")?,
            weight: state.float("weight")?,
            perplexity: state.int("perplexity")? != 0,
            loaded: sums.map(|(name, sum)| (name.to_string(), sum.clone())).collect(),
            loaded_count: state.tensors.get("counted").cloned(),
            ..Meter::default()
        };
        Ok(())
    }
}

/// What a [`Meter`] has taken in, on the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// The loss is first.
    names: Vec<&'static str>,
    sums: Vec<f64>,
    samples: f64,
    weight: f64,
    counted: Option<f64>,
    perplexity: bool,
}

impl Totals {
    /// As numbers, without the names: ranks of one training have the same.
    pub fn to_numbers(&self) -> Vec<f64> {
        let counted = self.counted.unwrap_or(f64::NAN);
        let known = [self.samples, self.weight, counted, f64::from(u8::from(self.counted.is_some()))];
        known.into_iter().chain(self.sums.iter().copied()).collect()
    }

    /// What `numbers` say, of the same quantities as here.
    pub fn like(&self, numbers: &[f64]) -> Result<Totals> {
        let [samples, weight, counted, has_counted, sums @ ..] = numbers else {
            bail!(Data, "another rank has sent no metrics");
        };
        if sums.len() != self.names.len() {
            bail!(Data, "this rank measures {} numbers, and another one {}", self.names.len(), sums.len());
        }
        let counted = (*has_counted != 0.0).then_some(*counted);
        Ok(Totals { samples: *samples, weight: *weight, counted, sums: sums.to_vec(), ..self.clone() })
    }

    /// The means over all, added in their order.
    pub fn means(all: &[Totals]) -> Means {
        let Some(first) = all.first() else { return Means::new() };
        let weight: f64 = all.iter().map(|t| t.weight + t.counted.unwrap_or(0.0)).sum();
        let mut means = Means::new();
        for (k, name) in first.names.iter().enumerate() {
            let mean = all.iter().map(|t| t.sums[k]).sum::<f64>() / weight;
            means.push((*name, mean));
            if *name == "loss" && first.perplexity {
                means.push(("perplexity", mean.exp()));
            }
        }
        means
    }

    /// What a [`Meter`] would save.
    pub fn state(&self) -> State {
        let number = |x: f64| Tensor::scalar(x as f32);
        let state = State::new()
            .with("samples", self.samples)
            .with("weight", self.weight)
            .with("perplexity", i64::from(self.perplexity));
        let sums = self.names.iter().zip(&self.sums);
        let state =
            sums.fold(state, |state, (name, sum)| state.with_tensor(&format!("{SUM}{name}"), number(*sum)));
        self.counted.into_iter().fold(state, |state, counted| state.with_tensor("counted", number(counted)))
    }
}

/// What the names of sums begin with in a saved state.
const SUM: &str = "sum.";

/// A sum that begins with `part`, behind what was loaded of it.
fn following(loaded: Option<Tensor>, part: Tensor) -> Tensor {
    match loaded {
        Some(sum) => (sum.to_device(part.device()) + part).variable(),
        None => part.variable(),
    }
}

/// Numbers that may be on several devices, read from the first one's at once.
pub(super) async fn read_together(numbers: &[Tensor]) -> Result<Vec<f64>> {
    let Some(first) = numbers.first() else { return Ok(Vec::new()) };
    if let Some(wrong) = numbers.iter().find(|t| t.numel() != 1) {
        bail!(Shape, "a metric is one number, and this has shape {}", wrong.shape());
    }
    let flat = |t: &Tensor| t.detach().try_reshape([1])?.try_to_device(first.device());
    let together = no_grad(|| Tensor::try_cat(&numbers.iter().map(flat).collect::<Result<Vec<_>>>()?, 0))?;
    Ok(together.to_vec_async::<f32>().await?.into_iter().map(f64::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_by_samples_and_reading_empties_the_meter() {
        let mut meter = Meter::new();
        for (loss, right, samples) in [(1.0, 0.5, 10), (4.0, 0.0, 5)] {
            let outcome = Outcome::from(Tensor::scalar(loss)).with("accuracy", &Tensor::scalar(right));
            meter.add(&outcome.with_perplexity(), samples);
        }
        assert_eq!(meter.samples(), 15);
        let means = meter.read().unwrap();
        assert_eq!(means.iter().map(|m| m.0).collect::<Vec<_>>(), ["loss", "perplexity", "accuracy"]);
        assert!((means[0].1 - 2.0).abs() < 1e-6 && (means[1].1 - 2f64.exp()).abs() < 1e-5);
        assert!((means[2].1 - 1.0 / 3.0).abs() < 1e-6);
        assert!(meter.read().unwrap().is_empty());
    }
}
