//! Copies of operands in the layouts the matrix product wants.

use super::float::Float;
use super::lanes::{LaneWork, Lanes};

/// A strided matrix of the caller.
#[derive(Clone, Copy)]
pub(super) struct Grid<T> {
    pub data: *const T,
    pub row: isize,
    pub col: isize,
}

impl<T> Grid<T> {
    /// The matrix without its first `rows` rows and `cols` columns.
    pub(super) fn from(self, rows: usize, cols: usize) -> Self {
        let by = (rows as isize).wrapping_mul(self.row).wrapping_add((cols as isize).wrapping_mul(self.col));
        Self { data: self.data.wrapping_offset(by), ..self }
    }
}

/// A matrix with adjacent columns, padded to a whole number of vectors.
#[derive(Clone, Copy)]
pub(super) struct Packed<T> {
    pub data: *const T,
    pub row: usize,
}

impl<T> Packed<T> {
    /// The matrix without its first `rows` rows.
    pub(super) fn from(self, rows: usize) -> Self {
        Self { data: self.data.wrapping_add(rows * self.row), ..self }
    }
}

/// `width` rounded up to whole vectors.
pub(super) fn padded<L: Lanes>(width: usize) -> usize {
    width.next_multiple_of(L::N)
}

/// Whether `grid` can be used as it is. Rows far apart would be legal too, but land
/// on few cache sets.
fn is_packed<L: Lanes>(grid: Grid<L::Elem>, width: usize) -> bool {
    let row = grid.row;
    width.is_multiple_of(L::N) && grid.col == 1 && row >= 0 && row as usize <= 2 * width
}

/// Scratch elements [`pack_rows`] needs.
pub(super) fn packed_len<L: Lanes>(grid: Grid<L::Elem>, rows: usize, width: usize) -> usize {
    if is_packed::<L>(grid, width) { 0 } else { rows * padded::<L>(width) }
}

/// `grid` itself if it has the layout, else a copy in `space`.
///
/// # Safety
/// `grid` is valid for rows x width, `space` for [`packed_len`] elements; the CPU has
/// the features of `L`.
pub(super) unsafe fn pack_rows<L: Lanes>(
    grid: Grid<L::Elem>,
    rows: usize,
    width: usize,
    space: *mut L::Elem,
) -> Packed<L::Elem> {
    if is_packed::<L>(grid, width) {
        return Packed { data: grid.data, row: grid.row as usize };
    }
    let to = space;
    // SAFETY: passed on from the caller.
    unsafe {
        L::call(CopyRows { grid, rows, width, to });
    }
    Packed { data: space, row: padded::<L>(width) }
}

struct CopyRows<T> {
    grid: Grid<T>,
    rows: usize,
    width: usize,
    to: *mut T,
}

impl<L: Lanes> LaneWork<L> for CopyRows<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        let wide = padded::<L>(self.width);
        for r in 0..self.rows {
            let from = self.grid.from(r, 0);
            // SAFETY: row r of both matrices, by the contract of `pack_rows`.
            unsafe {
                let to = self.to.add(r * wide);
                if from.col == 1 {
                    to.copy_from_nonoverlapping(from.data, self.width);
                } else {
                    for c in 0..self.width {
                        *to.add(c) = *from.data.offset(c as isize * from.col);
                    }
                }
                for c in self.width..wide {
                    *to.add(c) = L::Elem::ZERO;
                }
            }
        }
    }
}

/// Columns of one panel of [`Panels`]: the width of the register tile.
pub(super) const fn panel_width<L: Lanes>() -> usize {
    2 * L::N
}

/// Elements of the transposed panels of a rows x width matrix.
pub(super) fn panels_len<L: Lanes>(rows: usize, width: usize) -> usize {
    rows.next_multiple_of(panel_width::<L>()) * width
}

/// Packs the transpose of `grid`, times `scale`, as the right operand of a product:
/// panels of [`panel_width`] columns (rows of `grid`), one after the other, each
/// `width` rows deep. The last panel is filled up with zeros.
pub(super) struct Panels<T> {
    pub grid: Grid<T>,
    pub rows: usize,
    pub width: usize,
    pub scale: T,
    /// Valid for [`panels_len`] elements.
    pub to: *mut T,
}

impl<L: Lanes> LaneWork<L> for Panels<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        let wide = panel_width::<L>();
        let mut first = 0;
        while first < self.rows {
            // SAFETY: the panel of the rows from `first` on lies in `to`; reads stay
            // in the rows and columns of `grid`.
            unsafe {
                let to = self.to.add(first * self.width);
                let rows = wide.min(self.rows - first);
                let mut r = 0;
                if self.grid.col == 1 {
                    while r + L::SQUARE <= rows {
                        self.square_rows::<L>(first + r, to.add(r));
                        r += L::SQUARE;
                    }
                }
                for c in 0..self.width {
                    let from = self.grid.from(first, c);
                    let to = to.add(c * wide);
                    for r in r..rows {
                        *to.add(r) = self.scale * *from.data.offset(r as isize * from.row);
                    }
                    for r in rows..wide {
                        *to.add(r) = L::Elem::ZERO;
                    }
                }
            }
            first += wide;
        }
    }
}

impl<T: Float> Panels<T> {
    /// Transposes `L::SQUARE` rows from `row` on.
    ///
    /// # Safety
    /// As for the whole; the rows exist and `to` is their place in their panel.
    #[inline(always)]
    unsafe fn square_rows<L: Lanes<Elem = T>>(&self, row: usize, to: *mut T) {
        let wide = panel_width::<L>();
        let from = self.grid.from(row, 0);
        // SAFETY: the squares, then the single columns, tile SQUARE x width.
        unsafe {
            let mut c = 0;
            while c + L::SQUARE <= self.width {
                let to = to.add(c * wide);
                L::transpose(from.data.add(c), from.row, to, wide, self.scale);
                c += L::SQUARE;
            }
            for c in c..self.width {
                for r in 0..L::SQUARE {
                    let x = *from.data.offset(r as isize * from.row).add(c);
                    *to.add(c * wide + r) = self.scale * x;
                }
            }
        }
    }
}

/// Writes `scale` times a padded matrix to one of dense columns; in place if it is the same.
pub(super) struct Unpack<T> {
    pub from: *const T,
    pub from_row: usize,
    pub to: *mut T,
    pub to_row: isize,
    pub rows: usize,
    pub width: usize,
    pub scale: T,
}

impl<L: Lanes> LaneWork<L> for Unpack<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        for r in 0..self.rows {
            // SAFETY: row r of both matrices; an element is read before it is written.
            unsafe {
                let from = self.from.add(r * self.from_row);
                let to = self.to.offset(r as isize * self.to_row);
                // By hand, for the compiler has to assume that the two overlap.
                let scale = L::splat(self.scale);
                let mut c = 0;
                while c + L::N <= self.width {
                    L::load(from.add(c)).mul(scale).store(to.add(c));
                    c += L::N;
                }
                for c in c..self.width {
                    *to.add(c) = self.scale * *from.add(c);
                }
            }
        }
    }
}
