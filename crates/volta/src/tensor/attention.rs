//! Scaled dot-product attention that never stores the matrix of scores.

use super::Tensor;
use super::matmul::product;
use super::record::record;
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine;
use crate::error::{Result, bail};
use crate::graph::no_grad;
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use volta_derive::op;

/// Masking and scaling of attention.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Query `i` sees key `j` only if `j <= i`.
    pub causal: bool,
    /// Added to the scores, or where false (of a bool mask) the score is hidden; broadcast to (…, queries, keys).
    pub mask: Option<&'a Tensor>,
    /// The probability of dropping a weight while training.
    pub dropout: f64,
    /// Multiplies the scores; 1/√width by default.
    pub scale: Option<f64>,
}

/// The extents of one problem: (batch, heads, queries, keys, value width).
pub(crate) struct Extents {
    pub batch: [usize; 2],
    pub queries: usize,
    pub keys: usize,
    pub value_width: usize,
}

impl Extents {
    pub fn of(q: &Tensor, k: &Tensor, v: &Tensor) -> Extents {
        let (q, k, v) = (q.shape(), k.shape(), v.shape());
        Extents { batch: [q[0], q[1]], queries: q[2], keys: k[2], value_width: v[3] }
    }

    pub fn heads(&self) -> usize {
        self.batch[0] * self.batch[1]
    }

    /// The rows that the packed result begins with: row by row, and head by head in a row, as the layers that follow
    /// read them.
    pub fn result(&self, packed: &Tensor) -> Result<Tensor> {
        let shape = Shape::of(&[self.batch[0], self.queries, self.batch[1], self.value_width]);
        unpack(packed, 0, shape)?.try_transpose(1, 2)
    }
}

/// What results are kept in: as halves where they are computed from halves. A log-sum-exp then takes two of them. With a mask
/// there is one number more, which `shares` in `autograd/attention.rs` reads.
pub(crate) fn kept_as(operand: DType, masked: bool) -> (DType, usize) {
    let (dtype, each) = if operand == DType::F16 { (DType::F16, 2) } else { (operand.wide(), 1) };
    (dtype, each + usize::from(masked))
}

/// A piece of a flat tensor, from an element on, under its own shape.
pub(crate) fn unpack(packed: &Tensor, at: usize, shape: Shape) -> Result<Tensor> {
    packed.try_narrow(0, at, shape.numel())?.reshape_to(shape)
}

fn flash(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
) -> Result<Tensor> {
    let e = Extents::of(q, k, v);
    let (dtype, each) = kept_as(q.dtype(), mask.is_some());
    let count = e.heads() * e.queries * (e.value_width + each);
    let sources: Vec<&Tensor> = [q, k, v].into_iter().chain(mask).collect();
    let packed =
        record(Op::Native(NativeOp::Attention { causal, scale }), &sources, Shape::new(&[count])?, dtype)?;
    e.result(&packed)
}

/// Whether a device computes attention by its formula, of so many matrices of so many scores, faster than by its own kernel.
fn has_fast_formula(device: Device, outer: &Shape, scores: usize) -> Result<bool> {
    /// Scores that there is memory for.
    const MAX_SCORES: usize = 1 << 24;
    Ok(outer.numel() * scores <= MAX_SCORES && !engine::executor(device)?.has_fast_attention())
}

/// Attention by its formula.
pub(crate) fn plain(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    options: (Option<&Tensor>, bool, f64, f64),
) -> Result<Tensor> {
    let (mask, causal, scale, dropout) = options;
    let mut scores = product(q, &k.try_transpose(-2, -1)?)?.try_mul(scale)?;
    if let Some(mask) = mask {
        scores = scores.try_add(mask)?;
    }
    if causal {
        let (queries, keys) = (q.size(-2), k.size(-2));
        let seen = with_device(q.device(), || Tensor::try_tril_mask(queries, keys, 0))?;
        let hidden = seen.try_logical_not()?;
        scores = hidden.try_where_(f64::NEG_INFINITY, &scores)?;
    }
    if k.size(-2) == 0 {
        // Sums of nothing.
        return product(&scores, v);
    }
    let peak = no_grad(|| scores.detach().try_max_dim(-1, true))?;
    // A row that is hidden whole has no largest score; any finite number serves.
    let peak = peak.try_eq(f64::NEG_INFINITY)?.try_where_(0.0, &peak)?;
    let weights = scores.try_sub(&peak)?.try_exp()?;
    let sum = weights.try_sum_dim(-1, true)?;
    // No gradient flows through the quotient of a row without a key.
    let sum = sum.try_eq(0.0)?.try_where_(1.0, &sum)?;
    let mut weights = weights.try_div(&sum)?;
    if dropout > 0.0 {
        weights = weights.try_dropout(dropout, true)?;
    }
    // Weights are no larger than halves can be, as products of rows are.
    weights.try_matmul(v)
}

impl Tensor {
    /// softmax(q·kᵀ·scale + mask)·v over (…, rows, width), without storing the scores. A query that sees no key
    /// gives zeros.
    #[op]
    pub fn try_scaled_dot_product_attention(
        &self,
        k: &Tensor,
        v: &Tensor,
        options: AttentionOptions,
    ) -> Result<Tensor> {
        let (q, k, v) = (&self.autocast_operand()?, &k.autocast_operand()?, &v.autocast_operand()?);
        let (qs, ks, vs) = (q.shape(), k.shape(), v.shape());
        let rank = qs.rank();
        if rank < 2 || ks.rank() != rank || vs.rank() != rank {
            bail!(Shape, "q {qs}, k {ks} and v {vs} must have as many axes, at least 2");
        }
        if q.dtype() != k.dtype() || k.dtype() != v.dtype() || !q.dtype().is_float() {
            bail!(
                DType,
                "q, k and v are {}, {} and {}: all must be the same float type",
                q.dtype(),
                k.dtype(),
                v.dtype()
            );
        }
        let outer = Shape::of(&qs[..rank - 2]);
        let fits = ks[..rank - 2] == outer[..]
            && vs[..rank - 2] == outer[..]
            && qs[rank - 1] == ks[rank - 1]
            && ks[rank - 2] == vs[rank - 2];
        if !fits {
            bail!(
                Shape,
                "q {qs}, k {ks} and v {vs} do not fit: (…, queries, width), (…, keys, width), (…, keys, value width) are needed"
            );
        }
        if !(0.0..1.0).contains(&options.dropout) {
            bail!(Argument, "a dropout of {} is not a probability below 1", options.dropout);
        }
        let scale = options.scale.unwrap_or(1.0 / (qs[rank - 1].max(1) as f64).sqrt());
        if !(scale as f32).is_finite() {
            bail!(Argument, "a scale of {scale} is not a finite f32");
        }
        // Half precision is computed in f32, as the scores need it.
        let wide = q.dtype().wide();
        // A GPU's kernel takes halves as they are, which is what its matrix units want.
        let operand = if q.dtype() == DType::F16 && q.device().is_gpu() && options.dropout == 0.0 {
            DType::F16
        } else {
            wide
        };
        // A GPU's kernel walks along the keys with one workgroup a head; the products of a single query spread them.
        let alone = qs[rank - 2] == 1 && q.device().is_gpu() && operand == wide;
        let lead = match rank {
            2 => [1, 1],
            3 => [1, qs[0]],
            _ => [qs[..rank - 3].iter().product(), qs[rank - 3]],
        };
        let four = |t: &Tensor| {
            let s = t.shape();
            t.try_to_dtype(operand)?.reshape_to(Shape::of(&[lead[0], lead[1], s[rank - 2], s[rank - 1]]))
        };
        let (q4, k4, v4) = (four(q)?, four(k)?, four(v)?);
        let mask = match options.mask {
            None => None,
            Some(m) => {
                let m = match m.dtype() {
                    DType::Bool => m.try_where_(0.0, f64::NEG_INFINITY)?.try_to_dtype(wide)?,
                    d if d.is_float() => m.try_to_dtype(wide)?,
                    d => bail!(DType, "the mask is {d}: it must be bool or float"),
                };
                let full = Shape::new(&[&outer[..], &[qs[rank - 2], ks[rank - 2]]].concat())?;
                Some(m.expand_to(full)?.reshape_to(Shape::of(&[
                    lead[0],
                    lead[1],
                    qs[rank - 2],
                    ks[rank - 2],
                ]))?)
            }
        };
        let by_formula = alone || has_fast_formula(q.device(), &outer, qs[rank - 2] * ks[rank - 2])?;
        let out = if options.dropout > 0.0 || by_formula {
            plain(&q4, &k4, &v4, (mask.as_ref(), options.causal, scale, options.dropout))?
        } else {
            flash(&q4, &k4, &v4, mask.as_ref(), options.causal, scale)?
        };
        let shape = Shape::new(&[&qs[..rank - 1], &[vs[rank - 1]]].concat())?;
        out.reshape_to(shape)?.try_to_dtype(q.dtype())
    }
}
