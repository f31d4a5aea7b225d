//! Panels of the operands, and the product of one block of them.

use super::element::Accumulator;
use super::kernel::{Gather, Kernel, Tile};
use std::ops::Range;
use std::ptr::{null, null_mut};

/// Panels of an operand, packed or in place: element (lane, p) of panel q stands at
/// `data[q * panel_stride + lane * lane_stride + p * k_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Panels<T> {
    pub data: *const T,
    pub panel_stride: isize,
    pub lane_stride: isize,
    pub k_stride: isize,
}

// SAFETY: only ever read.
unsafe impl<T: Sync> Sync for Panels<T> {}

impl<T> Panels<T> {
    pub fn packed(data: *const T, width: usize, k: usize) -> Panels<T> {
        Panels { data, panel_stride: (width * k) as isize, lane_stride: 1, k_stride: width as isize }
    }

    pub fn in_place((data, lane_stride, k_stride): (*const T, isize, isize), width: usize) -> Panels<T> {
        Panels { data, panel_stride: lane_stride * width as isize, lane_stride, k_stride }
    }

    /// The address and step by which a line every `each` of `k` steps covers its part of the first
    /// panel, two lines wide. There are `2 * each` parts.
    fn part(self, index: usize, each: usize, width: usize, k: usize) -> (*const T, isize) {
        let (line, lines) = (width / 2, k.div_ceil(each));
        if self.k_stride == width as isize {
            return (self.data.wrapping_add(index * lines * line), line as isize);
        }
        let (half, first) = (index / each, index % each * lines);
        (self.data.wrapping_add(half * line).wrapping_offset(first as isize * self.k_stride), self.k_stride)
    }

    /// The panels from the given panel and k on.
    pub fn from(self, panel: usize, p: usize) -> Panels<T> {
        let shift = panel as isize * self.panel_stride + p as isize * self.k_stride;
        Panels { data: self.data.wrapping_offset(shift), ..self }
    }
}

/// Memory that the next job will read, fetched little by little during this one.
#[derive(Clone, Copy)]
pub(crate) struct Upcoming<T> {
    /// Starts and lengths of stretches.
    pub stretches: [(*const T, usize); 2],
}

impl<T> Upcoming<T> {
    pub const NONE: Upcoming<T> = Upcoming { stretches: [(null(), 0); 2] };

    /// The address and step of the next (at most `lines`) lines to fetch.
    fn take(&mut self, lines: usize) -> Option<(*const T, isize)> {
        let line = 64 / size_of::<T>();
        let stretch = self.stretches.iter_mut().find(|stretch| stretch.1 >= lines * line)?;
        let (start, _) = *stretch;
        *stretch = (start.wrapping_add(lines * line), stretch.1 - lines * line);
        Some((start, line as isize))
    }
}

/// Prepares a panel of the given columns: tells how to gather it, or else packs it.
type Prepare<'s, T> = dyn Fn(Range<usize>, *mut T) -> Option<(*const T, Gather)> + 's;

/// The columns of B for one block of k, as [`multiply`] gets them.
pub(crate) enum Columns<'s, T> {
    /// Ready to be read.
    Ready(Panels<T>),
    /// To be read in place once, and copied to the scratch memory for the rows that follow.
    Copied(Panels<T>, *mut T),
    /// To be gathered once, in the ways that a function gives for lanes, and copied likewise; or to
    /// be packed into the scratch memory, panel by panel, where that function gives none.
    Prepared(&'s Prepare<'s, T>, *mut T),
}

/// `C (+)= A B` for one block of k, tile by tile.
///
/// # Safety
/// The panels hold `rows` and `cols` lanes of depth `k`, and C is writable.
#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn multiply<T: Accumulator>(
    kernel: &Kernel<T>,
    k: usize,
    a: Panels<T>,
    b: &Columns<T>,
    c: *mut T,
    ldc: usize,
    (rows, cols): (usize, usize),
    accumulate: bool,
    upcoming: &mut Upcoming<T>,
) {
    for (panel, j) in (0..cols).step_by(kernel.nr).enumerate() {
        let width = kernel.nr.min(cols - j);
        let mut copy = null_mut();
        let mut gather = None;
        let mut columns = match *b {
            Columns::Ready(b) => b.from(panel, 0),
            Columns::Copied(b, scratch) => {
                if rows > kernel.mr {
                    copy = scratch;
                }
                b.from(panel, 0)
            }
            Columns::Prepared(prepare, scratch) => {
                let packed = Panels::packed(scratch.cast_const(), kernel.nr, k);
                match prepare(j..j + width, scratch) {
                    Some((data, how)) => {
                        copy = scratch;
                        gather = Some(how);
                        Panels { data, ..packed }
                    }
                    None => packed,
                }
            }
        };
        let next = match *b {
            Columns::Ready(b) | Columns::Copied(b, _) if j + kernel.nr < cols => Some(b.from(panel + 1, 0)),
            _ => None,
        };
        // The first tiles fetch the next panel, as slowly as their number allows, the others what is
        // upcoming.
        let spread = if rows.div_ceil(kernel.mr) >= 8 { 4 } else { 1 };
        for (panel, i) in (0..rows).step_by(kernel.mr).enumerate() {
            let a = a.from(panel, 0);
            let ((soon, soon_stride), soon_each) = match next {
                Some(next) if panel < 2 * spread => (next.part(panel, spread, kernel.nr, k), spread),
                _ => (upcoming.take(k).unwrap_or((a.data, 0)), 1),
            };
            // SAFETY: the tile lies inside the block.
            unsafe {
                (kernel.tile)(&Tile {
                    k,
                    a: a.data,
                    a_row: a.lane_stride,
                    a_col: a.k_stride,
                    b: columns.data,
                    b_row: columns.k_stride,
                    c: c.wrapping_add(i * ldc + j),
                    ldc,
                    rows: kernel.mr.min(rows - i),
                    cols: width,
                    accumulate,
                    b_copy: copy,
                    gather: gather.as_ref().map_or(null(), |gather| gather),
                    soon,
                    soon_stride,
                    soon_each,
                });
            }
            if !copy.is_null() {
                columns = Panels::packed(copy.cast_const(), kernel.nr, k);
                copy = null_mut();
                gather = None;
            }
        }
    }
}
