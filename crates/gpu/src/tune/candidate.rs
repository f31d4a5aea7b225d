//! One problem on the device: memory with numbers in it, and the time that each variant takes.

use super::problem_plan;
use crate::codegen::shader::Shader;
use crate::codegen::storage_type::StorageType;
use crate::kernels::select;
use crate::lower::problem;
use crate::lower::selections::{DEFAULT, Selections};
use crate::lower::{CompileMode, LoweringTarget, lower_plan};
use crate::memory::pool::GpuBuffer;
use crate::runtime::context::Context;
use crate::runtime::program::GpuProgram;
use std::sync::Arc;
use std::time::Duration;
use volta_ir::buffer::Storage;
use volta_ir::clock::Instant;
use volta_ir::dtype::DType;
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel};

/// A problem with its memory.
pub(super) struct Candidate {
    context: Arc<Context>,
    plan: Plan,
    name: String,
    pub inputs: Vec<Storage>,
    pub output: Storage,
}

impl Candidate {
    pub fn new(context: &Arc<Context>, kernel: &Kernel, native: &NativeKernel) -> Result<Candidate> {
        let plan = problem_plan::plan(kernel, native, &context.rules);
        let buffer = |slot: usize| -> Result<Storage> {
            let buffer = GpuBuffer::new(&context.memory, plan.slot_bytes[slot])?;
            fill(context, &buffer, plan.slot_dtypes[slot])?;
            Ok(Arc::new(buffer))
        };
        let inputs = plan.layout.inputs.iter().map(|&slot| buffer(slot)).collect::<Result<_>>()?;
        let output = buffer(plan.layout.outputs[0].slot)?;
        Ok(Candidate { context: context.clone(), plan, name: problem::name(native), inputs, output })
    }

    /// It alone.
    #[cfg(test)]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn native(&self) -> &NativeKernel {
        match &self.plan.kernels[0].body {
            KernelBody::Native(native) => native,
            KernelBody::Map(_) | KernelBody::Rows(_) => unreachable!("a trial is of a kernel with variants"),
        }
    }

    /// The names of the variants there are, the default one first, without those that are the default by another name.
    pub fn variants(&self) -> Vec<String> {
        let caps = &self.context.caps;
        let default = select::lower(self.native(), caps, None);
        let others = select::variants(self.native(), caps).into_iter();
        let others = others.filter(|v| select::lower(self.native(), caps, Some(*v)) != default);
        [DEFAULT.to_string()].into_iter().chain(others.map(|v| v.to_string())).collect()
    }

    /// The variant of this name, ready to run.
    pub fn program(&self, variant: &str) -> Result<GpuProgram> {
        GpuProgram::new(
            self.context.clone(),
            &self.plan,
            CompileMode::Baseline,
            &Selections::only(&self.name, variant),
        )
    }

    /// Compiles the shaders of some variants side by side, so that making their programs is quick.
    pub fn compile(&self, variants: &[String]) {
        let who = self.context.who();
        let mut shaders: Vec<Shader> = Vec::new();
        for variant in variants {
            let selections = Selections::only(&self.name, variant);
            let context = &self.context;
            let target = LoweringTarget {
                who,
                caps: &context.caps,
                rules: &context.rules,
                selections: &selections,
                cost_model: context.cost_model,
            };
            shaders.extend(
                lower_plan(&self.plan, &target, CompileMode::Baseline).map_or(Vec::new(), |all| all.shaders),
            );
        }
        // A variant whose shader is refused says so when its program is made.
        let _ = self.context.pipelines(&shaders);
    }

    /// The time of one run, in the mean of `times` one after the other.
    pub fn time(&self, program: &GpuProgram, times: u32) -> Result<Duration> {
        let outputs = std::slice::from_ref(&self.output);
        Ok(program.time(&self.inputs, outputs, times)? / times)
    }
}

/// How the variants of a problem did.
pub(super) struct Benchmark {
    /// The default's time.
    pub default: Duration,
    /// The name of the fastest variant, and its time.
    pub best: (String, Duration),
    /// Ways that were tried.
    pub tried: usize,
    /// Whether there was time for all.
    pub complete: bool,
}

/// The share of the default's time that another variant must save.
const MIN_GAIN: f64 = 0.03;

/// How long measuring a variant takes about, and how often it is done.
const MEASURING: Duration = Duration::from_millis(3);
const ROUNDS: usize = 4;

/// How long a problem is computed before its variants are compared.
const WARM_UP: Duration = Duration::from_millis(100);

/// Runs of a measurement, at most.
const MAX_RUNS: u32 = 200;

/// How many times as long as the best a variant may take at first to be looked at more closely.
const MAX_FIRST_SLOWDOWN: f64 = 2.0;

/// Ways whose shaders are compiled together.
const VARIANTS_COMPILED_AT_ONCE: usize = 16;

/// Tries all variants until the time is up; `None` if not even the default was measured.
pub(super) fn race(trial: &Candidate, until: Instant, mut tried: impl FnMut()) -> Result<Option<Benchmark>> {
    let variants = trial.variants();
    let mut known: Vec<(&String, GpuProgram, Duration)> = Vec::new();
    let mut count = 0;
    for some in variants.chunks(VARIANTS_COMPILED_AT_ONCE) {
        if Instant::now() >= until {
            break;
        }
        trial.compile(some);
        for variant in some {
            count += 1;
            match first_time(trial, variant) {
                Ok((program, time)) => known.push((variant, program, time)),
                // A variant that this driver or its memory refuses is not one; a device that is gone is an error.
                Err(error) if trial.context.is_lost() || variant == DEFAULT => return Err(error),
                Err(_) => {}
            }
            tried();
            if Instant::now() >= until {
                break;
            }
        }
    }
    let Some(least) = known.iter().map(|(.., time)| *time).min() else { return Ok(None) };
    known.retain(|(variant, _, time)| *variant == DEFAULT || *time <= least.mul_f64(MAX_FIRST_SLOWDOWN));
    // Clocks fall while shaders are compiled.
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        trial.time(&known[0].1, runs(known[0].2))?;
    }
    for _ in 0..ROUNDS {
        for (_, program, best) in &mut known {
            *best = trial.time(program, runs(*best))?.min(*best);
        }
    }
    let default = known[0].2;
    let best = known.iter().min_by_key(|(.., time)| *time).map_or(0, |best| {
        let gains = best.2 < default.mul_f64(1.0 - MIN_GAIN);
        if gains { known.iter().position(|k| std::ptr::eq(k, best)).unwrap_or(0) } else { 0 }
    });
    let best = (known[best].0.clone(), known[best].2);
    Ok(Some(Benchmark { default, best, tried: count, complete: count == variants.len() }))
}

/// How many runs of such a time make a measurement.
fn runs(time: Duration) -> u32 {
    ((MEASURING.as_secs_f64() / time.as_secs_f64().max(1e-7)) as u32).clamp(1, MAX_RUNS)
}

/// A variant's program, and the time of its second run: the first one pays for what is new.
fn first_time(trial: &Candidate, variant: &str) -> Result<(GpuProgram, Duration)> {
    let program = trial.program(variant)?;
    trial.time(&program, 1)?;
    let time = trial.time(&program, 2)?;
    Ok((program, time))
}

/// Fills memory with numbers of a type: of magnitudes between a half and one, either sign. Halves are 64 times smaller: f16
/// keeps a 64th of a log-sum-exp (`attention/packed.rs`), and the gradient's exponentials would overflow.
fn fill(context: &Arc<Context>, buffer: &GpuBuffer, dtype: DType) -> Result<()> {
    /// Threads of all workgroups.
    const GROUPS: u32 = 1024;
    let (keep, set) = match StorageType::of(dtype, context.caps.f16) {
        StorageType::F32 => (0x807f_ffffu32, 0x3f00_0000u32),
        StorageType::F16 => (0x83ff_83ff, 0x2000_2000),
        StorageType::F16Word => (0x83ff, 0x2000),
        StorageType::Bf16Word => (0x807f, 0x3f00),
        StorageType::I32 | StorageType::I64 | StorageType::U32 | StorageType::Word => (0, 0),
    };
    let source =
        include_str!("fill.wgsl").replace("KEEP", &keep.to_string()).replace("SET", &set.to_string());
    let what = "filling memory to tune with".to_string();
    let shader = Shader { source, writable: vec![true], arguments: false, what: what.clone(), kernel: what };
    let pipeline = context.pipelines(&[shader])?.remove(0);
    let mut encoder = context.device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline.get()?);
        for piece in &buffer.pieces {
            let group = context.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.layout,
                entries: &[wgpu::BindGroupEntry { binding: 0, resource: piece.buffer.as_entire_binding() }],
            });
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(GROUPS, 1, 1);
        }
    }
    context.submit(encoder.finish());
    context.faults.check(|| "filling memory to tune with".into())
}
