//! Half-precision floats: loading, storing and rounding f32 lanes to their precision.
//!
//! Bit arithmetic that vectorises at every level; rounding is to nearest even, NaN stays NaN.

use super::isa::leveled;
use half::{bf16, f16};

const SIGN: u32 = 0x8000_0000;
const INFINITE: u32 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;

/// The f32 with the value of the f16 of these bits.
#[inline(always)]
fn widen_f16(bits: u16) -> f32 {
    /// The least normal f16, 2^-14.
    const MIN_NORMAL_F16: u32 = 113 << 23;
    let h = u32::from(bits);
    let magnitude = (h & 0x7fff) << 13;
    let exponent = h & 0x7c00;
    let normal = magnitude.wrapping_add(112 << 23);
    // Subnormal: set the digits below 2^-14 and take 2^-14 off, exactly.
    let subnormal = (f32::from_bits(MIN_NORMAL_F16 + magnitude) - f32::from_bits(MIN_NORMAL_F16)).to_bits();
    let y = if exponent == 0 { subnormal } else { normal };
    let y = if exponent == 0x7c00 { magnitude | INFINITE } else { y };
    f32::from_bits(y | ((h & 0x8000) << 16))
}

/// The nearest value an f16 has, as f32 bits without the sign.
#[inline(always)]
fn round_magnitude(a: u32) -> u32 {
    /// From here on (65520) a value rounds to infinity.
    const OVERFLOW: u32 = 0x477f_f000;
    // Drop 13 digits, half to even.
    let normal = a.wrapping_add(0xfff + ((a >> 13) & 1)) & !0x1fff;
    // Below 2^-14 the last digit is worth 2^-24, as it is in 1/2: adding that rounds there.
    let subnormal = ((f32::from_bits(a) + 0.5) - 0.5).to_bits();
    let y = if a < 113 << 23 { subnormal } else { normal };
    let y = if a >= OVERFLOW { INFINITE } else { y };
    if a > INFINITE { QUIET_NAN } else { y }
}

/// The f16 bits of an f32, rounded.
#[inline(always)]
fn narrow_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let a = bits & !SIGN;
    let normal = a.wrapping_add(0xfff + ((a >> 13) & 1)).wrapping_sub(112 << 23) >> 13;
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let y = if a < 113 << 23 { subnormal } else { normal };
    let y = if a >= 0x477f_f000 { 0x7c00 } else { y };
    let y = if a > INFINITE { 0x7e00 } else { y };
    (y | ((bits & SIGN) >> 16)) as u16
}

/// f32 bits rounded to the upper half, where a bf16 lies; the lower half is left over.
#[inline(always)]
fn round_upper(x: f32) -> u32 {
    let bits = x.to_bits();
    let y = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    if bits & !SIGN > INFINITE { bits | QUIET_NAN } else { y }
}

leveled! {
    /// `out` = `x`, which is as long.
    pub fn load_f16(x: &[f16], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, x) in out.iter_mut().zip(x) {
            *o = widen_f16(x.to_bits());
        }
    }

    /// out = x.
    pub(crate) fn load_bf16(x: &[bf16], out: &mut [f32]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, x) in out.iter_mut().zip(x) {
            *o = f32::from_bits(u32::from(x.to_bits()) << 16);
        }
    }

    /// `out` = `x`, which is as long, rounded to the nearest.
    pub fn store_f16(x: &[f32], out: &mut [f16]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, &x) in out.iter_mut().zip(x) {
            *o = f16::from_bits(narrow_f16(x));
        }
    }

    /// out = x, rounded.
    pub(crate) fn store_bf16(x: &[f32], out: &mut [bf16]) {
        assert_eq!(x.len(), out.len(), "block lengths differ");
        for (o, &x) in out.iter_mut().zip(x) {
            *o = bf16::from_bits((round_upper(x) >> 16) as u16);
        }
    }

    /// Rounds each lane to a value f16 has.
    pub(crate) fn round_f16(x: &mut [f32]) {
        for x in x {
            let bits = x.to_bits();
            *x = f32::from_bits(round_magnitude(bits & !SIGN) | (bits & SIGN));
        }
    }

    /// Rounds each lane to a value bf16 has.
    pub(crate) fn round_bf16(x: &mut [f32]) {
        for x in x {
            *x = f32::from_bits(round_upper(*x) & 0xffff_0000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn every_half_loads_exactly() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let mut out = vec![0.0; bits.len()];
        let h: Vec<f16> = bits.iter().map(|&b| f16::from_bits(b)).collect();
        load_f16(&h, &mut out);
        assert!(h.iter().zip(&out).all(|(h, &o)| same(h.to_f32(), o)));
        let h: Vec<bf16> = bits.iter().map(|&b| bf16::from_bits(b)).collect();
        load_bf16(&h, &mut out);
        assert!(h.iter().zip(&out).all(|(h, &o)| same(h.to_f32(), o)));
    }

    #[test]
    fn storing_and_rounding_go_to_the_nearest() {
        // A sweep of all f32, and both sides of every tie between halves.
        let ties = (0..=u16::MAX).flat_map(|b| {
            let f = f16::from_bits(b).to_f32().to_bits();
            let t = f.wrapping_add(0x1000);
            let u = (u32::from(b) << 16) + 0x8000;
            [f, t.wrapping_sub(1), t, t.wrapping_add(1), u - 1, u, u + 1]
        });
        let subnormal_ties = (0..2100u32).map(|i| (i as f32 * 2f32.powi(-25)).to_bits());
        let x: Vec<f32> =
            (0..=u32::MAX).step_by(10_007).chain(ties).chain(subnormal_ties).map(f32::from_bits).collect();
        let (mut h, mut b) = (vec![f16::ZERO; x.len()], vec![bf16::ZERO; x.len()]);
        let (mut rh, mut rb) = (x.clone(), x.clone());
        store_f16(&x, &mut h);
        store_bf16(&x, &mut b);
        round_f16(&mut rh);
        round_bf16(&mut rb);
        for i in 0..x.len() {
            let (wide, wider) = (f16::from_f32(x[i]).to_f32(), bf16::from_f32(x[i]).to_f32());
            assert!(same(h[i].to_f32(), wide) && same(rh[i], wide), "f16 of {:e}", x[i]);
            assert!(same(b[i].to_f32(), wider) && same(rb[i], wider), "bf16 of {:e}", x[i]);
        }
    }
}
