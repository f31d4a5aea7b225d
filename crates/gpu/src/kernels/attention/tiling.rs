//! How a block of scores is cut: over workgroups, over threads, and its depth into parts that fit into
//! memory.

use super::tile::pitch;
use crate::caps::{COMPUTE_UNITS, Caps};

/// A workgroup owns `own` rows of scores and goes through their columns `other` at a time. A thread has
/// `thread_rows` × (4 · `thread_quads`) of such a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    pub own: usize,
    pub other: usize,
    pub thread_rows: usize,
    pub thread_quads: usize,
    /// The most quads of a row's width in workgroup memory at once.
    pub depth: usize,
    /// Quads of depth in one iteration of the inner loop.
    pub unroll: usize,
    /// Fetch the next tile into registers while this one is multiplied.
    pub ahead: bool,
}

const fn tiling(own: usize, other: usize, threads: [usize; 2], depth: usize, ahead: bool) -> Tiling {
    Tiling { own, other, thread_rows: threads[0], thread_quads: threads[1], depth, unroll: 2, ahead }
}

/// From the fastest to the one that fits everywhere.
pub(super) const FORWARD: [Tiling; 3] =
    [tiling(64, 64, [8, 1], 16, true), tiling(64, 64, [4, 1], 8, false), tiling(32, 32, [4, 1], 8, false)];
pub(super) const BACKWARD: [Tiling; 3] =
    [tiling(64, 64, [4, 1], 16, false), tiling(64, 64, [4, 1], 8, false), tiling(32, 32, [4, 1], 8, false)];

/// The most quads of sums a thread keeps: more would not stay in registers.
const SUMS: usize = 32;

impl Tiling {
    /// Threads that share a row.
    pub fn across(&self) -> usize {
        self.other / 4 / self.thread_quads
    }

    pub fn threads(&self) -> usize {
        self.own / self.thread_rows * self.across()
    }

    /// Whether threads that share a row find each other by subgroup operations.
    pub fn shuffles(&self, caps: &Caps) -> bool {
        caps.subgroup.is_some_and(|size| (size as usize).is_multiple_of(self.across()))
    }

    /// Bytes of workgroup memory for rows of these widths: a tile of the own rows, one of the others, the
    /// block of weights, and what reductions need without subgroups.
    pub fn bytes(&self, widths: [usize; 2], caps: &Caps) -> usize {
        let pitch_of = |width: usize| pitch(Parts::of(width, self.depth).quads);
        let widest = pitch_of(widths[0]).max(pitch_of(widths[1]));
        let tiles = (self.own + self.other) * widest + self.own * pitch(self.other / 4);
        let partial = if self.shuffles(caps) { 0 } else { self.own * self.across() * 4 };
        tiles * 16 + partial
    }

    pub(super) fn fits(&self, rows: usize, widths: [usize; 2], caps: &Caps) -> bool {
        // Half of the rows at least should be there.
        self.own < 2 * rows
            && self.threads() <= caps.invocations as usize
            && self.bytes(widths, caps) <= caps.workgroup_bytes as usize
    }

    fn choose(table: &[Tiling], rows: usize, widths: [usize; 2], caps: &Caps) -> Tiling {
        let last = table[table.len() - 1];
        table.iter().copied().find(|t| t.fits(rows, widths, caps)).unwrap_or(last)
    }

    /// For so many matrices of scores: where there are few, as many threads as for the gradient.
    pub fn forward(items: usize, rows: usize, widths: [usize; 2], caps: &Caps) -> Tiling {
        let few = items * rows.div_ceil(FORWARD[0].own) <= COMPUTE_UNITS / 2;
        Tiling::choose(if few { &BACKWARD } else { &FORWARD }, rows, widths, caps)
    }

    pub fn backward(rows: usize, widths: [usize; 2], caps: &Caps) -> Tiling {
        Tiling::choose(&BACKWARD, rows, widths, caps)
    }

    /// How many parts of a width a workgroup can keep sums of, if it keeps sums of `kinds` of them.
    pub(super) fn parts_at_once(&self, parts: &Parts, kinds: usize) -> usize {
        let quads = parts.quads.div_ceil(self.across()).max(1) * self.thread_rows;
        (SUMS / kinds / quads).clamp(1, parts.count.max(1))
    }
}

/// The width of a row, cut into equal parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Of a part.
    pub quads: usize,
    pub count: usize,
}

impl Parts {
    pub fn of(width: usize, most: usize) -> Parts {
        let quads = width.div_ceil(4);
        let count = quads.div_ceil(most);
        Parts { quads: quads.checked_div(count).map_or(0, |_| quads.div_ceil(count)), count }
    }
}
