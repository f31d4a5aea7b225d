//! Losses of classification: cross entropy and negative log likelihood over an axis of classes.
//!
//! A target's logit is picked by comparing the class index with the target inside the sum over classes, not
//! by gathering from a stored log-softmax: so the forward pass is one kernel over rows, and the backward pass
//! another.

use super::loss::{Reduction, over_batch};
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::ReduceOp;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::softmax::shifted;
use volta_derive::op;

/// Options of [`cross_entropy_with`].
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyOptions<'a> {
    /// Multiplies the loss of every class; the mean then divides by the sum of the weights used.
    pub weight: Option<&'a Tensor>,
    /// A target index that counts for nothing; −100 unless changed. Of no use with probabilities.
    pub ignore_index: Option<i64>,
    /// The part of the target spread evenly over all classes.
    pub label_smoothing: f64,
    /// What becomes of the rows.
    pub reduction: Reduction,
}

impl Default for CrossEntropyOptions<'_> {
    fn default() -> Self {
        CrossEntropyOptions {
            weight: None,
            ignore_index: Some(-100),
            label_smoothing: 0.0,
            reduction: Reduction::Mean,
        }
    }
}

/// Options of [`nll_loss_with`].
#[derive(Clone, Copy, Debug)]
pub struct NllOptions<'a> {
    /// Multiplies the loss of every class; the mean then divides by the sum of the weights used.
    pub weight: Option<&'a Tensor>,
    /// A target index that counts for nothing; −100 unless changed.
    pub ignore_index: Option<i64>,
    /// What becomes of the rows.
    pub reduction: Reduction,
}

impl Default for NllOptions<'_> {
    fn default() -> Self {
        NllOptions { weight: None, ignore_index: Some(-100), reduction: Reduction::Mean }
    }
}

/// The scores of one problem, wide, with their axis of classes and the weight in their shape's rank.
struct Scores {
    x: Tensor,
    axis: usize,
    weight: Option<Tensor>,
}

impl Scores {
    fn of(input: &Tensor, weight: Option<&Tensor>) -> Result<Scores> {
        let shape = input.shape();
        input.check_float()?;
        if shape.rank() == 0 {
            bail!(Shape, "the input has no axis of classes: (batch, classes, …) or (classes) is needed");
        }
        let axis = usize::from(shape.rank() > 1);
        let x = input.widened()?;
        let weight = match weight {
            None => None,
            Some(w) if w.shape()[..] != [shape[axis]] => {
                bail!(
                    Shape,
                    "the weight has shape {}, and the input {shape} has {} classes",
                    w.shape(),
                    shape[axis]
                )
            }
            Some(w) => {
                let mut extents = vec![1; shape.rank()];
                extents[axis] = shape[axis];
                Some(w.try_to_dtype(x.dtype())?.reshape_to(Shape::of(&extents))?)
            }
        };
        Ok(Scores { x, axis, weight })
    }

    fn classes(&self) -> usize {
        self.x.shape()[self.axis]
    }

    /// Sums over the classes, whose axis stays with extent 1.
    fn sum(&self, t: &Tensor) -> Result<Tensor> {
        t.expand_to(self.x.shape())?.reduce_mask(ReduceOp::Sum, 1 << self.axis)
    }

    /// With the axis of classes gone.
    fn rows(&self, t: &Tensor) -> Result<Tensor> {
        t.reshape_to(self.x.shape().without(1 << self.axis))
    }

    /// ln Σ eˣ over the classes, and the scores it belongs to: both less the largest.
    fn shifted(&self) -> Result<(Tensor, Tensor)> {
        let x = shifted(&self.x, self.axis as isize)?;
        let log = self.sum(&x.try_exp()?)?.try_log()?;
        Ok((x, log))
    }
}

/// What class indices say of the scores; of rows, with an axis of classes of extent 1.
struct Hits {
    /// Where the class is the target's.
    hit: Tensor,
    /// Where the target counts at all.
    counts: Option<Tensor>,
    flaws: Tensor,
}

/// Zero where a target is one of the classes. One that is none is asserted not to be, and its loss is NaN.
pub(super) fn flaws(
    target: &Tensor,
    classes: usize,
    counts: Option<&Tensor>,
    dtype: DType,
) -> Result<Tensor> {
    let index = counts.map_or(Ok(target.clone()), |c| c.try_where_(target, 0))?.in_bounds(classes)?;
    let inside = index.try_ge(0)?.try_logical_and(&index.try_lt(classes)?)?;
    inside.try_where_(0.0, f64::NAN)?.try_to_dtype(dtype)
}

fn hits(scores: &Scores, target: &Tensor, ignore: Option<i64>) -> Result<Hits> {
    let shape = scores.x.shape();
    if !target.dtype().is_int() {
        bail!(DType, "the target is {}: it must hold class indices", target.dtype());
    }
    if target.shape() != shape.without(1 << scores.axis) {
        bail!(
            Shape,
            "the target has shape {}, and the input {shape} needs {}",
            target.shape(),
            shape.without(1 << scores.axis)
        );
    }
    // A byte has no −100.
    let target =
        target.try_to_dtype(target.dtype().of_positions())?.reshape_to(shape.keep(1 << scores.axis))?;
    let class = scores.x.index_rule(scores.axis, shape, target.dtype());
    let counts = match ignore {
        Some(index) if target.dtype().holds(index) => Some(target.try_ne(index)?),
        _ => None,
    };
    let flaws = flaws(&target, scores.classes(), counts.as_ref(), scores.x.dtype())?;
    Ok(Hits { hit: class.try_eq(&target)?, counts, flaws })
}

/// Losses of rows with class indices as targets: (loss, weight) of every row, then what PyTorch makes of them.
fn reduce_rows(scores: &Scores, losses: &Tensor, hits: &Hits, reduction: Reduction) -> Result<Tensor> {
    let Hits { hit, counts, flaws } = hits;
    let masked = |t: &Tensor| match counts {
        Some(c) => c.try_where_(t, 0.0),
        None => Ok(t.clone()),
    };
    match reduction {
        Reduction::None => scores.rows(&masked(&losses.try_add(flaws)?)?),
        Reduction::Sum => masked(&losses.try_add(flaws)?)?.try_sum(),
        Reduction::BatchMean => over_batch(&masked(&losses.try_add(flaws)?)?.try_sum()?, losses.shape()),
        Reduction::Mean => {
            let weights = match &scores.weight {
                Some(w) => scores.sum(&hit.try_where_(w, 0.0)?)?.try_add(flaws)?,
                None => flaws.try_add(1.0)?,
            };
            masked(losses)?.try_sum()?.try_div(&masked(&weights)?.try_sum()?)
        }
    }
}

fn with_indices(scores: &Scores, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
    let hits = hits(scores, target, options.ignore_index)?;
    let hit = &hits.hit;
    let (x, log) = scores.shifted()?;
    let picked = scores.sum(&hit.try_where_(&x, 0.0)?)?;
    let mut losses = log.try_sub(&picked)?;
    if let Some(w) = &scores.weight {
        losses = losses.try_mul(&scores.sum(&hit.try_where_(w, 0.0)?)?)?;
    }
    if options.label_smoothing > 0.0 {
        let surprise = log.try_sub(&x)?;
        let even = match &scores.weight {
            Some(w) => scores.sum(&surprise.try_mul(w)?)?,
            None => scores.sum(&surprise)?,
        };
        let part = options.label_smoothing;
        losses = losses.try_mul(1.0 - part)?.try_add(&even.try_mul(part / scores.classes() as f64)?)?;
    }
    reduce_rows(scores, &losses, &hits, options.reduction)
}

fn with_probabilities(scores: &Scores, target: &Tensor, options: &CrossEntropyOptions) -> Result<Tensor> {
    let shape = scores.x.shape();
    if target.shape() != shape {
        bail!(
            Shape,
            "the target of probabilities has shape {}, and the input {shape}: they must be equal",
            target.shape()
        );
    }
    let mut target = target.try_to_dtype(scores.x.dtype())?;
    if options.label_smoothing > 0.0 {
        let part = options.label_smoothing;
        target = target.try_mul(1.0 - part)?.try_add(part / scores.classes() as f64)?;
    }
    if let Some(w) = &scores.weight {
        target = target.try_mul(w)?;
    }
    let (x, log) = scores.shifted()?;
    let losses = scores.sum(&log.try_sub(&x)?.try_mul(&target)?)?;
    match options.reduction {
        Reduction::None => scores.rows(&losses),
        reduction => reduction.of(&losses),
    }
}

/// The mean cross entropy of logits (batch, classes, …), or (classes) alone. The target holds either class
/// indices, of the same shape without the classes, or probabilities, of the same shape. An index that is no class
/// is an error, as for [`gather`](Tensor::gather), and makes the loss NaN.
///
/// ```
/// use volta::{Tensor, cross_entropy};
/// let logits = Tensor::zeros([3, 2]);
/// let target = Tensor::from_slice(&[0i64, 1, 1], [3]);
/// let loss: f32 = cross_entropy(&logits, &target).item();
/// assert!((loss - 2f32.ln()).abs() < 1e-6);
/// ```
#[op]
pub fn try_cross_entropy(logits: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_cross_entropy_with(logits, target, CrossEntropyOptions::default())
}

/// [`cross_entropy`] with options.
#[op]
pub fn try_cross_entropy_with(
    logits: &Tensor,
    target: &Tensor,
    options: CrossEntropyOptions,
) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&options.label_smoothing) {
        bail!(Argument, "a label smoothing of {} does not lie between 0 and 1", options.label_smoothing);
    }
    let logits = &logits.upcast()?;
    let scores = Scores::of(logits, options.weight)?;
    let loss = if target.dtype().is_float() {
        if options.ignore_index.is_some_and(|index| index >= 0) {
            bail!(Argument, "an index can only be ignored where targets are indices, not probabilities");
        }
        with_probabilities(&scores, target, &options)?
    } else {
        with_indices(&scores, target, &options)?
    };
    loss.try_to_dtype(logits.dtype())
}

/// The mean of minus the target class's entry in log-probabilities (batch, classes, …), or (classes) alone.
#[op]
pub fn try_nll_loss(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_nll_loss_with(input, target, NllOptions::default())
}

/// [`nll_loss`] with options.
#[op]
pub fn try_nll_loss_with(input: &Tensor, target: &Tensor, options: NllOptions) -> Result<Tensor> {
    let input = &input.upcast()?;
    let scores = Scores::of(input, options.weight)?;
    let hits = hits(&scores, target, options.ignore_index)?;
    let scored = match &scores.weight {
        Some(w) => scores.x.try_mul(w)?,
        None => scores.x.clone(),
    };
    let losses = scores.sum(&hits.hit.try_where_(&scored, 0.0)?)?.try_neg()?;
    reduce_rows(&scores, &losses, &hits, options.reduction)?.try_to_dtype(input.dtype())
}
