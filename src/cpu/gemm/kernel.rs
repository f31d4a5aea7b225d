//! What a microkernel is: the innermost product of a few rows of A with a few columns of B.

/// One call of a microkernel: `c[i][j] (+)= sum over p of a(i, p) * b(p, j)`.
///
/// `rows` and `cols` are at least 1 and at most the kernel's `mr` and `nr`.
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
    /// Only for kernels that say they can, and packed A.
    pub b_copy: *mut T,
    /// Memory that will be needed soon: a line at `soon[p * soon_stride]` for every step of k.
    pub soon: *const T,
    pub soon_stride: isize,
}

/// The transposition behind packing an operand whose k dimension is contiguous:
/// `dst[p * width + lane] = src[lane * lane_stride + p]` for `lane < lanes`, zero for the rest of
/// `width`, for all `p < k`.
pub(crate) type Transpose<T> =
    unsafe fn(src: *const T, lane_stride: isize, lanes: usize, k: usize, dst: *mut T, width: usize);

/// The dot products of up to four contiguous rows (`row_stride` apart) with one vector.
pub(crate) type Dots<T> =
    unsafe fn(rows: *const T, row_stride: isize, count: usize, x: *const T, k: usize) -> [T; 4];

/// A microkernel and what goes with it for one instruction set.
pub(crate) struct Kernel<T: 'static> {
    pub name: &'static str,
    /// Rows and columns of a full tile.
    pub mr: usize,
    pub nr: usize,
    /// Depth of a block: a panel of B this deep and `nr` wide should nearly fill the L1 cache.
    pub kc: usize,
    /// Elements of a block of A that may stay in the L2 cache while B streams past it.
    pub l2: usize,
    /// Whether `tile` copies B on request.
    pub copies: bool,
    pub tile: unsafe fn(&Tile<T>),
    pub transpose: Transpose<T>,
    pub dots: Dots<T>,
}
