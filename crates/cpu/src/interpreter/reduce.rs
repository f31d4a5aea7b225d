//! Reductions: of a chunk of a row, of short rows side by side, down columns, and over all rows.

use super::eval::{LaneBroadcast, Machine, by_class};
use super::lanes::Lanes;
use super::lower::{Class, Stage};
use super::superinstructions::Joint;
use super::{FoldOp, fold_op};
use crate::vector::{self, Cast};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use volta_ir::op::ReduceOp;
use volta_ir::plan::kernel::{LoopLevel, Step, Value};

/// Sums down columns are taken up by a second register this often, which keeps them accurate.
const COLUMN_BATCH: usize = 64;

/// A reduction under way: exact enough to be combined in any number of parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    float: f64,
    int: i64,
    index: i64,
    empty: bool,
}

impl Fold {
    pub fn absorb(&mut self, other: &Fold, op: FoldOp) {
        if other.empty {
            return;
        }
        if self.empty {
            *self = *other;
            return;
        }
        match op {
            FoldOp::Reduce(op) => {
                self.float = fold_float(op, self.float, other.float);
                self.int = fold_int(op, self.int, other.int);
            }
            FoldOp::Arg { max } => {
                let (a, b) = (self.float, other.float);
                let better = if max { b > a } else { b < a };
                let int_better = if max { other.int > self.int } else { other.int < self.int };
                if (b.is_nan() && !a.is_nan()) || (!a.is_nan() && better) || int_better {
                    *self = *other;
                }
            }
        }
    }
}

fn fold_float(op: ReduceOp, a: f64, b: f64) -> f64 {
    match op {
        ReduceOp::Sum => a + b,
        ReduceOp::Prod => a * b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
    }
}

fn fold_int(op: ReduceOp, a: i64, b: i64) -> i64 {
    match op {
        ReduceOp::Sum => a.wrapping_add(b),
        ReduceOp::Prod => a.wrapping_mul(b),
        ReduceOp::Max => a.max(b),
        ReduceOp::Min => a.min(b),
    }
}

impl Machine<'_> {
    pub fn empty_fold(&self, v: Value) -> Fold {
        let op = match self.low.code[v].step {
            Step::Reduce(op, _) | Step::GlobalReduce(op, _) => op,
            _ => return Fold { float: 0.0, int: 0, index: 0, empty: true },
        };
        let (float, int) = match op {
            ReduceOp::Sum => (0.0, 0),
            ReduceOp::Prod => (1.0, 1),
            ReduceOp::Max => (f64::NEG_INFINITY, i64::MIN),
            ReduceOp::Min => (f64::INFINITY, i64::MAX),
        };
        Fold { float, int, index: 0, empty: false }
    }

    /// Takes a chunk of a row into a reduction; `at` is the chunk's place in the row.
    pub fn fold_chunk(&mut self, v: Value, n: usize, at: usize, fold: &mut Fold) {
        let step = &self.low.code[v].step;
        if let Some(joint) = self.low.joint[v] {
            let sum = f64::from(self.sum_jointly(v, joint, n));
            return fold.absorb(&Fold { float: sum, int: 0, index: 0, empty: false }, fold_op(step));
        }
        let of = folded(step);
        by_class!(self.class(of), T => {
            let x = self.lanes::<T>(of, n);
            let (value, index) = match step {
                Step::ArgReduce { max, .. } => {
                    let i = vector::arg_reduce(*max, x);
                    (x[i], (at + i) as i64)
                }
                Step::Reduce(op, _) | Step::GlobalReduce(op, _) => (vector::reduce(*op, x), 0),
                _ => unreachable!("only reductions fold"),
            };
            let part = Fold { float: Cast::<f64>::cast(value), int: Cast::<i64>::cast(value), index, empty: false };
            let float = matches!(self.class(of), Class::F32 | Class::F64);
            let part = if float { Fold { int: 0, ..part } } else { Fold { float: 0.0, ..part } };
            fold.absorb(&part, fold_op(step));
        });
    }

    fn sum_jointly(&self, v: Value, joint: Joint, n: usize) -> f32 {
        match joint {
            Joint::SumWith(_) => self.sums[v],
            Joint::SumSquares { x, shift } => vector::sum_squares(self.lanes(x, n), self.number(shift)),
            Joint::SumProducts(a, b) => vector::sum_products(self.lanes(a, n), self.lanes(b, n)),
            _ => unreachable!("only reductions fold"),
        }
    }

    /// Hands a stage's finished reductions to the values behind them.
    pub fn set_folds(&mut self, stage: &Stage, folds: &[Fold]) {
        for (&v, fold) in stage.folds.iter().zip(folds) {
            self.set_fold(v, fold);
        }
    }

    fn set_fold(&mut self, v: Value, fold: &Fold) {
        self.expanded[v] = false;
        let arg = matches!(self.low.code[v].step, Step::ArgReduce { .. });
        let class = self.class(v);
        by_class!(class, T => {
            let lane = &mut self.lanes_mut::<T>(v, 1)[0];
            *lane = match class {
                _ if arg => Cast::<T>::cast(fold.index),
                Class::F32 | Class::F64 => Cast::<T>::cast(fold.float),
                _ => Cast::<T>::cast(fold.int),
            };
        });
        self.round(v, 1);
    }

    /// Reduces `count` short rows of a block at once.
    pub fn fold_segments(&mut self, v: Value, width: usize, count: usize) {
        self.expanded[v] = false;
        let step = &self.low.code[v].step;
        let of = folded(step);
        by_class!(self.class(of), T => {
            let x = self.lanes::<T>(of, width * count);
            match step {
                Step::ArgReduce { max, .. } => {
                    let out = self.lanes_mut::<i32>(v, count);
                    for (lane, row) in out.iter_mut().zip(x.chunks_exact(width.max(1))) {
                        *lane = vector::arg_reduce(*max, row) as i32;
                    }
                }
                Step::Reduce(op, _) if width == 0 => self.lanes_mut::<T>(v, count).fill(vector::reduce(*op, &[])),
                Step::Reduce(op, _) => vector::reduce_segments(*op, x, width, self.lanes_mut(v, count)),
                _ => unreachable!("only reductions fold"),
            }
        });
        self.round(v, count);
    }

    fn second(&self, v: Value) -> *mut u64 {
        self.register(self.low.registers + self.low.register[v])
    }

    pub fn start_columns(&mut self, stage: &Stage, n: usize) {
        for &v in &stage.folds {
            let Step::Reduce(op, _) = self.low.code[v].step else {
                unreachable!("positions are not tracked down columns")
            };
            by_class!(self.class(v), T => {
                let start = vector::reduce::<T>(op, &[]);
                self.lanes_mut::<T>(v, n).fill(start);
                // SAFETY: the register's second half, unused otherwise in this walk.
                let second: &mut [T] = unsafe { from_raw_parts_mut(self.second(v).cast(), n) };
                second.fill(start);
            });
        }
    }

    pub fn fold_columns(&mut self, stage: &Stage, n: usize, step: usize) {
        for &v in &stage.folds {
            let Step::Reduce(op, of) = self.low.code[v].step else {
                unreachable!("positions are not tracked down columns")
            };
            by_class!(self.class(v), T => vector::accumulate(op, self.lanes_mut::<T>(v, n), self.lanes::<T>(of, n)));
            if step % COLUMN_BATCH == COLUMN_BATCH - 1 {
                self.take_up(v, op, n);
            }
        }
    }

    /// Moves a column's partial result into its second register.
    fn take_up(&mut self, v: Value, op: ReduceOp, n: usize) {
        by_class!(self.class(v), T => {
            // SAFETY: the register's second half, unused otherwise in this walk.
            let second: &mut [T] = unsafe { from_raw_parts_mut(self.second(v).cast(), n) };
            let first = self.lanes_mut::<T>(v, n);
            vector::accumulate(op, second, first);
            first.fill(vector::reduce::<T>(op, &[]));
        });
    }

    /// What the columns have come to, one list of lanes for every reduction.
    pub fn column_sums(&mut self, stage: &Stage, n: usize) -> Vec<Vec<u64>> {
        let mut sums = Vec::new();
        for &v in &stage.folds {
            let Step::Reduce(op, _) = self.low.code[v].step else {
                unreachable!("positions are not tracked down columns")
            };
            self.take_up(v, op, n);
            // SAFETY: the register's second half holds `n` lanes of at most eight bytes.
            sums.push(unsafe { from_raw_parts(self.second(v), n) }.to_vec());
        }
        sums
    }

    /// Takes up what [`column_sums`](Self::column_sums) of a part came to.
    pub fn add_columns(&mut self, stage: &Stage, n: usize, sums: &[Vec<u64>]) {
        for (&v, sum) in stage.folds.iter().zip(sums) {
            let Step::Reduce(op, _) = self.low.code[v].step else {
                unreachable!("positions are not tracked down columns")
            };
            by_class!(self.class(v), T => {
                // SAFETY: the list holds `n` lanes of this class, and the register's second half has room for them.
                let (second, sum) = unsafe {
                    (from_raw_parts_mut(self.second(v).cast::<T>(), n), from_raw_parts(sum.as_ptr().cast::<T>(), n))
                };
                vector::accumulate(op, second, sum);
            });
        }
    }

    pub fn end_columns(&mut self, stage: &Stage, n: usize) {
        for &v in &stage.folds {
            let Step::Reduce(op, _) = self.low.code[v].step else {
                unreachable!("positions are not tracked down columns")
            };
            self.take_up(v, op, n);
            by_class!(self.class(v), T => {
                // SAFETY: the register's second half, unused otherwise in this walk.
                let second: &[T] = unsafe { from_raw_parts(self.second(v).cast(), n) };
                self.lanes_mut::<T>(v, n).copy_from_slice(second);
            });
            self.round(v, n);
        }
    }

    /// Everything of these rows is known: their stores, and their part of the totals.
    pub fn finish_rows(&mut self, lanes: &Lanes) {
        let low = self.low;
        for &k in &low.row_stores {
            self.store(k, lanes);
        }
        let mut totals = std::mem::take(&mut self.totals);
        for (fold, &v) in totals.iter_mut().zip(&low.totals) {
            self.fold_chunk(v, lanes.count, 0, fold);
        }
        self.totals = totals;
    }

    pub fn start_totals(&mut self) {
        self.totals = self.low.totals.iter().map(|&v| self.empty_fold(v)).collect();
    }

    pub fn take_totals(&mut self) -> Vec<Fold> {
        std::mem::take(&mut self.totals)
    }

    pub fn add_totals(&mut self, part: &[Fold]) {
        for ((total, part), &v) in self.totals.iter_mut().zip(part).zip(&self.low.totals) {
            total.absorb(part, fold_op(&self.low.code[v].step));
        }
    }

    /// Values behind the totals, and their stores.
    pub fn total(&mut self) {
        let low = self.low;
        let lanes = Lanes { extents: &[], start: 0, fixed: &[], count: 1 };
        let totals = std::mem::take(&mut self.totals);
        for (&v, fold) in low.totals.iter().zip(&totals) {
            self.set_fold(v, fold);
        }
        for &v in low.total.iter().filter(|v| !low.totals.contains(v)) {
            self.compute(v, &lanes, LaneBroadcast::Same);
        }
        for &k in &low.total_stores {
            self.store(k, &lanes);
        }
    }

    /// The first lane of every row value, for others that work on the same row.
    pub fn row_snapshot(&self) -> Vec<u64> {
        let lane = |v: Value| {
            let mut bits = [0; size_of::<u64>()];
            if self.low.code[v].rank == LoopLevel::Row {
                let size = self.class(v).size();
                // SAFETY: the lane is a register's, or lies in its slot's memory, which may end behind it.
                bits[..size].copy_from_slice(unsafe { from_raw_parts(self.at[v], size) });
            }
            u64::from_ne_bytes(bits)
        };
        (0..self.low.code.len()).map(lane).collect()
    }

    pub fn adopt_rows(&mut self, values: &[u64]) {
        for (v, &bits) in values.iter().enumerate() {
            if self.low.code[v].rank == LoopLevel::Row {
                self.reset(v);
                // SAFETY: every register has room for eight bytes.
                unsafe { self.at[v].cast::<u64>().write(bits) };
            }
        }
    }
}

/// What a reduction folds.
fn folded(step: &Step) -> Value {
    match step {
        Step::Reduce(_, of) | Step::GlobalReduce(_, of) | Step::ArgReduce { of, .. } => *of,
        _ => unreachable!("only reductions fold"),
    }
}
