//! Quantised operands of the blocked product: panels are decoded as they are packed, block by block.

use super::Matrix;
use super::block::{decode_column, decode_row};
use crate::gemm::kernel::Kernel;
use crate::gemm::pack::{PanelSource, WIDEST};
use std::ops::Range;
use volta_ir::op::quantized::BLOCK;

/// The rows of a matrix as lanes, its columns along k.
pub(super) struct RowLanes(pub Matrix);

/// The columns of a matrix as lanes, its rows along k.
pub(super) struct ColumnLanes(pub Matrix);

impl PanelSource<f32> for RowLanes {
    unsafe fn pack(
        &self,
        kernel: &Kernel<f32>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut f32,
        panel_stride: usize,
    ) {
        let w = &self.0;
        debug_assert!(width <= WIDEST);
        let mut rows = [[0.0; BLOCK]; WIDEST];
        for (panel, first) in lanes.clone().step_by(width).enumerate() {
            let count = width.min(lanes.end - first);
            let dst = dst.wrapping_add(panel * panel_stride);
            for block in ks.start / BLOCK..ks.end.div_ceil(BLOCK) {
                let start = ks.start.max(block * BLOCK);
                let depth = ks.end.min((block + 1) * BLOCK) - start;
                // SAFETY: the lanes are rows, and the block is one of their blocks.
                unsafe { decode_column(w, first, block, &mut rows[..count]) };
                let from = rows.as_ptr().cast::<f32>().wrapping_add(start - block * BLOCK);
                let at = dst.wrapping_add((start - ks.start) * width);
                // SAFETY: `rows` has `count` lanes of a block, and the panel takes ks.len() · width.
                unsafe { (kernel.transpose)(from, BLOCK as isize, count, depth, at, width) };
            }
        }
    }
}

impl PanelSource<f32> for ColumnLanes {
    unsafe fn pack(
        &self,
        _: &Kernel<f32>,
        width: usize,
        lanes: Range<usize>,
        ks: Range<usize>,
        dst: *mut f32,
        panel_stride: usize,
    ) {
        /// Columns that are decoded at a time.
        const COLUMNS: usize = 16 * BLOCK;
        debug_assert!(width <= WIDEST);
        let mut decoded = [0.0; COLUMNS + 2 * BLOCK];
        let step = COLUMNS / width * width;
        for first in lanes.clone().step_by(step) {
            let end = lanes.end.min(first + step);
            let blocks = first / BLOCK..end.div_ceil(BLOCK);
            for (p, row) in ks.clone().enumerate() {
                // SAFETY: the blocks belong to the row.
                unsafe { decode_row(&self.0, row, blocks.start, &mut decoded[..blocks.len() * BLOCK]) };
                for lane in (first..end).step_by(width) {
                    let panel = (lane - lanes.start) / width;
                    let count = width.min(end - lane);
                    let from = &decoded[lane - blocks.start * BLOCK..][..count];
                    let to = dst.wrapping_add(panel * panel_stride + p * width);
                    // SAFETY: the panel takes ks.len() · width.
                    let to = unsafe { std::slice::from_raw_parts_mut(to, width) };
                    to[..count].copy_from_slice(from);
                    to[count..].fill(0.0);
                }
            }
        }
    }
}
