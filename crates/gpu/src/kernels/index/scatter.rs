//! Sums of values into zeros at given places along an axis, without races: which of four variants is taken.
//!
//! | variant | every sum is made by | suits |
//! |---|---|---|
//! | direct | an invocation that looks at all of its line's places | lines of few values |
//! | scan | a workgroup that looks at all places, and then at the values of its own | gradients of few rows |
//! | tile | workgroups that own a tile of the output in workgroup memory | gradients of windows |
//! | sorted | an invocation that walks through its values in a sorted list | gradients of tables |

use super::element_type::Number;
use super::scatter_direct;
use super::scatter_full_scan;
use super::scatter_radix_sort::Lists;
use super::scatter_sorted;
use super::scatter_tile::{self, Tile};
use super::view::Lines;
use crate::caps::Caps;
use crate::dispatch::{ComputeType, Lowered};
use volta_ir::plan::kernel::NativeKernel;

/// Values a line that are looked at by each of its sums.
const MAX_SCANNED_VALUES: usize = 32;
/// The same where a sorted list would serve a whole row of sums.
const MAX_SCANNED_VALUES_SHARED: usize = 4;
/// Elements of scratch memory that any adapter binds.
const MAX_SCRATCH: usize = 1 << 25;

/// The operands as lines along the axis: places, values and sums.
pub(super) struct Scatter<'a> {
    pub kernel: &'a NativeKernel,
    pub index: Lines<'a>,
    pub values: Lines<'a>,
    /// Sums a line.
    pub extent: usize,
}

impl Scatter<'_> {
    /// Neighbouring columns that an invocation can sum, if all lines behind the axis have the same places.
    pub fn width(&self) -> usize {
        let fours = Number::of(self.kernel.output.dtype).lane == ComputeType::F32 && self.values.in_fours();
        if fours { 4 } else { 1 }
    }
}

pub(super) fn lower(kernel: &NativeKernel, axis: usize, caps: &Caps) -> Lowered {
    let (index, values) = (Lines::of(&kernel.operands[0], axis), Lines::of(&kernel.operands[1], axis));
    let s = Scatter { kernel, index, values, extent: kernel.output.shape[axis] };
    let (lines, count) = (s.values.number(), s.values.count);
    let shared = s.index.same_behind() && s.values.behind >= 8;
    if count <= if shared { MAX_SCANNED_VALUES_SHARED } else { MAX_SCANNED_VALUES } {
        return scatter_direct::lower(&s);
    }
    if shared && scatter_full_scan::suits(&s) {
        return scatter_full_scan::lower(&s);
    }
    if shared {
        let lists = if s.index.same_before() { Lists::One } else { Lists::PerSlab };
        return scatter_sorted::lower(&s, lists);
    }
    let tile = Tile::of(&s, caps);
    // A tile reads all places of its lines, and waits for every value that another one stands in the way of.
    let cheap = tile.tiles * count <= 32 * (count + s.extent);
    let even = lines >= 1024 || count <= 8 * s.extent;
    if (cheap && even) || lines * count.max(s.extent + 1) > MAX_SCRATCH {
        return scatter_tile::lower(&s, &tile);
    }
    scatter_sorted::lower(&s, Lists::PerLine)
}
