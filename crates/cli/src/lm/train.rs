//! `volta train`: a language model from a text.

use super::clock::span;
use super::config_flags::ConfigFlags;
use super::diverged::Diverged;
use super::html_report::Page;
use super::model_file;
use super::prepare::prepare;
use super::progress::Watch;
use super::ranks::Ranks;
use super::report::Times;
use super::run_paths::{self, Locked, Places};
use super::{last_run, log};
use crate::output::{Failure, Outcome, Output, check, say_error};
use serde_json::json;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use volta::io::write_file;
use volta::nn::{num_parameters, summary};
use volta::parallel::{ExchangeOptions, LocalSteps, Sharding};
use volta::text::Sampler;
use volta::train::{Event, History, Trainer, TrainerOptions};
use volta::{DType, ErrorKind, Module, Tensor, try_realize_all};
use volta_lm::config::{Flags, Precision};
use volta_lm::{
    About, Config, Prepared, RankMemory, RunManifest, StageMemory, StepPlan, TOKENIZER_NOTE, batch_outcome,
    beginning, metadata, optimizer, sample, sampler, schedule, trainer_options,
};

#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub flags: ConfigFlags,
    /// Print the model, the plan of a step, its memory and arithmetic, and stop.
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: what each of so many ranks needs.
    #[arg(long, value_name = "N", requires = "dry_run", value_parser = clap::value_parser!(u32).range(1..))]
    pub world: Option<u32>,
    /// Go on with the last run of this name, from its last checkpoint, to the same bits. What it learns from and how
    /// must be as it was; how long it takes and what it shows may change.
    #[arg(long)]
    pub resume: bool,
}

impl Options {
    /// What `volta` does when it is told nothing: a small model that learns in a minute or two on two cores.
    pub fn main_job() -> Options {
        let values = [("steps", "800"), ("sample-interval", "200"), ("valid-interval", "200")];
        let values = values.map(|(key, value)| (key, value.to_string())).to_vec();
        Options {
            flags: ConfigFlags(Flags { config: None, values }),
            dry_run: false,
            world: None,
            resume: false,
        }
    }
}

/// One step in so many is profiled.
pub(super) const PROFILE_EVERY: u64 = 50;

/// Trains, with the other processes that a launcher has started.
pub fn run(options: &Options, output: Output) -> Outcome {
    let session = volta_mpi::Session::begin().map_err(|e| Failure::usage(&e))?;
    let ranks = Ranks::new(session.world());
    let outcome = train(options, ranks.output(output), &ranks);
    ranks.end(outcome)
}

/// The configuration, and what it makes.
fn prepared(options: &Options, output: Output, ranks: &Ranks) -> Result<(Config, Prepared), Failure> {
    let config = options.flags.load()?;
    run_paths::check(&config)?;
    let devices = ranks.devices(&config.device)?;
    let device = devices[0];
    let from = config
        .from
        .as_deref()
        .map(|name| model_file::load(&model_file::find(Some(name), Path::new(&config.output))?, device));
    let from = from.transpose()?;
    let config = match &from {
        Some(model) => config.beginning_with(&model.config).map_err(|e| Failure::Usage(e.to_string()))?,
        None => config,
    };
    let prepared = prepare(&config, from, device, output)?;
    let mut prepared = prepared.on_devices(&config, &devices).map_err(|error| Failure::usage(&error))?;
    let (rank, size) = (ranks.world.rank(), ranks.world.size());
    let (rank, size) = options.world.map_or((rank, size), |size| (0, size as usize));
    if prepared.pace.sequences < size {
        return Err(Failure::Usage(format!(
            "{}: leaves nothing for some of {size} ranks: make it larger",
            config.cite("batch")
        )));
    }
    prepared.train = prepared.train.with_shard(rank, size);
    Ok((config, prepared))
}

/// Where the run goes: nothing is made for a run to go on with that is not there, and no folder for a run whose log cannot be written.
fn make_places(
    options: &Options,
    config: &Config,
    begun: &RunManifest,
    output: Output,
) -> Result<Locked, Failure> {
    let before = if options.resume { Some(last(config, begun, output)?) } else { None };
    log::prepare(&run_paths::log(config)).map_err(|e| cannot_write(&run_paths::log(config), &e))?;
    before.map_or_else(|| Places::make(config, &begun.name), Ok)
}

fn train(options: &Options, output: Output, ranks: &Ranks) -> Outcome {
    let (config, mut prepared) = ranks.together(prepared(options, output, ranks))?;
    let (device, devices) = (prepared.device, prepared.devices.clone());
    let steps = prepared.pace.steps(config.duration());
    describe(&config, &prepared, steps, output);
    if options.dry_run {
        let planned =
            if ranks.is_first() { dry_run(&config, &prepared, options.world, output) } else { Ok(()) };
        return ranks.together(planned);
    }
    let name = config.name.clone().unwrap_or_else(|| prepared.name.clone());
    let begun = RunManifest::now(&name, &config, &prepared);
    ranks.agree(&config, &begun)?;
    // Before anything is written: what does not fit into memory is found here.
    let fits = || -> Result<usize, Failure> {
        let plan = StepPlan::fitting(&config, &prepared)?;
        if let Some(memory) = plan.as_ref().map(|plan| plan.memory(device)).transpose()?
            && memory.recomputed_kernels > 0
        {
            output.note(format_args!(
                "A step does not fit into memory by itself, so it computes some of it twice.\n{memory}"
            ));
        }
        Ok(plan.map_or(0, |plan| plan.peak_bytes()))
    };
    let peak_bytes = ranks.together(fits())?;
    try_realize_all(&prepared.gpt.parameters())?;
    let locked =
        if ranks.is_first() { make_places(options, &config, &begun, output).map(Some) } else { Ok(None) };
    let locked = ranks.together(locked)?;
    let folder = ranks.folder(locked.as_ref().map(|locked| &*locked.places.folder), device)?;
    output.note(format_args!("Everything goes to {}.\n", folder.display()));
    let watchdog = ranks.watch(Duration::from_secs(config.rank_timeout))?;

    let mut optimizer = optimizer(&config, &prepared.gpt)?;
    let place = prepared.place();
    let Prepared { gpt, tokenizer, train, valid, pace, .. } = &mut prepared;
    let (gpt, tokenizer, pace) = (&*gpt, &*tokenizer, *pace);
    let watch = RefCell::new(Watch::new(output, steps, pace));
    let times = RefCell::new(Times::default());
    let samples = RefCell::new(Vec::new());
    let diverged = RefCell::new(None);
    let trainer_options = TrainerOptions {
        profile_every: ranks.is_first().then_some(PROFILE_EVERY.min(steps.div_ceil(2))),
        folder: Some(folder),
        resume: options.resume,
        devices,
        ..trainer_options(&config, steps)
    };
    let exchange = ExchangeOptions {
        half: config.exchange == Precision::F16,
        sharding: Sharding::of_stage(config.zero)?,
        local_steps: config.sync_every.map(|every| LocalSteps {
            every,
            learning_rate: config.outer_lr,
            momentum: config.outer_momentum,
        }),
        ..ExchangeOptions::default()
    };
    // Nobody has the whole model between steps.
    let samples_between = config.sample_interval > 0 && exchange.sharding < Sharding::Parameters;
    if config.sample_interval > 0 && !samples_between {
        output.note(
            "With --zero 3 no rank has the whole model between steps: a sample is written at the end only.\n",
        );
    }
    let trainer =
        Trainer::new(gpt, &mut *optimizer, trainer_options).with_world(ranks.world.clone(), exchange);
    let stop = trainer.stop_switch();
    let trainer = trainer
        .with_schedule(schedule(&config, steps))
        .with_observer(|event| {
            if let Some(watchdog) = &watchdog {
                watchdog.sign();
            }
            match event {
                Event::Resumed { step, .. } => ranks.note(&format!("goes on after step {step}")),
                Event::Saved { step } => ranks.note(&format!("step {step} is saved")),
                Event::Finished { step, .. } => ranks.note(&format!("has ended after step {step}")),
                _ => {}
            }
            if !ranks.is_first() {
                return Ok(());
            }
            watch.borrow_mut().see(event);
            // As at Ctrl-C: what is learnt is saved.
            if check().is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            if let Event::NonFinite { step, what, checkpoint, best } = event {
                let path = |path: &Option<&Path>| path.map(Path::to_path_buf);
                let (checkpoint, best) = (path(checkpoint), path(best));
                *diverged.borrow_mut() =
                    Some(Diverged { step: *step, what: what.to_string(), checkpoint, best });
            }
            if let Event::Profiled { step, profile, .. } = event {
                times.borrow_mut().add(profile, pace.tokens_of(*step));
            }
            if let Event::Step { step } = event
                && samples_between
                && step.is_multiple_of(config.sample_interval)
                && *step < steps
            {
                let text = sample_or_reason(gpt, tokenizer, &config, *step);
                watch.borrow().say(&format!("--- after step {step}:\n{}\n---", text.trim_end()));
                samples.borrow_mut().push((*step, text));
                gpt.train();
            }
            Ok(())
        })
        .with_note(TOKENIZER_NOTE, &tokenizer.to_json())
        .with_best_metadata(|history| {
            let steps = history.rows.last().map_or(0, |row| row.step);
            metadata(tokenizer, &config, &About::of(history, steps, &place))
        });
    let trainer = match &locked {
        Some(locked) => trainer.with_lock(&locked.lock),
        None => trainer,
    };
    let notes = begun.notes().into_iter();
    let mut trainer = notes.fold(trainer, |trainer, (name, text)| trainer.with_note(name, &text));
    let interrupted = stop_on_interrupt(stop.clone(), ranks.is_first())?;
    let started = Instant::now();
    let fitted = trainer.fit(train, valid.as_mut(), |x: &Tensor, y: &Tensor| batch_outcome(gpt, x, y));
    let (done, trained) = trainer.speed();
    let (tokens, exchange) = (trainer.units(), trainer.exchange_cost());
    drop(trainer);
    // What comes now is done by one process, and takes as long as it takes.
    drop(watchdog);
    if let Err(error) = &fitted
        && error.kind() == ErrorKind::NonFinite
        && !ranks.is_first()
    {
        return Err(Failure::Told(Failure::NotFinite(String::new()).code()));
    }
    if let Some(diverged) = diverged.into_inner() {
        output.event(&diverged.json());
        return Err(Failure::NotFinite(diverged.message(&options.flags.0, &config)));
    }
    let fitted = fitted?;
    let Some(Locked { places, .. }) = &locked else { return Ok(ranks.world.barrier()?) };
    let mut times = times.into_inner();
    (times.steps, times.training, times.waiting) = (done, trained, train.waited());
    (times.tokens, times.peak_bytes) = (tokens, peak_bytes);
    (times.ranks, times.exchange) = (ranks.world.size(), exchange);
    let mut samples = samples.into_inner();
    let last = fitted.rows.last().map_or(0, |r| r.step);
    samples.push((last, sample_or_reason(&prepared.gpt, &prepared.tokenizer, &config, last)));
    let ended = Ended { config: &config, prepared: &prepared, places, history: &fitted, times, samples };
    ended.keep(output, started.elapsed())?;
    ranks.world.barrier()?;
    let is_interrupted = interrupted.load(Ordering::Relaxed);
    if is_interrupted || (last < steps && stop.load(Ordering::Relaxed)) {
        say_error(format_args!(
            "Stopped after step {last}. Go on with: {}",
            config.command("train --resume", &options.flags.0)
        ));
    }
    if is_interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// A run that has ended.
struct Ended<'a> {
    config: &'a Config,
    prepared: &'a Prepared,
    places: &'a Places,
    history: &'a History,
    times: Times,
    samples: Vec<(u64, String)>,
}

impl Ended<'_> {
    /// Writes the model, the page and the line of the log, and says how it went.
    fn keep(&self, output: Output, whole: Duration) -> Outcome {
        let Ended { config, prepared, places, history, times, samples } = self;
        let about = About::of(history, samples.last().map_or(0, |s| s.0), &prepared.place());
        let date = about.date.clone();
        model_file::save(&places.model, &prepared.gpt, &prepared.tokenizer, config, &about)?;
        let loss = |l: Option<f64>| l.map_or("-".to_string(), |l| format!("{l:.4}"));
        let summary = format!(
            "{} parameters, {} tokens of {}; {} steps on {}; training loss {}, validation loss {}.",
            num_parameters(&prepared.gpt),
            prepared.tokens,
            config.data,
            about.steps,
            about.device,
            loss(about.train_loss),
            loss(about.valid_loss)
        );
        let page = Page {
            name: &places.name,
            date: &date,
            summary: &summary,
            history,
            times,
            samples,
            config: &config.effective(),
        };
        write_file(&places.page, page.html())?;
        let epochs = prepared.pace.epochs(about.steps);
        let walked = epochs - prepared.pace.epochs(about.steps.saturating_sub(times.steps));
        let line = log::Line {
            date: &date,
            device: &about.device,
            data: &config.data,
            model: &places.name,
            steps: about.steps,
            epochs,
            epoch_seconds: if walked > 0.0 { times.training.as_secs_f64() / walked } else { 0.0 },
            tokens_per_second: times.tokens_per_second(),
            train_loss: about.train_loss,
            valid_loss: about.valid_loss,
            path: &places.model,
        };
        log::add(&places.log, &line).map_err(|e| cannot_write(&places.log, &e))?;
        if let Some((_, text)) = samples.last() {
            output.note(format_args!("\n--- it writes now:\n{}\n---\n", text.trim_end()));
        }
        output.note(times);
        let text = format!(
            "\n{summary} {} in all.\nModel {}\nReport {}\nTalk with it: {}",
            span(whole),
            places.model.display(),
            places.page.display(),
            places.chat(&config.output)
        );
        let skipped: f64 = history.series("skipped_steps").iter().map(|row| row.1).sum();
        if skipped > 0.0 {
            output.note(format_args!(
                "\n{skipped} of {} steps were skipped: their gradients were not finite in half precision.",
                about.steps
            ));
        }
        let json = json!({
            "skipped_steps": skipped,
            "event": "finished", "name": places.name, "device": about.device, "model": places.model, "report": places.page,
            "steps": about.steps, "train_loss": about.train_loss, "valid_loss": about.valid_loss,
            "profile": times.json(), "sample": samples.last().map(|s| &s.1),
        });
        if output.json {
            output.event(&json);
        } else {
            output.note(text);
        }
        Ok(())
    }
}

pub(super) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}

/// What will be trained, in a few lines.
fn describe(config: &Config, prepared: &Prepared, steps: u64, output: Output) {
    let o = &prepared.gpt.options;
    output.note(format_args!(
        "A transformer of {} layers, {} heads, width {} and context {}: {} parameters, on {}.",
        o.layers,
        o.heads,
        o.width,
        o.context,
        num_parameters(&prepared.gpt),
        prepared.place()
    ));
    output.note(format_args!(
        "It learns from {} ({} tokens of {}, {} different), {} steps of {}.",
        config.data,
        prepared.tokens,
        prepared.tokenizer.kind().name(),
        o.vocabulary,
        steps,
        prepared.pace
    ));
}

fn dry_run(config: &Config, prepared: &Prepared, world: Option<u32>, output: Output) -> Outcome {
    let pace = &prepared.pace;
    let ranks = world.unwrap_or(1) as usize;
    let batch = Tensor::try_zeros([pace.sequences / ranks, pace.context])?.try_to_dtype(DType::I32)?;
    let summary = summary(&prepared.gpt, Some(&batch))?;
    output.note(format_args!("\n{summary}\n"));
    let available = prepared.device.memory()?;
    let Some(plan) = StepPlan::under_limit(config, prepared)? else { return Ok(()) };
    let memory = plan.memory(prepared.device)?;
    let each = if ranks > 1 { RankMemory::new(config, prepared, ranks)? } else { None };
    // What is shared out is none of the plan's.
    let shared = each.as_ref().filter(|_| config.zero > 0);
    let peak = shared.map_or(plan.peak_bytes(), |each| each.stages[config.zero].peak);
    let table = each.as_ref().map_or(String::new(), |each| format!("\n\n{each}"));
    output.result(
        &json!({
            "parameters": summary.parameters, "kernels": plan.kernels(), "flops": plan.flops(),
            "bytes_moved": plan.traffic(), "peak_bytes": peak,
            "available_bytes": available, "ranks": ranks,
            "memory_limit": memory.limit, "unlimited_peak_bytes": memory.unlimited_peak_bytes,
            "missing_bytes": memory.missing_bytes, "recomputed_kernels": memory.recomputed_kernels,
            "recomputed_flops": memory.recomputed_flops, "recomputed_bytes": memory.recomputed_bytes,
            "moved_bytes": memory.moved_bytes, "host_bytes": memory.host_bytes,
            "estimated_slowdown": memory.slowdown, "ranks_memory": each.as_ref().map(stages),
        }),
        format_args!(
            "{plan}\n\n{memory}\n\nA step of {} tokens needs {:.1} MB of memory and {:.2} GFLOP{}.{table}",
            pace.batches_a_step() * (pace.sequences * pace.context) as u64,
            peak as f64 / 1e6,
            plan.flops() as f64 / 1e9,
            if ranks > 1 { format!(" on each of {ranks} ranks") } else { String::new() }
        ),
    );
    Ok(plan.check_memory(config, prepared)?)
}

/// What each rank takes, by stage.
fn stages(memory: &RankMemory) -> serde_json::Value {
    let stage = |m: &StageMemory| {
        json!({
            "parameters": m.parameters, "gradients": m.gradients, "optimizer": m.optimizer, "pass": m.pass,
            "peak_bytes": m.peak,
        })
    };
    memory.stages.iter().map(stage).collect()
}

/// The places of the run to go on with.
fn last(config: &Config, now: &RunManifest, output: Output) -> Result<Locked, Failure> {
    let (locked, begun) = Places::last(config, &now.name)?;
    match begun {
        Some(begun) => last_run::check(&begun, now, &locked.places.folder)?,
        None => output.note(
            "The checkpoint does not say what the run began with: whether the flags are the same is not known.",
        ),
    }
    Ok(locked)
}

/// What the model writes after a step, or why it does not: a model that has diverged is still worth keeping.
fn sample_or_reason(
    gpt: &volta::models::Gpt,
    tokenizer: &volta::text::Tokenizer,
    config: &Config,
    step: u64,
) -> String {
    let written = write_sample(gpt, tokenizer, config, step);
    written.unwrap_or_else(|error| format!("(nothing: {})", error.message()))
}

fn write_sample(
    gpt: &volta::models::Gpt,
    tokenizer: &volta::text::Tokenizer,
    config: &Config,
    step: u64,
) -> volta::Result<String> {
    let sampler = Sampler::new(sampler(config, config.seed.wrapping_add(step)))?;
    sample(gpt, tokenizer, sampler, &beginning(tokenizer), config.sample_length)
}

/// The first Ctrl-C finishes the step and saves; the second ends at once.
pub(super) fn stop_on_interrupt(stop: Arc<AtomicBool>, speaks: bool) -> Result<Arc<AtomicBool>, Failure> {
    let pressed = Arc::new(AtomicBool::new(false));
    let seen = pressed.clone();
    let set = ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        if speaks {
            say_error("\nFinishing the step and saving; press Ctrl-C again to end at once.");
        }
        stop.store(true, Ordering::Relaxed);
    });
    set.map_err(|e| Failure::Failed(format!("cannot watch for Ctrl-C: {e}")))?;
    Ok(pressed)
}
