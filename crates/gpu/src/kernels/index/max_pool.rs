//! The place, in its image, of every window's first maximum: one invocation a window.

use super::element_type::Number;
use super::view::literal;
use super::workgroup::{dispatch_each, operand, output};
use crate::dispatch::Lowered;
use volta_ir::op::PoolAttrs;
use volta_ir::plan::kernel::NativeKernel;

pub(super) fn lower(kernel: &NativeKernel, attrs: &PoolAttrs) -> Lowered {
    let (x, out) = (&kernel.operands[0], &kernel.output.shape);
    let order = Number::of(x.dtype).order();
    let [s0, s1, s2, s3] = [0, 1, 2, 3].map(|k| literal(x.strides[k]));
    let (channels, out_height, out_width) = (out[1], out[2], out[3]);
    let [rows, columns] = [0, 1].map(|k| inside(attrs, k, x.shape[2 + k]));
    let (width, key, lowest, offset) = (x.shape[3], order.name, order.lowest, literal(x.offset));
    let [dy, dx] = attrs.dilation;
    let statements = format!(
        "\
    let rows = inside_rows(at / {out_width}u % {out_height}u);
    let columns = inside_columns(at % {out_width}u);
    let image = at / {area}u;
    let base = {offset} + image / {channels}u * {s0} + image % {channels}u * {s1};
    var best: {key} = {lowest};
    var place = rows.x * {width}u + columns.x;
    var y = rows.x;
    for (var i = rows.y; i < rows.z; i++) {{
        var x = columns.x;
        for (var j = columns.y; j < columns.z; j++) {{
            let found = order_of(load_x(base + y * {s2} + x * {s3}));
            if (found > best) {{
                best = found;
                place = y * {width}u + x;
            }}
            x += {dx}u;
        }}
        y += {dy}u;
    }}
    store_out(at, i32(place));
",
        area = out_height * out_width,
    );
    let declarations = format!(
        "\
{}
// The first row or column of a window that is inside the image, and which ones of the window are inside.
fn inside_rows(window: u32) -> vec3<u32> {{
{rows}}}

fn inside_columns(window: u32) -> vec3<u32> {{
{columns}}}
",
        order.function
    );
    let bindings = vec![operand(kernel, 0, "x"), output(kernel)];
    Lowered {
        dispatches: vec![dispatch_each(out.numel(), bindings, &declarations, &statements)],
        scratch: vec![],
    }
}

fn inside(attrs: &PoolAttrs, axis: usize, extent: usize) -> String {
    let (size, step, padding) = (attrs.kernel[axis], attrs.dilation[axis], attrs.padding[axis]);
    let (stride, room, up) = (attrs.stride[axis], extent + padding, step - 1);
    format!(
        "    let start = window * {stride}u;
    let skipped = min(({padding}u - min(start, {padding}u) + {up}u) / {step}u, {size}u);
    let end = max(min(({room}u - min(start, {room}u) + {up}u) / {step}u, {size}u), skipped);
    let first = start + skipped * {step}u;
    return vec3<u32>(first - min(first, {padding}u), skipped, end);
"
    )
}
