//! Where the submission of a plan is cut. Operating systems reset a GPU that answers nobody for a second or two, so no
//! submission should take long, even on a slow device. How long kernels take is known roughly, from their arithmetic
//! and their traffic.

use super::adapter::AdapterKind;
use crate::plan::kernel::Kernel;

/// Seconds that a submission may take, as estimated.
pub(super) const LONGEST: f64 = 0.5;

/// What a slow device of its kind does in a second.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    flops: f64,
    bytes: f64,
}

impl Pace {
    pub fn of(kind: AdapterKind) -> Pace {
        match kind {
            AdapterKind::Discrete => Pace { flops: 2e12, bytes: 100e9 },
            AdapterKind::Software => Pace { flops: 5e9, bytes: 2e9 },
            AdapterKind::Integrated | AdapterKind::Virtual | AdapterKind::Other => {
                Pace { flops: 200e9, bytes: 10e9 }
            }
        }
    }

    /// The seconds that a kernel takes, at most.
    pub fn seconds(self, kernel: &Kernel) -> f64 {
        let bytes = kernel.bytes_read + kernel.bytes_written;
        kernel.flops as f64 / self.flops + bytes as f64 / self.bytes
    }
}

/// Dispatches that are submitted while those behind them are still being encoded: first few, so that the device begins
/// early, then more.
const BEGIN_EARLY: usize = 16;
const AT_ONCE: usize = 48;

/// The dispatches that a new submission starts with, in order, from the seconds of each; the first one always does, and
/// is not named. A submission ends before it would take longer than `most`, or after a dispatch that takes longer by
/// itself, or, if the device is to begin `early`, when there are enough of them.
pub(super) fn cuts(seconds: &[f64], most: f64, early: bool) -> Vec<usize> {
    let (mut cuts, mut since, mut until) = (Vec::new(), 0.0, BEGIN_EARLY);
    for (k, &next) in seconds.iter().enumerate() {
        let long = since > 0.0 && since + next > most;
        let many = early && k >= until && seconds.len() - k >= BEGIN_EARLY;
        if long || many {
            cuts.push(k);
            (since, until) = (0.0, k + AT_ONCE);
        }
        since += next;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_plans_are_one_submission() {
        assert!(cuts(&[], 0.5, true).is_empty());
        assert!(cuts(&[0.1; 5], 0.5, true).is_empty());
        assert!(cuts(&[3.0], 0.5, true).is_empty());
    }

    #[test]
    fn no_submission_takes_longer_than_it_must_and_none_is_empty() {
        assert_eq!(cuts(&[0.2; 7], 0.5, true), [2, 4, 6]);
        assert_eq!(cuts(&[0.1, 2.0, 0.1, 0.1], 0.5, true), [1, 2]);
        assert_eq!(cuts(&[0.0, 0.0, 2.0, 0.0, 2.0], 0.5, true), [3]);
        for seconds in [vec![0.3, 0.1, 0.4, 0.6, 0.05, 0.05, 0.9], vec![0.01; 500]] {
            let mut edges = vec![0];
            edges.extend(cuts(&seconds, 0.5, true));
            edges.push(seconds.len());
            for edge in edges.windows(2) {
                let part = &seconds[edge[0]..edge[1]];
                assert!(!part.is_empty());
                assert!(part.len() == 1 || part.iter().sum::<f64>() <= 0.5 + 1e-9, "{part:?}");
            }
        }
    }

    #[test]
    fn the_device_begins_early_and_then_gets_more_at_once() {
        assert!(cuts(&[0.0; 31], 0.5, true).is_empty());
        assert_eq!(cuts(&[0.0; 32], 0.5, true), [16]);
        assert_eq!(cuts(&[0.0; 150], 0.5, true), [16, 64, 112]);
        assert!(cuts(&[0.0; 150], 0.5, false).is_empty());
        assert_eq!(cuts(&[0.125; 10], 0.5, false), [4, 8]);
    }

    #[test]
    fn slower_kinds_are_cut_more_often() {
        let kernel = |flops| Kernel {
            work: crate::plan::kernel::Work::Map(Vec::new()),
            turn: 0,
            label: String::new(),
            parts: Vec::new(),
            flops,
            bytes_read: 1 << 20,
            bytes_written: 1 << 20,
        };
        let submissions = |kind: AdapterKind| {
            let pace = Pace::of(kind);
            cuts(&[pace.seconds(&kernel(100_000_000_000)); 20], LONGEST, true).len() + 1
        };
        assert_eq!(submissions(AdapterKind::Software), 20);
        assert_eq!(submissions(AdapterKind::Integrated), 20);
        assert_eq!(submissions(AdapterKind::Discrete), 3);
    }
}
