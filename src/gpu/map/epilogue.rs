//! What runs on a product's elements as soon as they are finished: `finish`, and `finish4` for four neighbours.

use super::code::{Arguments, Name, Writer, innermost, split_index};
use super::expression::rounded;
use super::slots::Slots;
use crate::gpu::dispatch::Lane;
use crate::plan::kernel::{MapKernel, Operand, Step};

/// The functions for a kernel's result. `keep` is the name of the memory the result itself goes to, if anybody
/// reads it; `four` asks for `finish4`.
pub(in crate::gpu) fn write(
    epilogue: Option<&MapKernel>,
    output: &Operand,
    keep: Option<&str>,
    four: bool,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let simple = epilogue.map(MapKernel::simplified);
    let last = simple.as_ref().and_then(|m| m.extents.last().copied()).unwrap_or(0);
    let in_fours =
        simple.is_none() || (last.is_multiple_of(4) && simple.as_ref().is_some_and(super::can_be_wide));
    let mut text = String::new();
    for wide in [false, true] {
        if wide && !four {
            continue;
        }
        let lane = Lane::of(output.dtype).name(wide);
        let (s, four) = if wide { ("4", "4") } else { ("", "") };
        text += &format!("fn finish{s}(i: u32, result: {lane}) {{\n");
        if wide && !in_fours {
            // The neighbours may stand in different rows.
            text += "finish(i, result.x);\nfinish(i + 1u, result.y);\nfinish(i + 2u, result.z);\nfinish(i + 3u, result.w);\n}\n";
            continue;
        }
        if let Some(name) = keep {
            text += &format!("store{four}_{name}(i, result);\n");
        }
        if let Some(kernel) = &simple {
            text += &program(kernel, output, wide, slots, arguments);
        }
        text += "}\n";
    }
    text
}

fn program(
    kernel: &MapKernel,
    output: &Operand,
    wide: bool,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let mut text = String::new();
    let indices = split_index(&mut text, "i", &kernel.extents, "x");
    let names = vec![None; kernel.code.len()];
    let along = innermost(kernel);
    let mut w = Writer {
        kernel,
        slots,
        arguments,
        text,
        indices,
        wide,
        along,
        names,
        mark: String::new(),
        alike: &[],
    };
    for v in 0..kernel.code.len() {
        match &kernel.code[v].step {
            Step::Load { access, .. } if access.slot == output.slot => {
                w.names[v] = Some(Name { text: rounded("result".into(), output.dtype, wide), wide });
            }
            _ => w.compute(v),
        }
    }
    for store in &kernel.stores {
        w.store(store.value, &store.access);
    }
    w.text
}
