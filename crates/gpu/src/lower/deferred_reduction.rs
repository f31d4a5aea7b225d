//! Dispatches that nobody waits for. Many a kernel sums parts of columns in one dispatch, and the sums of the parts in a second
//! one: a few workgroups, which are done as soon as they have begun. So those wait until somebody asks for their results, or for
//! the memory of the parts, and then run side by side.

use super::bindings::{BindingUse, PendingDispatch};
use super::{Builder, CompileMode, MAX_SHADER_BYTES, Scratch};
use crate::caps::COMPUTE_UNITS;
use crate::dispatch::{Dispatch, Memory};
use volta_ir::error::Result;

/// Bytes of parts that may wait for their sum. Kernels that have more memory of their own find it free.
const MAX_HELD: usize = 8 << 20;

/// Dispatches that wait, and where the memory ends that they read.
#[derive(Default)]
pub(super) struct DeferredReductions {
    shares: Vec<PendingDispatch>,
    pub end: usize,
}

impl Builder<'_> {
    /// Adds the last dispatch of a kernel whose memory this is, now or later.
    pub(super) fn add_last(&mut self, share: PendingDispatch, scratch: &Scratch) -> Result<()> {
        if !self.is_deferrable(&share) {
            return self.add_share(share);
        }
        self.add_late_before(&share.seen)?;
        self.late.shares.push(share);
        self.late.end = self.late.end.max(scratch.end);
        if self.late.end > self.aside_end() + MAX_HELD { self.flush_deferred() } else { Ok(()) }
    }

    /// Whether it sums what the dispatches before it, which have all been added, wrote to memory of their own, and reads nothing
    /// else. Small ones wait in their own way (see `serial_fusion`).
    fn is_deferrable(&self, share: &PendingDispatch) -> bool {
        let Dispatch { bindings, groups, .. } = &share.part.dispatch;
        let is_scratch = |memory| matches!(memory, Memory::Scratch(_));
        self.usage != CompileMode::Checked
            && self.depth == 0
            && self.waiting.is_empty()
            && !self.is_small(share)
            && (1..=COMPUTE_UNITS as u64).contains(groups)
            && bindings.iter().any(|b| b.reads)
            && bindings.iter().all(|b| b.reads == is_scratch(b.memory) && b.reads != b.writes)
    }

    /// Makes room for a kernel with so much memory of its own.
    pub(super) fn make_room(&mut self, scratch: &[u64]) -> Result<()> {
        if scratch.iter().sum::<u64>() as usize > MAX_HELD { self.flush_deferred() } else { Ok(()) }
    }

    /// Adds what a dispatch that sees this memory has to find done.
    pub(super) fn add_late_before(&mut self, seen: &[BindingUse]) -> Result<()> {
        let mut late = self.late.shares.iter().flat_map(|share| &share.seen);
        let asked = late.any(|a| seen.iter().any(|b| a.has_hazard_with(b)));
        if asked { self.flush_deferred() } else { Ok(()) }
    }

    /// Adds all deferred reductions; before it small dispatches that wait, which may have asked for some of it.
    pub(super) fn flush_deferred(&mut self) -> Result<()> {
        self.flush_serial()?;
        let mut shares = std::mem::take(&mut self.late).shares;
        while !shares.is_empty() {
            shares = self.emit_fused(shares, MAX_SHADER_BYTES)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::lower::selections::Selections;
    use crate::lower::{BindingSource, CompileMode, DispatchSpec, lower_plan};
    use crate::snapshots::{rules, target, validate};
    use volta::with_last_plan;
    use volta::{Device, default_device, with_device};
    use volta::{Tensor, realize_all};
    use volta_ir::plan::Plan;
    use volta_ir::plan::memory::DeviceLimits;

    /// The kernels of every dispatch of a plan, each in a wave of its own.
    fn dispatches(mut plan: Plan, usage: CompileMode) -> Vec<Vec<usize>> {
        plan.kernels.iter_mut().enumerate().for_each(|(k, kernel)| kernel.wave = k);
        let (rules, selections) = (rules(), Selections::default());
        let target = target(&Caps::FULL, &rules, &selections);
        let lowered = lower_plan(&plan, &target, usage).expect("the plan has shaders");
        for shader in &lowered.shaders {
            validate(&shader.source, naga::valid::Capabilities::all());
        }
        lowered.specs.into_iter().map(|spec| spec.kernels).collect()
    }

    fn columns(shape: [usize; 2]) -> Tensor {
        Tensor::rand(shape).realize().sum_dim([0], false)
    }

    #[test]
    fn second_dispatches_run_side_by_side_in_the_end() {
        let plan = with_device(Device::Cpu, || {
            realize_all(&[columns([4096, 512]), columns([8192, 260])]);
            with_last_plan(Plan::clone)
        });
        assert_eq!(dispatches(plan.clone(), CompileMode::Baseline), [vec![0], vec![1], vec![0, 1]]);
        let guarded = dispatches(plan, CompileMode::Checked);
        assert!(guarded.iter().all(|kernels| kernels.len() <= 1));
    }

    /// Whether the kernel called `writer` is done before the one called `reader` begins, however the plan is used.
    fn assert_in_order(tensors: &[Tensor], writer: &str, reader: &str) {
        realize_all(tensors);
        let plan = with_last_plan(Plan::clone);
        let number = |name: &str| {
            let labels: Vec<&str> = plan.kernels.iter().map(|kernel| kernel.label.as_str()).collect();
            labels
                .iter()
                .position(|label| label.contains(name))
                .unwrap_or_else(|| panic!("{name} in {labels:?}"))
        };
        let (writer, reader) = (number(writer), number(reader));
        assert_ne!(writer, reader);
        for usage in [CompileMode::Baseline, CompileMode::Optimized, CompileMode::Checked] {
            let all = dispatches(plan.clone(), usage);
            let done = all.iter().rposition(|kernels| kernels.contains(&writer)).expect("it runs");
            let begun = all.iter().position(|kernels| kernels.contains(&reader)).expect("it runs");
            assert!(done < begun || all[done] == all[begun], "{usage:?}: {all:?}");
        }
    }

    #[test]
    fn whoever_asks_for_a_sum_finds_it_done() {
        with_device(Device::Cpu, || {
            // Kernels of their own, one of which is small.
            assert_in_order(&[columns([4096, 512]).cumsum(0), columns([8192, 260])], "sum_dim", "cumsum");
            let (few, many) =
                (Tensor::rand([260]).realize().clone(), Tensor::rand([400, 260]).realize().clone());
            assert_in_order(&[(columns([4096, 260]) * &few).cumsum(0)], "sum_dim", "cumsum");
            assert_in_order(&[(columns([4096, 260]).cumsum(0) + &many).cumsum(1)], "sum_dim", "cumsum");
            // Of a small tensor, for a large one.
            let loss = Tensor::rand([64, 100]).realize().exp().sum_dim([1], false).log().mean();
            assert_in_order(&[Tensor::rand([2048, 2048]).realize() * loss], "mean", "mul");
        });
    }

    #[test]
    fn much_memory_is_free_for_whoever_needs_it() {
        with_device(Device::Cpu, || {
            // A small kernel waits for the sum, and behind it comes one with much memory of its own.
            let sorted = Tensor::rand([4 << 20]).realize().argsort(0, false);
            assert_in_order(&[columns([4096, 512]).cumsum(0), sorted], "sum_dim", "cumsum");
        });
    }

    #[test]
    fn turns_of_a_product_find_what_was_summed_before() {
        let plan = with_device(Device::Cpu, || {
            let sums = Tensor::rand([16_000, 28]).realize().sum_dim([0], true);
            realize_all(&[sums.matmul(Tensor::rand([28, 131_072]).realize())]);
            with_last_plan(Plan::clone)
        });
        let rules = DeviceLimits { block: 1 << 18, slots: 8, ..rules() };
        let selections = Selections::default();
        let target = target(&Caps::MINIMAL, &rules, &selections);
        let lowered = lower_plan(&plan, &target, CompileMode::Baseline).expect("the plan has shaders");
        let product = plan.kernels.iter().position(|k| k.kind() == "matmul").expect("it runs");
        let passes: Vec<&DispatchSpec> = lowered.specs.iter().filter(|d| d.kernels == [product]).collect();
        let scratch_slots = |source: &BindingSource| match source {
            BindingSource::Arena { block, start, .. } if block % rules.region_period() == rules.regions => {
                Some((*block, *start))
            }
            _ => None,
        };
        let mut places: Vec<_> =
            passes.iter().filter_map(|pass| pass.sources.iter().find_map(scratch_slots)).collect();
        assert!(places.len() > 1, "{} dispatches", passes.len());
        places.dedup();
        assert_eq!(places.len(), 1, "{places:?}");
    }

    /// On the GPU that `VOLTA_DEVICE=gpu` picks.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn late_sums_are_right() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let ones = |shape: [usize; 2]| Tensor::ones(shape).realize().sum_dim([0], false);
        let all: Vec<Tensor> = (1..8).map(|k| ones([1024 * k, 64 + k])).collect();
        let (early, late) = (all[0].cumsum(0), all[6].cumsum(0));
        realize_all(&[all.as_slice(), &[early.clone(), late.clone()]].concat());
        for (k, sums) in (1..).zip(&all) {
            assert_eq!(sums.to_vec::<f32>(), vec![1024.0 * k as f32; 64 + k]);
        }
        assert_eq!(early.to_vec::<f32>()[64], 65.0 * 1024.0);
        assert_eq!(late.to_vec::<f32>()[70], 71.0 * 7168.0);
    }
}
