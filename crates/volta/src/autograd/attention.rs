//! The gradients of attention, and the gradients of these.

use super::derivatives::Gradients;
use super::{BackwardOptions, enable_grad, is_grad_enabled, try_grad};
use crate::error::Result;
use crate::op::attention::PackedGradient;
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::attention::{Extents, kept_as, plain, unpack};
use crate::tensor::record::record;

/// What the weights of each query must be multiplied by where they are computed from its log-sum-exp, of (batch, heads,
/// queries, 1): in f32 that says nothing of how many keys share a row that a mask hides whole by a number like -1e9. Weights
/// stand in every gradient once, beside the gradient of the result, which is multiplied instead.
fn shares(e: &Extents, q: &Tensor, packed: &Tensor) -> Result<Tensor> {
    let each = kept_as(q.dtype(), true).1;
    let rows = e.heads() * e.queries * e.value_width;
    let kept = unpack(&packed.detach(), rows, Shape::of(&[e.batch[0], e.batch[1], e.queries, each]))?;
    kept.try_narrow(3, each - 1, 1)
}

/// The gradient of q, k or v in the flat gradients.
fn gradient_at(flat: &Tensor, place: &PackedGradient) -> Result<Tensor> {
    let shared = unpack(flat, place.start, place.shared())?;
    shared.try_select(2, place.which as isize)?.try_transpose(1, 2)
}

/// Gradients of the flash forward pass.
pub(super) fn gradients(
    sources: &[Tensor],
    packed: &Tensor,
    g: &Tensor,
    causal: bool,
    scale: f64,
) -> Result<Gradients> {
    let [q, k, v] = [&sources[0], &sources[1], &sources[2]];
    let mask = sources.get(3);
    let e = Extents::of(q, k, v);
    let mask_count = mask.map_or(0, |m| if m.is_tracked() { e.heads() * e.queries * e.keys } else { 0 });
    let places = PackedGradient::of([q, k, v].map(Tensor::shape));
    let behind = places[2].end();
    // Nobody sees the log-sum-exp: the gradient is that of the rows.
    let mut g = e.result(g)?;
    if mask.is_some() {
        g = g.try_mul(&shares(&e, q, packed)?.try_to_dtype(g.dtype())?)?;
    }
    let all: Vec<&Tensor> = [q, k, v, packed, &g].into_iter().chain(mask).collect();
    // The mask's gradient is as wide as the mask.
    let dtype = if mask_count > 0 { q.dtype().wide() } else { kept_as(q.dtype(), false).0 };
    let flat = record(
        Op::Native(NativeOp::AttentionGrad { causal, scale }),
        &all,
        Shape::new(&[behind + mask_count])?,
        dtype,
    )?;
    let mut out = Gradients::new();
    for place in &places {
        out.push(Some(gradient_at(&flat, place)?.cast(q.dtype())?));
    }
    if mask.is_some() {
        let scores = Shape::of(&[e.batch[0], e.batch[1], e.queries, e.keys]);
        out.push(if mask_count > 0 { Some(unpack(&flat, behind, scores)?) } else { None });
    }
    Ok(out)
}

/// Gradients of the gradients: by the plain formula, differentiated like any other.
pub(super) fn second_gradients(
    sources: &[Tensor],
    g: &Tensor,
    causal: bool,
    scale: f64,
) -> Result<Gradients> {
    let create_graph = is_grad_enabled();
    // q, k, v and perhaps the mask; the gradient of the result.
    let (inputs, upstream) = (sources[..3].iter().chain(sources.get(5)), &sources[4]);
    let inputs: Vec<Tensor> = inputs.map(Tensor::fresh_leaf).collect::<Result<_>>()?;
    let upstream = upstream.fresh_leaf()?;
    // It is what flows into the result, multiplied by the shares of its weights.
    let shares = match sources.get(5) {
        Some(_) => {
            let e = Extents::of(&sources[0], &sources[1], &sources[2]);
            Some(shares(&e, &sources[0], &sources[3])?.try_to_dtype(upstream.dtype())?)
        }
        None => None,
    };
    enable_grad(|| {
        // Scores of halves need f32, and so do masks.
        let wide = |t: &Tensor| t.try_to_dtype(t.dtype().wide());
        let (q, k, v) = (wide(&inputs[0])?, wide(&inputs[1])?, wide(&inputs[2])?);
        let forward =
            plain(&q, &k, &v, (inputs.get(3), causal, scale, 0.0))?.try_to_dtype(upstream.dtype())?;
        let all: Vec<&Tensor> = inputs.iter().collect();
        let once = BackwardOptions { retain_graph: true, create_graph: true };
        let flowing = match &shares {
            Some(shares) => upstream.try_div(shares)?,
            None => upstream.clone(),
        };
        let first = try_grad(&[&forward], &all, Some(&[&flowing]), once)?;
        // What `g` says of each; the mask's may be missing.
        let places = PackedGradient::of(std::array::from_fn(|k| inputs[k].shape()));
        let behind = places[2].end();
        let mut total = g.constant(0.0, Shape::of(&[]), g.dtype());
        for (k, (x, d)) in inputs.iter().zip(first).enumerate() {
            let Some(d) = d else { continue };
            let part = match places.get(k) {
                Some(place) => gradient_at(g, place)?,
                None if behind + x.numel() <= g.numel() => unpack(g, behind, x.shape())?,
                None => continue,
            };
            total = total.try_add(&d.try_mul(&part)?.try_sum()?)?;
        }
        let wanted: Vec<&Tensor> = all.into_iter().chain([&upstream]).collect();
        let twice = BackwardOptions { retain_graph: create_graph, create_graph };
        let mut found = try_grad(&[&total], &wanted, None, twice)?;
        let of_upstream = found.pop().flatten();
        let mut out: Gradients = found.drain(..3).collect();
        // The packed result is a function of q, k, v: its part is in theirs.
        out.push(None);
        out.push(of_upstream);
        out.extend(found);
        Ok(out)
    })
}
