//! The backward pass by cooperative matrices: the same two dispatches as without.

use super::backward::Gradient;
use super::block::Spread;
use super::coop::Coop;
use super::tiling::Tiling;
use super::view::View;
use crate::gpu::dispatch::{Caps, Dispatch};
use std::fmt::Write;

/// The gradients of queries and mask.
pub(super) fn queries(g: &Gradient, tiling: Tiling, caps: &Caps) -> Dispatch {
    let p = g.problem;
    let coop = Coop::new(p, tiling, caps);
    let b = &coop.block;
    let (keys, values) = (coop.tile("near", b.width), coop.tile("far", b.value));
    let mut text: String = p.views().chain([&g.out, &g.grad, &g.lse, &g.grad_lse]).map(View::start).collect();
    text += &coop.names();
    text += &g.statistics_of_rows(b);
    text += &b.seen();
    text += &coop.own(b.width, &p.q, "query");
    text += &coop.own(b.value, &g.grad, "upstream_row");
    text += &coop.declare(b.width, "dq");
    _ = writeln!(text, "for (var other = 0u; other < seen; other += {}u) {{", b.tiling.other);
    text += &coop.bring((b.width, &p.k), (b.value, &p.v));
    text += &coop.rows_by_rows(b.width, "query", &keys);
    text += "workgroupBarrier();\n";
    text += &coop.take("s");
    text += "workgroupBarrier();\n";
    text += &coop.rows_by_rows(b.value, "upstream_row", &values);
    text += &b.finish_scores();
    text += "workgroupBarrier();\n";
    text += &coop.take("dp");
    for (i, n) in b.cells() {
        _ = writeln!(text, "s_{i}_{n} = exp(s_{i}_{n} - lse_{i}) * (dp_{i}_{n} - delta_{i});");
    }
    text += &b.hide("0.0");
    text += &g.mask_gradient(b);
    text += &coop.write_weights("s");
    text += "workgroupBarrier();\n";
    text += &coop.weights_by_rows(b.width, &keys, "dq");
    text += "}\n";
    text += &g.clear_mask_gradient(b);
    text += "workgroupBarrier();\n";
    text += &coop.finish(b.width, "dq", &g.dq, &p.scale);
    let spread = Spread { tiles: p.queries.div_ceil(tiling.own), slices: 1, heavy_last: true };
    b.dispatch(spread, coop.memory(), &text, g.query_bindings())
}

/// The gradients of keys and values.
pub(super) fn keys(g: &Gradient, tiling: Tiling, caps: &Caps) -> Dispatch {
    let p = g.problem;
    let coop = Coop::new(p, tiling, caps);
    let b = &coop.block;
    let (queries, grads) = (coop.tile("near", b.width), coop.tile("far", b.value));
    let mut text: String = p.views().chain([&g.grad]).map(View::start).collect();
    text += &coop.names();
    text += &coop.own(b.width, &p.k, "key");
    text += &coop.own(b.value, &p.v, "value");
    text += &coop.declare(b.width, "dk");
    text += &coop.declare(b.value, "dv");
    let start = if p.causal { format!("first / {0}u * {0}u", b.tiling.other) } else { "0u".to_string() };
    _ = writeln!(text, "for (var other = {start}; other < {}u; other += {}u) {{", p.queries, b.tiling.other);
    text += &g.statistics_of_columns(b);
    text += &coop.bring((b.width, &p.q), (b.value, &g.grad));
    text += &coop.rows_by_rows(b.width, "key", &queries);
    text += "workgroupBarrier();\n";
    text += &coop.take("s");
    text += &b.finish_turned_scores();
    for (i, n) in b.cells() {
        _ = writeln!(text, "s_{i}_{n} = exp(s_{i}_{n} - lse_{n});");
    }
    text += &b.hide_turned("0.0");
    text += &coop.write_weights("s");
    text += "workgroupBarrier();\n";
    text += &coop.weights_by_rows(b.value, &grads, "dv");
    text += &coop.rows_by_rows(b.value, "value", &grads);
    text += "workgroupBarrier();\n";
    text += &coop.take("dp");
    for (i, n) in b.cells() {
        _ = writeln!(text, "s_{i}_{n} *= dp_{i}_{n} - delta_{n};");
    }
    text += &coop.write_weights("s");
    text += "workgroupBarrier();\n";
    text += &coop.weights_by_rows(b.width, &queries, "dk");
    text += "}\n";
    text += "workgroupBarrier();\n";
    text += &coop.finish(b.width, "dk", &g.dk, &p.scale);
    text += &coop.finish(b.value, "dv", &g.dv, "1.0");
    let spread = Spread { tiles: p.keys.div_ceil(tiling.own), slices: 1, heavy_last: false };
    b.dispatch(spread, coop.memory(), &text, g.key_bindings())
}
