//! The table of derivatives: for every primitive, the gradients of its sources, made of primitives again. So
//! the backward pass is fused and planned like the forward pass, and can itself be differentiated.

use super::attention;
use crate::default_device::with_device;
use crate::error::Result;
use crate::graph::Node;
use crate::op::{BinaryOp as B, ConvKind, NativeOp as N, Op, ReduceOp, UnaryOp as U};
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;
use crate::tensor::custom_gradient::Custom;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// One gradient a source, `None` where the source is not tracked or the derivative is zero everywhere.
pub(crate) type Gradients = SmallVec<[Option<Tensor>; 3]>;

/// What a rule of differentiation sees.
pub(crate) struct GradientContext<'a> {
    pub node: &'a Arc<Node>,
    pub sources: &'a [Tensor],
    pub output: Tensor,
    pub gradient: &'a Tensor,
}

/// The gradients of `d.node`'s sources.
pub(crate) fn of(d: &GradientContext) -> Result<Gradients> {
    let (g, y) = (d.gradient, &d.output);
    let wanted: SmallVec<[bool; 4]> = d.sources.iter().map(Tensor::is_tracked).collect();
    let x = |k: usize| &d.sources[k];
    let one = |t: Result<Tensor>| -> Result<Gradients> { Ok(smallvec![Some(t?)]) };
    // Both gradients of a binary op, each only where it is wanted.
    let two = |a: &dyn Fn() -> Result<Tensor>, b: &dyn Fn() -> Result<Tensor>| -> Result<Gradients> {
        Ok(smallvec![if wanted[0] { Some(a()?) } else { None }, if wanted[1] { Some(b()?) } else { None }])
    };
    match &d.node.op {
        Op::Unary(op) => unary(*op, x(0), y, g),

        Op::Binary(B::Add) => two(&|| Ok(g.clone()), &|| Ok(g.clone())),
        Op::Binary(B::Sub) => two(&|| Ok(g.clone()), &|| g.try_neg()),
        Op::Binary(B::Mul) => two(&|| g.try_mul(x(1)), &|| g.try_mul(x(0))),
        Op::Binary(B::Div) => two(&|| g.try_div(x(1)), &|| g.try_mul(y)?.try_div(x(1))?.try_neg()),
        Op::Binary(B::Max | B::Min) => {
            // Ties share the gradient, as in PyTorch.
            let smaller = if matches!(d.node.op, Op::Binary(B::Max)) { (x(1), x(0)) } else { (x(0), x(1)) };
            let tie = x(0).try_eq(x(1))?;
            let half = g.try_mul(0.5)?;
            let first = smaller.0.try_lt(smaller.1)?;
            let second = smaller.1.try_lt(smaller.0)?;
            two(&|| tie.try_where_(&half, &first.try_where_(g, 0.0)?), &|| {
                tie.try_where_(&half, &second.try_where_(g, 0.0)?)
            })
        }
        Op::Binary(B::Mod) => {
            two(&|| Ok(g.clone()), &|| x(0).try_div(x(1))?.try_floor()?.try_mul(g)?.try_neg())
        }
        Op::Binary(B::Pow) => {
            let base = || {
                // x⁰ has derivative 0, also at 0 where x⁻¹ is infinite.
                let slope = x(1).try_mul(&x(0).try_pow(&x(1).try_sub(1.0)?)?)?;
                x(1).try_eq(0.0)?.try_where_(0.0, &g.try_mul(&slope)?)
            };
            let exponent = || {
                // 0ʸ is 0 for every positive y: its slope is 0, not 0 · ln 0.
                let flat = x(0).try_eq(0.0)?.try_logical_and(&x(1).try_ge(0.0)?)?;
                flat.try_where_(0.0, &g.try_mul(y)?.try_mul(&x(0).try_log()?)?)
            };
            two(&base, &exponent)
        }
        Op::Binary(_) => Ok(smallvec![None, None]),

        Op::Where => Ok(smallvec![
            None,
            if wanted[1] { Some(x(0).try_where_(g, 0.0)?) } else { None },
            if wanted[2] { Some(x(0).try_where_(0.0, g)?) } else { None }
        ]),
        Op::Cast => one(g.try_to_dtype(x(0).dtype())),

        Op::Reduce { op: ReduceOp::Sum, .. } => one(g.expand_to(x(0).shape())),
        Op::Reduce { op: ReduceOp::Max | ReduceOp::Min, axes } => {
            let shape = x(0).shape();
            let hit = x(0).try_eq(&y.expand_to(shape)?)?;
            // Halves do not count far.
            let ties = hit.try_to_dtype(g.dtype().wide())?.reduce_mask(ReduceOp::Sum, *axes)?;
            let share = g.in_wide(|g| g.try_div(&ties))?;
            one(hit.try_where_(&share.expand_to(shape)?, 0.0))
        }
        Op::Reduce { op: ReduceOp::Prod, axes } => one(product(x(0), y, g, *axes)),

        Op::Reshape => one(g.reshape_to(x(0).shape())),
        Op::Permute(order) => {
            let rank = x(0).rank();
            let mut inverse = vec![0; rank];
            for (k, &o) in order[..rank].iter().enumerate() {
                inverse[o as usize] = k;
            }
            one(g.permute_order(&inverse))
        }
        Op::Expand => one(unexpand(g, x(0).shape())),
        Op::Pad { pads, .. } => {
            let parts: Vec<_> = pads.iter().zip(x(0).shape().iter()).map(|(p, &e)| (p.0, 1, e)).collect();
            one(g.slice_parts(&parts))
        }
        Op::Slice(parts) => one(unslice(g, parts, x(0).shape())),
        Op::Flip(mask) => {
            let axes: Vec<isize> = (0..8).filter(|k| mask >> k & 1 == 1).collect();
            one(g.try_flip(&axes[..]))
        }
        Op::Windows { axis, step, dilation } => {
            one(fold_windows(g, *axis as usize, *step, *dilation, x(0).shape()))
        }

        // A transposed operand's gradient is made transposed, so that it comes out as the operand is stored.
        Op::Native(N::Matmul) => two(
            &|| match is_transposed(x(0)) {
                true => x(1).matmul_primitive(&g.try_t()?)?.try_t(),
                false => g.matmul_primitive(&x(1).try_t()?),
            },
            &|| match is_transposed(x(1)) {
                true => g.try_t()?.matmul_primitive(x(0))?.try_t(),
                false => x(0).try_t()?.matmul_primitive(g),
            },
        ),
        Op::Native(N::QuantizedMatmul { format, by_rows }) => {
            let back = g.quantized_primitive(x(1), x(2), *format, !by_rows, x(0).shape()[1])?;
            Ok(smallvec![Some(back), None, None])
        }
        Op::Native(N::Conv(kind, attrs)) => {
            let conv = |kind, a: &Tensor, b: &Tensor, like: &Tensor| {
                Tensor::conv_primitive(kind, a, b, **attrs, like.shape())
            };
            match kind {
                ConvKind::Forward => two(&|| conv(ConvKind::InputGrad, g, x(1), x(0)), &|| {
                    conv(ConvKind::WeightGrad, x(0), g, x(1))
                }),
                ConvKind::InputGrad => two(&|| conv(ConvKind::Forward, g, x(1), x(0)), &|| {
                    conv(ConvKind::WeightGrad, g, x(0), x(1))
                }),
                ConvKind::WeightGrad => two(&|| conv(ConvKind::InputGrad, x(1), g, x(0)), &|| {
                    conv(ConvKind::Forward, x(0), g, x(1))
                }),
            }
        }
        Op::Native(N::Attention { causal, scale }) => attention::gradients(d.sources, y, g, *causal, *scale),
        Op::Native(N::AttentionGrad { causal, scale }) => {
            attention::second_gradients(d.sources, g, *causal, *scale)
        }

        Op::Gather { axis } => {
            let (axis, shape) = (*axis as usize, x(0).shape());
            // The forward pass has looked at its bounds.
            let index = &x(1).without_assertions()?;
            let table = match picked_rows(index, axis) {
                Some(rows) if g.device().is_gpu() && is_sparse(rows.numel(), &shape) => {
                    g.scatter_rows(&rows, shape)?
                }
                _ => g.scatter_primitive(axis, index, shape)?,
            };
            Ok(smallvec![Some(table), None])
        }
        Op::Native(N::ScatterAdd { axis }) => {
            let (axis, index) = (*axis, &x(0).without_assertions()?);
            // What was dropped has no gradient.
            let kept = index.in_bounds_mask(g.shape()[axis])?;
            Ok(smallvec![None, Some(kept.try_where_(g.gather_primitive(axis, index)?, 0.0)?)])
        }
        Op::Native(N::Cumsum { axis }) => {
            let axis = *axis as isize;
            one(g.try_flip(axis)?.try_cumsum(axis)?.try_flip(axis))
        }

        Op::Custom(function) => {
            let inputs = &d.sources[1..];
            let mut all: Gradients = smallvec![None];
            all.extend(Custom::of(&**function).gradients(inputs, y, g)?);
            Ok(all)
        }

        // Sources, integers, names of leaves, and what is never recorded on a tape: nothing flows.
        Op::Data
        | Op::FusedElementwise(_)
        | Op::Const(_)
        | Op::Iota { .. }
        | Op::Random { .. }
        | Op::Assert(_)
        | Op::ArgReduce { .. }
        | Op::Native(N::Dequantize(_) | N::ArgSort { .. } | N::FirstPosition | N::MaxPoolIndex(_))
        | Op::Alias => Ok(d.sources.iter().map(|_| None).collect()),
    }
}

/// Whether a matrix is another one with the last two axes exchanged.
fn is_transposed(t: &Tensor) -> bool {
    let (node, rank) = (t.node(), t.rank());
    let Op::Permute(order) = &node.op else { return false };
    (0..rank - 2).all(|k| order[k] as usize == k) && order[rank - 2] as usize == rank - 1
}

/// The column of indices by which whole rows of a table are picked, if they are.
fn picked_rows(index: &Tensor, axis: usize) -> Option<Tensor> {
    let node = index.node();
    let expanded = axis == 0 && matches!(node.op, Op::Expand);
    let rows = expanded.then(|| node.sources().first().cloned())??;
    let is_column = rows.shape.rank() == node.shape.rank()
        && rows.shape[0] == node.shape[0]
        && rows.shape[0] == rows.shape.numel();
    is_column.then(|| Tensor::from_node(rows))
}

/// Whether so few rows of a large table were picked that whoever reads its gradient should look for them, instead of reading
/// the zeros between them. A CPU writes and reads zeros sooner than it looks.
fn is_sparse(rows: usize, table: &Shape) -> bool {
    /// Places for every row, and elements of a row and of a table, for which it is worth it.
    const MIN_PLACES_PER_ROW: usize = 8;
    const MIN_ROW_ELEMENTS: usize = 16;
    const MIN_TABLE_ELEMENTS: usize = 1 << 22;
    /// Elements that any adapter binds.
    const MAX_TABLE_ELEMENTS: usize = 1 << 25;
    let (places, width) = (table[0], table[1..].iter().product::<usize>());
    let fits = rows * width <= MAX_TABLE_ELEMENTS && places <= MAX_TABLE_ELEMENTS;
    rows > 0
        && rows * MIN_PLACES_PER_ROW <= places
        && width >= MIN_ROW_ELEMENTS
        && places * width >= MIN_TABLE_ELEMENTS
        && fits
}

fn unary(op: U, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Gradients> {
    use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};
    let gradient = match op {
        U::Neg => g.try_neg()?,
        U::Recip => g.try_mul(&y.try_square()?)?.try_neg()?,
        U::Sqrt => g.try_div(&y.try_mul(2.0)?)?,
        U::Rsqrt => g.try_mul(&y.try_mul(&y.try_square()?)?)?.try_mul(-0.5)?,
        U::Exp => g.try_mul(y)?,
        U::Expm1 => g.try_mul(&y.try_add(1.0)?)?,
        U::Log => g.try_div(x)?,
        U::Log1p => g.try_div(&x.try_add(1.0)?)?,
        U::Exp2 => g.try_mul(&y.try_mul(LN_2)?)?,
        U::Log2 => g.try_div(&x.try_mul(LN_2)?)?,
        U::Sin => g.try_mul(&x.try_cos()?)?,
        U::Cos => g.try_mul(&x.try_sin()?)?.try_neg()?,
        U::Tanh => g.try_mul(&(1.0 - y.try_square()?))?,
        U::Sigmoid => g.try_mul(&y.try_mul(&(1.0 - y))?)?,
        U::Relu => y.try_gt(0.0)?.try_where_(g, 0.0)?,
        U::Erf => g.try_mul(&x.try_square()?.try_neg()?.try_exp()?.try_mul(FRAC_2_SQRT_PI)?)?,
        U::Erfc => g.try_mul(&x.try_square()?.try_neg()?.try_exp()?.try_mul(-FRAC_2_SQRT_PI)?)?,
        U::Abs => g.try_mul(&x.try_sign()?)?,
        U::Sign | U::Floor | U::Ceil | U::Round | U::Trunc => g.constant_like(0.0),
        U::Not => return Ok(smallvec![None]),
    };
    Ok(smallvec![Some(gradient)])
}

/// Sums what an expansion repeated.
fn unexpand(g: &Tensor, to: Shape) -> Result<Tensor> {
    let from = g.shape();
    let added = from.rank() - to.rank();
    let mut mask = 0;
    for k in 0..from.rank() {
        if k < added || (to[k - added] == 1 && from[k] != 1) {
            mask |= 1 << k;
        }
    }
    g.reduce_mask(ReduceOp::Sum, mask)?.reshape_to(to)
}

/// Puts a slice's gradient back among zeros.
fn unslice(g: &Tensor, parts: &[(usize, usize)], to: Shape) -> Result<Tensor> {
    let mut g = g.clone();
    let mut pads = Vec::new();
    for (k, &(start, step)) in parts.iter().enumerate() {
        g = spread(&g, k, step)?;
        let have = g.shape()[k];
        // The last step may reach beyond the end.
        if start + have > to[k] {
            let keep = to[k].saturating_sub(start);
            g = g.try_narrow(k as isize, 0, keep)?;
            pads.push((to[k] - keep, 0));
        } else {
            pads.push((start, to[k] - start - have));
        }
    }
    g.pad_with(&pads, 0.0.into())
}

/// The elements of an axis `step` apart, zeros between and behind them.
fn spread(g: &Tensor, axis: usize, step: usize) -> Result<Tensor> {
    if step == 1 {
        return Ok(g.clone());
    }
    let shape = g.shape();
    let mut extents = shape.to_vec();
    extents[axis] *= step;
    let extents = Shape::new(&extents)?;
    if shape.rank() == MAX_RANK {
        // There is no room for an axis more.
        let (rows, columns) = (shape[..=axis].iter().product(), shape[axis + 1..].iter().product());
        return spread(&g.reshape_to(Shape::new(&[rows, columns])?)?, 0, step)?.reshape_to(extents);
    }
    let apart = g.try_unsqueeze(axis as isize + 1)?;
    let mut pads = vec![(0, 0); shape.rank() + 1];
    pads[axis + 1].1 = step - 1;
    apart.pad_with(&pads, 0.0.into())?.reshape_to(extents)
}

/// For every element the product of all others along `axes`, by its definition: quadratic, but right to
/// differentiate also where factors are zero.
fn products_of_others(x: &Tensor, axes: u8) -> Result<Tensor> {
    let shape = x.shape();
    let (mut order, reduced): (Vec<usize>, Vec<usize>) = (0..shape.rank()).partition(|k| axes >> k & 1 == 0);
    let count: usize = reduced.iter().map(|&k| shape[k]).product();
    order.extend(reduced);
    let moved = x.permute_order(&order)?;
    let rows = shape.numel() / count.max(1);
    let each =
        moved.reshape_to(Shape::of(&[rows, 1, count]))?.expand_to(Shape::new(&[rows, count, count])?)?;
    let own = with_device(x.device(), || Tensor::try_eye(count))?.try_eq(1.0)?.expand_to(each.shape())?;
    let others = own.try_where_(1.0, &each)?.reduce_mask(ReduceOp::Prod, 0b100)?;
    let mut back = vec![0; order.len()];
    for (k, &o) in order.iter().enumerate() {
        back[o] = k;
    }
    others.reshape_to(moved.shape())?.permute_order(&back)
}

/// Adds overlapping windows up: each place in the window is a shifted copy of the axis.
fn fold_windows(g: &Tensor, axis: usize, step: usize, dilation: usize, to: Shape) -> Result<Tensor> {
    let size = g.shape()[to.rank()];
    let mut total: Option<Tensor> = None;
    for place in 0..size {
        let part = g.try_select(-1, place as isize)?;
        let mut parts = vec![(0, 1); to.rank()];
        parts[axis] = (place * dilation, step);
        let part = unslice(&part, &parts, to)?;
        total = Some(match total {
            Some(sum) => sum.try_add(&part)?,
            None => part,
        });
    }
    Ok(total.unwrap_or_else(|| g.constant(0.0, to, g.dtype())))
}

/// A product's gradient: y / x, or the product of the others where exactly one factor is zero.
fn product(x: &Tensor, y: &Tensor, g: &Tensor, axes: u8) -> Result<Tensor> {
    let shape = x.shape();
    if crate::graph::is_grad_enabled() {
        return g.expand_to(shape)?.try_mul(&products_of_others(x, axes)?);
    }
    let zero = x.try_eq(0.0)?;
    let zeros = zero.try_to_dtype(x.dtype())?.reduce_mask(ReduceOp::Sum, axes)?.expand_to(shape)?;
    let filled = zero.try_where_(1.0, x)?;
    let others = filled.reduce_mask(ReduceOp::Prod, axes)?.expand_to(shape)?;
    let alone = zero.try_logical_and(&zeros.try_eq(1.0)?)?;
    let usual = y.expand_to(shape)?.try_div(&filled)?;
    let none = zeros.try_eq(0.0)?;
    let slope = alone.try_where_(&others, &none.try_where_(&usual, 0.0)?)?;
    g.expand_to(shape)?.try_mul(&slope)
}
