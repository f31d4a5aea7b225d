//! Programs with reductions. A team of invocations walks along each row, stage by stage: what a stage folds, the
//! next one knows. Few long rows are split among workgroups, whose parts a second dispatch folds; sums over all
//! rows are folded by a last one.

use super::code::{Arguments, LoopPosition, Name, Writer, split_index};
use super::elementwise::uniforms;
use super::expression as expr;
use super::reduce_schedule::ReduceSchedule;
use super::single_pass_reduce::{self, Shortcut};
use super::slots::Slots;
use super::thread_group::{NOWHERE, Shared, ThreadGroup, better};
use super::{BUILTINS, MapDispatch, MapLowered};
use crate::caps::Caps;
use crate::dispatch::{ComputeType, Dispatch};
use volta_ir::dtype::DType;
use volta_ir::op::ReduceOp;
use volta_ir::plan::kernel::{Access, LoopLevel, MapKernel, Step, Value, stages_of};

pub(super) fn lower(kernel: &MapKernel, caps: &Caps) -> MapLowered {
    let reduce = Reduce::new(kernel, caps);
    let mut lowered = MapLowered::default();
    let folds = reduce.folds_of_stage(0);
    if reduce.layout.splits > 1 {
        for &v in &folds {
            lowered.scratch.push(reduce.partial_bytes(v, reduce.layout.splits));
            if matches!(kernel.code[v].step, Step::ArgReduce { .. }) {
                lowered.scratch.push((reduce.layout.rows * reduce.layout.splits * 4) as u64);
            }
        }
        lowered.dispatches.push(reduce.split());
    }
    let groups = reduce.row_groups();
    let totals = reduce.totals();
    let first_total = lowered.scratch.len();
    if groups > 1 {
        lowered.scratch.extend(totals.iter().map(|&v| (groups * lane_bytes(kernel.code[v].dtype)) as u64));
    }
    lowered.dispatches.push(reduce.rows(first_total));
    if groups > 1 && !totals.is_empty() {
        lowered.dispatches.push(reduce.finish_totals(first_total));
    }
    lowered
}

/// The passes along a row, and what comes after the last one.
fn count_stages(kernel: &MapKernel, stage: &[usize]) -> usize {
    let of_rows = |v: &usize| matches!(kernel.code[*v].rank, LoopLevel::Row | LoopLevel::Full);
    (0..kernel.code.len()).filter(of_rows).map(|v| stage[v]).max().unwrap_or(0) + 1
}

pub(super) fn lane_bytes(dtype: DType) -> usize {
    if ComputeType::of(dtype) == ComputeType::I64 { 8 } else { 4 }
}

/// A type whose memory holds a lane as it is.
pub(super) fn lane_dtype(dtype: DType) -> DType {
    match ComputeType::of(dtype) {
        ComputeType::F32 | ComputeType::F16 => DType::F32,
        ComputeType::I32 => DType::I32,
        ComputeType::U32 => DType::U32,
        ComputeType::I64 => DType::I64,
    }
}

pub(super) struct Reduce<'a> {
    pub kernel: &'a MapKernel,
    pub layout: ReduceSchedule,
    /// The number of passes before each value.
    stage: Vec<usize>,
    pub stages: usize,
    /// Folds that need no pass, by value.
    pub shortcuts: Vec<Option<Shortcut>>,
    /// The programs of the shader where there are several.
    alike: &'a [&'a MapKernel],
}

/// Text in the making: a shader's declarations come before the code that needs them.
#[derive(Default)]
pub(super) struct Shader {
    slots: Slots,
    pub arguments: Arguments,
    pub shared: Shared,
}

impl Shader {
    pub fn finish(self, main: &str, layout: &ReduceSchedule, groups: usize) -> MapDispatch {
        self.finish_with("", main, layout, &format!("{groups}u"), groups)
    }

    /// The same with functions that `main` calls, and with a number of workgroups that only `limit` knows.
    pub fn finish_with(
        self,
        functions: &str,
        main: &str,
        layout: &ReduceSchedule,
        limit: &str,
        groups: usize,
    ) -> MapDispatch {
        let ThreadGroup { group, subgroup, .. } = layout.team;
        let exchanges = [functions, main].iter().any(|text| text.contains("subgroupShuffleXor"));
        let lane = match subgroup.filter(|_| exchanges) {
            // The order of lanes in subgroups need not be that of the invocations.
            Some(size) => {
                format!(
                    "@builtin(subgroup_id) sg: u32, @builtin(subgroup_invocation_id) sl: u32) {{\n\
                     let lane = sg * {size}u + sl;\n"
                )
            }
            None => "@builtin(local_invocation_index) lane: u32) {\n".to_string(),
        };
        let body = format!(
            "{}{functions}@compute @workgroup_size({group})\nfn main({BUILTINS}, {lane}\
             let group = wg.x + wg.y * nwg.x;\nif (group >= {limit}) {{ return; }}\n{main}}}\n",
            self.shared.declarations(group)
        );
        let dispatch = Dispatch { body, bindings: self.slots.bindings, groups: groups as u64 };
        MapDispatch { dispatch, uniforms: uniforms(&self.arguments) }
    }
}

impl<'a> Reduce<'a> {
    pub fn new(kernel: &'a MapKernel, caps: &Caps) -> Reduce<'a> {
        let mut stage = stages_of(&kernel.code);
        let layout = ReduceSchedule::choose(kernel, caps, &stage, count_stages(kernel, &stage));
        let mut shortcuts = vec![None; kernel.code.len()];
        if layout.unrolled.is_none() && layout.splits == 1 && !layout.columns {
            shortcuts = single_pass_reduce::find(kernel);
            stage = single_pass_reduce::stages(&kernel.code, &shortcuts);
        }
        let stages = count_stages(kernel, &stage);
        Reduce { kernel, layout, stage, stages, shortcuts, alike: &[] }
    }

    /// With a layout that is given and not chosen.
    pub fn with(kernel: &'a MapKernel, layout: ReduceSchedule) -> Reduce<'a> {
        let shortcuts = vec![None; kernel.code.len()];
        Reduce { kernel, layout, stage: stages_of(&kernel.code), stages: 2, shortcuts, alike: &[] }
    }

    /// The same of several programs that are alike.
    pub fn of_many(alike: &'a [&'a MapKernel], layout: ReduceSchedule) -> Reduce<'a> {
        Reduce { alike, ..Reduce::with(alike[0], layout) }
    }

    pub fn row_groups(&self) -> usize {
        self.layout.rows.div_ceil(self.layout.rows_at_once)
    }

    pub fn folds_of_stage(&self, s: usize) -> Vec<Value> {
        let code = &self.kernel.code;
        let folds = |v: &Value| code[*v].step.is_fold() && self.shortcuts[*v].is_none();
        (0..code.len()).filter(|&v| folds(&v) && self.stage[v] == s).collect()
    }

    fn partial_bytes(&self, v: Value, splits: usize) -> u64 {
        (self.layout.rows * splits * lane_bytes(self.fold_dtype(v))) as u64
    }

    /// The type a fold is computed in: that of its operand for extremes and their places.
    pub fn fold_dtype(&self, v: Value) -> DType {
        match self.kernel.code[v].step {
            Step::ArgReduce { of, .. } => self.kernel.code[of].dtype,
            _ => self.kernel.code[v].dtype,
        }
    }

    pub fn fold_op(&self, v: Value) -> ReduceOp {
        match self.kernel.code[v].step {
            Step::Reduce(op, _) => op,
            _ => unreachable!("a fold of numbers"),
        }
    }

    pub fn writer<'w>(&'w self, shader: &'w mut Shader, text: String) -> Writer<'w> {
        Writer {
            kernel: self.kernel,
            slots: &mut shader.slots,
            arguments: &mut shader.arguments,
            text,
            indices: Vec::new(),
            wide: false,
            along: self.layout.along(self.kernel),
            names: vec![None; self.kernel.code.len()],
            mark: String::new(),
            alike: self.alike,
        }
    }

    /// The row and the part of an invocation, and the indices of the outer loops.
    pub fn place(&self, w: &mut Writer, row_group: &str) {
        let ReduceSchedule { rows, rows_at_once, columns, team, .. } = &self.layout;
        let (parts, stride) = (team.parts, team.stride);
        let (row, part) = if team.four_rows {
            (format!("lane % {stride}u * 4u"), format!("lane / {stride}u"))
        } else if *columns {
            (format!("lane % {stride}u"), format!("lane / {stride}u"))
        } else {
            (format!("lane / {parts}u"), format!("lane % {parts}u"))
        };
        w.line(format!("let part = {part};"));
        w.line(format!("let row_wanted = {row_group} * {rows_at_once}u + {row};"));
        // Members of teams without a row repeat the last one and store nothing.
        w.line(format!("let live = row_wanted < {rows}u;"));
        w.line(format!("let row = min(row_wanted, {}u);", rows - if team.four_rows { 4 } else { 1 }));
        let mut text = std::mem::take(&mut w.text);
        w.indices = split_index(&mut text, "row", &self.kernel.extents[..self.kernel.outer], "x");
        w.text = text;
        w.wide = team.four_rows;
    }

    pub fn by_rank(&self, rank: LoopLevel) -> Vec<Value> {
        (0..self.kernel.code.len()).filter(|&v| self.kernel.code[v].rank == rank).collect()
    }

    /// The dispatch that folds rows, stores what belongs to them, and folds them.
    fn rows(&self, first_total: usize) -> MapDispatch {
        let mut shader = Shader::default();
        let mut shared = Shared::default();
        let mut w = self.writer(&mut shader, String::new());
        self.uniform_values(&mut w);
        self.place(&mut w, "group");
        for s in 0..self.stages {
            self.row_values(&mut w, s);
            if self.layout.splits > 1 && s == 0 {
                self.fold_partials(&mut w, &mut shared, 0);
            } else {
                self.stage(&mut w, &mut shared, s, None);
            }
        }
        self.row_stores(&mut w);
        w.wide = false;
        self.fold_rows(&mut w, &mut shared, first_total);
        let text = w.text;
        shader.shared = shared;
        shader.finish(&text, &self.layout, self.row_groups())
    }

    /// What is computed once for all.
    pub fn uniform_values(&self, w: &mut Writer) {
        self.values(w, &self.by_rank(LoopLevel::Uniform));
    }

    /// Computes these values here.
    fn values(&self, w: &mut Writer, values: &[Value]) {
        w.pick_here(values);
        for &v in values {
            if !w.differs(v) {
                w.compute(v);
            }
        }
    }

    /// What is computed once a row, in stage `s`.
    pub fn row_values(&self, w: &mut Writer, s: usize) {
        let values = self.by_rank(LoopLevel::Row);
        if s == 0 {
            w.pick_here(&values);
        }
        for v in values {
            match self.shortcuts[v] {
                _ if self.stage[v] != s || w.differs(v) => {}
                Some(shortcut) => self.take_shortcut(w, v, shortcut),
                None if self.kernel.code[v].step.is_fold() => {}
                None => w.compute(v),
            }
        }
    }

    pub fn row_stores(&self, w: &mut Writer) {
        let of_rows = |&n: &usize| self.kernel.code[self.kernel.stores[n].value].rank == LoopLevel::Row;
        let stores: Vec<usize> = (0..self.kernel.stores.len()).filter(of_rows).collect();
        if stores.is_empty() {
            return;
        }
        w.line("if (live && part == 0u) {");
        w.stores(&stores);
        w.line("}");
    }

    /// Full values that a stage computes: in a loop also those of earlier stages, which are gone.
    fn full_values(&self, s: usize, kept: bool) -> Vec<Value> {
        let code = &self.kernel.code;
        if kept {
            return self.by_rank(LoopLevel::Full).into_iter().filter(|&v| self.stage[v] == s).collect();
        }
        let folded = self.folds_of_stage(s).into_iter().flat_map(|v| code[v].step.operands());
        let stored = self.stores_of_stage(s).into_iter().map(|store| store.0);
        self.full_values_behind(&folded.chain(stored).collect::<Vec<_>>())
    }

    /// The full values among `values` and what they are computed from.
    pub fn full_values_behind(&self, values: &[Value]) -> Vec<Value> {
        let code = &self.kernel.code;
        let mut wanted = vec![false; code.len()];
        values.iter().for_each(|&v| wanted[v] = true);
        for v in (0..code.len()).rev() {
            if wanted[v] && code[v].rank == LoopLevel::Full {
                code[v].step.operands().iter().for_each(|&o| wanted[o] = true);
            }
        }
        (0..code.len()).filter(|&v| wanted[v] && code[v].rank == LoopLevel::Full).collect()
    }

    fn stores_of_stage(&self, s: usize) -> Vec<(Value, &Access)> {
        let here = |value: Value| self.kernel.code[value].rank == LoopLevel::Full && self.stage[value] == s;
        self.kernel.stores.iter().filter(|x| here(x.value)).map(|x| (x.value, &x.access)).collect()
    }

    /// One pass along the rows. With `split`, along a part of them, given by names for its start and end.
    pub fn stage(&self, w: &mut Writer, shared: &mut Shared, s: usize, split: Option<(&str, &str)>) {
        let folds = self.folds_of_stage(s);
        let stores = self.stores_of_stage(s);
        if folds.is_empty() && stores.is_empty() && self.layout.unrolled.is_none() {
            return;
        }
        let ReduceSchedule { width, wide, team, .. } = self.layout;
        for &v in &folds {
            self.declare_fold(w, v);
        }
        let lanes = if wide && !team.four_rows { 4 } else { 1 };
        let stride = team.parts as usize * lanes;
        match self.layout.unrolled.filter(|_| split.is_none()) {
            Some(count) => {
                for c in 0..count {
                    let last = (c + 1) * stride > width;
                    let start = format!("part * {lanes}u + {}u", c * stride);
                    if s == 0 {
                        w.line(format!("let e_{c} = min({start}, {}u);", width.saturating_sub(lanes)));
                    }
                    let valid = last.then(|| format!("({start}) < {width}u"));
                    self.elements(w, s, &folds, &stores, (&format!("e_{c}"), &format!("_{c}"), valid, true));
                }
            }
            None => {
                let (from, to) = split.unwrap_or(("0u", ""));
                let to = if split.is_some() { to.to_string() } else { format!("{width}u") };
                w.line(format!("{{\nvar e = {from} + part * {lanes}u;"));
                let outside = w.names.clone();
                let together = self.layout.together;
                if together > 1 {
                    let (rest, all) = ((together - 1) * stride, together * stride);
                    w.line(format!("for (; e + {rest}u < {to}; e += {all}u) {{"));
                    self.elements_together(w, s, &folds, &stores, stride);
                    w.line("}");
                }
                w.line(format!("for (; e < {to}; e += {stride}u) {{"));
                self.elements(w, s, &folds, &stores, ("e", "", None, false));
                w.names = outside;
                w.line("}\n}");
            }
        }
        for &v in &folds {
            self.close_fold(w, shared, v);
        }
    }

    /// The elements at `e` of a stage, and what becomes of them.
    fn elements(
        &self,
        w: &mut Writer,
        s: usize,
        folds: &[Value],
        stores: &[(Value, &Access)],
        (e, mark, valid, kept): (&str, &str, Option<String>, bool),
    ) {
        let outer = self.kernel.outer;
        let (rows, names) = (w.indices.clone(), w.names.clone());
        let mut text = std::mem::take(&mut w.text);
        let inner = &self.kernel.extents[outer..];
        let prefix = format!("y{mark}_{s}_");
        w.indices.extend(split_index(&mut text, e, inner, &prefix));
        w.text = text;
        (w.wide, w.mark) = (self.layout.wide, mark.to_string());
        if kept {
            // Values of earlier stages at this place have its mark.
            for v in 0..w.names.len() {
                if self.kernel.code[v].rank == LoopLevel::Full && self.stage[v] < s {
                    w.names[v] = w.names[v].as_ref().map(|n| self.marked(v, n, mark));
                }
            }
        }
        self.values(w, &self.full_values(s, kept));
        let condition = valid.unwrap_or_default();
        for &v in folds {
            self.fold_element(w, v, e, &condition);
        }
        if !stores.is_empty() {
            let guard =
                if condition.is_empty() { "live".to_string() } else { format!("live && {condition}") };
            w.line(format!("if ({guard}) {{"));
            for (value, access) in stores {
                w.store(*value, access);
            }
            w.line("}");
        }
        (w.wide, w.mark) = (self.layout.team.four_rows, String::new());
        w.indices = rows;
        if kept {
            // Only what was computed here is new; its mark is put in again where it is used.
            for (v, before) in names.into_iter().enumerate() {
                if w.names[v].is_none() || before.is_some() {
                    w.names[v] = before;
                }
            }
        } else {
            w.names = names;
        }
    }

    /// The elements at `e` and further places, `stride` apart, of a stage in a loop: every instruction for all of them
    /// before the next, and stores last, so that no load waits for another one's value.
    fn elements_together(
        &self,
        w: &mut Writer,
        s: usize,
        folds: &[Value],
        stores: &[(Value, &Access)],
        stride: usize,
    ) {
        let rows = w.indices.clone();
        let inner = &self.kernel.extents[self.kernel.outer..];
        let mut places = Vec::new();
        for c in 0..self.layout.together {
            w.line(format!("let e_{c} = e + {}u;", c * stride));
            let mut indices = rows.clone();
            indices.extend(split_index(&mut w.text, &format!("e_{c}"), inner, &format!("y_{c}_{s}_")));
            places.push(LoopPosition { indices, names: w.names.clone(), mark: format!("_{c}") });
        }
        w.wide = self.layout.wide;
        let values = self.full_values(s, false);
        w.pick(&values, &mut places);
        for v in values {
            if !w.differs(v) {
                places.iter_mut().for_each(|place| place.visit(w, |w| w.compute(v)));
            }
        }
        for (c, place) in places.iter_mut().enumerate() {
            for &v in folds.iter().filter(|v| self.rider(**v).is_none()) {
                place.visit(w, |w| self.fold_element(w, v, &format!("e_{c}"), ""));
            }
        }
        for &v in folds.iter().filter(|v| self.rider(**v).is_some()) {
            let [x] = self.kernel.code[v].step.operands()[..] else { unreachable!("a maximum of one value") };
            let term = |place: &mut LoopPosition| {
                let mut term = String::new();
                place.visit(w, |w| term = w.operand(x, self.layout.wide));
                term
            };
            let terms: Vec<String> = places.iter_mut().map(term).collect();
            self.fold_riding(w, v, &terms);
        }
        if !stores.is_empty() {
            w.line("if (live) {");
            for place in &mut places {
                place.visit(w, |w| stores.iter().for_each(|(value, access)| w.store(*value, access)));
            }
            w.line("}");
        }
        w.wide = self.layout.team.four_rows;
    }

    /// The name of a kept value at another place of the row: names end with the mark of their place.
    pub fn marked(&self, v: Value, name: &Name, mark: &str) -> Name {
        match &self.kernel.code[v].step {
            // A broadcast has the name of a value that may be the same all along the row.
            Step::Broadcast(of) if self.kernel.code[*of].rank != LoopLevel::Full => name.clone(),
            Step::Broadcast(of) => self.marked(*of, name, mark),
            _ => Name { text: format!("v{v}{mark}"), wide: name.wide },
        }
    }

    pub fn declare_fold(&self, w: &mut Writer, v: Value) {
        if self.rider(v).is_some() {
            return self.declare_riding(w, v);
        }
        let dtype = self.fold_dtype(v);
        let lane = ComputeType::of(dtype);
        let line = match &self.kernel.code[v].step {
            Step::Reduce(op, _) => {
                let t = lane.name(self.layout.wide);
                format!("var sum{v}: {t} = {t}({});", expr::identity(*op, dtype))
            }
            _ => format!("var best_{v}: {} = {}(0);\nvar at_{v} = {NOWHERE};", lane.scalar(), lane.scalar()),
        };
        w.line(line);
    }

    fn fold_element(&self, w: &mut Writer, v: Value, e: &str, condition: &str) {
        let wide = self.layout.wide;
        let guarded = |line: String| {
            if condition.is_empty() { line } else { format!("if ({condition}) {{ {line} }}") }
        };
        match &self.kernel.code[v].step {
            Step::Reduce(_, of) if self.rider(v).is_some() => {
                let term = w.operand(*of, wide);
                self.fold_riding(w, v, &[term]);
            }
            Step::Reduce(op, of) => {
                let value = w.operand(*of, wide);
                let sum = expr::combine(*op, &format!("sum{v}"), &value, self.fold_dtype(v), wide);
                w.line(guarded(format!("sum{v} = {sum};")));
            }
            Step::ArgReduce { max, of } => {
                let value = w.operand(*of, wide);
                for k in 0..if wide { 4 } else { 1 } {
                    let x = if wide { format!("{value}[{k}]") } else { value.clone() };
                    let (best, at) = (format!("best_{v}"), format!("at_{v}"));
                    let wins = better(*max, self.fold_dtype(v), &x, (&best, &at));
                    w.line(guarded(format!("if ({wins}) {{ {best} = {x}; {at} = {e} + {k}u; }}")));
                }
            }
            _ => unreachable!("a fold"),
        }
    }

    /// Puts the parts of the team together and names the result.
    fn close_fold(&self, w: &mut Writer, shared: &mut Shared, v: Value) {
        if self.rider(v).is_some() {
            return self.close_riding(w, shared, v);
        }
        let (dtype, team) = (self.fold_dtype(v), self.layout.team);
        match &self.kernel.code[v].step {
            Step::Reduce(op, _) => {
                let mut own = format!("sum{v}");
                if self.layout.wide && !team.four_rows {
                    let pair = |a: &str, b: &str| {
                        expr::combine(*op, &format!("sum{v}.{a}"), &format!("sum{v}.{b}"), dtype, false)
                    };
                    own = expr::combine(*op, &pair("x", "y"), &pair("z", "w"), dtype, false);
                }
                team.fold(&mut w.text, shared, (*op, dtype), &own, &format!("whole{v}"), "part");
                let value = expr::rounded(format!("whole{v}"), dtype, team.four_rows);
                w.line(format!("let v{v} = {value};"));
            }
            Step::ArgReduce { max, .. } => {
                team.best(&mut w.text, shared, *max, dtype, &v.to_string(), "part");
                w.line(format!("let v{v} = i32(at_{v});"));
            }
            _ => unreachable!("a fold"),
        }
        w.names[v] = Some(Name { text: format!("v{v}"), wide: team.four_rows });
    }
}
