//! `volta eval` with a model of others.

use super::{called, load};
use crate::lm::eval::{Measured, Options, measure, report};
use crate::output::{Failure, Outcome, Output};
use std::path::Path;
use volta::Module;
use volta::models::LanguageModel;

/// The most tokens of a window, unless told otherwise.
const WINDOW: usize = 1024;
/// Which share of a text is for validation, where the set does not say.
const VALID_FRACTION: f64 = 0.1;

/// Prints loss and perplexity.
pub fn run(options: &Options, path: &Path, output: Output) -> Outcome {
    let Some(data) = options.data.as_deref() else {
        return Err(Failure::Usage("name a text to measure on: a data set, a file or a folder".into()));
    };
    let llm = load(path, &options.adapter)?;
    llm.eval();
    let text = options.text(data, VALID_FRACTION, output)?;
    let tokens = llm.tokenizer.try_encode(&text)?;
    let most = llm.max_tokens();
    let window = options.window.map_or(WINDOW.min(most), |window| window as usize);
    if window > most {
        return Err(Failure::Usage(format!("a window of {window} tokens: the model sees {most}")));
    }
    let found: Measured = measure(tokens, window, options, llm.device(), |x, y| llm.try_loss(x, y))?;
    report(&called(path), data, &found, output)
}
