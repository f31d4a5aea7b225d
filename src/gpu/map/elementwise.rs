//! Programs without reductions: every invocation computes one element, or four neighbours, or several of these.

use super::along;
use super::code::{Arguments, Place, Writer, innermost, split_index};
use super::slots::Slots;
use super::{BUILTINS, GROUP, MapDispatch, Uniform, can_be_wide};
use crate::gpu::dispatch::Dispatch;
use crate::plan::kernel::{Access, MapKernel, Step};

/// Programs that one shader holds at most: more make it slow to compile.
const MOST_TOGETHER: usize = 16;

/// Whether invocations compute four neighbours of the innermost loop.
pub(super) fn is_wide(kernel: &MapKernel) -> bool {
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

/// What an invocation computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// One element, or four neighbours.
    One,
    /// So many elements, far apart, whose loads wait together: of single elements too few bytes would be on their way.
    Together(u64),
}

/// Elements and lengths of rows that are worth taking several at a time, and the most values that are computed then.
const MANY: usize = 1 << 18;
const LONG: usize = 64;
const MOST_VALUES: usize = 160;

impl Share {
    fn of(kernel: &MapKernel) -> Share {
        let long = kernel.extents.last().is_some_and(|&last| last >= LONG && !last.is_multiple_of(4));
        let few_values = 4 * kernel.code.len() <= MOST_VALUES;
        if long && few_values && kernel.iterations() >= MANY && !is_wide(kernel) {
            Share::Together(4)
        } else {
            Share::One
        }
    }

    /// Invocations for so many elements or fours.
    fn invocations(self, units: u64) -> u64 {
        match self {
            Share::One => units,
            Share::Together(n) => units.div_ceil(n),
        }
    }
}

/// Elements, or fours where the kernel is wide.
fn units(kernel: &MapKernel) -> u64 {
    let all = kernel.iterations() as u64;
    if is_wide(kernel) { all.div_ceil(4) } else { all }
}

/// Names for the loops' indices at the element, or the four, of number `flat`.
fn indices(kernel: &MapKernel, text: &mut String, flat: &str, prefix: &str) -> Vec<String> {
    let wide = is_wide(kernel);
    let mut extents = kernel.extents.clone();
    if wide && let Some(last) = extents.last_mut() {
        *last = last.div_ceil(4);
    }
    let mut indices = split_index(text, flat, &extents, prefix);
    if wide && let Some(last) = indices.last_mut() {
        *last = format!("({last} * 4u)");
    }
    indices
}

/// The program of one invocation, whose number is `i`, of `threads`, for `count` elements or fours.
fn program(
    kernel: &MapKernel,
    slots: &mut Slots,
    arguments: &mut Arguments,
    [threads, count]: [&str; 2],
) -> String {
    let names = vec![None; kernel.code.len()];
    let (wide, share) = (is_wide(kernel), Share::of(kernel));
    let (text, mark) = (String::new(), String::new());
    let along = innermost(kernel);
    let mut w = Writer { kernel, slots, arguments, text, indices: Vec::new(), wide, along, names, mark };
    let all = 0..kernel.code.len();
    let store = |w: &mut Writer| kernel.stores.iter().for_each(|s| w.store(s.value, &s.access));
    match share {
        Share::One => {
            w.indices = indices(kernel, &mut w.text, "i", "x");
            all.for_each(|v| w.compute(v));
            store(&mut w);
        }
        Share::Together(n) => {
            let mut places = Vec::new();
            for c in 0..n {
                w.line(format!(
                    "let j_{c} = i + {c}u * {threads};\nlet near_{c} = min(j_{c}, {count} - 1u);"
                ));
                let indices = indices(kernel, &mut w.text, &format!("near_{c}"), &format!("x_{c}_"));
                places.push(Place { indices, names: w.names.clone(), mark: format!("_{c}") });
            }
            for v in all {
                places.iter_mut().for_each(|place| place.visit(&mut w, |w| w.compute(v)));
            }
            for (c, place) in places.iter_mut().enumerate() {
                w.line(format!("if (j_{c} < {count}) {{"));
                place.visit(&mut w, store);
                w.line("}");
            }
        }
    }
    w.text
}

pub(super) fn uniforms(arguments: &Arguments) -> Vec<Uniform> {
    arguments.0.iter().map(|&(n, dtype)| Uniform::Argument(n, dtype)).collect()
}

pub(super) fn lower(kernel: &MapKernel) -> Vec<MapDispatch> {
    if let Some(dispatch) = along::lower(kernel) {
        return vec![dispatch];
    }
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let count = units(kernel);
    let threads = Share::of(kernel).invocations(count);
    let sizes = [format!("{threads}u"), format!("{count}u")];
    let program = program(kernel, &mut slots, &mut arguments, [&sizes[0], &sizes[1]]);
    let body = format!(
        "@compute @workgroup_size({GROUP})\n\
         fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
         let i = (wg.x + wg.y * nwg.x) * {GROUP}u + lane;\n\
         if (i >= {threads}u) {{ return; }}\n{program}}}\n"
    );
    let dispatch = Dispatch { body, bindings: slots.bindings, groups: threads.div_ceil(u64::from(GROUP)) };
    vec![MapDispatch { dispatch, uniforms: uniforms(&arguments) }]
}

/// Several programs in a dispatch, one behind the other. Their sizes are uniforms, so that the text depends on the
/// program alone.
pub(super) fn lower_many(kernels: &[MapKernel], most_slots: usize) -> Vec<MapDispatch> {
    let mut dispatches = Vec::new();
    let mut rest = kernels;
    while !rest.is_empty() {
        let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
        let mut programs: Vec<(String, [u64; 2])> = Vec::new();
        for kernel in rest.iter().take(MOST_TOGETHER) {
            let mut more = Slots { bindings: slots.bindings.clone() };
            let text = program(kernel, &mut more, &mut arguments, ["threads", "count"]);
            if more.bindings.len() > most_slots && !programs.is_empty() {
                break;
            }
            slots = more;
            let count = units(kernel);
            programs.push((text, [Share::of(kernel).invocations(count), count]));
        }
        rest = &rest[programs.len()..];
        let mut uniforms = uniforms(&arguments);
        let mut body = String::new();
        let mut main = String::new();
        for (k, (text, sizes)) in programs.iter().enumerate() {
            body += &format!("fn program{k}(i: u32, threads: u32, count: u32) {{\n{text}}}\n");
            let word = |place: usize| {
                format!("arguments[{}].{}", place / 2, if place.is_multiple_of(2) { "x" } else { "z" })
            };
            let [threads, count] = [0, 1].map(|n| word(uniforms.len() + n));
            main += &format!(
                "if (i < {threads}) {{ program{k}(i, {threads}, {count}); return; }}\ni -= {threads};\n"
            );
            uniforms.extend(sizes.map(|size| Uniform::Count(size as u32)));
        }
        body += &format!(
            "@compute @workgroup_size({GROUP})\n\
             fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
             var i = (wg.x + wg.y * nwg.x) * {GROUP}u + lane;\n{main}}}\n"
        );
        let threads: u64 = programs.iter().map(|p| p.1[0]).sum();
        let dispatch =
            Dispatch { body, bindings: slots.bindings, groups: threads.div_ceil(u64::from(GROUP)) };
        dispatches.push(MapDispatch { dispatch, uniforms });
    }
    dispatches
}
