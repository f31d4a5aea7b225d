//! The check of indices for their bounds: one workgroup looks at all of them and notes the first that is outside.

use super::code::{Arguments, Writer, bounded, innermost, split_index};
use super::elementwise::uniforms;
use super::slots::Slots;
use super::{GROUP, MapDispatch, Uniform};
use crate::dtype::DType;
use crate::gpu::dispatch::{Dispatch, Lane, Memory};
use crate::plan::kernel::MapKernel;

/// Checks the last value of a program, which picks elements of an axis of so many. One that is out of bounds is noted at `word`
/// of the guard's memory: 1, then its low and its high word.
pub(in crate::gpu) fn check_bounds(map: &MapKernel, extent: usize, word: u32) -> MapDispatch {
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let mut text = String::new();
    let indices = split_index(&mut text, "i", &map.extents, "x");
    let names = vec![None; map.code.len()];
    let mut w = Writer {
        kernel: map,
        slots: &mut slots,
        arguments: &mut arguments,
        text,
        indices,
        wide: false,
        along: innermost(map),
        names,
        mark: String::new(),
        alike: &[],
    };
    for v in 0..map.code.len() {
        w.compute(v);
    }
    let last = map.code.len() - 1;
    let (text, value) = (w.text.clone(), w.operand(last, false));
    let lane = Lane::of(map.code[last].dtype);
    let note = slots.write_memory(Memory::Guard, DType::I32);
    let mut uniforms = uniforms(&arguments);
    let place = uniforms.len();
    uniforms.push(Uniform::Count(word));
    let body = format!(
        "fn index_at(i: u32) -> {lane} {{\n{text}return {value};\n}}\n\
         var<workgroup> first: atomic<u32>;\n\
         @compute @workgroup_size({GROUP})\n\
         fn main(@builtin(local_invocation_index) lane: u32) {{\n\
         if (lane == 0u) {{ atomicStore(&first, 0xffffffffu); }}\n\
         workgroupBarrier();\n\
         for (var i = lane; i < {count}u; i += {GROUP}u) {{\n\
         let index = index_at(i);\n\
         if (!({inside})) {{ atomicMin(&first, i); break; }}\n\
         }}\n\
         workgroupBarrier();\n\
         let found = atomicLoad(&first);\n\
         if (lane == 0u && found < {count}u) {{\n\
         let index = index_at(found);\n\
         let word = arguments[{half}].{part};\n\
         store_{note}(word, 1i);\n\
         store_{note}(word + 1u, i32(index));\n\
         store_{note}(word + 2u, {high});\n\
         }}\n}}\n",
        lane = lane.scalar(),
        count = map.iterations(),
        inside = bounded("index", lane, extent).0,
        half = place / 2,
        part = if place.is_multiple_of(2) { "x" } else { "z" },
        high = match lane {
            Lane::I64 => "i32(index >> 32u)",
            Lane::I32 => "(index >> 31u)",
            _ => "0i",
        },
    );
    MapDispatch { dispatch: Dispatch { body, bindings: slots.bindings, groups: 1 }, uniforms }
}
