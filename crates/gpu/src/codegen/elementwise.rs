//! Programs without reductions: every invocation computes one element, or four neighbours, or several of these.

use super::code::{Arguments, LoopPosition, Writer, innermost, split_index};
use super::multi_tensor::{self, Table};
use super::row_blocking;
use super::slots::Slots;
use super::{BUILTINS, GROUP, MapDispatch, Uniform, can_be_wide};
use crate::dispatch::Dispatch;
use volta_ir::plan::kernel::{Access, MapKernel, Step, Value};

/// Whether invocations compute four neighbours of the innermost loop.
pub(super) fn is_wide(kernel: &MapKernel) -> bool {
    let Some((&last, rest)) = kernel.extents.split_last() else { return false };
    if !can_be_wide(kernel) || last < 4 {
        return false;
    }
    if last.is_multiple_of(4) {
        return kernel.stores.iter().any(|s| s.access.is_straight(4));
    }
    // Memory is padded: the last four of a single loop may reach beyond its end where every access is straight, unless something
    // is asserted of what lies there.
    let harmless = |a: &Access| a.is_straight(4) || a.position.coefficients.iter().all(|&c| c == 0);
    let loads = kernel.code.iter().all(|i| match &i.step {
        Step::Load { access, checks, .. } => !checks.is_empty() || harmless(access),
        _ => true,
    });
    rest.is_empty() && loads && !kernel.asserts() && kernel.stores.iter().all(|s| s.access.is_straight(4))
}

/// What an invocation computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PerInvocation {
    /// One element, or four neighbours.
    One,
    /// So many elements, far apart, whose loads wait together: of single elements too few bytes would be on their way.
    Several(u64),
}

/// Elements and lengths of rows that are worth taking several at a time, and the most values that are computed then.
const MIN_ELEMENTS: usize = 1 << 18;
const MIN_ROW_LENGTH: usize = 64;
const MAX_VALUES: usize = 160;

impl PerInvocation {
    fn of(kernel: &MapKernel) -> PerInvocation {
        let long =
            kernel.extents.last().is_some_and(|&last| last >= MIN_ROW_LENGTH && !last.is_multiple_of(4));
        let few_values = 4 * kernel.code.len() <= MAX_VALUES;
        if long && few_values && kernel.iterations() >= MIN_ELEMENTS && !is_wide(kernel) {
            PerInvocation::Several(4)
        } else {
            PerInvocation::One
        }
    }

    /// Invocations for so many elements or fours.
    fn invocations(self, units: u64) -> u64 {
        match self {
            PerInvocation::One => units,
            PerInvocation::Several(n) => units.div_ceil(n),
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
fn program(kernel: &MapKernel, slots: &mut Slots, arguments: &mut Arguments, count: u64) -> String {
    let share = PerInvocation::of(kernel);
    let mut w = writer(kernel, &[], slots, arguments);
    let (all, stores): (Vec<_>, Vec<_>) =
        ((0..kernel.code.len()).collect(), (0..kernel.stores.len()).collect());
    match share {
        PerInvocation::One => {
            w.indices = indices(kernel, &mut w.text, "i", "x");
            all.into_iter().for_each(|v| w.compute(v));
            w.stores(&stores);
        }
        PerInvocation::Several(n) => {
            let threads = share.invocations(count);
            let mut places = Vec::new();
            for c in 0..n {
                w.line(format!(
                    "let j_{c} = i + {c}u * {threads}u;\nlet near_{c} = min(j_{c}, {count}u - 1u);"
                ));
                let indices = indices(kernel, &mut w.text, &format!("near_{c}"), &format!("x_{c}_"));
                places.push(LoopPosition { indices, names: w.names.clone(), mark: format!("_{c}") });
            }
            for v in all {
                places.iter_mut().for_each(|place| place.visit(&mut w, |w| w.compute(v)));
            }
            for (c, place) in places.iter_mut().enumerate() {
                w.line(format!("if (j_{c} < {count}u) {{"));
                place.visit(&mut w, |w| w.stores(&stores));
                w.line("}");
            }
        }
    }
    w.text
}

fn writer<'a>(
    kernel: &'a MapKernel,
    alike: &'a [&'a MapKernel],
    slots: &'a mut Slots,
    arguments: &'a mut Arguments,
) -> Writer<'a> {
    Writer {
        kernel,
        slots,
        arguments,
        text: String::new(),
        indices: Vec::new(),
        wide: is_wide(kernel),
        along: innermost(kernel),
        names: vec![None; kernel.code.len()],
        mark: String::new(),
        alike,
    }
}

/// The uniform memory that arguments are read from.
pub(crate) fn uniforms(arguments: &Arguments) -> Vec<Uniform> {
    arguments.0.clone()
}

pub(super) fn lower(kernel: &MapKernel) -> Vec<MapDispatch> {
    if let Some(dispatch) = row_blocking::lower(kernel) {
        return vec![dispatch];
    }
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let count = units(kernel);
    let threads = PerInvocation::of(kernel).invocations(count);
    let program = program(kernel, &mut slots, &mut arguments, count);
    let body = format!(
        "@compute @workgroup_size({GROUP})\n\
         fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
         let i = (wg.x + wg.y * nwg.x) * {GROUP}u + lane;\n\
         if (i >= {threads}u) {{ return; }}\n{program}}}\n"
    );
    let dispatch = Dispatch { body, bindings: slots.bindings, groups: threads.div_ceil(u64::from(GROUP)) };
    vec![MapDispatch { dispatch, uniforms: uniforms(&arguments) }]
}

/// Programs that are alike, in few dispatches. Their sizes are uniforms, so that the text depends on the program and
/// on how many there are.
pub(super) fn lower_many(kernels: &[MapKernel], most_slots: usize) -> Vec<MapDispatch> {
    let classes = multi_tensor::classes(kernels, most_slots, is_wide);
    classes.iter().map(|class| together(class)).collect()
}

fn together(kernels: &[&MapKernel]) -> MapDispatch {
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let kernel = kernels[0];
    let mut w = writer(kernel, kernels, &mut slots, &mut arguments);
    w.indices = indices(kernel, &mut w.text, "i", "x");
    let (differing, same): (Vec<Value>, Vec<Value>) = (0..kernel.code.len()).partition(|&v| w.differs(v));
    let is_load = |v: &Value| matches!(kernel.code[*v].step, Step::Load { .. });
    let (loads, rest): (Vec<Value>, Vec<Value>) = same.into_iter().partition(is_load);
    // What is loaded for all of them waits together with what each of them loads.
    loads.into_iter().for_each(|v| w.compute(v));
    w.pick_here(&differing);
    rest.into_iter().for_each(|v| w.compute(v));
    w.stores(&(0..kernel.stores.len()).collect::<Vec<_>>());
    let text = w.text;
    let table = Table::of(kernels.iter().map(|kernel| {
        let count = units(kernel);
        (count.div_ceil(u64::from(GROUP)), count)
    }));
    let body = format!(
        "@compute @workgroup_size({GROUP})\n\
         fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
         let group = wg.x + wg.y * nwg.x;\n\
         if (group >= {limit}) {{ return; }}\n{find}\
         let i = (group - {start}) * {GROUP}u + lane;\n\
         if (i >= {count}) {{ return; }}\n{text}}}\n",
        limit = table.limit(&arguments),
        find = table.find(&arguments),
        start = Table::start(&arguments, "program"),
        count = Table::size(&arguments, "program"),
    );
    let mut uniforms = uniforms(&arguments);
    table.write(&mut uniforms);
    MapDispatch { dispatch: Dispatch { body, bindings: slots.bindings, groups: table.groups() }, uniforms }
}
