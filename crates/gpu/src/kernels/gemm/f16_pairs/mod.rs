//! f32 operands as f16 pairs. Every lane (row of A, column of B) is scaled by the power of two that
//! brings its largest magnitude to 2¹⁴ … 2¹⁵; an element is then a half, and what that one leaves of it as
//! another half: 22 bits. One dispatch finds the largest magnitudes of both operands, a second one splits.
//! Short lanes need the second one only, and so do those whose largest were noted by whoever wrote them; what
//! the product reads only once is split by the product.

mod splitter;

use super::product::{GemmOperand, Product};
use super::scales::Scales;
use super::wgsl::main;
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use splitter::{OperandSplitter, THREADS, Way};
use std::fmt::Write;
use volta_ir::dtype::DType;

/// Numbers of both operands as f16 pairs, where these are stored.
pub(super) fn numbers(product: &Product, depth: usize, later: [bool; 2]) -> Option<[usize; 2]> {
    let [a, b] = splitters(product, depth, later)?;
    Some([a.numbers(), b.numbers()])
}

/// Of which operands the largest magnitudes of lanes are asked for.
pub(super) fn needs_absmax(product: &Product, depth: usize, later: [bool; 2]) -> [bool; 2] {
    splitters(product, depth, later).map_or([false; 2], |both| both.map(|s| s.variant != Way::Once))
}

fn splitters(product: &Product, depth: usize, later: [bool; 2]) -> Option<[OperandSplitter<'_>; 2]> {
    let (items, k) = (product.items, product.steps.depth());
    Some([
        OperandSplitter::new(["a", "packed_a", "noted_a"], &product.a, items, product.m, k, depth, later[0])?,
        OperandSplitter::new(["b", "packed_b", "noted_b"], &product.b, items, product.n, k, depth, later[1])?,
    ])
}

/// A function with the workgroups that call it.
struct Job {
    text: String,
    name: String,
    groups: u64,
}

/// The body of a dispatch that does all of these.
fn share_out(mut jobs: Vec<Job>) -> (String, u64) {
    // What few workgroups do takes them long: so they begin.
    jobs.sort_by_key(|job| job.groups);
    let (mut text, mut calls, mut first) = (String::new(), String::new(), 0);
    for job in &jobs {
        let (name, last) = (&job.name, first + job.groups);
        text += &job.text;
        let _ =
            writeln!(calls, "if (group < {last}u) {{\n    {name}(group - {first}u, tid);\n    return;\n}}");
        first = last;
    }
    (text + &main(THREADS, first, &calls), first)
}

/// Adds the dispatches that split both operands, `depth` elements of a lane at a time, and gives these as
/// operands of twice as many terms, and the scales. Those that are split `later` stay what they are.
pub(super) fn split(
    product: &Product,
    depth: usize,
    later: [bool; 2],
    lowered: &mut Lowered,
) -> ([GemmOperand; 2], Scales) {
    let both = splitters(product, depth, later).expect("the operands are strided");
    let [a, b] = &both;
    let first = lowered.scratch.len();
    let large = both.each_ref().map(|s| if s.looks() { s.items * s.row() * s.iterations().1 } else { 0 });
    let small = both.each_ref().map(|s| s.items * s.row());
    let bytes = [2 * a.numbers(), 2 * b.numbers(), 4 * (large[0] + large[1]), 4 * (small[0] + small[1])];
    lowered.scratch.extend(bytes.map(|bytes| bytes as u64));
    let scratch = |name, number: usize, dtype, lane, writes: bool| Binding {
        name,
        memory: Memory::Scratch(first + number),
        dtype,
        lane,
        width: 4,
        reads: !writes,
        writes,
    };
    let largest = |writes| scratch("largest", 2, DType::I32, ComputeType::I32, writes);
    let scales = |writes| scratch("scales", 3, DType::I32, ComputeType::I32, writes);
    let starts = [(0, 0), (large[0], small[0])];
    let job = |s: &OperandSplitter, verb: &str, text: String, groups: usize| {
        let (name, groups) = (format!("{verb}_{}", s.name), (s.items * groups) as u64);
        Job { text, name, groups }
    };
    let (mut look, mut cut, mut split_bindings) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (s, (large, small))) in both.iter().zip(starts).enumerate() {
        if s.looks() {
            look.push((job(s, "largest", s.largest(large), s.lane_tiles() * s.iterations().1), s.binding()));
        }
        split_bindings.extend(s.known());
        let (text, groups) = match s.variant {
            Way::Twice => (s.split(large, small), s.lane_tiles() * s.k_tiles()),
            Way::Once => (s.split_whole(small), s.whole_groups()),
            Way::Later => (s.scale(large, small), s.scale_groups()),
        };
        cut.push(job(s, "split", text, groups));
        if s.variant != Way::Later {
            split_bindings
                .extend([s.binding(), scratch(s.packed, number, DType::F16, ComputeType::F16, true)]);
        }
    }
    if !look.is_empty() {
        let (jobs, mut bindings): (Vec<Job>, Vec<Binding>) = look.into_iter().unzip();
        bindings.push(largest(true));
        split_bindings.push(largest(false));
        let (text, groups) = share_out(jobs);
        let found = format!("var<workgroup> found: array<vec4<i32>, {THREADS}>;\n\n");
        lowered.dispatches.push(Dispatch { body: found + &text, bindings, groups });
    }
    split_bindings.push(scales(true));
    let (body, groups) = share_out(cut);
    lowered.dispatches.push(Dispatch { body, bindings: split_bindings, groups });
    let made = [a.made(first, product.items), b.made(first + 1, product.items)];
    let scales = Scales {
        binding: scales(false),
        rows: a.item_scales(0),
        columns: b.item_scales(small[0]),
        last_column: b.row() - 4,
    };
    (made, scales)
}
