//! Dispatches that nobody waits for. Many a kernel sums parts of columns in one dispatch, and the sums of the parts in a second
//! one: a few workgroups, which are done as soon as they have begun. So those wait until somebody asks for their results, or for
//! the memory of the parts, and then run side by side.

use super::seen::{Seen, Share, overlap};
use super::{Builder, MOST_TEXT, Scratch, Usage};
use crate::error::Result;
use crate::gpu::dispatch::{Memory, PROCESSORS};
use crate::gpu::map::MapDispatch;

/// Bytes of parts that may wait for their sum. Kernels that have more memory of their own find it free.
const MOST_HELD: usize = 8 << 20;

/// Dispatches that wait, and where the memory ends that they read.
#[derive(Default)]
pub(super) struct Late {
    shares: Vec<Share>,
    pub end: usize,
}

impl Builder<'_> {
    /// Adds the last dispatch of a kernel whose memory this is, now or later.
    pub(super) fn add_last(&mut self, share: Share, scratch: &Scratch) -> Result<()> {
        if !self.can_wait(&share.part) {
            return self.add_share(share);
        }
        self.late.shares.push(share);
        self.late.end = self.late.end.max(scratch.end);
        if self.late.end > self.aside_end() + MOST_HELD { self.add_late() } else { Ok(()) }
    }

    /// Whether it reads nothing but what the dispatches before it, which have all been added, wrote to memory of their own.
    fn can_wait(&self, part: &MapDispatch) -> bool {
        let bindings = &part.dispatch.bindings;
        let is_scratch = |memory| matches!(memory, Memory::Scratch(_));
        self.usage != Usage::Guarded
            && self.depth == 0
            && self.waiting.is_empty()
            && part.dispatch.groups <= PROCESSORS as u64
            && bindings.iter().all(|b| b.reads == is_scratch(b.memory) && b.reads != b.writes)
    }

    /// Makes room for a kernel with so much memory of its own.
    pub(super) fn make_room(&mut self, scratch: &[u64]) -> Result<()> {
        if scratch.iter().sum::<u64>() as usize > MOST_HELD { self.add_late() } else { Ok(()) }
    }

    /// Adds what a dispatch that sees this memory has to find done.
    pub(super) fn add_late_before(&mut self, seen: &[Seen]) -> Result<()> {
        let late = self.late.shares.iter().flat_map(|share| &share.seen);
        let meets = |a: &Seen, b: &Seen| a.sources.iter().any(|s| b.sources.iter().any(|t| overlap(s, t)));
        let asked = late.into_iter().any(|a| seen.iter().any(|b| (a.writes || b.writes) && meets(a, b)));
        if asked { self.add_late() } else { Ok(()) }
    }

    /// Adds all that waits.
    pub(super) fn add_late(&mut self) -> Result<()> {
        let mut shares = std::mem::take(&mut self.late).shares;
        while !shares.is_empty() {
            shares = self.add_together(shares, MOST_TEXT)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Usage, assemble};
    use crate::engine::with_last_plan;
    use crate::gpu::assemble::Target;
    use crate::gpu::dispatch::Caps;
    use crate::gpu::snapshots::{rules, validate};
    use crate::gpu::tune::Choices;
    use crate::plan::Plan;
    use crate::tensor::{Tensor, realize_all};
    use crate::{Device, default_device, with_device};

    /// The kernels of every dispatch of a plan, each in a turn of its own.
    fn dispatches(mut plan: Plan, usage: Usage) -> Vec<Vec<usize>> {
        plan.kernels.iter_mut().enumerate().for_each(|(k, kernel)| kernel.turn = k);
        let (rules, choices) = (rules(), Choices::default());
        let target =
            Target { who: "a GPU of the tests", caps: &Caps::MOST, rules: &rules, choices: &choices };
        let assembly = assemble(&plan, &target, usage).expect("the plan has shaders");
        for shader in &assembly.shaders {
            validate(&shader.source, naga::valid::Capabilities::all());
        }
        assembly.drafts.into_iter().map(|draft| draft.kernels).collect()
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
        assert_eq!(dispatches(plan.clone(), Usage::Seldom), [vec![0], vec![1], vec![0, 1]]);
        let guarded = dispatches(plan, Usage::Guarded);
        assert!(guarded.iter().all(|kernels| kernels.len() <= 1));
    }

    #[test]
    fn whoever_asks_for_a_sum_finds_it_done() {
        let plan = with_device(Device::Cpu, || {
            let (sums, others) = (columns([4096, 512]), columns([8192, 260]));
            // Special, and so a kernel of its own.
            realize_all(&[sums.cumsum(0), others]);
            with_last_plan(Plan::clone)
        });
        assert_eq!(plan.kernels.len(), 3);
        let follower =
            plan.kernels.iter().position(|kernel| kernel.label.contains("cumsum")).expect("it runs");
        let all = dispatches(plan, Usage::Seldom);
        let first = all.iter().position(|kernels| kernels.contains(&follower)).expect("it runs");
        let sums = all.iter().rposition(|kernels| kernels.contains(&0)).expect("it runs");
        assert!(sums < first, "{all:?}");
    }

    /// On the GPU that `VOLTA_DEVICE=gpu` picks.
    #[test]
    fn late_sums_are_right() {
        if default_device() == Device::Cpu {
            return;
        }
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
