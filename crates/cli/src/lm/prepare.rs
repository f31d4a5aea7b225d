//! Everything a run needs, made from its configuration: the text from wherever it is, the tokenizer with a view of its training.

use crate::download::corpus;
use crate::output::{Failure, Output};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use volta::Device;
use volta::text::{CorpusOptions, Tokenizer, TokenizerKind, TokenizerOptions};
use volta_lm::config::TokenizerSource;
use volta_lm::{Config, Model, Prepared, Tokens};

/// Lines about progress, where there is no terminal, are this far apart.
const SECONDS_BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Reads the text, makes the tokenizer, the model and the loaders. A run that begins with another model has its tokenizer and
/// its weights.
pub fn prepare(
    config: &Config,
    from: Option<Model>,
    device: Device,
    output: Output,
) -> Result<Prepared, Failure> {
    let options = CorpusOptions { valid_fraction: config.valid_fraction, ..CorpusOptions::default() };
    let corpus = corpus(&config.data, &options, output)?;
    let tokenizer = match (&from, &config.tokenizer) {
        (Some(model), _) => model.tokenizer.clone(),
        (None, TokenizerSource::File(path)) => Tokenizer::from_file(path)?,
        (None, TokenizerSource::Train(kind)) => {
            let options = TokenizerOptions { vocabulary: config.vocabulary };
            train_tokenizer(*kind, &corpus.train, &options, output)?
        }
    };
    let tokens = Tokens::of(&corpus, &tokenizer)?;
    config.check_data(tokens.train.len(), tokens.valid.len()).map_err(|e| Failure::Usage(e.to_string()))?;
    Ok(Prepared::new(config, &corpus, tokenizer, tokens, from.as_ref().map(|model| &model.gpt), device)?)
}

/// Trains a tokenizer, and shows how far it is where that takes a while.
fn train_tokenizer(
    kind: TokenizerKind,
    text: &str,
    options: &TokenizerOptions,
    output: Output,
) -> Result<Tokenizer, Failure> {
    let bar = if output.quiet || output.json { ProgressBar::hidden() } else { ProgressBar::new(0) };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} tokens of the vocabulary [{elapsed}]");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut last = Instant::now();
    let trained = Tokenizer::train_watched(kind, text, options, |found, most| {
        bar.set_length(most as u64);
        bar.set_position(found as u64);
        if bar.is_hidden() && last.elapsed() >= SECONDS_BETWEEN_LINES {
            last = Instant::now();
            output.note(format_args!("The vocabulary has {found} of {most} tokens."));
        }
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    trained?.ok_or_else(|| Failure::Failed("the training of the tokenizer was stopped".to_string()))
}
