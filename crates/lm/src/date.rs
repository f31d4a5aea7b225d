//! The date, as model files have it.

#[cfg(not(target_arch = "wasm32"))]
use std::time::{SystemTime, UNIX_EPOCH};
#[cfg(target_arch = "wasm32")]
use web_time::{SystemTime, UNIX_EPOCH};

/// `2026-03-01 12:30:05`, in UTC.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    written(seconds)
}

/// Seconds since 1970 as a date and a time.
fn written(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date of a day since 1970, by counting in years that begin with March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, from_january) =
        (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (year + era * 400 + u64::from(from_january <= 2), from_january, day)
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn known_moments_are_written_right() {
        assert_eq!(written(0), "1970-01-01 00:00:00");
        assert_eq!(written(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(written(1_709_251_199), "2024-02-29 23:59:59");
        assert_eq!(written(4_102_444_800), "2100-01-01 00:00:00");
    }
}
