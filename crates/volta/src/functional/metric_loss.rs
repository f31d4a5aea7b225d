//! Losses of how near vectors are to each other.

use super::loss::Reduction;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::Tensor;
use volta_derive::op;

/// Options of [`cosine_embedding_loss_with`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CosineEmbeddingOptions {
    /// The cosine up to which unlike vectors count for nothing.
    pub margin: f64,
    /// What becomes of the pairs.
    pub reduction: Reduction,
}

/// Options of [`triplet_margin_loss_with`].
#[derive(Clone, Copy, Debug)]
pub struct TripletMarginOptions {
    /// How much farther than the positive the negative must be.
    pub margin: f64,
    /// The norm of the distance.
    pub p: f64,
    /// Added to every difference, so that no distance is zero.
    pub eps: f64,
    /// Take the negative's distance from the positive where that is smaller.
    pub swap: bool,
    /// What becomes of the triplets.
    pub reduction: Reduction,
}

impl Default for TripletMarginOptions {
    fn default() -> Self {
        TripletMarginOptions { margin: 1.0, p: 2.0, eps: 1e-6, swap: false, reduction: Reduction::Mean }
    }
}

/// Keeps the lengths of vectors from zero, as PyTorch does.
const SHORTEST_SQUARE: f64 = 1e-12;

/// Vectors of one shape in the wide type of them all, and the type to return to.
fn together<const N: usize>(vectors: [&Tensor; N]) -> Result<([Tensor; N], DType)> {
    let mut all = vectors.map(Tensor::clone);
    for t in &mut all {
        *t = t.upcast()?;
    }
    let dtype = all.iter().fold(all[0].dtype(), |d, t| d.promote(t.dtype()));
    let mut shape = vectors[0].shape();
    for t in &all {
        t.check_float()?;
        shape = shape.broadcast(&t.shape())?;
    }
    if shape.rank() == 0 {
        bail!(Shape, "numbers without an axis are no vectors: (…, width) is needed");
    }
    for t in &mut all {
        *t = t.try_to_dtype(dtype.wide())?.expand_to(shape)?;
    }
    Ok((all, dtype))
}

/// 1 − cos of vectors (the last axis) that are to be alike, where the target is 1, and max(0, cos) of those that are
/// not, where it is −1; the mean.
///
/// ```
/// use volta::{Tensor, cosine_embedding_loss};
/// let a = Tensor::from_slice(&[1f32, 0.0, 1.0, 0.0], [2, 2]);
/// let b = Tensor::from_slice(&[2f32, 0.0, 1.0, 0.0], [2, 2]);
/// let target = Tensor::from_slice(&[1i32, -1], [2]);
/// assert!((cosine_embedding_loss(&a, &b, &target).item::<f32>() - 0.5).abs() < 1e-6);
/// ```
#[op]
pub fn try_cosine_embedding_loss(a: &Tensor, b: &Tensor, target: &Tensor) -> Result<Tensor> {
    try_cosine_embedding_loss_with(a, b, target, CosineEmbeddingOptions::default())
}

/// [`cosine_embedding_loss`] with options.
#[op]
pub fn try_cosine_embedding_loss_with(
    a: &Tensor,
    b: &Tensor,
    target: &Tensor,
    options: CosineEmbeddingOptions,
) -> Result<Tensor> {
    let ([a, b], dtype) = together([a, b])?;
    let shape = a.shape();
    let rows = Shape::of(&shape[..shape.rank() - 1]);
    if target.shape() != rows {
        bail!(Shape, "the target has shape {}, and vectors of {shape} need {rows}", target.shape());
    }
    let square = |t: &Tensor| t.try_square()?.try_sum_dim(-1, false)?.try_add(SHORTEST_SQUARE);
    let cosine =
        a.try_mul(&b)?.try_sum_dim(-1, false)?.try_mul(&square(&a)?.try_mul(&square(&b)?)?.try_rsqrt()?)?;
    let alike = target.try_eq(1)?.try_where_(&(1.0 - &cosine), 0.0)?;
    let unlike = target.try_eq(-1)?.try_where_(&cosine.try_sub(options.margin)?.try_relu()?, 0.0)?;
    options.reduction.of(&alike.try_add(&unlike)?)?.try_to_dtype(dtype)
}

/// How far each anchor (along the last axis) is from its positive less how far it is from its negative, plus 1, where
/// that is above 0; the mean.
#[op]
pub fn try_triplet_margin_loss(anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
    try_triplet_margin_loss_with(anchor, positive, negative, TripletMarginOptions::default())
}

/// [`triplet_margin_loss`] with options.
#[op]
pub fn try_triplet_margin_loss_with(
    anchor: &Tensor,
    positive: &Tensor,
    negative: &Tensor,
    options: TripletMarginOptions,
) -> Result<Tensor> {
    if options.margin.is_nan() || options.margin <= 0.0 {
        bail!(Argument, "the margin is {}: it must be positive", options.margin);
    }
    let ([anchor, positive, negative], dtype) = together([anchor, positive, negative])?;
    let distance =
        |a: &Tensor, b: &Tensor| a.try_sub(b)?.try_add(options.eps)?.try_norm_dim(options.p, -1, false);
    let mut far = distance(&anchor, &negative)?;
    if options.swap {
        far = far.try_minimum(&distance(&positive, &negative)?)?;
    }
    let losses = distance(&anchor, &positive)?.try_sub(&far)?.try_add(options.margin)?.try_relu()?;
    options.reduction.of(&losses)?.try_to_dtype(dtype)
}
