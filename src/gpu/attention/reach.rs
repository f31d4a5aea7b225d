//! Which elements some of the matrices of scores need.

use super::{is_forward, problem};
use crate::plan::kernel::{Operand, Slot, SpecialKernel};
use std::ops::Range;

/// The first and the last element, by slot, of everything that belongs to these items.
pub(crate) fn reach(kernel: &SpecialKernel, items: Range<usize>) -> Vec<(Slot, (isize, isize))> {
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
        // A forward result: rows of all heads side by side, then as many numbers for each query.
        let mut result = |operand: &Operand| {
            let (width, rows) = (p.value_width, p.queries * p.items());
            let each = (operand.shape.numel() - rows * width) / rows;
            let at = |element: usize| operand.offset + element as isize * operand.strides[0];
            if width > 0 {
                let (batch, head) = (item / p.heads, item % p.heads);
                let start = (batch * p.queries * p.heads + head) * width;
                all.push((
                    operand.slot,
                    (at(start), at(start + (p.queries - 1) * p.heads * width + width - 1)),
                ));
            }
            let start = rows * width + item * p.queries * each;
            all.push((operand.slot, (at(start), at(start + p.queries * each - 1))));
        };
        if p.queries > 0 {
            result(if is_forward(kernel) { &kernel.output } else { &o[3] });
        }
        if is_forward(kernel) {
            continue;
        }
        // Matrices of all items one behind the other, of so many elements each.
        let mut packed = |operand: &Operand, sizes: &[usize]| {
            let (mut first, step) = (0, operand.strides[0]);
            for &each in sizes.iter().filter(|&&each| each > 0) {
                let start = first + item * each;
                let at = |element: usize| operand.offset + element as isize * step;
                all.push((operand.slot, (at(start), at(start + each - 1))));
                first += p.items() * each;
            }
        };
        let gradients = [p.queries * p.width, p.keys * p.width, p.keys * p.value_width];
        let rest = kernel.output.shape.numel() / p.items() - gradients.iter().sum::<usize>();
        packed(&kernel.output, &[gradients[0], gradients[1], gradients[2], rest]);
    }
    all
}
