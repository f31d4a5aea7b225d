//! Times as people write them.

use std::time::Duration;

/// `1 h 02 min`, `3 min 20 s`, `12.3 s`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::span;
    use std::time::Duration;

    #[test]
    fn spans_have_two_units_at_most() {
        assert_eq!(span(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(span(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(span(Duration::from_secs(3720)), "1 h 02 min");
    }
}
