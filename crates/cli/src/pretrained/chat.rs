//! `volta chat` with a model of others: turns in its own template, and what was said before is not read again.

use super::writing::write;
use super::{called, load};
use crate::lm::chat::{Options, Turn, turns};
use crate::output::{Failure, Outcome, Output};
use serde_json::json;
use std::path::Path;
use volta::models::{Generation, LanguageModel, Llm};
use volta::text::{ChatMessage, ChatTemplate};

/// The most tokens of an answer, unless told otherwise.
const LENGTH: u64 = 1024;

/// Reads lines and answers each.
pub fn run(options: &Options, path: &Path, output: Output) -> Outcome {
    let llm = load(path, &options.adapter)?;
    let template = llm.template()?;
    let sampler = options.sampling.over(llm.sampling.clone(), options.sampling.seed());
    let sampler = sampler.map_err(|error| Failure::usage(&error))?;
    let mut text = Generation::new(&llm, sampler);
    output.note(format_args!("{}: it answers what you type; Ctrl-D ends.", called(path)));
    let mut said: Vec<ChatMessage> =
        options.system.iter().map(|system| ChatMessage::new("system", system)).collect();
    let first = said.len();
    turns(output, |line| {
        if line.is_empty() {
            return Ok(Turn::Nothing);
        }
        said.push(ChatMessage::new("user", line));
        let length = options.length.unwrap_or(LENGTH).min(llm.max_tokens() as u64 / 2).max(1);
        text.restart(&prompt(&llm, &template, &mut said, first, length)?)?;
        let answer = write(&llm, &mut text, length, options.stop.as_deref().unwrap_or(""), output)?;
        output.event(&json!({"prompt": line, "text": answer.text, "tokens": answer.tokens}));
        said.push(ChatMessage::new("assistant", answer.text));
        Ok(Turn::Answered)
    })
}

/// The tokens of a chat. Its first turns are left out where an answer would not fit.
fn prompt(
    llm: &Llm,
    template: &ChatTemplate,
    said: &mut Vec<ChatMessage>,
    first: usize,
    length: u64,
) -> Result<Vec<u32>, Failure> {
    loop {
        let tokens = llm.tokenizer.try_encode(&template.render(said, true)?)?;
        if tokens.len() as u64 + length <= llm.max_tokens() as u64 {
            return Ok(tokens);
        }
        if said.len() < first + 3 {
            return Err(Failure::Failed(format!(
                "this has {} tokens, and the model sees {}: say it in fewer words",
                tokens.len(),
                llm.max_tokens()
            )));
        }
        said.drain(first..first + 2);
    }
}
