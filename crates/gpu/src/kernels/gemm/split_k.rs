//! Sums cut into parts: each part's results are memory of the kernel's own, and a second dispatch adds them,
//! always in the same order.

use super::product::{Results, output};
use super::wgsl::{indented, main, sum as terms};
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use std::fmt::Write;
use volta_ir::dtype::DType;

const THREADS: usize = 256;

/// Numbers of one part: rows are padded to whole fours.
pub(super) fn numbers(results: &Results) -> usize {
    results.items * results.m * results.n.next_multiple_of(4)
}

/// Sets memory for the partial sums aside.
pub(super) fn binding(lowered: &mut Lowered, results: &Results, parts: usize) -> Binding {
    lowered.scratch.push((numbers(results) * parts * 4) as u64);
    partial(lowered.scratch.len() - 1, true)
}

fn partial(scratch: usize, writes: bool) -> Binding {
    Binding {
        name: "partial",
        memory: Memory::Scratch(scratch),
        dtype: DType::F32,
        lane: ComputeType::F32,
        width: 4,
        reads: !writes,
        writes,
    }
}

/// Adds the parts: four columns a thread.
pub(super) fn sum(results: &Results, parts: usize, dtype: DType, scratch: usize) -> Dispatch {
    let (m, n) = (results.m, results.n);
    let columns = n.div_ceil(4);
    let quads = results.items * m * columns;
    let groups = quads.div_ceil(THREADS) as u64;
    let (target, numbers) = (&results.target, numbers(results));
    let mut text = format!(
        "let quad = group * {THREADS}u + tid;
if (quad >= {quads}u) {{ return; }}
let n = quad % {columns}u * 4u;
let m = quad / {columns}u % {m}u;
let item = quad / {}u;
var total: vec4<f32>;
var at = quad * 4u;
var part = 0u;
for (; part + 4u <= {parts}u; part += 4u) {{
    let p0 = load4_partial(at);
    let p1 = load4_partial(at + {}u);
    let p2 = load4_partial(at + {}u);
    let p3 = load4_partial(at + {}u);
    total = (((total + p0) + p1) + p2) + p3;
    at += {}u;
}}
for (; part < {parts}u; part++) {{
    total += load4_partial(at);
    at += {numbers}u;
}}
",
        columns * m,
        numbers,
        2 * numbers,
        3 * numbers,
        4 * numbers
    );
    let row = terms(&[target.item("item"), target.row("m")]);
    let _ = writeln!(text, "let row = {row};");
    let quads = target.quads() && n % 4 == 0;
    if quads {
        let (column, _) = target.column("column", "n");
        let _ = writeln!(text, "{column}finish4(row + column, total);");
    } else {
        let (column, _) = target.column("column", "(n + s)");
        let body = format!("{column}finish(row + column, total[s]);\n");
        let _ = write!(
            text,
            "for (var s = 0u; s < 4u; s++) {{\n    if (n + s < {n}u) {{\n{}    }}\n}}\n",
            indented(&body, 2)
        );
    }
    let bindings = vec![partial(scratch, false), output(dtype, ComputeType::F32, if quads { 4 } else { 1 })];
    Dispatch { body: main(THREADS, groups, &text), bindings, groups }
}
