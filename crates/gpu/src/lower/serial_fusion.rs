//! Small dispatches, one behind the other: what a workgroup is soon done with takes longer to begin than to do, on the host
//! and on the device. So where such dispatches follow each other, one workgroup does the work of all, if that is worth a shader
//! that no other plan has.

use super::wgsl_concat::{Parts, body_in_order, shared_bytes};
use super::{BindingUse, Builder, CompileMode, MAX_SHADER_BYTES, PendingDispatch};
use crate::codegen::storage_type::StorageType;
use volta_ir::error::Result;

/// Bytes that a small kernel moves, and its operations, at most: a workgroup takes a microsecond for them.
const SMALL_BYTES: u64 = 1 << 15;
const SMALL_FLOPS: u64 = 1 << 18;

impl Builder<'_> {
    /// Adds a dispatch, or has it wait for others that are as small.
    pub(super) fn add_share(&mut self, share: PendingDispatch) -> Result<()> {
        if share.part.dispatch.groups == 0 {
            return Ok(());
        }
        let small = self.is_small(&share);
        if !small || !self.can_append(&share) {
            self.flush_serial()?;
        }
        if small {
            self.waiting.push(share);
            return Ok(());
        }
        self.add_alone(share)
    }

    fn add_alone(&mut self, PendingDispatch { k, part, seen }: PendingDispatch) -> Result<()> {
        self.add_seen(Some(k), &self.plan.kernels[k], part, &seen)
    }

    /// Adds what waits, as one dispatch.
    pub(super) fn flush_serial(&mut self) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        match waiting.len() {
            0 => Ok(()),
            1 => self.add_alone(waiting.remove(0)),
            _ => self.add_joint(&waiting, 1, body_in_order),
        }
    }

    /// Whether one workgroup is soon done with it, often enough.
    pub(super) fn is_small(&self, share: &PendingDispatch) -> bool {
        let kernel = &self.plan.kernels[share.k];
        self.usage == CompileMode::Optimized
            && kernel.bytes_read + kernel.bytes_written <= SMALL_BYTES
            && kernel.flops <= SMALL_FLOPS
            && Parts::of(&share.part.dispatch).is_some_and(|parts| parts.is_for_one())
            && self.seen_together(&[share]) <= self.most_seen()
    }

    /// Whether the dispatch of all that waits has room for this as well.
    fn can_append(&self, share: &PendingDispatch) -> bool {
        let all: Vec<&PendingDispatch> = self.waiting.iter().chain([share]).collect();
        let parts: Vec<Parts> = all.iter().filter_map(|share| Parts::of(&share.part.dispatch)).collect();
        let text: usize = all.iter().map(|share| share.part.dispatch.body.len()).sum();
        parts.iter().all(|part| part.threads == parts[0].threads)
            && text <= MAX_SHADER_BYTES
            && shared_bytes(&parts) <= self.target.caps.workgroup_bytes as usize
            && share.seen.iter().all(|new| self.agrees(new))
            && self.seen_together(&all) <= self.most_seen()
    }

    /// Whether all that waits sees the memory of `new` as that does, or nothing of it: a shader has one name for every byte.
    fn agrees(&self, new: &BindingUse) -> bool {
        let stored = |seen: &BindingUse| StorageType::of(seen.dtype, self.target.caps.f16);
        // What anybody sees in eights, nobody else writes.
        let eights = |a: &BindingUse, b: &BindingUse| a.width == 8 && b.writes;
        let mut known = self.waiting.iter().flat_map(|share| &share.seen).filter(|seen| seen.overlaps(new));
        known.all(|seen| {
            let alike =
                seen.sources == new.sources && seen.pieces == new.pieces && stored(seen) == stored(new);
            alike && !eights(seen, new) && !eights(new, seen)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::codegen::shader::Shader;
    use crate::lower::CompileMode;
    use crate::lower::bindings::overlap;
    use crate::lower::lower_plan;
    use crate::lower::selections::Selections;
    use crate::snapshots::{rules, shaders_of, target, validate};
    use volta::nn::{Linear, Module};
    use volta::optim::Adam;
    use volta::with_device;
    use volta::with_last_plan;
    use volta::{DType, Device};
    use volta::{Tensor, realize_all};
    use volta_ir::plan::memory::DeviceLimits;

    /// A step of a small network.
    fn step(wide: usize) {
        let (first, second) = (Linear::new(2, wide, true), Linear::new(wide, 1, true));
        let mut parameters = first.parameters();
        parameters.extend(second.parameters());
        realize_all(&parameters);
        let mut optimizer = Adam::new(parameters, 0.01, (0.9, 0.999), 1e-8, 0.0);
        let x = Tensor::rand([4, 2]).realize().clone();
        let loss = second.forward(&first.forward(&x).relu()).square().mean();
        loss.backward();
        optimizer.step();
    }

    /// The shaders of what `f` runs often.
    fn shaders(caps: &Caps, f: impl FnOnce()) -> Vec<Shader> {
        with_device(Device::Cpu, f);
        with_last_plan(|plan| shaders_of(plan, caps, CompileMode::Optimized))
    }

    fn workgroups_wait(shader: &Shader) -> usize {
        shader.source.matches("storageBarrier();").count()
    }

    #[test]
    fn a_step_of_a_small_network_is_one_dispatch() {
        let all = shaders(&Caps::FULL, || step(4));
        assert_eq!(all.len(), 1);
        let seldom = with_last_plan(|plan| shaders_of(plan, &Caps::FULL, CompileMode::Baseline));
        assert!(seldom.len() > 4 && seldom.iter().all(|shader| workgroups_wait(shader) == 0));
        assert!(workgroups_wait(&all[0]) > 4);
        validate(&all[0].source, naga::valid::Capabilities::all());
        for shader in shaders(&Caps::MINIMAL, || step(4)) {
            validate(&shader.source, naga::valid::Capabilities::empty());
        }
    }

    #[test]
    fn no_dispatch_sees_too_much_or_the_same_byte_twice() {
        for wide in [3, 4, 7, 8, 20] {
            with_device(Device::Cpu, || step(wide));
            for slots in [8, 12, 64] {
                let (rules, selections) = (DeviceLimits { slots, ..rules() }, Selections::default());
                let target = target(&Caps::MINIMAL, &rules, &selections);
                let specs = with_last_plan(|plan| {
                    lower_plan(plan, &target, CompileMode::Optimized).map(|assembly| assembly.specs)
                });
                // The CPU's plan may have kernels that see more than that by themselves.
                for spec in specs.into_iter().flatten() {
                    assert!(spec.sources.len() <= slots);
                    for (k, source) in spec.sources.iter().enumerate() {
                        assert!(spec.sources[..k].iter().all(|other| !overlap(source, other)));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_written_in_ones_is_not_seen_in_fours() {
        // Sums of rows, each by some threads, and then four of them at a time.
        let all = shaders(&Caps::FULL, || {
            let x = Tensor::rand([16, 5]).realize().clone();
            realize_all(&[x.sum_dim([1], false).exp().cumsum(0) * 2.0]);
        });
        assert!(all.iter().any(|shader| workgroups_wait(shader) > 0));
        for shader in &all {
            validate(&shader.source, naga::valid::Capabilities::all());
            assert!(!shader.source.contains("& 3u] ="), "{}", shader.source);
        }
    }

    #[test]
    fn what_products_read_in_eights_is_written_by_another_dispatch() {
        let all = shaders(&Caps::FULL, || {
            let halves = |shape: [usize; 2]| Tensor::rand(shape).to_dtype(DType::F16).realize().clone();
            let (a, x, w, bias) = (halves([32, 32]), halves([32, 24]), halves([24, 128]), halves([1, 4]));
            // Of this one, rows of four are written.
            let fours = x.matmul(&w).reshape([32, 32, 4]) + &bias;
            realize_all(&[a.matmul(&fours.reshape([32, 128]))]);
        });
        for shader in &all {
            validate(&shader.source, naga::valid::Capabilities::all());
        }
    }

    #[test]
    fn what_takes_a_workgroup_long_has_a_dispatch_of_its_own() {
        let all = shaders(&Caps::FULL, || step(4096));
        assert!(all.len() > 4 && all.iter().any(|shader| workgroups_wait(shader) == 0));
        let [few, many] = [20, 20_000].map(|count| {
            shaders(&Caps::FULL, || {
                let x = Tensor::rand([count]).realize().clone();
                realize_all(&[x.cumsum(0).exp().cumsum(0)]);
            })
        });
        assert_eq!(few.len(), 1);
        assert!(many.len() > 1 && many.iter().all(|shader| workgroups_wait(shader) == 0));
    }
}
