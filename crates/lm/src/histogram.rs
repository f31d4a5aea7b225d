//! How numbers are spread: the weights of a model, and their gradients.

use volta::models::Gpt;
use volta::{Module, Result, Tensor};

/// How many numbers lie in each of equally wide parts of their range.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The smallest of the finite numbers.
    pub low: f32,
    /// The largest of them.
    pub high: f32,
    /// How many lie in each part.
    pub counts: Vec<u32>,
    /// Numbers that are NaN or infinite, which lie nowhere.
    pub non_finite: u32,
}

/// A parameter of a model, and how it is spread.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightReport {
    /// What it is called.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Histogram,
    /// Its gradient, if it was asked for.
    pub gradient: Option<Histogram>,
}

/// The parts of a range.
const PARTS: usize = 40;

impl Histogram {
    /// Counts numbers.
    ///
    /// ```
    /// let histogram = volta_lm::Histogram::of(&[0.0, 1.0, 1.0, f32::NAN]);
    /// assert_eq!((histogram.counts[0], histogram.counts.last(), histogram.non_finite), (1, Some(&2), 1));
    /// ```
    pub fn of(numbers: &[f32]) -> Histogram {
        let finite = || numbers.iter().copied().filter(|x| x.is_finite());
        let (low, high) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
        let mut counts = vec![0; PARTS];
        let width = f64::from(high) - f64::from(low);
        let part = |x: f32| {
            let share = if width > 0.0 { (f64::from(x) - f64::from(low)) / width } else { 0.0 };
            ((share * PARTS as f64) as usize).min(PARTS - 1)
        };
        finite().for_each(|x| counts[part(x)] += 1);
        let non_finite = (numbers.len() - finite().count()) as u32;
        Histogram { low, high, counts, non_finite }
    }

    async fn of_tensor(tensor: &Tensor) -> Result<Histogram> {
        Ok(Histogram::of(&tensor.detach().to_vec_async().await?))
    }
}

/// The parameters of a model; with their gradients on a batch, which are forgotten afterwards. The model is switched to evaluation, so
/// that nothing is drawn.
pub async fn weight_reports(gpt: &Gpt, batch: Option<(&Tensor, &Tensor)>) -> Result<Vec<WeightReport>> {
    if let Some((x, y)) = batch {
        gpt.eval();
        gpt.try_loss(x, y)?.try_backward()?;
    }
    let parameters: Vec<_> =
        gpt.named_parameters().into_iter().map(|(name, p)| (name, p.grad(), p)).collect();
    parameters.iter().for_each(|(_, _, p)| p.zero_grad());
    let mut reports = Vec::new();
    for (name, gradient, parameter) in parameters {
        let values = Histogram::of_tensor(&parameter).await?;
        let gradient = match gradient {
            Some(gradient) => Some(Histogram::of_tensor(&gradient).await?),
            None => None,
        };
        reports.push(WeightReport { name, shape: parameter.shape().to_vec(), values, gradient });
    }
    Ok(reports)
}
