//! The forward pass by cooperative matrices. The weights are exp(score - peak) for a peak that follows the
//! largest score only when it lags far behind, for the sums, which no thread sees a row of, must then be
//! brought to it.
//!
//! An iteration multiplies the weights of the block before and their values, and then the queries and the keys of
//! its own block: between them they take as long as the next keys and values need to arrive.

use super::block::BlockMapping;
use super::coop::Coop;
use super::forward::{HIDDEN, LOWEST};
use super::online_exp::Exponent;
use super::output_lse::Packed;
use super::problem::Problem;
use super::tile::Tile;
use super::tiling::Tiling;
use super::view::{View, bindings};
use crate::caps::Caps;
use crate::dispatch::Dispatch;
use std::fmt::Write;
use volta_ir::plan::kernel::Operand;

pub(super) fn dispatch(p: &Problem, output: &Operand, tiling: Tiling, caps: &Caps) -> Dispatch {
    if !Caps::KNOWS_COOPERATIVE {
        unreachable!("asked for where there are cooperative matrices");
    }
    let coop = Coop::new(p, tiling, caps);
    let packed = Packed::new(p, output);
    let mut all = bindings(p.views());
    all.push(packed.binding());
    let spread = BlockMapping { tiles: p.queries.div_ceil(tiling.own), slices: 1, heavy_last: true };
    let (keys, values) = (coop.near(coop.block.width), coop.far(coop.block.value));
    let pass = Pass { coop: &coop, exponent: Exponent::of(p), keys, values };
    coop.block.dispatch(spread, coop.memory(), &pass.statements(&packed), all)
}

struct Pass<'a> {
    coop: &'a Coop<'a>,
    exponent: Exponent,
    keys: Tile,
    values: Tile,
}

impl Pass<'_> {
    fn statements(&self, packed: &Packed) -> String {
        let (coop, b, p) = (self.coop, &self.coop.block, self.coop.block.problem);
        let mut text: String = p.views().map(View::start).collect();
        text += HIDDEN;
        text += &coop.names();
        text += &b.seen();
        text += &coop.own(b.width, &p.q, "query");
        text += &coop.declare(b.value, "o");
        _ = writeln!(text, "var peak = {LOWEST};\nvar total = 0.0;\nvar shrink = 1.0;");
        text += "workgroupBarrier();\n{\n";
        text += &b.declare("key_next", &self.keys, &p.k);
        text += &b.fetch("key_next", &self.keys, &p.k, "0u", "0u");
        text += &b.place("key_next", &self.keys, &p.k);
        text += "}\nworkgroupBarrier();\n";
        _ = writeln!(text, "{{\nlet other = 0u;\n{}}}", self.turn(["", ""]));
        let [rescale, products] = [self.rescale(), coop.weights_by_rows(b.value, &self.values, "o")];
        let step = b.tiling.other;
        _ = writeln!(
            text,
            "for (var other = {step}u; other < seen; other += {step}u) {{\n{}}}",
            self.turn([&rescale, &products])
        );
        text += &rescale;
        text += &products;
        text += &b.fold("sum", &["total".to_string()]);
        text += "let nothing = total == 0.0;\nlet part = 1.0 / select(total, 1.0, nothing);\n";
        text += "workgroupBarrier();\n";
        text += &coop.finish(b.value, "o", &packed.rows, "part");
        let peak = self.exponent.natural("peak");
        let store = packed.store_lse("(first + lane / 2u)", [&peak, "total"], "nothing");
        _ = writeln!(text, "if (lane % 2u == 0u && first + lane / 2u < {}u) {{\n{store}}}", p.queries);
        text
    }

    /// The weights of block `other`, whose keys are there; then the next keys are, and the block's values. What is left
    /// to do for the block before is to `rescale` its sums and to add its `products`.
    fn turn(&self, [rescale, products]: [&str; 2]) -> String {
        let (coop, b, p) = (self.coop, &self.coop.block, self.coop.block.problem);
        let (step, exponent) = (b.tiling.other, &self.exponent);
        let mut text = rescale.to_string();
        text += &b.declare("key_next", &self.keys, &p.k);
        text += &b.declare("value_next", &self.values, &p.v);
        // At the end the last keys are read once more: a branch around loads would cost more.
        _ = writeln!(text, "let next = select(other, other + {step}u, other + {step}u < seen);");
        text += &b.fetch("key_next", &self.keys, &p.k, "next", "0u");
        text += &b.fetch("value_next", &self.values, &p.v, "other", "0u");
        text += products;
        text += &coop.rows_by_rows(b.width, "query", &self.keys);
        text += "workgroupBarrier();\n";
        text += &b.place("key_next", &self.keys, &p.k);
        text += &b.place("value_next", &self.values, &p.v);
        text += &coop.take("s");
        text += &exponent.scores(b.finish_scores());
        text += &b.hide("hidden");
        text += &b.tops();
        _ = writeln!(
            text,
            r"let grows = top_0 > peak + {lag};
shrink = select(1.0, {shrunk}, grows);
peak = select(peak, top_0, grows);
total *= shrink;
let any_grows = subgroupAny(grows && other > 0u);
if (lane % 32u == 0u) {{ {flags}[lane / 32u] = select(0.0, 1.0, any_grows); }}
let level = {level};",
            lag = exponent.lag(),
            shrunk = exponent.weight("peak", &exponent.level_of_score("top_0"), false),
            flags = coop.aside("0u"),
            level = exponent.level_of_score("peak"),
        );
        for n in 0..b.tiling.thread_quads {
            let weight = exponent.weight(&format!("s_0_{n}"), "vec4<f32>(level)", true);
            _ = writeln!(text, "s_0_{n} = {weight};\ntotal += dot(s_0_{n}, vec4<f32>(1.0));");
        }
        text + &coop.write_weights("s")
    }

    /// Brings the sums to the peak if it has moved. All have then written their weights.
    fn rescale(&self) -> String {
        // Nothing but this may decide: control flow has to be uniform by naga's rules.
        let mut text =
            format!("if (any(workgroupUniformLoad(&{}) > vec4<f32>(0.0))) {{\n", self.coop.aside("0u"));
        text += &self.coop.scale_rows(self.coop.block.value, "o", "shrink");
        text + "}\n"
    }
}
