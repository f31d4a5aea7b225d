//! `volta chat`: taking turns with a model.

use super::model_file::{self, DEFAULT_FOLDER, find, stem};
use super::sampling::Sampling;
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output, check, say_error, say_part};
use serde_json::json;
use std::io::BufRead;
use std::path::PathBuf;
use volta::models::Generation;
use volta_lm::write;

#[derive(clap::Args)]
pub struct Options {
    /// The model: its name or its file; without one, the newest.
    model: Option<String>,
    /// The folder that models are in.
    #[arg(long, default_value = DEFAULT_FOLDER)]
    models: PathBuf,
    /// The most tokens of an answer.
    #[arg(long, short, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    length: u64,
    /// An answer ends before this text; by default at a blank line. Empty: it never ends early.
    #[arg(long, default_value = "\n\n")]
    stop: String,
    #[command(flatten)]
    device: DeviceFlag,
    #[command(flatten)]
    sampling: Sampling,
}

/// Reads lines and answers each. What was said before stays in the context as far as it fits.
pub fn run(options: &Options, output: Output) -> Outcome {
    let device = options.device.open()?;
    let path = find(options.model.as_deref(), &options.models)?;
    let model = model_file::load(&path, device)?;
    let sampler = options.sampling.sampler(&model.config, options.sampling.seed());
    let sampler = sampler.map_err(|error| Failure::usage(&error))?;
    let mut text = Generation::new(&model.gpt, sampler);
    output.note(format_args!(
        "{}: it goes on from what you type, and remembers {} tokens. An empty line lets it go on by itself; \
         Ctrl-D ends.",
        stem(&path),
        model.config.context
    ));
    let mut is_first = true;
    loop {
        if !output.quiet && !output.json {
            say_part("> ");
        }
        check()?;
        let mut line = Vec::new();
        let read = std::io::stdin().lock().read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::Failed(format!("cannot read standard input: {e}")))? == 0 {
            output.note("");
            return Ok(());
        }
        let said = match std::str::from_utf8(&line) {
            Ok(line) => line.trim_end_matches(['\r', '\n']),
            Err(error) => {
                refuse(&error, output);
                continue;
            }
        };
        if said.is_empty() && is_first {
            continue;
        }
        let tokens = model.tokenizer.try_encode(said)?;
        if !said.is_empty() && tokens.is_empty() {
            continue;
        }
        text.read(&tokens)?;
        is_first = false;
        let answer = answer(&mut text, &model.tokenizer, options, output)?;
        output.event(&json!({"prompt": said, "text": answer}));
        output.note("");
    }
}

/// Says that a line cannot be answered: to machines as an answer, so that every line of theirs has one.
fn refuse(error: &std::str::Utf8Error, output: Output) {
    let reason = format!("that line is not UTF-8 (from byte {} on): it was left out", error.valid_up_to());
    if output.json {
        output.event(&json!({"error": reason}));
    } else {
        say_error(reason);
    }
}

/// Writes until the stop text or the length, showing what is sure not to be the beginning of the stop text.
fn answer(
    text: &mut Generation<'_>,
    tokenizer: &volta::text::Tokenizer,
    options: &Options,
    output: Output,
) -> Result<String, Failure> {
    let mut answer = String::new();
    let mut shown = 0;
    let stop = options.stop.as_str();
    // False when nobody gets it any more.
    let mut show = |answer: &str, up_to: usize| {
        if output.json || up_to <= shown {
            return true;
        }
        let part = &answer[shown..up_to];
        shown = up_to;
        say_part(part)
    };
    write(text, tokenizer, options.length, |piece| {
        answer.push_str(piece);
        if let Some(end) = (!stop.is_empty()).then(|| answer.find(stop)).flatten() {
            answer.truncate(end);
            return false;
        }
        let held = (1..stop.len()).rev().find(|&n| stop.get(..n).is_some_and(|s| answer.ends_with(s)));
        show(&answer, answer.len() - held.unwrap_or(0))
    })?;
    show(&answer, answer.len());
    check()?;
    Ok(answer)
}
