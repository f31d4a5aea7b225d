//! What `generate`, `chat` and samples have in common: flags for how tokens are picked, and text as it is written.

use volta::Result;
use volta::models::{Generation, Gpt};
use volta::text::{Sampler, SamplerOptions, Tokenizer};

/// How the next token is picked; what is not said is as the model's configuration has it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sampling {
    /// How freely tokens are drawn; 0 takes the likeliest [the model's configuration]
    #[arg(long, allow_hyphen_values = true)]
    temperature: Option<f64>,
    /// Choose among so many of the likeliest tokens; 0 among all.
    #[arg(long)]
    top_k: Option<usize>,
    /// Choose among the likeliest tokens of this probability together.
    #[arg(long, allow_hyphen_values = true)]
    top_p: Option<f64>,
    /// Avoid recent tokens if it is more than 1.
    #[arg(long, allow_hyphen_values = true)]
    repetition_penalty: Option<f64>,
    /// Where the random numbers start; without it every run writes something else.
    #[arg(long)]
    pub seed: Option<u64>,
}

impl Sampling {
    /// With the configuration's values where none is given.
    pub fn sampler(&self, config: &super::config::Config, seed: u64) -> Result<Sampler> {
        Sampler::new(SamplerOptions {
            temperature: self.temperature.unwrap_or(config.temperature) as f32,
            top_k: self.top_k.unwrap_or(config.top_k),
            top_p: self.top_p.unwrap_or(config.top_p) as f32,
            repetition_penalty: self.repetition_penalty.unwrap_or(config.repetition_penalty) as f32,
            seed,
        })
    }

    /// The seed that was given, or one that nobody has seen before.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |d| d.as_nanos() as u64)
        })
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
