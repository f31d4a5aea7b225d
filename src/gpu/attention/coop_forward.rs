//! The forward pass by cooperative matrices. The weights are exp(score - peak) for a peak that follows the
//! largest score only when it lags far behind, for the sums, which no thread sees a row of, must then be
//! brought to it.

use super::block::Spread;
use super::coop::{Carried, Coop, Sweep};
use super::forward::{HIDDEN, LOWEST};
use super::problem::Problem;
use super::tiling::Tiling;
use super::view::{Piece, View, bindings, result};
use crate::gpu::dispatch::{Caps, Dispatch};
use crate::plan::kernel::Operand;
use std::fmt::Write;

/// How far a peak may lag behind: f16 holds exp(8) with room to spare.
const LAG: &str = "8.0";

pub(super) fn dispatch(p: &Problem, output: &Operand, tiling: Tiling, caps: &Caps) -> Dispatch {
    let coop = Coop::new(p, tiling, caps);
    let start = output.offset as usize;
    let out = Piece::new("result", start, p.queries, p.value_width);
    let lse = Piece::new("result", start + p.items() * p.queries * p.value_width, p.queries, 1);
    let mut all = bindings(p.views());
    all.push(result(output.dtype, &[&out]));
    let spread = Spread { tiles: p.queries.div_ceil(tiling.own), slices: 1, heavy_last: true };
    coop.block.dispatch(spread, coop.memory(), &statements(&coop, &out, &lse), all)
}

fn statements(coop: &Coop, out: &Piece, lse: &Piece) -> String {
    let (b, p) = (&coop.block, coop.block.problem);
    let (keys, values) = (coop.tile("near", b.width), coop.tile("far", b.value));
    let mut text: String = p.views().map(View::start).collect();
    text += HIDDEN;
    text += &coop.names();
    text += &b.seen();
    text += &coop.own(b.width, &p.q, "query");
    text += &coop.declare(b.value, "o");
    _ = writeln!(text, "var peak = {LOWEST};\nvar total = 0.0;");
    let mut body = coop.rows_by_rows(b.width, "query", &keys);
    body += "workgroupBarrier();\n";
    body += &coop.take("s");
    body += &b.finish_scores();
    body += &b.hide("hidden");
    body += &b.tops();
    _ = writeln!(
        body,
        r"let grows = top_0 > peak + {LAG};
let shrink = select(1.0, exp(peak - top_0), grows);
peak = select(peak, top_0, grows);
total *= shrink;
let any_grows = subgroupAny(grows && other > 0u);
if (lane % 32u == 0u) {{ grown[lane / 32u] = u32(any_grows); }}"
    );
    for n in 0..b.tiling.thread_quads {
        _ = writeln!(body, "s_0_{n} = exp(s_0_{n} - peak);\ntotal += dot(s_0_{n}, vec4<f32>(1.0));");
    }
    body += &coop.write_weights("s");
    body += "let all_grown = workgroupUniformLoad(&grown);\n";
    // Nothing but this may decide: control flow has to be uniform by naga's rules.
    body += "if ((all_grown[0] | all_grown[1] | all_grown[2] | all_grown[3]) != 0u) {\n";
    body += &coop.scale_rows(b.value, "o", "shrink");
    body += "}\n";
    body += &coop.weights_by_rows(b.value, &values, "o");
    let (near, far) = ((b.width, &p.k), (b.value, &p.v));
    text += &coop.sweep(Sweep { start: "0u", end: "seen", near, far, more: Carried::default() }, &body);
    text += &b.fold("sum", &["total".to_string()]);
    text += "let nothing = total == 0.0;\nlet part = 1.0 / select(total, 1.0, nothing);\n";
    text += "workgroupBarrier();\n";
    text += &coop.finish(b.value, "o", out, "part");
    let at = lse.at("(first + lane / 2u)", "0u");
    _ = writeln!(
        text,
        r"if (lane % 2u == 0u && first + lane / 2u < {}u) {{
store_result({at}, select(peak + log(total), hidden, nothing));
}}",
        p.queries
    );
    text
}
