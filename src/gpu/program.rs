//! A plan on a GPU: its kernels as pipelines, its memory as bindings, one submission a run.

use super::context::Context;
use super::dispatch::{Binding, Caps, Dispatch, Memory};
use super::guard::{self as check, COUNT_NONFINITE, Guard};
use super::map::{self, MapDispatch, MapLowered, Slots, Uniform};
use super::memory::{GpuBuffer, Piece};
use super::pipeline::{Pipeline, Shader};
use super::profile::{self, Stopwatch};
use super::shader::{Accessor, Declared, Frame};
use super::special;
use super::storage::Stored;
use crate::dtype::{DType, Scalar};
use crate::engine::{is_profiled, record_time};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Storage;
use crate::plan::Plan;
use crate::plan::executor::{Argument, Program};
use crate::plan::guard::{self, Index};
use crate::plan::kernel::{Kernel, Slot, SpecialKernel, Work};
use crate::plan::memory::Place;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Workgroups in one dimension of a dispatch.
const MOST_GROUPS: u64 = 65_535;
/// A uniform binding starts at a multiple of this.
const UNIFORM_ALIGNMENT: usize = 256;
/// Slots that the programs of one dispatch use together: more make a shader slow to compile.
const MOST_TOGETHER: usize = 64;
/// Dispatches that are submitted while those behind them are still being encoded: first few, so that the device begins
/// early, then more.
const BEGIN_EARLY: usize = 24;
const AT_ONCE: usize = 96;
/// Bind groups that a dispatch remembers: inputs may come in a few buffers by turns.
const REMEMBERED: usize = 8;

pub(super) struct GpuProgram {
    context: Arc<Context>,
    dispatches: Vec<Ready>,
    /// Bytes of the arena, scratch memory included.
    arena_bytes: usize,
    uniforms: Option<wgpu::Buffer>,
    /// What the uniform buffer holds now.
    written: Mutex<Vec<u8>>,
    words: Vec<(usize, Uniform)>,
    guard: Option<Guard>,
}

/// Where a binding's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Input(usize, usize),
    Output(usize, usize),
    /// A block of the arena, and the bytes in it.
    Arena {
        block: usize,
        start: usize,
        bytes: usize,
    },
    /// Where the guards note what they find.
    Guard,
}

/// What is known of a dispatch before its shader is compiled.
struct Draft {
    sources: Vec<Source>,
    groups: [u32; 2],
    /// Bytes of uniform memory from an offset.
    uniforms: Option<(u64, u64)>,
    /// The kernel it belongs to; a guard's check belongs to none.
    kernel: Option<usize>,
}

struct Ready {
    pipeline: Arc<Pipeline>,
    draft: Draft,
    remembered: Mutex<Vec<(SmallVec<[u64; 12]>, wgpu::BindGroup)>>,
}

impl GpuProgram {
    pub fn new(context: Arc<Context>, plan: &Plan, guarded: bool) -> Result<GpuProgram> {
        let guard = if guarded { Some(Guard::new(&context, plan)?) } else { None };
        let mut builder = Builder {
            context: &context,
            plan,
            drafts: Vec::new(),
            shaders: Vec::new(),
            arena_bytes: plan.layout.arena_bytes,
            words: Vec::new(),
            uniform_bytes: 0,
        };
        if guarded {
            guard::inputs(plan).for_each(|slot| builder.count_nonfinite(slot));
        }
        for (k, kernel) in plan.kernels.iter().enumerate() {
            builder.add(k, kernel)?;
            if let Some(guard) = &guard {
                builder.check(kernel, guard.indices_of(k, kernel))?;
            }
        }
        let Builder { drafts, shaders, arena_bytes, words, uniform_bytes, .. } = builder;
        let pipelines = context.pipelines(&shaders)?.into_iter().zip(drafts);
        let ready = |(pipeline, draft)| Ready { pipeline, draft, remembered: Mutex::default() };
        let dispatches = pipelines.map(ready).collect();
        let uniforms = (uniform_bytes > 0).then(|| {
            context.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("arguments"),
                size: uniform_bytes as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        context.check(|| "preparing a plan".into())?;
        let written = Mutex::new(Vec::new());
        Ok(GpuProgram { context, dispatches, arena_bytes, uniforms, written, words, guard })
    }

    /// Writes the arguments, unless they are what they were.
    fn write_uniforms(&self, arguments: &[Argument]) {
        let Some(buffer) = &self.uniforms else { return };
        let mut bytes = vec![0u8; buffer.size() as usize];
        for &(at, uniform) in &self.words {
            let words = match uniform {
                Uniform::Count(n) => [n, 0],
                Uniform::Argument(k, dtype) => argument_words(arguments[k], dtype),
            };
            bytes[at..at + 4].copy_from_slice(&words[0].to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&words[1].to_le_bytes());
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if *written != bytes {
            self.context.queue.write_buffer(buffer, 0, &bytes);
            *written = bytes;
        }
    }
}

fn argument_words(argument: Argument, dtype: DType) -> [u32; 2] {
    let number = match argument {
        Argument::Key(key) => return key,
        Argument::Number(number) => number,
    };
    match dtype {
        DType::F32 | DType::F64 => [(number.to_f64() as f32).to_bits(), 0],
        DType::F16 => [half::f16::from_f64(number.to_f64()).to_f32().to_bits(), 0],
        DType::BF16 => [half::bf16::from_f64(number.to_f64()).to_f32().to_bits(), 0],
        DType::I32 => [number.to_i64() as i32 as u32, 0],
        DType::I64 => [number.to_i64() as u32, (number.to_i64() >> 32) as u32],
        DType::U8 => [u32::from(number.to_i64() as u8), 0],
        DType::Bool => [u32::from(Scalar::is_true(number)), 0],
    }
}

struct Builder<'a> {
    context: &'a Arc<Context>,
    plan: &'a Plan,
    drafts: Vec<Draft>,
    /// One for each draft.
    shaders: Vec<Shader>,
    arena_bytes: usize,
    words: Vec<(usize, Uniform)>,
    uniform_bytes: usize,
}

impl Builder<'_> {
    fn add(&mut self, k: usize, kernel: &Kernel) -> Result<()> {
        let named = |error: Error| error.with_context(&describe(kernel));
        check_count(self.context, kernel).map_err(named)?;
        let (caps, slots) = (&self.context.caps, self.context.rules.slots);
        let lowered = match &kernel.work {
            Work::Map(maps) => map::lower(maps, caps, slots.min(MOST_TOGETHER)),
            Work::Special(s) => lower_special(s, kernel, caps),
        };
        let mut scratch = Vec::new();
        let mut end = self.plan.layout.arena_bytes;
        for &bytes in &lowered.scratch {
            let bytes = bytes as usize;
            end = end.next_multiple_of(self.context.rules.alignment);
            let left = self.context.rules.block - end % self.context.rules.block;
            if bytes > left {
                end += left;
            }
            scratch.push((end, bytes));
            end += bytes;
        }
        self.arena_bytes = self.arena_bytes.max(end.next_multiple_of(self.context.rules.alignment));
        for dispatch in lowered.dispatches {
            self.add_dispatch(Some(k), kernel, dispatch, &scratch).map_err(named)?;
        }
        Ok(())
    }

    fn add_dispatch(
        &mut self,
        k: Option<usize>,
        kernel: &Kernel,
        MapDispatch { dispatch, uniforms }: MapDispatch,
        scratch: &[(usize, usize)],
    ) -> Result<()> {
        let Dispatch { body, bindings, groups } = dispatch;
        if groups == 0 {
            return Ok(());
        }
        let (declared, accessors, sources) = self.declare(kernel, &bindings, scratch);
        let frame = Frame {
            declared: &declared,
            accessors: &accessors,
            arguments: uniforms.len(),
            block: self.context.rules.block,
            caps: &self.context.caps,
        };
        let source = frame.source(&body);
        let writable: Vec<bool> = declared.iter().flat_map(|d| vec![d.writable; d.pieces]).collect();
        debug_assert_eq!(writable.len(), frame.bindings());
        let most = self.context.rules.slots;
        if writable.len() > most {
            let message = format!(
                "a kernel needs {} pieces of memory at once, and {} lets it see {most}: make the tensors smaller \
                 than {} bytes",
                writable.len(),
                self.context.who(),
                self.context.rules.block
            );
            return Err(Error::new(ErrorKind::Memory, message));
        }
        let shader = Shader {
            source,
            writable,
            arguments: !uniforms.is_empty(),
            what: kernel.label.clone(),
            kernel: describe(kernel),
        };
        let across = groups.min(MOST_GROUPS);
        let groups = [across as u32, groups.div_ceil(across) as u32];
        self.push(k, shader, sources, groups, &uniforms);
        Ok(())
    }

    fn push(
        &mut self,
        kernel: Option<usize>,
        shader: Shader,
        sources: Vec<Source>,
        groups: [u32; 2],
        uniforms: &[Uniform],
    ) {
        let uniforms = (!uniforms.is_empty()).then(|| {
            let start = self.uniform_bytes.next_multiple_of(UNIFORM_ALIGNMENT);
            self.words.extend(uniforms.iter().enumerate().map(|(n, &u)| (start + 8 * n, u)));
            let bytes = (8 * uniforms.len()).next_multiple_of(16);
            self.uniform_bytes = start + bytes;
            (start as u64, bytes as u64)
        });
        self.shaders.push(shader);
        self.drafts.push(Draft { sources, groups, uniforms, kernel });
    }

    /// Checks what a kernel wrote, and its indices.
    fn check(&mut self, kernel: &Kernel, indices: Vec<(Index, u32)>) -> Result<()> {
        for (index, word) in indices {
            self.add_dispatch(None, kernel, map::check_bounds(&index, word), &[])?;
        }
        guard::results(kernel).for_each(|slot| self.count_nonfinite(slot));
        Ok(())
    }

    /// Counts what is not finite in a slot, piece by piece.
    fn count_nonfinite(&mut self, slot: Slot) {
        let (dtype, f16) = (self.plan.slot_dtypes[slot], self.context.caps.f16);
        let size = Stored::of(dtype, f16).size();
        let mut rest = self.plan.slot_bytes[slot] / size;
        for source in self.slot_sources(slot) {
            let count = rest.min(self.context.rules.block / size);
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
                self.push(None, shader, vec![source, Source::Guard], groups, &uniforms);
            }
        }
    }

    /// The pieces of memory behind the names: names of one piece of memory share its bindings.
    fn declare(
        &self,
        kernel: &Kernel,
        bindings: &[Binding],
        scratch: &[(usize, usize)],
    ) -> (Vec<Declared>, Vec<Accessor>, Vec<Source>) {
        let mut declared: Vec<(Declared, Vec<Source>)> = Vec::new();
        let mut accessors = Vec::new();
        for b in bindings {
            let sources = self.sources(kernel, b.memory, scratch);
            let stored = Stored::of(b.dtype, self.context.caps.f16);
            let k = declared.iter().position(|(_, s)| *s == sources).unwrap_or_else(|| {
                let pieces = sources.len();
                declared.push((Declared { stored, width: 1, writable: false, pieces }, sources));
                declared.len() - 1
            });
            let d = &mut declared[k].0;
            debug_assert_eq!(d.stored, stored, "one piece of memory in two forms");
            d.width = d.width.max(b.width);
            d.writable |= b.writes;
            let Binding { name, dtype, lane, reads, writes, .. } = *b;
            accessors.push(Accessor { name, declared: k, dtype, lane, reads, writes });
        }
        // A buffer that is written somewhere in a dispatch is writable wherever the dispatch sees it.
        let in_arena = |sources: &[Source]| matches!(sources[0], Source::Arena { .. });
        if declared.iter().any(|(d, s)| d.writable && in_arena(s)) {
            declared.iter_mut().filter(|(_, s)| in_arena(s)).for_each(|(d, _)| d.writable = true);
        }
        let sources = declared.iter().flat_map(|(_, s)| s.clone()).collect();
        (declared.into_iter().map(|(d, _)| d).collect(), accessors, sources)
    }

    fn sources(&self, kernel: &Kernel, memory: Memory, scratch: &[(usize, usize)]) -> Vec<Source> {
        let slot = |slot: Slot| self.slot_sources(slot);
        match (memory, &kernel.work) {
            (Memory::Slot(n), _) => slot(n),
            (Memory::Operand(n), Work::Special(s)) => slot(s.operands[n].slot),
            (Memory::Output, Work::Special(s)) => slot(s.output.slot),
            (Memory::Guard, _) => vec![Source::Guard],
            (Memory::Scratch(n), _) => self.arena(scratch[n].0, scratch[n].1),
            _ => unreachable!("operands belong to kernels of their own kind"),
        }
    }

    fn slot_sources(&self, slot: Slot) -> Vec<Source> {
        let bytes = self.plan.slot_bytes[slot];
        let pieces = bytes.div_ceil(self.context.rules.block).max(1);
        match self.plan.layout.places[slot] {
            Place::Nowhere => unreachable!("slot {slot} has no memory"),
            Place::Input(k) => (0..pieces).map(|p| Source::Input(k, p)).collect(),
            Place::Output(k) => match self.plan.layout.outputs[k].over {
                // It is the same memory under two names.
                Some(input) => (0..pieces).map(|p| Source::Input(input, p)).collect(),
                None => (0..pieces).map(|p| Source::Output(k, p)).collect(),
            },
            Place::Arena(at) => self.arena(at, bytes),
        }
    }

    fn arena(&self, at: usize, bytes: usize) -> Vec<Source> {
        let block = self.context.rules.block;
        let mut rest = bytes.max(1).next_multiple_of(self.context.rules.alignment);
        let mut at = at;
        let mut pieces = Vec::new();
        while rest > 0 {
            let bytes = rest.min(block - at % block);
            pieces.push(Source::Arena { block: at / block, start: at % block, bytes });
            (at, rest) = (at + bytes, rest - bytes);
        }
        pieces
    }
}

/// Dispatches of a kernel from a template, with `finish` before bodies that use it.
fn lower_special(s: &SpecialKernel, kernel: &Kernel, caps: &Caps) -> MapLowered {
    if s.output.shape.numel() == 0 {
        return MapLowered::default();
    }
    let lowered = special::lower(s, caps);
    let read_elsewhere = kernel.parts.iter().any(|p| p.stored && p.slot == s.output.slot);
    let mut dispatches = Vec::new();
    for mut dispatch in lowered.dispatches {
        let output = dispatch.bindings.iter().position(|b| b.memory == Memory::Output && b.writes);
        let mut uniforms = Vec::new();
        if let Some(k) = output.filter(|_| dispatch.body.contains("finish")) {
            let Binding { name, width, reads, .. } = dispatch.bindings[k];
            let keep = s.epilogue.is_none() || read_elsewhere;
            let mut slots = Slots::default();
            let (text, used) = map::write_epilogue(
                s.epilogue.as_ref(),
                &s.output,
                keep.then_some(name),
                width == 4,
                &mut slots,
            );
            dispatch.body = text + &dispatch.body;
            uniforms = used;
            if !keep && !reads {
                dispatch.bindings.remove(k);
            }
            dispatch.bindings.extend(slots.bindings);
        }
        dispatches.push(MapDispatch { dispatch, uniforms });
    }
    MapLowered { dispatches, scratch: lowered.scratch }
}

/// An error if the kernel counts further than shaders do: in words of 32 bits.
fn check_count(context: &Context, kernel: &Kernel) -> Result<()> {
    let stored = kernel.parts.iter().map(|p| p.shape.numel());
    let most = stored.chain(kernel.maps().map(|m| m.iterations())).max().unwrap_or(0);
    if u32::try_from(most).is_ok() {
        return Ok(());
    }
    let message =
        format!("{most} elements are more than the kernels of {} can count: 2^32; split it", context.who());
    Err(Error::new(ErrorKind::Memory, message))
}

/// The first kernels' ops and shapes, for errors of the whole plan.
fn describe_plan(plan: &Plan) -> String {
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

impl Program for GpuProgram {
    fn is_lost(&self) -> bool {
        self.context.is_lost()
    }

    fn run(&self, plan: &Plan, inputs: &[Storage], arguments: &[Argument]) -> Result<Vec<Storage>> {
        let context = &self.context;
        let named = |error: Error| error.with_context(&describe_plan(plan));
        if let Some(k) = inputs.iter().position(|i| !Arc::ptr_eq(&GpuBuffer::of(&**i).context, context)) {
            let slot = plan.layout.inputs[k];
            let message = format!(
                "a tensor of {} bytes ({}) was on {} when the device was lost: its values are gone, make it anew",
                plan.slot_bytes[slot],
                plan.slot_dtypes[slot],
                context.who()
            );
            return Err(named(Error::new(ErrorKind::Device, message)));
        }
        let mut outputs: Vec<Storage> = Vec::with_capacity(plan.layout.outputs.len());
        for output in &plan.layout.outputs {
            outputs.push(match output.over {
                Some(input) => inputs[input].clone(),
                None => Arc::new(GpuBuffer::new(context, output.bytes).map_err(named)?),
            });
        }
        self.write_uniforms(arguments);
        let mut arena = context.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = arena.reserve(context, self.arena_bytes).map_err(named)?;
        let mut encoder = context.device.create_command_encoder(&Default::default());
        if let Some(guard) = &self.guard {
            encoder.clear_buffer(&guard.memory.buffer, 0, None);
        }
        let stopwatch = is_profiled().then(|| Stopwatch::new(context, self.dispatches.len())).flatten();
        let mut pass = None;
        let mut until = if stopwatch.is_none() { BEGIN_EARLY.min(self.dispatches.len()) } else { usize::MAX };
        for (k, ready) in self.dispatches.iter().enumerate() {
            if k >= until && self.dispatches.len() - k >= BEGIN_EARLY {
                drop(pass.take());
                let next = context.device.create_command_encoder(&Default::default());
                context.queue.submit([std::mem::replace(&mut encoder, next).finish()]);
                until = k + AT_ONCE;
            }
            let group = self.bind_group(ready, inputs, &outputs, blocks);
            let writes = stopwatch.as_ref().map(|s| s.writes(k));
            if pass.is_none() || writes.is_some() {
                drop(pass.take());
                let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes: writes };
                pass = Some(encoder.begin_compute_pass(&descriptor).forget_lifetime());
            }
            let pass = pass.as_mut().expect("begun above");
            pass.set_pipeline(&ready.pipeline.pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(ready.draft.groups[0], ready.draft.groups[1], 1);
        }
        drop(pass);
        let times = stopwatch.map(|s| s.resolve(context, &mut encoder));
        context.queue.submit([encoder.finish()]);
        // Lets go of what is done; does not wait.
        let _ = context.device.poll(wgpu::PollType::Poll);
        context.check(|| "running a plan".into()).map_err(named)?;
        if let Some(times) = times {
            // A kernel may be several dispatches.
            let mut kernels = vec![Duration::ZERO; plan.kernels.len()];
            for (ready, time) in self.dispatches.iter().zip(profile::read(context, &times)?) {
                if let Some(k) = ready.draft.kernel {
                    kernels[k] += time;
                }
            }
            plan.kernels.iter().zip(kernels).for_each(|(kernel, time)| record_time(kernel, time));
        }
        if let Some(guard) = &self.guard {
            guard.verdict(context, plan, arguments)?;
        }
        Ok(outputs)
    }
}

impl GpuProgram {
    fn bind_group(
        &self,
        ready: &Ready,
        inputs: &[Storage],
        outputs: &[Storage],
        blocks: &[Piece],
    ) -> wgpu::BindGroup {
        let piece = |source: &Source| match *source {
            Source::Input(k, p) => &GpuBuffer::of(&*inputs[k]).pieces[p],
            Source::Output(k, p) => &GpuBuffer::of(&*outputs[k]).pieces[p],
            Source::Arena { block, .. } => &blocks[block],
            Source::Guard => &self.guard.as_ref().expect("made for checks").memory,
        };
        let ids: SmallVec<[u64; 12]> = ready.draft.sources.iter().map(|s| piece(s).id).collect();
        let mut remembered = ready.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, group)) = remembered.iter().find(|(known, _)| *known == ids) {
            return group.clone();
        }
        let mut entries: Vec<wgpu::BindGroupEntry> = Vec::with_capacity(ids.len() + 1);
        for (k, source) in ready.draft.sources.iter().enumerate() {
            let (offset, size) = match *source {
                Source::Arena { start, bytes, .. } => (start as u64, wgpu::BufferSize::new(bytes as u64)),
                _ => (0, None),
            };
            let binding = wgpu::BufferBinding { buffer: &piece(source).buffer, offset, size };
            entries.push(wgpu::BindGroupEntry {
                binding: k as u32,
                resource: wgpu::BindingResource::Buffer(binding),
            });
        }
        if let (Some((offset, bytes)), Some(buffer)) = (ready.draft.uniforms, &self.uniforms) {
            let binding = wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(bytes) };
            let resource = wgpu::BindingResource::Buffer(binding);
            entries.push(wgpu::BindGroupEntry { binding: ready.draft.sources.len() as u32, resource });
        }
        let group = self.context.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &ready.pipeline.layout,
            entries: &entries,
        });
        if remembered.len() >= REMEMBERED {
            remembered.remove(0);
        }
        remembered.push((ids, group.clone()));
        group
    }
}
