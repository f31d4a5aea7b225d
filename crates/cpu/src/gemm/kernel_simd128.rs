//! The f32 microkernel in WebAssembly's vectors. The portable one is twice as slow there even where its loops are vectorised.

use super::kernel::Tile;
use super::kernel_portable;
use std::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, v128, v128_load, v128_load32_splat, v128_store};

/// Vectors of four lanes side by side. With four rows that is eight sums, two vectors of B and one of A: browsers have 16 registers.
const VECTORS: usize = 2;
const ROWS: usize = 4;

/// Computes one tile, in the order of the portable kernel, and so to the same bits; what is no full tile is left to that.
///
/// # Safety
/// The tile describes readable A and B and writable C.
pub(super) unsafe fn tile(t: &Tile<f32>) {
    if t.rows != ROWS || t.cols != 4 * VECTORS {
        // SAFETY: passed on from the caller.
        return unsafe { kernel_portable::tile::<f32, { 4 * VECTORS }>(t) };
    }
    // SAFETY: ROWS rows and 4 * VECTORS columns are readable and writable.
    unsafe {
        let sums = if t.a_row == 1 { sums(t, 1) } else { sums(t, t.a_row) };
        for (i, row) in sums.iter().enumerate() {
            for (j, &sum) in row.iter().enumerate() {
                let c = t.c.add(i * t.ldc + 4 * j).cast::<v128>();
                v128_store(c, if t.accumulate { f32x4_add(v128_load(c), sum) } else { sum });
            }
        }
    }
}

/// The sums over k; inlined so that the stride of packed rows folds away.
///
/// # Safety
/// As for [`tile`], of a full one.
#[inline(always)]
unsafe fn sums(t: &Tile<f32>, a_row: isize) -> [[v128; VECTORS]; ROWS] {
    let mut sums = [[f32x4_splat(0.0); VECTORS]; ROWS];
    let (mut a, mut b) = (t.a, t.b);
    for _ in 0..t.k {
        // SAFETY: step p < k of ROWS rows of A and of all columns of B.
        unsafe {
            let [b0, b1] = [v128_load(b.cast()), v128_load(b.add(4).cast())];
            for (i, row) in sums.iter_mut().enumerate() {
                let x = v128_load32_splat(a.offset(i as isize * a_row).cast());
                row[0] = f32x4_add(f32x4_mul(x, b0), row[0]);
                row[1] = f32x4_add(f32x4_mul(x, b1), row[1]);
            }
        }
        // Behind the last step they may point beyond the panels.
        (a, b) = (a.wrapping_offset(t.a_col), b.wrapping_offset(t.b_row));
    }
    sums
}
