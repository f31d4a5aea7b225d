//! Products in which one side has few lanes, such as a matrix with a vector: the other side is read once, as
//! fast as memory allows, and there is nothing to gain from workgroup memory but the sum over threads.

use super::product::{GemmOperand, OperandLayout, Product, Strided, output};
use super::split_k;
use super::thread_mapping::Unit;
use super::wgsl::{indented, main, sum, times, unsigned};
use super::write::Writer;
use crate::caps::COMPUTE_UNITS;
use crate::dispatch::{ComputeType, Dispatch, Lowered};
use std::fmt::Write;
use volta_ir::dtype::DType;

const THREADS: usize = 256;

/// The most lanes of the small side.
pub(super) const LANES: usize = 4;

/// Reads in flight a thread.
const READS_IN_FLIGHT: usize = 4;

fn strided(source: &GemmOperand) -> &Strided {
    match &source.layout {
        OperandLayout::Strided(strided) => strided,
        OperandLayout::Window(_) => unreachable!("windows have kernels of their own"),
    }
}

/// How threads share the long side.
struct Shape {
    unit: Unit,
    /// Units of lanes, and parts of k, that a workgroup takes at a time.
    lanes: usize,
    depth: usize,
    k_first: bool,
}

impl Shape {
    fn new(long: &Strided, lanes: usize) -> Shape {
        if long.quads_along_k(lanes) {
            Shape { unit: Unit::QuadK, lanes: 8, depth: 32, k_first: true }
        } else if long.quads_along_lanes(lanes) {
            Shape { unit: Unit::QuadLane, lanes: 16, depth: 16, k_first: false }
        } else if long.k_is_inner() {
            Shape { unit: Unit::One, lanes: 8, depth: 32, k_first: true }
        } else {
            Shape { unit: Unit::One, lanes: 32, depth: 8, k_first: false }
        }
    }

    fn tile(&self) -> usize {
        self.lanes * self.unit.lanes()
    }
}

/// The dispatches of a product whose rows or columns are at most [`LANES`].
pub(super) fn lower(product: &Product, dtype: DType) -> Lowered {
    let by_rows = product.m > product.n;
    let (long, short) = if by_rows { (&product.a, &product.b) } else { (&product.b, &product.a) };
    let (lanes, few) = if by_rows { (product.m, product.n) } else { (product.n, product.m) };
    let (matrix, vector, k) = (strided(long), strided(short), product.steps.depth());
    let shape = Shape::new(matrix, lanes);
    let tiles = product.items * lanes.div_ceil(shape.tile());
    // A part should be worth its share of a second dispatch.
    let most = k / (shape.depth * shape.unit.depth() * READS_IN_FLIGHT * 4);
    let parts = (COMPUTE_UNITS * 4 / tiles).min(most).max(1);
    let mut lowered = Lowered::default();
    let (writer, result) = if parts > 1 {
        let mut binding = split_k::binding(&mut lowered, &product.results(), parts);
        binding.width = 1;
        (Writer::partial(product), binding)
    } else {
        (Writer::finish(product), output(dtype, ComputeType::F32, 1))
    };
    let quad_vector = shape.unit == Unit::QuadK && vector.quads_along_k(few);
    let groups = (tiles * parts) as u64;
    let text = body(product, &shape, (matrix, vector), (lanes, few, by_rows), parts, quad_vector, &writer);
    let sums = THREADS * few;
    let ty = if shape.unit == Unit::QuadLane { "vec4<f32>" } else { "f32" };
    let body = format!("var<workgroup> sums: array<{ty}, {sums}>;\n\n{}", main(THREADS, groups, &text));
    let width = |wide: bool| if wide { 4 } else { 1 };
    let bindings = vec![
        long.binding("a", ComputeType::F32, width(shape.unit != Unit::One)),
        short.binding("b", ComputeType::F32, width(quad_vector)),
        result,
    ];
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    if parts > 1 {
        lowered.dispatches.push(split_k::sum(&product.results(), parts, dtype, 0));
    }
    lowered
}

fn body(
    product: &Product,
    shape: &Shape,
    (matrix, vector): (&Strided, &Strided),
    (lanes, few, by_rows): (usize, usize, bool),
    parts: usize,
    quad_vector: bool,
    writer: &Writer,
) -> String {
    let (unit, depth) = (shape.unit, shape.depth);
    let per_lane = unit.lanes();
    let tiles = lanes.div_ceil(shape.tile());
    let k = product.steps.depth();
    let stride = depth * unit.depth();
    let per_part = k.div_ceil(parts).next_multiple_of(stride);
    let (lane_unit, slice) = if shape.k_first {
        (format!("tid / {depth}u"), format!("tid % {depth}u"))
    } else {
        (format!("tid % {}u", shape.lanes), format!("tid / {}u", shape.lanes))
    };
    let items = product.items;
    let mut text = format!(
        "let part = group / {}u;
let item = group / {tiles}u % {items}u;
let lane_unit = {lane_unit};
let slice = {slice};
let lane = group % {tiles}u * {}u + lane_unit * {per_lane}u;
let lane_read = min(lane, {}u);
let last = min((part + 1u) * {per_part}u, {k}u);
var k = part * {per_part}u + slice * {}u;
",
        tiles * items,
        shape.tile(),
        lanes - per_lane,
        unit.depth()
    );
    let first =
        |s: &Strided, lane: &str| sum(&[unsigned(s.offset), s.items.position("item"), times(lane, s.lane)]);
    let _ = writeln!(text, "let a_first = {};", first(matrix, "lane_read"));
    let ty = if unit == Unit::One { "f32" } else { "vec4<f32>" };
    for r in 0..few {
        let _ = writeln!(text, "let b_first{r} = {};", first(vector, &format!("{r}u")));
        let _ = writeln!(text, "var total{r}: {ty};");
    }
    // Reads first, then arithmetic, so that several reads are under way.
    let block = |count: usize| {
        let (mut reads, mut terms) = (String::new(), String::new());
        for u in 0..count {
            let _ = writeln!(reads, "let k{u} = k + {}u;", u * stride);
            let at = sum(&["a_first".into(), matrix.k.position(&format!("k{u}"))]);
            let load = if unit == Unit::One { "load_a" } else { "load4_a" };
            let _ = writeln!(reads, "let a{u} = {load}({at});");
            for r in 0..few {
                let at = |k: &str| sum(&[format!("b_first{r}"), vector.k.position(k)]);
                let value = match unit {
                    Unit::One => format!("load_b({})", at(&format!("k{u}"))),
                    Unit::QuadLane => format!("vec4<f32>(load_b({}))", at(&format!("k{u}"))),
                    Unit::QuadK if quad_vector => format!("load4_b({})", at(&format!("k{u}"))),
                    Unit::QuadK => {
                        let each = (0..4).map(|s| format!("load_b({})", at(&format!("(k{u} + {s}u)"))));
                        format!("vec4<f32>({})", each.collect::<Vec<_>>().join(", "))
                    }
                    Unit::EightK | Unit::EightLane => unreachable!("only halves come in eights"),
                };
                let _ = writeln!(reads, "let b{u}_{r} = {value};");
                let _ = writeln!(terms, "total{r} = fma(a{u}, b{u}_{r}, total{r});");
            }
        }
        reads + &terms
    };
    let _ = write!(
        text,
        "for (; k + {}u < last; k += {}u) {{\n{}}}\nfor (; k < last; k += {stride}u) {{\n{}}}\n",
        (READS_IN_FLIGHT - 1) * stride,
        READS_IN_FLIGHT * stride,
        indented(&block(READS_IN_FLIGHT), 1),
        indented(&block(1), 1)
    );
    let value = |r: usize| match unit {
        Unit::QuadK => format!("(total{r}.x + total{r}.y) + (total{r}.z + total{r}.w)"),
        _ => format!("total{r}"),
    };
    let _ = writeln!(text, "let own = lane_unit * {depth}u + slice;");
    for r in 0..few {
        let _ = writeln!(text, "sums[own + {}u] = {};", r * THREADS, value(r));
    }
    let mut half = depth / 2;
    while half > 0 {
        let adds: String = (0..few)
            .map(|r| {
                let at = r * THREADS;
                format!("sums[own + {at}u] += sums[own + {}u];\n", at + half)
            })
            .collect();
        let _ = write!(text, "workgroupBarrier();\nif (slice < {half}u) {{\n{}}}\n", indented(&adds, 1));
        half /= 2;
    }
    text += "if (slice != 0u) { return; }\n";
    text += &writer.begin(product);
    for r in 0..few {
        for s in 0..per_lane {
            let part = if per_lane == 1 { "" } else { [".x", ".y", ".z", ".w"][s] };
            let (m, n) =
                if by_rows { ("place", format!("{r}u")) } else { (&*format!("{r}u"), "place".into()) };
            let call = writer.one(m, &n, &format!("sums[own + {}u]{part}", r * THREADS));
            let _ = write!(
                text,
                "{{\n    let place = lane + {s}u;\n    if (place < {lanes}u) {{\n{}    }}\n}}\n",
                indented(&call, 2)
            );
        }
    }
    text
}
