//! `volta finetune`: a model of others on the user's data.
//!
//! `options` is what it can be told, `prepare` makes model and rows of it, `plan` says what a step needs, and `ended` keeps what came of it.

mod ended;
mod options;
mod plan;
mod prepare;

pub use options::Options;

use super::diverged::Diverged;
use super::log;
use super::model_file::DEFAULT_FOLDER;
use super::progress::Watch;
use super::report::Times;
use super::run_paths::{self, Locked, Places};
use super::train::{PROFILE_EVERY, cannot_write, stop_on_interrupt};
use crate::output::{Failure, Outcome, Output, check, say_error};
use crate::pretrained;
use ended::Ended;
use indicatif::{ProgressBar, ProgressStyle};
use options::{Precision, Schedule, changes};
use prepare::Prepared;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::Ordering;
use volta::models::{Generation, Llm};
use volta::nn::num_parameters;
use volta::optim::{self, CosineAnnealingLR, ExponentialLR, LinearLR, WarmupLR};
use volta::text::{Sampler, SamplerOptions};
use volta::train::{Event, Trainer, TrainerOptions};
use volta::{CheckpointFolder, DType, Device, Module, Tensor};
use volta_lm::finetune::Learner;
use volta_lm::{Config, StepPlan};

/// The name that a checkpoint has for what its run was told.
const SETTINGS_NOTE: &str = "finetune";

/// Fine-tunes.
pub fn run(options: &Options, output: Output) -> Outcome {
    options.check()?;
    let device = options.device.open()?;
    let name = options.name.clone().unwrap_or_else(|| usual_name(options));
    let config = Config::given(&[("output", options.output.as_str()), ("name", name.as_str())]);
    let config = config.map_err(|e| Failure::Usage(e.to_string()))?;
    run_paths::check(&config)?;
    let mut prepared = prepare::prepare(options, device, output)?;
    let lora = prepared.lora.as_ref().map(|lora| &lora.options);
    let settings = options.settings(&prepared.fingerprint, prepared.length, lora);
    let steps = steps(options, &prepared);
    describe(options, &prepared, steps, device, output);
    let plan = plan::step(options, &prepared, device)?;
    if options.dry_run {
        return dry_run(options, &prepared, plan.as_ref(), device, output);
    }
    // Before anything is written: what does not fit into memory is found here.
    if let Some(plan) = &plan {
        plan::check(plan, options, device)?;
        let memory = plan.memory(device)?;
        if memory.recomputed_kernels > 0 {
            output.note(format_args!(
                "A step does not fit into memory by itself, so it computes some of it twice.\n{memory}"
            ));
        }
    }
    log::prepare(&run_paths::log(&config)).map_err(|e| cannot_write(&run_paths::log(&config), &e))?;
    let locked = match options.resume {
        true => last(&config, &name, &settings)?,
        false => Places::make(&config, &name)?,
    };
    output.note(format_args!("Everything goes to {}.\n", locked.places.folder.display()));
    let trained = train(options, &mut prepared, &locked, steps, &settings, output)?;
    let ended = Ended { options, prepared: &prepared, places: &locked.places, settings: &settings, device };
    let peak_bytes = plan.map_or(0, |plan| plan.peak_bytes());
    let last = ended.keep(trained.history, trained.times, peak_bytes, trained.samples, output)?;
    if trained.is_interrupted || (last < steps && trained.is_stopped) {
        say_error(format_args!("Stopped after step {last}. Go on with the same flags and --resume."));
    }
    if trained.is_interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// What a run is called that has no name: its model, and how that is tuned.
fn usual_name(options: &Options) -> String {
    let model = options.model.trim_end_matches(['/', std::path::MAIN_SEPARATOR]);
    let last = model.rsplit(['/', std::path::MAIN_SEPARATOR, ':']).next().unwrap_or(model);
    let last = last.strip_suffix(".gguf").unwrap_or(last);
    let last = if last.is_empty() || last == "." || last == ".." { "model" } else { last };
    format!("{last}-{}", options.method())
}

fn steps(options: &Options, prepared: &Prepared) -> u64 {
    use volta_lm::config::Duration;
    prepared.pace.steps(options.steps.map_or(Duration::Epochs(options.epochs), Duration::Steps))
}

/// What will be trained, in a few lines.
fn describe(options: &Options, prepared: &Prepared, steps: u64, device: Device, output: Output) {
    let (llm, pace) = (&prepared.llm, &prepared.pace);
    let trained = num_parameters(&Learner(llm));
    let frozen: usize = llm.state_dict().iter().map(|(_, t)| t.numel() * t.dtype().size()).sum();
    let what = match &prepared.lora {
        Some(lora) => format!(
            "{} of rank {} for {}: {trained} numbers are trained",
            if lora.options.dora { "Adapters with lengths" } else { "Adapters" },
            lora.options.rank,
            lora.options.targets.join(", ")
        ),
        None => format!("All {trained} numbers are trained"),
    };
    output.note(format_args!(
        "{}: {}; {:.1} MB of weights. {what}, on {device}.",
        pretrained::called(&prepared.path),
        llm.describe(),
        frozen as f64 / 1e6
    ));
    output.note(format_args!(
        "It learns from {} samples ({} tokens; rows are {:.0}% full), {steps} steps of {pace}.",
        prepared.samples,
        prepared.tokens,
        100.0 * prepared.filled
    ));
    if options.full && options.learning_rate.is_some_and(|rate| rate > 1e-3) {
        output.note("A rate above 1e-3 is much for a trained model: mind the validation.");
    }
}

fn dry_run(
    options: &Options,
    prepared: &Prepared,
    plan: Option<&StepPlan>,
    device: Device,
    output: Output,
) -> Outcome {
    let Some(plan) = plan else { return Ok(()) };
    let memory = plan.memory(device)?;
    output.result(
        &json!({
            "trained": num_parameters(&Learner(&prepared.llm)), "samples": prepared.samples, "tokens": prepared.tokens,
            "length": prepared.length, "rows": prepared.pace.batches * u64::from(options.batch),
            "kernels": plan.kernels(), "flops": plan.flops(), "bytes_moved": plan.traffic(),
            "peak_bytes": plan.peak_bytes(), "available_bytes": device.memory()?, "memory_limit": memory.limit,
            "unlimited_peak_bytes": memory.unlimited_peak_bytes, "missing_bytes": memory.missing_bytes,
            "recomputed_kernels": memory.recomputed_kernels, "estimated_slowdown": memory.slowdown,
        }),
        format_args!(
            "{memory}\n\nA step of {} tokens needs {:.1} MB of memory and {:.2} GFLOP.",
            prepared.pace.batches_a_step() * (prepared.pace.sequences * prepared.pace.context) as u64,
            plan.peak_bytes() as f64 / 1e6,
            plan.flops() as f64 / 1e9
        ),
    );
    plan::check(plan, options, device)
}

/// The places of the run to go on with, which was told the same.
fn last(config: &Config, name: &str, now: &Map<String, Value>) -> Result<Locked, Failure> {
    let (locked, _) = Places::last(config, name)?;
    let folder = locked.places.folder.join("checkpoints");
    let begun = CheckpointFolder::open(&folder)?.last_intact()?.0;
    let begun = begun.as_ref().and_then(|checkpoint| checkpoint.text(SETTINGS_NOTE).ok());
    let begun: Option<Map<String, Value>> = begun.and_then(|text| serde_json::from_str(text).ok());
    let Some(begun) = begun else {
        return Err(Failure::Usage(format!(
            "{} is no run of `volta finetune`: name another by --name, or leave out --resume",
            locked.places.folder.display()
        )));
    };
    let changes = changes(&begun, now);
    if changes.is_empty() {
        return Ok(locked);
    }
    Err(Failure::Usage(format!(
        "the run in {} cannot go on with what it did not begin with; give its values again, or leave out --resume to start a new \
         run:\n  {}",
        locked.places.folder.display(),
        changes.join("\n  ")
    )))
}

/// What came of a training.
struct Trained {
    history: volta::train::History,
    times: Times,
    samples: Vec<(u64, String)>,
    is_interrupted: bool,
    is_stopped: bool,
}

fn train(
    options: &Options,
    prepared: &mut Prepared,
    locked: &Locked,
    steps: u64,
    settings: &Map<String, Value>,
    output: Output,
) -> Result<Trained, Failure> {
    let Prepared { llm, train, valid, loss, pace, prompt, .. } = prepared;
    let (llm, loss, pace, prompt) = (&*llm, &*loss, *pace, prompt.as_slice());
    let learner = Learner(llm);
    let mut optimizer = plan::optimizer(options, &learner)?;
    let (shown, taken) = (RefCell::new(Watch::new(output, steps, pace)), RefCell::new(Times::default()));
    let (written, fault) = (RefCell::new(Vec::new()), RefCell::new(None));
    let (watch, times, samples, diverged, model) = (&shown, &taken, &written, &fault, &learner);
    let every = options.sample_interval.unwrap_or((steps / 4).max(1));
    let interval = |interval: Option<u64>| interval.map(|steps| if steps == 0 { u64::MAX } else { steps });
    let trainer_options = TrainerOptions {
        epochs: if options.steps.is_some() { u64::MAX } else { options.epochs },
        steps: Some(steps),
        accumulate: options.accumulation as usize,
        clip: (options.clip > 0.0).then_some(options.clip),
        precision: (options.precision == Precision::F16).then_some(DType::F16),
        log_every: (steps / 100).clamp(1, 50),
        validate_every: interval(options.valid_interval),
        checkpoint_every: interval(options.checkpoint_interval),
        profile_every: Some(PROFILE_EVERY.min(steps.div_ceil(2))),
        folder: Some(locked.places.folder.clone()),
        resume: options.resume,
        progress: false,
        ..TrainerOptions::default()
    };
    let trainer = Trainer::new(&learner, &mut optimizer, trainer_options);
    let stop = trainer.stop_switch();
    let note = Value::Object(settings.clone()).to_string();
    let halt = stop.clone();
    let mut trainer = trainer
        .with_lock(&locked.lock)
        .with_note(SETTINGS_NOTE, &note)
        .with_schedule(schedule(options, steps))
        .with_observer(move |event| {
            watch.borrow_mut().see(event);
            // As at Ctrl-C: what is learnt is saved.
            if check().is_err() {
                halt.store(true, Ordering::Relaxed);
            }
            match event {
                Event::NonFinite { step, what, checkpoint, best } => {
                    let path = |path: &Option<&Path>| path.map(Path::to_path_buf);
                    let (checkpoint, best) = (path(checkpoint), path(best));
                    *diverged.borrow_mut() =
                        Some(Diverged { step: *step, what: what.to_string(), checkpoint, best });
                }
                Event::Profiled { step, profile, .. } => {
                    times.borrow_mut().add(profile, pace.tokens_of(*step))
                }
                Event::Step { step } if every > 0 && step.is_multiple_of(every) && *step < steps => {
                    let text = sample(options, llm, prompt);
                    watch.borrow().say(&format!("--- after step {step}:\n{}\n---", text.trim_end()));
                    samples.borrow_mut().push((*step, text));
                    model.train();
                }
                _ => {}
            }
            Ok(())
        });
    let interrupted = stop_on_interrupt(stop.clone(), true)?;
    let fitted = trainer.fit(train, valid.as_mut(), |x: &Tensor, y: &Tensor| loss.of(llm, x, y));
    let (done, trained) = trainer.speed();
    let tokens = trainer.units();
    drop(trainer);
    if let Some(diverged) = fault.into_inner() {
        output.event(&diverged.json());
        return Err(Failure::NotFinite(format!(
            "{}\nTry a learning rate below {}.",
            diverged.what_is_left(),
            options.rate()
        )));
    }
    let history = fitted?;
    let mut times = taken.into_inner();
    (times.steps, times.training, times.waiting) = (done, trained, train.waited());
    (times.tokens, times.ranks) = (tokens, 1);
    let mut samples = written.into_inner();
    samples.push((history.rows.last().map_or(0, |row| row.step), sample(options, llm, prompt)));
    Ok(Trained {
        history,
        times,
        samples,
        is_interrupted: interrupted.load(Ordering::Relaxed),
        is_stopped: stop.load(Ordering::Relaxed),
    })
}

/// The learning rate's way through all steps.
fn schedule(options: &Options, steps: u64) -> Box<dyn optim::Schedule> {
    let warmup = options.warmup.unwrap_or(steps * 3 / 100).min(steps / 2);
    let rest = (steps - warmup).max(1);
    match options.schedule {
        Schedule::Constant => Box::new(WarmupLR::new(warmup, ExponentialLR::new(1.0))),
        Schedule::Linear => Box::new(WarmupLR::new(warmup, LinearLR::new(1.0, 0.0, rest))),
        Schedule::Cosine => Box::new(WarmupLR::new(warmup, CosineAnnealingLR::new(rest, 0.0))),
    }
}

/// What the model writes now, or why it does not.
fn sample(options: &Options, llm: &Llm, prompt: &[u32]) -> String {
    let written = || -> volta::Result<String> {
        let first = if prompt.is_empty() { llm.prompt("")? } else { prompt.to_vec() };
        let greedy = SamplerOptions { temperature: 0.0, ..SamplerOptions::default() };
        let mut text = Generation::new(llm, Sampler::new(greedy)?);
        text.read(&first)?;
        let mut written = Vec::new();
        for _ in 0..options.sample_length {
            let token = text.write()?;
            if llm.ends(token) {
                break;
            }
            written.push(token);
        }
        let prompt = llm.tokenizer.decode(prompt);
        Ok(format!("{prompt}⟶{}", llm.tokenizer.decode(&written)))
    };
    written().unwrap_or_else(|error| format!("(nothing: {})", error.message()))
}

/// A bar for work before the training.
fn bar(output: Output, total: u64, what: &str) -> ProgressBar {
    let bar = if output.quiet || output.json { ProgressBar::hidden() } else { ProgressBar::new(total) };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} [{elapsed}, {eta} left]");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.with_message(what.to_string())
}
