//! Prepares a map kernel for the interpreter: merges loops, splits the program into stages between reductions,
//! and gives values their registers.

use super::superinstructions::{self, Joint};
use smallvec::SmallVec;
use volta_ir::dtype::DType;
use volta_ir::op::BinaryOp;
use volta_ir::plan::kernel::{
    Instruction, LoopLevel, MapKernel, Step, Store, Value, runs_along_rows, stages_of,
};
use volta_ir::plan::view::Affine;

/// Lanes that are computed at a time: small enough for the first cache, large enough to hide the dispatch.
pub(super) const CHUNK: usize = 2048;
/// The same for stages that leave nothing in registers: a row and what is made of it just fit the first cache.
const LONG_ROW_CHUNK: usize = 2 * CHUNK;
/// Rows up to this long keep what several stages need.
const MAX_CACHED_ROW: usize = 1 << 16;

/// How the loops become lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// No reduction: all loops are lanes.
    Flat,
    /// Lanes run along the reduced loops; short rows share a block.
    Rows,
    /// Lanes run across rows, one reduced position at a time.
    Columns,
}

/// What a value is computed from.
type Reads = SmallVec<[Value; 3]>;

#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Row values, computed first.
    pub row: Vec<Value>,
    /// Full values for this stage's reductions and stores.
    pub full: Vec<Value>,
    /// Reductions that end this stage.
    pub folds: Vec<Value>,
    /// Stores of full values.
    pub stores: Vec<usize>,
}

pub(super) struct Lowered {
    pub walk: Walk,
    pub outer: Vec<usize>,
    pub inner: Vec<usize>,
    /// `outer` and `inner` one after the other.
    pub all: Vec<usize>,
    pub rows: usize,
    pub width: usize,
    pub code: Vec<Instruction>,
    pub stores: Vec<Store>,
    /// Values that are computed together with others.
    pub joint: Vec<Option<Joint>>,
    /// What every value is computed from.
    reads: Vec<Reads>,
    /// The store that a value can be computed into.
    pub direct_of: Vec<Option<usize>>,
    /// Lanes of a long row that are computed at a time, while one thread works on it.
    pub row_chunk: usize,
    /// The store in whose place a kept value waits: what is stored there is made of it in place.
    pub waits_at: Vec<Option<usize>>,
    pub uniform: Vec<Value>,
    pub total: Vec<Value>,
    pub totals: Vec<Value>,
    pub stages: Vec<Stage>,
    /// The same with nothing kept from stage to stage.
    pub stages_afresh: Vec<Stage>,
    pub row_stores: Vec<usize>,
    pub total_stores: Vec<usize>,
    /// The register of every value, and how many there are.
    pub register: Vec<usize>,
    pub registers: usize,
    /// Values that a long row keeps whole, by value and as a list of (value, place).
    pub kept_row: Vec<Option<usize>>,
    pub kept: Vec<(Value, usize)>,
}

impl Lowered {
    /// `in_rows` allows an elementwise kernel to compute once a row what is the same along it; without, all lanes
    /// are alike and any part of them can be computed alone.
    pub fn new(kernel: &MapKernel, in_rows: bool) -> Lowered {
        let mut kernel = kernel.clone();
        fuse_multiply_adds(&mut kernel);
        let reduces = kernel.outer < kernel.extents.len();
        let MapKernel { extents: mut outer, outer: outer_loops, mut code, mut stores } = kernel.simplified();
        let mut inner = outer.split_off(outer_loops);
        let rows_found = !reduces && in_rows && find_rows(&mut outer, &mut inner, &mut code, &mut stores);
        let (rows, width) = (outer.iter().product(), inner.iter().product());
        let walk = match (reduces, rows_found) {
            (true, _) => choose_walk(&outer, &code),
            (false, true) => Walk::Rows,
            (false, false) => Walk::Flat,
        };
        let stage = stages_of(&code);
        let by_rank = |rank| (0..code.len()).filter(|&v| code[v].rank == rank).collect::<Vec<Value>>();
        let keep_all = walk == Walk::Flat || (walk == Walk::Rows && width <= CHUNK);
        let long_rows = walk == Walk::Rows && width > CHUNK;
        let (joint, reads) = superinstructions::find(&code, long_rows);
        let kept_row = choose_kept_rows(&code, &reads, &stage, long_rows && width <= MAX_CACHED_ROW);
        let kept = |v: Value| keep_all || kept_row[v].is_some();
        let stages = split(&code, &stores, &reads, &stage, &kept);
        let stages_afresh = split(&code, &stores, &reads, &stage, &|_| walk == Walk::Flat);
        let (register, registers) = assign_registers(&code, &stores, &reads, &stages, &stages_afresh);
        let totals = (0..code.len()).filter(|&v| matches!(code[v].step, Step::GlobalReduce(..))).collect();
        let stores_of =
            |rank| (0..stores.len()).filter(|&s| code[stores[s].value].rank == rank).collect::<Vec<usize>>();
        let kept_list =
            kept_row.iter().enumerate().filter_map(|(v, place)| place.map(|place| (v, place))).collect();
        Lowered {
            walk,
            all: outer.iter().chain(&inner).copied().collect(),
            outer,
            inner,
            rows,
            width,
            uniform: by_rank(LoopLevel::Uniform),
            total: by_rank(LoopLevel::Global),
            totals,
            stages,
            stages_afresh,
            row_stores: stores_of(LoopLevel::Row),
            total_stores: stores_of(LoopLevel::Global),
            joint,
            reads,
            direct_of: Vec::new(),
            row_chunk: CHUNK,
            waits_at: Vec::new(),
            register,
            registers,
            kept_row,
            kept: kept_list,
            code,
            stores,
        }
    }
}

impl Lowered {
    /// Tells which stores may be written before the whole block is computed.
    pub fn allow_direct(&mut self, direct: Vec<bool>) {
        self.direct_of = vec![None; self.code.len()];
        for (k, store) in self.stores.iter().enumerate() {
            let Instruction { step, dtype, rank } = &self.code[store.value];
            let computed = !matches!(step, Step::Load { .. } | Step::Gather { .. });
            let once = self.stores.iter().filter(|s| s.value == store.value).count() == 1;
            let plain = *rank == LoopLevel::Full && !dtype.is_half() && self.kept_row[store.value].is_none();
            if direct[k] && computed && once && plain {
                self.direct_of[store.value] = Some(k);
            }
        }
        self.find_waiting();
        let needs_register = |&v: &Value| !self.has_own_place(v);
        if !self.stages.iter().flat_map(|s| &s.full).any(needs_register) {
            self.row_chunk = LONG_ROW_CHUNK;
        }
    }

    /// Whether the lanes of a long row's value lie side by side in memory of their own, as many as there are.
    fn has_own_place(&self, v: Value) -> bool {
        let side_by_side = |form: &Affine| self.inner.len() == 1 && form.coefficients.last() == Some(&1);
        let Instruction { step, dtype, .. } = &self.code[v];
        let place = match step {
            Step::Load { access, checks, .. } => checks.is_empty() && side_by_side(&access.position),
            _ => {
                let stored = self.direct_of[v].is_some_and(|k| side_by_side(&self.stores[k].access.position));
                stored || self.kept_row[v].is_some()
            }
        };
        place && !dtype.is_half()
    }

    /// Kept values that the last stage only scales and stores: they need no memory of their own.
    fn find_waiting(&mut self) {
        self.waits_at = vec![None; self.code.len()];
        let Some(last) = self.stages.last() else { return };
        for &v in &last.full {
            let Step::Binary(BinaryOp::Mul, kept, scale) = self.code[v].step else { continue };
            let readers =
                last.full.iter().chain(&last.folds).filter(|&&w| self.reads[w].contains(&kept)).count();
            if self.joint[v].is_none()
                && self.code[v].dtype == DType::F32
                && self.code[scale].rank != LoopLevel::Full
                && self.kept_row[kept].is_some()
                && !last.full.contains(&kept)
                && readers == 1
            {
                self.waits_at[kept] = self.direct_of[v];
            }
        }
    }
}

/// A product that is only added to something needs no pass of its own.
fn fuse_multiply_adds(kernel: &mut MapKernel) {
    let mut uses = vec![0; kernel.code.len()];
    let read =
        kernel.code.iter().flat_map(|i| i.step.operands()).chain(kernel.stores.iter().map(|s| s.value));
    read.for_each(|v| uses[v] += 1);
    for v in 0..kernel.code.len() {
        let Instruction { step: Step::Binary(BinaryOp::Add, a, b), dtype, rank } = kernel.code[v] else {
            continue;
        };
        if !matches!(dtype, DType::F32 | DType::F64) {
            continue;
        }
        for (product, other) in [(a, b), (b, a)] {
            if let Instruction { step: Step::Binary(BinaryOp::Mul, x, y), rank: r, .. } = kernel.code[product]
                && r == rank
                && uses[product] == 1
            {
                kernel.code[v].step = Step::MulAdd(x, y, other);
                break;
            }
        }
    }
    kernel.remove_unused();
}

/// The innermost loop of an elementwise kernel as a row, if something is the same along it.
fn find_rows(
    outer: &mut Vec<usize>,
    inner: &mut Vec<usize>,
    code: &mut Vec<Instruction>,
    stores: &mut [Store],
) -> bool {
    /// Shorter rows are not worth the trouble.
    const MIN_COPIED_ROW: usize = 16;
    let Some((&width, before)) = outer.split_last() else { return false };
    if before.is_empty() || width < MIN_COPIED_ROW {
        return false;
    }
    let last = before.len();
    let mut along = vec![false; code.len()];
    for v in 0..code.len() {
        let i = &mut code[v];
        let varies = |form: &Affine| form.coefficients[last] != 0;
        along[v] = i.step.operands().iter().any(|&o| along[o])
            || match &i.step {
                Step::Load { access, checks, .. } => {
                    varies(&access.position) || checks.iter().any(|c| varies(&c.form))
                }
                Step::Gather { access, .. } => varies(&access.position),
                Step::Iota(form) | Step::Random { counter: form, .. } => varies(form),
                Step::Valid(checks) => checks.iter().any(|c| varies(&c.form)),
                Step::Broadcast(_) => true,
                _ => false,
            };
    }
    let is_row = |v: usize, code: &[Instruction]| code[v].rank == LoopLevel::Full && !along[v];
    if !(0..code.len()).any(|v| is_row(v, code)) {
        return false;
    }
    for v in 0..code.len() {
        if is_row(v, code) {
            code[v].rank = LoopLevel::Row;
        }
    }
    // What is stored has a lane for every element.
    for store in stores {
        let Instruction { dtype, rank, .. } = code[store.value];
        if rank == LoopLevel::Row {
            code.push(Instruction { step: Step::Broadcast(store.value), dtype, rank: LoopLevel::Full });
            store.value = code.len() - 1;
        }
    }
    inner.push(width);
    outer.pop();
    true
}

/// Along the reduced loops, unless memory runs the other way.
fn choose_walk(outer: &[usize], code: &[Instruction]) -> Walk {
    // Positions are tracked along rows only.
    let tracks = code.iter().any(|i| matches!(i.step, Step::ArgReduce { .. }));
    let worth = outer.last().is_some_and(|&extent| extent >= 4);
    if worth && !tracks && runs_along_rows(code, outer.len()) { Walk::Columns } else { Walk::Rows }
}

/// Full values that a later stage needs again and that are not just read from memory.
fn choose_kept_rows(
    code: &[Instruction],
    reads: &[Reads],
    stage: &[usize],
    allowed: bool,
) -> Vec<Option<usize>> {
    let mut kept = vec![None; code.len()];
    let mut count = 0;
    for v in 0..code.len() {
        for &o in &reads[v] {
            let dear = !matches!(
                code[o].step,
                Step::Load { .. } | Step::Broadcast(_) | Step::Iota(_) | Step::Valid(_)
            );
            let again =
                code[o].rank == LoopLevel::Full && code[v].rank == LoopLevel::Full && stage[v] > stage[o];
            if allowed && again && dear && kept[o].is_none() {
                kept[o] = Some(count);
                count += 1;
            }
        }
    }
    kept
}

fn split(
    code: &[Instruction],
    stores: &[Store],
    reads: &[Reads],
    stage: &[usize],
    kept: &dyn Fn(Value) -> bool,
) -> Vec<Stage> {
    let folds = |v: Value| matches!(code[v].step, Step::Reduce(..) | Step::ArgReduce { .. });
    let last = (0..code.len())
        .filter(|&v| matches!(code[v].rank, LoopLevel::Row | LoopLevel::Full))
        .map(|v| stage[v])
        .max();
    let mut stages = Vec::new();
    for s in 0..=last.unwrap_or(0) {
        let mut st = Stage::default();
        let mut wanted = vec![false; code.len()];
        for v in 0..code.len() {
            if stage[v] == s && code[v].rank == LoopLevel::Row {
                if folds(v) {
                    st.folds.push(v);
                    reads[v].iter().for_each(|&o| wanted[o] = true);
                } else {
                    st.row.push(v);
                }
            }
        }
        for (k, store) in stores.iter().enumerate() {
            if code[store.value].rank == LoopLevel::Full && stage[store.value] == s {
                st.stores.push(k);
                wanted[store.value] = true;
            }
        }
        // What is needed here, from the last to the first; an earlier stage's value only if it was not kept.
        // What is kept is computed in its own stage even if only a later one reads it.
        for v in (0..code.len()).rev() {
            let later = kept(v) && stage[v] == s && code[v].rank == LoopLevel::Full;
            if code[v].rank == LoopLevel::Full && (wanted[v] || later) && !(kept(v) && stage[v] < s) {
                st.full.push(v);
                reads[v].iter().for_each(|&o| wanted[o] = true);
            }
        }
        st.full.reverse();
        stages.push(st);
    }
    stages
}

/// Linear scan: a register is free again after its value's last use.
fn assign_registers(
    code: &[Instruction],
    stores: &[Store],
    reads: &[Reads],
    kept: &[Stage],
    afresh: &[Stage],
) -> (Vec<usize>, usize) {
    let mut register = vec![usize::MAX; code.len()];
    let mut count = 0;
    // Row values and reductions live long and are small: each has its own.
    for v in 0..code.len() {
        if code[v].rank != LoopLevel::Full {
            register[v] = count;
            count += 1;
        }
    }
    let sequence: Vec<Value> = kept
        .iter()
        .chain(afresh)
        .flat_map(|s| s.full.iter().copied().chain(s.folds.iter().copied()))
        .collect();
    let mut first = vec![usize::MAX; code.len()];
    let mut last = vec![0; code.len()];
    for (at, &v) in sequence.iter().enumerate() {
        first[v] = first[v].min(at);
        last[v] = last[v].max(at);
        for &o in &reads[v] {
            last[o] = last[o].max(at);
        }
    }
    // A stored value is written at the end of its stage.
    let mut at = 0;
    for s in kept.iter().chain(afresh) {
        at += s.full.len() + s.folds.len();
        for &k in &s.stores {
            last[stores[k].value] = last[stores[k].value].max(at);
        }
    }
    let mut free: Vec<usize> = Vec::new();
    let mut busy: Vec<(usize, usize)> = Vec::new();
    for (at, &v) in sequence.iter().enumerate() {
        busy.retain(|&(until, r)| {
            if until < at {
                free.push(r);
            }
            until >= at
        });
        if code[v].rank == LoopLevel::Full && first[v] == at {
            let r = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            register[v] = r;
            busy.push((last[v], r));
        }
    }
    // What nobody computes for itself has no register; any will do.
    register.iter_mut().filter(|r| **r == usize::MAX).for_each(|r| *r = 0);
    (register, count.max(1))
}

/// The kind of lane a type is computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    F32,
    F64,
    I32,
    I64,
    U32,
    U8,
}

impl Class {
    pub fn of(dtype: DType) -> Class {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Class::F32,
            DType::F64 => Class::F64,
            DType::I32 => Class::I32,
            DType::I64 => Class::I64,
            DType::U32 => Class::U32,
            DType::U8 | DType::Bool => Class::U8,
        }
    }

    pub fn size(self) -> usize {
        match self {
            Class::F32 | Class::I32 | Class::U32 => 4,
            Class::F64 | Class::I64 => 8,
            Class::U8 => 1,
        }
    }
}
