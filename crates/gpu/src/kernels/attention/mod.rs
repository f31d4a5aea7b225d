//! Attention: softmax(scale · Q Kᵀ + mask) V and its gradient, in blocks, so that the matrix of scores is
//! never stored; its gradient may be, of some heads at a time. Sums run in an order that the shapes alone fix.

mod backward;
mod backward_keys;
mod backward_queries;
mod block;
mod coop;
mod coop_backward;
mod coop_forward;
mod forward;
mod lse_delta;
mod online_exp;
mod operand_range;
mod output_lse;
pub(crate) mod problem;
mod product;
mod score;
mod stored_dscores;
mod tile;
mod tiling;
mod variant;
mod view;

use crate::caps::{COMPUTE_UNITS, Caps};
use crate::dispatch::Lowered;
use backward::Gradient;
use block::Block;
pub(crate) use operand_range::reach;
use problem::Problem;
use std::ops::Range;
use tiling::Tiling;
pub(crate) use variant::Variant;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::NativeKernel;

/// Queries of which all that keys need is soon found.
const MAX_QUERIES_PER_WORKGROUP_WALK: usize = 256;

/// The variants of it.
pub(crate) fn variants(kernel: &NativeKernel, caps: &Caps) -> Vec<Variant> {
    variant::all(&problem(kernel), is_forward(kernel), caps)
}

/// The dispatches, as the variant that is `wanted`, or else the one that suits it.
pub(crate) fn lower(kernel: &NativeKernel, caps: &Caps, wanted: Option<Variant>) -> Lowered {
    lower_items(kernel, caps, wanted, 0..items(kernel))
}

/// Matrices of scores.
pub(crate) fn items(kernel: &NativeKernel) -> usize {
    problem(kernel).items()
}

/// The same for some of the matrices of scores alone.
pub(crate) fn lower_items(
    kernel: &NativeKernel,
    caps: &Caps,
    wanted: Option<Variant>,
    only: Range<usize>,
) -> Lowered {
    let p = Problem { only, ..problem(kernel) };
    let coop = || coop::tilings(&p, caps).first().map(|&tiling| Variant::Coop(tiling));
    let variant = wanted.or_else(coop);
    if is_forward(kernel) {
        forward_pass(kernel, &p, caps, variant)
    } else {
        backward_pass(kernel, &p, caps, variant)
    }
}

pub(crate) fn is_forward(kernel: &NativeKernel) -> bool {
    matches!(kernel.op, NativeOp::Attention { .. })
}

pub(crate) fn problem(kernel: &NativeKernel) -> Problem {
    match kernel.op {
        NativeOp::Attention { causal, scale } => Problem::of(kernel, causal, scale, 3),
        NativeOp::AttentionGrad { causal, scale } => Problem::of(kernel, causal, scale, 5),
        ref other => unreachable!("{other:?} is not attention"),
    }
}

fn forward_pass(kernel: &NativeKernel, p: &Problem, caps: &Caps, variant: Option<Variant>) -> Lowered {
    if p.items() * p.queries == 0 {
        return Lowered::default();
    }
    let dispatch = match variant {
        Some(Variant::Coop(tiling)) => coop_forward::dispatch(&p.with_halves(), &kernel.output, tiling, caps),
        variant => {
            let chosen = || Tiling::forward(p.only.len(), p.queries, [p.width, p.value_width], caps);
            let tiling = variant.map_or_else(chosen, |variant| variant.tilings()[0]);
            forward::dispatch(p, &kernel.output, tiling, caps)
        }
    };
    Lowered { dispatches: vec![dispatch], scratch: Vec::new() }
}

fn backward_pass(kernel: &NativeKernel, p: &Problem, caps: &Caps, variant: Option<Variant>) -> Lowered {
    if let Some(Variant::Coop(tiling)) = variant {
        return coop_backward::lower(&p.with_halves(), kernel, tiling, caps);
    }
    let mut g = Gradient::of(p, kernel);
    let chosen = || [p.queries, p.keys].map(|rows| Tiling::backward(rows, [p.width, p.value_width], caps));
    let [of_queries, of_keys] =
        variant.map_or_else(chosen, |variant| variant.tilings()).map(|t| Block::new(p, t, caps));
    g.at_once = can_run_at_once(p, &of_queries, &of_keys, caps);
    if g.at_once {
        let programs = [backward_queries::program(&g, &of_queries), backward_keys::program(&g, &of_keys)];
        if programs.iter().map(|program| program.groups).sum::<usize>() <= COMPUTE_UNITS {
            let dispatch = of_keys.shader(of_keys.memory() + &Gradient::memory_of_sums(&of_keys), &programs);
            return Lowered { dispatches: vec![dispatch], scratch: Vec::new() };
        }
        g.at_once = false;
    }
    let mut dispatches = Vec::new();
    if p.items() * p.queries > 0 {
        dispatches
            .push(of_queries.shader(of_queries.memory(), &[backward_queries::program(&g, &of_queries)]));
    }
    if p.items() * p.keys > 0 {
        dispatches.push(of_keys.shader(of_keys.memory(), &[backward_keys::program(&g, &of_keys)]));
    }
    let scratch = if p.items() * p.queries > 0 { vec![g.scratch()] } else { Vec::new() };
    Lowered { dispatches, scratch }
}

/// Whether the gradients of queries and of keys need not wait for each other, since what keys need of queries is soon found
/// twice.
fn can_run_at_once(p: &Problem, queries: &Block, keys: &Block, caps: &Caps) -> bool {
    let (tiling, widths) = (keys.tiling, [p.width, p.value_width]);
    let bytes = tiling.bytes(widths, caps) + Gradient::bytes_of_sums(keys);
    queries.tiling == tiling
        && (1..=MAX_QUERIES_PER_WORKGROUP_WALK).contains(&p.queries)
        && p.keys > 0
        && tiling.threads() >= tiling.other
        && bytes <= caps.workgroup_bytes as usize
}
