//! Pairs of answers, and the loss that prefers one of them (DPO; Rafailov et al., 2023).

use super::causal;
use super::tokenized::Tokens;
use volta::data::{Array, DataLoader, Dataset, Sample};
use volta::models::{IGNORED, Llm};
use volta::train::Outcome;
use volta::{DType, Result, Tensor, no_grad, with_device};

/// Pairs of rows of one length. An input is (2, length), the tokens of the answer that is preferred and of the other one; a target
/// (2, length + 1), the tokens that follow where they are an answer's, and behind them the number of the pair.
#[derive(Clone, Debug)]
pub struct Preferences {
    length: usize,
    inputs: Vec<i32>,
    targets: Vec<i32>,
}

impl Preferences {
    /// Pairs whose texts have one token more than `length` at most. The first has the number `first`.
    pub fn new(pairs: &[[Tokens; 2]], length: usize, first: usize) -> Preferences {
        let mut out = Preferences { length, inputs: Vec::new(), targets: Vec::new() };
        for (pair, number) in pairs.iter().zip(first..) {
            for text in pair {
                let (from, start) = (out.inputs.len(), out.targets.len());
                out.inputs.extend(&text.ids[..text.ids.len() - 1]);
                out.inputs.resize(from + length, 0);
                let next = text.ids.iter().zip(&text.learnt).skip(1);
                out.targets.extend(next.map(|(&id, &learnt)| if learnt { id } else { IGNORED }));
                out.targets.resize(start + length, IGNORED);
                out.targets.push(number as i32);
            }
        }
        out
    }
}

impl Dataset for Preferences {
    fn len(&self) -> usize {
        self.inputs.len() / (2 * self.length)
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let length = self.length;
        let inputs = &self.inputs[index * 2 * length..(index + 1) * 2 * length];
        let targets = &self.targets[index * 2 * (length + 1)..(index + 1) * 2 * (length + 1)];
        Ok(Sample {
            input: Array::try_new(inputs, &[2, length])?,
            target: Array::try_new(targets, &[2, length + 1])?,
        })
    }
}

/// The log-likelihoods (pairs, 2) of the answers of a batch.
fn likelihoods(llm: &Llm, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (pairs, length) = (x.size(0), x.size(2));
    let next = y.try_narrow(2, 0, length)?.try_reshape([2 * pairs, length])?;
    let found = causal(llm)?.try_log_likelihood(&x.try_reshape([2 * pairs, length])?, &next)?;
    found.try_reshape([pairs, 2])
}

impl Preferences {
    /// What a model makes of all pairs before it is trained: a row each, where the model is. `seen` is told how many are done.
    pub fn reference(&self, llm: &Llm, batch: usize, mut seen: impl FnMut(usize)) -> Result<Vec<f32>> {
        volta::Module::eval(llm);
        let loader = DataLoader::try_over(self.clone(), batch)?.with_device(llm.device());
        let mut all = Vec::new();
        for batch in loader.try_iter() {
            let (x, y) = batch?;
            all.extend(no_grad(|| likelihoods(llm, &x, &y)?.try_to_vec::<f32>())?);
            seen(all.len() / 2);
        }
        Ok(all)
    }
}

/// What a batch of pairs comes to: −log σ(β · (how much likelier than in the reference the preferred answer is, less the same of the other)).
/// `reference` has a row (preferred, other) of log-likelihoods for every pair's number.
pub fn dpo_outcome(llm: &Llm, reference: &Tensor, beta: f64, x: &Tensor, y: &Tensor) -> Result<Outcome> {
    let length = x.size(2);
    let numbers = y.try_narrow(1, 0, 1)?.try_narrow(2, length, 1)?.try_reshape([x.size(0)])?;
    let before = no_grad(|| with_device(reference.device(), || reference.try_embedding(&numbers)))?;
    let gain = likelihoods(llm, x, y)?.try_sub(&before)?;
    let margin = gain.try_select(1, 0)?.try_sub(&gain.try_select(1, 1)?)?.try_mul(beta)?;
    let loss = margin.try_neg()?.try_softplus(1.0, 20.0)?.try_mean()?;
    let (right, margin) = no_grad(|| {
        Ok::<_, volta::Error>((margin.try_gt(0.0)?.try_to_dtype(DType::F32)?.try_mean()?, margin.try_mean()?))
    })?;
    let outcome = Outcome::from(loss).with("accuracy", &right).with("margin", &margin);
    Ok(outcome.with_units("tokens", x.numel()))
}
