//! Where a value's elements stand, seen from a kernel's loops: every coordinate is an affine function of the
//! loop indices, and bounds tell where padding begins. Movement ops compose views; nothing is copied.

use crate::op::Op;
use crate::shape::Shape;
use smallvec::{SmallVec, smallvec};

/// offset + Σ coefficient · index, over the loops of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    pub coefficients: SmallVec<[isize; 6]>,
    pub offset: isize,
}

impl Affine {
    pub fn constant(loops: usize, offset: isize) -> Affine {
        Affine { coefficients: smallvec![0; loops], offset }
    }

    /// The index of one loop.
    pub fn index(loops: usize, which: usize) -> Affine {
        let mut form = Affine::constant(loops, 0);
        form.coefficients[which] = 1;
        form
    }

    fn scaled(&self, factor: isize) -> Affine {
        Affine {
            coefficients: self.coefficients.iter().map(|c| c * factor).collect(),
            offset: self.offset * factor,
        }
    }

    fn plus(&self, other: &Affine) -> Affine {
        let coefficients = self.coefficients.iter().zip(&other.coefficients).map(|(a, b)| a + b).collect();
        Affine { coefficients, offset: self.offset + other.offset }
    }

    /// The smallest and the largest sum of the index terms, without the offset.
    pub fn reach(&self, extents: &[usize]) -> (isize, isize) {
        let mut reach = (0, 0);
        for (&c, &e) in self.coefficients.iter().zip(extents) {
            let end = c * (e.max(1) as isize - 1);
            reach = (reach.0 + end.min(0), reach.1 + end.max(0));
        }
        reach
    }
}

/// A coordinate that must lie in 0..bound, or the element is padding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    pub form: Affine,
    pub bound: usize,
}

impl Check {
    /// Whether no index leads out of bounds.
    fn holds(&self, extents: &[usize]) -> bool {
        let (low, high) = self.form.reach(extents);
        self.form.offset + low >= 0 && self.form.offset + high < self.bound as isize
    }
}

/// A tensor of `shape` seen from the loops: one coordinate an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub shape: Shape,
    pub coordinates: SmallVec<[Affine; 4]>,
    pub checks: Vec<Check>,
}

impl View {
    /// A tensor whose axis `k` runs with loop `loops_of[k]`.
    pub fn along(shape: Shape, loops_of: &[usize], loops: usize) -> View {
        let coordinates = loops_of.iter().map(|&l| Affine::index(loops, l)).collect();
        View { shape, coordinates, checks: Vec::new() }
    }

    /// The flat row-major position.
    pub fn flat(&self) -> Affine {
        let strides = self.shape.strides();
        let loops = self.coordinates.first().map_or(0, |c| c.coefficients.len());
        let mut flat = Affine::constant(loops, 0);
        for (c, &s) in self.coordinates.iter().zip(&strides) {
            flat = flat.plus(&c.scaled(s));
        }
        flat
    }

    /// The flat position over `loops` loops, also of a tensor without axes.
    pub fn position(&self, loops: usize) -> Affine {
        if self.coordinates.is_empty() { Affine::constant(loops, 0) } else { self.flat() }
    }

    fn flattened(&self, loops: usize) -> View {
        let shape = Shape::of(&[self.shape.numel()]);
        View { shape, coordinates: smallvec![self.position(loops)], checks: self.checks.clone() }
    }

    /// The same elements in order under another shape, if the coordinates come apart along it.
    pub fn to_shape(&self, shape: Shape, extents: &[usize]) -> Option<View> {
        if self.shape == shape {
            return Some(self.clone());
        }
        let loops = extents.len();
        let mut out: SmallVec<[Affine; 4]> = smallvec![Affine::constant(loops, 0); shape.rank()];
        if shape.numel() > 0 {
            let real = |s: &Shape| (0..s.rank()).filter(|&k| s[k] != 1).collect::<SmallVec<[usize; 8]>>();
            let (old, new) = (real(&self.shape), real(&shape));
            let (mut i, mut j) = (0, 0);
            while i < old.len() && j < new.len() {
                // The smallest runs of axes, old and new, that hold the same number of elements.
                let (first_old, first_new) = (i, j);
                let (mut a, mut b) = (self.shape[old[i]], shape[new[j]]);
                while a != b {
                    if a < b {
                        i += 1;
                        a *= self.shape[old[i]];
                    } else {
                        j += 1;
                        b *= shape[new[j]];
                    }
                }
                (i, j) = (i + 1, j + 1);
                let mut rest = Affine::constant(loops, 0);
                let mut stride = 1;
                for &k in old[first_old..i].iter().rev() {
                    rest = rest.plus(&self.coordinates[k].scaled(stride));
                    stride *= self.shape[k] as isize;
                }
                for (place, &k) in new[first_new..j].iter().enumerate() {
                    let inside: usize = new[first_new + place + 1..j].iter().map(|&k| shape[k]).product();
                    if inside == 1 {
                        out[k] = rest;
                        break;
                    }
                    (out[k], rest) = split(&rest, inside as isize, extents)?;
                }
            }
        }
        Some(View { shape, coordinates: out, checks: self.checks.clone() })
    }

    /// The source of a movement op, seen from the same loops.
    pub fn through(&self, op: &Op, node: Shape, source: Shape, extents: &[usize]) -> Option<View> {
        if let Op::Reshape = op {
            return Some(self.to_shape(source, extents).unwrap_or_else(|| self.flattened(extents.len())));
        }
        let here = self.to_shape(node, extents)?;
        let loops = extents.len();
        let mut checks = here.checks;
        let c = here.coordinates;
        let coordinates: SmallVec<[Affine; 4]> = match op {
            Op::Permute(order) => {
                let mut out: SmallVec<[Affine; 4]> = c.clone();
                for (k, form) in c.into_iter().enumerate() {
                    out[order[k] as usize] = form;
                }
                out
            }
            Op::Expand => {
                let added = node.rank() - source.rank();
                let pick =
                    |k: usize| if source[k] == 1 { Affine::constant(loops, 0) } else { c[k + added].clone() };
                (0..source.rank()).map(pick).collect()
            }
            Op::Pad { pads, .. } => {
                let mut out = c;
                for (k, &(before, after)) in pads.iter().enumerate() {
                    out[k].offset -= before as isize;
                    let check = Check { form: out[k].clone(), bound: source[k] };
                    if (before, after) != (0, 0) && !check.holds(extents) && !checks.contains(&check) {
                        checks.push(check);
                    }
                }
                out
            }
            Op::Slice(parts) => {
                let step = |(form, &(start, step)): (&Affine, &(usize, usize))| {
                    let mut form = form.scaled(step as isize);
                    form.offset += start as isize;
                    form
                };
                c.iter().zip(parts.iter()).map(step).collect()
            }
            Op::Flip(mask) => {
                let turn = |(k, form): (usize, Affine)| {
                    if mask >> k & 1 == 0 {
                        return form;
                    }
                    let mut form = form.scaled(-1);
                    form.offset += source[k] as isize - 1;
                    form
                };
                c.into_iter().enumerate().map(turn).collect()
            }
            Op::Windows { axis, step, dilation } => {
                let axis = *axis as usize;
                let mut out = c;
                let place = out.pop()?.scaled(*dilation as isize);
                out[axis] = out[axis].scaled(*step as isize).plus(&place);
                out
            }
            _ => return None,
        };
        Some(View { shape: source, coordinates, checks })
    }
}

/// form = quotient · stride + remainder with the remainder inside 0..stride everywhere, if that is so.
fn split(form: &Affine, stride: isize, extents: &[usize]) -> Option<(Affine, Affine)> {
    let loops = extents.len();
    let (mut quotient, mut remainder) = (Affine::constant(loops, 0), Affine::constant(loops, 0));
    for (k, &c) in form.coefficients.iter().enumerate() {
        if extents[k] > 1 {
            quotient.coefficients[k] = c / stride;
            remainder.coefficients[k] = c % stride;
        }
    }
    let (low, high) = remainder.reach(extents);
    quotient.offset = (form.offset + low).div_euclid(stride);
    remainder.offset = form.offset - quotient.offset * stride;
    let fits = remainder.offset + low >= 0 && remainder.offset + high < stride;
    fits.then_some((quotient, remainder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(e: &[usize]) -> Shape {
        Shape::of(e)
    }

    #[test]
    fn a_reshape_of_whole_axes_splits_and_merges() {
        let extents = [2, 3, 4];
        let view = View::along(shape(&extents), &[0, 1, 2], 3);
        let merged = view.to_shape(shape(&[6, 4]), &extents).unwrap();
        assert_eq!(merged.coordinates[0].coefficients[..], [3, 1, 0]);
        assert_eq!(
            merged.to_shape(shape(&[2, 3, 2, 2]), &extents),
            None,
            "4 does not come apart into 2·2 loops"
        );
        assert_eq!(merged.to_shape(shape(&extents), &extents).unwrap(), view);
    }

    #[test]
    fn a_transpose_under_a_merge_does_not_come_apart() {
        // (2, 3) transposed, then flattened to 6: one loop of 6 is no affine walk over it.
        let extents = [6];
        let flat = View::along(shape(&[6]), &[0], 1);
        let wide = flat.through(&Op::Reshape, shape(&[6]), shape(&[3, 2]), &extents).unwrap();
        assert_eq!(wide.shape, shape(&[6]), "still flat");
        let order = [1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(wide.through(&Op::Permute(order), shape(&[3, 2]), shape(&[2, 3]), &extents), None);
    }

    #[test]
    fn padding_that_is_cut_off_again_leaves_no_check() {
        let extents = [3];
        let view = View::along(shape(&[3]), &[0], 1);
        let slice = Op::Slice(Box::new([(1, 1)]));
        let padded = view.through(&slice, shape(&[3]), shape(&[5]), &extents).unwrap();
        let pad = Op::Pad { pads: Box::new([(1, 1)]), fill: 0.0.into() };
        let inside = padded.through(&pad, shape(&[5]), shape(&[3]), &extents).unwrap();
        assert_eq!((inside.checks.len(), inside.flat().offset), (0, 0));
    }

    #[test]
    fn padding_leaves_a_check_and_flipping_turns_the_walk() {
        let extents = [5];
        let view = View::along(shape(&[5]), &[0], 1);
        let pad = Op::Pad { pads: Box::new([(1, 1)]), fill: 0.0.into() };
        let inside = view.through(&pad, shape(&[5]), shape(&[3]), &extents).unwrap();
        assert_eq!(inside.checks.len(), 1);
        let turned = inside.through(&Op::Flip(1), shape(&[3]), shape(&[3]), &extents).unwrap();
        assert_eq!((turned.flat().coefficients[0], turned.flat().offset), (-1, 3));
    }
}
