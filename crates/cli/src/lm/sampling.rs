//! Flags for how tokens are picked.

use volta::Result;
use volta::text::{Sampler, SamplerOptions};
use volta_lm::{Config, sampler};

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
    pub fn sampler(&self, config: &Config, seed: u64) -> Result<Sampler> {
        self.over(sampler(config, seed), seed)
    }

    /// With the values of `model` where none is given.
    pub fn over(&self, model: SamplerOptions, seed: u64) -> Result<Sampler> {
        Sampler::new(SamplerOptions {
            seed,
            temperature: self.temperature.map_or(model.temperature, |x| x as f32),
            top_k: self.top_k.unwrap_or(model.top_k),
            top_p: self.top_p.map_or(model.top_p, |x| x as f32),
            repetition_penalty: self.repetition_penalty.map_or(model.repetition_penalty, |x| x as f32),
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
