//! The sums over blocks that become dQ, dK and dV.

use super::float::Float;
use super::lanes::Lanes;
use super::pack::{Grid, Packed, Unpack, padded, panel_width};
use super::product::{Product, Trim};

/// Sums in the making: the rows of a result if they are dense, or padded stand-ins for them.
#[derive(Clone, Copy)]
pub(super) struct Sums<T> {
    data: *mut T,
    row: usize,
    result: Grid<T>,
    rows: usize,
    width: usize,
}

impl<T: Float> Sums<T> {
    /// Sums for the first `rows` rows of `result`, with nothing in them yet. `space` is for the rows that stand in for
    /// them, of which there are [`Self::len`] elements.
    pub(super) fn new<L: Lanes>(result: Grid<T>, rows: usize, width: usize, space: *mut T) -> Self {
        let data = if Self::in_place::<L>(result, width) { result.data.cast_mut() } else { space };
        Self { data, row: padded::<L>(width), result, rows, width }
    }

    /// Elements of the rows that stand in for those of a result.
    pub(super) fn len<L: Lanes>(result: Grid<T>, rows: usize, width: usize) -> usize {
        if Self::in_place::<L>(result, width) { 0 } else { rows * padded::<L>(width) }
    }

    /// Rows far apart may share their cache sets: nothing is summed up in them.
    fn in_place<L: Lanes>(result: Grid<T>, width: usize) -> bool {
        padded::<L>(width) == width && result.row == width as isize
    }

    /// Makes every sum 0.
    ///
    /// # Safety
    /// The rows are valid.
    pub(super) unsafe fn clear(&self) {
        // SAFETY: all zero bits are the number 0; the caller's contract.
        unsafe { self.data.write_bytes(0, self.rows * self.row) };
    }

    /// Adds `left right` to the rows from `first` on, or sets them to it if it is the
    /// first to go there.
    ///
    /// # Safety
    /// The operands fit.
    pub(super) unsafe fn add<L: Lanes<Elem = T>>(&self, first: usize, left: Left<T>, right: Packed<T>) {
        // SAFETY: the caller's contract.
        unsafe {
            L::call(Product {
                a: left.data,
                a_row: left.row,
                a_transposed: left.transposed,
                b: right.data,
                b_row: right.row,
                b_panel: panel_width::<L>(),
                c: self.data.add(first * self.row),
                c_row: self.row,
                rows: left.rows,
                cols: self.row,
                depth: left.depth,
                add: !left.first,
                trim: left.trim,
            });
        }
    }

    /// Writes the result, `scale` times the sums.
    ///
    /// # Safety
    /// The rows are valid.
    pub(super) unsafe fn finish<L: Lanes<Elem = T>>(&self, scale: T) {
        if self.data.cast_const() == self.result.data && scale == T::ONE {
            return;
        }
        // SAFETY: the caller's contract.
        unsafe {
            L::call(Unpack {
                from: self.data,
                from_row: self.row,
                to: self.result.data.cast_mut(),
                to_row: self.result.row,
                rows: self.rows,
                width: self.width,
                scale,
            });
        }
    }
}

/// The left operand of a product into [`Sums`].
pub(super) struct Left<T> {
    pub data: *const T,
    pub row: usize,
    pub transposed: bool,
    pub rows: usize,
    pub depth: usize,
    pub trim: Trim,
    /// Whether the sums have nothing in them yet.
    pub first: bool,
}
