//! Programs without reductions over long rows: an invocation computes several places of one row, whose loads wait
//! together, and what is the same all along the row only once.

use super::code::{Arguments, LoopPosition, Writer, innermost, split_index};
use super::elementwise::{is_wide, uniforms};
use super::slots::Slots;
use super::{BUILTINS, GROUP, MapDispatch};
use crate::dispatch::Dispatch;
use volta_ir::plan::kernel::{MapKernel, Step};
use volta_ir::plan::view::{Affine, Check};

/// Places of a row that an invocation computes, if each is one element, or four neighbours.
const PLACES: [usize; 2] = [8, 4];
/// Elements that are worth it, and iterations of a workgroup along one row.
const MIN_ELEMENTS: usize = 1 << 20;
const TURNS: usize = 4;
/// The most values that are computed by an invocation.
const MAX_VALUES: usize = 256;

/// For every value, whether it differs along a loop.
pub(super) fn varies(kernel: &MapKernel, along: usize) -> Vec<bool> {
    let moves = |form: &Affine| form.coefficients.get(along).is_some_and(|&c| c != 0);
    let checked = |checks: &[Check]| checks.iter().any(|c| moves(&c.form));
    let mut varies = vec![false; kernel.code.len()];
    for (v, i) in kernel.code.iter().enumerate() {
        let here = match &i.step {
            Step::Load { access, checks, .. } => moves(&access.position) || checked(checks),
            Step::Gather { access, .. } => moves(&access.position),
            Step::Iota(form) | Step::Random { counter: form, .. } => moves(form),
            Step::Valid(checks) => checked(checks),
            _ => false,
        };
        varies[v] = here || i.step.operands().iter().any(|&o| varies[o]);
    }
    varies
}

/// Elements of a row, or fours.
fn units(kernel: &MapKernel) -> usize {
    let last = kernel.extents.last().copied().unwrap_or(0);
    if is_wide(kernel) { last.div_ceil(4) } else { last }
}

/// The dispatch of a kernel that gains from it: rows are long, and something is read once a row.
pub(super) fn lower(kernel: &MapKernel) -> Option<MapDispatch> {
    let (wide, varies) = (is_wide(kernel), varies(kernel, innermost(kernel)));
    let places = PLACES[usize::from(wide)];
    let of_rows = |v: usize| !varies[v] && matches!(kernel.code[v].step, Step::Load { .. });
    let values = varies.iter().filter(|v| **v).count() * places * if wide { 4 } else { 1 };
    let chunk = GROUP as usize * places;
    let gains = kernel.extents.len() > 1
        && kernel.iterations() >= MIN_ELEMENTS
        && units(kernel) >= TURNS * chunk
        && values <= MAX_VALUES
        && (0..varies.len()).any(of_rows);
    gains.then(|| write(kernel, &varies, places))
}

fn write(kernel: &MapKernel, varies: &[bool], places: usize) -> MapDispatch {
    let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
    let (wide, along) = (is_wide(kernel), innermost(kernel));
    let (count, chunk) = (units(kernel), GROUP as usize * places);
    let iterations = count.div_ceil(chunk);
    let rows = &kernel.extents[..along];
    let groups = rows.iter().product::<usize>() * iterations;
    let mut text = String::new();
    let indices = split_index(&mut text, &format!("(group / {iterations}u)"), rows, "x");
    let mut w = Writer {
        kernel,
        slots: &mut slots,
        arguments: &mut arguments,
        text,
        indices,
        wide: false,
        along,
        names: vec![None; kernel.code.len()],
        mark: String::new(),
        alike: &[],
    };
    (0..varies.len()).filter(|&v| !varies[v]).for_each(|v| w.compute(v));
    w.wide = wide;
    let mut all = Vec::new();
    for c in 0..places {
        let behind = c * GROUP as usize;
        w.line(format!(
            "let e_{c} = (group % {iterations}u) * {chunk}u + {behind}u + lane;\nlet y_{c} = min(e_{c}, {}u){};",
            count - 1,
            if wide { " * 4u" } else { "" }
        ));
        let mut indices = w.indices.clone();
        indices.push(format!("y_{c}"));
        all.push(LoopPosition { indices, names: w.names.clone(), mark: format!("_{c}") });
    }
    for v in (0..varies.len()).filter(|&v| varies[v]) {
        all.iter_mut().for_each(|place| place.visit(&mut w, |w| w.compute(v)));
    }
    for (c, place) in all.iter_mut().enumerate() {
        w.line(format!("if (e_{c} < {count}u) {{"));
        place.visit(&mut w, |w| kernel.stores.iter().for_each(|s| w.store(s.value, &s.access)));
        w.line("}");
    }
    let body = format!(
        "@compute @workgroup_size({GROUP})\n\
         fn main({BUILTINS}, @builtin(local_invocation_index) lane: u32) {{\n\
         let group = wg.x + wg.y * nwg.x;\nif (group >= {groups}u) {{ return; }}\n{}}}\n",
        w.text
    );
    let dispatch = Dispatch { body, bindings: slots.bindings, groups: groups as u64 };
    MapDispatch { dispatch, uniforms: uniforms(&arguments) }
}
