//! Kernels of one wave, side by side: their first dispatches are one, and so are their second ones, as far as a dispatch
//! can see the memory of all.

use super::bindings::block;
use super::wgsl_concat::{Parts, joint_body, shared_bytes};
use super::{
    BindingUse, Builder, LoweringTarget, MAX_GROUPS, MAX_SHADER_BYTES, PendingDispatch, Scratch, describe,
    write_programs,
};
use crate::caps::COMPUTE_UNITS;
use crate::chunking::loops::VisibleChunks;
use crate::codegen::{MapDispatch, MapLowered};
use crate::dispatch::Dispatch;
use crate::kernels::gemm;
use crate::kernels::select::{self, Variant};
use std::ops::Range;
use volta_ir::error::Result;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel};

/// Workgroups that keep a large device busy: nobody gains by being beside so many.
const BUSY_WORKGROUPS: u64 = 1024;

/// Bytes of a shader's text at most where products are of one variant.
const MAX_TEXT_IN_ONE_WAY: usize = 64_000;

/// Bytes of their own memory that kernels have side by side; one alone may have more.
const MAX_SCRATCH: usize = 32 << 20;

/// A kernel that can share its dispatches.
struct Candidate {
    k: usize,
    lowered: MapLowered,
    scratch: Scratch,
}

impl Builder<'_> {
    /// The kernels of a wave: those that can, together.
    pub(super) fn add_wave(&mut self, wave: Range<usize>) -> Result<()> {
        let plan = self.plan;
        let shared = self.shared_variant(&plan.kernels[wave.clone()]);
        if let Some(batch) =
            shared.and_then(|one| self.lower_concurrent_gemms(&plan.kernels[wave.clone()], one))
        {
            self.variants[wave.clone()].fill(shared);
            for (k, lowered) in wave.zip(batch) {
                let kernel = &plan.kernels[k];
                let added = self.add_lowered(k, kernel, lowered, &VisibleChunks::new());
                added.map_err(|error| error.with_context(&describe(kernel)))?;
            }
            return Ok(());
        }
        let mut members: Vec<Candidate> = Vec::new();
        let together = shared.and_then(|one| self.lower_together(&plan.kernels[wave.clone()], one));
        let variants = match &together {
            Some(_) => vec![shared; wave.len()],
            None => self.coscheduled_variants(&plan.kernels[wave.clone()]),
        };
        let mut together = together.map(Vec::into_iter);
        let in_one_way = variants.iter().any(Option::is_some);
        let most_text = if in_one_way { MAX_TEXT_IN_ONE_WAY } else { MAX_SHADER_BYTES };
        for (k, variant) in wave.zip(variants) {
            let lowered = match &mut together {
                Some(all) => all.next(),
                None => {
                    self.lowered(&plan.kernels[k], variant).filter(|_| self.target.rules.horizontal_fusion)
                }
            };
            let Some(lowered) = lowered else {
                self.add_members(std::mem::take(&mut members), most_text)?;
                self.add(k, &plan.kernels[k])?;
                continue;
            };
            self.variants[k] = variant;
            self.make_room(&lowered.scratch)?;
            let first = members.last().map_or(0, |member| member.scratch.end);
            let mut member = Candidate { k, scratch: self.place_scratch(&lowered.scratch, first), lowered };
            let much = member.scratch.end - self.free_from() > MAX_SCRATCH;
            // What takes over memory that another one reads has to wait for it.
            if much || members.iter().any(|other| self.has_hazard(&member, other)) {
                self.add_members(std::mem::take(&mut members), most_text)?;
                member.scratch = self.place_scratch(&member.lowered.scratch, 0);
            }
            members.push(member);
        }
        self.add_members(members, most_text)
    }

    /// Many products as one variant that suits all of them, a dispatch each. If each writes to another buffer, a device begins with
    /// the tiles of the next one where it has none left of the one before.
    fn lower_concurrent_gemms(&self, kernels: &[Kernel], variant: Variant) -> Option<Vec<MapLowered>> {
        if kernels.len() <= 2 {
            return None;
        }
        let lowered = self.lower_all(kernels, variant);
        let tiles: u64 = lowered.iter().map(|l| l.dispatches[0].dispatch.groups).sum();
        let is_one = |(k, l): (&Kernel, &MapLowered)| {
            l.dispatches.len() == 1 && self.seen(k, l, &VisibleChunks::new()) <= self.target.rules.slots
        };
        let each_is_one = kernels.iter().zip(&lowered).all(is_one);
        let fits = each_is_one && tiles >= 2 * COMPUTE_UNITS as u64 && self.write_apart(kernels);
        fits.then_some(lowered)
    }

    /// Whether the results of no two of these lie in the same block of the arena.
    fn write_apart(&self, kernels: &[Kernel]) -> bool {
        let results = kernels.iter().filter_map(native_of).flat_map(|s| self.slot_sources(s.output.slot));
        let mut blocks: Vec<usize> = results.filter_map(|source| block(&source)).collect();
        blocks.sort_unstable();
        blocks.windows(2).all(|two| two[0] != two[1])
    }

    /// The variant that suits all of these, if they are products, and together they take less time than one after the other.
    fn shared_variant(&self, kernels: &[Kernel]) -> Option<Variant> {
        let LoweringTarget { caps, rules, selections, .. } = self.target;
        let products: Vec<&NativeKernel> = kernels.iter().filter_map(native_of).collect();
        let tuned = |s: &&NativeKernel| selections.of(s, caps).is_some();
        if !rules.horizontal_fusion || products.len() < kernels.len() || products.iter().any(tuned) {
            return None;
        }
        gemm::variant_together(&products, caps).map(Variant::Product)
    }

    /// The variants of kernels of which each leaves room for the others, unless they were tuned.
    fn coscheduled_variants(&self, kernels: &[Kernel]) -> Vec<Option<Variant>> {
        let LoweringTarget { caps, selections, .. } = self.target;
        let free = |kernel| native_of(kernel).filter(|s| selections.of(s, caps).is_none());
        let products: Vec<&NativeKernel> = kernels.iter().filter_map(free).collect();
        let mut variants = gemm::variants_beside(&products, caps).into_iter();
        let variant = |kernel| free(kernel).and_then(|_| variants.next().flatten());
        kernels.iter().map(variant).map(|variant| variant.map(Variant::Product)).collect()
    }

    fn lower_all(&self, kernels: &[Kernel], variant: Variant) -> Vec<MapLowered> {
        let lower = |kernel| {
            let s = native_of(kernel)?;
            Some(write_programs(s, kernel, select::lower(s, self.target.caps, Some(variant))))
        };
        kernels.iter().filter_map(lower).collect()
    }

    /// Products as one variant that suits all of them, if sharing a dispatch pays. Whether they do share one depends on where their memory
    /// is, and the variant does not: it decides how sums are cut.
    fn lower_together(&self, kernels: &[Kernel], variant: Variant) -> Option<Vec<MapLowered>> {
        let lowered = self.lower_all(kernels, variant);
        let scratch = lowered.iter().flat_map(|l| &l.scratch).sum::<u64>() as usize;
        let text: usize = lowered.iter().map(|l| l.dispatches[0].dispatch.body.len()).sum();
        let is_visible = |(k, l): (&Kernel, &MapLowered)| {
            self.seen(k, l, &VisibleChunks::new()) <= self.target.rules.slots
        };
        let fits = scratch <= MAX_SCRATCH
            && text <= MAX_TEXT_IN_ONE_WAY
            && kernels.iter().zip(&lowered).all(is_visible);
        fits.then_some(lowered)
    }

    /// Whether one of two kernels writes what the other one reads or writes.
    fn has_hazard(&self, one: &Candidate, other: &Candidate) -> bool {
        let seen = |member: &Candidate| -> Vec<BindingUse> {
            member.lowered.dispatches.iter().flat_map(|d| self.see_all(member, d)).collect()
        };
        let others = seen(other);
        seen(one).iter().any(|a| others.iter().any(|b| a.has_hazard_with(b)))
    }

    fn see_all(&self, member: &Candidate, dispatch: &MapDispatch) -> Vec<BindingUse> {
        let kernel = &self.plan.kernels[member.k];
        self.bound_memory(kernel, &dispatch.dispatch.bindings, &member.scratch.places, &VisibleChunks::new())
    }

    /// Kernels that do not meet, one dispatch of each at a time.
    fn add_members(&mut self, members: Vec<Candidate>, most_text: usize) -> Result<()> {
        let end = members.last().map_or(0, |member| member.scratch.end);
        self.scratch_bytes = self.scratch_bytes.max(end);
        let last = members.iter().map(|member| member.lowered.dispatches.len()).max().unwrap_or(0);
        let mut stages: Vec<Vec<PendingDispatch>> = (0..last).map(|_| Vec::new()).collect();
        for mut member in members {
            for (stage, part) in std::mem::take(&mut member.lowered.dispatches).into_iter().enumerate() {
                let seen = self.see_all(&member, &part);
                stages[stage].push(PendingDispatch { k: member.k, part, seen });
            }
        }
        for mut shares in stages {
            while !shares.is_empty() {
                shares = self.emit_fused(shares, most_text)?;
            }
        }
        Ok(())
    }

    /// Adds a dispatch for one of these and all that can share it. Gives the others.
    pub(super) fn emit_fused(
        &mut self,
        shares: Vec<PendingDispatch>,
        most_text: usize,
    ) -> Result<Vec<PendingDispatch>> {
        let chosen = self.choose(&shares, most_text);
        let (mut together, mut others) = (Vec::new(), Vec::new());
        for (n, share) in shares.into_iter().enumerate() {
            let list = if chosen.contains(&n) { &mut together } else { &mut others };
            list.push(share);
        }
        // What is soon done by one workgroup is done with less ado one behind the other.
        if together.len() == 1 || together.iter().all(|share| self.is_small(share)) {
            for share in together {
                let kernel = &self.plan.kernels[share.k];
                self.add_share(share).map_err(|error| error.with_context(&describe(kernel)))?;
            }
        } else {
            self.flush_serial()?;
            let groups = together.iter().map(|share| share.part.dispatch.groups).sum();
            self.add_joint(&together, groups, joint_body)?;
        }
        Ok(others)
    }

    /// Those that can share a dispatch, one of them at least.
    fn choose(&self, shares: &[PendingDispatch], most_text: usize) -> Vec<usize> {
        let most = self.most_seen();
        let (mut chosen, mut parts): (Vec<usize>, Vec<Parts>) = (Vec::new(), Vec::new());
        let (mut groups, mut text, mut seconds) = (0, 0, 0.0);
        for (n, share) in shares.iter().enumerate() {
            let Dispatch { body, groups: more, .. } = &share.part.dispatch;
            let Some(part) = Parts::of(&share.part.dispatch) else { continue };
            let alike = parts.first().is_none_or(|first| first.threads == part.threads);
            let few =
                groups < BUSY_WORKGROUPS && groups + more <= MAX_GROUPS && text + body.len() <= most_text;
            // Nobody cuts a dispatch of several kernels.
            let longer = seconds + self.target.cost_model.seconds(&self.plan.kernels[share.k]);
            parts.push(part);
            let with_it: Vec<&PendingDispatch> = chosen.iter().chain([&n]).map(|&n| &shares[n]).collect();
            let fits = alike
                && few
                && longer <= self.target.cost_model.time_budget
                && shared_bytes(&parts) <= self.target.caps.workgroup_bytes as usize
                && self.seen_together(&with_it) <= most;
            if fits {
                chosen.push(n);
                (groups, text, seconds) = (groups + more, text + body.len(), longer);
            } else {
                parts.pop();
            }
        }
        // What cannot share a dispatch has one of its own.
        if chosen.is_empty() { vec![0] } else { chosen }
    }
}

fn native_of(kernel: &Kernel) -> Option<&NativeKernel> {
    if let KernelBody::Native(s) = &kernel.body { Some(s) } else { None }
}

#[cfg(test)]
mod tests {
    use super::native_of;
    use crate::caps::Caps;
    use crate::lower::selections::Selections;
    use crate::lower::{CompileMode, LoweringTarget, lower_plan};
    use crate::snapshots::{rules, target, validate};
    use volta::with_last_plan;
    use volta::{DType, Device, default_device, with_device};
    use volta::{Tensor, realize_all};
    use volta_ir::plan::Plan;
    use volta_ir::plan::kernel::Kernel;

    /// The texts of all shaders of a plan whose kernels are all of one wave, and the kernels of each.
    fn shaders(mut plan: Plan, caps: &Caps, slots: usize) -> Vec<(String, Vec<usize>)> {
        plan.kernels.iter_mut().for_each(|kernel| kernel.wave = 0);
        let (rules, selections) =
            (volta_ir::plan::memory::DeviceLimits { slots, ..rules() }, Selections::default());
        let target = target(caps, &rules, &selections);
        let assembly = lower_plan(&plan, &target, CompileMode::Baseline).expect("the plan has shaders");
        let texts = assembly.shaders.into_iter().map(|shader| shader.source);
        texts.zip(assembly.specs.into_iter().map(|spec| spec.kernels)).collect()
    }

    /// A plan of two products and two sums of columns that have nothing to do with each other.
    fn four() -> Plan {
        with_device(Device::Cpu, || {
            let made = |shape: [usize; 2]| Tensor::rand(shape).realize().clone();
            let (a, b, c) = (made([70, 80]), made([80, 90]), made([90, 60]));
            let all = [a.matmul(&b), b.matmul(&c), a.sum_dim([0], false), (c * 2.0).sum_dim([0], false)];
            realize_all(&all);
        });
        with_last_plan(Plan::clone)
    }

    #[test]
    fn kernels_of_a_turn_share_dispatches_as_far_as_these_see_their_memory() {
        let plan = four();
        assert_eq!(plan.kernels.len(), 4);
        for caps in [&Caps::MINIMAL, &Caps::FULL] {
            let together = shaders(plan.clone(), caps, 64);
            assert!(together.len() < 4, "{} dispatches", together.len());
            assert!(together.iter().any(|(_, kernels)| kernels.len() > 1));
            for (text, _) in &together {
                validate(text, naga::valid::Capabilities::all());
            }
            let narrow = shaders(plan.clone(), caps, 4);
            assert!(narrow.len() > together.len() && narrow.iter().all(|(_, kernels)| kernels.len() <= 2));
            let mut seen: Vec<usize> = narrow.into_iter().flat_map(|(_, kernels)| kernels).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, [0, 1, 2, 3]);
        }
    }

    #[test]
    fn kernels_that_take_long_have_dispatches_of_their_own() {
        let mut plan = four();
        plan.kernels.iter_mut().for_each(|kernel| kernel.wave = 0);
        let (rules, selections) = (rules(), Selections::default());
        let mut target = target(&Caps::MINIMAL, &rules, &selections);
        let most = |target: &LoweringTarget| {
            let assembly = lower_plan(&plan, target, CompileMode::Baseline).expect("the plan has shaders");
            assembly.specs.iter().map(|spec| spec.kernels.len()).max()
        };
        assert!(most(&target) > Some(1));
        target.cost_model.time_budget = 1e-9;
        assert_eq!(most(&target), Some(1));
    }

    /// Halves around nought.
    fn halves(shape: [usize; 2]) -> Tensor {
        (Tensor::rand(shape) - 0.5).to_dtype(DType::F16).realize().clone()
    }

    #[test]
    fn narrow_products_share_a_dispatch() {
        let plan = with_device(Device::Cpu, || {
            let (x, y, g) = (halves([4096, 192]), halves([4096, 192]), halves([4096, 576]));
            realize_all(&[x.t().matmul(&y), g.t().matmul(&x)]);
            with_last_plan(Plan::clone)
        });
        let all = shaders(plan.clone(), &Caps::FULL, 64);
        assert_eq!(all[0].1, [0, 1]);
        for (text, _) in &all {
            validate(text, naga::valid::Capabilities::all());
        }
        let mut alone = plan;
        alone.kernels.truncate(1);
        assert!(shaders(alone, &Caps::FULL, 64).iter().all(|(_, kernels)| *kernels == [0]));
    }

    #[test]
    fn products_that_share_a_dispatch_write_eights() {
        let plan = with_device(Device::Cpu, || {
            let [a, b, c] = [(); 3].map(|()| halves([512, 512]));
            realize_all(&[a.matmul(&b).relu(), b.matmul(&c)]);
            with_last_plan(Plan::clone)
        });
        let all = shaders(plan, &Caps::FULL, 64);
        assert_eq!(all[0].1, [0, 1]);
        assert!(["store8_p0_", "store8_p1_"].iter().all(|name| all[0].0.contains(name)), "{}", all[0].0);
        validate(&all[0].0, naga::valid::Capabilities::all());
    }

    #[test]
    fn a_crowd_of_products_has_one_way_and_a_dispatch_each() {
        let plan = with_device(Device::Cpu, || {
            // Each leaves a third of a large device idle.
            let product = |_| halves([64, 1280]).t().matmul(&halves([64, 2048]));
            let all: Vec<Tensor> = (0..5).map(product).collect();
            realize_all(&all);
            with_last_plan(Plan::clone)
        });
        let all = shaders(plan, &Caps::FULL, 64);
        assert_eq!(
            all.iter().map(|(_, kernels)| kernels.clone()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4].map(|k| vec![k])
        );
        // Of one size and variant, they have one shader.
        assert!(all.iter().all(|(text, _)| *text == all[0].0));
        validate(&all[0].0, naga::valid::Capabilities::all());
    }

    #[test]
    fn empty_products_have_no_way_together() {
        let plan = with_device(Device::Cpu, || {
            let made = |items: usize| Tensor::rand([items, 64, 64]).to_dtype(DType::F16).realize().clone();
            let (none, some) = (made(0), made(2));
            realize_all(&[none.matmul(&none), some.matmul(&some)]);
            with_last_plan(Plan::clone)
        });
        assert_eq!(plan.kernels.len(), 2);
        let all = shaders(plan, &Caps::FULL, 64);
        assert!(all.iter().all(|(_, kernels)| kernels.len() == 1) && !all.is_empty());
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: a product that others follow only later waits for another one, and both are
    /// what they are alone.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn narrow_products_wait_for_each_other() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let (x, y) = (halves([1024, 768]), halves([1024, 768]));
        let early = || x.t().matmul(&y);
        let late = || x.cumsum(0).t().matmul(&y);
        let both = [early(), late()];
        realize_all(&both);
        let waves = with_last_plan(|plan| {
            let is_product = |kernel: &&Kernel| kernel.kind() == "matmul";
            plan.kernels.iter().filter(is_product).map(|kernel| kernel.wave).collect::<Vec<_>>()
        });
        assert_eq!(waves, [1, 1]);
        for (together, alone) in both.iter().zip([early(), late()]) {
            assert_alike(together, &alone);
        }
    }

    fn assert_alike(together: &Tensor, alone: &Tensor) {
        let [together, alone] = [together, alone].map(|t| t.to_dtype(DType::F32));
        let error: f32 = (&together - &alone).square().sum().item();
        let size: f32 = alone.square().sum().item();
        assert!(error <= 1e-6 * size, "{error} of {size}");
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: products that are narrow, and many, wait until they fill it several times.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn many_narrow_products_run_in_a_crowd() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        // As in a backward pass: every gradient is made of the one before, and gives that of a weight.
        let order = |layers: usize| {
            let mut gradient = Tensor::rand([256, 1280]).to_dtype(DType::F16);
            let input = Tensor::rand([256, 2048]).to_dtype(DType::F16);
            // Beside this, what they keep in memory is little.
            let mut all = vec![Tensor::rand([8 << 20])];
            for _ in 0..layers {
                gradient = gradient.cumsum(0);
                all.push(gradient.t().matmul(&input));
            }
            all.push(gradient);
            let report = volta::plan_only(|| volta::try_realize_all(&all));
            let kernels = report.expect("it can be planned").expect("it is new").kernels;
            let kinds: Vec<bool> = kernels.iter().map(|k| k.kind == "matmul").collect();
            kinds.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect::<Vec<_>>()
        };
        // 20 Mi results are eight such products; four are too few, and go in pairs.
        assert_eq!(order(4), [2, 2]);
        assert_eq!(order(8), [8]);
        assert_eq!(order(19), [8, 8, 3]);
    }

    /// The same: each of them is what it is alone.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn products_of_a_crowd_are_what_they_are_alone() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let (x, y) = (halves([256, 1280]), halves([256, 2048]));
        let product = |k: usize| (&x * (k + 1) as f64).t().matmul(&y);
        let all: Vec<Tensor> = (0..8).map(product).collect();
        realize_all(&all);
        for k in [0, 7] {
            assert_alike(&all[k], &product(k));
        }
    }

    #[test]
    fn operands_of_products_are_split_at_once() {
        let plan = with_device(Device::Cpu, || {
            let made = |shape: [usize; 2]| Tensor::rand(shape).realize().clone();
            let (gradient, x, weight) = (made([1024, 1024]), made([1024, 1100]), made([1024, 1060]));
            realize_all(&[gradient.matmul(&weight), gradient.t().matmul(&x)]);
            with_last_plan(Plan::clone)
        });
        let all = shaders(plan, &Caps::FULL, 64);
        let kernels: Vec<&[usize]> = all.iter().map(|(_, kernels)| &kernels[..]).collect();
        assert_eq!(kernels[..2], [[0, 1], [0, 1]], "{kernels:?}");
        assert!(kernels[2..].contains(&&[0][..]) && kernels[2..].contains(&&[1][..]), "{kernels:?}");
        for (text, _) in &all {
            validate(text, naga::valid::Capabilities::all());
        }
    }

    /// The waves of a plan's products, by how many results they have.
    fn waves_of_products() -> Vec<(usize, usize)> {
        with_last_plan(|plan| {
            let products = plan.kernels.iter().filter_map(|k| Some((native_of(k)?, k.wave)));
            let mut all: Vec<_> = products.map(|(s, wave)| (s.output.shape.numel(), wave)).collect();
            all.sort_unstable();
            all
        })
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: both gradients of a large matrix are of one wave, and are what they are alone.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn both_gradients_of_a_large_matrix_come_together() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let made = |shape: [usize; 2]| (Tensor::rand(shape) - 0.5).realize().clone();
        let (logits, x, weight) = (made([512, 8200]), made([512, 160]), made([8200, 130]));
        let of_x = |gradient: &Tensor| gradient.matmul(&weight);
        let of_weight = |gradient: &Tensor| gradient.t().matmul(&x);
        let gradient = logits.exp();
        let (both, other) = ([of_x(&gradient), of_weight(&gradient)], of_x(&logits.neg()));
        realize_all(&[both[0].clone(), both[1].clone(), other]);
        let waves = waves_of_products();
        let [(_, one), (_, two), (_, of_weight_wave)] = waves[..] else { panic!("{waves:?}") };
        assert!((one == of_weight_wave) != (two == of_weight_wave), "{waves:?}");
        let gradient = logits.exp().realize().clone();
        assert_alike(&both[0], &of_x(&gradient));
        assert_alike(&both[1], &of_weight(&gradient));
        // Chunks with large results run as they were written.
        let weight = made([160, 8200]);
        realize_all(&[x.matmul(&weight), (-&x).realize().matmul(&weight)]);
        let waves = waves_of_products();
        assert!(waves.len() == 2 && waves[0].1 != waves[1].1, "{waves:?}");
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: small products of one wave are what they are alone.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn small_products_side_by_side_are_what_they_are_alone() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let made = |shape: [usize; 2]| (Tensor::rand(shape) - 0.5).realize().clone();
        let (x, y) = (made([1024, 130]), made([1024, 200]));
        let inputs: Vec<Tensor> = (0..5).map(|k| (&x * (k + 1) as f64).realize().clone()).collect();
        let all: Vec<Tensor> = inputs.iter().map(|x| x.t().matmul(&y)).collect();
        realize_all(&all);
        let waves = waves_of_products();
        assert!(waves.len() == 5 && waves.iter().all(|(_, wave)| *wave == waves[0].1), "{waves:?}");
        for k in [0, 4] {
            assert_alike(&all[k], &inputs[k].t().matmul(&y));
        }
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: what is gathered from many kernels waits until it can run side by side.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn kernels_whose_follower_waits_for_many_have_time() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let weight = halves([64, 64]).to_dtype(DType::F32).realize().clone();
        let mut all = vec![Tensor::rand([64, 64]).realize().clone()];
        for k in 0..8 {
            all.push(all[k].matmul(&weight));
        }
        let sums: Vec<Tensor> = all[1..].iter().map(|x| x.square().sum_dim([0], false).max()).collect();
        // Not last: somebody waits for it.
        let total = Tensor::stack(&sums, 0).sum().exp();
        let gathered = (total.reshape([1, 1]).matmul(&Tensor::ones([1, 64])) * 2.0).sum();
        all.push(gathered);
        realize_all(&all);
        let waves = with_last_plan(|plan| {
            let is_sum = |kernel: &&Kernel| kernel.kind() == "reduce" && kernel.label.contains("max");
            plan.kernels.iter().filter(is_sum).map(|kernel| kernel.wave).collect::<Vec<_>>()
        });
        assert!(
            waves.len() >= 8 && waves.windows(2).filter(|two| two[0] == two[1]).count() >= 6,
            "{waves:?}"
        );
    }

    #[test]
    fn whoever_takes_over_memory_waits_for_those_who_read_it() {
        let plan = with_device(Device::Cpu, || {
            let x = Tensor::rand([300]).realize().assignable();
            let y = &x * 2.0;
            x.assign(&(&x + 1.0));
            realize_all(&[y.reshape([3, 100]).sum_dim([0], false), x.clone()]);
            with_last_plan(Plan::clone)
        });
        if plan.kernels.len() == 2 && plan.layout.outputs.iter().any(|output| output.over.is_some()) {
            assert!(shaders(plan, &Caps::MINIMAL, 64).iter().all(|(_, kernels)| kernels.len() == 1));
        } else {
            panic!("{} kernels, none of which takes over memory", plan.kernels.len());
        }
    }
}
