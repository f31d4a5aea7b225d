//! What runs on a product's elements as soon as they are finished: `finish`, `finish4` for four neighbours, and `finish8`
//! for eight halves.

use super::code::{Arguments, LoopPosition, Name, Writer, innermost, split_index, store_two};
use super::expression::rounded;
use super::slots::Slots;
use crate::dispatch::ComputeType;
use volta_ir::plan::kernel::{MapKernel, Operand, Step};

/// Whether runs of so many results, from a multiple of it on, stand in one row of the epilogue's.
fn has_runs(epilogue: Option<&MapKernel>, length: usize) -> bool {
    epilogue.is_none_or(|map| {
        map.extents.last().is_some_and(|last| last.is_multiple_of(length)) && super::can_be_wide(map)
    })
}

/// Whether eight halves can be finished at once.
pub(crate) fn finishes_eights(epilogue: Option<&MapKernel>) -> bool {
    has_runs(epilogue.map(MapKernel::simplified).as_ref(), 8)
}

/// The functions for a kernel's result that `body` calls. `keep` is the name of the memory the result itself goes to, if
/// anybody reads it, and `eights` says that eight halves can be finished at once.
pub(crate) fn write(
    epilogue: Option<&MapKernel>,
    output: &Operand,
    keep: Option<&str>,
    body: &str,
    eights: bool,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let simple = epilogue.map(MapKernel::simplified);
    let in_fours = has_runs(simple.as_ref(), 4);
    let calls = |name: &str| body.contains(&format!("{name}("));
    let four = calls("finish4") || calls("finish8") && !eights;
    let one = calls("finish") || four && !in_fours;
    let [lane, lane4] = [false, true].map(|wide| ComputeType::of(output.dtype).name(wide));
    let mut program = |results: &[&str], wide| {
        let kernel = simple.as_ref();
        kernel.map_or(String::new(), |kernel| program(kernel, output, results, wide, slots, arguments))
    };
    let keep = |call: &str, results: &str| {
        keep.map_or(String::new(), |name| format!("{call}_{name}(i, {results});\n"))
    };
    let mut text = String::new();
    if one {
        let inside = keep("store", "result") + &program(&["result"], false);
        text += &format!("fn finish(i: u32, result: {lane}) {{\n{inside}}}\n");
    }
    if four {
        let inside = if in_fours {
            keep("store4", "result") + &program(&["result"], true)
        } else {
            // The neighbours may stand in different rows.
            ["x", "y", "z", "w"]
                .iter()
                .enumerate()
                .map(|(k, c)| format!("finish(i + {k}u, result.{c});\n"))
                .collect()
        };
        text += &format!("fn finish4(i: u32, result: {lane4}) {{\n{inside}}}\n");
    }
    if calls("finish8") {
        let inside = if eights {
            keep("store8", "low, high") + &program(&["low", "high"], true)
        } else {
            "finish4(i, low);\nfinish4(i + 4u, high);\n".into()
        };
        text += &format!("fn finish8(i: u32, low: {lane4}, high: {lane4}) {{\n{inside}}}\n");
    }
    text
}

/// The program for a result, for four, or for two fours that are neighbours.
fn program(
    kernel: &MapKernel,
    output: &Operand,
    results: &[&str],
    wide: bool,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let mut text = String::new();
    let indices = split_index(&mut text, "i", &kernel.extents, "x");
    let along = innermost(kernel);
    let places = results.iter().enumerate().map(|(k, _)| {
        let mut indices = indices.clone();
        if k > 0
            && let Some(index) = indices.get_mut(along)
        {
            let next = format!("next{k}");
            text += &format!("let {next} = {index} + {}u;\n", 4 * k);
            *index = next;
        }
        let mark = if k > 0 { format!("_{k}") } else { String::new() };
        LoopPosition { indices, names: vec![None; kernel.code.len()], mark }
    });
    let mut places: Vec<LoopPosition> = places.collect();
    let mut w = Writer {
        kernel,
        slots,
        arguments,
        text,
        indices: Vec::new(),
        wide,
        along,
        names: Vec::new(),
        mark: String::new(),
        alike: &[],
    };
    for v in 0..kernel.code.len() {
        for (place, result) in places.iter_mut().zip(results) {
            place.visit(&mut w, |w| match &kernel.code[v].step {
                Step::Load { access, .. } if access.slot == output.slot => {
                    w.names[v] = Some(Name { text: rounded(result.to_string(), output.dtype, wide), wide });
                }
                _ => w.compute(v),
            });
        }
    }
    for store in &kernel.stores {
        if let Ok(two) = <&mut [LoopPosition; 2]>::try_from(&mut places[..]) {
            store_two(&mut w, two, store.value, &store.access);
        } else {
            places[0].visit(&mut w, |w| w.store(store.value, &store.access));
        }
    }
    w.text
}
