//! Scattering lines of few values: one invocation a sum, which looks at all places of its line.

use super::element_type::{Number, place_at};
use super::scatter::Scatter;
use super::workgroup::{dispatch_each, operand, output};
use crate::dispatch::Lowered;

pub(super) fn lower(s: &Scatter) -> Lowered {
    let number = Number::of(s.kernel.output.dtype);
    let sums = s.kernel.output.shape.numel();
    let (count, extent, behind) = (s.values.count, s.extent, s.values.behind);
    if count == 0 {
        let zero = format!("    store_out(at, {});\n", number.zero);
        let dispatch = dispatch_each(sums, vec![output(s.kernel)], "", &zero);
        return Lowered { dispatches: vec![dispatch], scratch: vec![] };
    }
    let statements = format!(
        "    let before = at / {slab}u;
    let behind = at % {behind}u;
    let place = at / {behind}u % {extent}u;
    let index = {index};
    let values = {values};
    var sum = {zero};
    for (var i = 0u; i < {count}u; i++) {{
        if (place_at(index + i * {index_step}) == place) {{
            sum += load_values(values + i * {values_step});
        }}
    }}
    store_out(at, {sum});
",
        slab = extent * behind,
        index = s.index.first("before", "behind"),
        values = s.values.first("before", "behind"),
        zero = number.zero,
        index_step = s.index.step(),
        values_step = s.values.step(),
        sum = number.stored("sum"),
    );
    let bindings = vec![operand(s.kernel, 0, "index"), operand(s.kernel, 1, "values"), output(s.kernel)];
    let declarations = place_at(s.kernel.operands[0].dtype, extent);
    Lowered { dispatches: vec![dispatch_each(sums, bindings, &declarations, &statements)], scratch: vec![] }
}
