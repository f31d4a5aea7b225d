//! Where the submission of a plan is cut. Operating systems reset a GPU that answers nobody for a second or two, so no
//! submission should take long, even on a slow device. How long kernels take is known roughly, from their arithmetic
//! and their traffic. What would take too long by itself is several dispatches, each of some of its workgroups.

use crate::caps::AdapterKind;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::{Kernel, KernelBody};

/// Milliseconds that a submission may take, as estimated, unless `VOLTA_MAX_DISPATCH_MS` says otherwise.
const DEFAULT_MAX_DISPATCH_MS: f64 = 500.0;

/// Dispatches that one is cut into, unless each would have too many workgroups.
const MAX_PARTS: u64 = 64;

/// What a slow device of its kind does in a second.
#[derive(Clone, Copy)]
pub(crate) struct CostModel {
    flops: f64,
    bytes: f64,
    /// Seconds that a submission may take.
    pub time_budget: f64,
}

impl CostModel {
    pub fn of(kind: AdapterKind) -> CostModel {
        let (flops, bytes) = match kind {
            AdapterKind::Discrete => (2e12, 100e9),
            AdapterKind::Software => (5e9, 2e9),
            AdapterKind::Integrated | AdapterKind::Virtual | AdapterKind::Other => (200e9, 10e9),
        };
        let asked = volta_ir::environment::values().max_dispatch_ms;
        CostModel { flops, bytes, time_budget: asked.unwrap_or(DEFAULT_MAX_DISPATCH_MS) / 1000.0 }
    }

    /// The seconds that a kernel takes, at most.
    pub fn seconds(self, kernel: &Kernel) -> f64 {
        let bytes = kernel.bytes_read + kernel.bytes_written;
        kernel.flops as f64 / self.flops + bytes as f64 / self.bytes
    }

    /// The seconds that a dispatch of a kernel takes, of so many that it has. Every one of those that sort moves all that is
    /// sorted.
    pub fn seconds_each(self, kernel: &Kernel, dispatches: usize) -> f64 {
        let sorts = matches!(&kernel.body, KernelBody::Native(s) if matches!(s.op, NativeOp::ArgSort { .. }));
        self.seconds(kernel) / if sorts { 1.0 } else { dispatches as f64 }
    }

    /// The workgroups of such a kernel that run at a time, of so many.
    pub fn workgroups_per_dispatch(self, kernel: &Kernel, groups: u64) -> u64 {
        let parts = (self.seconds(kernel) / self.time_budget).ceil().max(1.0) as u64;
        groups.div_ceil(parts.min(MAX_PARTS))
    }
}

/// Dispatches that are submitted while those behind them are still being encoded: first few, so that the device begins
/// early, then more.
const BEGIN_EARLY: usize = 16;
const AT_ONCE: usize = 48;

/// The dispatches that a new submission starts with, in order, from the seconds of each; the first one always does, and
/// is not named. A submission ends before it would take longer than `most`, or after a dispatch that takes longer by
/// itself, or, if the device is to begin `early`, when there are enough of them.
pub(crate) fn submission_boundaries(seconds: &[f64], most: f64, early: bool) -> Vec<usize> {
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
        assert!(submission_boundaries(&[], 0.5, true).is_empty());
        assert!(submission_boundaries(&[0.1; 5], 0.5, true).is_empty());
        assert!(submission_boundaries(&[3.0], 0.5, true).is_empty());
    }

    #[test]
    fn no_submission_takes_longer_than_it_must_and_none_is_empty() {
        assert_eq!(submission_boundaries(&[0.2; 7], 0.5, true), [2, 4, 6]);
        assert_eq!(submission_boundaries(&[0.1, 2.0, 0.1, 0.1], 0.5, true), [1, 2]);
        assert_eq!(submission_boundaries(&[0.0, 0.0, 2.0, 0.0, 2.0], 0.5, true), [3]);
        for seconds in [vec![0.3, 0.1, 0.4, 0.6, 0.05, 0.05, 0.9], vec![0.01; 500]] {
            let mut edges = vec![0];
            edges.extend(submission_boundaries(&seconds, 0.5, true));
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
        assert!(submission_boundaries(&[0.0; 31], 0.5, true).is_empty());
        assert_eq!(submission_boundaries(&[0.0; 32], 0.5, true), [16]);
        assert_eq!(submission_boundaries(&[0.0; 150], 0.5, true), [16, 64, 112]);
        assert!(submission_boundaries(&[0.0; 150], 0.5, false).is_empty());
        assert_eq!(submission_boundaries(&[0.125; 10], 0.5, false), [4, 8]);
    }

    fn kernel(flops: u64) -> Kernel {
        Kernel {
            body: volta_ir::plan::kernel::KernelBody::Map(Vec::new()),
            wave: 0,
            purpose: volta_ir::plan::kernel::Purpose::First,
            label: String::new(),
            parts: Vec::new(),
            flops,
            bytes_read: 1 << 20,
            bytes_written: 1 << 20,
        }
    }

    #[test]
    fn what_takes_long_by_itself_has_some_workgroups_at_a_time() {
        let cost_model = CostModel { flops: 1e9, bytes: 1e9, time_budget: 0.5 };
        assert_eq!(cost_model.workgroups_per_dispatch(&kernel(1_000_000), 100), 100);
        assert_eq!(cost_model.workgroups_per_dispatch(&kernel(1_200_000_000), 100), 34);
        assert_eq!(cost_model.workgroups_per_dispatch(&kernel(1_200_000_000), 1), 1);
        assert_eq!(cost_model.workgroups_per_dispatch(&kernel(u64::MAX), 1 << 20), 1 << 14);
    }

    #[test]
    fn every_pass_of_a_sort_takes_as_long_as_one_does() {
        use volta_ir::plan::Plan;
        let sort = volta::with_device(volta::Device::Cpu, || {
            volta::Tensor::rand([5000]).realize().argsort(0, false).realize();
            volta::with_last_plan(Plan::clone).kernels.remove(0)
        });
        let cost_model = CostModel { flops: 1e9, bytes: 1e9, time_budget: 0.5 };
        assert_eq!(cost_model.seconds_each(&sort, 4), cost_model.seconds(&sort));
        let others = kernel(1_000_000);
        assert_eq!(cost_model.seconds_each(&others, 4), cost_model.seconds(&others) / 4.0);
    }

    /// Every workgroup runs once, each dispatch knowing which is its first, and with one shader.
    #[test]
    fn a_long_kernel_is_several_dispatches() {
        use crate::caps::Caps;
        use crate::codegen::Uniform;
        use crate::lower::selections::Selections;
        use crate::lower::{CompileMode, LoweringTarget, lower_plan};
        use crate::snapshots::{numbers, rules, target, validate};
        volta::with_device(volta::Device::Cpu, || {
            (numbers([512, 64]).matmul(&numbers([64, 512])) * 3.0).realize().clone()
        });
        let (rules, selections) = (rules(), Selections::default());
        let lowered_within = |longest| {
            let cost_model = CostModel { flops: 1e9, bytes: 1e12, time_budget: longest };
            let target = LoweringTarget { cost_model, ..target(&Caps::MINIMAL, &rules, &selections) };
            volta::with_last_plan(|plan| lower_plan(plan, &target, CompileMode::Baseline))
        };
        let whole = lowered_within(1.0).expect("a product");
        // Two of its terms for every result, and a scale.
        let parts = lowered_within((2 * 64 + 1) as f64 * 512.0 * 512.0 / 1e9 / 4.5).expect("a product");
        let groups = |specs: &[crate::lower::DispatchSpec]| -> Vec<u32> {
            specs.iter().map(|spec| spec.groups[0] * spec.groups[1]).collect()
        };
        assert_eq!((whole.specs.len(), parts.specs.len()), (1, 5));
        assert_eq!(groups(&parts.specs).iter().sum::<u32>(), groups(&whole.specs)[0]);
        let mut first = 0;
        for (spec, shader) in parts.specs.iter().zip(&parts.shaders) {
            assert_eq!(shader.source, parts.shaders[0].source);
            validate(&shader.source, naga::valid::Capabilities::empty());
            let (at, bytes) = spec.uniforms.expect("where it begins");
            let known = |word: &&(usize, Uniform)| (at as usize..(at + bytes) as usize).contains(&word.0);
            let words: Vec<Uniform> = parts.words.iter().filter(known).map(|word| word.1).collect();
            assert_eq!(words.last(), Some(&Uniform::Count(first)), "{words:?}");
            first += spec.groups[0] * spec.groups[1];
        }
    }

    #[test]
    fn slower_kinds_are_cut_more_often() {
        let submissions = |kind: AdapterKind| {
            let cost_model = CostModel::of(kind);
            submission_boundaries(
                &[cost_model.seconds(&kernel(100_000_000_000)); 20],
                cost_model.time_budget,
                true,
            )
            .len()
                + 1
        };
        assert_eq!(submissions(AdapterKind::Software), 20);
        assert_eq!(submissions(AdapterKind::Integrated), 20);
        assert_eq!(submissions(AdapterKind::Discrete), 3);
    }
}
