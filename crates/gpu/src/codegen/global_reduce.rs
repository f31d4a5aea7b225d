//! Folds over all rows: by the workgroup that folds the rows, if there is one, or else by a dispatch of its own.

use super::MapDispatch;
use super::code::{Name, Writer};
use super::expression as expr;
use super::reduce::{Reduce, Shader, lane_dtype};
use super::thread_group::Shared;
use crate::dispatch::{ComputeType, Memory};
use volta_ir::dtype::DType;
use volta_ir::op::ReduceOp;
use volta_ir::plan::kernel::{LoopLevel, Step, Value};

impl Reduce<'_> {
    /// Folds over all rows.
    pub fn totals(&self) -> Vec<Value> {
        let code = &self.kernel.code;
        (0..code.len()).filter(|&v| matches!(code[v].step, Step::GlobalReduce(..))).collect()
    }

    /// Folds rows: those of the workgroup, and if there is only one, that is all.
    pub fn fold_rows(&self, w: &mut Writer, shared: &mut Shared, first_total: usize) {
        let totals = self.totals();
        if totals.is_empty() {
            // What is the same everywhere may still be stored once.
            if self.kernel.stores.iter().any(|s| self.kernel.code[s.value].rank == LoopLevel::Global) {
                w.line("if (group == 0u) {");
                self.total_code(w);
                w.line("}");
            }
            return;
        }
        let whole = self.layout.team.whole();
        for (k, &v) in totals.iter().enumerate() {
            let (op, of, dtype) = self.total(v);
            let mut value = w.operand(of, false);
            if self.layout.team.four_rows {
                // What is the same for all four counts four times.
                let wide = w.names[of].as_ref().is_some_and(|name| name.wide);
                let row = |lane: &str| if wide { format!("{value}.{lane}") } else { value.clone() };
                let pair = |a: &str, b: &str| expr::combine(op, &row(a), &row(b), dtype, false);
                value = expr::combine(op, &pair("x", "y"), &pair("z", "w"), dtype, false);
            }
            if self.layout.rows_at_once == 1 {
                // Everybody knows what there is of it.
                w.line(format!("let total{v} = {value};"));
            } else {
                let own = format!("select({}, {value}, live && part == 0u)", expr::identity(op, dtype));
                whole.fold(&mut w.text, shared, (op, dtype), &own, &format!("total{v}"), "lane");
            }
            if self.row_groups() > 1 {
                let name = w.slots.write_memory(Memory::Scratch(first_total + k), lane_dtype(dtype));
                w.line(format!("if (lane == 0u) {{ store_{name}(group, total{v}); }}"));
            }
        }
        if self.row_groups() == 1 {
            self.total_code(w);
        }
    }

    fn total(&self, v: Value) -> (ReduceOp, Value, DType) {
        match self.kernel.code[v].step {
            Step::GlobalReduce(op, of) => (op, of, self.kernel.code[v].dtype),
            _ => unreachable!("a fold of rows"),
        }
    }

    /// What is computed once, after all rows.
    fn total_code(&self, w: &mut Writer) {
        for v in self.by_rank(LoopLevel::Global) {
            match self.kernel.code[v].step {
                Step::GlobalReduce(..) => {
                    let dtype = self.kernel.code[v].dtype;
                    let value = expr::rounded(format!("total{v}"), dtype, false);
                    w.line(format!("let v{v} = {value};"));
                    w.names[v] = Some(Name { text: format!("v{v}"), wide: false });
                }
                _ => w.compute(v),
            }
        }
        w.line("if (lane == 0u) {");
        for store in self.kernel.stores.iter().filter(|s| self.kernel.code[s.value].rank == LoopLevel::Global)
        {
            w.store(store.value, &store.access);
        }
        w.line("}");
    }

    /// The dispatch of one workgroup that folds the parts of all others.
    pub fn finish_totals(&self, first_total: usize) -> MapDispatch {
        let groups = self.row_groups();
        let mut shader = Shader::default();
        let mut shared = Shared::default();
        let mut w = self.writer(&mut shader, String::new());
        for v in self.by_rank(LoopLevel::Uniform) {
            w.compute(v);
        }
        w.indices = vec!["0u".to_string(); self.kernel.outer];
        let team = self.layout.team.whole();
        for (k, v) in self.totals().into_iter().enumerate() {
            let (op, _, dtype) = self.total(v);
            let name = w.slots.read_memory(Memory::Scratch(first_total + k), lane_dtype(dtype));
            let t = ComputeType::of(dtype).scalar();
            w.line(format!("var part{v}: {t} = {};", expr::identity(op, dtype)));
            w.line(format!("for (var e = lane; e < {groups}u; e += {}u) {{", team.group));
            let sum = expr::combine(op, &format!("part{v}"), &format!("load_{name}(e)"), dtype, false);
            w.line(format!("part{v} = {sum};\n}}"));
            team.fold(
                &mut w.text,
                &mut shared,
                (op, dtype),
                &format!("part{v}"),
                &format!("total{v}"),
                "lane",
            );
        }
        self.total_code(&mut w);
        let text = w.text;
        shader.shared = shared;
        shader.finish(&text, &self.layout, 1)
    }
}
