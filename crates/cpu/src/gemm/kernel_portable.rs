//! Microkernels for any CPU, written so that the compiler vectorises them.

use super::element::Accumulator;
use super::kernel::{Kernel, Tile};
use super::{dot, runs, transpose_portable};

/// Whether the build target has fused multiply-add; elsewhere it would be a library call.
const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
/// Eight rows keep the 32 registers of AArch64 busy; other targets have 16.
const MR: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
const F32_TILE: unsafe fn(&Tile<f32>) = tile::<f32, 8>;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
const F32_TILE: unsafe fn(&Tile<f32>) = super::kernel_simd128::tile;

pub(super) static F32: Kernel<f32> = Kernel {
    name: "portable",
    mr: MR,
    nr: 8,
    kc: 384,
    l2: 32 * 1024,
    copies: false,
    tile: F32_TILE,
    transpose: transpose_portable::run::<f32>,
    copy_runs: runs::copy,
    dots: dot::dots::<f32, 16, FUSED>,
};

pub(super) static F64: Kernel<f64> = Kernel {
    name: "portable",
    mr: MR,
    nr: 4,
    kc: 384,
    l2: 16 * 1024,
    copies: false,
    tile: tile::<f64, 4>,
    transpose: transpose_portable::run::<f64>,
    copy_runs: runs::copy,
    dots: dot::dots::<f64, 8, FUSED>,
};

/// Computes one tile, padded with zeros up to MR x NR.
///
/// # Safety
/// The tile describes readable A and B and writable C.
pub(super) unsafe fn tile<T: Accumulator, const NR: usize>(t: &Tile<T>) {
    let mut sums = [[T::default(); NR]; MR];
    // SAFETY: rows below `t.rows` and columns below `t.cols` are readable and writable.
    unsafe {
        match (t.rows == MR, t.cols == NR) {
            (true, true) if t.a_row == 1 && t.a_col == MR as isize => {
                sum(t, &mut sums, 1, MR as isize, MR, NR);
            }
            (true, true) => sum(t, &mut sums, t.a_row, t.a_col, MR, NR),
            _ => sum(t, &mut sums, t.a_row, t.a_col, t.rows, t.cols),
        }
        for (i, row) in sums.iter().enumerate().take(t.rows) {
            for (j, &value) in row.iter().enumerate().take(t.cols) {
                let c = t.c.add(i * t.ldc + j);
                *c = if t.accumulate { *c + value } else { value };
            }
        }
    }
}

/// The sums over k; inlined so that the constant strides and sizes of the full tile fold away.
#[inline(always)]
unsafe fn sum<T: Accumulator, const NR: usize>(
    t: &Tile<T>,
    sums: &mut [[T; NR]; MR],
    a_row: isize,
    a_col: isize,
    rows: usize,
    cols: usize,
) {
    let mut local = *sums;
    for p in 0..t.k as isize {
        let mut b = [T::default(); NR];
        for (j, slot) in b.iter_mut().enumerate().take(cols) {
            // SAFETY: p < k and j < cols.
            *slot = unsafe { *t.b.offset(p * t.b_row).add(j) };
        }
        for (i, row) in local.iter_mut().enumerate().take(rows) {
            // SAFETY: i < rows and p < k.
            let x = unsafe { *t.a.offset(p * a_col + i as isize * a_row) };
            for j in 0..NR {
                row[j] = if FUSED { x.fused(b[j], row[j]) } else { x * b[j] + row[j] };
            }
        }
    }
    *sums = local;
}
