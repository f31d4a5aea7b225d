//! The block matrix product: a register tile of accumulators, stepped over the block.

use super::float::Float;
use super::lanes::{LaneWork, Lanes};
use super::pack::panel_width;

/// What of a product the causal triangle makes unnecessary. A query `i` of the block
/// sees the keys `j <= i + offset`; each kind carries that offset.
#[derive(Clone, Copy)]
pub(super) enum Trim {
    None,
    /// Rows are queries, columns keys: columns that no row of a tile sees are left
    /// alone.
    Columns(isize),
    /// Rows are queries, the sum runs over keys: it ends with the last one seen.
    DepthEnd(isize),
    /// Rows are keys, the sum runs over queries: it starts with the first that sees
    /// one of them.
    DepthStart(isize),
}

/// `C = A B` or `C += A B`. Each element is one chain of fused operations in order of
/// depth that starts from the old element (or 0), however the block is cut into tiles:
/// so results do not depend on the cut.
pub(super) struct Product<T> {
    pub a: *const T,
    /// Step from row to row of A (of its transpose if `a_transposed`), whose other
    /// step is 1.
    pub a_row: usize,
    pub a_transposed: bool,
    pub b: *const T,
    /// Steps from row to row and from panel to panel of B.
    pub b_row: usize,
    pub b_panel: usize,
    pub c: *mut T,
    pub c_row: usize,
    pub rows: usize,
    /// A multiple of the vector length.
    pub cols: usize,
    pub depth: usize,
    /// Whether to add to C.
    pub add: bool,
    pub trim: Trim,
}

impl<L: Lanes> LaneWork<L> for Product<L::Elem> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: the tiles stay in the matrices.
        unsafe {
            if self.a_transposed {
                self.panels::<L, true>();
            } else {
                self.panels::<L, false>();
            }
        }
    }
}

impl<T: Float> Product<T> {
    /// Panels outside, rows inside: a panel of B stays in the first-level cache while
    /// A streams past it.
    ///
    /// # Safety
    /// The matrices are valid for the sizes told, the CPU has the features of `L`.
    #[inline(always)]
    unsafe fn panels<L: Lanes<Elem = T>, const A_T: bool>(&self) {
        let wide = panel_width::<L>();
        for panel in 0..self.cols.div_ceil(wide) {
            let mut i = 0;
            while i < self.rows {
                let left = self.rows - i;
                // SAFETY: the tile stays in the matrices.
                i += unsafe {
                    if L::ROWS >= 8 && left >= 8 {
                        self.tile::<L, A_T, 8>(i, panel)
                    } else if L::ROWS == 6 && left >= 6 {
                        self.tile::<L, A_T, 6>(i, panel)
                    } else if left >= 4 {
                        self.tile::<L, A_T, 4>(i, panel)
                    } else if left >= 2 {
                        self.tile::<L, A_T, 2>(i, panel)
                    } else {
                        self.tile::<L, A_T, 1>(i, panel)
                    }
                };
            }
        }
    }

    /// Computes `R` rows from `i` on of a panel and returns `R`.
    ///
    /// # Safety
    /// As for `panels`; there are such rows and such a panel.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Elem = T>, const A_T: bool, const R: usize>(
        &self,
        i: usize,
        panel: usize,
    ) -> usize {
        let j = panel * panel_width::<L>();
        let (mut cols, mut start, mut end) = (self.cols, 0, self.depth);
        match self.trim {
            Trim::None => {}
            Trim::Columns(offset) => cols = cols.min(after(i + R, offset)),
            Trim::DepthEnd(offset) => end = end.min(after(i + R, offset)),
            Trim::DepthStart(offset) => start = after(i, -offset).min(end),
        }
        // SAFETY: `j` is inside the columns, vectors past `cols` are not touched
        // unless they are within the padded columns of the block.
        unsafe {
            if cols > j + L::N {
                self.multiply::<L, A_T, R, 2>(i, panel, start, end);
            } else if cols > j {
                self.multiply::<L, A_T, R, 1>(i, panel, start, end);
            }
        }
        R
    }

    /// The register tile: `R` rows by `V` vectors, summed over `start..end`.
    ///
    /// # Safety
    /// As for `tile`; `V` vectors of the panel are columns of C.
    #[inline(always)]
    unsafe fn multiply<L: Lanes<Elem = T>, const A_T: bool, const R: usize, const V: usize>(
        &self,
        i: usize,
        panel: usize,
        start: usize,
        end: usize,
    ) {
        // SAFETY: the tile and its operands stay in the matrices.
        unsafe {
            let a = self.a.add(if A_T { i } else { i * self.a_row });
            let b = self.b.add(panel * self.b_panel);
            let c = self.c.add(i * self.c_row + panel * panel_width::<L>());
            let mut sums = [[L::splat(T::ZERO); V]; R];
            if self.add {
                for (r, row) in sums.iter_mut().enumerate() {
                    for (v, sum) in row.iter_mut().enumerate() {
                        *sum = L::load(c.add(r * self.c_row + v * L::N));
                    }
                }
            }
            for p in start..end {
                let mut right = [L::splat(T::ZERO); V];
                for (v, x) in right.iter_mut().enumerate() {
                    *x = L::load(b.add(p * self.b_row + v * L::N));
                }
                for (r, row) in sums.iter_mut().enumerate() {
                    let at = if A_T { p * self.a_row + r } else { r * self.a_row + p };
                    let left = L::splat(*a.add(at));
                    for (sum, x) in row.iter_mut().zip(right) {
                        *sum = left.mul_add(x, *sum);
                    }
                }
            }
            for (r, row) in sums.iter().enumerate() {
                for (v, sum) in row.iter().enumerate() {
                    sum.store(c.add(r * self.c_row + v * L::N));
                }
            }
        }
    }
}

/// `position + offset`, not below 0.
#[inline(always)]
fn after(position: usize, offset: isize) -> usize {
    position.saturating_add_signed(offset)
}

#[cfg(test)]
mod tests {
    use super::super::isa::{Level, WithLanes};
    use super::super::pack::{Grid, Panels, padded, panels_len};
    use super::*;

    /// A is rows x depth, B the transpose of a cols x depth matrix.
    struct Case {
        rows: usize,
        cols: usize,
        depth: usize,
        transposed: bool,
        add: bool,
    }

    fn number(i: usize, j: usize) -> f64 {
        ((i * 31 + j * 17) % 23) as f64 - 11.0
    }

    impl WithLanes<f64> for &Case {
        fn run<L: Lanes<Elem = f64>>(self) {
            let Case { rows, cols, depth, transposed, add } = *self;
            let mut a = vec![0.0; rows * depth];
            for i in 0..rows {
                for p in 0..depth {
                    a[if transposed { p * rows + i } else { i * depth + p }] = number(i, p);
                }
            }
            let right: Vec<f64> = (0..cols * depth).map(|i| number(i % depth + 5, i / depth)).collect();
            let mut b = vec![f64::NAN; panels_len::<L>(cols, depth)];
            let wide = padded::<L>(cols);
            let mut c = vec![100.0; rows * wide];
            // SAFETY: the arrays have the sizes told.
            unsafe {
                L::call(Panels {
                    grid: Grid { data: right.as_ptr(), row: depth as isize, col: 1 },
                    rows: cols,
                    width: depth,
                    scale: 2.0,
                    to: b.as_mut_ptr(),
                });
                L::call(Product {
                    a: a.as_ptr(),
                    a_row: if transposed { rows } else { depth },
                    a_transposed: transposed,
                    b: b.as_ptr(),
                    b_row: panel_width::<L>(),
                    b_panel: panel_width::<L>() * depth,
                    c: c.as_mut_ptr(),
                    c_row: wide,
                    rows,
                    cols: wide,
                    depth,
                    add,
                    trim: Trim::None,
                });
            }
            for i in 0..rows {
                for j in 0..wide {
                    let term = |p| 2.0 * number(i, p) * number(p + 5, j);
                    let sum: f64 = (0..depth).map(term).sum();
                    let want = if j < cols { sum } else { 0.0 };
                    assert_eq!(c[i * wide + j], want + if add { 100.0 } else { 0.0 });
                }
            }
        }
    }

    #[test]
    fn every_remainder_of_the_tile() {
        for level in Level::available() {
            for rows in 1..=17 {
                for cols in [1, 4, 7, 8, 16, 19, 33] {
                    for (transposed, add) in [(false, false), (false, true), (true, true)] {
                        level.with(&Case { rows, cols, depth: 1 + rows % 7, transposed, add });
                    }
                }
            }
        }
    }
}
