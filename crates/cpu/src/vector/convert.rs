//! Conversions between register classes.

use super::element::LaneElement;
use super::isa::leveled;

/// A class whose lanes convert to `D` as PyTorch casts: floats truncate towards zero. Out of
/// range they saturate and NaN gives zero; integers wrap.
pub(crate) trait Cast<D>: LaneElement {
    fn cast(self) -> D;
}

macro_rules! casts {
    ($($S:ident)* => $D:tt) => { $(casts!(@ $S => $D);)* };
    (@ $S:ident => [$($D:ident)*]) => {$(
        impl Cast<$D> for $S {
            #[inline(always)]
            fn cast(self) -> $D {
                self as $D
            }
        }
    )*};
}
casts!(f32 f64 => [f32 f64]);
casts!(i32 i64 u32 u8 => [f32 f64 i32 i64 u32 u8]);

/// What `as` gives, but as selects around a plain conversion: LLVM vectorises that and not `as`.
macro_rules! truncations {
    ($($S:ident)* => $D:tt) => { $(truncations!(@ $S => $D);)* };
    (@ $S:ident => [$($D:ident)*]) => {$(
        impl Cast<$D> for $S {
            #[inline(always)]
            fn cast(self) -> $D {
                // Zero or powers of two, so both bounds are exact.
                const LEAST: $S = $D::MIN as $S;
                const PAST: $S = ($D::MAX / 2 + 1) as $S * 2.0;
                let inside = (LEAST..PAST).contains(&self);
                let safe = if inside { self } else { 0.0 };
                // SAFETY: `safe` is finite and within the bounds of the integer.
                let y: $D = unsafe { safe.to_int_unchecked() };
                let y = if self >= PAST { $D::MAX } else { y };
                if self < LEAST { $D::MIN } else { y }
            }
        }
    )*};
}
truncations!(f32 f64 => [i32 i64 u32]);

macro_rules! to_byte {
    ($($S:ident)*) => {$(
        impl Cast<u8> for $S {
            #[inline(always)]
            fn cast(self) -> u8 {
                let y: i32 = self.cast();
                y.clamp(0, 255) as u8
            }
        }
    )*};
}
to_byte!(f32 f64);

leveled! {
    /// out = x in another class.
    pub(crate) fn convert[S: Cast<D>, D: LaneElement](x: &[S], out: &mut [D]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, &x) in out.iter_mut().zip(x) {
            *o = x.cast();
        }
    }

    /// out = 1 where x is not zero (so also at NaN), 0 elsewhere.
    pub(crate) fn to_bool[S: LaneElement](x: &[S], out: &mut [u8]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, &x) in out.iter_mut().zip(x) {
            *o = u8::from(x != S::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! agrees_with_as {
        ($x:expr, $S:ident => $($D:ident)*) => {$({
            let x: Vec<$S> = $x;
            let mut out = vec![<$D>::default(); x.len()];
            convert(&x, &mut out);
            for (&x, &y) in x.iter().zip(&out) {
                let z = x as $D;
                #[allow(clippy::eq_op)]
                let same = y == z || (y != y && z != z);
                assert!(same, "{x:?} as {}: {y:?}, not {z:?}", stringify!($D));
            }
        })*};
    }

    #[test]
    fn all_pairs() {
        let floats: Vec<f64> = vec![
            0.0,
            -0.0,
            1.9,
            -1.9,
            127.5,
            128.0,
            255.9,
            256.0,
            -0.9,
            2147483520.0,
            2147483647.5,
            2147483648.0,
            -2147483648.0,
            -2147483649.0,
            9.3e18,
            -9.3e18,
            9.2e18,
            1e300,
            -1e300,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-300,
            3e38,
            4294967040.0,
            4294967295.5,
            4294967296.0,
        ];
        let ints: Vec<i64> = vec![
            0,
            1,
            -1,
            255,
            256,
            -129,
            i64::MAX,
            i64::MIN,
            i32::MAX as i64 + 1,
            u32::MAX as i64,
            16_777_217,
        ];
        agrees_with_as!(floats.clone(), f64 => f32 f64 i32 i64 u32 u8);
        agrees_with_as!(floats.iter().map(|&x| x as f32).collect(), f32 => f32 f64 i32 i64 u32 u8);
        agrees_with_as!(ints.clone(), i64 => f32 f64 i32 i64 u32 u8);
        agrees_with_as!(ints.iter().map(|&x| x as i32).collect(), i32 => f32 f64 i32 i64 u32 u8);
        agrees_with_as!(ints.iter().map(|&x| x as u32).collect(), u32 => f32 f64 i32 i64 u32 u8);
        agrees_with_as!((0..=255).collect(), u8 => f32 f64 i32 i64 u32 u8);
    }

    #[test]
    fn truth() {
        let mut out = [9; 5];
        to_bool(&[0.0f32, -0.0, 1e-45, f32::NAN, -3.0], &mut out);
        assert_eq!(out, [0, 0, 1, 1, 1]);
    }
}
