//! The benchmark: one JSON line a workload, to stand beside another framework's on the same machine.

mod models;

use super::device::{self, DeviceName};
use super::output::{Failure, Outcome, check, say, say_error};
use models::{Training, given};
use serde_json::json;
use std::time::{Duration, Instant};
use volta::parallel::DataParallel;
use volta::{
    DType, Device, GradScaler, Tensor, autocast, counters, last_plan, manual_seed, reset_peak,
    set_memory_limit, try_set_threads,
};
use volta_lm::config::parse_bytes;

#[derive(clap::Args)]
pub struct Options {
    /// The device to measure: cpu, gpu or gpu:N [default: VOLTA_DEVICE, or else cpu]
    #[arg(long)]
    device: Option<DeviceName>,
    /// Workloads, separated by commas.
    #[arg(
        long,
        default_value = "matmul-1024,matmul-2048,gelu,softmax,layernorm,xor,mlp,cnn,resnet18,gpt-small,wikitext"
    )]
    workloads: String,
    /// Precisions, separated by commas: f32, and f16 for mixed precision with a gradient scaler.
    #[arg(long, default_value = "f32")]
    modes: String,
    /// Timed steps of each workload, or as many as a quarter of a second takes, after a quarter as many, and a second at
    /// least, to warm up.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    iters: u32,
    /// Another batch size for the training workloads; 0 keeps each one's own.
    #[arg(long, default_value_t = 0)]
    batch: usize,
    /// Computes the gradients of training workloads on so many GPUs, gpu:0 and those behind it; 0 for the device alone, with the whole
    /// batch at once.
    #[arg(long, default_value_t = 0)]
    gpus: usize,
    /// Parts of the batches of training workloads, as `volta train --gradient-parts` has them; 0 for one a device.
    #[arg(long, default_value_t = 0)]
    parts: usize,
    /// The most memory of the device that may be in use at a time, as in 6GB: what does not fit is computed again, or moved to the host and back.
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    memory: Option<u64>,
    /// Also print where the time of a step goes.
    #[arg(long)]
    profile: bool,
    /// Threads to use, 1024 at most; 0 for all.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

impl Options {
    fn split(&self) -> Split {
        Split { batch: self.batch, gpus: self.gpus, parts: self.parts }
    }
}

fn memory(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "must be an amount of memory, as in 6GB, 512MB or 4GiB".into())
}

/// How long a workload runs before it is timed, at least: right after its shaders were compiled, or from idle clocks, a
/// step can take three times as long for most of a second.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long a workload is timed, at least: twenty steps of a tenth of a millisecond are over before the host or the device has
/// changed its pace once.
const TIMED: Duration = Duration::from_millis(250);

/// What is compiled later than this does not make the warm-up longer.
const MAX_WARM_UP_COMPILING: Duration = Duration::from_secs(20);

/// Workloads of one kernel each, besides products.
const KERNELS: [&str; 3] = ["gelu", "softmax", "layernorm"];

/// What a workload yields besides time.
enum Work {
    Flops(f64),
    Bytes(f64),
    /// Samples or tokens a step.
    Units(f64),
}

struct Workload {
    /// Gives the loss, where there is one.
    step: Box<dyn FnMut() -> volta::Result<Option<Tensor>>>,
    work: Work,
}

/// How a training workload is computed.
#[derive(Clone, Copy, Default)]
struct Split {
    /// 0 keeps each workload's own.
    batch: usize,
    gpus: usize,
    parts: usize,
}

impl Split {
    /// The devices that compute parts of a batch, where there are parts.
    fn parallel(self, training: &Training, device: Device) -> Result<Option<DataParallel>, Failure> {
        if self.gpus == 0 && self.parts == 0 {
            return Ok(None);
        }
        let devices: Vec<Device> =
            if self.gpus == 0 { vec![device] } else { (0..self.gpus).map(Device::Gpu).collect() };
        let (parameters, buffers) = (training.optimizer.parameters().to_vec(), training.buffers.clone());
        let parallel = DataParallel::of_tensors(parameters, buffers, &devices)?;
        Ok(Some(if self.parts == 0 { parallel } else { parallel.with_gradient_parts(self.parts)? }))
    }
}

fn workload(name: &str, half: bool, device: Device, split: Split) -> Result<Workload, Failure> {
    if let Some(n) = name.strip_prefix("matmul-") {
        let n: usize = n.parse().map_err(|_| Failure::Usage(format!("{n} is not a size")))?;
        let dtype = if half { DType::F16 } else { DType::F32 };
        let operand = || given(Tensor::try_rand([n, n])?.try_sub(0.5)?.try_to_dtype(dtype)?);
        let (a, b) = (operand()?, operand()?);
        let step = move || {
            a.try_matmul(&b)?.try_realize()?;
            Ok(None)
        };
        return Ok(Workload { step: Box::new(step), work: Work::Flops(2.0 * (n as f64).powi(3)) });
    }
    let elementwise = |shape: &[usize], count: usize| -> volta::Result<Vec<Tensor>> {
        (0..count).map(|_| given(Tensor::try_randn(shape)?)).collect()
    };
    const MEBI: usize = 1 << 20;
    Ok(match name {
        "gelu" => {
            let count = if device.is_gpu() { 64 * MEBI } else { 4 * MEBI };
            let t = elementwise(&[count], 3)?;
            let step = move || {
                // What is computed on the way is let go before it is computed.
                let y = t[0].try_mul(&t[1])?.try_add(&t[2])?.try_gelu_tanh()?;
                y.try_realize()?;
                Ok(None)
            };
            Workload { step: Box::new(step), work: Work::Bytes(4.0 * 4.0 * count as f64) }
        }
        "softmax" | "layernorm" => {
            let rows = if device.is_gpu() { 8192 } else { 1024 };
            let x = elementwise(&[rows, 4096], 1)?.remove(0);
            let softmax = name == "softmax";
            let step = move || {
                let y = if softmax { x.try_softmax(1) } else { x.try_layer_norm([4096], None, None, 1e-5) };
                y?.try_realize()?;
                Ok(None)
            };
            Workload { step: Box::new(step), work: Work::Bytes(2.0 * 4.0 * (rows * 4096) as f64) }
        }
        _ => {
            let training = models::training(name, split.batch)?;
            let mut parallel = split.parallel(&training, device)?;
            let Training { mut loss, batch: (x, y), mut optimizer, units, read_loss, .. } = training;
            let mut scaler = GradScaler::new();
            let step = move || {
                optimizer.zero_grad();
                let mut forward = |x: &Tensor, y: &Tensor| match half {
                    true => autocast(DType::F16, || loss(x, y)),
                    false => loss(x, y),
                };
                let value = match (&mut parallel, half) {
                    (Some(parallel), true) => parallel.try_backward_scaled(&scaler, &x, &y, forward)?,
                    (Some(parallel), false) => parallel.try_backward(&x, &y, forward)?,
                    (None, true) => {
                        let value = forward(&x, &y)?;
                        scaler.try_scale(&value)?.try_backward()?;
                        value
                    }
                    (None, false) => {
                        let value = forward(&x, &y)?;
                        value.try_backward()?;
                        value
                    }
                };
                if half {
                    scaler.try_step(&mut *optimizer)?;
                } else {
                    optimizer.try_step()?;
                }
                if read_loss {
                    value.try_item::<f32>()?;
                }
                Ok(Some(value))
            };
            Workload { step: Box::new(step), work: Work::Units(units as f64) }
        }
    })
}

/// Whether a mode is mixed precision.
fn is_half(mode: &str) -> Result<bool, Failure> {
    match mode {
        "f32" => Ok(false),
        "f16" => Ok(true),
        _ => Err(Failure::Usage(format!("mode {mode} is not there: f32 and f16 are"))),
    }
}

/// A few steps of each workload in each mode: the first one may differ from all others.
#[cfg(feature = "gpu")]
pub fn steps(names: &str, modes: &str, device: Device, batch: usize) -> Result<(), Failure> {
    for mode in modes.split(',') {
        for name in names.split(',') {
            let split = Split { batch, ..Split::default() };
            let mut workload = workload(name, is_half(mode)?, device, split)?;
            for _ in 0..2 {
                (workload.step)()?;
            }
            device.synchronize()?;
        }
    }
    Ok(())
}

/// Refuses workloads and precisions that are not there.
pub fn check_names(names: &str, modes: &str) -> Outcome {
    for mode in modes.split(',') {
        is_half(mode)?;
    }
    for name in names.split(',') {
        let is_product = name.strip_prefix("matmul-").is_some_and(|size| size.parse::<usize>().is_ok());
        if !is_product && !KERNELS.contains(&name) && !models::NAMES.contains(&name) {
            let all: Vec<&str> = KERNELS.iter().chain(&models::NAMES).copied().collect();
            return Err(Failure::Usage(format!(
                "there is no workload {name:?}; there are matmul-N and {}",
                all.join(", ")
            )));
        }
    }
    Ok(())
}

fn measure(name: &str, mode: &str, device: Device, options: &Options) -> Result<String, Failure> {
    let half = is_half(mode)?;
    manual_seed(0);
    let start = Instant::now();
    let Workload { mut step, work } = workload(name, half, device, options.split())?;
    // How long the host is busy with a step; the rest of the time it waits.
    let mut host = Vec::new();
    let mut step = || -> volta::Result<Option<Tensor>> {
        let start = Instant::now();
        let loss = step()?;
        host.push(start.elapsed().as_secs_f64() * 1e3);
        device.synchronize()?;
        Ok(loss)
    };
    let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
    step()?;
    let first = ms(start);
    let (begun, mut compiled) = (Instant::now(), (0, 0));
    let mut warm = begun;
    for k in 0.. {
        step()?;
        // A device that waited for shaders has to speed up again, for those as well that a plan gets when it has run often.
        let known = counters();
        let known = (known.plans_compiled, known.shaders_compiled);
        if std::mem::replace(&mut compiled, known) != known && begun.elapsed() < MAX_WARM_UP_COMPILING {
            warm = Instant::now();
        }
        if k >= (options.iters / 4).max(5) && warm.elapsed() > WARM_UP {
            break;
        }
    }
    reset_peak();
    let (timed, mut times) = (Instant::now(), Vec::new());
    let mut loss = None;
    while times.len() < options.iters as usize || timed.elapsed() < TIMED {
        let start = Instant::now();
        loss = step()?;
        times.push(ms(start));
    }
    if options.profile {
        let (result, profile) = volta::profile(&mut step);
        result?;
        say_error(format_args!("{name}: where a step's time goes\n{profile}\n\n{}", profile.by_op()));
    }
    times.sort_by(f64::total_cmp);
    host.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let mut line = format!(
        "{{\"peer\": \"volta {}\", \"device\": \"{}\", \"workload\": \"{name}\", \"mode\": \"{mode}\", \
         \"gpus\": {}, \"parts\": {}, \"median_ms\": {median:.4}, \"min_ms\": {:.4}, \"host_ms\": {:.4}, \"first_ms\": {first:.1}, \"peak_mib\": {:.1}",
        env!("CARGO_PKG_VERSION"),
        if device.is_gpu() { "gpu" } else { "cpu" },
        options.gpus,
        options.parts,
        times[0],
        host[host.len() / 2],
        counters().peak_bytes as f64 / (1 << 20) as f64,
    );
    line += &match work {
        Work::Flops(f) => format!(", \"tflops\": {:.4}", f / median / 1e9),
        Work::Bytes(b) => format!(", \"gb_s\": {:.1}", b / median / 1e6),
        Work::Units(u) => format!(", \"per_s\": {:.1}", u / median * 1e3),
    };
    if options.memory.is_some() {
        let fit = last_plan().and_then(|plan| plan.fit);
        line += &format!(", \"recomputed_kernels\": {}", fit.map_or(0, |fit| fit.recomputed_kernels));
    }
    if let Some(loss) = loss {
        line += &format!(", \"loss\": {:.4}", loss.try_item::<f64>()?);
    }
    Ok(line + "}")
}

/// Measures one workload after the other, each in every precision; one that fails does not keep the others from it.
pub fn run(options: &Options) -> Outcome {
    check_names(&options.workloads, &options.modes)?;
    if options.threads > 0 {
        try_set_threads(options.threads).map_err(|error| Failure::usage(&error))?;
    }
    let device = device::open(options.device, DeviceName::This(Device::Cpu))?;
    if options.memory.is_some() {
        set_memory_limit(device, options.memory)?;
    }
    let mut failed = Vec::new();
    for mode in options.modes.split(',') {
        for name in options.workloads.split(',') {
            match measure(name, mode, device, options) {
                Ok(line) => say(line),
                Err(failure) => {
                    let why = failure.message();
                    say(json!({"peer": "volta", "workload": name, "mode": mode, "error": why}));
                    failed.push(format!("{name} in {mode}: {why}"));
                }
            }
            check()?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
}
