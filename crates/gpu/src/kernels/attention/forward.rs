//! The forward pass: a workgroup owns queries and goes through the keys once, with a running maximum and sum
//! for every query.

use super::block::{Block, BlockMapping};
use super::output_lse::Packed;
use super::problem::Problem;
use super::product::declare_sums;
use super::tiling::Tiling;
use super::view::{View, bindings};
use crate::caps::Caps;
use crate::dispatch::Dispatch;
use std::fmt::Write;
use volta_ir::plan::kernel::Operand;

/// The smallest number: below every score that is not -inf.
pub(super) const LOWEST: &str = "-3.4028234e38";
/// No literal is infinite, and no constant expression may be.
pub(super) const HIDDEN: &str = "let hidden = bitcast<f32>(0xff800000u | (lane & 0u));\n";

pub(super) fn dispatch(p: &Problem, output: &Operand, tiling: Tiling, caps: &Caps) -> Dispatch {
    let block = Block::new(p, tiling, caps);
    let packed = Packed::new(p, output);
    let run = tiling.parts_at_once(&block.value, 1);
    let slices = block.value.count.div_ceil(run).max(1);
    let statements = Pass { block: &block, run, packed: &packed }.statements();
    let mut all = bindings(p.views());
    all.push(packed.binding());
    let spread = BlockMapping { tiles: p.queries.div_ceil(tiling.own), slices, heavy_last: true };
    block.dispatch(spread, block.memory(), &statements, all)
}

struct Pass<'a> {
    block: &'a Block<'a>,
    /// Parts of the values' width in a slice.
    run: usize,
    packed: &'a Packed,
}

impl Pass<'_> {
    fn statements(&self) -> String {
        let (b, p, t) = (self.block, self.block.problem, &self.block.tiling);
        let mut text: String = p.views().map(View::start).collect();
        for r in 0..self.run.min(b.value.count) {
            text += &declare_sums(&format!("o_{r}"), t.thread_rows, b.sum_quads(b.value));
        }
        for i in 0..t.thread_rows {
            _ = writeln!(text, "var peak_{i} = {LOWEST};\nvar total_{i} = 0.0;");
        }
        text += HIDDEN;
        text += &b.seen();
        text += &if p.keys == 0 {
            String::new()
        } else if t.ahead && b.width.count == 1 && b.value.count == 1 {
            self.sweep_ahead()
        } else {
            self.sweep()
        };
        text + &self.finish()
    }

    fn sweep(&self) -> String {
        let (b, p, t) = (self.block, self.block.problem, &self.block.tiling);
        format!(
            "for (var other = 0u; other < seen; other += {other}u) {{\n{sums}{scores}{softmax}{weigh}}}\n",
            other = t.other,
            sums = declare_sums("s", t.thread_rows, t.thread_quads),
            scores = b.scores(b.width, &p.q, &p.k, "s"),
            softmax = self.softmax() + &b.write_weights("s"),
            weigh = b.weigh(b.value, self.run, &p.v, false, "o"),
        )
    }

    /// The same where whole rows fit into workgroup memory: the queries stay there, and the keys and values
    /// of the next block are on their way while this one is multiplied.
    fn sweep_ahead(&self) -> String {
        let (b, p, t) = (self.block, self.block.problem, &self.block.tiling);
        let (own, keys, values) = (b.own_tile(b.width), b.other_tile(b.width), b.other_tile(b.value));
        format!(
            r"{declare_q}{fetch_q}{place_q}{declare_k}{declare_v}
{{
let other = 0u;
if (other < seen) {{
{fetch_k}}}
}}
for (var now = 0u; now < seen; now += {step}u) {{
workgroupBarrier();
{place_k}workgroupBarrier();
var other = now;
{fetch_v}{sums}{scores}{softmax}workgroupBarrier();
{place_v}{write}workgroupBarrier();
other += {step}u;
if (other < seen) {{
{fetch_k}}}
{weigh}}}
",
            step = t.other,
            declare_q = b.declare("own_next", &own, &p.q),
            fetch_q = b.fetch("own_next", &own, &p.q, "first", "0u"),
            place_q = b.place("own_next", &own, &p.q),
            declare_k = b.declare("key_next", &keys, &p.k),
            declare_v = b.declare("value_next", &values, &p.v),
            fetch_k = b.fetch("key_next", &keys, &p.k, "other", "0u"),
            place_k = b.place("key_next", &keys, &p.k),
            fetch_v = b.fetch("value_next", &values, &p.v, "other", "0u"),
            place_v = b.place("value_next", &values, &p.v),
            sums = declare_sums("s", t.thread_rows, t.thread_quads),
            scores = b.rows_by_rows(b.width, "s"),
            softmax = self.softmax(),
            write = b.write_weights("s"),
            weigh = b.weights_by_rows(b.value, "o_0"),
        )
    }

    /// Turns products into scores and those into weights, exp(score - largest so far), and brings the sums to
    /// the new largest score.
    fn softmax(&self) -> String {
        let (b, t) = (self.block, &self.block.tiling);
        let mut text = b.finish_scores();
        text += &b.hide("hidden");
        text += &b.tops();
        for i in 0..t.thread_rows {
            let top = format!("top_{i}");
            _ = writeln!(text, "{top} = max({top}, peak_{i});\nlet shrink_{i} = exp(peak_{i} - {top});");
            _ = writeln!(text, "peak_{i} = {top};\ntotal_{i} *= shrink_{i};");
            for n in 0..t.thread_quads {
                _ = writeln!(text, "s_{i}_{n} = exp(s_{i}_{n} - {top});");
                _ = writeln!(text, "total_{i} += dot(s_{i}_{n}, vec4<f32>(1.0));");
            }
            for r in 0..self.run.min(b.value.count) {
                for n in 0..b.sum_quads(b.value) {
                    _ = writeln!(text, "o_{r}_{i}_{n} *= shrink_{i};");
                }
            }
        }
        text
    }

    /// Divides by the sums. A query that saw nothing gives 0, and -inf as its log-sum-exp.
    fn finish(&self) -> String {
        let (b, p, t) = (self.block, self.block.problem, &self.block.tiling);
        let totals: Vec<String> = (0..t.thread_rows).map(|i| format!("total_{i}")).collect();
        let mut text = b.fold("sum", &totals);
        for (i, total) in totals.iter().enumerate() {
            let row = format!("row_{i}");
            _ = writeln!(text, "let {row} = first + down * {}u + {i}u;", t.thread_rows);
            _ = writeln!(text, "if ({row} < {}u) {{", p.queries);
            _ = writeln!(
                text,
                "let nothing = {total} == 0.0;\nlet part = 1.0 / select({total}, 1.0, nothing);"
            );
            for r in 0..self.run.min(b.value.count) {
                let start = b.part_start(b.value, self.run, r);
                for n in 0..b.sum_quads(b.value) {
                    let store = self.packed.rows.store_quad(
                        &row,
                        &format!("{start} + {}", b.column_quad(n)),
                        &format!("o_{r}_{i}_{n} * part"),
                    );
                    text += &b.if_column(b.value, n, &store);
                }
            }
            let store = self.packed.store_lse(&row, [&format!("peak_{i}"), total], "nothing");
            _ = writeln!(text, "if (across == 0u && slice == 0u) {{\n{store}}}\n}}");
        }
        text
    }
}
