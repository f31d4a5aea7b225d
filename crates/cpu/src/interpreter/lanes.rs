//! Lanes of a block as runs through memory: a view is walked one innermost run at a time.

use crate::vector::copy_strided;
use smallvec::SmallVec;
use volta_ir::plan::view::{Affine, Check};

/// Consecutive iterations of nested loops, with further loops held fixed.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub extents: &'a [usize],
    /// The first iteration, counted through all of `extents`.
    pub start: usize,
    /// Indices of the loops behind `extents`.
    pub fixed: &'a [usize],
    pub count: usize,
}

/// A stretch of lanes along the innermost loop.
pub(super) struct Run<'a> {
    /// The first lane within the block.
    pub lane: usize,
    pub count: usize,
    indices: &'a [usize],
    fixed: &'a [usize],
}

impl Run<'_> {
    /// The value of an affine form at the run's first lane, and its step.
    pub fn at(&self, form: &Affine) -> (isize, isize) {
        let c = &form.coefficients;
        let mut start = form.offset;
        for (&i, &c) in self.indices.iter().chain(self.fixed).zip(c) {
            start += i as isize * c;
        }
        (start, self.indices.len().checked_sub(1).map_or(0, |last| c[last]))
    }

    /// The lanes of the run in which all checks hold.
    pub fn valid(&self, checks: &[Check]) -> std::ops::Range<usize> {
        let (mut from, mut to) = (0, self.count as isize);
        for check in checks {
            let (start, step) = self.at(&check.form);
            let bound = check.bound as isize;
            match step {
                0 if (0..bound).contains(&start) => {}
                0 => return 0..0,
                s if s > 0 => {
                    from = from.max((-start).div_euclid(s) + isize::from((-start).rem_euclid(s) != 0));
                    to = to
                        .min((bound - start).div_euclid(s) + isize::from((bound - start).rem_euclid(s) != 0));
                }
                s => {
                    let s = -s;
                    // start - s·t < bound and start - s·t >= 0
                    from = from.max((start - bound).div_euclid(s) + 1);
                    to = to.min(start.div_euclid(s) + 1);
                }
            }
        }
        let from = from.clamp(0, self.count as isize);
        from as usize..to.clamp(from, self.count as isize) as usize
    }
}

impl Lanes<'_> {
    /// Calls `f` for every run, in order.
    pub fn runs(&self, mut f: impl FnMut(Run)) {
        let Some((&inner, outer)) = self.extents.split_last() else {
            return f(Run { lane: 0, count: self.count, indices: &[], fixed: self.fixed });
        };
        let mut indices: SmallVec<[usize; 8]> = SmallVec::from_elem(0, self.extents.len());
        let mut rest = self.start;
        for (i, &e) in indices.iter_mut().zip(self.extents).rev() {
            *i = rest % e;
            rest /= e;
        }
        let mut lane = 0;
        let last = outer.len();
        while lane < self.count {
            let count = (inner - indices[last]).min(self.count - lane);
            f(Run { lane, count, indices: &indices, fixed: self.fixed });
            lane += count;
            indices[last] = 0;
            for (i, &e) in indices[..last].iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < e {
                    break;
                }
                *i = 0;
            }
        }
    }

    /// Where the lanes start in memory, if they lie side by side there: only a block within one run does.
    pub fn side_by_side(&self, form: &Affine) -> Option<isize> {
        let c = &form.coefficients;
        let mut position = form.offset;
        for (&i, &c) in self.fixed.iter().zip(&c[self.extents.len()..]) {
            position += i as isize * c;
        }
        let mut rest = self.start;
        for (k, (&e, &c)) in self.extents.iter().zip(c.iter()).enumerate().rev() {
            let index = if k == 0 { rest } else { rest % e };
            let innermost = k + 1 == self.extents.len();
            if innermost && self.count > 1 && (c != 1 || index + self.count > e) {
                return None;
            }
            position += index as isize * c;
            rest /= e;
        }
        Some(position)
    }
}

/// Copies the lanes of `form` in `source` to `out`, `fill` where checks fail.
///
/// # Safety
/// Every position that passes the checks must lie inside `source`'s memory.
pub(super) unsafe fn read<T: Copy>(
    source: *const T,
    form: &Affine,
    checks: &[Check],
    fill: T,
    lanes: &Lanes,
    out: &mut [T],
) {
    lanes.runs(|run| {
        let (start, step) = run.at(form);
        let out = &mut out[run.lane..run.lane + run.count];
        let valid = if checks.is_empty() { 0..run.count } else { run.valid(checks) };
        out[..valid.start].fill(fill);
        out[valid.end..].fill(fill);
        if !valid.is_empty() {
            // SAFETY: the caller promises that valid positions lie inside; `start` moves to the first valid one.
            unsafe {
                copy_strided(source.offset(start + valid.start as isize * step), step, &mut out[valid])
            };
        }
    });
}

/// Copies `values` to the lanes of `form` in `target`.
///
/// # Safety
/// Every position must lie inside `target`'s memory, which nobody else uses meanwhile.
pub(super) unsafe fn write<T: Copy>(target: *mut T, form: &Affine, lanes: &Lanes, values: &[T]) {
    lanes.runs(|run| {
        let (start, step) = run.at(form);
        let values = &values[run.lane..run.lane + run.count];
        if step == 1 || run.count == 1 {
            // SAFETY: promised by the caller. A value that is stored where it was read overlaps itself.
            unsafe { std::ptr::copy(values.as_ptr(), target.offset(start), values.len()) };
        } else {
            for (k, &value) in values.iter().enumerate() {
                // SAFETY: promised by the caller.
                unsafe { *target.offset(start + k as isize * step) = value };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn checks_bound_runs_on_both_sides_and_in_both_directions() {
        let extents = [10];
        let lanes = Lanes { extents: &extents, start: 0, fixed: &[], count: 10 };
        for (step, offset, bound) in
            [(1, -2, 5), (2, -3, 6), (-1, 7, 4), (-2, 9, 20), (3, 1, 100), (0, 3, 4), (0, 4, 4)]
        {
            let form = Affine { coefficients: smallvec![step], offset };
            let checks = [Check { form: form.clone(), bound: bound as usize }];
            lanes.runs(|run| {
                let valid = run.valid(&checks);
                for t in 0..10 {
                    let inside = (0..bound).contains(&(offset + step * t as isize));
                    assert_eq!(
                        valid.contains(&t),
                        inside,
                        "step {step} offset {offset} bound {bound} lane {t}"
                    );
                }
            });
        }
    }

    #[test]
    fn runs_continue_across_the_ends_of_inner_loops() {
        let extents = [3, 4];
        let lanes = Lanes { extents: &extents, start: 2, fixed: &[], count: 7 };
        let form = Affine { coefficients: smallvec![10, 1], offset: 0 };
        let source: Vec<i32> = (0..30).collect();
        let mut out = [0; 7];
        // SAFETY: the largest position is 23.
        unsafe { read(source.as_ptr(), &form, &[], 0, &lanes, &mut out) };
        assert_eq!(out, [2, 3, 10, 11, 12, 13, 20]);
    }
}
