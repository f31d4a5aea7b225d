//! Kernels from templates whose tensors are in more pieces of memory than a dispatch may see: they are cut along the axes
//! of their results, and where that is not enough along those of their sums, until every part sees few enough.
//!
//! A template computes a part as if it were the whole: its results lie one behind the other from 0 on. Functions put in
//! front of it say where they go, and add up what is computed in several passes.

use super::loops::{self, ChunkLayout, VisibleChunks};
use crate::caps::Caps;
use crate::codegen::storage_type::suffix;
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use crate::kernels::gemm::Digits;
use crate::kernels::{attention, select};
use std::fmt::Write;
use std::ops::Range;
use volta_ir::dtype::DType;
use volta_ir::op::{NativeOp, SplitAxis, SplitKind};
use volta_ir::plan::kernel::{MapKernel, NativeKernel, Operand};
use volta_ir::shape::Shape;

/// A part of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct SubKernel {
    /// Its operands are views of the whole ones; so is its output, which the template does not see like this.
    kernel: NativeKernel,
    /// What it computes of each axis of the results, and all that there is.
    ranges: Vec<Range<usize>>,
    whole: Shape,
    /// Which of how many passes that accumulate.
    pass: usize,
    accumulation_passes: usize,
    /// What is the first of the places that indices name.
    index_base: usize,
    /// The matrices of scores of attention.
    items: Range<usize>,
}

impl SubKernel {
    /// All of a kernel.
    pub fn whole(kernel: &NativeKernel) -> SubKernel {
        let whole = kernel.output.shape;
        let ranges = whole.iter().map(|&extent| 0..extent).collect();
        let items = if is_attention(kernel) { 0..attention::items(kernel) } else { 0..0 };
        SubKernel {
            kernel: kernel.clone(),
            ranges,
            whole,
            pass: 0,
            accumulation_passes: 1,
            index_base: 0,
            items,
        }
    }

    /// The axes it can be split along.
    fn split_axes(&self) -> Vec<SplitAxis> {
        let mut all = self.kernel.split_axes();
        if is_attention(&self.kernel) {
            all.iter_mut().for_each(|cut| cut.count = self.items.len());
        }
        all.retain(|cut| cut.count > 1 && (self.accumulation_passes == 1 || cut.output.is_none()));
        all
    }

    /// What a cut leaves from one place to another.
    fn part(&self, cut: &SplitAxis, range: Range<usize>) -> SubKernel {
        let mut part = self.clone();
        if is_attention(&self.kernel) {
            part.items = self.items.start + range.start..self.items.start + range.end;
            return part;
        }
        let narrow = |o: &mut Operand, axis: usize| {
            let step = o.shape[axis] / cut.count;
            let kept = range.start * step..range.end * step;
            *o = o.narrowed(axis, kept.clone());
            kept
        };
        for &(number, axis) in &cut.operands {
            narrow(&mut part.kernel.operands[number], axis);
        }
        if let Some(axis) = cut.output {
            let of = narrow(&mut part.kernel.output, axis);
            let start = self.ranges[axis].start;
            part.ranges[axis] = start + of.start..start + of.end;
        }
        match (cut.kind, &mut part.kernel.op) {
            (SplitKind::Groups, NativeOp::Conv(_, attrs)) => attrs.groups = range.len(),
            (SplitKind::Places, _) => part.index_base += range.start,
            _ => {}
        }
        part
    }

    fn halves(&self, cut: &SplitAxis) -> [SubKernel; 2] {
        let middle = loops::middle(cut.count);
        [self.part(cut, 0..middle), self.part(cut, middle..cut.count)]
    }

    /// It in passes, each of which has about as much of the sums.
    fn in_passes(&self, cut: &SplitAxis, passes: usize) -> Vec<SubKernel> {
        let each = cut.count.div_ceil(passes);
        let passes = cut.count.div_ceil(each);
        let pass = |pass: usize| SubKernel {
            pass,
            accumulation_passes: passes,
            ..self.part(cut, pass * each..((pass + 1) * each).min(cut.count))
        };
        (0..passes).map(pass).collect()
    }

    /// Parts of which none costs more than `most`, or else one that cannot be cut so far.
    pub fn fitting(
        &self,
        most: usize,
        cost: &impl Fn(&SubKernel) -> usize,
    ) -> Result<Vec<SubKernel>, Box<SubKernel>> {
        let smallest = self.smallest();
        // Or else it would be cut into crumbs first.
        if cost(&smallest) > most && smallest.passes_that_fit(most, cost).is_none() {
            return Err(Box::new(smallest));
        }
        self.cut_down(most, cost)
    }

    /// The smallest part of the results.
    fn smallest(&self) -> SubKernel {
        let mut part = self.clone();
        while let Some(cut) = part.split_axes().into_iter().find(|cut| cut.output.is_some()) {
            part = part.part(&cut, 0..1);
        }
        part
    }

    fn cut_down(
        &self,
        most: usize,
        cost: &impl Fn(&SubKernel) -> usize,
    ) -> Result<Vec<SubKernel>, Box<SubKernel>> {
        let now = cost(self);
        if now <= most {
            return Ok(vec![self.clone()]);
        }
        let cuts = self.split_axes();
        let halves = cuts.iter().filter(|cut| cut.output.is_some()).map(|cut| self.halves(cut));
        let dearer = |halves: &[SubKernel; 2]| halves.iter().map(cost).max().unwrap_or(0);
        let best = halves.map(|halves| (dearer(&halves), halves)).min_by_key(|(cost, _)| *cost);
        // What is summed is cut where cutting the results gains nothing.
        if best.as_ref().is_none_or(|(cost, _)| *cost >= now)
            && let Some(passes) = self.passes_that_fit(most, cost)
        {
            return Ok(passes);
        }
        let Some((_, halves)) = best else { return Err(Box::new(self.clone())) };
        let mut parts = Vec::new();
        for half in &halves {
            parts.extend(half.cut_down(most, cost)?);
        }
        Ok(parts)
    }

    /// The fewest passes that fit, about.
    fn passes_that_fit(&self, most: usize, cost: &impl Fn(&SubKernel) -> usize) -> Option<Vec<SubKernel>> {
        let sums = self.split_axes().into_iter().filter(|cut| cut.output.is_none());
        let in_passes = |cut: SplitAxis| {
            let counts = (1..).map(|power| 1usize << power).take_while(move |&n| n < 2 * cut.count);
            counts.map(move |passes| self.in_passes(&cut, passes))
        };
        sums.flat_map(in_passes).find(|passes| passes.iter().all(|pass| cost(pass) <= most))
    }

    /// The pieces it sees.
    pub fn windows(&self, pieces: &impl ChunkLayout) -> VisibleChunks {
        if is_attention(&self.kernel) {
            let mut all = VisibleChunks::new();
            for (slot, ends) in attention::reach(&self.kernel, self.items.clone()) {
                loops::add_range(&mut all, slot, ends, pieces);
            }
            return all;
        }
        let epilogue = self.kernel.epilogue.as_ref().map(|map| self.bounded(map));
        let mut all = epilogue.map_or(VisibleChunks::new(), |map| loops::windows(&map, pieces));
        for o in self.kernel.operands.iter().chain([&self.kernel.output]) {
            loops::add_range(&mut all, o.slot, o.reach(), pieces);
        }
        all
    }

    /// An epilogue where it runs on these results, or a little more.
    fn bounded(&self, map: &MapKernel) -> MapKernel {
        let mut map = map.clone();
        if map.extents[..] == self.whole[..] {
            for (axis, range) in self.ranges.iter().enumerate() {
                map = map.part(axis, range.clone());
            }
            return map;
        }
        // Its loops run through the results in order: the outer ones need not run from end to end.
        let strides = self.whole.strides();
        let corner = |at: &dyn Fn(&Range<usize>) -> usize| -> usize {
            self.ranges.iter().enumerate().map(|(k, range)| at(range) * strides[k] as usize).sum()
        };
        let (mut first, mut last) = (corner(&|range| range.start), corner(&|range| range.end - 1));
        for axis in 0..map.extents.len() {
            let inner: usize = map.extents[axis + 1..].iter().product();
            let (low, high) = (first / inner, last / inner);
            map = map.part(axis, low..high + 1);
            if low != high {
                break;
            }
            (first, last) = (first % inner, last % inner);
        }
        map
    }

    /// The template's dispatches for it, with what puts its results in their places.
    pub fn lower(&self, caps: &Caps) -> Lowered {
        if is_attention(&self.kernel) {
            return attention::lower_items(&self.kernel, caps, None, self.items.clone());
        }
        let mut template = NativeKernel { epilogue: None, ..self.kernel.clone() };
        template.output = self.kernel.output.alone();
        let is_conv = matches!(template.op, NativeOp::Conv(..));
        let mut moved = Vec::new();
        for (number, operand) in template.operands.iter_mut().enumerate() {
            // Convolutions do not look at strides.
            if is_conv && !operand.is_contiguous() {
                moved.push((number, operand.clone()));
                *operand = operand.alone();
            }
        }
        let mut lowered = select::lower(&template, caps, None);
        if self.accumulation_passes > 1 && is_summed_up(&self.kernel.op) {
            self.make_room(&mut lowered);
        }
        for dispatch in &mut lowered.dispatches {
            for (number, operand) in &moved {
                read_elsewhere(dispatch, *number, operand);
            }
            if self.index_base > 0 {
                shift_index(dispatch, self.index_base);
            }
            self.put_results(dispatch);
        }
        lowered
    }

    /// Sets memory aside for what earlier passes summed up: the first of all, so that it is the same in every pass.
    fn make_room(&self, lowered: &mut Lowered) {
        let size = if self.kernel.output.dtype == DType::I64 { 8 } else { 4 };
        lowered.scratch.insert(0, (self.kernel.output.shape.numel() * size) as u64);
        for binding in lowered.dispatches.iter_mut().flat_map(|d| &mut d.bindings) {
            if let Memory::Scratch(number) = &mut binding.memory {
                *number += 1;
            }
        }
    }

    /// Lets a dispatch put its results where they belong.
    fn put_results(&self, dispatch: &mut Dispatch) {
        let Some(k) = dispatch.bindings.iter().position(|b| b.memory == Memory::Output && b.writes) else {
            return;
        };
        // Eights are put as two fours: where they belong, they may lie otherwise.
        let eights = dispatch.bindings[k].width == 8;
        dispatch.bindings[k].width = dispatch.bindings[k].width.min(4);
        let Binding { name, lane, width, .. } = dispatch.bindings[k];
        let finishes = dispatch.body.contains("finish");
        let to = if finishes { "finish" } else { "store" };
        let written = if finishes { String::new() } else { format!("_{name}") };
        let (at, in_fours) = (position(&self.kernel.output, "i"), in_fours(&self.kernel.output));
        let (first, last) = (self.pass == 0, self.pass + 1 == self.accumulation_passes);
        let mut text = String::new();
        for wide in [false, true].into_iter().filter(|&wide| !wide || width == 4) {
            let (s, lane) = (suffix(wide), lane.name(wide));
            dispatch.body = dispatch.body.replace(&format!("{to}{s}{written}("), &format!("put_result{s}("));
            let value = match (first, finishes) {
                (true, _) => "x".to_string(),
                (false, true) => format!("load{s}_earlier(i) + x"),
                (false, false) => format!("load{s}_{name}({at}) + x"),
            };
            let statement = if finishes && !last {
                format!("store{s}_earlier(i, {value});")
            } else if wide && !in_fours {
                let ones = ["x", "y", "z", "w"].iter().enumerate();
                ones.map(|(k, part)| format!("put_result(i + {k}u, x.{part}); ")).collect()
            } else {
                format!("{to}{s}{written}({at}, {value});")
            };
            let _ = writeln!(text, "fn put_result{s}(i: u32, x: {lane}) {{ {statement} }}");
        }
        if eights {
            dispatch.body = dispatch.body.replace("finish8(", "put_result8(");
            let four = lane.name(true);
            let _ = writeln!(
                text,
                "fn put_result8(i: u32, low: {four}, high: {four}) {{ put_result4(i, low); put_result4(i + 4u, high); }}"
            );
        }
        dispatch.body = text + &dispatch.body;
        if !finishes {
            dispatch.bindings[k].reads |= !first;
            return;
        }
        if self.accumulation_passes > 1 {
            dispatch.bindings.push(Binding {
                name: "earlier",
                memory: Memory::Scratch(0),
                dtype: summed_as(lane),
                lane,
                width,
                reads: !first,
                writes: !last,
            });
        }
        if !last {
            dispatch.bindings.remove(k);
        }
    }
}

fn is_attention(kernel: &NativeKernel) -> bool {
    matches!(kernel.op, NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. })
}

/// Whether passes are added up in memory of their own, and then finished; else they are added to the result.
fn is_summed_up(op: &NativeOp) -> bool {
    matches!(op, NativeOp::Matmul | NativeOp::QuantizedMatmul { .. } | NativeOp::Conv(..))
}

/// How sums of a lane lie in memory.
fn summed_as(lane: ComputeType) -> DType {
    match lane {
        ComputeType::F32 | ComputeType::F16 => DType::F32,
        ComputeType::I64 => DType::I64,
        ComputeType::I32 => DType::I32,
        ComputeType::U32 => DType::U32,
    }
}

/// How the elements of a view follow each other, but for where it begins.
fn digits(operand: &Operand) -> Digits {
    Digits::new((0..operand.shape.rank()).map(|k| (operand.shape[k], operand.strides[k] as i64)))
}

/// Where element `index` of a view is.
fn position(operand: &Operand, index: &str) -> String {
    format!("{} + {}u", digits(operand).position(index), operand.offset as u32)
}

/// Whether four elements of a view from every multiple of 4 on can be read at once.
fn in_fours(operand: &Operand) -> bool {
    digits(operand).quads() && operand.offset % 4 == 0
}

/// Lets a dispatch that reads a stand-in read the view.
fn read_elsewhere(dispatch: &mut Dispatch, number: usize, operand: &Operand) {
    let at = position(operand, "i");
    for binding in dispatch.bindings.iter().filter(|b| b.memory == Memory::Operand(number)) {
        let (name, mut text) = (binding.name, String::new());
        for wide in [false, true].into_iter().filter(|&wide| !wide || binding.width > 1) {
            let (s, lane) = (suffix(wide), binding.lane.name(wide));
            dispatch.body = dispatch.body.replace(&format!("load{s}_{name}("), &format!("fetch{s}_{name}("));
            let value = if wide && !in_fours(operand) {
                let ones: Vec<String> = (0..4).map(|k| format!("fetch_{name}(i + {k}u)")).collect();
                format!("{lane}({})", ones.join(", "))
            } else {
                format!("load{s}_{name}({at})")
            };
            let _ = writeln!(text, "fn fetch{s}_{name}(i: u32) -> {lane} {{ return {value}; }}");
        }
        if binding.width == 8 {
            dispatch.body = dispatch.body.replace(&format!("load8_{name}("), &format!("fetch8_{name}("));
            let four = |k: usize| format!("words_of_halves(fetch4_{name}(i + {k}u))");
            let eight = format!("vec4<u32>({}, {})", four(0), four(4));
            let _ = writeln!(text, "fn fetch8_{name}(i: u32) -> vec4<u32> {{ return {eight}; }}");
        }
        dispatch.body = text + &dispatch.body;
    }
}

/// Lets a dispatch count the places that indices name from `shift` on.
fn shift_index(dispatch: &mut Dispatch, shift: usize) {
    let Some(index) = dispatch.bindings.iter().find(|b| b.name == "index") else { return };
    let lane = index.lane.name(false);
    let body = dispatch.body.replace("load_index(", "fetch_index(");
    dispatch.body =
        format!("fn fetch_index(i: u32) -> {lane} {{ return load_index(i) - {lane}({shift}); }}\n{body}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use volta_ir::op::{ConvAttrs, ConvKind};
    use volta_ir::plan::kernel::Slot;

    /// A hundred elements a piece.
    struct Hundreds;

    impl ChunkLayout for Hundreds {
        fn elements(&self, _: Slot) -> usize {
            100
        }
        fn count(&self, _: Slot) -> usize {
            1000
        }
    }

    fn kernel(op: NativeOp, shapes: [&[usize]; 3]) -> NativeKernel {
        let operand = |slot: Slot, shape: &[usize]| {
            let shape = Shape::of(shape);
            let strides = shape.strides()[..shape.rank()].to_vec();
            Operand { slot, dtype: DType::F32, shape, strides, offset: 0 }
        };
        let [a, b, c] = shapes;
        let operands = vec![operand(0, a), operand(1, b)];
        NativeKernel { op, operands, output: operand(2, c), prologues: vec![], epilogue: None }
    }

    /// The parts of a kernel that see at most so many pieces, after a look at whether every result is computed once, in
    /// all its passes.
    fn parts(kernel: &NativeKernel, most: usize) -> Vec<SubKernel> {
        let cost = |part: &SubKernel| loops::number(&part.windows(&Hundreds));
        let parts = SubKernel::whole(kernel).fitting(most, &cost).expect("it can be cut");
        let mut computed = vec![0; kernel.output.shape.numel()];
        let mut pass = 0;
        for part in &parts {
            assert!(cost(part) <= most, "{part:?}");
            assert_eq!(part.pass, pass, "passes follow each other");
            pass = (pass + 1) % part.accumulation_passes;
            let output = &part.kernel.output;
            for i in 0..output.shape.numel() {
                let (mut rest, mut at) = (i, output.offset);
                for k in (0..output.shape.rank()).rev() {
                    at += (rest % output.shape[k]) as isize * output.strides[k];
                    rest /= output.shape[k];
                }
                computed[at as usize] += usize::from(part.pass == 0);
            }
        }
        assert_eq!(pass, 0, "the last pass is there");
        assert!(computed.iter().all(|&times| times == 1));
        parts
    }

    #[test]
    fn products_are_cut_along_rows_columns_and_sums() {
        let product = |m, n, k| kernel(NativeOp::Matmul, [&[m, k], &[k, n], &[m, n]]);
        let tall = parts(&product(1000, 10, 8), 20);
        assert!(
            tall.len() > 5
                && tall.iter().all(|p| p.accumulation_passes == 1 && p.kernel.operands[1].shape[0] == 8)
        );
        // Every result needs twenty pieces of each operand.
        let deep = parts(&product(3, 1, 2000), 20);
        assert!(deep.iter().all(|p| p.accumulation_passes > 1));
        let terms: usize =
            deep.iter().take(deep[0].accumulation_passes).map(|p| p.kernel.operands[0].shape[1]).sum();
        assert_eq!(terms, 2000);
        assert!(parts(&product(60, 50, 70), 8).len() > 8);
    }

    #[test]
    fn convolutions_are_cut_along_images_groups_and_channels() {
        let attrs = |groups| ConvAttrs { stride: [1; 2], padding: [1; 2], dilation: [1; 2], groups };
        let shapes: [&[usize]; 3] = [&[4, 12, 8, 8], &[10, 12, 3, 3], &[4, 10, 8, 8]];
        let [x, w, y] = shapes;
        for (kind, shapes) in [
            (ConvKind::Forward, [x, w, y]),
            (ConvKind::InputGrad, [y, w, x]),
            (ConvKind::WeightGrad, [x, y, w]),
        ] {
            assert!(
                parts(&kernel(NativeOp::Conv(kind, Box::new(attrs(1))), shapes), 9).len() > 4,
                "{kind:?}"
            );
        }
        let grouped = kernel(
            NativeOp::Conv(ConvKind::Forward, Box::new(attrs(4))),
            [&[1, 12, 8, 8], &[8, 3, 3, 3], &[1, 8, 8, 8]],
        );
        for part in parts(&grouped, 8) {
            let NativeOp::Conv(_, attrs) = &part.kernel.op else { panic!("it stays what it is") };
            let [x, w] = [0, 1].map(|k| &part.kernel.operands[k].shape);
            assert_eq!(x[1], attrs.groups * w[1]);
        }
    }

    #[test]
    fn parts_of_places_are_counted_from_where_they_begin() {
        let mut first = kernel(NativeOp::FirstPosition, [&[300], &[1], &[2000]]);
        first.operands.pop();
        first.operands[0].dtype = DType::I32;
        first.output.dtype = DType::I32;
        let parts = parts(&first, 8);
        assert!(parts.len() >= 4);
        for part in &parts {
            assert_eq!(part.index_base, part.ranges[0].start);
            let body = &part.lower(&Caps::MINIMAL).dispatches[0].body;
            assert_eq!(
                body.contains(&format!("load_index(i) - i32({})", part.index_base)),
                part.index_base > 0,
                "{body}"
            );
        }
    }

    #[test]
    fn what_every_result_needs_at_once_cannot_be_cut() {
        let sums = kernel(NativeOp::Cumsum { axis: 0 }, [&[60, 200], &[1], &[60, 200]]);
        let cost = |part: &SubKernel| loops::number(&part.windows(&Hundreds));
        let small = SubKernel::whole(&sums).fitting(20, &cost).expect_err("a line sees it all");
        assert!(cost(&small) > 20 && small.kernel.output.shape[..] == [60, 1]);
    }
}
