//! The backward pass by cooperative matrices: the same two dispatches as without, or, where the gradients of scores can
//! be kept, one for what is known of every query, and two for every part of the matrices of scores.

use super::backward::Gradient;
use super::block::BlockMapping;
use super::coop::Coop;
use super::online_exp::Exponent;
use super::problem::Problem;
use super::stored_dscores::{self, StoredScoreGradients};
use super::tiling::Tiling;
use super::view::View;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, Lowered};
use std::fmt::Write;
use volta_ir::plan::kernel::NativeKernel;

pub(super) fn lower(p: &Problem, kernel: &NativeKernel, tiling: Tiling, caps: &Caps) -> Lowered {
    if !Caps::KNOWS_COOPERATIVE {
        unreachable!("asked for where there are cooperative matrices");
    }
    let g = Gradient::of(p, kernel);
    let Some(items) = stored_dscores::items_at_once(&g, tiling) else {
        let of_keys = Gradient { grad: g.grad.of_halves(), ..Gradient::of(p, kernel) };
        let dispatches = vec![queries(&g, tiling, caps), keys(&of_keys, tiling, caps, None)];
        return Lowered { dispatches, scratch: vec![g.scratch()] };
    };
    let mut dispatches = vec![stored_dscores::statistics(&g, caps)];
    let mut scratch = vec![g.scratch(), 0];
    for first in p.only.clone().step_by(items) {
        let part = Problem { only: first..p.only.end.min(first + items), ..p.clone() };
        let g = Gradient { grad: g.grad.of_halves(), ..Gradient::of(&part, kernel) };
        let kept = StoredScoreGradients::new(&part, tiling);
        dispatches.extend([keys(&g, tiling, caps, Some(&kept)), kept.queries(&g, caps)]);
        scratch[1] = scratch[1].max(kept.bytes());
    }
    Lowered { dispatches, scratch }
}

/// The gradients of queries and mask.
fn queries(g: &Gradient, tiling: Tiling, caps: &Caps) -> Dispatch {
    let p = g.problem;
    let coop = Coop::new(p, tiling, caps);
    let b = &coop.block;
    let exponent = Exponent::of(p);
    let (keys, values) = (coop.near(b.width), coop.far(b.value));
    let mut text: String = p.views().chain([&g.out, &g.grad, &g.lse]).map(View::start).collect();
    text += &coop.names();
    text += &g.statistics_of_rows(b);
    _ = writeln!(text, "let level = {};", exponent.level_of_lse("lse_0"));
    text += &b.seen();
    text += &coop.own(b.width, &p.q, "query");
    text += &coop.own(b.value, &g.grad, "upstream_row");
    text += &coop.declare(b.width, "dq");
    let mut body = coop.rows_by_rows(b.width, "query", &keys);
    body += "workgroupBarrier();\n";
    body += &coop.take("s");
    body += "workgroupBarrier();\n";
    body += &coop.rows_by_rows(b.value, "upstream_row", &values);
    body += &exponent.scores(b.finish_scores());
    body += "workgroupBarrier();\n";
    body += &coop.take("dp");
    for (i, n) in b.cells() {
        let weight = exponent.weight(&format!("s_{i}_{n}"), "vec4<f32>(level)", true);
        _ = writeln!(body, "s_{i}_{n} = {weight} * (dp_{i}_{n} - delta_{i});");
    }
    body += &b.hide("0.0");
    body += &g.mask_gradient(b);
    body += &coop.write_weights("s");
    body += "workgroupBarrier();\n";
    body += &coop.weights_by_rows(b.width, &keys, "dq");
    let carried = coop.rows("near_next", &keys, &p.k) + coop.rows("far_next", &values, &p.v);
    text += &coop.sweep(["0u", "seen"], &[carried], &body);
    text += &g.clear_mask_gradient(b);
    text += "workgroupBarrier();\n";
    text += &coop.finish(b.width, "dq", &g.dq, &p.scale);
    let spread = BlockMapping { tiles: p.queries.div_ceil(tiling.own), slices: 1, heavy_last: true };
    b.dispatch(spread, coop.memory(), &text, g.query_bindings())
}

/// The gradients of keys and values, and of the scores where they are kept.
fn keys(g: &Gradient, tiling: Tiling, caps: &Caps, kept: Option<&StoredScoreGradients>) -> Dispatch {
    let p = g.problem;
    let coop = Coop::new(p, tiling, caps);
    let b = &coop.block;
    let exponent = Exponent::of(p);
    let (queries, grads) = (coop.near(b.width), coop.far(b.value));
    let mut text: String = p.views().chain([&g.grad]).map(View::start).collect();
    text += &coop.names();
    text += &coop.own(b.width, &p.k, "key");
    text += &coop.own(b.value, &p.v, "value");
    text += &coop.declare(b.width, "dk");
    text += &coop.declare(b.value, "dv");
    let start = if p.causal { format!("first / {0}u * {0}u", b.tiling.other) } else { "0u".to_string() };
    let mut body = g.placed_statistics(&coop);
    body += &coop.rows_by_rows(b.width, "key", &queries);
    body += "workgroupBarrier();\n";
    body += &coop.take("s");
    body += &exponent.scores(b.finish_turned_scores());
    for (i, n) in b.cells() {
        let weight = exponent.weight(&format!("s_{i}_{n}"), &format!("level_{n}"), true);
        _ = writeln!(body, "s_{i}_{n} = {weight};");
    }
    body += &b.hide_turned("0.0");
    body += &coop.write_weights("s");
    body += "workgroupBarrier();\n";
    body += &coop.weights_by_rows(b.value, &grads, "dv");
    body += &coop.rows_by_rows(b.value, "value", &grads);
    body += "workgroupBarrier();\n";
    body += &coop.take("dp");
    for (i, n) in b.cells() {
        _ = writeln!(body, "s_{i}_{n} *= dp_{i}_{n} - delta_{n};");
    }
    if let Some(kept) = kept {
        body += &kept.keep(b, "s");
    }
    body += &coop.write_weights("s");
    body += "workgroupBarrier();\n";
    body += &coop.weights_by_rows(b.width, &queries, "dk");
    let carried = coop.rows("near_next", &queries, &p.q)
        + coop.rows("far_next", &grads, &g.grad)
        + g.carried_statistics(&coop, &exponent);
    text += &coop.sweep([&start, &format!("{}u", p.queries)], &[carried], &body);
    text += "workgroupBarrier();\n";
    text += &coop.finish(b.width, "dk", &g.dk, &p.scale);
    text += &coop.finish(b.value, "dv", &g.dv, "1.0");
    let spread = BlockMapping { tiles: p.keys.div_ceil(tiling.own), slices: 1, heavy_last: false };
    let mut bindings = g.key_bindings();
    bindings.extend(kept.map(|kept| kept.binding(true)));
    b.dispatch(spread, coop.memory(), &text, bindings)
}
