//! What a microkernel is: the innermost product of a few rows of A with a few columns of B.

/// One call of a microkernel: `c[i][j] (+)= sum over p of a(i, p) * b(p, j)`.
///
/// `rows` and `cols` are at least 1 and at most the kernel's `mr` and `nr`.
// Portable kernels leave the fields for copying, gathering and fetching ahead alone.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy)]
pub(crate) struct Tile<T> {
    pub k: usize,
    /// a(i, p) stands at `a[i * a_row + p * a_col]`; a packed panel has strides 1 and `mr`.
    pub a: *const T,
    pub a_row: isize,
    pub a_col: isize,
    /// b(p, j) stands at `b[p * b_row + j]`.
    pub b: *const T,
    pub b_row: isize,
    pub c: *mut T,
    pub ldc: usize,
    pub rows: usize,
    pub cols: usize,
    /// Add to C instead of overwriting it.
    pub accumulate: bool,
    /// Where to put a packed copy of the panel of B (rows of `nr`) while reading it, unless null.
    /// Only for kernels that say they can, packed A, and all rows.
    pub b_copy: *mut T,
    /// How to gather the panel of B, unless null: then `b_row` has no meaning, and `b_copy` is given.
    pub gather: *const Gather,
    /// Memory that will be needed soon: a line every `soon_each` (1 or 4) steps of k, the first at
    /// `soon`, each `soon_stride` after the one before.
    pub soon: *const T,
    pub soon_stride: isize,
    pub soon_each: usize,
}

/// A panel of B whose row p is gathered from `b + steps[p]`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy)]
pub(crate) struct Gather {
    pub steps: *const isize,
    /// Two halves of the panel, each gathered from at most two places.
    pub parts: [[Part; 2]; 2],
    /// Where the next panel is likely to start.
    pub next: isize,
}

/// Neighbours in memory that go to some lanes of half a panel.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Part {
    /// Which lanes.
    pub mask: u32,
    /// Where the first lane of the half would be.
    pub offset: isize,
}

impl Gather {
    /// Describes a panel of `nr` lanes that form the given runs, if the parts suffice.
    pub fn new(steps: &[isize], runs: &[Run], nr: usize) -> Option<Gather> {
        let mut parts = [[Part::default(); 2]; 2];
        for (half, parts) in parts.iter_mut().enumerate() {
            let first = half * nr / 2;
            let mut free = parts.iter_mut();
            for run in runs {
                let (start, end) = (run.lane.max(first), (run.lane + run.len).min(first + nr / 2));
                if start < end {
                    *free.next()? = Part {
                        mask: (1 << (end - first)) - (1 << (start - first)),
                        offset: run.offset + first as isize - run.lane as isize,
                    };
                }
            }
        }
        let next = runs.last().map_or(0, |run| run.offset + run.len as isize);
        Some(Gather { steps: steps.as_ptr(), parts, next })
    }
}

/// The transposition behind packing an operand whose k dimension is contiguous:
/// `dst[p * width + lane] = src[lane * lane_stride + p]` for `lane < lanes`, zero for the rest of
/// `width`, for all `p < k`.
pub(crate) type Transpose<T> =
    unsafe fn(src: *const T, lane_stride: isize, lanes: usize, k: usize, dst: *mut T, width: usize);

/// Lanes that stand side by side in memory: lane `lane + i` at `offset + i`, for `i < len`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub lane: usize,
    pub len: usize,
    pub offset: isize,
}

/// Packing lanes that form runs: for every step p, the runs are read from `src + steps[p]` and
/// written to `dst + p * width`; lanes in no run become zero. Runs are in order and inside `width`.
pub(crate) type CopyRuns<T> =
    unsafe fn(src: *const T, steps: &[isize], runs: &[Run], dst: *mut T, width: usize);

/// The dot products of up to four contiguous rows (`row_stride` apart) with one vector.
pub(crate) type Dots<T> =
    unsafe fn(rows: *const T, row_stride: isize, count: usize, x: *const T, k: usize) -> [T; 4];

/// A microkernel and what goes with it for one instruction set.
pub(crate) struct Kernel<T: 'static> {
    /// For the messages of tests.
    #[cfg_attr(not(test), expect(dead_code))]
    pub name: &'static str,
    /// Rows and columns of a full tile.
    pub mr: usize,
    pub nr: usize,
    /// Depth of a block: a panel of B this deep and `nr` wide should nearly fill the L1 cache.
    pub kc: usize,
    /// Elements of a block of A that may stay in the L2 cache while B streams past it.
    pub l2: usize,
    /// Whether `tile` copies and gathers B on request.
    pub copies: bool,
    pub tile: unsafe fn(&Tile<T>),
    pub transpose: Transpose<T>,
    pub copy_runs: CopyRuns<T>,
    pub dots: Dots<T>,
}
