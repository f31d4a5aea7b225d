//! Kernels from templates of which even the smallest part would see more pieces of memory than a dispatch may: lines that
//! run through all of a tensor, heads of attention that lie across the ends of pieces. What a part needs is copied aside,
//! is computed with there, and the results are copied to where they belong. A line of running sums may itself be longer than
//! what a dispatch sees: it is summed up in pieces, each from where the one before it ends.

use super::attention;
use crate::dtype::DType;
use crate::op::BinaryOp;
use crate::plan::kernel::{
    Access, Instruction, MapKernel, Operand, Rank, Slot, Special, SpecialKernel, Step, Store, Work,
};
use crate::plan::view::Affine;
use crate::shape::Shape;
use std::ops::Range;

/// Several kernels in place of one, with memory between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Detour {
    pub works: Vec<Work>,
    /// The type and the number of elements of every slot that is added to the plan's; they are numbered on.
    pub slots: Vec<(DType, usize)>,
}

/// A part of a kernel that works on copies.
struct Aside {
    /// What it computes of every axis along which the kernel can be cut.
    ranges: Vec<Range<usize>>,
    /// The part as a kernel of its own: its operands and results are copies, each of them from 0 on.
    kernel: SpecialKernel,
    /// What is copied for each operand, and lastly of the results: views of the whole, one behind the other.
    views: Vec<Vec<Operand>>,
}

/// A part as a kernel of its own, and the views that its operands and results are copies of.
pub(super) type Detached = (SpecialKernel, Vec<Vec<Operand>>);

/// The kernel by way of copies, which take at most `most` bytes at once where that can be; none if it is of another kind. Slots
/// are added from `first` on.
pub(super) fn detours(kernel: &SpecialKernel, first: Slot, most: usize) -> Option<Vec<Detour>> {
    let (mut parts, mut rest) = (Vec::new(), vec![Aside::whole(kernel)?]);
    while let Some(part) = rest.pop() {
        match (part.bytes() > most).then(|| part.halves(kernel)).flatten() {
            Some([one, two]) => rest.extend([two, one]),
            None => parts.push(part.detour(first)),
        }
    }
    Some(parts)
}

impl Aside {
    /// All of a kernel, if there is a way to cut it.
    fn whole(kernel: &SpecialKernel) -> Option<Aside> {
        let extents: Vec<usize> = match kernel.special {
            _ if kernel.epilogue.is_some() => return None,
            Special::ArgSort { .. } | Special::Cumsum { .. } => kernel.output.shape.to_vec(),
            Special::Attention { .. } | Special::AttentionGrad { .. } => {
                kernel.operands[0].shape[..2].to_vec()
            }
            _ => return None,
        };
        Some(Aside::of(kernel, extents.iter().map(|&extent| 0..extent).collect()))
    }

    fn of(whole: &SpecialKernel, ranges: Vec<Range<usize>>) -> Aside {
        let (kernel, views) = match whole.special {
            Special::Attention { .. } | Special::AttentionGrad { .. } => {
                attention::detached(whole, [ranges[0].clone(), ranges[1].clone()])
            }
            _ => lines(whole, &ranges),
        };
        Aside { ranges, kernel, views }
    }

    /// It in two, if it can be cut any more: lines themselves only if nothing else is left, and not to be sorted.
    fn halves(&self, whole: &SpecialKernel) -> Option<[Aside; 2]> {
        let (line, last) = match whole.special {
            Special::ArgSort { axis, .. } => (Some(axis), None),
            Special::Cumsum { axis } => (Some(axis), Some(axis)),
            _ => (None, None),
        };
        let across = (0..self.ranges.len()).filter(|&k| Some(k) != line);
        let cut = across.chain(last).find(|&k| self.ranges[k].len() > 1)?;
        let Range { start, end } = self.ranges[cut];
        let middle = start.midpoint(end);
        Some([start..middle, middle..end].map(|range| {
            let mut ranges = self.ranges.clone();
            ranges[cut] = range;
            Aside::of(whole, ranges)
        }))
    }

    /// The axis of running sums that begin behind others.
    fn goes_on(&self) -> Option<usize> {
        let Special::Cumsum { axis } = self.kernel.special else { return None };
        (self.ranges[axis].start > 0).then_some(axis)
    }

    /// What its copies take, at four bytes an element or more.
    fn bytes(&self) -> usize {
        let of = |view: &Operand| view.shape.numel() * view.dtype.size().max(4);
        self.views.iter().flatten().map(of).sum()
    }

    /// Copies, the part itself, and copies of its results, with slots from `first` on.
    fn detour(&self, first: Slot) -> Detour {
        let mut kernel = self.kernel.clone();
        let operands = kernel.operands.iter_mut().chain([&mut kernel.output]);
        let (mut there, mut back, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (operand, views)) in operands.zip(&self.views).enumerate() {
            operand.slot = first + number;
            let mut at = 0;
            for view in views.iter().filter(|view| view.shape.numel() > 0) {
                let copy = Operand { slot: operand.slot, offset: at as isize, ..view.alone() };
                at += view.shape.numel();
                if number + 1 < self.views.len() {
                    there.push(copied(view, &copy));
                } else {
                    back.push(match self.goes_on() {
                        Some(axis) => added(&copy, view, axis),
                        None => copied(&copy, view),
                    });
                }
            }
            slots.push((operand.dtype, at));
        }
        let works = there.into_iter().chain([Work::Special(Box::new(kernel))]).chain(back).collect();
        Detour { works, slots }
    }
}

/// What copies one view to another of the same shape.
fn copied(from: &Operand, to: &Operand) -> Work {
    let position = Affine { coefficients: to.strides.iter().copied().collect(), offset: to.offset };
    let store = Store { value: 0, access: Access { slot: to.slot, position } };
    Work::Map(vec![MapKernel { stores: vec![store], ..from.as_map() }])
}

/// What copies running sums to their view of the results: the last sum before that is there already, and is added to all.
fn added(from: &Operand, to: &Operand, axis: usize) -> Work {
    let mut map = from.as_map();
    let mut before = to.clone();
    before.offset -= before.strides[axis];
    before.strides[axis] = 0;
    map.code.extend(before.as_map().code);
    let (step, dtype, rank) = (Step::Binary(BinaryOp::Add, 0, 1), to.dtype, Rank::Full);
    map.code.push(Instruction { step, dtype, rank });
    let position = Affine { coefficients: to.strides.iter().copied().collect(), offset: to.offset };
    map.stores.push(Store { value: 2, access: Access { slot: to.slot, position } });
    Work::Map(vec![map])
}

/// Some of the lines that are sorted or summed up.
fn lines(whole: &SpecialKernel, ranges: &[Range<usize>]) -> Detached {
    let narrow = |o: &Operand| (0..ranges.len()).fold(o.clone(), |o, k| o.narrowed(k, ranges[k].clone()));
    let (operands, mut views): (Vec<Operand>, Vec<Vec<Operand>>) =
        whole.operands.iter().map(|o| detached(&narrow(o))).map(|(copy, view)| (copy, vec![view])).unzip();
    let output = narrow(&whole.output);
    let kernel = SpecialKernel { operands, output: output.alone(), ..whole.clone() };
    views.push(vec![output]);
    (kernel, views)
}

/// A copy that has every element of an operand but once, however often it is seen, and the view that is copied.
pub(super) fn detached(operand: &Operand) -> (Operand, Operand) {
    let once = |k: usize| if operand.strides[k] == 0 { 1 } else { operand.shape[k] };
    let shape: Vec<usize> = (0..operand.shape.rank()).map(once).collect();
    let view = Operand { shape: Shape::of(&shape), ..operand.clone() };
    let mut copy = Operand { shape: operand.shape, ..view.alone() };
    for (own, &stride) in copy.strides.iter_mut().zip(&operand.strides) {
        *own *= isize::from(stride != 0);
    }
    (copy, view)
}
