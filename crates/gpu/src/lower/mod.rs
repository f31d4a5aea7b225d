//! A plan as shaders, and the memory that each of them sees. Needs no device: what it is made for is said by the
//! adapter's abilities and limits.

mod absmax_fusion;
mod binding_limits;
mod bindings;
mod deferred_reduction;
mod horizontal_fusion;
pub(super) mod problem;
mod prologue_epilogue;
pub(super) mod selections;
mod serial_fusion;
pub(super) mod submission;
mod wgsl_concat;

use super::chunking::loops::{ChunkLayout, VisibleChunks};
use super::codegen::count_nonfinite as check;
use super::codegen::count_nonfinite::COUNT_NONFINITE;
use super::codegen::shader::Shader;
use super::codegen::shader::{Frame, asserts};
use super::codegen::storage_type::StorageType;
use super::codegen::{self, MapDispatch, MapLowered, Uniform};
use super::lower::submission::CostModel;
use crate::caps::Caps;
use crate::dispatch::Dispatch;
use crate::kernels::select::{self, Variant};
use crate::lower::selections::Selections;
use absmax_fusion::AbsMaxMatrix;
pub(super) use bindings::BindingSource;
use bindings::{BindingUse, PendingDispatch, seen_by};
use deferred_reduction::DeferredReductions;
use prologue_epilogue::write_programs;
use std::borrow::Cow;
use volta_ir::dtype::DType;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::Plan;
use volta_ir::plan::guard;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel, Purpose, Slot};
use volta_ir::plan::memory::DeviceLimits;
use wgsl_concat::Parts;

/// Workgroups in one dimension of a dispatch.
const MAX_GROUPS: u64 = 65_535;
/// How a body counts workgroups.
const NUMBER: &str = "wg.x + wg.y * nwg.x";
/// A uniform binding starts at a multiple of this.
const UNIFORM_ALIGNMENT: usize = 256;
/// Slots that the programs of one dispatch use together: more make a shader slow to compile, and bindings have a limit of
/// their own.
const MAX_TOGETHER: usize = 768;

/// Bindings of a dispatch for several kernels, and bytes of its shader's text, at most: of drivers, some take a second for
/// twice as much.
const MAX_BINDINGS_FUSED: usize = 256;
const MAX_SHADER_BYTES: usize = 40_000;

/// What shaders are made for.
pub(super) struct LoweringTarget<'a> {
    /// The adapter's name, for errors.
    pub who: &'a str,
    pub caps: &'a Caps,
    pub rules: &'a DeviceLimits,
    /// What was tuned.
    pub selections: &'a Selections,
    /// How long its kernels take.
    pub cost_model: CostModel,
}

/// How a plan is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompileMode {
    /// Its shaders should be soon compiled, and be those of other plans too.
    Baseline,
    /// It should have few dispatches.
    Optimized,
    /// What its kernels read and write is checked.
    Checked,
}

/// What is known of a dispatch before its shader is compiled.
pub(super) struct DispatchSpec {
    pub sources: Vec<BindingSource>,
    pub groups: [u32; 2],
    /// Bytes of uniform memory from an offset.
    pub uniforms: Option<(u64, u64)>,
    /// The kernels it belongs to; a guard's check belongs to none.
    pub kernels: Vec<usize>,
}

/// All of a plan.
pub(super) struct LoweredPlan {
    pub specs: Vec<DispatchSpec>,
    /// One for each draft.
    pub shaders: Vec<Shader>,
    /// Bytes of the arena's blocks, scratch memory included, and of those in the host's memory.
    pub arena: Vec<usize>,
    pub host: Vec<usize>,
    /// Where in the uniform memory each number goes.
    pub words: Vec<(usize, Uniform)>,
    pub uniform_bytes: usize,
}

pub(super) fn lower_plan(plan: &Plan, target: &LoweringTarget, usage: CompileMode) -> Result<LoweredPlan> {
    let guarded = usage == CompileMode::Checked;
    let mut builder = Builder {
        target,
        plan,
        specs: Vec::new(),
        shaders: Vec::new(),
        scratch_bytes: 0,
        words: Vec::new(),
        uniform_bytes: 0,
        scratch_slots: Vec::new(),
        depth: 0,
        noted: Vec::new(),
        usage,
        waiting: Vec::new(),
        late: DeferredReductions::default(),
        variants: vec![None; plan.kernels.len()],
    };
    builder.find_absmax();
    if guarded {
        guard::inputs(plan).for_each(|slot| builder.count_nonfinite(slot));
    }
    let mut first = 0;
    for wave in plan.kernels.chunk_by(|a, b| a.wave == b.wave) {
        let (k, end) = (first, first + wave.len());
        match wave {
            [kernel] => builder.add(k, kernel)?,
            _ => builder.add_wave(k..end)?,
        }
        if guarded {
            wave.iter().flat_map(guard::results).for_each(|slot| builder.count_nonfinite(slot));
        }
        first = end;
    }
    builder.flush_deferred()?;
    builder.flush_serial()?;
    let Builder { specs, shaders, scratch_bytes, words, uniform_bytes, .. } = builder;
    let mut arena = plan.layout.arena.clone();
    target.rules.count_blocks(target.rules.regions, scratch_bytes, &mut arena);
    let host = plan.layout.host.clone();
    Ok(LoweredPlan { specs, shaders, arena, host, words, uniform_bytes })
}

struct Builder<'a> {
    target: &'a LoweringTarget<'a>,
    plan: &'a Plan,
    specs: Vec<DispatchSpec>,
    shaders: Vec<Shader>,
    /// Bytes of the arena's scratch region.
    scratch_bytes: usize,
    words: Vec<(usize, Uniform)>,
    uniform_bytes: usize,
    /// Slots behind the plan's, and how many detours deep they are.
    scratch_slots: Vec<ScratchSlot>,
    depth: usize,
    /// Matrices whose row and column maxima (absmax) the kernel that writes them computes as well.
    noted: Vec<AbsMaxMatrix>,
    usage: CompileMode,
    /// Small dispatches that may share one with what comes behind them.
    waiting: Vec<PendingDispatch>,
    /// Dispatches that nobody waits for yet.
    late: DeferredReductions,
    /// The variants that kernels were given because of those that run beside them: whoever computes the same again has it too, though it
    /// runs by itself.
    variants: Vec<Option<Variant>>,
}

/// Where each piece of a kernel's own memory begins, with its bytes, and where all of it ends.
struct Scratch {
    places: Vec<(usize, usize)>,
    end: usize,
}

/// A slot in the arena's scratch region.
struct ScratchSlot {
    at: usize,
    bytes: usize,
    dtype: DType,
}

impl Builder<'_> {
    fn add(&mut self, k: usize, kernel: &Kernel) -> Result<()> {
        let named = |error: Error| error.with_context(&describe(kernel));
        self.check_count(kernel).map_err(named)?;
        match &kernel.body {
            KernelBody::Map(maps) | KernelBody::Rows(maps) if self.exceeds_binding_limit(maps) => maps
                .iter()
                .try_for_each(|map| self.add_beyond_binding_limit(k, kernel, &map.simplified()))
                .map_err(named),
            work => match (self.lowered(kernel, self.first_variant(kernel)), work) {
                (None, KernelBody::Native(s)) => self.add_large(k, kernel, s).map_err(named),
                (lowered, _) => {
                    let lowered = lowered.expect("it sees few enough pieces");
                    self.add_lowered(k, kernel, lowered, &VisibleChunks::new()).map_err(named)
                }
            },
        }
    }

    /// The variant that a kernel was given when it ran for the first time, if this one computes the same again: other variants may cut
    /// sums into other parts.
    fn first_variant(&self, kernel: &Kernel) -> Option<Variant> {
        if let Purpose::Again(k) = kernel.purpose { self.variants[k] } else { None }
    }

    /// A kernel's dispatches, unless they would see too many pieces of memory; a product's as the variant that is `wanted`, if
    /// it was not tuned.
    fn lowered(&self, kernel: &Kernel, wanted: Option<Variant>) -> Option<MapLowered> {
        let LoweringTarget { caps, rules, .. } = self.target;
        match &kernel.body {
            KernelBody::Map(maps) | KernelBody::Rows(maps) if self.exceeds_binding_limit(maps) => None,
            KernelBody::Map(maps) => {
                let writes =
                    |noted: &&AbsMaxMatrix| maps[0].stores.iter().any(|s| s.access.slot == noted.matrix);
                Some(match self.noted.iter().find(writes) {
                    Some(noted) => {
                        MapLowered { dispatches: vec![noted.program.lower(noted.lists)], scratch: Vec::new() }
                    }
                    None => codegen::lower(maps, caps, rules.slots.min(MAX_TOGETHER)),
                })
            }
            KernelBody::Rows(maps) => Some(codegen::lower_rows(maps, caps)),
            KernelBody::Native(s) => {
                let default =
                    || write_programs(s, kernel, select::lower_knowing(s, caps, wanted, self.known_of(s)));
                let lowered = self.lower_tuned(s, kernel).unwrap_or_else(default);
                let few = self.seen(kernel, &lowered, &VisibleChunks::new()) <= rules.slots;
                (few || !self.is_large(kernel)).then_some(lowered)
            }
        }
    }

    /// Slots in all, scratch slots included.
    fn slots(&self) -> usize {
        self.plan.slot_bytes.len() + self.scratch_slots.len()
    }

    /// A scratch slot.
    fn slice(&self, slot: Slot) -> Option<&ScratchSlot> {
        slot.checked_sub(self.plan.slot_bytes.len()).map(|number| &self.scratch_slots[number])
    }

    fn dtype(&self, slot: Slot) -> DType {
        self.slice(slot).map_or_else(|| self.plan.slot_dtypes[slot], |slice| slice.dtype)
    }

    fn bytes(&self, slot: Slot) -> usize {
        self.slice(slot).map_or_else(|| self.plan.slot_bytes[slot], |slice| slice.bytes)
    }

    /// An error if the kernel counts further than shaders do: in words of 32 bits.
    fn check_count(&self, kernel: &Kernel) -> Result<()> {
        let elements = |slot: Slot| self.bytes(slot) / self.size(self.dtype(slot));
        let stored = kernel.parts.iter().map(|p| p.shape.numel());
        let iterations = kernel.maps().map(|m| m.iterations());
        let most =
            stored.chain(iterations).chain(kernel.reads().into_iter().map(elements)).max().unwrap_or(0);
        // The last workgroups and parts count beyond the end by less than the rest.
        const MAX_INVOCATIONS: u64 = (1 << 32) - (1 << 20);
        if most as u64 <= MAX_INVOCATIONS {
            return Ok(());
        }
        let who = self.target.who;
        let message = format!(
            "{most} elements are more than the kernels of {who} can count: {MAX_INVOCATIONS}; split them"
        );
        Err(Error::new(ErrorKind::Memory, message))
    }

    fn size(&self, dtype: DType) -> usize {
        StorageType::of(dtype, self.target.caps.f16).size()
    }

    /// A kernel as the variant that was found to be the fastest, unless with what follows it that sees too much memory.
    fn lower_tuned(&self, s: &NativeKernel, kernel: &Kernel) -> Option<MapLowered> {
        let LoweringTarget { caps, rules, selections, .. } = self.target;
        let variant = selections.of(s, caps)?;
        let lowered =
            write_programs(s, kernel, select::lower_knowing(s, caps, Some(variant), self.known_of(s)));
        (self.seen(kernel, &lowered, &VisibleChunks::new()) <= rules.slots).then_some(lowered)
    }

    /// The most pieces of memory that one of the dispatches sees.
    fn seen(&self, kernel: &Kernel, lowered: &MapLowered, windows: &VisibleChunks) -> usize {
        let scratch = self.place_scratch(&lowered.scratch, 0).places;
        let of = |d: &MapDispatch| {
            self.declare(&self.bound_memory(kernel, &d.dispatch.bindings, &scratch, windows)).2.len()
        };
        lowered.dispatches.iter().map(of).max().unwrap_or(0)
    }

    fn add_lowered(
        &mut self,
        k: usize,
        kernel: &Kernel,
        lowered: MapLowered,
        windows: &VisibleChunks,
    ) -> Result<()> {
        self.make_room(&lowered.scratch)?;
        let scratch = self.place_scratch(&lowered.scratch, 0);
        self.scratch_bytes = self.scratch_bytes.max(scratch.end);
        let last = lowered.dispatches.len().saturating_sub(1);
        for (number, part) in lowered.dispatches.into_iter().enumerate() {
            let seen = self.bound_memory(kernel, &part.dispatch.bindings, &scratch.places, windows);
            let share = PendingDispatch { k, part, seen };
            // Of a kernel in passes, all find the same memory.
            let may_be_late = number == last && windows.is_empty();
            if may_be_late { self.add_last(share, &scratch)? } else { self.add_share(share)? }
        }
        Ok(())
    }

    /// Where scratch slots end in the scratch region.
    fn aside_end(&self) -> usize {
        self.scratch_slots.last().map_or(0, |slice| slice.at + slice.bytes)
    }

    /// Where it is free: behind scratch slots, and deferred reductions.
    fn free_from(&self) -> usize {
        self.aside_end().max(self.late.end)
    }

    /// Where a kernel's own memory is in the scratch region, from byte `first` on. If nothing is deferred, always in the same
    /// place: the passes of a product that is too large for one dispatch rely on it.
    fn place_scratch(&self, sizes: &[u64], first: usize) -> Scratch {
        let DeviceLimits { alignment, block, .. } = *self.target.rules;
        let mut end = first.max(self.free_from());
        let mut places = Vec::new();
        for &bytes in sizes {
            let bytes = bytes as usize;
            end = end.next_multiple_of(alignment);
            if bytes > block - end % block {
                end = end.next_multiple_of(block);
            }
            places.push((end, bytes));
            end += bytes;
        }
        Scratch { places, end: end.next_multiple_of(alignment) }
    }

    /// Adds a dispatch that sees this memory.
    fn add_seen(
        &mut self,
        k: Option<usize>,
        kernel: &Kernel,
        MapDispatch { dispatch, uniforms }: MapDispatch,
        seen: &[BindingUse],
    ) -> Result<()> {
        let Dispatch { body, groups, .. } = dispatch;
        if groups == 0 {
            return Ok(());
        }
        let names = [kernel.label.clone(), describe(kernel)];
        self.add_body(k.into_iter().collect(), names, &body, &uniforms, seen, groups)
    }

    /// Adds one dispatch of so many workgroups for all of these; `join` puts their bodies together.
    fn add_joint(
        &mut self,
        shares: &[PendingDispatch],
        groups: u64,
        join: impl FnOnce(&[Parts], &[usize]) -> String,
    ) -> Result<()> {
        let (mut uniforms, mut starts) = (Vec::new(), Vec::new());
        for share in shares {
            starts.push(uniforms.len() / 2);
            uniforms.extend(share.part.uniforms.iter().copied());
            if uniforms.len() % 2 == 1 {
                uniforms.push(Uniform::Count(0));
            }
        }
        let parts: Vec<Parts> = shares.iter().filter_map(|share| Parts::of(&share.part.dispatch)).collect();
        let body = join(&parts, &starts);
        let all: Vec<&Kernel> = shares.iter().map(|share| &self.plan.kernels[share.k]).collect();
        let names = [
            all.iter().map(|kernel| kernel.label.as_str()).collect::<Vec<_>>().join(", "),
            all.iter().map(|kernel| describe(kernel)).collect::<Vec<_>>().join("; "),
        ];
        let mut kernels: Vec<usize> = shares.iter().map(|share| share.k).collect();
        // Several dispatches of a kernel may be among them.
        kernels.dedup();
        self.add_body(kernels, names, &body, &uniforms, &seen_by(shares), groups)
    }

    /// Bindings of a dispatch for several kernels, at most.
    fn most_seen(&self) -> usize {
        self.target.rules.slots.min(MAX_BINDINGS_FUSED)
    }

    /// Bindings of a dispatch for all of these.
    fn seen_together(&self, shares: &[&PendingDispatch]) -> usize {
        let asserts = shares.iter().any(|share| asserts(&share.part.dispatch.body));
        self.declare(&seen_by(shares.iter().copied())).2.len() + usize::from(asserts)
    }

    /// Adds the dispatch of a body for these kernels, with the names of their ops, and with shapes.
    fn add_body(
        &mut self,
        kernels: Vec<usize>,
        [what, kernel]: [String; 2],
        body: &str,
        uniforms: &[Uniform],
        seen: &[BindingUse],
        groups: u64,
    ) -> Result<()> {
        self.add_late_before(seen)?;
        let workgroups_per_dispatch = self.workgroups_at_once(&kernels, body, groups);
        let (mut body, mut uniforms) = (Cow::from(body), uniforms.to_vec());
        let known = uniforms.len();
        if workgroups_per_dispatch < groups {
            let word = if known.is_multiple_of(2) { "x" } else { "z" };
            body = body.replace(NUMBER, &format!("{NUMBER} + arguments[{}].{word}", known / 2)).into();
            uniforms.push(Uniform::Count(0));
        }
        let (source, writable, sources) = self.source(&body, &uniforms, seen);
        if writable.len() > self.target.rules.slots {
            return Err(self.too_many(writable.len(), "a kernel"));
        }
        let shader = Shader { source, writable, arguments: !uniforms.is_empty(), what, kernel };
        for first in (0..groups).step_by(workgroups_per_dispatch as usize) {
            if let Some(number) = uniforms.get_mut(known) {
                *number = Uniform::Count(first as u32);
            }
            // As few workgroups too many as there can be.
            let some = workgroups_per_dispatch.min(groups - first);
            let down = some.div_ceil(MAX_GROUPS);
            let some = [some.div_ceil(down) as u32, down as u32];
            self.push(kernels.clone(), shader.clone(), sources.clone(), some, &uniforms);
        }
        Ok(())
    }

    /// The workgroups that run at a time, so that a kernel does not keep the device for too long.
    fn workgroups_at_once(&self, kernels: &[usize], body: &str, groups: u64) -> u64 {
        let some = match kernels {
            // Those that share a dispatch do not take long together (see `horizontal_fusion`), or are products for devices with
            // tensor cores.
            &[k] if body.contains(NUMBER) => {
                self.target.cost_model.workgroups_per_dispatch(&self.plan.kernels[k], groups)
            }
            _ => groups,
        };
        // In one dimension, so that none runs twice: some write over what they read.
        if some < groups { some.min(MAX_GROUPS) } else { groups.max(1) }
    }

    /// The shader around a body that sees this memory; with a flag and the memory of each of its bindings.
    fn source(
        &self,
        body: &str,
        uniforms: &[Uniform],
        seen: &[BindingUse],
    ) -> (String, Vec<bool>, Vec<BindingSource>) {
        let (declared, accessors, sources) = self.declare(seen);
        let frame = Frame {
            declared: &declared,
            accessors: &accessors,
            arguments: uniforms.len(),
            block: self.target.rules.block,
            caps: self.target.caps,
        };
        let mut writable: Vec<bool> =
            declared.iter().flat_map(|d| vec![d.writable; d.pieces.len()]).collect();
        debug_assert_eq!(writable.len(), frame.bindings());
        let (text, mut sources) = (frame.source(body), sources);
        if asserts(body) {
            writable.push(true);
            sources.push(BindingSource::FailedAssertion);
        }
        (text, writable, sources)
    }

    fn push(
        &mut self,
        kernels: Vec<usize>,
        shader: Shader,
        sources: Vec<BindingSource>,
        groups: [u32; 2],
        uniforms: &[Uniform],
    ) {
        let uniforms = (!uniforms.is_empty()).then(|| {
            let start = self.uniform_bytes.next_multiple_of(UNIFORM_ALIGNMENT);
            let known = |u: Uniform| match u {
                Uniform::Site(site) => Uniform::Count(self.plan.sites.first + site as u32),
                other => other,
            };
            self.words.extend(uniforms.iter().enumerate().map(|(n, &u)| (start + 8 * n, known(u))));
            let bytes = (8 * uniforms.len()).next_multiple_of(16);
            self.uniform_bytes = start + bytes;
            (start as u64, bytes as u64)
        });
        self.shaders.push(shader);
        self.specs.push(DispatchSpec { sources, groups, uniforms, kernels });
    }

    /// Counts what is not finite in a slot, piece by piece.
    fn count_nonfinite(&mut self, slot: Slot) {
        let (dtype, f16) = (self.plan.slot_dtypes[slot], self.target.caps.f16);
        let size = StorageType::of(dtype, f16).size();
        let mut rest = self.plan.slot_bytes[slot] / size;
        for source in self.slot_sources(slot) {
            let count = rest.min(self.target.rules.block / size);
            rest -= count;
            if count > 0 {
                let [low, high] = check::masks(dtype, f16);
                let uniforms = [count as u32, slot as u32, low, high].map(Uniform::Count);
                let groups = [check::groups(count), 1];
                let shader = Shader {
                    source: COUNT_NONFINITE.into(),
                    writable: vec![false, true],
                    arguments: true,
                    what: "guards".into(),
                    kernel: "guards".into(),
                };
                self.push(Vec::new(), shader, vec![source, BindingSource::Guard], groups, &uniforms);
            }
        }
    }
}

impl ChunkLayout for Builder<'_> {
    fn elements(&self, slot: Slot) -> usize {
        self.target.rules.block / self.size(self.dtype(slot))
    }

    fn count(&self, slot: Slot) -> usize {
        self.bytes(slot).div_ceil(self.target.rules.block).max(1)
    }
}

/// The first kernels' ops and shapes, for errors of the whole plan.
pub(super) fn describe_plan(plan: &Plan) -> String {
    /// Kernels that are named.
    const NAMED: usize = 4;
    let mut text = plan.kernels.iter().take(NAMED).map(describe).collect::<Vec<_>>().join("; ");
    if plan.kernels.len() > NAMED {
        text += &format!("; and {} more kernels", plan.kernels.len() - NAMED);
    }
    text
}

/// The kernel's ops and shapes, for errors.
fn describe(kernel: &Kernel) -> String {
    let shape = kernel.parts.last().map_or(String::new(), |p| p.shape.to_string());
    format!("{} of {} {shape}", kernel.kind(), kernel.label)
}
