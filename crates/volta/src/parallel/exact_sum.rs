//! A sum of squares without any rounding: it is the same however its numbers are shared out and in whatever order they come.

/// What a bin counts is this many bits larger than what the one before counts.
const BITS: u32 = 32;
/// Squares of f32 are whole multiples of 2⁻²⁹⁸, and less than 2²⁵⁶.
const SMALLEST: i32 = -298;
const BINS: usize = 16;
const BYTES: usize = 16 * BINS + 1;

/// The sum so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExactSum {
    /// Each has room for 2⁴⁸ squares.
    bins: [u128; BINS],
    /// Whether all numbers were finite.
    is_finite: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { bins: [0; BINS], is_finite: true }
    }
}

impl ExactSum {
    /// Adds the squares of numbers.
    pub fn add_squares(&mut self, numbers: &[f32]) {
        for &number in numbers {
            let bits = number.to_bits();
            let (exponent, fraction) = ((bits >> 23) & 0xff, u64::from(bits & 0x7f_ffff));
            // Subnormal numbers have no bit before the point, and the exponent of the smallest normal ones.
            let (exponent, fraction) =
                if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 23) };
            if exponent == 0xff {
                self.is_finite = false;
                continue;
            }
            let shift = 2 * (exponent - 1);
            self.bins[(shift / BITS) as usize] += u128::from(fraction * fraction) << (shift % BITS);
        }
    }

    /// Adds what another one has.
    pub fn add(&mut self, other: &ExactSum) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, more)| *bin += more);
        self.is_finite &= other.is_finite;
    }

    /// Whether all numbers were finite.
    pub fn is_finite(&self) -> bool {
        self.is_finite
    }

    /// The sum; NaN if a number was not finite.
    pub fn value(&self) -> f64 {
        if !self.is_finite {
            return f64::NAN;
        }
        let bins = self.bins.iter().enumerate().rev();
        bins.fold(0.0, |sum, (k, &bin)| sum + bin as f64 * 2f64.powi(SMALLEST + (BITS as usize * k) as i32))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.bins.iter().flat_map(|bin| bin.to_le_bytes()).collect();
        bytes.push(u8::from(self.is_finite));
        bytes
    }

    /// The sum of what several have given as bytes, one behind the other.
    pub fn of_all(bytes: &[u8]) -> ExactSum {
        let mut all = ExactSum::default();
        for one in bytes.chunks_exact(BYTES) {
            let mut bins = [0; BINS];
            let (sixteens, _) = one.as_chunks::<16>();
            bins.iter_mut().zip(sixteens).for_each(|(bin, bytes)| *bin = u128::from_le_bytes(*bytes));
            all.add(&ExactSum { bins, is_finite: one[BYTES - 1] == 1 });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_and_who_adds_do_not_matter_and_nothing_is_lost() {
        let numbers: Vec<f32> = (0..999)
            .map(|n| (n as f32 * 0.7).sin() * 10f32.powi(n % 60 - 35))
            .chain([f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1), -0.0])
            .collect();
        let mut whole = ExactSum::default();
        whole.add_squares(&numbers);
        let mut bytes = Vec::new();
        for part in numbers.rchunks(100) {
            let mut sum = ExactSum::default();
            part.iter().rev().for_each(|&x| sum.add_squares(&[x]));
            bytes.extend(sum.to_bytes());
        }
        assert_eq!(ExactSum::of_all(&bytes), whole);
        let mut sum = ExactSum::default();
        sum.add_squares(&[3.0, 4.0, f32::from_bits(3), 1e-30]);
        assert_eq!(sum.value(), 25.0);
        let mut tiny = ExactSum::default();
        tiny.add_squares(&[f32::from_bits(3)]);
        assert_eq!(tiny.value(), 9.0 * 2f64.powi(-298));
        let mut large = ExactSum::default();
        large.add_squares(&[f32::MAX]);
        assert_eq!(large.value(), f64::from(f32::MAX).powi(2));
    }

    #[test]
    fn what_is_not_finite_shows() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut sum = ExactSum::default();
            sum.add_squares(&[1.0, bad]);
            assert!(!sum.is_finite() && sum.value().is_nan());
            assert!(
                !ExactSum::of_all(&[ExactSum::default().to_bytes(), sum.to_bytes()].concat()).is_finite()
            );
        }
    }
}
