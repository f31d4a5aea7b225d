//! What computes a product's operand where it is read: `load_NAME`, and `load4_NAME` and `load8_NAME` for neighbours.

use super::code::{Arguments, Writer, innermost};
use super::slots::Slots;
use crate::codegen::storage_type::suffix;
use crate::dispatch::{Binding, ComputeType};
use std::fmt::Write;
use volta_ir::plan::kernel::MapKernel;

/// The functions that a body reads `binding` by, which is not in memory: it is the last value of `program`.
pub(crate) fn write(
    program: &MapKernel,
    binding: &Binding,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let (name, lane) = (binding.name, binding.lane);
    let mut text = String::new();
    for wide in [false, true] {
        if wide && binding.width == 1 {
            continue;
        }
        let (s, ty) = (suffix(wide), lane.name(wide));
        let _ = writeln!(text, "fn load{s}_{name}(i: u32) -> {ty} {{");
        let (value, code) = element(program, wide, slots, arguments);
        text += &code;
        // What is computed in f32 is rounded to halves where it is one.
        let value = if lane == ComputeType::F16 { format!("{ty}({value})") } else { value };
        let _ = writeln!(text, "return {value};\n}}");
    }
    if binding.width == 8 {
        let _ = writeln!(
            text,
            "fn load8_{name}(i: u32) -> vec4<u32> {{
return vec4<u32>(words_of_halves(load4_{name}(i)), words_of_halves(load4_{name}(i + 4u)));
}}"
        );
    }
    text
}

/// An element, or four neighbours, and the code that computes it.
fn element(
    program: &MapKernel,
    wide: bool,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> (String, String) {
    let mut w = Writer {
        kernel: program,
        slots,
        arguments,
        text: String::new(),
        indices: vec!["i".into()],
        wide,
        along: innermost(program),
        names: vec![None; program.code.len()],
        mark: String::new(),
        alike: &[],
    };
    (0..program.code.len()).for_each(|v| w.compute(v));
    (w.operand(program.code.len() - 1, wide), w.text)
}
