//! Looking for integers of which an assertion does not hold.

use super::Cast;
use volta_ir::op::Assertion;

/// The first of them, if there is one.
pub(crate) fn first_failure<T: Cast<i64> + Copy>(assertion: Assertion, x: &[T]) -> Option<i64> {
    match assertion {
        // As unsigned numbers, negative ones are too large.
        Assertion::InBounds { extent } => first(x, |number| number as u64 >= extent as u64),
        Assertion::NonZero => first(x, |number| number == 0),
    }
}

/// Without a branch for every lane, since nearly always there is none.
fn first<T: Cast<i64> + Copy>(x: &[T], fails: impl Fn(i64) -> bool) -> Option<i64> {
    let any = x.iter().fold(false, |any, &x| any | fails(x.cast()));
    if any { x.iter().map(|&x| x.cast()).find(|&number| fails(number)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fails_is_found_in_every_type() {
        let below = Assertion::InBounds { extent: 5 };
        assert_eq!(first_failure(below, &[0i32, 4, 5, -1]), Some(5));
        assert_eq!(first_failure(below, &[0i64, -1, 1 << 40]), Some(-1));
        assert_eq!(first_failure(below, &[0u32, u32::MAX]), Some(i64::from(u32::MAX)));
        assert_eq!(first_failure(below, &[0u8, 4]), None);
        assert_eq!(first_failure(Assertion::InBounds { extent: 0 }, &[0i32]), Some(0));
        assert_eq!(first_failure(Assertion::NonZero, &[-1i32, 7]), None);
        assert_eq!(first_failure(Assertion::NonZero, &[1u8, 0]), Some(0));
    }
}
