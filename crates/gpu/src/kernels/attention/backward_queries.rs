//! The gradients of queries and mask: a workgroup owns queries and goes through the keys they see.

use super::backward::Gradient;
use super::block::{Block, BlockMapping, Program};
use super::product::declare_sums;
use super::view::View;
use std::fmt::Write;

pub(super) fn program(g: &Gradient, block: &Block) -> Program {
    let (p, tiling) = (g.problem, block.tiling);
    let run = tiling.parts_at_once(&block.width, 1);
    let slices = block.width.count.div_ceil(run).max(1);
    let statements = Pass { block, gradient: g, run }.statements();
    let all = g.query_bindings();
    let spread = BlockMapping { tiles: p.queries.div_ceil(tiling.own), slices, heavy_last: true };
    block.program(spread, &statements, all)
}

struct Pass<'a> {
    block: &'a Block<'a>,
    gradient: &'a Gradient<'a>,
    /// Parts of the width in a slice.
    run: usize,
}

impl Pass<'_> {
    fn statements(&self) -> String {
        let (b, g, p) = (self.block, self.gradient, self.block.problem);
        let t = &b.tiling;
        let mut text: String = p.views().chain([&g.out, &g.grad, &g.lse]).map(View::start).collect();
        text += &g.statistics_of_rows(b);
        for r in 0..self.run.min(b.width.count) {
            text += &declare_sums(&format!("dq_{r}"), t.thread_rows, b.sum_quads(b.width));
        }
        text += &b.seen();
        if p.keys > 0 {
            text += &self.sweep();
        }
        text + &self.finish()
    }

    fn sweep(&self) -> String {
        let (b, g, p) = (self.block, self.gradient, self.block.problem);
        let t = &b.tiling;
        let mut text = format!("for (var other = 0u; other < seen; other += {}u) {{\n", t.other);
        text += &declare_sums("dp", t.thread_rows, t.thread_quads);
        text += &b.scores(b.value, &g.grad, &p.v, "dp");
        text += &declare_sums("s", t.thread_rows, t.thread_quads);
        text += &b.scores(b.width, &p.q, &p.k, "s");
        text += &b.finish_scores();
        for (i, n) in b.cells() {
            _ = writeln!(text, "s_{i}_{n} = exp(s_{i}_{n} - lse_{i}) * (dp_{i}_{n} - delta_{i});");
        }
        text += &b.hide("0.0");
        text += &g.mask_gradient(b);
        text += &b.write_weights("s");
        text += &b.weigh(b.width, self.run, &p.k, b.width.count == 1, "dq");
        text + "}\n" + &g.clear_mask_gradient(b)
    }

    fn finish(&self) -> String {
        let (b, p) = (self.block, self.block.problem);
        b.finish_sums(b.width, self.run, "dq", &self.gradient.dq, &p.scale)
    }
}
