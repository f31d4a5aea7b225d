//! Computes values of a lowered kernel on one block of lanes after the other.

pub(super) use super::lanes::Lanes;
use super::lanes::{read, write};
use super::lower::{CHUNK, Class, Lowered, Stage};
use super::{Bindings, FoldOp, fold_op};
use crate::cpu::block::{self, Cast, Lane, Operand};
use crate::dtype::{DType, Scalar};
use crate::op::{BinaryOp, RandomKind, ReduceOp};
use crate::plan::executor::Argument;
use crate::plan::kernel::{Access, Rank, Step, Value};
use std::cell::Cell;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Sums down columns are taken up by a second register this often, which keeps them accurate.
const COLUMN_BATCH: usize = 64;

macro_rules! by_class {
    ($class:expr, $t:ident => $body:expr) => {
        match $class {
            Class::F32 => {
                type $t = f32;
                $body
            }
            Class::F64 => {
                type $t = f64;
                $body
            }
            Class::I32 => {
                type $t = i32;
                $body
            }
            Class::I64 => {
                type $t = i64;
                $body
            }
            Class::U8 => {
                type $t = u8;
                $body
            }
        }
    };
}

/// What a row value is to the lanes of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// One lane each.
    Same,
    /// The block lies in one row.
    One,
    /// So many lanes in turn belong to one row.
    Segments(usize),
}

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

thread_local! {
    /// Registers, kept from kernel to kernel.
    static SCRATCH: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

pub(super) struct Machine<'a> {
    low: &'a Lowered,
    bind: Bindings<'a>,
    /// Where each value's lanes are now.
    at: Vec<*mut u8>,
    /// The expanded form of a row value is up to date.
    expanded: Vec<bool>,
    /// The store of that number was written by the op itself.
    written: Vec<bool>,
    totals: Vec<Fold>,
    /// This row is worked on by several threads: nothing is kept between stages.
    shares_row: bool,
    base: *mut u64,
}

impl<'a> Machine<'a> {
    pub fn with(low: &'a Lowered, bind: Bindings<'a>, f: impl FnOnce(&mut Machine)) {
        let mut scratch = SCRATCH.take();
        let needed = (2 * low.registers + 2) * CHUNK + low.kept.len() * low.width;
        if scratch.len() < needed {
            scratch.resize(needed, 0);
        }
        let base = scratch.as_mut_ptr();
        // SAFETY: every register lies within `scratch`.
        let at = low.register.iter().map(|&r| unsafe { base.add(r * CHUNK) }.cast()).collect();
        let mut machine = Machine {
            low,
            bind,
            at,
            expanded: vec![false; low.code.len()],
            written: vec![false; low.stores.len()],
            totals: Vec::new(),
            shares_row: false,
            base,
        };
        f(&mut machine);
        SCRATCH.set(scratch);
    }

    fn class(&self, v: Value) -> Class {
        Class::of(self.low.code[v].dtype)
    }

    fn register(&self, r: usize) -> *mut u64 {
        // SAFETY: `with` made room for twice the registers and two more.
        unsafe { self.base.add(r * CHUNK) }
    }

    /// A value's lanes.
    fn lanes<T>(&self, v: Value, n: usize) -> &'a [T] {
        // SAFETY: the value was computed before (the order of the program), in lanes of its class, and nothing
        // writes there while it is read: registers are shared only after the last use.
        unsafe { from_raw_parts(self.at[v].cast(), n) }
    }

    /// Where a value's lanes go.
    fn lanes_mut<T>(&self, v: Value, n: usize) -> &'a mut [T] {
        // SAFETY: as for `lanes`; no other value has this register now.
        unsafe { from_raw_parts_mut(self.at[v].cast(), n) }
    }

    fn reset(&mut self, v: Value) {
        self.at[v] = self.register(self.low.register[v]).cast();
    }

    /// Values that are the same everywhere.
    pub fn uniform(&mut self) {
        let lanes = Lanes { extents: &[], start: 0, fixed: &[], count: 1 };
        let low = self.low;
        for &v in &low.uniform {
            self.compute(v, &lanes, Spread::Same);
        }
    }

    pub fn row_values(&mut self, values: &[Value], lanes: &Lanes) {
        for &v in values {
            self.compute(v, lanes, Spread::Same);
        }
    }

    /// The full values of a stage on one block, and their stores.
    pub fn full(&mut self, stage: &Stage, lanes: &Lanes, spread: Spread, place_in_row: usize) {
        let low = self.low;
        if lanes.count == 0 {
            return;
        }
        if !low.kept.is_empty() && spread == Spread::One {
            self.point_at_kept(place_in_row);
        }
        for &v in &stage.full {
            if let Some(k) = low.direct_of[v] {
                self.aim(v, k, lanes);
            }
            self.compute(v, lanes, spread);
        }
        for &k in &stage.stores {
            if !std::mem::take(&mut self.written[k]) {
                self.store(k, lanes);
            }
        }
    }

    /// Whether kept values are at hand: not when a row is shared out.
    pub fn keep_rows_at(&mut self, at: Option<usize>) {
        if at.is_none() {
            let low = self.low;
            low.kept.iter().for_each(|&(v, _)| self.reset(v));
        }
        self.shares_row = at.is_none();
    }

    fn point_at_kept(&mut self, place: usize) {
        if self.shares_row {
            return;
        }
        let low = self.low;
        let rows = self.register(2 * low.registers + 2);
        for &(v, k) in &low.kept {
            let size = self.class(v).size();
            // SAFETY: `with` made room for `width` lanes of eight bytes for every kept row.
            self.at[v] = unsafe { rows.add(k * low.width).cast::<u8>().add(place * size) };
        }
    }

    /// Lets a value be computed right where it is stored, if its lanes lie side by side there.
    fn aim(&mut self, v: Value, store: usize, lanes: &Lanes) {
        let access = &self.low.stores[store].access;
        match lanes.side_by_side(&access.position) {
            Some(position) => {
                let size = self.class(v).size() as isize;
                // SAFETY: the position is the store's own, inside its slot.
                self.at[v] = unsafe { self.bind.slots[access.slot].0.offset(position * size) };
                self.written[store] = true;
            }
            None => self.reset(v),
        }
    }

    fn operand<T: Lane>(&mut self, o: Value, of: Rank, n: usize, spread: Spread) -> Operand<'a, T> {
        match (self.low.code[o].rank, of, spread) {
            (Rank::Uniform, ..) | (Rank::Row, Rank::Full, Spread::One) => {
                Operand::Scalar(self.lanes::<T>(o, 1)[0])
            }
            (Rank::Row, Rank::Full, Spread::Segments(width)) => {
                let out = self.register(self.low.registers + self.low.register[o]);
                // SAFETY: the second half of the registers holds expanded row values, one each.
                let out: &'a mut [T] = unsafe { from_raw_parts_mut(out.cast(), n) };
                if !self.expanded[o] {
                    self.expanded[o] = true;
                    block::broadcast_segments(self.lanes::<T>(o, n / width), width, out);
                }
                Operand::Block(out)
            }
            _ => Operand::Block(self.lanes(o, n)),
        }
    }

    pub fn forget_expanded(&mut self) {
        self.expanded.fill(false);
    }

    fn compute(&mut self, v: Value, lanes: &Lanes, spread: Spread) {
        let low = self.low;
        let instruction = &low.code[v];
        let (dtype, rank, n) = (instruction.dtype, instruction.rank, lanes.count);
        if rank == Rank::Row {
            self.expanded[v] = false;
        }
        match &instruction.step {
            Step::Load { access, checks, fill } => {
                let direct = if checks.is_empty() && !dtype.is_half() {
                    lanes.side_by_side(&access.position)
                } else {
                    None
                };
                let slot = self.bind.slots[access.slot].0;
                if let Some(position) = direct {
                    // SAFETY: the view stays inside its slot.
                    self.at[v] = unsafe { slot.offset(position * dtype.size() as isize) };
                    return;
                }
                self.reset(v);
                // SAFETY: the view stays inside its slot wherever its checks hold.
                unsafe { self.load(v, slot, access, checks, *fill, lanes) };
                return;
            }
            Step::Gather { access, index, stride, extent } => {
                return self.gather(v, access, *index, (*stride, *extent), lanes, spread);
            }
            Step::Argument(k) => {
                let Argument::Number(value) = self.bind.arguments[*k] else {
                    unreachable!("a number is an argument")
                };
                by_class!(Class::of(dtype), T => self.lanes_mut::<T>(v, 1)[0] = scalar_lane(value, dtype));
            }
            Step::Literal(value) => {
                by_class!(Class::of(dtype), T => self.lanes_mut::<T>(v, 1)[0] = scalar_lane(Scalar::Float(*value), dtype));
            }
            Step::Iota(form) => by_class!(Class::of(dtype), T => {
                let out = self.lanes_mut::<T>(v, n);
                lanes.runs(|run| {
                    let (start, step) = run.at(form);
                    for (k, lane) in out[run.lane..run.lane + run.count].iter_mut().enumerate() {
                        *lane = Cast::<T>::cast((start + k as isize * step) as i64);
                    }
                });
            }),
            Step::Random { kind, argument, counter } => {
                let Argument::Key(key) = self.bind.arguments[*argument] else {
                    unreachable!("a key is an argument")
                };
                self.random(v, *kind, key, counter, lanes);
            }
            Step::Valid(checks) => {
                let out = self.lanes_mut::<u8>(v, n);
                lanes.runs(|run| {
                    let valid = run.valid(checks);
                    let out = &mut out[run.lane..run.lane + run.count];
                    out.fill(0);
                    out[valid].fill(1);
                });
            }
            Step::Unary(op, a) => by_class!(Class::of(dtype), T => {
                match self.operand::<T>(*a, rank, n, spread) {
                    Operand::Block(x) => block::unary(*op, x, self.lanes_mut(v, n)),
                    Operand::Scalar(x) => {
                        let out = self.lanes_mut::<T>(v, n);
                        block::unary(*op, &[x], &mut out[..1]);
                        let y = out[0];
                        out.fill(y);
                    }
                }
            }),
            Step::Binary(op, a, b) => {
                let class = Class::of(low.code[*a].dtype);
                by_class!(class, T => {
                    let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                    if op.compares() {
                        block::compare(*op, x, y, self.lanes_mut(v, n));
                    } else {
                        block::binary(if dtype == DType::Bool { of_bools(*op) } else { *op }, x, y, self.lanes_mut(v, n));
                    }
                });
            }
            Step::MulAdd(a, b, c) => by_class!(Class::of(dtype), T => {
                let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                let z = self.operand::<T>(*c, rank, n, spread);
                block::mul_add(x, y, z, self.lanes_mut::<T>(v, n));
            }),
            Step::Where(c, a, b) => {
                let mask = self.operand::<u8>(*c, rank, n, spread);
                by_class!(Class::of(dtype), T => {
                    let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                    block::select(mask, x, y, self.lanes_mut::<T>(v, n));
                });
            }
            Step::Cast(a) => self.cast(v, *a, n, spread),
            Step::Broadcast(a) => by_class!(Class::of(dtype), T => {
                match self.operand::<T>(*a, rank, n, spread) {
                    Operand::Block(x) => self.lanes_mut::<T>(v, n).copy_from_slice(x),
                    Operand::Scalar(x) => self.lanes_mut::<T>(v, n).fill(x),
                }
            }),
            Step::Reduce(..) | Step::ArgReduce { .. } | Step::Total(..) => {
                unreachable!("reductions end a stage")
            }
        }
        self.round(v, n);
    }

    /// Two-byte floats are rounded after every op.
    fn round(&mut self, v: Value, n: usize) {
        match self.low.code[v].dtype {
            DType::F16 => block::round_f16(self.lanes_mut(v, n)),
            DType::BF16 => block::round_bf16(self.lanes_mut(v, n)),
            _ => {}
        }
    }

    fn cast(&mut self, v: Value, a: Value, n: usize, spread: Spread) {
        let (from, to) = (self.low.code[a].dtype, self.low.code[v].dtype);
        let rank = self.low.code[v].rank;
        by_class!(Class::of(from), S => {
            let x = self.operand::<S>(a, rank, n, spread);
            let one;
            let x: &[S] = match x {
                Operand::Block(x) => x,
                Operand::Scalar(x) => {
                    one = [x];
                    &one
                }
            };
            if to == DType::Bool {
                let out = self.lanes_mut::<u8>(v, n);
                block::to_bool(x, &mut out[..x.len()]);
                let first = out[0];
                out[x.len()..].fill(first);
            } else {
                by_class!(Class::of(to), D => {
                    let out = self.lanes_mut::<D>(v, n);
                    block::convert::<S, D>(x, &mut out[..x.len()]);
                    if x.len() < n {
                        let first = out[0];
                        out[x.len()..].fill(first);
                    }
                });
            }
        });
    }

    /// # Safety
    /// Positions that pass the checks lie inside the slot.
    unsafe fn load(
        &mut self,
        v: Value,
        slot: *mut u8,
        access: &Access,
        checks: &[crate::plan::view::Check],
        fill: f64,
        lanes: &Lanes,
    ) {
        let (dtype, n) = (self.low.code[v].dtype, lanes.count);
        if dtype.is_half() {
            let raw = self.register(2 * self.low.registers);
            // SAFETY: a register of its own, for values on the way.
            let raw: &mut [u16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
            let bits = match dtype {
                DType::F16 => half::f16::from_f64(fill).to_bits(),
                _ => half::bf16::from_f64(fill).to_bits(),
            };
            // SAFETY: promised by the caller.
            unsafe { read(slot.cast::<u16>(), &access.position, checks, bits, lanes, raw) };
            if dtype == DType::F16 {
                // SAFETY: `f16` is two bytes without invalid patterns.
                let raw = unsafe { from_raw_parts(raw.as_ptr().cast(), n) };
                block::load_f16(raw, self.lanes_mut(v, n));
            } else {
                // SAFETY: `bf16` is two bytes without invalid patterns.
                let raw = unsafe { from_raw_parts(raw.as_ptr().cast(), n) };
                block::load_bf16(raw, self.lanes_mut(v, n));
            }
            return;
        }
        by_class!(Class::of(dtype), T => {
            let fill = scalar_lane::<T>(Scalar::Float(fill), dtype);
            // SAFETY: promised by the caller.
            unsafe { read(slot.cast::<T>(), &access.position, checks, fill, lanes, self.lanes_mut(v, n)) };
        });
    }

    fn gather(
        &mut self,
        v: Value,
        access: &Access,
        index: Value,
        (stride, extent): (isize, usize),
        lanes: &Lanes,
        spread: Spread,
    ) {
        let (dtype, rank, n) = (self.low.code[v].dtype, self.low.code[v].rank, lanes.count);
        // Indices as i64, whatever they came as.
        let raw = self.register(2 * self.low.registers);
        // SAFETY: a register of its own, for values on the way.
        let indices: &mut [i64] = unsafe { from_raw_parts_mut(raw.cast(), n) };
        by_class!(self.class(index), S => match self.operand::<S>(index, rank, n, spread) {
            Operand::Block(x) => block::convert::<S, i64>(x, indices),
            Operand::Scalar(x) => indices.fill(Cast::<i64>::cast(x)),
        });
        let slot = self.bind.slots[access.slot].0;
        let faults = self.bind.faults;
        let storage = dtype;
        self.reset(v);
        macro_rules! pick {
            ($stored:ty, $lane:ty, $widen:expr, $missing:expr) => {{
                let out = self.lanes_mut::<$lane>(v, n);
                let widen: fn($stored) -> $lane = $widen;
                lanes.runs(|run| {
                    let (start, step) = run.at(&access.position);
                    let indices = &indices[run.lane..run.lane + run.count];
                    for (k, (lane, &i)) in
                        out[run.lane..run.lane + run.count].iter_mut().zip(indices).enumerate()
                    {
                        *lane = if (0..extent as i64).contains(&i) {
                            let position = start + k as isize * step + i as isize * stride;
                            // SAFETY: the index was checked, the other coordinates are the view's.
                            widen(unsafe { *slot.cast::<$stored>().offset(position) })
                        } else {
                            faults.bad_index(i, extent);
                            $missing
                        };
                    }
                });
            }};
        }
        match storage {
            DType::F32 => pick!(f32, f32, |x| x, f32::NAN),
            DType::F64 => pick!(f64, f64, |x| x, f64::NAN),
            DType::F16 => pick!(half::f16, f32, |x| x.to_f32(), f32::NAN),
            DType::BF16 => pick!(half::bf16, f32, |x| x.to_f32(), f32::NAN),
            DType::I32 => pick!(i32, i32, |x| x, 0),
            DType::I64 => pick!(i64, i64, |x| x, 0),
            DType::U8 | DType::Bool => pick!(u8, u8, |x| x, 0),
        }
    }

    fn random(
        &mut self,
        v: Value,
        kind: RandomKind,
        key: [u32; 2],
        counter: &crate::plan::view::Affine,
        lanes: &Lanes,
    ) {
        let n = lanes.count;
        let words = self.register(2 * self.low.registers);
        // SAFETY: two registers of their own behind the others, for values on the way.
        let (first, second): (&mut [u32], &mut [u32]) =
            unsafe { (from_raw_parts_mut(words.cast(), n), from_raw_parts_mut(words.add(CHUNK).cast(), n)) };
        lanes.runs(|run| {
            let (start, step) = run.at(counter);
            let span = run.lane..run.lane + run.count;
            if step == 1 {
                block::threefry_block(key, start as u64, &mut first[span.clone()], &mut second[span]);
            } else {
                for (k, lane) in span.enumerate() {
                    let c = (start + k as isize * step) as u64;
                    [first[lane], second[lane]] = block::threefry2x32(key, [c as u32, (c >> 32) as u32]);
                }
            }
        });
        let uniform = |words: &[u32], out: &mut [f32]| {
            for (lane, &w) in out.iter_mut().zip(words) {
                *lane = (w >> 8) as f32 * (1.0 / (1 << 24) as f32);
            }
        };
        match kind {
            RandomKind::Uniform => uniform(first, self.lanes_mut(v, n)),
            RandomKind::UniformSecond => uniform(second, self.lanes_mut(v, n)),
            RandomKind::Bits => {
                for (lane, &w) in self.lanes_mut::<i32>(v, n).iter_mut().zip(first.iter()) {
                    *lane = (w >> 1) as i32;
                }
            }
        }
    }

    fn store(&mut self, k: usize, lanes: &Lanes) {
        let store = &self.low.stores[k];
        let (v, n) = (store.value, lanes.count);
        let dtype = self.low.code[v].dtype;
        let slot = self.bind.slots[store.access.slot].0;
        let position = &store.access.position;
        let raw = self.register(2 * self.low.registers);
        // A store's positions lie inside its slot, each lane's apart from all others', and the plan lets nobody
        // else use the slot meanwhile.
        match dtype {
            DType::F16 => {
                // SAFETY: a register of its own, for values on the way.
                let out: &mut [half::f16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
                block::store_f16(self.lanes(v, n), out);
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, out) };
            }
            DType::BF16 => {
                // SAFETY: a register of its own, for values on the way.
                let out: &mut [half::bf16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
                block::store_bf16(self.lanes(v, n), out);
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, out) };
            }
            _ => by_class!(Class::of(dtype), T => {
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, self.lanes::<T>(v, n)) }
            }),
        }
    }

    pub fn empty_fold(&self, v: Value) -> Fold {
        let op = match self.low.code[v].step {
            Step::Reduce(op, _) | Step::Total(op, _) => op,
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
        let of = folded(step);
        by_class!(self.class(of), T => {
            let x = self.lanes::<T>(of, n);
            let (value, index) = match step {
                Step::ArgReduce { max, .. } => {
                    let i = block::arg_reduce(*max, x);
                    (x[i], (at + i) as i64)
                }
                Step::Reduce(op, _) | Step::Total(op, _) => (block::reduce(*op, x), 0),
                _ => unreachable!("only reductions fold"),
            };
            let part = Fold { float: Cast::<f64>::cast(value), int: Cast::<i64>::cast(value), index, empty: false };
            let float = matches!(self.class(of), Class::F32 | Class::F64);
            let part = if float { Fold { int: 0, ..part } } else { Fold { float: 0.0, ..part } };
            fold.absorb(&part, fold_op(step));
        });
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
                        *lane = block::arg_reduce(*max, row) as i32;
                    }
                }
                Step::Reduce(op, _) if width == 0 => self.lanes_mut::<T>(v, count).fill(block::reduce(*op, &[])),
                Step::Reduce(op, _) => block::reduce_segments(*op, x, width, self.lanes_mut(v, count)),
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
                let start = block::reduce::<T>(op, &[]);
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
            by_class!(self.class(v), T => block::accumulate(op, self.lanes_mut::<T>(v, n), self.lanes::<T>(of, n)));
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
            block::accumulate(op, second, first);
            first.fill(block::reduce::<T>(op, &[]));
        });
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
            self.compute(v, &lanes, Spread::Same);
        }
        for &k in &low.total_stores {
            self.store(k, &lanes);
        }
    }

    /// The first lane of every row value, for others that work on the same row.
    pub fn row_snapshot(&self) -> Vec<u64> {
        let lane = |v: Value| match self.low.code[v].rank {
            // SAFETY: every register has room for eight bytes.
            Rank::Row => unsafe { self.at[v].cast::<u64>().read_unaligned() },
            _ => 0,
        };
        (0..self.low.code.len()).map(lane).collect()
    }

    pub fn adopt_rows(&mut self, values: &[u64]) {
        for (v, &bits) in values.iter().enumerate() {
            if self.low.code[v].rank == Rank::Row {
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
        Step::Reduce(_, of) | Step::Total(_, of) | Step::ArgReduce { of, .. } => *of,
        _ => unreachable!("only reductions fold"),
    }
}

/// A number as a lane, converted as a cast would.
fn scalar_lane<T: Lane>(value: Scalar, dtype: DType) -> T
where
    f64: Cast<T>,
    i64: Cast<T>,
{
    match value {
        _ if dtype == DType::Bool => Cast::<T>::cast(i64::from(value.is_true())),
        Scalar::Float(x) => Cast::<T>::cast(x),
        Scalar::Int(x) => Cast::<T>::cast(x),
        Scalar::Bool(x) => Cast::<T>::cast(i64::from(x)),
    }
}

/// Arithmetic of truth values: addition is or, multiplication is and.
fn of_bools(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Max => BinaryOp::Or,
        BinaryOp::Mul | BinaryOp::Min => BinaryOp::And,
        op => op,
    }
}
