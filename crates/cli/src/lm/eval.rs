//! `volta eval`: how well a model predicts a text.

use super::model_file::{self, DEFAULT_FOLDER, find, stem};
use crate::device::DeviceFlag;
use crate::download::corpus;
use crate::output::{Failure, Outcome, Output};
use crate::pretrained;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use volta::data::{DataLoader, TokenWindows};
use volta::text::CorpusOptions;
use volta::train::{Meter, Outcome as BatchOutcome};
use volta::{Device, Tensor, no_grad};

#[derive(clap::Args)]
pub struct Options {
    /// The model: its name or its file; a folder or GGUF file of others, or hf:OWNER/NAME; without one, the newest.
    #[arg(long, short)]
    model: Option<String>,
    /// The folder that models are in.
    #[arg(long, default_value = DEFAULT_FOLDER)]
    models: PathBuf,
    /// The text: a data set's name, a file or a folder; without one, the model's own.
    pub data: Option<String>,
    /// Which part of a data set.
    #[arg(long, value_enum, default_value_t = Part::Valid)]
    part: Part,
    /// Sequences at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Tokens of a window that a model of others sees at once [default: its context, at most 1024]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub window: Option<u64>,
    #[command(flatten)]
    pub adapter: pretrained::Adapter,
    #[command(flatten)]
    device: DeviceFlag,
}

impl Options {
    /// The text to measure on.
    pub fn text(&self, data: &str, valid_fraction: f64, output: Output) -> Result<String, Failure> {
        text(data, self.part, valid_fraction, output)
    }
}

/// What was measured.
pub struct Measured {
    loss: f64,
    tokens: usize,
    tokens_per_second: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Train,
    Valid,
    Test,
    /// All of a file or folder.
    All,
}

/// Prints loss and perplexity.
pub fn run(options: &Options, output: Output) -> Outcome {
    let device = options.device.open()?;
    if let Some(path) = pretrained::find(options.model.as_deref())? {
        return pretrained::eval::run(options, &path, output);
    }
    options.adapter.check_none()?;
    if options.window.is_some() {
        return Err(Failure::Usage("--window is for models of others: this one has its context".into()));
    }
    let path = find(options.model.as_deref(), &options.models)?;
    let model = model_file::load(&path, device)?;
    let data = options.data.as_deref().unwrap_or(&model.config.data);
    let text = text(data, options.part, model.config.valid_fraction, output)?;
    let tokens = model.tokenizer.try_encode(&text)?;
    let found = measure(tokens, model.config.context, options, device, |x, y| model.gpt.try_loss(x, y))?;
    report(&stem(&path), data, &found, output)
}

/// The mean loss over windows of a text.
pub fn measure(
    tokens: Vec<u32>,
    window: usize,
    options: &Options,
    device: Device,
    loss: impl Fn(&Tensor, &Tensor) -> volta::Result<Tensor>,
) -> Result<Measured, Failure> {
    let tokens: Vec<i32> = tokens.into_iter().map(|t| t as i32).collect();
    let windows = TokenWindows::try_new(tokens, window)?;
    let loader = DataLoader::try_over(windows, options.batch as usize)?.with_device(device);
    let started = Instant::now();
    let mut meter = Meter::new();
    no_grad(|| -> Result<(), Failure> {
        for batch in loader.try_iter() {
            let (x, y) = batch?;
            meter.add(&BatchOutcome::from(loss(&x, &y)?), x.size(0));
            meter.realize()?;
        }
        Ok(())
    })?;
    let tokens = meter.samples() * window;
    let loss = meter.read()?.first().map_or(f64::NAN, |m| m.1);
    Ok(Measured { loss, tokens, tokens_per_second: tokens as f64 / started.elapsed().as_secs_f64() })
}

/// Says what was measured.
pub fn report(model: &str, data: &str, found: &Measured, output: Output) -> Outcome {
    let Measured { loss, tokens, tokens_per_second: speed } = *found;
    if !loss.is_finite() {
        return Err(Failure::NotFinite(format!(
            "the loss of {model} on {data} is {loss}: the model has diverged, and no number about it means anything. Where \
             it was trained, best.safetensors and the checkpoints may still be good"
        )));
    }
    output.result(
        &json!({
            "model": model, "data": data, "tokens": tokens, "loss": loss, "perplexity": loss.exp(),
            "tokens_per_second": speed,
        }),
        format_args!(
            "{model} on {data}: loss {loss:.4}, perplexity {:.3}, over {tokens} tokens ({speed:.0} a second)",
            loss.exp()
        ),
    );
    Ok(())
}

fn text(data: &str, part: Part, valid_fraction: f64, output: Output) -> Result<String, Failure> {
    let valid_fraction = if part == Part::All { 0.0 } else { valid_fraction };
    let corpus = corpus(data, &CorpusOptions { valid_fraction, ..CorpusOptions::default() }, output)?;
    let missing = |part: &str| Failure::Usage(format!("{data} has no {part} part: choose another by --part"));
    match part {
        Part::Train | Part::All => Ok(corpus.train),
        Part::Valid if corpus.valid.is_empty() => Err(missing("validation")),
        Part::Valid => Ok(corpus.valid),
        Part::Test => corpus.test.ok_or_else(|| missing("test")),
    }
}
