//! The interpreter of fused elementwise and reduction kernels: a block of lanes at a time, each op one vectorised
//! loop over the block, so that intermediate values stay in the first caches and nothing is compiled at run time.
//!
//! `lower` prepares a kernel once; `superinstructions` merges values that share a pass. `eval` computes values, `memory` loads
//! and stores them, `reduce` reduces them, `lanes` walks through views. This file walks over the loops and divides them among
//! threads.

mod eval;
mod lanes;
mod lower;
mod memory;
mod reduce;
mod superinstructions;

use super::threads::parallel_for;
use eval::{LaneBroadcast, Machine};
use lanes::Lanes;
use lower::{CHUNK, Lowered, Stage, Walk};
use reduce::Fold;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use volta_ir::op::ReduceOp;
use volta_ir::plan::executor::Argument;
use volta_ir::plan::kernel::{MapKernel, Operand, Slot, Step};

/// About this many lanes make a task; a function of the shape only, so that results do not depend on threads.
const TASK_LANES: usize = 1 << 16;
/// Less work than this (lanes times instructions) is not worth waking a thread for.
const MIN_PARALLEL_WORK: usize = 1 << 16;

/// What the reductions of a stage come to.
type Folds = SmallVec<[Fold; 2]>;

/// A slot's memory.
#[derive(Clone, Copy)]
pub(crate) struct SlotPointer(pub *mut u8);
impl SlotPointer {
    /// The address. (A closure that calls this captures the slot, which may cross threads, not the bare pointer.)
    pub fn get(self) -> *mut u8 {
        self.0
    }
}

// SAFETY: the plan's order and layout decide who reads and writes a slot; tasks of one kernel write apart.
unsafe impl Send for SlotPointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for SlotPointer {}

/// The first assertion of a plan that did not hold: its site, and the least of the numbers that blocks of lanes reported
/// first, so that the same is reported by however many threads.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Option<(usize, i64)>>);

impl Failures {
    /// The assertion at `site` does not hold of this number.
    pub fn report(&self, site: usize, number: i64) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *first = Some(first.map_or((site, number), |known| known.min((site, number))));
    }

    /// The site and the number, which are then forgotten.
    pub fn take(&self) -> Option<(usize, i64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a run of a kernel works on.
#[derive(Clone, Copy)]
pub(crate) struct Bindings<'a> {
    pub slots: &'a [SlotPointer],
    pub arguments: &'a [Argument],
    pub failures: &'a Failures,
}

impl Bindings<'_> {
    /// The first element of an operand.
    pub fn start<T>(self, operand: &Operand) -> *const T {
        // SAFETY: the operand's view starts inside its slot.
        unsafe { self.slots[operand.slot].0.cast_const().cast::<T>().offset(operand.offset) }
    }
}

/// A kernel made ready.
pub(crate) struct Map {
    low: Lowered,
}

impl Map {
    /// `in_place` tells of slots that are written where something is read.
    pub fn new(kernel: &MapKernel, in_place: impl Fn(Slot) -> bool) -> Map {
        Map::lowered(Lowered::new(kernel, true), in_place)
    }

    /// One whose lanes can be computed apart, with [`run_lanes`](Self::run_lanes).
    pub fn epilogue(kernel: &MapKernel, in_place: impl Fn(Slot) -> bool) -> Map {
        Map::lowered(Lowered::new(kernel, false), in_place)
    }

    fn lowered(mut low: Lowered, in_place: impl Fn(Slot) -> bool) -> Map {
        let direct = low.stores.iter().map(|s| !in_place(s.access.slot)).collect();
        low.allow_direct(direct);
        Map { low }
    }

    pub fn run(&self, bind: Bindings) {
        let low = &self.low;
        match low.walk {
            Walk::Flat => self.flat(bind),
            Walk::Rows if low.rows < 4 && low.width >= 2 * TASK_LANES => self.long_rows(bind),
            Walk::Columns if self.folds_once() && low.rows * low.width > MIN_PARALLEL_WORK => {
                self.tall_columns(bind)
            }
            _ => self.rows(bind),
        }
    }

    /// Elementwise kernels, or a part of one: the lanes `range` of all.
    pub fn run_lanes(&self, bind: Bindings, range: Range<usize>) {
        debug_assert_eq!(self.low.walk, Walk::Flat);
        Machine::with(&self.low, bind, |m| {
            m.uniform();
            self.flat_lanes(m, range);
        });
    }

    /// Rows `rows` and columns `cols` of a matrix with `width` columns that starts at lane `first`.
    pub fn run_region(
        &self,
        bind: Bindings,
        first: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        width: usize,
    ) {
        if cols.len() == width {
            return self.run_lanes(bind, first + rows.start * width..first + rows.end * width);
        }
        Machine::with(&self.low, bind, |m| {
            m.uniform();
            for row in rows {
                self.flat_lanes(m, first + row * width + cols.start..first + row * width + cols.end);
            }
        });
    }

    fn flat(&self, bind: Bindings) {
        let total = self.low.rows * self.low.width;
        if total == 0 {
            return;
        }
        let weight = self.low.code.len();
        if total * weight <= MIN_PARALLEL_WORK {
            return self.run_lanes(bind, 0..total);
        }
        let lanes = (TASK_LANES * 8 / weight.max(8)).next_multiple_of(CHUNK);
        parallel_for(total.div_ceil(lanes), &|t| {
            self.run_lanes(bind, t * lanes..((t + 1) * lanes).min(total));
        });
    }

    fn flat_lanes(&self, m: &mut Machine, range: Range<usize>) {
        let low = &self.low;
        let mut at = range.start;
        while at < range.end {
            let n = CHUNK.min(range.end - at);
            let lanes = Lanes { extents: &low.all, start: at, fixed: &[], count: n };
            m.full(&low.stages[0], &lanes, LaneBroadcast::Same, 0);
            at += n;
        }
    }

    /// Reductions with rows enough to share out.
    fn rows(&self, bind: Bindings) {
        let low = &self.low;
        if low.rows == 0 {
            return;
        }
        let work = low.rows * low.width * low.code.len();
        let per_task = match low.walk {
            // Across rows, lanes of one task should fill vectors and cache lines.
            Walk::Columns => (TASK_LANES / low.width.max(1)).next_multiple_of(64).max(64),
            _ => (TASK_LANES / low.width.max(1)).max(1),
        };
        let tasks = low.rows.div_ceil(per_task);
        let totals: Vec<Mutex<Vec<Fold>>> = (0..tasks)
            .map(|_| Mutex::new(Vec::new()))
            .take(if low.totals.is_empty() { 0 } else { tasks })
            .collect();
        let task = |t: usize| {
            Machine::with(low, bind, |m| {
                m.uniform();
                m.start_totals();
                let rows = t * per_task..((t + 1) * per_task).min(low.rows);
                match low.walk {
                    Walk::Columns => self.columns(m, rows),
                    _ if low.width > CHUNK => rows.for_each(|r| self.one_row(m, r)),
                    _ => self.row_blocks(m, rows),
                }
                if let Some(slot) = totals.get(t) {
                    *slot.lock().expect("one task a slot") = m.take_totals();
                }
            });
        };
        if work <= MIN_PARALLEL_WORK {
            (0..tasks).for_each(task)
        } else {
            parallel_for(tasks, &task)
        }
        let parts = totals.iter().map(|t| t.lock().expect("all tasks are done").clone());
        self.finish_totals(bind, parts.collect());
    }

    fn finish_totals(&self, bind: Bindings, parts: Vec<Vec<Fold>>) {
        // A number that nothing is folded into may be stored here too.
        if self.low.total_stores.is_empty() {
            return;
        }
        Machine::with(&self.low, bind, |m| {
            m.uniform();
            m.start_totals();
            parts.iter().for_each(|p| m.add_totals(p));
            m.total();
        });
    }

    /// Several short rows in one block.
    fn row_blocks(&self, m: &mut Machine, rows: Range<usize>) {
        let low = &self.low;
        let per_block = (CHUNK / low.width.max(1)).max(1);
        let mut row = rows.start;
        while row < rows.end {
            let count = per_block.min(rows.end - row);
            let across = Lanes { extents: &low.outer, start: row, fixed: &[], count };
            let along =
                Lanes { extents: &low.all, start: row * low.width, fixed: &[], count: count * low.width };
            let spread =
                if low.width == 1 { LaneBroadcast::Same } else { LaneBroadcast::Segments(low.width) };
            m.forget_expanded();
            for stage in &low.stages {
                m.row_values(&stage.row, &across);
                m.full(stage, &along, spread, 0);
                for &v in &stage.folds {
                    m.fold_segments(v, low.width, count);
                }
            }
            m.finish_rows(&across);
            row += count;
        }
    }

    /// One long row, a chunk after the other in every stage.
    fn one_row(&self, m: &mut Machine, row: usize) {
        let low = &self.low;
        let across = Lanes { extents: &low.outer, start: row, fixed: &[], count: 1 };
        for stage in &low.stages {
            m.row_values(&stage.row, &across);
            let folds = self.row_part(m, stage, row, 0..low.width, true);
            m.set_folds(stage, &folds);
        }
        m.finish_rows(&across);
    }

    /// A stage over a part of a row: what its reductions come to.
    fn row_part(&self, m: &mut Machine, stage: &Stage, row: usize, part: Range<usize>, keep: bool) -> Folds {
        let low = &self.low;
        let chunk = if keep { low.row_chunk } else { CHUNK };
        let mut folds: Folds = stage.folds.iter().map(|&v| m.empty_fold(v)).collect();
        if stage.full.is_empty() && stage.stores.is_empty() && stage.folds.is_empty() {
            return folds;
        }
        let mut at = part.start;
        while at < part.end {
            let count = chunk.min(part.end - at);
            let lanes = Lanes { extents: &low.all, start: row * low.width + at, fixed: &[], count };
            m.keep_rows_at(if keep { Some(at) } else { None });
            m.full(stage, &lanes, LaneBroadcast::One, at);
            for (fold, &v) in folds.iter_mut().zip(&stage.folds) {
                m.fold_chunk(v, count, at, fold);
            }
            at += count;
        }
        folds
    }

    /// Few rows, each long enough to be shared out.
    fn long_rows(&self, bind: Bindings) {
        let low = &self.low;
        let parts = low.width.div_ceil(TASK_LANES);
        let mut totals = Vec::new();
        for row in 0..low.rows {
            Machine::with(low, bind, |m| {
                m.uniform();
                m.start_totals();
                let across = Lanes { extents: &low.outer, start: row, fixed: &[], count: 1 };
                for stage in &low.stages_afresh {
                    m.row_values(&stage.row, &across);
                    let results: Vec<Mutex<Folds>> = (0..parts).map(|_| Mutex::new(Folds::new())).collect();
                    let known = m.row_snapshot();
                    parallel_for(parts, &|p| {
                        Machine::with(low, bind, |m| {
                            m.uniform();
                            m.adopt_rows(&known);
                            let part = p * TASK_LANES..((p + 1) * TASK_LANES).min(low.width);
                            let folds = self.row_part(m, stage, row, part, false);
                            *results[p].lock().expect("one task a slot") = folds;
                        });
                    });
                    let mut folds: Vec<Fold> = stage.folds.iter().map(|&v| m.empty_fold(v)).collect();
                    for part in &results {
                        let part = part.lock().expect("all tasks are done");
                        for ((f, p), &v) in folds.iter_mut().zip(part.iter()).zip(&stage.folds) {
                            f.absorb(p, fold_op(&low.code[v].step));
                        }
                    }
                    m.set_folds(stage, &folds);
                }
                m.finish_rows(&across);
                totals.push(m.take_totals());
            });
        }
        self.finish_totals(bind, totals);
    }

    /// Whether everything that is done in every iteration comes before the first result of a reduction.
    fn folds_once(&self) -> bool {
        let later = &self.low.stages_afresh[1..];
        self.low.totals.is_empty() && later.iter().all(|s| s.full.is_empty() && s.folds.is_empty())
    }

    /// Columns that are shared out by their height: every task walks down a part of them with all lanes, and the
    /// parts are taken up in order.
    fn tall_columns(&self, bind: Bindings) {
        let low = &self.low;
        let (first, later) = low.stages_afresh.split_first().expect("at least one stage");
        let mut at = 0;
        while at < low.rows {
            let count = CHUNK.min(low.rows - at);
            let across = Lanes { extents: &low.outer, start: at, fixed: &[], count };
            let height = (TASK_LANES / count).max(1);
            let parts = low.width.div_ceil(height);
            let sums: Vec<Mutex<Vec<Vec<u64>>>> = (0..parts).map(|_| Mutex::new(Vec::new())).collect();
            parallel_for(parts, &|p| {
                Machine::with(low, bind, |m| {
                    m.uniform();
                    m.row_values(&first.row, &across);
                    m.start_columns(first, count);
                    self.walk_down(m, first, at, count, p * height..((p + 1) * height).min(low.width));
                    *sums[p].lock().expect("one task a slot") = m.column_sums(first, count);
                });
            });
            Machine::with(low, bind, |m| {
                m.uniform();
                m.row_values(&first.row, &across);
                m.start_columns(first, count);
                for part in &sums {
                    m.add_columns(first, count, &part.lock().expect("all tasks are done"));
                }
                m.end_columns(first, count);
                later.iter().for_each(|stage| m.row_values(&stage.row, &across));
                m.finish_rows(&across);
            });
            at += count;
        }
        self.finish_totals(bind, Vec::new());
    }

    /// A stage over some of the reduced positions, `count` lanes at a time from row `at`.
    fn walk_down(&self, m: &mut Machine, stage: &Stage, at: usize, count: usize, steps: Range<usize>) {
        if steps.is_empty() {
            return;
        }
        let low = &self.low;
        let mut fixed = vec![0; low.inner.len()];
        let mut rest = steps.start;
        for (index, &extent) in fixed.iter_mut().zip(&low.inner).rev() {
            *index = rest % extent;
            rest /= extent;
        }
        for step in 0..steps.len() {
            let lanes = Lanes { extents: &low.outer, start: at, fixed: &fixed, count };
            m.full(stage, &lanes, LaneBroadcast::Same, 0);
            m.fold_columns(stage, count, step);
            for (index, &extent) in fixed.iter_mut().zip(&low.inner).rev() {
                *index += 1;
                if *index < extent {
                    break;
                }
                *index = 0;
            }
        }
    }

    /// Lanes across rows, walking down the reduced loops.
    fn columns(&self, m: &mut Machine, rows: Range<usize>) {
        let low = &self.low;
        let mut at = rows.start;
        while at < rows.end {
            let count = CHUNK.min(rows.end - at);
            let across = Lanes { extents: &low.outer, start: at, fixed: &[], count };
            for stage in &low.stages_afresh {
                m.row_values(&stage.row, &across);
                m.start_columns(stage, count);
                let idle = stage.full.is_empty() && stage.folds.is_empty();
                self.walk_down(m, stage, at, count, 0..if idle { 0 } else { low.width });
                m.end_columns(stage, count);
            }
            m.finish_rows(&across);
            at += count;
        }
    }
}

/// How partial results of a reduction combine.
fn fold_op(step: &Step) -> FoldOp {
    match step {
        Step::Reduce(op, _) | Step::GlobalReduce(op, _) => FoldOp::Reduce(*op),
        Step::ArgReduce { max, .. } => FoldOp::Arg { max: *max },
        _ => unreachable!("only reductions fold"),
    }
}

#[derive(Clone, Copy)]
enum FoldOp {
    Reduce(ReduceOp),
    Arg { max: bool },
}
