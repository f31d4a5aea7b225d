//! A plan on a GPU: its kernels as pipelines, its memory as bindings, one submission a run, or several if it takes long.

use super::guard::Guard;
use super::preencode::{self, BoundDispatch, DispatchList, ranges};
use super::profile::{self, Stopwatch};
use crate::lower::submission::submission_boundaries;
use volta_ir::clock::Instant;
use volta_ir::dtype::DType;
use volta_ir::interrupt::check_interrupt;

use super::context::Context;
use crate::codegen::Uniform;
use crate::device::idle_queue::IdleWork;
use crate::lower::selections::Selections;
use crate::lower::{
    BindingSource, CompileMode, DispatchSpec, LoweredPlan, LoweringTarget, describe_plan, lower_plan,
};
use crate::memory::pool::{GpuBuffer, PooledBuffer};
use crate::memory::readback_prefetch::ReadbackTracker;
#[cfg(not(target_arch = "wasm32"))]
use crate::memory::transfer;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use volta_ir::buffer::Storage;
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::Plan;
use volta_ir::plan::executor::{Argument, Outcome};
use volta_ir::telemetry::{
    count_bind_group, is_profiled, record_time, record_untimed, see_used_bytes, span, trace_kernel,
};

/// Bind groups that a dispatch remembers: inputs may come in a few buffers by turns.
const MAX_REMEMBERED_BIND_GROUPS: usize = 8;

pub(crate) struct GpuProgram {
    context: Arc<Context>,
    dispatches: Arc<DispatchList>,
    /// Bytes of the arena's blocks, and of those in the host's memory.
    arena: Vec<usize>,
    host: Vec<usize>,
    uniforms: Option<wgpu::Buffer>,
    /// What the uniform buffer holds now.
    written: Mutex<Vec<u8>>,
    words: Vec<(usize, Uniform)>,
    guard: Option<Guard>,
    readers: ReadbackTracker,
    /// Dispatches that a new submission starts with where the device begins while the others are encoded.
    boundaries: Vec<usize>,
    /// The first dispatch that writes into the memory of an input.
    overwrites: usize,
    /// The outputs that lie in the memory of inputs.
    overwritten: Vec<usize>,
    /// What errors call the plan.
    name: String,
    /// Whether it asserts something.
    asserts: bool,
}

/// The times of a run's dispatches, still on the device, and when the host began to submit it.
type Ticks = (wgpu::Buffer, Instant);

impl GpuProgram {
    pub fn new(
        context: Arc<Context>,
        plan: &Plan,
        mode: CompileMode,
        selections: &Selections,
    ) -> Result<GpuProgram> {
        let target = LoweringTarget {
            who: context.who(),
            caps: &context.caps,
            rules: &context.rules,
            selections,
            cost_model: context.cost_model,
        };
        let lowered = lower_plan(plan, &target, mode)?;
        let LoweredPlan { specs, shaders, arena, host, words, uniform_bytes } = lowered;
        let estimates = estimates(&specs, plan, &context);
        let overwriting: Vec<bool> = plan.overwrites().collect();
        let overwrites = specs.iter().position(|spec| spec.kernels.iter().any(|&k| overwriting[k]));
        let overwrites = overwrites.unwrap_or(specs.len());
        let [boundaries, long] = [true, false]
            .map(|early| submission_boundaries(&estimates, context.cost_model.time_budget, early));
        let pipelines = context.pipelines(&shaders)?.into_iter().zip(specs);
        let ready = |(pipeline, spec)| BoundDispatch { pipeline, spec, remembered: Mutex::default() };
        let dispatches = DispatchList::new(pipelines.map(ready).collect(), long);
        let name = describe_plan(plan);
        let named = |error: Error| error.with_context(&name);
        let guard =
            (mode == CompileMode::Checked).then(|| Guard::new(&context, plan)).transpose().map_err(named)?;
        if !plan.sites.all.is_empty() {
            context.assertions.expect(&context, &plan.sites).map_err(named)?;
        }
        let uniforms = (uniform_bytes > 0).then(|| {
            context.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("arguments"),
                size: uniform_bytes as u64,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        context.faults.check(|| "preparing a plan".into()).map_err(named)?;
        let outputs = &plan.layout.outputs;
        let (written, readers) = (Mutex::new(Vec::new()), ReadbackTracker::of(outputs));
        Ok(GpuProgram {
            context,
            dispatches,
            arena,
            host,
            uniforms,
            written,
            words,
            guard,
            readers,
            boundaries,
            overwrites,
            overwritten: (0..outputs.len()).filter(|&k| outputs[k].over.is_some()).collect(),
            asserts: !plan.sites.all.is_empty(),
            name,
        })
    }

    pub fn dispatches(&self) -> usize {
        self.dispatches.ready.len()
    }

    /// Bytes of intermediate values, and of what kernels set aside.
    pub fn arena_bytes(&self) -> usize {
        self.arena.iter().sum()
    }

    /// Whether its shaders are compiled, or were refused: a browser takes its time.
    pub fn is_ready(&self) -> bool {
        self.dispatches.ready.iter().all(|ready| ready.pipeline.is_known())
    }

    /// Whether a browser has refused one of them.
    pub fn is_refused(&self) -> bool {
        self.dispatches.ready.iter().any(|ready| ready.pipeline.is_refused())
    }

    fn named(&self, error: Error) -> Error {
        error.with_context(&self.name)
    }

    /// Writes the arguments, unless they are what they were.
    fn write_uniforms(&self, arguments: &[Argument]) {
        let Some(buffer) = &self.uniforms else { return };
        let mut bytes = vec![0u8; buffer.size() as usize];
        for &(at, uniform) in &self.words {
            let words = match uniform {
                Uniform::Count(n) => [n, 0],
                Uniform::Site(_) => unreachable!("the plan has numbered its assertions"),
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

/// The time that each dispatch takes, roughly: its shares of its kernels'.
fn estimates(specs: &[DispatchSpec], plan: &Plan, context: &Context) -> Vec<f64> {
    let shares = shares(specs, plan, context);
    specs.iter().map(|d| d.kernels.iter().map(|&k| shares[k]).sum()).collect()
}

/// What a dispatch of each kernel takes, roughly.
fn shares<'d>(specs: impl IntoIterator<Item = &'d DispatchSpec>, plan: &Plan, context: &Context) -> Vec<f64> {
    let mut dispatches = vec![0; plan.kernels.len()];
    specs.into_iter().flat_map(|d| &d.kernels).for_each(|&k| dispatches[k] += 1);
    let seconds =
        |(kernel, dispatches)| context.cost_model.seconds_each(kernel, dispatches).max(f64::MIN_POSITIVE);
    plan.kernels.iter().zip(dispatches).map(seconds).collect()
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
        // Both words of an integer that fits the type.
        _ => {
            let number = number.within(dtype).to_i64();
            [number as u32, (number >> 32) as u32]
        }
    }
}

impl GpuProgram {
    /// Runs it; in a browser, when its shaders are compiled.
    pub fn run(
        self: &Arc<Self>,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        begun: &Cell<bool>,
    ) -> Result<Outcome> {
        let context = &self.context;
        let named = |error| self.named(error);
        if let Some(k) = inputs.iter().position(|i| !Arc::ptr_eq(&GpuBuffer::of(&**i).gpu, &context.memory)) {
            let slot = plan.layout.inputs[k];
            let message = format!(
                "a tensor of {} bytes ({}) was on {} when the device was lost: its values are gone, make it anew",
                plan.slot_bytes[slot],
                plan.slot_dtypes[slot],
                context.who()
            );
            return Err(named(Error::new(ErrorKind::Device, message)));
        }
        inputs.iter().try_for_each(|input| GpuBuffer::of(&**input).check())?;
        // What went wrong before this plan did so before it wrote anything.
        context.faults.check(|| "before a plan ran".into()).map_err(named)?;
        let mut outputs: Vec<Storage> = Vec::with_capacity(plan.layout.outputs.len());
        for (k, output) in plan.layout.outputs.iter().enumerate() {
            outputs.push(match output.over {
                Some(input) => inputs[input].clone(),
                None => {
                    let mut buffer = GpuBuffer::new(&context.memory, output.bytes).map_err(named)?;
                    buffer.readback = self.readers.readback(k);
                    Arc::new(buffer)
                }
            });
        }
        check_interrupt()?;
        let is_timed = is_profiled() && context.timestamps;
        if self.dispatches() > 0 && !is_timed {
            plan.kernels.iter().for_each(record_untimed);
        }
        #[cfg(target_arch = "wasm32")]
        if context.work.is_busy() || !self.is_ready() {
            self.run_later(plan, inputs, &outputs, arguments);
            return Ok(Outcome { outputs, failed: None });
        }
        let ticks = self.submit(inputs, &outputs, arguments, begun)?;
        if ticks.is_some() || self.guard.is_some() {
            #[cfg(not(target_arch = "wasm32"))]
            crate::now(self.observe(plan, arguments.to_vec(), ticks))?;
            #[cfg(target_arch = "wasm32")]
            context.before_reading(self.observe(plan.clone(), arguments.to_vec(), ticks));
        }
        Ok(Outcome { outputs, failed: None })
    }

    /// Runs it when its shaders are compiled, and what was asked for before it is submitted. If that fails, whoever wants what it
    /// computes is told so.
    #[cfg(target_arch = "wasm32")]
    fn run_later(
        self: &Arc<Self>,
        plan: &Plan,
        inputs: &[Storage],
        outputs: &[Storage],
        arguments: &[Argument],
    ) {
        let observed = (is_profiled() || self.guard.is_some()).then(|| plan.clone());
        let (program, inputs, outputs) = (self.clone(), inputs.to_vec(), outputs.to_vec());
        let (arguments, origin) = (arguments.to_vec(), volta_ir::call::current());
        let needs: Vec<Arc<super::pipeline::Pipeline>> =
            self.dispatches.ready.iter().map(|ready| ready.pipeline.clone()).collect();
        let is_compiled = move || needs.iter().all(|pipeline| pipeline.is_known());
        self.context.work.when(is_compiled, move || {
            let valid = inputs.iter().try_for_each(|input| GpuBuffer::of(&**input).check());
            let begun = Cell::new(false);
            let submit = || program.submit(&inputs, &outputs, &arguments, &begun);
            let caused = |error: Error| Error::at(error.kind(), error.message(), origin);
            match valid.and_then(|()| submit().map_err(caused)) {
                Ok(ticks) => {
                    if let Some(plan) = observed.filter(|_| ticks.is_some() || program.guard.is_some()) {
                        program.context.before_reading(program.observe(plan, arguments, ticks));
                    }
                }
                Err(error) => outputs.iter().for_each(|output| GpuBuffer::of(&**output).fail(&error)),
            }
        });
    }

    /// Gives the device all dispatches. The times of their run, if it is profiled.
    fn submit(
        &self,
        inputs: &[Storage],
        outputs: &[Storage],
        arguments: &[Argument],
        begun: &Cell<bool>,
    ) -> Result<Option<Ticks>> {
        let context = &self.context;
        let named = |error| self.named(error);
        self.dispatches.ready.iter().try_for_each(|ready| ready.pipeline.get().map(drop))?;
        // What is overwritten is not what was copied for the host.
        self.overwritten.iter().for_each(|&k| drop(GpuBuffer::of(&*outputs[k]).readback.take()));
        self.write_uniforms(arguments);
        let mut arena = context.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = arena.reserve(context, &self.arena, &self.host).map_err(named)?;
        see_used_bytes(context.live_bytes.load(Relaxed) + self.arena_bytes() as u64);
        let submitting = span("submit");
        let count = self.dispatches.ready.len();
        let stopwatch = is_profiled().then(|| Stopwatch::new(context, count)).flatten();
        let storages = inputs.iter().chain(outputs).flat_map(|s| &GpuBuffer::of(&**s).pieces);
        let pieces = storages.chain(blocks.iter().flatten()).map(|piece| piece.id).collect();
        let mut all_bound = self.dispatches.bound();
        let bound = preencode::find(&mut all_bound, pieces, || {
            let ready = self.dispatches.ready.iter();
            ready.map(|ready| self.bind_group(ready, inputs, outputs, blocks)).collect()
        });
        if !bound.copies.schedule(&self.readers.take(), outputs, context, self.asserts) {
            bound.commands.clear();
        }
        let epoch = context.assertions.epoch();
        let again = bound.again && stopwatch.is_none() && self.guard.is_none();
        let (mut times, mut started) = (None, None);
        let spoiled = context.injected.bad_run.swap(false, Relaxed);
        if again && !spoiled && !bound.commands.is_empty() {
            begun.set(true);
            for commands in bound.commands.drain(..) {
                context.submit(commands);
            }
        } else {
            for some in ranges(&self.boundaries, count) {
                if some.start > 0 && !begun.get() {
                    check_interrupt()?;
                }
                begun.set(begun.get() || some.end > self.overwrites);
                let mut encoder = context.device.create_command_encoder(&Default::default());
                if let Some(guard) = self.guard.as_ref().filter(|_| some.start == 0) {
                    encoder.clear_buffer(&guard.memory.buffer, 0, None);
                }
                let last = some.end == count;
                self.dispatches.encode(&mut encoder, some, &bound.groups, stopwatch.as_ref());
                if spoiled {
                    encoder.begin_compute_pass(&Default::default()).dispatch_workgroups(1, 1, 1);
                }
                if last {
                    bound.copies.encode(&mut encoder);
                }
                if let Some(stopwatch) = stopwatch.as_ref().filter(|_| last) {
                    times = Some(stopwatch.resolve(context, &mut encoder));
                }
                let commands = encoder.finish();
                if stopwatch.is_some() {
                    started.get_or_insert_with(Instant::now);
                }
                context.submit(commands);
            }
        }
        bound.copies.deliver(outputs, context, epoch, self.asserts);
        if again {
            let dispatches: Arc<dyn IdleWork> = self.dispatches.clone();
            context.idle.push(Arc::downgrade(&dispatches));
        }
        drop(all_bound);
        drop(submitting);
        // Lets go of what is done; does not wait.
        let _ = context.device.poll(wgpu::PollType::Poll);
        context.faults.check(|| "running a plan".into()).map_err(named)?;
        Ok(times.zip(started))
    }

    /// Reads the times of a run's kernels and what its checks found, and tells them. They are asked for now, whenever the future
    /// is.
    fn observe<P: Borrow<Plan> + Clone>(
        self: &Arc<Self>,
        plan: P,
        arguments: Vec<Argument>,
        ticks: Option<Ticks>,
    ) -> impl Future<Output = Result<()>> + use<P> {
        let times = ticks.map(|(ticks, started)| (profile::read(&self.context, &ticks), started));
        let verdict = self.guard.as_ref().map(|g| g.verdict(&self.context, plan.clone(), arguments));
        let program = self.clone();
        async move {
            if let Some((times, started)) = times {
                program.tell_times(plan.borrow(), &times.await?, started);
            }
            match verdict {
                Some(verdict) => verdict.await,
                None => Ok(()),
            }
        }
    }

    /// A kernel may be several dispatches, and a dispatch several kernels, which then share its time as they would take it by
    /// themselves.
    fn tell_times(&self, plan: &Plan, times: &[(Duration, Duration)], started: Instant) {
        let shares = shares(self.dispatches.ready.iter().map(|ready| &ready.spec), plan, &self.context);
        let mut kernels = vec![Duration::ZERO; plan.kernels.len()];
        for (ready, &(start, time)) in self.dispatches.ready.iter().zip(times) {
            let all: f64 = ready.spec.kernels.iter().map(|&k| shares[k]).sum();
            let mut start = started + start;
            for &k in &ready.spec.kernels {
                let time = time.mul_f64(shares[k] / all);
                kernels[k] += time;
                trace_kernel(&plan.kernels[k], start, time);
                start += time;
            }
        }
        plan.kernels.iter().zip(kernels).for_each(|(kernel, time)| record_time(kernel, time));
    }
}

impl GpuProgram {
    /// How long so many runs take, one after the other: by the device's clock where it has one, else by the host's.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn time(&self, inputs: &[Storage], outputs: &[Storage], times: u32) -> Result<Duration> {
        let context = &self.context;
        // A problem has no arguments, but its dispatches may: the first of their workgroups.
        self.write_uniforms(&[]);
        let mut arena = context.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = arena.reserve(context, &self.arena, &self.host)?;
        let stopwatch = Stopwatch::new(context, 1);
        let mut encoder = context.device.create_command_encoder(&Default::default());
        let timestamp_writes = stopwatch.as_ref().map(|s| s.writes(0));
        let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        for ready in (0..times).flat_map(|_| &self.dispatches.ready) {
            pass.set_pipeline(ready.pipeline.get()?);
            pass.set_bind_group(0, &self.bind_group(ready, inputs, outputs, blocks), &[]);
            pass.dispatch_workgroups(ready.spec.groups[0], ready.spec.groups[1], 1);
        }
        drop(pass);
        let ticks = stopwatch.map(|s| s.resolve(context, &mut encoder));
        let start = Instant::now();
        context.submit(encoder.finish());
        transfer::wait(context)?;
        let elapsed = start.elapsed();
        let measured = ticks.map(|ticks| crate::now(profile::read(context, &ticks))).transpose()?;
        let measured = measured.and_then(|times| times.first().map(|&(_, time)| time));
        Ok(measured.filter(|time| !time.is_zero()).unwrap_or(elapsed))
    }

    fn bind_group(
        &self,
        ready: &BoundDispatch,
        inputs: &[Storage],
        outputs: &[Storage],
        blocks: &[Option<PooledBuffer>],
    ) -> wgpu::BindGroup {
        let piece = |source: &BindingSource| match *source {
            BindingSource::Input(k, p) => &GpuBuffer::of(&*inputs[k]).pieces[p],
            BindingSource::Output(k, p) => &GpuBuffer::of(&*outputs[k]).pieces[p],
            BindingSource::Arena { block, .. } => blocks[block].as_ref().expect("reserved"),
            BindingSource::Guard => &self.guard.as_ref().expect("made for checks").memory,
            BindingSource::FailedAssertion => self.context.assertions.memory().expect("expected"),
        };
        let ids: SmallVec<[u64; 12]> = ready.spec.sources.iter().map(|s| piece(s).id).collect();
        let mut remembered = ready.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, group)) = remembered.iter().find(|(known, _)| *known == ids) {
            return group.clone();
        }
        let mut entries: Vec<wgpu::BindGroupEntry> = Vec::with_capacity(ids.len() + 1);
        for (k, source) in ready.spec.sources.iter().enumerate() {
            let (offset, size) = match *source {
                BindingSource::Arena { start, bytes, .. } => {
                    (start as u64, wgpu::BufferSize::new(bytes as u64))
                }
                _ => (0, None),
            };
            let binding = wgpu::BufferBinding { buffer: &piece(source).buffer, offset, size };
            entries.push(wgpu::BindGroupEntry {
                binding: k as u32,
                resource: wgpu::BindingResource::Buffer(binding),
            });
        }
        if let (Some((offset, bytes)), Some(buffer)) = (ready.spec.uniforms, &self.uniforms) {
            let binding = wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(bytes) };
            let resource = wgpu::BindingResource::Buffer(binding);
            entries.push(wgpu::BindGroupEntry { binding: ready.spec.sources.len() as u32, resource });
        }
        let group = self.context.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &ready.pipeline.layout,
            entries: &entries,
        });
        count_bind_group();
        if remembered.len() >= MAX_REMEMBERED_BIND_GROUPS {
            remembered.remove(0);
        }
        remembered.push((ids, group.clone()));
        group
    }
}
