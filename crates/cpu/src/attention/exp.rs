//! The vectorised exponential.

use super::float::Float;
use super::lanes::Lanes;

/// exp(x) within about 1 ulp for normal results; what would be subnormal is 0, what
/// would overflow stays at the top of the range, NaN stays NaN.
///
/// # Safety
/// As for the methods of [`Lanes`].
#[inline(always)]
pub(super) unsafe fn exp<L: Lanes>(x: L) -> L {
    // SAFETY: the caller has the features of L.
    unsafe {
        let low = L::splat(L::Elem::EXP_LOW);
        // The order of the arguments lets a NaN through.
        let y = L::splat(L::Elem::EXP_HIGH).min(low.max(x));
        // x = n ln 2 + r with |r| <= ln(2) / 2, so exp(x) = 2^n exp(r).
        let rounder = L::splat(L::Elem::ROUNDER);
        let rounded = y.mul_add(L::splat(L::Elem::LOG2_E), rounder);
        let n = rounded.sub(rounder);
        let r = n.mul_add(L::splat(L::Elem::NEG_LN2_HIGH), y);
        let r = n.mul_add(L::splat(L::Elem::NEG_LN2_LOW), r);
        let mut p = L::splat(L::Elem::EXP_POLYNOMIAL[0]);
        for &c in &L::Elem::EXP_POLYNOMIAL[1..] {
            p = p.mul_add(r, L::splat(c));
        }
        let one = L::splat(L::Elem::ONE);
        let exp_r = p.mul_add(r, one).mul_add(r, one);
        // The bits of a NaN are no exponent: it comes back by a sum.
        exp_r.scale_exponent(rounded).zero_below(x, low).add(y.sub(y))
    }
}

#[cfg(test)]
mod tests {
    use super::super::isa::{Level, WithLanes};
    use super::super::lanes::LaneWork;
    use super::*;

    struct Each<T> {
        from: *const T,
        to: *mut T,
        vectors: usize,
    }

    impl<L: Lanes> LaneWork<L> for Each<L::Elem> {
        #[inline(always)]
        unsafe fn run(self) {
            for i in 0..self.vectors {
                // SAFETY: both arrays have `vectors` vectors.
                unsafe { exp(L::load(self.from.add(i * L::N))).store(self.to.add(i * L::N)) }
            }
        }
    }

    struct Run<'a, T>(&'a [T], &'a mut [T]);

    impl<T: Float> WithLanes<T> for Run<'_, T> {
        fn run<L: Lanes<Elem = T>>(self) {
            let vectors = self.0.len() / L::N;
            let each = Each { from: self.0.as_ptr(), to: self.1.as_mut_ptr(), vectors };
            // SAFETY: the level is available, the arrays are that long.
            unsafe { L::call(each) }
        }
    }

    fn values<T: Float>(level: Level, x: &[T]) -> Vec<T> {
        let mut y = vec![T::ZERO; x.len()];
        level.with::<T, _>(Run(x, &mut y));
        y
    }

    #[test]
    fn close_to_the_true_value() {
        for level in Level::available() {
            let x: Vec<f32> = (0..16 * 4000).map(|i| -87.0 + i as f32 * 0.0027).collect();
            for (x, y) in x.iter().zip(values(level, &x)) {
                let want = f64::from(*x).exp();
                let error = (f64::from(y) - want).abs() / want;
                assert!(error < 1.3e-7, "{level:?} exp({x}) = {y}, {error:e}");
            }
            let x: Vec<f64> = (0..16 * 4000).map(|i| -708.0 + i as f64 * 0.022).collect();
            for (x, y) in x.iter().zip(values(level, &x)) {
                let want = x.exp();
                let error = (y - want).abs() / want;
                assert!(error < 4.5e-16, "{level:?} exp({x}) = {y}, {error:e}");
            }
        }
    }

    #[test]
    fn limits() {
        for level in Level::available() {
            let mut x = [0f32; 16];
            x[..5].copy_from_slice(&[f32::NEG_INFINITY, -100.0, f32::NAN, 0.0, 1e9]);
            x[5..7].copy_from_slice(&[0x7fff_ffff, 0x7fc0_0001].map(f32::from_bits));
            let y = values(level, &x);
            assert!(y[5].is_nan() && y[6].is_nan(), "of any kind, {level:?}: {y:?}");
            assert_eq!((y[0], y[1], y[3]), (0.0, 0.0, 1.0), "{level:?}");
            assert!(y[2].is_nan() && y[4].is_finite() && y[4] > 1e38);
        }
    }
}
