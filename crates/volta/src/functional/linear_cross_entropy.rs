//! Cross entropy of a linear layer's output that is never whole in memory: a language model's loss over a large vocabulary.
//!
//! Classes are taken some at a time. The logits of a chunk live until what the loss needs of them is known, one or two
//! numbers a row, and are computed once more for the gradient. Chunks of rows would do as well for the logits, but every
//! one of them would give a gradient of the whole weight; chunks of classes give each a part of it.

use super::cross_entropy::{CrossEntropyOptions, flaws};
use super::loss::{Reduction, over_batch};
use crate::autograd::try_checkpoint;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::Tensor;
use volta_derive::op;

/// Options of [`linear_cross_entropy_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearCrossEntropyOptions<'a> {
    /// One number a class, added to its logits.
    pub bias: Option<&'a Tensor>,
    /// What is done with the logits.
    pub loss: CrossEntropyOptions<'a>,
    /// How many classes make a chunk; by default so many that there are 16 Mi logits at once.
    pub classes_at_once: Option<usize>,
}

/// How many logits there are at once, unless told otherwise: 64 MiB in f32.
const LOGITS_AT_ONCE: usize = 1 << 24;
/// As many parts the classes are cut into at a time: the gradient of a cut is a sum over its parts.
const PARTS: usize = 12;

/// What all chunks have in common.
struct Problem {
    /// Rows × width.
    x: Tensor,
    /// One class a row.
    target: Tensor,
    at_once: usize,
    /// Whether the sum of the logits is needed, weighted or not.
    smoothed: bool,
}

/// Some neighbouring classes.
struct Classes {
    first: usize,
    /// Classes × width.
    weight: Tensor,
    bias: Option<Tensor>,
    /// How much each counts, where that is needed.
    counts: Option<Tensor>,
}

impl Classes {
    fn len(&self) -> usize {
        self.weight.shape()[0]
    }

    fn cut(&self, from: usize, count: usize) -> Result<Classes> {
        let part = |t: &Tensor| t.try_narrow(0, from, count);
        Ok(Classes {
            first: self.first + from,
            weight: part(&self.weight)?,
            bias: self.bias.as_ref().map(part).transpose()?,
            counts: self.counts.as_ref().map(part).transpose()?,
        })
    }
}

impl Problem {
    /// Adds what each chunk of these classes tells: the logarithm of the sum of exponentials of its logits, the target's
    /// logit if it is among them, and the sum of all; one row each, one column a row of `x`.
    fn collect(&self, classes: &Classes, found: &mut Vec<Tensor>) -> Result<()> {
        let count = classes.len();
        if count <= self.at_once {
            found.push(self.chunk(classes)?);
            return Ok(());
        }
        let chunks = count.div_ceil(self.at_once);
        let step = chunks.div_ceil(PARTS).max(1) * self.at_once;
        (0..count)
            .step_by(step)
            .try_for_each(|from| self.collect(&classes.cut(from, step.min(count - from))?, found))
    }

    fn chunk(&self, classes: &Classes) -> Result<Tensor> {
        let inputs: Vec<&Tensor> = [&self.x, &classes.weight, &self.target]
            .into_iter()
            .chain(&classes.bias)
            .chain(&classes.counts)
            .collect();
        let (first, biased, smoothed) = (classes.first, classes.bias.is_some(), self.smoothed);
        try_checkpoint(move |tensors| statistics(tensors, first, biased, smoothed), &inputs)
    }
}

/// What a chunk tells of its logits. The tensors are x, weight, target, and the bias and counts there are.
fn statistics(tensors: &[Tensor], first: usize, biased: bool, smoothed: bool) -> Tensor {
    let [x, weight, target] = [&tensors[0], &tensors[1], &tensors[2]];
    let logits = x.linear(weight, biased.then(|| &tensors[3]));
    let logits = logits.to_dtype(logits.dtype().wide());
    let class = logits.index_rule(1, logits.shape(), target.dtype()).add(first);
    let picked = class.eq(target.unsqueeze(1)).where_(&logits, 0.0).sum_dim(1, false);
    let mut rows = vec![logits.logsumexp(1, false), picked];
    if smoothed {
        let counted = match tensors.get(3 + usize::from(biased)) {
            Some(counts) => logits.mul(counts.to_dtype(logits.dtype())),
            None => logits,
        };
        rows.push(counted.sum_dim(1, false));
    }
    Tensor::stack(&rows, 0)
}

fn check(x: &Tensor, weight: &Tensor, target: &Tensor, options: &LinearCrossEntropyOptions) -> Result<()> {
    let (xs, ws) = (x.shape(), weight.shape());
    x.check_float()?;
    if xs.rank() == 0 || ws.rank() != 2 || xs[xs.rank() - 1] != ws[1] || ws[0] == 0 {
        bail!(Shape, "input {xs} and weight {ws} do not fit: (…, width) and (classes, width) are needed");
    }
    if !target.dtype().is_int() {
        bail!(DType, "the target is {}: it must hold class indices", target.dtype());
    }
    if target.shape()[..] != xs[..xs.rank() - 1] {
        let needed = &xs[..xs.rank() - 1];
        bail!(Shape, "the target has shape {}, and the input {xs} needs {needed:?}", target.shape());
    }
    for (name, numbers) in [("bias", options.bias), ("class weights", options.loss.weight)] {
        if let Some(t) = numbers
            && t.shape()[..] != [ws[0]]
        {
            bail!(Shape, "the {name} has shape {}, and there are {} classes", t.shape(), ws[0]);
        }
    }
    if !(0.0..=1.0).contains(&options.loss.label_smoothing) {
        bail!(Argument, "a label smoothing of {} does not lie between 0 and 1", options.loss.label_smoothing);
    }
    if options.classes_at_once == Some(0) {
        bail!(Argument, "a chunk must have at least one class");
    }
    Ok(())
}

/// How much the targets count: by the weights of their classes, and nothing where they are ignored.
fn target_weights(
    target: &Tensor,
    classes: usize,
    options: &CrossEntropyOptions,
    dtype: DType,
) -> Result<Tensor> {
    let counts = counts(target, options)?;
    let weights = match options.weight {
        Some(weight) => {
            let inside = target.try_ge(0)?.try_logical_and(&target.try_lt(weight.numel())?)?;
            weight.try_to_dtype(dtype)?.gather_primitive(0, &inside.try_where_(target, 0)?)?
        }
        None => target.constant(1.0, target.shape(), dtype),
    };
    masked(target, options, weights.try_add(&flaws(target, classes, counts.as_ref(), dtype)?)?)
}

/// The losses of all rows, and how much each counts.
fn row_losses(
    problem: &Problem,
    classes: &Classes,
    options: &CrossEntropyOptions,
) -> Result<(Tensor, Tensor)> {
    let mut found = Vec::new();
    problem.collect(classes, &mut found)?;
    // Chunks × statistics × rows.
    let all = Tensor::try_stack(&found, 0)?;
    let log = all.try_select(1, 0)?.try_logsumexp(0, false)?;
    let picked = all.try_select(1, 1)?.try_sum_dim(0, false)?;
    let counts = target_weights(&problem.target, classes.len(), options, log.dtype())?;
    let mut losses = masked(&problem.target, options, log.try_sub(&picked)?)?.try_mul(&counts)?;
    if problem.smoothed {
        let part = options.label_smoothing;
        let total = match &classes.counts {
            Some(counts) => log.try_mul(&counts.try_to_dtype(log.dtype())?.try_sum()?)?,
            None => log.try_mul(classes.len() as f64)?,
        };
        let even = total.try_sub(&all.try_select(1, 2)?.try_sum_dim(0, false)?)?;
        let even = masked(&problem.target, options, even)?;
        losses = losses.try_mul(1.0 - part)?.try_add(&even.try_mul(part / classes.len() as f64)?)?;
    }
    Ok((losses, counts))
}

/// Where the target counts at all. An index that the target's type does not have is none.
fn counts(target: &Tensor, options: &CrossEntropyOptions) -> Result<Option<Tensor>> {
    match options.ignore_index {
        Some(index) if target.dtype().holds(index) => target.try_ne(index).map(Some),
        _ => Ok(None),
    }
}

/// Zero where the target is ignored.
fn masked(target: &Tensor, options: &CrossEntropyOptions, t: Tensor) -> Result<Tensor> {
    counts(target, options)?.map_or(Ok(t.clone()), |counts| counts.try_where_(&t, 0.0))
}

/// The mean of [`cross_entropy`](crate::cross_entropy) of `x.linear(weight, None)`, without all the logits in memory
/// at once: `x` is (…, width), `weight` (classes, width), `target` holds a class for every vector.
///
/// ```
/// use volta::{Tensor, cross_entropy, linear_cross_entropy};
/// let (x, weight) = (Tensor::randn([6, 4]), Tensor::randn([10, 4]));
/// let target = Tensor::randint(0, 10, [6]);
/// let whole: f32 = cross_entropy(&x.linear(&weight, None), &target).item();
/// assert!((linear_cross_entropy(&x, &weight, &target).item::<f32>() - whole).abs() < 1e-5);
/// ```
#[op]
pub fn try_linear_cross_entropy(x: &Tensor, weight: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_linear_cross_entropy_with(x, weight, target, LinearCrossEntropyOptions::default())
}

/// [`linear_cross_entropy`] with options.
#[op]
pub fn try_linear_cross_entropy_with(
    x: &Tensor,
    weight: &Tensor,
    target: &Tensor,
    options: LinearCrossEntropyOptions,
) -> Result<Tensor> {
    check(x, weight, target, &options)?;
    let shape = target.shape();
    let rows = Shape::of(&[shape.numel()]);
    let smoothed = options.loss.label_smoothing > 0.0;
    // Lowered here, since the gradient computes the products again outside of autocast.
    let problem = Problem {
        x: x.reshape_to(Shape::of(&[rows[0], weight.shape()[1]]))?.autocast_operand()?,
        target: target.try_to_dtype(target.dtype().of_positions())?.reshape_to(rows)?,
        at_once: options.classes_at_once.unwrap_or((LOGITS_AT_ONCE / rows[0].max(1)).max(1)),
        smoothed,
    };
    let classes = Classes {
        first: 0,
        weight: weight.autocast_operand()?,
        bias: options.bias.map(Tensor::autocast_operand).transpose()?,
        counts: options.loss.weight.filter(|_| smoothed).cloned(),
    };
    let (losses, counts) = row_losses(&problem, &classes, &options.loss)?;
    match options.loss.reduction {
        Reduction::None => losses.reshape_to(shape),
        Reduction::Sum => losses.try_sum(),
        Reduction::BatchMean => over_batch(&losses.try_sum()?, shape),
        Reduction::Mean => losses.try_sum()?.try_div(&counts.try_sum()?),
    }
}
