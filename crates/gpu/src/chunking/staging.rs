//! Kernels from templates of which even the smallest part would see more pieces of memory than a dispatch may: lines that
//! run through all of a tensor, heads of attention that lie across the ends of pieces. What a part needs is copied aside,
//! is computed with there, and the results are copied to where they belong. A line of running sums may itself be longer than
//! what a dispatch sees: it is summed up in pieces, each from where the one before it ends. For one that is to be sorted, see
//! `external_sort`.

use super::loops::without_overhang;
use super::{external_sort, some_heads};
use std::ops::Range;
use volta_ir::dtype::DType;
use volta_ir::op::{BinaryOp, NativeOp};
use volta_ir::plan::kernel::{
    Access, Instruction, KernelBody, LoopLevel, MapKernel, NativeKernel, Operand, Slot, Step, Store,
};
use volta_ir::plan::memory::DeviceLimits;
use volta_ir::plan::view::Affine;
use volta_ir::shape::Shape;

/// Several kernels in place of one, with memory between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSequence {
    pub works: Vec<KernelBody>,
    /// The type and the number of elements of every slot that is added to the plan's; they are numbered on.
    pub slots: Vec<(DType, usize)>,
}

impl KernelSequence {
    /// Adds what works with the same slots, of which some may have to be larger.
    fn append(&mut self, other: KernelSequence) {
        self.works.extend(other.works);
        for (own, other) in self.slots.iter_mut().zip(other.slots) {
            own.1 = own.1.max(other.1);
        }
    }
}

/// A part of a kernel that works on copies.
struct StagedKernel {
    /// What it computes of every axis along which the kernel can be cut.
    ranges: Vec<Range<usize>>,
    /// The part as a kernel of its own: its operands and results are copies, each of them from 0 on.
    kernel: NativeKernel,
    /// What is copied for each operand, and lastly of the results: views of the whole, one behind the other.
    views: Vec<Vec<Operand>>,
}

/// A part as a kernel of its own, and the views that its operands and results are copies of.
pub(crate) type ExtractedKernel = (NativeKernel, Vec<Vec<Operand>>);

/// The kernel by way of copies, which take at most a block's bytes at once where that can be; none if it is of another kind.
/// Slots are added from `first` on.
pub(crate) fn sequences(
    kernel: &NativeKernel,
    first: Slot,
    rules: &DeviceLimits,
) -> Option<Vec<KernelSequence>> {
    let (mut parts, mut rest) = (Vec::new(), vec![StagedKernel::whole(kernel)?]);
    while let Some(part) = rest.pop() {
        match (part.bytes() > rules.block).then(|| part.halves(kernel)).flatten() {
            Some([one, two]) => rest.extend([two, one]),
            None => match part.cut_line(kernel) {
                Some(axis) if part.ranges[axis].start > 0 => {
                    let before: &mut KernelSequence = parts.last_mut().expect("the piece before it");
                    before.append(part.piece(axis, kernel, first));
                }
                Some(axis) => parts.push(part.piece(axis, kernel, first)),
                None => {
                    let sorted = part.long_sort(first, rules);
                    parts.push(sorted.unwrap_or_else(|| part.stage(first)));
                }
            },
        }
    }
    Some(parts)
}

impl StagedKernel {
    /// All of a kernel, if there is a way to cut it.
    fn whole(kernel: &NativeKernel) -> Option<StagedKernel> {
        let extents: Vec<usize> = match kernel.op {
            _ if kernel.epilogue.is_some() => return None,
            NativeOp::ArgSort { .. } | NativeOp::Cumsum { .. } => kernel.output.shape.to_vec(),
            NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => {
                kernel.operands[0].shape[..2].to_vec()
            }
            _ => return None,
        };
        Some(StagedKernel::of(kernel, extents.iter().map(|&extent| 0..extent).collect()))
    }

    fn of(whole: &NativeKernel, ranges: Vec<Range<usize>>) -> StagedKernel {
        let (kernel, views) = match whole.op {
            NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => {
                some_heads::detached(whole, [ranges[0].clone(), ranges[1].clone()])
            }
            _ => lines(whole, &ranges),
        };
        StagedKernel { ranges, kernel, views }
    }

    /// It in two, if it can be cut any more: lines themselves only if nothing else is left, and only of running sums.
    fn halves(&self, whole: &NativeKernel) -> Option<[StagedKernel; 2]> {
        let (line, last) = match whole.op {
            NativeOp::ArgSort { axis, .. } => (Some(axis), None),
            NativeOp::Cumsum { axis } => (Some(axis), Some(axis)),
            _ => (None, None),
        };
        let across = (0..self.ranges.len()).filter(|&k| Some(k) != line);
        let cut = across.chain(last).find(|&k| self.ranges[k].len() > 1)?;
        let Range { start, end } = self.ranges[cut];
        let middle = start.midpoint(end);
        Some([start..middle, middle..end].map(|range| {
            let mut ranges = self.ranges.clone();
            ranges[cut] = range;
            StagedKernel::of(whole, ranges)
        }))
    }

    /// The axis of running sums of which this part has only some.
    fn cut_line(&self, whole: &NativeKernel) -> Option<usize> {
        let NativeOp::Cumsum { axis } = whole.op else { return None };
        (self.ranges[axis].len() < whole.output.shape[axis]).then_some(axis)
    }

    /// Some of the running sums of lines, from where the ones before them end: that is carried from piece to piece, and not
    /// rounded as results are.
    fn piece(&self, axis: usize, whole: &NativeKernel, first: Slot) -> KernelSequence {
        let (x, results, range) = (&self.views[0][0], &self.views[1][0], &self.ranges[axis]);
        let dtype = if results.dtype.is_half() { DType::F32 } else { results.dtype };
        let mut kernel = self.kernel.clone();
        (kernel.operands[0].slot, kernel.operands[0].dtype) = (first, dtype);
        (kernel.output.slot, kernel.output.dtype) = (first + 1, dtype);
        let (copy, sums) = (Operand { slot: first, dtype, ..x.alone() }, kernel.output.clone());
        let last = sums.narrowed(axis, range.len() - 1..range.len());
        let carried = Operand { slot: first + 2, ..last.alone() };
        let mut to_all = Operand { shape: sums.shape, ..carried.clone() };
        to_all.strides[axis] = 0;
        let slots = [&copy, &sums, &carried].map(|o| (dtype, o.shape.numel())).to_vec();
        let goes_on = range.start > 0;
        let with = |sums: &Operand, before: &Operand, to: &Operand| {
            added(&[sums, before][..if goes_on { 2 } else { 1 }], to)
        };
        let results = with(&sums, &to_all, results);
        let mut works = vec![copied(x, &copy), KernelBody::Native(Box::new(kernel)), results];
        if range.end < whole.output.shape[axis] {
            works.push(with(&last, &carried, &carried));
        }
        KernelSequence { works, slots }
    }

    /// The order of a single line, if it is too long for the kernel.
    fn long_sort(&self, first: Slot, rules: &DeviceLimits) -> Option<KernelSequence> {
        let NativeOp::ArgSort { axis, descending, .. } = self.kernel.op else { return None };
        let output = &self.views[1][0];
        // With every element as often as it is seen.
        let x = Operand { shape: output.shape, ..self.views[0][0].clone() };
        let max_length = external_sort::max_sortable_length(x.dtype, rules);
        let is_long = x.shape[axis] == x.shape.numel() && x.shape[axis] > max_length;
        is_long.then(|| external_sort::lower_external_sort(&x, output, axis, descending, max_length, first))
    }

    /// What its copies take, at four bytes an element or more.
    fn bytes(&self) -> usize {
        let of = |view: &Operand| view.shape.numel() * view.dtype.size().max(4);
        self.views.iter().flatten().map(of).sum()
    }

    /// Copies, the part itself, and copies of its results, with slots from `first` on.
    fn stage(&self, first: Slot) -> KernelSequence {
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
                    back.extend(copied_back(&copy, view));
                }
            }
            slots.push((operand.dtype, at));
        }
        let works = there.into_iter().chain([KernelBody::Native(Box::new(kernel))]).chain(back).collect();
        KernelSequence { works, slots }
    }
}

/// What copies one view to another of the same shape.
pub(crate) fn copied(from: &Operand, to: &Operand) -> KernelBody {
    added(&[from], to)
}

/// What copies a result to a part of its slot, and touches nothing beside it.
fn copied_back(from: &Operand, to: &Operand) -> Vec<KernelBody> {
    let KernelBody::Map(maps) = copied(from, to) else { unreachable!("a copy is a map") };
    maps.iter().flat_map(without_overhang).map(|part| KernelBody::Map(vec![part])).collect()
}

/// What adds up one or two views, of one type, into another of the same shape.
fn added(from: &[&Operand], to: &Operand) -> KernelBody {
    let (mut code, dtype, rank) = (from[0].as_map().code, from[0].dtype, LoopLevel::Full);
    for other in &from[1..] {
        let sum = Step::Binary(BinaryOp::Add, code.len() - 1, code.len());
        code.extend(other.as_map().code);
        code.push(Instruction { step: sum, dtype, rank });
    }
    if to.dtype != dtype {
        code.push(Instruction { step: Step::Cast(code.len() - 1), dtype: to.dtype, rank });
    }
    written(code, to)
}

/// A program over the elements of a view, whose last value is written there; up to three elements behind it may be, too, so
/// whoever writes parts of a slot begins with the first.
pub(crate) fn written(code: Vec<Instruction>, to: &Operand) -> KernelBody {
    let position = Affine { coefficients: to.strides.iter().copied().collect(), offset: to.offset };
    let stores = vec![Store { value: code.len() - 1, access: Access { slot: to.slot, position } }];
    KernelBody::Map(vec![MapKernel { extents: to.shape.to_vec(), outer: to.shape.rank(), code, stores }])
}

/// Some of the lines that are sorted or summed up.
fn lines(whole: &NativeKernel, ranges: &[Range<usize>]) -> ExtractedKernel {
    let narrow = |o: &Operand| (0..ranges.len()).fold(o.clone(), |o, k| o.narrowed(k, ranges[k].clone()));
    let (operands, mut views): (Vec<Operand>, Vec<Vec<Operand>>) =
        whole.operands.iter().map(|o| detached(&narrow(o))).map(|(copy, view)| (copy, vec![view])).unzip();
    let output = narrow(&whole.output);
    let kernel = NativeKernel { operands, output: output.alone(), ..whole.clone() };
    views.push(vec![output]);
    (kernel, views)
}

/// A copy that has every element of an operand but once, however often it is seen, and the view that is copied.
pub(crate) fn detached(operand: &Operand) -> (Operand, Operand) {
    let once = |k: usize| if operand.strides[k] == 0 { 1 } else { operand.shape[k] };
    let shape: Vec<usize> = (0..operand.shape.rank()).map(once).collect();
    let view = Operand { shape: Shape::of(&shape), ..operand.clone() };
    let mut copy = Operand { shape: operand.shape, ..view.alone() };
    for (own, &stride) in copy.strides.iter_mut().zip(&operand.strides) {
        *own *= isize::from(stride != 0);
    }
    (copy, view)
}
