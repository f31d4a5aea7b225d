//! Column reductions fused into row kernels: workgroups that walk over rows go on to further rows, reduce the columns of all of
//! them on the way, and leave these in scratch memory, where a last dispatch folds them.

use super::code::{Name, Writer, split_index};
use super::expression as expr;
use super::reduce::{self, Reduce, Shader, lane_bytes, lane_dtype};
use super::reduce_schedule::{ReduceSchedule, is_wide_across, most_members};
use super::row_blocking::varies;
use super::thread_group::Shared;
use super::{MapDispatch, MapLowered, can_be_wide};
use crate::caps::Caps;
use crate::dispatch::{ComputeType, Memory};
use volta_ir::plan::fuse::row_major;
use volta_ir::plan::fuse_column_reductions::turned;
use volta_ir::plan::kernel::{Access, LoopLevel, MapKernel, Step, Value};

/// Workgroups that share all rows: some for each compute unit of a large GPU, and few enough parts to fold.
const BLOCKS: usize = 256;

/// Dispatches of a program over rows, the first of `maps`, and of those that fold the columns.
pub(crate) fn lower(maps: &[MapKernel], caps: &Caps) -> MapLowered {
    let simple: Vec<MapKernel> = maps.iter().map(MapKernel::simplified).collect();
    if let Some(passing) = FusedColumnReduce::new(&simple, caps) {
        return passing.lower();
    }
    // One after the other.
    let mut lowered = MapLowered::default();
    simple.iter().for_each(|map| lowered.append(reduce::lower(map, caps)));
    lowered
}

struct FusedColumnReduce<'a> {
    rows: Reduce<'a>,
    columns: Vec<Reduce<'a>>,
    /// How often a workgroup goes on to further rows.
    iterations: usize,
    blocks: usize,
}

impl<'a> FusedColumnReduce<'a> {
    /// If a team holds a row in registers, four neighbours at a time.
    fn new(maps: &'a [MapKernel], caps: &Caps) -> Option<FusedColumnReduce<'a>> {
        let (rows, columns) = maps.split_first()?;
        let width = rows.extents.last()?;
        let fits =
            |k: &MapKernel| k.outer == 1 && k.extents[0] == *width && can_be_wide(k) && is_wide_across(k);
        let rows = Reduce::new(rows, caps);
        let ReduceSchedule { columns: across, wide, unrolled, splits, .. } = rows.layout;
        let one_loop = rows.kernel.outer + 1 == rows.kernel.extents.len();
        if across || !wide || unrolled.is_none() || splits > 1 || !one_loop || !columns.iter().all(fits) {
            return None;
        }
        let groups = rows.row_groups();
        let iterations = groups.div_ceil(BLOCKS);
        let blocks = groups.div_ceil(iterations);
        // They share a last dispatch, and so its workgroups and what these have in common.
        let members = most_members(columns, caps);
        let column = |kernel| Reduce::with(kernel, ReduceSchedule::of_parts(kernel, caps, members, blocks));
        Some(FusedColumnReduce { columns: columns.iter().map(column).collect(), rows, iterations, blocks })
    }

    fn lower(&self) -> MapLowered {
        let bytes = |column: &Reduce, v| column.layout.rows * self.blocks * lane_bytes(column.fold_dtype(v));
        let of = |c: &Reduce| c.folds_of_stage(0).into_iter().map(|v| bytes(c, v) as u64).collect::<Vec<_>>();
        let scratch = self.columns.iter().flat_map(of).collect();
        MapLowered { dispatches: vec![self.pass(), self.finish()], scratch }
    }

    /// Places of a row at which a member of its team stands.
    fn places(&self) -> usize {
        self.rows.layout.unrolled.expect("rows are held in registers")
    }

    /// Every fold: the number of its kernel, the value, and the place.
    fn folds(&self) -> impl Iterator<Item = (usize, Value, usize)> {
        let all = self.columns.iter().enumerate();
        let values = all.flat_map(|(k, column)| column.folds_of_stage(0).into_iter().map(move |v| (k, v)));
        values.flat_map(|(k, v)| (0..self.places()).map(move |c| (k, v, c)))
    }

    /// The dispatch that walks over rows.
    fn pass(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let (rows, iterations) = (&self.rows, self.iterations);
        let mut w = rows.writer(&mut shader, String::new());
        rows.by_rank(LoopLevel::Uniform).into_iter().for_each(|v| w.compute(v));
        let mut names: Vec<_> = self.columns.iter().map(|c| vec![None; c.kernel.code.len()]).collect();
        for (k, column) in self.columns.iter().enumerate() {
            let is_uniform = |v: &Value| column.kernel.code[*v].rank == LoopLevel::Uniform;
            self.visit(&mut w, k, &mut names[k], format!("_k{k}"), |w| {
                self.behind_folds(k).into_iter().filter(is_uniform).for_each(|v| w.compute(v));
            });
        }
        for (k, v, c) in self.folds() {
            let (op, dtype) = (self.columns[k].fold_op(v), self.columns[k].fold_dtype(v));
            let lane = ComputeType::of(dtype).name(true);
            w.line(format!("var fold{k}_{v}_{c}: {lane} = {lane}({});", expr::identity(op, dtype)));
        }
        w.line(format!("for (var turn = 0u; turn < {iterations}u; turn++) {{"));
        rows.place(&mut w, &format!("(group * {iterations}u + turn)"));
        for s in 0..rows.stages {
            rows.row_values(&mut w, s);
            rows.stage(&mut w, &mut shared, s, None);
        }
        rows.row_stores(&mut w);
        for (k, names) in names.iter().enumerate() {
            self.fold_row(&mut w, k, names);
        }
        w.line("}");
        self.leave(&mut w, &mut shared);
        let text = w.text;
        shader.shared = shared;
        shader.finish(&text, &rows.layout, self.blocks)
    }

    /// Writes code of the kernel of number `k`, whose names end with `mark`.
    fn visit(
        &self,
        w: &mut Writer,
        k: usize,
        names: &mut Vec<Option<Name>>,
        mark: String,
        write: impl FnOnce(&mut Writer),
    ) {
        let column = &self.columns[k];
        let mut inner = Writer {
            kernel: column.kernel,
            slots: &mut *w.slots,
            arguments: &mut *w.arguments,
            text: std::mem::take(&mut w.text),
            indices: Vec::new(),
            wide: true,
            along: column.layout.along(column.kernel),
            names: std::mem::take(names),
            mark,
            alike: &[],
        };
        write(&mut inner);
        *names = std::mem::take(&mut inner.names);
        w.text = std::mem::take(&mut inner.text);
    }

    /// Adds a row to the folds of kernel `k`.
    fn fold_row(&self, w: &mut Writer, k: usize, uniform: &[Option<Name>]) {
        let (rows, column) = (&self.rows, &self.columns[k]);
        let ReduceSchedule { width, team, .. } = rows.layout;
        let along = split_index(&mut w.text, "row", &column.kernel.extents[1..], &format!("z{k}_"));
        let all_live = rows.layout.rows.is_multiple_of(rows.layout.rows_at_once * self.iterations);
        let varies = varies(column.kernel, 0);
        let mut of_row = uniform.to_vec();
        self.visit(w, k, &mut of_row, format!("_k{k}"), |w| {
            w.indices = [vec!["0u".to_string()], along.clone()].concat();
            for v in self.behind_folds(k) {
                if !varies[v] && w.names[v].is_none() {
                    w.compute(v);
                }
            }
        });
        for c in 0..self.places() {
            let mut names = of_row.clone();
            for (v, name) in names.iter_mut().enumerate().filter(|(_, name)| name.is_none()) {
                *name = self.known(w, k, v, &format!("_{c}"));
            }
            let start = c * team.parts as usize * 4;
            let inside = start + team.parts as usize * 4 <= width;
            let mut conditions = Vec::new();
            if !all_live {
                conditions.push("live".to_string());
            }
            if !inside {
                conditions.push(format!("part * 4u + {start}u < {width}u"));
            }
            self.visit(w, k, &mut names, format!("_k{k}_{c}"), |w| {
                w.indices = [vec![format!("e_{c}")], along.clone()].concat();
                for v in self.behind_folds(k) {
                    if w.names[v].is_none() {
                        w.compute(v);
                    }
                }
                for v in column.folds_of_stage(0) {
                    let [of] = column.kernel.code[v].step.operands()[..] else {
                        unreachable!("it folds one value")
                    };
                    let (name, value) = (format!("fold{k}_{v}_{c}"), w.operand(of, true));
                    let sum = expr::combine(column.fold_op(v), &name, &value, column.fold_dtype(v), true);
                    let line = format!("{name} = {sum};");
                    let conditions = conditions.join(" && ");
                    w.line(if conditions.is_empty() {
                        line
                    } else {
                        format!("if ({conditions}) {{ {line} }}")
                    });
                }
            });
        }
    }

    /// The name of what value `v` of kernel `k` loads, if the rows' kernel has just stored it, or has loaded it, too.
    fn known(&self, w: &Writer, k: usize, v: Value, mark: &str) -> Option<Name> {
        let (rows, kernel) = (self.rows.kernel, self.columns[k].kernel);
        let Step::Load { access, checks, .. } = &kernel.code[v].step else { return None };
        let in_order = row_major(&rows.extents);
        let here = |a: &Access| a.slot == access.slot && a.position == in_order;
        let loads = |step: &Step| matches!(step, Step::Load { access, checks, .. } if here(access) && checks.is_empty());
        let stored = rows.stores.iter().find(|s| here(&s.access)).map(|s| s.value);
        let value = stored.or_else(|| rows.code.iter().position(|i| loads(&i.step)))?;
        if !checks.is_empty() || access.position != turned(kernel) {
            return None;
        }
        w.names[value].as_ref().map(|name| self.rows.marked(value, name, mark))
    }

    /// What the folds of kernel `k` are computed from.
    fn behind_folds(&self, k: usize) -> Vec<Value> {
        let code = &self.columns[k].kernel.code;
        let mut wanted = vec![false; code.len()];
        self.columns[k].folds_of_stage(0).into_iter().for_each(|v| wanted[v] = true);
        for v in (0..code.len()).rev() {
            if wanted[v] {
                code[v].step.operands().iter().for_each(|&o| wanted[o] = true);
            }
        }
        (0..code.len()).filter(|&v| wanted[v] && !code[v].step.is_fold()).collect()
    }

    /// Puts the folds of all teams together, and leaves them in scratch memory.
    fn leave(&self, w: &mut Writer, shared: &mut Shared) {
        let ReduceSchedule { width, team, rows_at_once, .. } = self.rows.layout;
        let parts = team.parts as usize;
        let mut scratch = 0;
        let mut last = None;
        for (k, v, c) in self.folds() {
            if last.is_some_and(|l| l != (k, v)) {
                scratch += 1;
            }
            last = Some((k, v));
            let (op, dtype) = (self.columns[k].fold_op(v), self.columns[k].fold_dtype(v));
            let own = format!("fold{k}_{v}_{c}");
            let memory = shared.name(ComputeType::of(dtype), true);
            if rows_at_once > 1 {
                w.line(format!("{memory}[lane] = {own};\nworkgroupBarrier();"));
            }
            let start = c * parts * 4;
            let inside = if start + parts * 4 <= width {
                String::new()
            } else {
                format!(" && lane * 4u + {start}u < {width}u")
            };
            w.line(format!("if (lane < {parts}u{inside}) {{"));
            let mut sum = own;
            for team in 1..rows_at_once {
                let other = format!("{memory}[lane + {}u]", team * parts);
                w.line(format!("let sum{team} = {};", expr::combine(op, &sum, &other, dtype, true)));
                sum = format!("sum{team}");
            }
            let name = w.slots.write_memory(Memory::Scratch(scratch), lane_dtype(dtype));
            w.slots.widen_memory(Memory::Scratch(scratch));
            w.line(format!("store4_{name}(group * {width}u + lane * 4u + {start}u, {sum});\n}}"));
            if rows_at_once > 1 {
                w.line("workgroupBarrier();");
            }
        }
    }

    /// The dispatch that folds what was left, a kernel behind the other.
    fn finish(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let (mut functions, mut main) = (String::new(), String::new());
        let (mut scratch, mut groups) = (0, 0);
        for (k, column) in self.columns.iter().enumerate() {
            let mut w = column.writer(&mut shader, String::new());
            column.by_rank(LoopLevel::Uniform).into_iter().for_each(|v| w.compute(v));
            column.place(&mut w, "group");
            column.row_values(&mut w, 0);
            column.fold_partials(&mut w, &mut shared, scratch);
            column.row_values(&mut w, 1);
            column.row_stores(&mut w);
            functions += &format!("fn finish{k}(group: u32, lane: u32) {{\n{}}}\n", w.text);
            let first = groups;
            scratch += column.folds_of_stage(0).len();
            groups += column.row_groups();
            main += &format!(
                "if (group >= {first}u && group < {groups}u) {{ finish{k}(group - {first}u, lane); }}\n"
            );
        }
        shader.shared = shared;
        let layout = &self.columns[0].layout;
        shader.finish_with(&functions, &main, layout, &format!("{groups}u"), groups)
    }
}
