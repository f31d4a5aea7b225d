//! Text as a model of others writes it.

use crate::lm::StopText;
use crate::output::{Failure, Output};
use std::time::Instant;
use volta::models::{Generation, Llm};

/// What was written.
pub struct Written {
    pub text: String,
    pub tokens: u64,
    /// After the first, which waits for its plan to be compiled.
    pub tokens_per_second: f64,
}

/// Writes up to `count` tokens, until the model ends or a text occurs, showing what is sure.
pub fn write(
    llm: &Llm,
    text: &mut Generation<'_, Llm>,
    count: u64,
    stop: &str,
    output: Output,
) -> Result<Written, Failure> {
    let mut stream = llm.tokenizer.decode_stream();
    let mut shown = StopText::new(stop, output);
    let (mut tokens, mut first) = (0, None);
    while tokens < count {
        let token = text.write()?;
        first.get_or_insert_with(Instant::now);
        if llm.ends(token) {
            break;
        }
        tokens += 1;
        if !shown.push(&stream.push(token)) {
            break;
        }
    }
    shown.push(&stream.finish());
    let seconds = first.map_or(f64::NAN, |first| first.elapsed().as_secs_f64());
    let tokens_per_second = tokens.saturating_sub(1) as f64 / seconds;
    Ok(Written { text: shown.finish(), tokens, tokens_per_second })
}
