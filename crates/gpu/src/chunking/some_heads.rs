//! Some of the heads of attention as a kernel of its own.

use super::staging::{self, ExtractedKernel};
use crate::kernels::attention::{is_forward, problem};
use std::ops::Range;
use volta_ir::op::attention::PackedGradient;
use volta_ir::plan::kernel::{NativeKernel, Operand};
use volta_ir::shape::Shape;

/// The attention of some heads in some of the batch, and the views that its operands and results are copies of.
pub(super) fn detached(whole: &NativeKernel, [batch, heads]: [Range<usize>; 2]) -> ExtractedKernel {
    let p = problem(whole);
    let (items, all_rows) = (batch.len() * heads.len(), p.items() * p.queries * p.value_width);
    // Elements of a flat operand from `first` on, of the chosen ones along two of its axes.
    let some = |flat: &Operand, first: usize, shape: &[usize], [of_batch, of_heads]: [usize; 2]| {
        let shape = Shape::of(shape);
        let strides = shape.strides()[..shape.rank()].iter().map(|s| s * flat.strides[0]).collect();
        let offset = flat.offset + first as isize * flat.strides[0];
        let all = Operand { shape, strides, offset, ..flat.clone() };
        all.narrowed(of_batch, batch.clone()).narrowed(of_heads, heads.clone())
    };
    // What is kept of every item behind the rows.
    let behind = |flat: &Operand, first: usize| {
        let each = (flat.shape.numel() - first) / p.items();
        some(flat, first, &[p.batch, p.heads, each], [0, 1])
    };
    let result = |flat: &Operand| {
        let rows = some(flat, 0, &[p.batch, p.queries, p.heads, p.value_width], [0, 2]);
        vec![rows, behind(flat, all_rows)]
    };
    // A flat operand that has these views one behind the other.
    let alone = |flat: &Operand, views: &[Operand]| {
        let numel = views.iter().map(|v| v.shape.numel()).sum();
        Operand { shape: Shape::of(&[numel]), ..flat.clone() }.alone()
    };
    let (mut operands, mut views) = (Vec::new(), Vec::new());
    for operand in &whole.operands {
        if operand.shape.rank() == 4 {
            let chosen = operand.narrowed(0, batch.clone()).narrowed(1, heads.clone());
            let (copy, view) = staging::detached(&chosen);
            operands.push(copy);
            views.push(vec![view]);
        } else {
            let parts = result(operand);
            operands.push(alone(operand, &parts));
            views.push(parts);
        }
    }
    let results = if is_forward(whole) {
        result(&whole.output)
    } else {
        let places = PackedGradient::of([0, 1, 2].map(|k| whole.operands[k].shape));
        // Those that share rows are one view.
        let firsts = places.iter().filter(|place| place.which == 0);
        let mut all: Vec<Operand> =
            firsts.map(|place| some(&whole.output, place.start, &place.shared(), [0, 3])).collect();
        all.push(behind(&whole.output, places[2].end()));
        all
    };
    debug_assert_eq!(
        items * (whole.output.shape.numel() / p.items()),
        alone(&whole.output, &results).shape.numel()
    );
    let output = alone(&whole.output, &results);
    views.push(results);
    (NativeKernel { operands, output, ..whole.clone() }, views)
}
