//! `volta generate` with a model of others.

use super::load;
use super::writing::write;
use crate::lm::generate::Options;
use crate::output::{Failure, Outcome, Output, check, say_error, say_part};
use serde_json::json;
use std::path::Path;
use volta::models::Generation;

/// Writes texts.
pub fn run(options: &Options, path: &Path, prompt: &str, output: Output) -> Outcome {
    let llm = load(path, &options.adapter)?;
    let tokens = llm.prompt(prompt)?;
    let seed = options.sampling.seed();
    for k in 0..options.num {
        let seed = seed.wrapping_add(k);
        let sampler = options.sampling.over(llm.sampling.clone(), seed);
        let mut text = Generation::new(&llm, sampler.map_err(|error| Failure::usage(&error))?);
        text.read(&tokens)?;
        if !output.json {
            say_part(prompt);
        }
        let written = write(&llm, &mut text, options.length, "", output)?;
        check()?;
        let speed = written.tokens_per_second;
        output.result(
            &json!({
                "prompt": prompt, "text": written.text, "tokens": written.tokens, "seed": seed,
                "tokens_per_second": speed,
            }),
            "",
        );
        check()?;
        if !output.quiet && !output.json {
            say_error(format_args!("[{} tokens, {speed:.0} a second]", written.tokens));
        }
    }
    Ok(())
}
