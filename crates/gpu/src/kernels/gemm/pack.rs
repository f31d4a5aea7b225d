//! Weights in the order in which a convolution by taps reads them: (group, tap, summed channel, row), rows
//! padded to fours.

use super::conv::Geometry;
use super::product::{GemmOperand, OperandLayout, Strided};
use super::wgsl::{Digits, main, sum, times, unsigned};
use crate::caps::Caps;
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use volta_ir::dtype::DType;
use volta_ir::op::ConvKind;
use volta_ir::plan::kernel::NativeKernel;

const THREADS: usize = 256;

/// Elements of a row of packed weights.
pub(super) fn row(channels: usize) -> usize {
    channels.next_multiple_of(4)
}

/// Adds the dispatch that packs the weights, and gives what it makes as an operand.
pub(super) fn weights(
    kernel: &NativeKernel,
    kind: ConvKind,
    g: &Geometry,
    caps: &Caps,
    before: &mut Lowered,
) -> GemmOperand {
    let weights = &kernel.operands[1];
    // Rows and summed channels, and the strides of both in the weights.
    let per_output = g.inputs * g.taps();
    let (rows, depth, row_stride, depth_stride) = match kind {
        ConvKind::Forward => (g.outputs, g.inputs, per_output, g.taps()),
        _ => (g.inputs, g.outputs, g.taps(), per_output),
    };
    let (padded, taps) = (row(rows), g.taps());
    let threads = g.groups * depth * padded;
    let groups = threads.div_ceil(THREADS) as u64;
    let from = sum(&[
        unsigned(weights.offset as i64),
        times("item", (g.outputs * per_output) as i64),
        times("channel", depth_stride as i64),
        times("row", row_stride as i64),
    ]);
    let text = format!(
        "let place = group * {THREADS}u + tid;
if (place >= {threads}u) {{ return; }}
let row = min(place % {padded}u, {}u);
let channel = place / {padded}u % {depth}u;
let item = place / {}u;
let begin = {from};
let to = (item * {}u + channel) * {padded}u + place % {padded}u;
for (var tap = 0u; tap < {taps}u; tap++) {{
    store_packed(to + tap * {}u, load_weights(begin + tap));
}}
",
        rows - 1,
        padded * depth,
        taps * depth,
        depth * padded
    );
    // Halves stay halves where shaders have them; all else is widened.
    let lane = ComputeType::F32;
    let dtype = if weights.dtype == DType::F16 && caps.f16 { DType::F16 } else { DType::F32 };
    let scratch = before.scratch.len();
    before.scratch.push((g.groups * taps * depth * padded * dtype.size()) as u64);
    let memory = Memory::Scratch(scratch);
    let bindings = vec![
        Binding {
            name: "weights",
            memory: Memory::Operand(1),
            dtype: weights.dtype,
            lane,
            width: 1,
            reads: true,
            writes: false,
        },
        Binding { name: "packed", memory, dtype, lane, width: 1, reads: false, writes: true },
    ];
    before.dispatches.push(Dispatch { body: main(THREADS, groups, &text), bindings, groups });
    let strided = Strided {
        offset: 0,
        items: Digits::line(g.groups, (taps * depth * padded) as i64),
        lane: 1,
        k: Digits::line(taps * depth, padded as i64),
    };
    GemmOperand { memory, dtype, layout: OperandLayout::Strided(strided), largest: None }
}
