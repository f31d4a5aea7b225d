//! Losses that compare two tensors element by element.

use crate::autograd::{Function, try_apply};
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::activation::log_sigmoid;
use volta_derive::op;

/// What becomes of the losses of many elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum, divided by the size of the batch, which is the first axis: PyTorch's `batchmean`.
    BatchMean,
    /// They stay apart.
    None,
}

impl Reduction {
    pub(super) fn of(self, losses: &Tensor) -> Result<Tensor> {
        match self {
            Reduction::Mean => losses.try_mean(),
            Reduction::Sum => losses.try_sum(),
            Reduction::BatchMean => over_batch(&losses.try_sum()?, losses.shape()),
            Reduction::None => Ok(losses.clone()),
        }
    }
}

/// The share of each sample in the sum of losses of this shape; a loss without axes is one sample.
pub(super) fn over_batch(sum: &Tensor, losses: Shape) -> Result<Tensor> {
    sum.try_div(losses.first().map_or(1.0, |&n| n as f64))
}

/// Options of [`bce_with_logits_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BceOptions<'a> {
    /// Multiplies the loss of every element; broadcast.
    pub weight: Option<&'a Tensor>,
    /// Multiplies the loss of what is true; broadcast. Only with logits.
    pub pos_weight: Option<&'a Tensor>,
    /// What becomes of the elements.
    pub reduction: Reduction,
}

/// Options of [`kl_div_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct KlDivOptions {
    /// The target is a logarithm too.
    pub log_target: bool,
    /// What becomes of the elements. The divergence as mathematics has it is [`Reduction::BatchMean`]; the mean is over
    /// elements.
    pub reduction: Reduction,
}

/// Both tensors in one wide float type, and the type to return to.
fn wide_pair(input: &Tensor, target: &Tensor) -> Result<(Tensor, Tensor, DType)> {
    let (input, target) = (input.upcast()?, target.upcast()?);
    let dtype = input.dtype().promote(target.dtype());
    if !dtype.is_float() {
        bail!(
            DType,
            "input is {} and target {}: at least one must hold floats",
            input.dtype(),
            target.dtype()
        );
    }
    Ok((input.try_to_dtype(dtype.wide())?, target.try_to_dtype(dtype.wide())?, dtype))
}

/// Losses of the difference of two tensors, which broadcast.
fn of_difference(
    (input, target): (&Tensor, &Tensor),
    reduction: Reduction,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (input, target, dtype) = wide_pair(input, target)?;
    reduction.of(&f(&input.try_sub(&target)?)?)?.try_to_dtype(dtype)
}

/// The shape both tensors have; PyTorch too refuses to broadcast here.
fn same_shape(input: &Tensor, target: &Tensor) -> Result<Shape> {
    if input.shape() != target.shape() {
        bail!(Shape, "input has shape {} and target {}: they must be equal", input.shape(), target.shape());
    }
    Ok(input.shape())
}

fn weighted(losses: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        Some(w) => losses.try_mul(&w.try_to_dtype(losses.dtype())?),
        None => Ok(losses),
    }
}

/// Cross entropy of probabilities with PyTorch's limits: logarithms are at least −100, and the slope is that
/// of a probability that is not quite 0 or 1. Both would be infinite by the formula alone.
struct BinaryCrossEntropy;

impl BinaryCrossEntropy {
    fn logs(p: &Tensor) -> (Tensor, Tensor) {
        let log = |t: Tensor| t.clamp(Some(-100.0), None);
        (log(p.log()), log(p.neg().log1p()))
    }
}

impl Function for BinaryCrossEntropy {
    fn forward(&self, inputs: &[Tensor]) -> Tensor {
        let [p, target] = [&inputs[0], &inputs[1]];
        let (yes, no) = BinaryCrossEntropy::logs(p);
        (target - 1.0) * no - target * yes
    }

    fn backward(&self, inputs: &[Tensor], _output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
        let [p, target] = [&inputs[0], &inputs[1]];
        let spread = (p * (1.0 - p)).clamp(Some(1e-12), None);
        let slope = p.is_tracked().then(|| gradient * (p - target) / spread);
        let towards_target = target.is_tracked().then(|| {
            let (yes, no) = BinaryCrossEntropy::logs(p);
            gradient * (no - yes)
        });
        vec![slope, towards_target]
    }
}

/// The mean of the squared differences.
///
/// ```
/// use volta::{Tensor, mse_loss};
/// let loss = mse_loss(&Tensor::vector(&[1.0, 3.0]), &Tensor::vector(&[1.0, 1.0]));
/// assert_eq!(loss.item::<f32>(), 2.0);
/// ```
#[op]
pub fn try_mse_loss(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_mse_loss_with(input, target, Reduction::Mean)
}

/// [`mse_loss`] with a choice of reduction.
#[op]
pub fn try_mse_loss_with(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    of_difference((input, target), reduction, Tensor::try_square)
}

/// The mean of the absolute differences.
#[op]
pub fn try_l1_loss(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_l1_loss_with(input, target, Reduction::Mean)
}

/// [`l1_loss`] with a choice of reduction.
#[op]
pub fn try_l1_loss_with(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    of_difference((input, target), reduction, Tensor::try_abs)
}

/// d²/(2β) for differences below β, |d| − β/2 above; the mean. PyTorch's default β is 1.
#[op]
pub fn try_smooth_l1_loss(input: &Tensor, target: &Tensor, beta: f64) -> Result<Tensor> {
    try_smooth_l1_loss_with(input, target, beta, Reduction::Mean)
}

/// [`smooth_l1_loss`] with a choice of reduction.
#[op]
pub fn try_smooth_l1_loss_with(
    input: &Tensor,
    target: &Tensor,
    beta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    if beta.is_nan() || beta < 0.0 {
        bail!(Argument, "beta is {beta}: it must not be negative");
    }
    if beta == 0.0 {
        return try_l1_loss_with(input, target, reduction);
    }
    of_difference((input, target), reduction, |d| {
        let size = d.try_abs()?;
        size.try_lt(beta)?.try_where_(&d.try_square()?.try_mul(0.5 / beta)?, &size.try_sub(0.5 * beta)?)
    })
}

/// d²/2 for differences up to δ, δ·(|d| − δ/2) above; the mean. PyTorch's default δ is 1.
#[op]
pub fn try_huber_loss(input: &Tensor, target: &Tensor, delta: f64) -> Result<Tensor> {
    try_huber_loss_with(input, target, delta, Reduction::Mean)
}

/// [`huber_loss`] with a choice of reduction.
#[op]
pub fn try_huber_loss_with(
    input: &Tensor,
    target: &Tensor,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    if delta.is_nan() || delta <= 0.0 {
        bail!(Argument, "delta is {delta}: it must be positive");
    }
    of_difference((input, target), reduction, |d| {
        let size = d.try_abs()?;
        let linear = size.try_sub(0.5 * delta)?.try_mul(delta)?;
        size.try_le(delta)?.try_where_(&d.try_square()?.try_mul(0.5)?, &linear)
    })
}

/// The mean binary cross entropy of probabilities; logarithms are held at −100.
#[op]
pub fn try_bce_loss(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_bce_loss_with(input, target, BceOptions::default())
}

/// [`bce_loss`] with options.
#[op]
pub fn try_bce_loss_with(input: &Tensor, target: &Tensor, options: BceOptions) -> Result<Tensor> {
    same_shape(input, target)?;
    input.check_float()?;
    if options.pos_weight.is_some() {
        bail!(Argument, "pos_weight goes with logits: call bce_with_logits_with");
    }
    let (p, target, dtype) = wide_pair(input, target)?;
    let losses = try_apply(BinaryCrossEntropy, &[&p, &target])?;
    options.reduction.of(&weighted(losses, options.weight)?)?.try_to_dtype(dtype)
}

/// The mean binary cross entropy of the sigmoid of `input`, without its overflow.
#[op]
pub fn try_bce_with_logits(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_bce_with_logits_with(input, target, BceOptions::default())
}

/// [`bce_with_logits`] with options.
#[op]
pub fn try_bce_with_logits_with(input: &Tensor, target: &Tensor, options: BceOptions) -> Result<Tensor> {
    same_shape(input, target)?;
    input.check_float()?;
    let (x, target, dtype) = wide_pair(input, target)?;
    let mut log = log_sigmoid(&x)?;
    if let Some(w) = options.pos_weight {
        let more = w.try_to_dtype(x.dtype())?.try_sub(1.0)?;
        log = log.try_mul(&more.try_mul(&target)?.try_add(1.0)?)?;
    }
    let losses = x.try_sub(&x.try_mul(&target)?)?.try_sub(&log)?;
    options.reduction.of(&weighted(losses, options.weight)?)?.try_to_dtype(dtype)
}

/// The mean over elements of the divergence of `target` (probabilities) from `input` (their logarithms).
#[op]
pub fn try_kl_div(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_kl_div_with(input, target, KlDivOptions::default())
}

/// [`kl_div`] with options.
#[op]
pub fn try_kl_div_with(input: &Tensor, target: &Tensor, options: KlDivOptions) -> Result<Tensor> {
    let (x, t, dtype) = wide_pair(input, target)?;
    let losses = if options.log_target {
        t.try_exp()?.try_mul(&t.try_sub(&x)?)?
    } else {
        // 0·ln 0 is 0.
        let zero = t.try_eq(0.0)?;
        let entropy = zero.try_where_(0.0, &t.try_mul(&zero.try_where_(1.0, &t)?.try_log()?)?)?;
        entropy.try_sub(&t.try_mul(&x)?)?
    };
    options.reduction.of(&losses)?.try_to_dtype(dtype)
}
