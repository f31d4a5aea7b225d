//! What a plan is made of: a few kinds of kernels over numbered slots of memory. Executors read this and
//! nothing else of the plan.

use super::view::{Affine, Check};
use crate::call::Origin;
use crate::dtype::{DType, Scalar};
use crate::op::{Assertion, BinaryOp, NativeOp, RandomKind, ReduceOp, SplitAxis, UnaryOp};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::ops::Range;

/// A place in memory: an input, an output or a piece of the plan's own arena.
pub type Slot = usize;

/// An instruction's result.
pub type Value = usize;

/// How often a value is computed in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopLevel {
    /// Once: it is the same everywhere.
    Uniform,
    /// Once a row: it does not depend on the reduced loops.
    Row,
    /// In every iteration.
    Full,
    /// Once, after all rows: it was reduced over them.
    Global,
}

/// Reading or writing a slot: the position as a function of the loops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub slot: Slot,
    pub position: Affine,
}

impl Access {
    /// Whether neighbours of the innermost loop are neighbours in memory, in groups of `count` that do not cross.
    pub fn is_straight(&self, count: isize) -> bool {
        self.is_straight_along(self.position.coefficients.len().saturating_sub(1), count)
    }

    /// The same for neighbours of the loop of number `along`.
    pub fn is_straight_along(&self, along: usize, count: isize) -> bool {
        let mut steps = self.position.coefficients.iter().enumerate();
        self.position.coefficients.get(along) == Some(&1)
            && self.position.offset % count == 0
            && steps.all(|(k, c)| k == along || c % count == 0)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An element of a slot; `fill` where a check fails.
    Load {
        access: Access,
        checks: Vec<Check>,
        fill: Scalar,
    },
    /// The element at position + index · stride; out of 0..extent it is NaN, or 0 for integers.
    Gather {
        access: Access,
        index: Value,
        stride: isize,
        extent: usize,
    },
    /// The plan's argument of that number.
    Argument(usize),
    /// A number fixed in the plan.
    Literal(Scalar),
    /// A position as a number.
    Iota(Affine),
    /// Random for the counter at a position; the key is two arguments.
    Random {
        kind: RandomKind,
        argument: usize,
        counter: Affine,
    },
    /// Whether all checks hold.
    Valid(Vec<Check>),
    Unary(UnaryOp, Value),
    Binary(BinaryOp, Value, Value),
    /// a · b + c, each rounded: `Mul` and `Add` in one pass.
    MulAdd(Value, Value, Value),
    Where(Value, Value, Value),
    Cast(Value),
    /// The same value at a higher rank.
    Broadcast(Value),
    /// The same value, which is reported if the assertion, the plan's of number `site`, does not hold of it.
    Assert {
        of: Value,
        assertion: Assertion,
        site: usize,
    },
    /// Folds the reduced loops of a row.
    Reduce(ReduceOp, Value),
    /// The position in a row of its first extremum.
    ArgReduce {
        max: bool,
        of: Value,
    },
    /// Reduces all rows.
    GlobalReduce(ReduceOp, Value),
}

impl Step {
    /// Whether it folds a row.
    pub fn is_fold(&self) -> bool {
        matches!(self, Step::Reduce(..) | Step::ArgReduce { .. })
    }

    /// What it reads from memory.
    pub fn read(&self) -> Option<&Access> {
        match self {
            Step::Load { access, .. } | Step::Gather { access, .. } => Some(access),
            _ => None,
        }
    }

    /// The values it needs.
    pub fn operands(&self) -> SmallVec<[Value; 3]> {
        match self {
            Step::Unary(_, a)
            | Step::Cast(a)
            | Step::Broadcast(a)
            | Step::Reduce(_, a)
            | Step::GlobalReduce(_, a) => [*a].into_iter().collect(),
            Step::ArgReduce { of, .. } | Step::Assert { of, .. } => [*of].into_iter().collect(),
            Step::Gather { index, .. } => [*index].into_iter().collect(),
            Step::Binary(_, a, b) => [*a, *b].into_iter().collect(),
            Step::Where(a, b, c) | Step::MulAdd(a, b, c) => [*a, *b, *c].into_iter().collect(),
            _ => Default::default(),
        }
    }

    pub fn operands_mut(&mut self) -> SmallVec<[&mut Value; 3]> {
        match self {
            Step::Unary(_, a)
            | Step::Cast(a)
            | Step::Broadcast(a)
            | Step::Reduce(_, a)
            | Step::GlobalReduce(_, a) => [a].into_iter().collect(),
            Step::ArgReduce { of, .. } | Step::Assert { of, .. } => [of].into_iter().collect(),
            Step::Gather { index, .. } => [index].into_iter().collect(),
            Step::Binary(_, a, b) => [a, b].into_iter().collect(),
            Step::Where(a, b, c) | Step::MulAdd(a, b, c) => [a, b, c].into_iter().collect(),
            _ => Default::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    pub step: Step,
    pub dtype: DType,
    pub rank: LoopLevel,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    pub value: Value,
    pub access: Access,
}

/// A fused elementwise and reduction program over nested loops: `outer` loops of rows, then reduced loops.
#[derive(Clone, Debug, PartialEq)]
pub struct MapKernel {
    pub extents: Vec<usize>,
    pub outer: usize,
    pub code: Vec<Instruction>,
    pub stores: Vec<Store>,
}

impl MapKernel {
    pub fn rows(&self) -> usize {
        self.extents[..self.outer].iter().product()
    }

    pub fn iterations(&self) -> usize {
        self.extents.iter().product()
    }

    /// Whether it asserts something, for which it sees memory that is none of its slots.
    pub fn asserts(&self) -> bool {
        self.code.iter().any(|i| matches!(i.step, Step::Assert { .. }))
    }

    /// Whether something in every iteration needs what was folded of the whole row.
    pub fn is_staged(&self) -> bool {
        self.code.iter().zip(stages_of(&self.code)).any(|(i, stage)| stage > 0 && i.rank == LoopLevel::Full)
    }

    /// Drops values that no store needs.
    pub fn remove_unused(&mut self) {
        let mut used = vec![false; self.code.len()];
        for s in &self.stores {
            used[s.value] = true;
        }
        for v in (0..self.code.len()).rev() {
            if used[v] {
                for o in self.code[v].step.operands() {
                    used[o] = true;
                }
            }
        }
        let mut renumbered = vec![0; self.code.len()];
        let mut next = 0;
        for v in 0..used.len() {
            renumbered[v] = next;
            next += usize::from(used[v]);
        }
        let mut kept = used.iter();
        self.code.retain(|_| *kept.next().expect("one flag an instruction"));
        for instruction in &mut self.code {
            for o in instruction.step.operands_mut() {
                *o = renumbered[*o];
            }
        }
        for s in &mut self.stores {
            s.value = renumbered[s.value];
        }
    }

    /// The slots it reads and writes, some more than once.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.reads().map(|a| a.slot).chain(self.stores.iter().map(|s| s.access.slot))
    }

    /// The slots that `value` is computed from.
    pub fn slots_behind(&self, value: Value) -> Vec<Slot> {
        let mut wanted = vec![false; value + 1];
        wanted[value] = true;
        let mut slots = Vec::new();
        for v in (0..=value).rev() {
            if !wanted[v] {
                continue;
            }
            if let Step::Load { access, .. } | Step::Gather { access, .. } = &self.code[v].step {
                slots.push(access.slot);
            }
            self.code[v].step.operands().iter().for_each(|&o| wanted[o] = true);
        }
        slots
    }

    /// The slot that `value` is read from, if nothing is done to it.
    pub fn copied_slot(&self, value: Value) -> Option<Slot> {
        match &self.code[value].step {
            Step::Load { access, .. } => Some(access.slot),
            Step::Broadcast(of) => self.copied_slot(*of),
            _ => None,
        }
    }

    /// The slots it reads.
    pub fn reads(&self) -> impl Iterator<Item = &Access> {
        self.code.iter().filter_map(|i| i.step.read())
    }
}

/// The number of reductions that lie before each value.
pub fn stages_of(code: &[Instruction]) -> Vec<usize> {
    let mut stage = vec![0; code.len()];
    for v in 0..code.len() {
        for o in code[v].step.operands() {
            stage[v] = stage[v].max(stage[o] + usize::from(code[o].step.is_fold()));
        }
    }
    stage
}

/// Whether memory runs along the rows, which are the first `outer` loops, rather than along what is folded of them. What is
/// the same for all rows, or all along one, is small, and has no say.
pub fn runs_along_rows(code: &[Instruction], outer: usize) -> bool {
    let mut votes = 0i32;
    for i in code.iter().filter(|i| i.rank == LoopLevel::Full) {
        let Step::Load { access, .. } = &i.step else { continue };
        let (rows, folded) = access.position.coefficients.split_at(outer);
        if [rows, folded].iter().all(|loops| loops.iter().any(|&c| c != 0)) {
            let steps_by_one = |loops: &[isize]| loops.last().is_some_and(|c| c.abs() == 1);
            let along = steps_by_one(folded);
            votes += i32::from(along) - i32::from(steps_by_one(rows) && !along);
        }
    }
    votes < 0
}

/// A tensor operand of a kernel that is not made of loops: strides of its axes within a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub slot: Slot,
    pub dtype: DType,
    pub shape: Shape,
    pub strides: Vec<isize>,
    pub offset: isize,
}

impl Operand {
    pub fn is_contiguous(&self) -> bool {
        let strides = self.shape.strides();
        (0..self.shape.rank()).all(|k| self.shape[k] == 1 || self.strides[k] == strides[k])
    }

    /// The first and the last element that it sees.
    pub fn reach(&self) -> (isize, isize) {
        let ends = (0..self.shape.rank()).map(|k| self.strides[k] * (self.shape[k].max(1) - 1) as isize);
        ends.fold((self.offset, self.offset), |(low, high), end| (low + end.min(0), high + end.max(0)))
    }

    /// Some of it along an axis.
    pub fn narrowed(&self, axis: usize, range: Range<usize>) -> Operand {
        let mut shape = self.shape.to_vec();
        shape[axis] = range.len();
        let offset = self.offset + self.strides[axis] * range.start as isize;
        Operand { shape: Shape::of(&shape), offset, ..self.clone() }
    }

    /// It alone, from 0 on, one element behind the other.
    pub fn alone(&self) -> Operand {
        let strides = self.shape.strides()[..self.shape.rank()].to_vec();
        Operand { strides, offset: 0, ..self.clone() }
    }

    /// A program that reads it, element by element, as its value 0.
    pub fn as_map(&self) -> MapKernel {
        let position = Affine { coefficients: self.strides.iter().copied().collect(), offset: self.offset };
        let access = Access { slot: self.slot, position };
        let step = Step::Load { access, checks: Vec::new(), fill: Scalar::Int(0) };
        MapKernel {
            extents: self.shape.to_vec(),
            outer: self.shape.rank(),
            code: vec![Instruction { step, dtype: self.dtype, rank: LoopLevel::Full }],
            stores: Vec::new(),
        }
    }
}

/// A primitive with its operands, elementwise work on what it reads, and on its result while it is hot.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeKernel {
    pub op: NativeOp,
    pub operands: Vec<Operand>,
    pub output: Operand,
    pub prologues: Vec<Prologue>,
    pub epilogue: Option<MapKernel>,
}

/// An operand that is not in memory: its slot's elements are computed where they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Prologue {
    /// The operand's number.
    pub operand: usize,
    /// One loop over its slot, without stores: an element is the last value.
    pub map: MapKernel,
}

impl NativeKernel {
    /// The program of an operand that is not in memory.
    pub fn prologue(&self, operand: usize) -> Option<&MapKernel> {
        self.prologues.iter().find(|p| p.operand == operand).map(|p| &p.map)
    }

    /// Additions and multiplications, without what comes before and after it.
    pub fn flops(&self) -> u64 {
        self.op.flops(&self.operand_shapes(), &self.output.shape)
    }

    /// The axes it can be split along.
    pub fn split_axes(&self) -> Vec<SplitAxis> {
        self.op.split_axes(&self.operand_shapes(), &self.output.shape)
    }

    fn operand_shapes(&self) -> SmallVec<[Shape; 6]> {
        self.operands.iter().map(|operand| operand.shape).collect()
    }

    /// The slots that it reads for its operands.
    pub fn operand_slots(&self) -> impl Iterator<Item = Slot> {
        let stored = self.operands.iter().enumerate().filter(|(n, _)| self.prologue(*n).is_none());
        let computed = self.prologues.iter().flat_map(|p| p.map.reads().map(|a| a.slot));
        stored.map(|(_, operand)| operand.slot).chain(computed)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum KernelBody {
    /// One program over one or several sets of slots, independent of each other.
    Map(Vec<MapKernel>),
    /// A program over rows, and others that fold the columns of what it reads and writes: at once, or one after the other.
    Rows(Vec<MapKernel>),
    Native(Box<NativeKernel>),
}

impl KernelBody {
    /// Its programs.
    pub fn maps_mut(&mut self) -> impl Iterator<Item = &mut MapKernel> {
        let (maps, prologues): (&mut [MapKernel], &mut [Prologue]) = match self {
            KernelBody::Map(maps) | KernelBody::Rows(maps) => (maps, &mut []),
            KernelBody::Native(s) => (s.epilogue.as_mut_slice(), &mut s.prologues),
        };
        maps.iter_mut().chain(prologues.iter_mut().map(|p| &mut p.map))
    }
}

/// What a kernel is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It computes something for the first time.
    First,
    /// It computes again what the plan's kernel of that number has computed, before it, and must come to the same bits.
    Again(usize),
    /// It moves a value to the host's memory.
    ToHost,
    /// It moves a value back from there.
    FromHost,
}

/// A kernel with what the reports and the guards say of it.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub body: KernelBody,
    /// Kernels of one wave do not wait for each other.
    pub wave: usize,
    pub purpose: Purpose,
    pub label: String,
    /// What it computes, in order.
    pub parts: Vec<FusedOp>,
    pub flops: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// One op that a kernel computes.
#[derive(Clone, Copy, Debug)]
pub struct FusedOp {
    pub slot: Slot,
    pub op: &'static str,
    pub shape: Shape,
    pub dtype: DType,
    pub origin: Origin,
    /// Its result is in memory afterwards.
    pub stored: bool,
}

impl Kernel {
    /// Whether it moves a value between the device and the host's memory.
    pub fn is_transfer(&self) -> bool {
        matches!(self.purpose, Purpose::ToHost | Purpose::FromHost)
    }

    /// `map`, `reduce`, `matmul`, …
    pub fn kind(&self) -> &'static str {
        match &self.body {
            _ if self.is_transfer() => "move",
            KernelBody::Map(maps) if maps[0].outer < maps[0].extents.len() => "reduce",
            KernelBody::Map(_) => "map",
            KernelBody::Rows(_) => "reduce",
            KernelBody::Native(s) => s.op.name(),
        }
    }

    /// The type and shape of its last result.
    pub fn result(&self) -> String {
        let last = self.parts.iter().rev().find(|p| p.stored);
        last.map_or(String::new(), |p| format!("{} {}", p.dtype, p.shape))
    }

    /// The programs it runs: those that write first.
    pub fn maps(&self) -> impl Iterator<Item = &MapKernel> {
        let (maps, prologues): (&[MapKernel], &[Prologue]) = match &self.body {
            KernelBody::Map(maps) | KernelBody::Rows(maps) => (maps, &[]),
            KernelBody::Native(s) => (s.epilogue.as_slice(), &s.prologues),
        };
        maps.iter().chain(prologues.iter().map(|p| &p.map))
    }

    /// Every slot it reads.
    pub fn reads(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.maps().flat_map(|m| m.reads().map(|a| a.slot)).collect();
        if let KernelBody::Native(s) = &self.body {
            slots.extend(s.operand_slots());
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Every slot it writes.
    pub fn writes(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.maps().flat_map(|m| m.stores.iter().map(|s| s.access.slot)).collect();
        if let KernelBody::Native(s) = &self.body {
            slots.push(s.output.slot);
        }
        slots
    }
}
