//! The gradients of keys and values: a workgroup owns keys and goes through the queries that see them.

use super::backward::Gradient;
use super::block::{Block, BlockMapping, Program};
use super::product::declare_sums;
use super::view::View;
use std::fmt::Write;

pub(super) fn program(g: &Gradient, block: &Block) -> Program {
    let (p, tiling) = (g.problem, block.tiling);
    let runs = [&block.width, &block.value].map(|parts| tiling.parts_at_once(parts, 2));
    let slices = block.width.count.div_ceil(runs[0]).max(block.value.count.div_ceil(runs[1])).max(1);
    let statements = Pass { block, gradient: g, runs }.statements();
    let all = g.key_bindings();
    let spread = BlockMapping { tiles: p.keys.div_ceil(tiling.own), slices, heavy_last: false };
    block.program(spread, &statements, all)
}

struct Pass<'a> {
    block: &'a Block<'a>,
    gradient: &'a Gradient<'a>,
    /// Parts of the width and of the values' width in a slice.
    runs: [usize; 2],
}

impl Pass<'_> {
    fn statements(&self) -> String {
        let (b, g, p) = (self.block, self.gradient, self.block.problem);
        let t = &b.tiling;
        let mut text: String = p.views().chain(g.seen_by_keys()).map(View::start).collect();
        for (parts, run, name) in [(b.width, self.runs[0], "dk"), (b.value, self.runs[1], "dv")] {
            for r in 0..run.min(parts.count) {
                text += &declare_sums(&format!("{name}_{r}"), t.thread_rows, b.sum_quads(parts));
            }
        }
        if p.queries > 0 {
            text += &self.sweep();
        }
        text += &b.finish_sums(b.width, self.runs[0], "dk", &g.dk, &p.scale);
        text + &b.finish_sums(b.value, self.runs[1], "dv", &g.dv, "1.0")
    }

    fn sweep(&self) -> String {
        let (b, g, p) = (self.block, self.gradient, self.block.problem);
        let t = &b.tiling;
        let start = if p.causal { format!("first / {0}u * {0}u", t.other) } else { "0u".to_string() };
        let mut text =
            format!("for (var other = {start}; other < {}u; other += {}u) {{\n", p.queries, t.other);
        text += &g.statistics_of_columns(b);
        text += &declare_sums("s", t.thread_rows, t.thread_quads);
        text += &b.scores(b.width, &p.k, &p.q, "s");
        text += &b.finish_turned_scores();
        for (i, n) in b.cells() {
            _ = writeln!(text, "s_{i}_{n} = exp(s_{i}_{n} - lse_{n});");
        }
        text += &b.hide_turned("0.0");
        text += &declare_sums("dp", t.thread_rows, t.thread_quads);
        text += &b.scores(b.value, &p.v, &g.grad, "dp");
        text += &b.write_weights("s");
        text += &b.weigh(b.value, self.runs[1], &g.grad, b.value.count == 1, "dv");
        for (i, n) in b.cells() {
            _ = writeln!(text, "s_{i}_{n} *= dp_{i}_{n} - delta_{n};");
        }
        text += "workgroupBarrier();\n";
        text += &b.write_weights("s");
        text += &b.weigh(b.width, self.runs[0], &p.q, false, "dk");
        text + "}\n"
    }
}
