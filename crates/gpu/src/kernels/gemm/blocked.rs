//! A block of results for every thread, which waits for no other: for adapters that run the threads of a workgroup one after the
//! other, where a barrier takes longer than reading an operand again.

use super::product::{GemmOperand, OperandLayout, Product, output};
use super::wgsl::{main, sum, times, unsigned};
use crate::dispatch::{ComputeType, Dispatch};
use std::fmt::Write;
use volta_ir::dtype::DType;

/// So few that there are workgroups for all of a processor's cores.
const THREADS: usize = 16;
/// Rows and columns of a block.
const SIDE: usize = 4;

/// A product of strided operands of floats, whose results lie one after the other.
pub(super) fn lower(product: &Product, dtype: DType) -> Dispatch {
    let (m, n, k) = (product.m, product.n, product.steps.depth());
    let (tall, broad) = (m.min(SIDE), n.min(SIDE));
    let (down, across) = (m.div_ceil(tall), n.div_ceil(broad));
    let blocks = product.items * down * across;
    let groups = blocks.div_ceil(THREADS) as u64;
    let mut text = format!(
        "let block = group * {THREADS}u + tid;
if (block >= {blocks}u) {{ return; }}
let column = block % {across}u * {broad}u;
let row = block / {across}u % {down}u * {tall}u;
let item = block / {}u;
",
        down * across
    );
    let sides = [("a", &product.a, "row", tall, m), ("b", &product.b, "column", broad, n)];
    for (name, source, first, count, all) in sides {
        first_elements(&mut text, source, name, first, count, all);
    }
    let results = || (0..tall).flat_map(|i| (0..broad).map(move |j| (i, j)));
    for (i, j) in results() {
        _ = writeln!(text, "var total_{i}_{j} = 0.0;");
    }
    _ = writeln!(text, "for (var k = 0u; k < {k}u; k++) {{");
    for (name, source, _, count, _) in sides {
        let step = strided(source).k.position("k");
        for i in 0..count {
            _ = writeln!(
                text,
                "let {name}{i} = load_{name}({});",
                sum(&[format!("{name}_{i}"), step.clone()])
            );
        }
    }
    // Without `fma`, which such adapters compute by a call for every number.
    for (i, j) in results() {
        _ = writeln!(text, "total_{i}_{j} += a{i} * b{j};");
    }
    text += "}\n";
    for (i, j) in results() {
        let inside = inside(("row", i, m, tall), ("column", j, n, broad));
        let place = format!("(item * {m}u + row + {i}u) * {n}u + column + {j}u");
        _ = writeln!(text, "{inside}{{ finish({place}, total_{i}_{j}); }}");
    }
    let lane = ComputeType::F32;
    let bindings =
        vec![product.a.binding("a", lane, 1), product.b.binding("b", lane, 1), output(dtype, lane, 1)];
    Dispatch { body: main(THREADS, groups, &text), bindings, groups }
}

fn strided(source: &GemmOperand) -> &super::product::Strided {
    let OperandLayout::Strided(strided) = &source.layout else {
        unreachable!("windows have kernels of their own")
    };
    strided
}

/// Where the lanes of a block begin; one beyond the last is the last.
fn first_elements(
    text: &mut String,
    source: &GemmOperand,
    name: &str,
    first: &str,
    count: usize,
    all: usize,
) {
    let s = strided(source);
    for i in 0..count {
        let lane = format!("{first} + {i}u");
        let lane = if all.is_multiple_of(count) {
            format!("({lane})")
        } else {
            format!("min({lane}, {}u)", all - 1)
        };
        let at = sum(&[unsigned(s.offset), s.items.position("item"), times(&lane, s.lane)]);
        _ = writeln!(text, "let {name}_{i} = {at};");
    }
}

/// The condition under which a result is one: name, number, extent and block of its row and its column.
fn inside(row: (&str, usize, usize, usize), column: (&str, usize, usize, usize)) -> String {
    let within = |(name, i, all, side): (&str, usize, usize, usize)| {
        (i > 0 && !all.is_multiple_of(side)).then(|| format!("{name} + {i}u < {all}u"))
    };
    let both: Vec<String> = [row, column].into_iter().filter_map(within).collect();
    if both.is_empty() { String::new() } else { format!("if ({}) ", both.join(" && ")) }
}
