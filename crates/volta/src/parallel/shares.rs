//! Shares of the work for devices of different speed.

use crate::error::{Result, bail};

/// Shares out `count` things in proportion to `speeds`: each worker gets at least one, and all together get all of them.
///
/// ```
/// use volta::parallel::shares;
/// assert_eq!(shares(8, &[3.0, 1.0])?, [6, 2]);
/// assert_eq!(shares(4, &[1000.0, 1.0, 1.0])?, [2, 1, 1]);
/// # Ok::<(), volta::Error>(())
/// ```
pub fn shares(count: usize, speeds: &[f64]) -> Result<Vec<usize>> {
    if speeds.iter().any(|speed| !(speed.is_finite() && *speed > 0.0)) {
        bail!(Argument, "speeds are numbers more than 0, and these are {speeds:?}");
    }
    if speeds.is_empty() || count < speeds.len() {
        bail!(Argument, "{count} parts do not give each of {} devices one", speeds.len());
    }
    let total: f64 = speeds.iter().sum();
    // One for each; then always to whoever would be done first with one more.
    let mut all = vec![1; speeds.len()];
    // Most of them at once: no share is rounded up here.
    let free = (count - speeds.len()) as f64;
    for (share, speed) in all.iter_mut().zip(speeds) {
        *share = 1.max((free * speed / total) as usize);
    }
    while all.iter().sum::<usize>() < count {
        let time = |k: usize| (all[k] + 1) as f64 / speeds[k];
        let next = (0..all.len()).min_by(|&a, &b| time(a).total_cmp(&time(b)));
        all[next.expect("there are workers")] += 1;
    }
    Ok(all)
}

/// How fast each device has been, as means over the last steps.
#[derive(Clone, Debug)]
pub struct Speeds {
    rows_per_second: Vec<Option<f64>>,
}

/// How much a new measurement counts in a mean.
const MOMENTUM: f64 = 0.2;

impl Speeds {
    /// Of so many devices, of which nothing is known yet.
    pub fn new(devices: usize) -> Speeds {
        Speeds { rows_per_second: vec![None; devices] }
    }

    /// Takes in that a device took so many seconds for so many rows.
    pub fn add(&mut self, device: usize, rows: usize, seconds: f64) {
        if seconds > 0.0 {
            let measured = rows as f64 / seconds;
            let mean = &mut self.rows_per_second[device];
            *mean = Some(mean.map_or(measured, |mean| mean + MOMENTUM * (measured - mean)));
        }
    }

    /// The shares of `count` that suit them; equal ones until all are known.
    pub fn shares(&self, count: usize) -> Result<Vec<usize>> {
        let known: Option<Vec<f64>> = self.rows_per_second.iter().copied().collect();
        shares(count, &known.unwrap_or_else(|| vec![1.0; self.rows_per_second.len()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_shared_out_and_nobody_gets_nothing() {
        for count in 3..40 {
            for speeds in [[1.0, 1.0, 1.0], [1.0, 5.0, 2.0], [1e-9, 1.0, 1e9]] {
                let all = shares(count, &speeds).unwrap();
                assert_eq!(all.iter().sum::<usize>(), count, "{speeds:?}");
                assert!(all.iter().all(|&share| share > 0));
            }
        }
        assert_eq!(shares(10, &[1.0, 1.0, 1.0]).unwrap(), [4, 3, 3]);
        assert_eq!(shares(16, &[1.0, 3.0]).unwrap(), [4, 12]);
        assert!(shares(2, &[1.0; 3]).is_err() && shares(3, &[1.0, f64::NAN]).is_err());
    }

    #[test]
    fn shares_follow_what_was_measured() {
        let mut speeds = Speeds::new(2);
        speeds.add(0, 10, 1.0);
        assert_eq!(speeds.shares(8).unwrap(), [4, 4], "the other device is not known yet");
        speeds.add(1, 30, 1.0);
        assert_eq!(speeds.shares(8).unwrap(), [2, 6]);
        (0..40).for_each(|_| speeds.add(1, 10, 1.0));
        assert_eq!(speeds.shares(8).unwrap(), [4, 4]);
    }
}
