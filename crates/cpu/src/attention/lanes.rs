//! The vector type that every kernel is written over, and its portable form.
//!
//! A kernel is one `#[inline(always)]` body over [`Lanes`], wrapped as [`LaneWork`].
//! [`Lanes::call`] runs it inside a function that has the target features of the
//! vector type, so the body is compiled once per feature level.

use super::float::Float;

/// A kernel: arguments plus the body to run on them.
pub(crate) trait LaneWork<L: Lanes> {
    /// # Safety
    /// The features of `L` are present, and what the fields say holds. Only
    /// [`Lanes::call`] calls it, for everything else would miss the features.
    unsafe fn run(self);
}

/// A vector of `N` elements.
///
/// # Safety
/// Every method needs a CPU with the features of the type; `load`, `store` and
/// `transpose` also need pointers valid for what they touch (of any alignment).
pub(crate) trait Lanes: Copy + 'static {
    type Elem: Float;
    const N: usize;
    /// Rows of the register tile of the matrix product, which is two vectors wide.
    const ROWS: usize;
    /// Edge of the square that `transpose` moves.
    const SQUARE: usize;

    unsafe fn call<W: LaneWork<Self>>(work: W);
    unsafe fn splat(x: Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn sub(self, b: Self) -> Self;
    unsafe fn mul(self, b: Self) -> Self;
    /// `self * b + c`.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
    /// The larger; `b` where either is NaN.
    unsafe fn max(self, b: Self) -> Self;
    /// The smaller; `b` where either is NaN.
    unsafe fn min(self, b: Self) -> Self;
    /// 0 where `x < floor`, else `self`.
    unsafe fn zero_below(self, x: Self, floor: Self) -> Self;
    /// See [`Float::scale_exponent`].
    unsafe fn scale_exponent(self, rounded: Self) -> Self;
    /// The sum of all lanes, in an order fixed by the type.
    unsafe fn sum(self) -> Self::Elem;
    /// The largest lane.
    unsafe fn largest(self) -> Self::Elem;
    /// `to[c * to_row + r] = scale * from[r * from_row + c]` for a `SQUARE` of both.
    unsafe fn transpose(
        from: *const Self::Elem,
        from_row: isize,
        to: *mut Self::Elem,
        to_row: usize,
        scale: Self::Elem,
    );
}

/// The portable vector: an array of the size of the usual 128-bit register, which
/// the compiler maps to whatever the target has.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Array<T, const N: usize>([T; N]);

impl<T: Float, const N: usize> Array<T, N> {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for (x, y) in out.0.iter_mut().zip(b.0) {
            *x = f(*x, y);
        }
        out
    }
}

impl<T: Float, const N: usize> Lanes for Array<T, N> {
    type Elem = T;
    const N: usize = N;
    // Sixteen registers on x86-64 and wasm, thirty-two on AArch64.
    const ROWS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 4 };
    const SQUARE: usize = 4;

    #[inline(never)]
    unsafe fn call<W: LaneWork<Self>>(work: W) {
        // SAFETY: no features are needed; the caller vouches for the fields.
        unsafe { work.run() }
    }

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Self([x; N])
    }

    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller's pointer is valid for N elements.
        Self(unsafe { p.cast::<[T; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: the caller's pointer is valid for N elements.
        unsafe { p.cast::<[T; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        self.zip(b, |x, y| x + y)
    }

    #[inline(always)]
    unsafe fn sub(self, b: Self) -> Self {
        self.zip(b, |x, y| x - y)
    }

    #[inline(always)]
    unsafe fn mul(self, b: Self) -> Self {
        self.zip(b, |x, y| x * y)
    }

    #[inline(always)]
    unsafe fn mul_add(self, b: Self, c: Self) -> Self {
        let mut out = c;
        for (i, x) in out.0.iter_mut().enumerate() {
            *x = self.0[i].fused(b.0[i], *x);
        }
        out
    }

    #[inline(always)]
    unsafe fn max(self, b: Self) -> Self {
        self.zip(b, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    unsafe fn min(self, b: Self) -> Self {
        self.zip(b, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    unsafe fn zero_below(self, x: Self, floor: Self) -> Self {
        let mut out = self;
        for (i, y) in out.0.iter_mut().enumerate() {
            *y = if x.0[i] < floor.0[i] { T::ZERO } else { *y };
        }
        out
    }

    #[inline(always)]
    unsafe fn scale_exponent(self, rounded: Self) -> Self {
        self.zip(rounded, |x, y| x.scale_exponent(y))
    }

    #[inline(always)]
    unsafe fn sum(self) -> T {
        self.0.into_iter().fold(T::ZERO, |x, y| x + y)
    }

    #[inline(always)]
    unsafe fn largest(self) -> T {
        self.0.into_iter().fold(T::NEG_INFINITY, |x, y| if y > x { y } else { x })
    }

    #[inline(always)]
    unsafe fn transpose(from: *const T, from_row: isize, to: *mut T, to_row: usize, scale: T) {
        for c in 0..4 {
            for r in 0..4 {
                // SAFETY: the caller's pointers are valid for the 4 x 4 square.
                unsafe {
                    let x = *from.offset(r as isize * from_row).add(c);
                    *to.add(c * to_row + r) = scale * x;
                }
            }
        }
    }
}
