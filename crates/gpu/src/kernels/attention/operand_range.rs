//! Which elements some of the matrices of scores need.

use super::{is_forward, problem};
use std::ops::Range;
use volta_ir::op::attention::PackedGradient;
use volta_ir::plan::kernel::{NativeKernel, Operand, Slot};

/// The first and the last element, by slot, of everything that belongs to these items.
pub(crate) fn reach(kernel: &NativeKernel, items: Range<usize>) -> Vec<(Slot, (isize, isize))> {
    let (p, o) = (problem(kernel), &kernel.operands);
    let mut all = Vec::new();
    for item in items {
        // Matrices, read through strides.
        for operand in o.iter().filter(|o| o.shape.rank() == 4 && o.shape.numel() > 0) {
            let start = operand.offset
                + (item / p.heads) as isize * operand.strides[0]
                + (item % p.heads) as isize * operand.strides[1];
            let ends = [2, 3].map(|k| operand.strides[k] * (operand.shape[k] - 1) as isize);
            let low: isize = ends.iter().map(|end| end.min(&0)).sum();
            let high: isize = ends.iter().map(|end| end.max(&0)).sum();
            all.push((operand.slot, (start + low, start + high)));
        }
        // Rows of all heads side by side, in a flat operand.
        let (batch, head) = (item / p.heads, item % p.heads);
        let rows = |operand: &Operand, first: usize, [rows, across, width]: [usize; 3]| {
            let at = |element: usize| operand.offset + element as isize * operand.strides[0];
            let start = first + (batch * rows * across + head) * width;
            (rows * width > 0)
                .then(|| (operand.slot, (at(start), at(start + (rows - 1) * across * width + width - 1))))
        };
        // Numbers of all items one behind the other, so many of each.
        let packed = |operand: &Operand, first: usize, each: usize| {
            let at = |element: usize| operand.offset + element as isize * operand.strides[0];
            let start = first + item * each;
            (each > 0).then(|| (operand.slot, (at(start), at(start + each - 1))))
        };
        // A forward result ends in as many numbers for each query.
        let result = if is_forward(kernel) { &kernel.output } else { &o[3] };
        let all_rows = p.items() * p.queries * p.value_width;
        all.extend(rows(result, 0, [p.queries, p.heads, p.value_width]));
        all.extend(packed(result, all_rows, (result.shape.numel() - all_rows) / p.items()));
        if is_forward(kernel) {
            continue;
        }
        // The gradients end in that of the mask.
        let places = PackedGradient::of([0, 1, 2].map(|k| o[k].shape));
        let behind = places[2].end();
        for place in &places {
            all.extend(rows(&kernel.output, place.first(), [place.rows, place.across(), place.width]));
        }
        all.extend(packed(&kernel.output, behind, (kernel.output.shape.numel() - behind) / p.items()));
    }
    all
}
