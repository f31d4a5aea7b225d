//! Attention: softmax(scale · Q Kᵀ + mask) V and its gradient, in blocks, so that the matrix of scores is
//! never stored. Sums run in an order that the shapes alone fix.

mod backward;
mod backward_keys;
mod backward_queries;
mod block;
mod coop;
mod coop_backward;
mod coop_forward;
mod forward;
mod problem;
mod product;
mod score;
mod statistics;
mod tile;
pub(crate) mod tiling;
mod view;

use super::dispatch::{Caps, Lowered};
use crate::plan::kernel::{Special, SpecialKernel};
use backward::Gradient;
use problem::Problem;
use tiling::{Tiling, Tilings};

pub(crate) fn lower(kernel: &SpecialKernel, caps: &Caps) -> Lowered {
    lower_with(kernel, caps, &Tilings::default())
}

/// The same, with tilings other than those that are chosen.
pub(crate) fn lower_with(kernel: &SpecialKernel, caps: &Caps, tilings: &Tilings) -> Lowered {
    match kernel.special {
        Special::Attention { causal, scale } => {
            forward_pass(kernel, Problem::of(kernel, causal, scale, 3), caps, tilings)
        }
        Special::AttentionGrad { causal, scale } => {
            backward_pass(kernel, Problem::of(kernel, causal, scale, 5), caps, tilings)
        }
        ref other => unreachable!("{other:?} is not attention"),
    }
}

fn forward_pass(kernel: &SpecialKernel, p: Problem, caps: &Caps, tilings: &Tilings) -> Lowered {
    if p.items() * p.queries == 0 {
        return Lowered::default();
    }
    if let Some(tiling) = coop::choose(&p, caps).filter(|_| tilings.forward.is_none()) {
        let dispatches = vec![coop_forward::dispatch(&p, &kernel.output, tiling, caps)];
        return Lowered { dispatches, scratch: Vec::new() };
    }
    let widths = [p.width, p.value_width];
    let tiling = tilings.forward.unwrap_or_else(|| Tiling::forward(p.queries, widths, caps));
    let dispatches = vec![forward::dispatch(&p, &kernel.output, tiling, caps)];
    Lowered { dispatches, scratch: Vec::new() }
}

fn backward_pass(kernel: &SpecialKernel, p: Problem, caps: &Caps, tilings: &Tilings) -> Lowered {
    let g = Gradient::of(&p, kernel);
    if let Some(tiling) = coop::choose(&p, caps).filter(|_| tilings.queries.is_none()) {
        let dispatches =
            vec![coop_backward::queries(&g, tiling, caps), coop_backward::keys(&g, tiling, caps)];
        return Lowered { dispatches, scratch: vec![g.scratch()] };
    }
    let widths = [p.width, p.value_width];
    let mut dispatches = Vec::new();
    if p.items() * p.queries > 0 {
        let tiling = tilings.queries.unwrap_or_else(|| Tiling::backward(p.queries, widths, caps));
        dispatches.push(backward_queries::dispatch(&g, tiling, caps));
    }
    if p.items() * p.keys > 0 {
        let tiling = tilings.keys.unwrap_or_else(|| Tiling::backward(p.keys, widths, caps));
        dispatches.push(backward_keys::dispatch(&g, tiling, caps));
    }
    let scratch = if p.items() * p.queries > 0 { vec![g.scratch()] } else { Vec::new() };
    Lowered { dispatches, scratch }
}
