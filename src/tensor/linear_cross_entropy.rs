//! Cross entropy of a linear layer's output that is never whole in memory: a language model's loss over a large vocabulary.
//!
//! Rows are taken a few at a time. The logits of a chunk live until its losses are known, and are computed once more for
//! the gradient, so that there is never more than a chunk of them.

use super::Tensor;
use super::cross_entropy::{CrossEntropyOptions, cross_entropy_with};
use super::loss::Reduction;
use super::record::functions;
use crate::autograd::try_checkpoint;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;

/// Options of [`linear_cross_entropy_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearCrossEntropyOptions<'a> {
    /// One number a class, added to its logits.
    pub bias: Option<&'a Tensor>,
    /// What is done with the logits.
    pub loss: CrossEntropyOptions<'a>,
    /// How many rows make a chunk; by default as many as have 16 Mi logits.
    pub rows_at_once: Option<usize>,
}

/// How many logits there are at once, unless told otherwise: 64 MiB in f32.
const LOGITS_AT_ONCE: usize = 1 << 24;

/// The sum of the weights of the targets that count, by which their losses are divided for a mean.
fn total_weight(target: &Tensor, options: &CrossEntropyOptions, dtype: DType) -> Result<Tensor> {
    let weights = match options.weight {
        Some(weight) => weight.try_to_dtype(dtype)?.try_gather(0, &in_range(target, weight.numel())?)?,
        None => target.constant(1.0, target.shape(), dtype),
    };
    match options.ignore_index {
        Some(index) if target.dtype() == DType::I64 || i32::try_from(index).is_ok() => {
            target.try_ne(index)?.try_where_(&weights, 0.0)?.try_sum()
        }
        _ => weights.try_sum(),
    }
}

/// Targets with those that are no class, which are ignored, at 0.
fn in_range(target: &Tensor, classes: usize) -> Result<Tensor> {
    let inside = target.try_ge(0)?.try_logical_and(&target.try_lt(classes)?)?;
    inside.try_where_(target, 0)
}

fn check(x: &Tensor, weight: &Tensor, target: &Tensor, options: &LinearCrossEntropyOptions) -> Result<()> {
    let (xs, ws) = (x.shape(), weight.shape());
    if xs.rank() == 0 || ws.rank() != 2 || xs[xs.rank() - 1] != ws[1] {
        bail!(Shape, "input {xs} and weight {ws} do not fit: (…, width) and (classes, width) are needed");
    }
    if !target.dtype().is_int() {
        bail!(DType, "the target is {}: it must hold class indices", target.dtype());
    }
    if target.shape()[..] != xs[..xs.rank() - 1] {
        bail!(
            Shape,
            "the target has shape {}, and the input {xs} needs {:?}",
            target.shape(),
            &xs[..xs.rank() - 1]
        );
    }
    if let Some(bias) = options.bias
        && bias.shape()[..] != [ws[0]]
    {
        bail!(Shape, "the bias has shape {}, and there are {} classes", bias.shape(), ws[0]);
    }
    if let Some(w) = options.loss.weight
        && w.shape()[..] != [ws[0]]
    {
        bail!(Shape, "the class weights have shape {}, and there are {} classes", w.shape(), ws[0]);
    }
    if !(0.0..=1.0).contains(&options.loss.label_smoothing) {
        bail!(Argument, "a label smoothing of {} does not lie between 0 and 1", options.loss.label_smoothing);
    }
    if options.rows_at_once == Some(0) {
        bail!(Argument, "a chunk must have at least one row");
    }
    Ok(())
}

/// The losses of some rows, or their sum. The tensors are x, weight, target, and the bias and class weights there are.
fn chunk_loss(tensors: &[Tensor], biased: bool, options: CrossEntropyOptions<'static>) -> Tensor {
    let [x, weight, target] = [&tensors[0], &tensors[1], &tensors[2]];
    let bias = biased.then(|| &tensors[3]);
    let logits = x.linear(weight, bias);
    let logits = logits.to_dtype(logits.dtype().wide());
    let options = CrossEntropyOptions { weight: tensors.get(3 + usize::from(biased)), ..options };
    cross_entropy_with(&logits, target, options)
}

functions! {
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
    fn linear_cross_entropy | try_linear_cross_entropy(x: &Tensor, weight: &Tensor, target: &Tensor) -> Tensor {
        try_linear_cross_entropy_with(x, weight, target, LinearCrossEntropyOptions::default())
    }

    /// [`linear_cross_entropy`] with options.
    fn linear_cross_entropy_with | try_linear_cross_entropy_with(x: &Tensor, weight: &Tensor, target: &Tensor, options: LinearCrossEntropyOptions) -> Tensor {
        check(x, weight, target, &options)?;
        let (shape, classes) = (x.shape(), weight.shape()[0]);
        let (rows, width) = (target.numel(), weight.shape()[1]);
        // Lowered here, since the gradient computes the products again outside of autocast.
        let x = x.reshape_to(Shape::of(&[rows, width]))?.lowered()?;
        let weight = weight.lowered()?;
        let bias = options.bias.map(Tensor::lowered).transpose()?;
        let target = target.try_to_dtype(target.dtype().promote(DType::I32))?.reshape_to(Shape::of(&[rows]))?;
        let reduction = options.loss.reduction;
        let apart = reduction == Reduction::None;
        let each = CrossEntropyOptions {
            weight: None,
            reduction: if apart { Reduction::None } else { Reduction::Sum },
            ignore_index: options.loss.ignore_index,
            label_smoothing: options.loss.label_smoothing,
        };
        let at_once = options.rows_at_once.unwrap_or((LOGITS_AT_ONCE / classes.max(1)).max(1));
        let mut parts = Vec::new();
        for start in (0..rows).step_by(at_once) {
            let count = at_once.min(rows - start);
            let cut = |t: &Tensor| if count == rows { Ok(t.clone()) } else { t.try_narrow(0, start, count) };
            let (x, target) = (cut(&x)?, cut(&target)?);
            let inputs: Vec<&Tensor> =
                [&x, &weight, &target].into_iter().chain(&bias).chain(options.loss.weight).collect();
            let biased = bias.is_some();
            parts.push(try_checkpoint(move |tensors| chunk_loss(tensors, biased, each), &inputs)?);
        }
        let dtype = x.dtype().wide();
        if apart {
            let losses = if parts.is_empty() { x.constant(0.0, Shape::of(&[0]), dtype) } else { Tensor::try_cat(&parts, 0)? };
            return losses.reshape_to(Shape::of(&shape[..shape.rank() - 1]));
        }
        let mut sum = x.constant(0.0, Shape::of(&[]), dtype);
        for part in &parts {
            sum = sum.try_add(part)?;
        }
        if reduction == Reduction::Sum { Ok(sum) } else { sum.try_div(&total_weight(&target, &options.loss, dtype)?) }
    }
}
