//! Few long rows: workgroups fold parts of them, and whoever goes on with the rows folds these.

use super::MapDispatch;
use super::code::{Name, Writer};
use super::expression as expr;
use super::reduce::{Reduce, Shader, lane_dtype};
use super::reduce_schedule::ReduceSchedule;
use super::thread_group::{NOWHERE, Shared, better};
use crate::codegen::storage_type::suffix;
use crate::dispatch::{ComputeType, Memory};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{LoopLevel, Step};

/// The most parts of a row that an invocation folds without a loop.
const MAX_ITERATIONS: usize = 32;

impl Reduce<'_> {
    /// The dispatch in which several workgroups share a row: each leaves its part in scratch memory.
    pub fn split(&self) -> MapDispatch {
        let ReduceSchedule { width, splits, team, wide, .. } = self.layout;
        let unit = team.parts as usize * if wide && !team.four_rows { 4 } else { 1 };
        let length = width.div_ceil(splits).next_multiple_of(unit);
        let mut shader = Shader::default();
        let mut shared = Shared::default();
        let mut w = self.writer(&mut shader, String::new());
        for v in self.by_rank(LoopLevel::Uniform) {
            w.compute(v);
        }
        w.line(format!("let row_group = group / {splits}u;\nlet split = group % {splits}u;"));
        self.place(&mut w, "row_group");
        self.row_values(&mut w, 0);
        w.line(format!("let begin = split * {length}u;\nlet end = min(begin + {length}u, {width}u);"));
        self.stage(&mut w, &mut shared, 0, Some(("begin", "end")));
        w.line("if (live && part == 0u) {");
        let mut scratch = 0;
        for v in self.folds_of_stage(0) {
            let dtype = lane_dtype(self.fold_dtype(v));
            let arg = matches!(self.kernel.code[v].step, Step::ArgReduce { .. });
            let name = w.slots.write_memory(Memory::Scratch(scratch), dtype);
            let value = if arg { format!("best_{v}") } else { format!("whole{v}") };
            if team.four_rows {
                w.slots.widen_memory(Memory::Scratch(scratch));
            }
            let four = suffix(team.four_rows);
            w.line(format!("store{four}_{name}({}, {value});", self.partial_at("split")));
            scratch += 1;
            if arg {
                let name = w.slots.write_memory(Memory::Scratch(scratch), DType::U32);
                w.line(format!("store_{name}({}, at_{v});", self.partial_at("split")));
                scratch += 1;
            }
        }
        w.line("}");
        let text = w.text;
        shader.shared = shared;
        shader.finish(&text, &self.layout, self.row_groups() * splits)
    }

    /// Where the part of workgroup `split` stands: four rows are written at once, so that they lie side by side.
    fn partial_at(&self, split: &str) -> String {
        let ReduceSchedule { rows, splits, team, .. } = &self.layout;
        if team.four_rows {
            format!("({split}) * {rows}u + row")
        } else {
            format!("row * {splits}u + {split}")
        }
    }

    /// Folds what the workgroups of a split row left, from the scratch memory of number `first` on.
    pub fn fold_partials(&self, w: &mut Writer, shared: &mut Shared, first: usize) {
        let ReduceSchedule { splits, team, .. } = self.layout;
        let mut scratch = first;
        for v in self.folds_of_stage(0) {
            let dtype = self.fold_dtype(v);
            let name = w.slots.read_memory(Memory::Scratch(scratch), lane_dtype(dtype));
            let four = suffix(team.four_rows);
            if team.four_rows {
                w.slots.widen_memory(Memory::Scratch(scratch));
            }
            scratch += 1;
            let walk = format!("for (var e = part; e < {splits}u; e += {}u) {{", team.parts);
            match &self.kernel.code[v].step {
                Step::Reduce(op, _) => {
                    let t = ComputeType::of(dtype).name(team.four_rows);
                    w.line(format!("var sum{v}: {t} = {t}({});", expr::identity(*op, dtype)));
                    let load = |e: &str| format!("load{four}_{name}({})", self.partial_at(e));
                    let add = |part: &str| {
                        let sum = expr::combine(*op, &format!("sum{v}"), part, dtype, team.four_rows);
                        format!("sum{v} = {sum};")
                    };
                    let (parts, iterations) = (team.parts as usize, splits.div_ceil(team.parts as usize));
                    if iterations <= MAX_ITERATIONS {
                        // All loads before the first sum, so that they wait together.
                        for k in 0..iterations {
                            let e = format!("min(part + {}u, {}u)", k * parts, splits - 1);
                            w.line(format!("let part{v}_{k} = {};", load(&e)));
                        }
                        for k in 0..iterations {
                            let line = add(&format!("part{v}_{k}"));
                            let whole = (k + 1) * parts <= splits;
                            let guard = format!("if (part + {}u < {splits}u) {{ {line} }}", k * parts);
                            w.line(if whole { line } else { guard });
                        }
                    } else {
                        w.line(walk);
                        w.line(add(&load("e")) + "\n}");
                    }
                    team.fold(
                        &mut w.text,
                        shared,
                        (*op, dtype),
                        &format!("sum{v}"),
                        &format!("whole{v}"),
                        "part",
                    );
                    let value = expr::rounded(format!("whole{v}"), dtype, team.four_rows);
                    w.line(format!("let v{v} = {value};"));
                }
                Step::ArgReduce { max, .. } => {
                    let places = w.slots.read_memory(Memory::Scratch(scratch), DType::U32);
                    scratch += 1;
                    self.declare_fold(w, v);
                    w.line(walk);
                    w.line(format!("let x = load_{name}({});", self.partial_at("e")));
                    w.line(format!("let place = load_{places}({});", self.partial_at("e")));
                    // Parts come in order, so the first of equals wins.
                    let wins = better(*max, dtype, "x", (&format!("best_{v}"), &format!("at_{v}")));
                    w.line(format!(
                        "if (place != {NOWHERE} && ({wins})) {{ best_{v} = x; at_{v} = place; }}\n}}"
                    ));
                    team.best(&mut w.text, shared, *max, dtype, &v.to_string(), "part");
                    w.line(format!("let v{v} = i32(at_{v});"));
                }
                _ => unreachable!("a fold"),
            }
            w.names[v] = Some(Name { text: format!("v{v}"), wide: team.four_rows });
        }
    }
}
