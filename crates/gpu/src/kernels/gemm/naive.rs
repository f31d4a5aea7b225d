//! One thread an element: integers, and products so small that tiles would be mostly empty.

use super::product::{GemmOperand, OperandLayout, Product, output};
use super::wgsl::{main, scalar, sum, times, unsigned};
use crate::dispatch::{ComputeType, Dispatch};
use volta_ir::dtype::DType;

const THREADS: usize = 256;

/// The lane that sums of a type run in.
pub(super) fn lane(dtype: DType) -> ComputeType {
    match dtype {
        DType::I32 => ComputeType::I32,
        DType::I64 => ComputeType::I64,
        DType::U32 | DType::U8 | DType::Bool => ComputeType::U32,
        _ => ComputeType::F32,
    }
}

/// A product of strided operands whose results lie one after the other.
pub(super) fn lower(product: &Product, dtype: DType) -> Dispatch {
    let (m, n, k) = (product.m, product.n, product.steps.depth());
    let lane = lane(dtype);
    let total = product.items * m * n;
    let groups = total.div_ceil(THREADS) as u64;
    let start = |source: &GemmOperand, name: &str, index: &str| {
        let OperandLayout::Strided(s) = &source.layout else {
            unreachable!("windows have kernels of their own")
        };
        let first = sum(&[unsigned(s.offset), s.items.position("item"), times(index, s.lane)]);
        let at = sum(&[format!("{name}_first"), s.k.position("k")]);
        (format!("let {name}_first = {first};\n"), format!("load_{name}({at})"))
    };
    let (a_start, a) = start(&product.a, "a", "m");
    let (b_start, b) = start(&product.b, "b", "n");
    let scalar = scalar(lane);
    let term = if lane == ComputeType::F32 {
        format!("total = fma({a}, {b}, total);")
    } else {
        format!("total += {a} * {b};")
    };
    let result = if dtype == DType::U8 { "total & 255u" } else { "total" };
    let text = format!(
        "let place = group * {THREADS}u + tid;
if (place >= {total}u) {{ return; }}
let n = place % {n}u;
let m = place / {n}u % {m}u;
let item = place / {}u;
{a_start}{b_start}var total: {scalar};
for (var k = 0u; k < {k}u; k++) {{
    {term}
}}
finish(place, {result});
",
        m * n
    );
    let bindings =
        vec![product.a.binding("a", lane, 1), product.b.binding("b", lane, 1), output(dtype, lane, 1)];
    Dispatch { body: main(THREADS, groups, &text), bindings, groups }
}

/// Results of sums without terms.
pub(super) fn zeros(count: usize, dtype: DType) -> Dispatch {
    let lane = lane(dtype);
    let groups = count.div_ceil(THREADS) as u64;
    let text = format!(
        "let place = group * {THREADS}u + tid;
if (place >= {count}u) {{ return; }}
finish(place, {}());
",
        scalar(lane)
    );
    Dispatch { body: main(THREADS, groups, &text), bindings: vec![output(dtype, lane, 1)], groups }
}
