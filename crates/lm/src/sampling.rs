//! Text as a model writes it: token by token, each with its probability.

use crate::config::Config;
use volta::Result;
use volta::models::{Generation, Gpt};
use volta::text::{DecodeStream, Sampler, SamplerOptions, Tokenizer};

/// How a configuration picks tokens.
pub fn sampler(config: &Config, seed: u64) -> SamplerOptions {
    SamplerOptions {
        temperature: config.temperature as f32,
        top_k: config.top_k,
        top_p: config.top_p as f32,
        repetition_penalty: config.repetition_penalty as f32,
        seed,
    }
}

/// Where a text starts when nothing was said: at a line's beginning, or at whatever the tokenizer has.
pub fn beginning(tokenizer: &Tokenizer) -> Vec<u32> {
    let line = tokenizer.try_encode("\n").unwrap_or_default();
    if line.is_empty() { vec![0] } else { line }
}

/// Writes up to `count` tokens after what was read, piece by piece, until `goes_on` says otherwise.
pub fn write(
    text: &mut Generation<'_>,
    tokenizer: &Tokenizer,
    count: u64,
    mut goes_on: impl FnMut(&str) -> bool,
) -> Result<u64> {
    let mut stream = tokenizer.decode_stream();
    // A line ends with two characters in some texts; they are shown together.
    let mut held = String::new();
    for done in 0..count {
        held.push_str(&stream.push(text.write()?));
        if held.ends_with('\r') {
            continue;
        }
        if !goes_on(&std::mem::take(&mut held)) {
            return Ok(done + 1);
        }
    }
    goes_on(&(held + &stream.finish()));
    Ok(count)
}

/// A whole text of `count` tokens that goes on from `prompt`.
pub fn sample(
    gpt: &Gpt,
    tokenizer: &Tokenizer,
    sampler: Sampler,
    prompt: &[u32],
    count: u64,
) -> Result<String> {
    let mut text = Generation::new(gpt, sampler);
    text.read(prompt)?;
    let mut out = String::new();
    write(&mut text, tokenizer, count, |piece| {
        out.push_str(piece);
        true
    })?;
    Ok(out)
}

/// A token that a model has written.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// The text that it completes; nothing in the middle of a character.
    pub text: String,
    /// How likely the model took it to be, before temperature and the choice among the likeliest.
    pub probability: f64,
}

/// A text that is written while others do something else: nobody is blocked.
///
/// ```
/// use volta::models::{Gpt, GptOptions};
/// use volta::text::{SamplerOptions, Tokenizer, TokenizerKind, TokenizerOptions};
/// use volta_lm::Writer;
/// let tokenizer = Tokenizer::train(TokenizerKind::Bytes, "", &TokenizerOptions::default())?;
/// let gpt = Gpt::new(GptOptions { layers: 1, context: 8, ..GptOptions::default() });
/// let mut writer = Writer::new(&gpt, &tokenizer, "ab", SamplerOptions::default())?;
/// let token = pollster::block_on(writer.write())?;
/// assert!(token.probability > 0.0 && token.probability < 0.1);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Writer<'m> {
    text: Generation<'m>,
    stream: DecodeStream<'m>,
}

impl<'m> Writer<'m> {
    /// Goes on from `prompt`, or from the beginning of a line if that is empty. The model is switched to evaluation.
    pub fn new(
        gpt: &'m Gpt,
        tokenizer: &'m Tokenizer,
        prompt: &str,
        options: SamplerOptions,
    ) -> Result<Writer<'m>> {
        let mut tokens = tokenizer.try_encode(prompt)?;
        if tokens.is_empty() {
            tokens = beginning(tokenizer);
        }
        let mut text = Generation::new(gpt, Sampler::new(options)?);
        text.read(&tokens)?;
        Ok(Writer { text, stream: tokenizer.decode_stream() })
    }

    /// The next token.
    pub async fn write(&mut self) -> Result<Token> {
        let (id, probability) = self.text.write_with_probability().await?;
        Ok(Token { id, text: self.stream.push(id), probability })
    }

    /// What is left at the end: `�` for a character that was begun and never finished.
    pub fn finish(mut self) -> String {
        self.stream.finish()
    }
}
