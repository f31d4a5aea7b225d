//! Computes values of a lowered kernel on one block of lanes after the other.

use super::Bindings;
pub(super) use super::lanes::Lanes;
use super::lower::{CHUNK, Class, Lowered, Stage};
use super::reduce::Fold;
use super::superinstructions::Joint;
use crate::vector::{self, Cast, LaneElement, Operand};
use std::cell::Cell;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use volta_ir::dtype::{DType, Scalar};
use volta_ir::op::BinaryOp;
use volta_ir::plan::executor::Argument;
use volta_ir::plan::kernel::{LoopLevel, Step, Value};

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
            Class::U32 => {
                type $t = u32;
                $body
            }
            Class::U8 => {
                type $t = u8;
                $body
            }
        }
    };
}
pub(super) use by_class;

/// What a row value is to the lanes of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneBroadcast {
    /// One lane each.
    Same,
    /// The block lies in one row.
    One,
    /// So many lanes in turn belong to one row.
    Segments(usize),
}

thread_local! {
    /// Registers, kept from kernel to kernel.
    static SCRATCH: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

pub(super) struct Machine<'a> {
    pub(super) low: &'a Lowered,
    pub(super) bind: Bindings<'a>,
    /// Where each value's lanes are now.
    pub(super) at: Vec<*mut u8>,
    /// The expanded form of a row value is up to date.
    pub(super) expanded: Vec<bool>,
    /// The store of that number was written by the op itself.
    pub(super) written: Vec<bool>,
    pub(super) totals: Vec<Fold>,
    /// Sums of a block that were taken when its lanes were computed.
    pub(super) sums: Vec<f32>,
    /// This row is worked on by several threads: nothing is kept between stages.
    pub(super) shares_row: bool,
    pub(super) base: *mut u64,
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
            sums: vec![0.0; low.code.len()],
            shares_row: false,
            base,
        };
        f(&mut machine);
        SCRATCH.set(scratch);
    }

    pub(super) fn class(&self, v: Value) -> Class {
        Class::of(self.low.code[v].dtype)
    }

    pub(super) fn register(&self, r: usize) -> *mut u64 {
        // SAFETY: `with` made room for twice the registers and two more.
        unsafe { self.base.add(r * CHUNK) }
    }

    /// A value's lanes.
    pub(super) fn lanes<T>(&self, v: Value, n: usize) -> &'a [T] {
        // SAFETY: the value was computed before (the order of the program), in lanes of its class, and nothing
        // writes there while it is read: registers are shared only after the last use.
        unsafe { from_raw_parts(self.at[v].cast(), n) }
    }

    /// Where a value's lanes go.
    pub(super) fn lanes_mut<T>(&self, v: Value, n: usize) -> &'a mut [T] {
        // SAFETY: as for `lanes`; no other value has this register now.
        unsafe { from_raw_parts_mut(self.at[v].cast(), n) }
    }

    pub(super) fn reset(&mut self, v: Value) {
        self.at[v] = self.register(self.low.register[v]).cast();
    }

    /// Values that are the same everywhere.
    pub fn uniform(&mut self) {
        let lanes = Lanes { extents: &[], start: 0, fixed: &[], count: 1 };
        let low = self.low;
        for &v in &low.uniform {
            self.compute(v, &lanes, LaneBroadcast::Same);
        }
    }

    pub fn row_values(&mut self, values: &[Value], lanes: &Lanes) {
        for &v in values {
            self.compute(v, lanes, LaneBroadcast::Same);
        }
    }

    /// The full values of a stage on one block, and their stores.
    pub fn full(&mut self, stage: &Stage, lanes: &Lanes, spread: LaneBroadcast, place_in_row: usize) {
        let low = self.low;
        if lanes.count == 0 {
            return;
        }
        if !low.kept.is_empty() && spread == LaneBroadcast::One {
            self.point_at_kept(place_in_row, lanes);
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

    fn point_at_kept(&mut self, place: usize, lanes: &Lanes) {
        if self.shares_row {
            return;
        }
        let low = self.low;
        let rows = self.register(2 * low.registers + 2);
        for &(v, k) in &low.kept {
            if low.waits_at[v].is_some_and(|store| self.point_at_store(v, store, lanes)) {
                continue;
            }
            let size = self.class(v).size();
            // SAFETY: `with` made room for `width` lanes of eight bytes for every kept row.
            self.at[v] = unsafe { rows.add(k * low.width).cast::<u8>().add(place * size) };
        }
    }

    /// Puts a value's lanes where a store goes, if they lie side by side there; says whether they do.
    fn point_at_store(&mut self, v: Value, store: usize, lanes: &Lanes) -> bool {
        let access = &self.low.stores[store].access;
        let Some(position) = lanes.side_by_side(&access.position) else { return false };
        let size = self.class(v).size() as isize;
        // SAFETY: the position is the store's own, inside its slot.
        self.at[v] = unsafe { self.bind.slots[access.slot].0.offset(position * size) };
        true
    }

    /// Lets a value be computed right where it is stored, if its lanes lie side by side there.
    fn aim(&mut self, v: Value, store: usize, lanes: &Lanes) {
        self.written[store] = self.point_at_store(v, store, lanes);
        if !self.written[store] {
            self.reset(v);
        }
    }

    pub(super) fn operand<T: LaneElement>(
        &mut self,
        o: Value,
        of: LoopLevel,
        n: usize,
        spread: LaneBroadcast,
    ) -> Operand<'a, T> {
        match (self.low.code[o].rank, of, spread) {
            (LoopLevel::Uniform, ..) | (LoopLevel::Row, LoopLevel::Full, LaneBroadcast::One) => {
                Operand::Scalar(self.lanes::<T>(o, 1)[0])
            }
            (LoopLevel::Row, LoopLevel::Full, LaneBroadcast::Segments(width)) => {
                let out = self.register(self.low.registers + self.low.register[o]);
                // SAFETY: the second half of the registers holds expanded row values, one each.
                let out: &'a mut [T] = unsafe { from_raw_parts_mut(out.cast(), n) };
                if !self.expanded[o] {
                    self.expanded[o] = true;
                    vector::broadcast_segments(self.lanes::<T>(o, n / width), width, out);
                }
                Operand::Block(out)
            }
            _ => Operand::Block(self.lanes(o, n)),
        }
    }

    pub fn forget_expanded(&mut self) {
        self.expanded.fill(false);
    }

    pub(super) fn compute(&mut self, v: Value, lanes: &Lanes, spread: LaneBroadcast) {
        let low = self.low;
        let instruction = &low.code[v];
        let (dtype, rank, n) = (instruction.dtype, instruction.rank, lanes.count);
        if rank == LoopLevel::Row {
            self.expanded[v] = false;
        }
        if let Some(joint) = low.joint[v] {
            return self.compute_jointly(v, joint, n);
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
                by_class!(Class::of(dtype), T => self.lanes_mut::<T>(v, 1)[0] = scalar_lane(*value, dtype));
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
                    Operand::Block(x) => vector::unary(*op, x, self.lanes_mut(v, n)),
                    Operand::Scalar(x) => {
                        let out = self.lanes_mut::<T>(v, n);
                        vector::unary(*op, &[x], &mut out[..1]);
                        let y = out[0];
                        out.fill(y);
                    }
                }
            }),
            // It waited there to be scaled.
            Step::Binary(BinaryOp::Mul, a, b) if low.waits_at[*a].is_some() && self.at[*a] == self.at[v] => {
                vector::rescale(self.lanes_mut(v, n), self.number(*b));
            }
            Step::Binary(op, a, b) => {
                let class = Class::of(low.code[*a].dtype);
                by_class!(class, T => {
                    let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                    if op.compares() {
                        vector::compare(*op, x, y, self.lanes_mut(v, n));
                    } else {
                        vector::binary(if dtype == DType::Bool { of_bools(*op) } else { *op }, x, y, self.lanes_mut(v, n));
                    }
                });
            }
            Step::MulAdd(a, b, c) => by_class!(Class::of(dtype), T => {
                let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                let z = self.operand::<T>(*c, rank, n, spread);
                vector::mul_add(x, y, z, self.lanes_mut::<T>(v, n));
            }),
            Step::Where(c, a, b) => {
                let mask = self.operand::<u8>(*c, rank, n, spread);
                by_class!(Class::of(dtype), T => {
                    let (x, y) = (self.operand::<T>(*a, rank, n, spread), self.operand::<T>(*b, rank, n, spread));
                    vector::select(mask, x, y, self.lanes_mut::<T>(v, n));
                });
            }
            Step::Cast(a) => self.cast(v, *a, n, spread),
            Step::Broadcast(a) => by_class!(Class::of(dtype), T => {
                match self.operand::<T>(*a, rank, n, spread) {
                    Operand::Block(x) => self.lanes_mut::<T>(v, n).copy_from_slice(x),
                    Operand::Scalar(x) => self.lanes_mut::<T>(v, n).fill(x),
                }
            }),
            Step::Assert { of, assertion, site } => by_class!(Class::of(dtype), T => {
                let x = self.operand::<T>(*of, rank, n, spread);
                let one;
                let x: &[T] = match x {
                    Operand::Block(x) => x,
                    Operand::Scalar(x) => {
                        one = [x];
                        &one
                    }
                };
                if let Some(number) = vector::first_failure(*assertion, x) {
                    self.bind.failures.report(*site, number);
                }
                let out = self.lanes_mut::<T>(v, n);
                out[..x.len()].copy_from_slice(x);
                if let [x] = x {
                    out.fill(*x);
                }
            }),
            Step::Reduce(..) | Step::ArgReduce { .. } | Step::GlobalReduce(..) => {
                unreachable!("reductions end a stage")
            }
        }
        self.round(v, n);
    }

    /// A value that is the same in all of a block.
    pub(super) fn number(&self, v: Value) -> f32 {
        self.lanes::<f32>(v, 1)[0]
    }

    /// A value of a long row, together with what it is made of.
    fn compute_jointly(&mut self, v: Value, joint: Joint, n: usize) {
        // The same place in the next row, if rows lie one behind the other.
        let ahead = |x: Value| self.at[x].cast_const().cast::<f32>().wrapping_add(self.low.width);
        match joint {
            Joint::ExpShifted { x, shift, sum } => {
                let total =
                    vector::exp_shifted(self.lanes(x, n), self.number(shift), ahead(x), self.lanes_mut(v, n));
                if let Some(sum) = sum {
                    self.sums[sum] = total;
                }
            }
            Joint::ShiftedScaled { x, shift, scale } => {
                let (shift, scale) = (self.number(shift), self.number(scale));
                vector::shifted_scaled(self.lanes(x, n), shift, scale, ahead(x), self.lanes_mut(v, n));
            }
            _ => unreachable!("reductions end a stage"),
        }
    }

    /// 16-bit floats are rounded after every op.
    pub(super) fn round(&mut self, v: Value, n: usize) {
        match self.low.code[v].dtype {
            DType::F16 => vector::round_f16(self.lanes_mut(v, n)),
            DType::BF16 => vector::round_bf16(self.lanes_mut(v, n)),
            _ => {}
        }
    }

    fn cast(&mut self, v: Value, a: Value, n: usize, spread: LaneBroadcast) {
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
                vector::to_bool(x, &mut out[..x.len()]);
                let first = out[0];
                out[x.len()..].fill(first);
            } else {
                by_class!(Class::of(to), D => {
                    let out = self.lanes_mut::<D>(v, n);
                    vector::convert::<S, D>(x, &mut out[..x.len()]);
                    if x.len() < n {
                        let first = out[0];
                        out[x.len()..].fill(first);
                    }
                });
            }
        });
    }
}

/// A number as a lane, converted as a cast would.
pub(super) fn scalar_lane<T: LaneElement>(value: Scalar, dtype: DType) -> T
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
