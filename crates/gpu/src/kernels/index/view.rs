//! Positions in strided views as WGSL expressions of literals, so that divisions are by constants.

use std::ops::Range;
use volta_ir::plan::kernel::Operand;

/// A view as lines along an axis: (before, axis, behind).
pub(super) struct Lines<'a> {
    operand: &'a Operand,
    axis: usize,
    pub before: usize,
    pub count: usize,
    pub behind: usize,
}

impl<'a> Lines<'a> {
    pub fn of(operand: &'a Operand, axis: usize) -> Lines<'a> {
        let s = &operand.shape;
        let (before, behind) = (s[..axis].iter().product(), s[axis + 1..].iter().product());
        Lines { operand, axis, before, count: s[axis], behind }
    }

    /// Lines in all.
    pub fn number(&self) -> usize {
        self.before * self.behind
    }

    /// The position of a line's first element, from the names of two variables.
    pub fn first(&self, before: &str, behind: &str) -> String {
        let offset = (self.operand.offset != 0).then(|| literal(self.operand.offset));
        let terms = offset.into_iter().chain(terms(self.operand, self.axes_before(), before));
        sum(terms.chain(terms_behind(self, behind)))
    }

    /// How far a line's elements stand apart, as a literal that wraps.
    pub fn step(&self) -> String {
        literal(self.operand.strides[self.axis])
    }

    /// Whether every line of a slab is the same line.
    pub fn same_behind(&self) -> bool {
        self.constant(self.axes_behind())
    }

    /// Whether every slab is the same slab.
    pub fn same_before(&self) -> bool {
        self.constant(self.axes_before())
    }

    /// Whether four lines from a multiple of 4 on, behind the axis, are four neighbours from a multiple of 4
    /// on.
    pub fn in_fours(&self) -> bool {
        let (shape, strides) = (&self.operand.shape, &self.operand.strides);
        let mut real = (self.axis + 1..shape.rank()).filter(|&k| shape[k] != 1).rev();
        let Some(last) = real.next() else { return false };
        let others = (0..shape.rank()).filter(|&k| k != last && shape[k] != 1);
        strides[last] == 1
            && shape[last] % 4 == 0
            && self.operand.offset % 4 == 0
            && others.into_iter().all(|k| strides[k] % 4 == 0)
    }

    fn axes_before(&self) -> Range<usize> {
        0..self.axis
    }

    fn axes_behind(&self) -> Range<usize> {
        self.axis + 1..self.operand.shape.rank()
    }

    fn constant(&self, mut axes: Range<usize>) -> bool {
        axes.all(|k| self.operand.shape[k] == 1 || self.operand.strides[k] == 0)
    }
}

fn terms_behind(lines: &Lines, flat: &str) -> Vec<String> {
    terms(lines.operand, lines.axes_behind(), flat)
}

/// What every axis adds to the position of the element at row-major place `flat` of these axes. Axes that one
/// stride walks through are one.
fn terms(operand: &Operand, axes: Range<usize>, flat: &str) -> Vec<String> {
    let mut merged: Vec<(usize, isize)> = Vec::new();
    for k in axes.rev().filter(|&k| operand.shape[k] != 1) {
        let (extent, stride) = (operand.shape[k], operand.strides[k]);
        match merged.last_mut() {
            Some((inner, step)) if stride == *step * *inner as isize => *inner *= extent,
            _ => merged.push((extent, stride)),
        }
    }
    let (mut terms, mut divisor) = (Vec::new(), 1);
    for (i, &(extent, stride)) in merged.iter().enumerate() {
        let mut term = flat.to_string();
        if divisor != 1 {
            term = format!("{term} / {divisor}u");
        }
        if i + 1 != merged.len() {
            term = format!("{term} % {extent}u");
        }
        divisor *= extent;
        match stride {
            0 => {}
            1 => terms.push(term),
            _ => terms.push(format!("({term}) * {}", literal(stride))),
        }
    }
    terms
}

fn sum(terms: impl Iterator<Item = String>) -> String {
    let terms: Vec<String> = terms.collect();
    if terms.is_empty() { "0u".to_string() } else { terms.join(" + ") }
}

/// A signed number as the u32 that adds and multiplies like it.
pub(super) fn literal(x: isize) -> String {
    format!("{}u", x as u32)
}
