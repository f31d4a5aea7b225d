//! Programs without reductions: every invocation computes one element, or four neighbours.

use super::code::{Arguments, Writer, split_index};
use super::slots::Slots;
use super::{BUILTINS, GROUP, MapDispatch, Uniform, can_be_wide};
use crate::gpu::dispatch::Dispatch;
use crate::plan::kernel::{Access, MapKernel, Step};

/// Programs that one shader holds at most: more make it slow to compile.
const MOST_TOGETHER: usize = 16;

/// Whether invocations compute four neighbours of the innermost loop.
fn is_wide(kernel: &MapKernel) -> bool {
    let Some((&last, rest)) = kernel.extents.split_last() else { return false };
    if !can_be_wide(kernel) || last < 4 {
        return false;
    }
    if last.is_multiple_of(4) {
        return kernel.stores.iter().any(|s| s.access.is_straight(4));
    }
    // Memory is padded: the last four of a single loop may reach beyond its end where every access is straight.
    let harmless = |a: &Access| a.is_straight(4) || a.position.coefficients.iter().all(|&c| c == 0);
    let loads = kernel.code.iter().all(|i| match &i.step {
        Step::Load { access, checks, .. } => !checks.is_empty() || harmless(access),
        _ => true,
    });
    rest.is_empty() && loads && kernel.stores.iter().all(|s| s.access.is_straight(4))
}

fn invocations(kernel: &MapKernel) -> u64 {
    let all = kernel.iterations() as u64;
    if is_wide(kernel) { all.div_ceil(4) } else { all }
}

/// The program of one invocation, whose number is `i`.
fn program(kernel: &MapKernel, slots: &mut Slots, arguments: &mut Arguments) -> String {
    let wide = is_wide(kernel);
    let mut text = String::new();
    let mut extents = kernel.extents.clone();
    if wide && let Some(last) = extents.last_mut() {
        *last = last.div_ceil(4);
    }
    let mut indices = split_index(&mut text, "i", &extents, "x");
    if wide && let Some(last) = indices.last_mut() {
        *last = format!("({last} * 4u)");
    }
    let names = vec![None; kernel.code.len()];
    let mut w = Writer { kernel, slots, arguments, text, indices, wide, names, mark: String::new() };
    for v in 0..kernel.code.len() {
        w.compute(v);
    }
    for store in &kernel.stores {
        w.store(store.value, &store.access);
    }
    w.text
}

pub(super) fn uniforms(arguments: Arguments) -> Vec<Uniform> {
    arguments.0.into_iter().map(|(n, dtype)| Uniform::Argument(n, dtype)).collect()
}

pub(super) fn lower(kernel: &MapKernel) -> Vec<MapDispatch> {
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let count = invocations(kernel);
    let program = program(kernel, &mut slots, &mut arguments);
    let body = format!(
        "@compute @workgroup_size({GROUP})\n\
         fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
         let i = (wg.x + wg.y * nwg.x) * {GROUP}u + lane;\n\
         if (i >= {count}u) {{ return; }}\n{program}}}\n"
    );
    let dispatch = Dispatch { body, bindings: slots.bindings, groups: count.div_ceil(u64::from(GROUP)) };
    vec![MapDispatch { dispatch, uniforms: uniforms(arguments) }]
}

/// Several programs in a dispatch, one behind the other. Their sizes are uniforms, so that the text depends on the
/// program alone.
pub(super) fn lower_many(kernels: &[MapKernel], most_slots: usize) -> Vec<MapDispatch> {
    let mut dispatches = Vec::new();
    let mut rest = kernels;
    while !rest.is_empty() {
        let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
        let mut programs: Vec<(String, u64)> = Vec::new();
        for kernel in rest.iter().take(MOST_TOGETHER) {
            let mut more = Slots { bindings: slots.bindings.clone() };
            let text = program(kernel, &mut more, &mut arguments);
            if more.bindings.len() > most_slots && !programs.is_empty() {
                break;
            }
            slots = more;
            programs.push((text, invocations(kernel)));
        }
        rest = &rest[programs.len()..];
        let mut uniforms = uniforms(arguments);
        let mut body = String::new();
        let mut main = String::new();
        for (k, (text, count)) in programs.iter().enumerate() {
            body += &format!("fn program{k}(i: u32) {{\n{text}}}\n");
            let place = uniforms.len();
            let word = if place.is_multiple_of(2) { "x" } else { "z" };
            main += &format!(
                "if (i < arguments[{}].{word}) {{ program{k}(i); return; }}\ni -= arguments[{}].{word};\n",
                place / 2,
                place / 2
            );
            uniforms.push(Uniform::Count(*count as u32));
        }
        body += &format!(
            "@compute @workgroup_size({GROUP})\n\
             fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
             var i = (wg.x + wg.y * nwg.x) * {GROUP}u + lane;\n{main}}}\n"
        );
        let count: u64 = programs.iter().map(|p| p.1).sum();
        let dispatch = Dispatch { body, bindings: slots.bindings, groups: count.div_ceil(u64::from(GROUP)) };
        dispatches.push(MapDispatch { dispatch, uniforms });
    }
    dispatches
}
