//! `volta generate`: text from a prompt.

use super::model_file::{self, DEFAULT_FOLDER, find};
use super::sampling::Sampling;
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output, check, say_error, say_part};
use crate::pretrained;
use serde_json::json;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Instant;
use volta::models::Generation;
use volta_lm::{beginning, write};

#[derive(clap::Args)]
pub struct Options {
    /// The model: its name or its file; a folder or GGUF file of others, or hf:OWNER/NAME; without one, the newest.
    #[arg(long, short)]
    model: Option<String>,
    /// The folder that models are in.
    #[arg(long, default_value = DEFAULT_FOLDER)]
    models: PathBuf,
    /// What to go on from; `-` or nothing reads standard input, unless that is a terminal.
    prompt: Option<String>,
    /// How many tokens to write.
    #[arg(long, short, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub length: u64,
    /// How many texts to write.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub num: u64,
    #[command(flatten)]
    pub adapter: pretrained::Adapter,
    #[command(flatten)]
    device: DeviceFlag,
    #[command(flatten)]
    pub sampling: Sampling,
}

/// Writes texts.
pub fn run(options: &Options, output: Output) -> Outcome {
    let device = options.device.open()?;
    let pretrained = pretrained::find(options.model.as_deref())?;
    let prompt = prompt(options)?;
    if let Some(path) = pretrained {
        return pretrained::generate::run(options, &path, &prompt, output);
    }
    options.adapter.check_none()?;
    let path = find(options.model.as_deref(), &options.models)?;
    let model = model_file::load(&path, device)?;
    let mut tokens = model.tokenizer.try_encode(&prompt)?;
    if tokens.is_empty() {
        tokens = beginning(&model.tokenizer);
    }
    let seed = options.sampling.seed();
    for k in 0..options.num {
        let sampler = options.sampling.sampler(&model.config, seed.wrapping_add(k));
        let sampler = sampler.map_err(|error| Failure::usage(&error))?;
        let mut text = Generation::new(&model.gpt, sampler);
        text.read(&tokens)?;
        if !output.json {
            say_part(&prompt);
        }
        let mut written = String::new();
        // The first token waits for its plan to be compiled; the others tell how fast it writes.
        let mut first: Option<Instant> = None;
        let count = write(&mut text, &model.tokenizer, options.length, |piece| {
            first.get_or_insert_with(Instant::now);
            written.push_str(piece);
            output.json || say_part(piece)
        })?;
        // Nobody is told how fast tokens were written that nobody got.
        check()?;
        let seconds = first.map_or(f64::NAN, |first| first.elapsed().as_secs_f64());
        let speed = (count - 1) as f64 / seconds;
        output.result(
            &json!({
                "prompt": prompt, "text": written, "tokens": count,
                "seed": seed.wrapping_add(k), "tokens_per_second": speed,
            }),
            "",
        );
        check()?;
        if !output.quiet && !output.json {
            say_error(format_args!("[{count} tokens, {speed:.0} a second]"));
        }
    }
    Ok(())
}

fn prompt(options: &Options) -> Result<String, Failure> {
    match options.prompt.as_deref() {
        Some("-") => read_input(),
        Some(prompt) => Ok(prompt.to_string()),
        None if std::io::stdin().is_terminal() => Ok(String::new()),
        None => read_input(),
    }
}

fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|e| Failure::Failed(format!("cannot read the prompt from standard input: {e}")))?;
    Ok(text)
}
