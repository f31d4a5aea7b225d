//! Convolutions with few channels a group, such as depthwise ones: there is no matrix product in them, so
//! every thread walks the window of its own pixel.

use super::conv::Geometry;
use super::output_view::{Columns, OutputView};
use super::product::{Results, output};
use super::split_k;
use super::wgsl::{Digits, indented, main};
use crate::caps::COMPUTE_UNITS;
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use std::fmt::Write;
use volta_ir::dtype::DType;
use volta_ir::op::ConvKind;
use volta_ir::plan::kernel::NativeKernel;

const THREADS: usize = 256;

/// Channels a thread computes for its pixel.
const ROWS: usize = 4;

/// Taps whose sums a thread keeps.
const TAPS: usize = 16;

/// Whether there are too few channels for a product.
pub(super) fn suits(kind: ConvKind, g: &Geometry) -> bool {
    match kind {
        ConvKind::Forward => g.outputs <= 8,
        ConvKind::InputGrad => g.inputs <= 8,
        ConvKind::WeightGrad => g.outputs <= 4 || g.outputs <= 8 && g.inputs <= 8,
    }
}

pub(super) fn lower(kernel: &NativeKernel, kind: ConvKind, g: &Geometry) -> Lowered {
    match kind {
        ConvKind::WeightGrad => weight_grad(kernel, g),
        _ => Lowered { dispatches: vec![gather(kernel, kind, g)], scratch: vec![] },
    }
}

fn operand(kernel: &NativeKernel, number: usize, name: &'static str) -> Binding {
    Binding {
        name,
        memory: Memory::Operand(number),
        dtype: kernel.operands[number].dtype,
        lane: ComputeType::F32,
        width: 1,
        reads: true,
        writes: false,
    }
}

/// Forward, and the input gradient: sums over the taps that meet a pixel, and over channels.
fn gather(kernel: &NativeKernel, kind: ConvKind, g: &Geometry) -> Dispatch {
    let (taps, [kernel_rows, kernel_columns]) = (g.taps(), g.kernel);
    let per_output = g.inputs * taps;
    let forward = kind == ConvKind::Forward;
    // Rows are the result's channels; channels are summed. Strides of both in the weights.
    let (rows, channels, row_stride, channel_stride) = if forward {
        (g.outputs, g.inputs, per_output, taps)
    } else {
        (g.inputs, g.outputs, taps, per_output)
    };
    let (grid, from) = if forward { (g.output, g.input) } else { (g.input, g.output) };
    let (pixels, plane) = (grid[0] * grid[1], from[0] * from[1]);
    let each = rows.min(ROWS);
    let blocks = rows.div_ceil(each);
    let threads = g.batch * g.groups * blocks * pixels;
    let groups = threads.div_ceil(THREADS) as u64;
    let place = |axis: usize, at: &str, tap: &str| {
        let (stride, padding, dilation) = (g.stride[axis], g.padding[axis], g.dilation[axis]);
        if forward {
            format!("i32({at} * {stride}u + {tap} * {dilation}u) - {padding}i")
        } else {
            format!("i32({at} + {padding}u) - i32({tap} * {dilation}u)")
        }
    };
    // A gradient's pixel meets a tap only where the stride divides the way to it.
    let (inside, y_at, x_at) = if forward {
        (format!("u32(y) < {}u && u32(x) < {}u", from[0], from[1]), "y".to_string(), "x".to_string())
    } else {
        let [down, right] = g.stride;
        let condition = format!(
            "y >= 0i && x >= 0i && y % {down}i == 0i && x % {right}i == 0i \
             && y / {down}i < {}i && x / {right}i < {}i",
            from[0], from[1]
        );
        (condition, format!("y / {down}i"), format!("x / {right}i"))
    };
    let mut sums = String::new();
    let mut terms = String::new();
    let mut writes = String::new();
    for r in 0..each {
        let row = format!("min(block * {each}u + {r}u, {}u)", rows - 1);
        let _ = writeln!(sums, "var total{r}: f32;\nlet weight_row{r} = {row} * {row_stride}u;");
        let _ = writeln!(terms, "total{r} = fma(value, load_b(weight_at + weight_row{r}), total{r});");
        let to = format!(
            "((image * {}u + section) * {rows}u + block * {each}u + {r}u) * {pixels}u + pixel",
            g.groups
        );
        let _ = if rows % each == 0 {
            writeln!(writes, "finish({to}, total{r});")
        } else {
            writeln!(writes, "if (block * {each}u + {r}u < {rows}u) {{ finish({to}, total{r}); }}")
        };
    }
    let text = format!(
        "let place = group * {THREADS}u + tid;
if (place >= {threads}u) {{ return; }}
let pixel = place % {pixels}u;
let down = pixel / {width}u;
let right = pixel % {width}u;
let block = place / {pixels}u % {blocks}u;
let section = place / {per_section}u % {sets}u;
let image = place / {per_image}u;
let base = (image * {sets}u + section) * {per_group}u + {offset}u;
{sums}for (var tap_y = 0u; tap_y < {kernel_rows}u; tap_y++) {{
    let y = {y};
    for (var tap_x = 0u; tap_x < {kernel_columns}u; tap_x++) {{
        let x = {x};
        if ({inside}) {{
            var at = base + u32(({y_at}) * {row}i + {x_at});
            var weight_at = section * {weights}u + {weight_offset}u + tap_y * {kernel_columns}u + tap_x;
            for (var channel = 0u; channel < {channels}u; channel++) {{
                let value = load_a(at);
{terms}                at += {plane}u;
                weight_at += {channel_stride}u;
            }}
        }}
    }}
}}
{writes}",
        width = grid[1],
        sets = g.groups,
        per_section = pixels * blocks,
        per_image = pixels * blocks * g.groups,
        per_group = channels * plane,
        offset = kernel.operands[0].offset,
        y = place(0, "down", "tap_y"),
        x = place(1, "right", "tap_x"),
        row = from[1],
        weights = g.outputs * per_output,
        weight_offset = kernel.operands[1].offset,
        terms = indented(&terms, 4),
    );
    let bindings = vec![
        operand(kernel, 0, "a"),
        operand(kernel, 1, "b"),
        output(kernel.output.dtype, ComputeType::F32, 1),
    ];
    Dispatch { body: main(THREADS, groups, &text), bindings, groups }
}

/// A workgroup sums over pixels for one pair of channels and some taps.
fn weight_grad(kernel: &NativeKernel, g: &Geometry) -> Lowered {
    let (taps, pixels) = (g.taps(), g.out_pixels());
    let each = taps.min(TAPS);
    let chunks = taps.div_ceil(each);
    let weights = g.groups * g.outputs * g.inputs * taps;
    let tasks = g.groups * g.outputs * g.inputs * chunks;
    let depth = g.batch * pixels;
    let parts = (COMPUTE_UNITS * 8 / tasks).min(depth / (THREADS * 8)).max(1);
    let per_part = depth.div_ceil(parts);
    let groups = (tasks * parts) as u64;
    let results = Results {
        items: 1,
        m: 1,
        n: weights,
        target: OutputView {
            items: Digits::line(1, 0),
            row: weights as i64,
            columns: Columns::Strided(Digits::line(weights, 1)),
        },
    };
    let (mut sums, mut terms, mut shares, mut adds, mut writes) =
        (String::new(), String::new(), String::new(), String::new(), String::new());
    for t in 0..each {
        let tap = if chunks == 1 { format!("{t}u") } else { format!("(chunk * {each}u + {t}u)") };
        let (down, right) = (format!("({tap} / {}u)", g.kernel[1]), format!("({tap} % {}u)", g.kernel[1]));
        let _ = writeln!(sums, "var total{t}: f32;");
        let _ = write!(
            terms,
            "let y{t} = i32(oy * {}u + {down} * {}u) - {}i;
let x{t} = i32(ox * {}u + {right} * {}u) - {}i;
if (u32(y{t}) < {}u && u32(x{t}) < {}u) {{
    total{t} = fma(value, load_a(begin + u32(y{t} * {}i + x{t})), total{t});
}}
",
            g.stride[0],
            g.dilation[0],
            g.padding[0],
            g.stride[1],
            g.dilation[1],
            g.padding[1],
            g.input[0],
            g.input[1],
            g.input[1]
        );
        let at = t * THREADS;
        let _ = writeln!(shares, "sums[tid + {at}u] = total{t};");
        let _ = writeln!(adds, "sums[tid + {at}u] += sums[tid + half + {at}u];");
        let call = if parts > 1 {
            format!(
                "store_partial(part * {}u + pair * {taps}u + {tap}, sums[{at}u]);",
                split_k::numbers(&results)
            )
        } else {
            format!("finish(pair * {taps}u + {tap}, sums[{at}u]);")
        };
        let _ = writeln!(writes, "if ({tap} < {taps}u) {{ {call} }}");
    }
    let text = format!(
        "let part = group / {tasks}u;
let task = group % {tasks}u;
let chunk = task % {chunks}u;
let pair = task / {chunks}u;
let inner = pair % {inputs}u;
let outer = pair / {inputs}u;
let section = outer / {outputs}u;
let last = min((part + 1u) * {per_part}u, {depth}u);
{sums}for (var k = part * {per_part}u + tid; k < last; k += {THREADS}u) {{
    let image = k / {pixels}u;
    let pixel = k % {pixels}u;
    let oy = pixel / {width}u;
    let ox = pixel % {width}u;
    let value = load_b(image * {out_image}u + outer * {pixels}u + pixel + {out_offset}u);
    let begin = image * {in_image}u + (section * {inputs}u + inner) * {plane}u + {in_offset}u;
{terms}}}
{shares}for (var half = {}u; half > 0u; half = half / 2u) {{
    workgroupBarrier();
    if (tid < half) {{
{adds}    }}
}}
if (tid == 0u) {{
{writes}}}
",
        THREADS / 2,
        inputs = g.inputs,
        outputs = g.outputs,
        width = g.output[1],
        out_image = g.out_image(),
        out_offset = kernel.operands[1].offset,
        in_image = g.in_image(),
        plane = g.in_pixels(),
        in_offset = kernel.operands[0].offset,
        terms = indented(&terms, 1),
        adds = indented(&adds, 2),
        writes = indented(&writes, 1),
    );
    let mut lowered = Lowered::default();
    let dtype: DType = kernel.output.dtype;
    let result = if parts > 1 {
        Binding { width: 1, ..split_k::binding(&mut lowered, &results, parts) }
    } else {
        output(dtype, ComputeType::F32, 1)
    };
    let memory = format!("var<workgroup> sums: array<f32, {}>;\n\n", THREADS * each);
    lowered.dispatches.push(Dispatch {
        body: memory + &main(THREADS, groups, &text),
        bindings: vec![operand(kernel, 0, "a"), operand(kernel, 1, "b"), result],
        groups,
    });
    if parts > 1 {
        lowered.dispatches.push(split_k::sum(&results, parts, dtype, 0));
    }
    lowered
}
