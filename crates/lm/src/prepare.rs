//! A model and its data, made from a configuration.

use crate::config::Config;
use crate::epoch_math::EpochMath;
use crate::fingerprint::fingerprint;
use crate::model_file::shape;
use volta::data::{DataLoader, TokenWindows};
use volta::models::Gpt;
use volta::parallel::GradientParts;
use volta::text::{Corpus, Tokenizer};
use volta::{Device, Error, ErrorKind, Module, Result, manual_seed, with_device};

/// What a text is to a model.
pub struct Tokens {
    /// To learn from.
    pub train: Vec<i32>,
    /// To validate on.
    pub valid: Vec<i32>,
}

impl Tokens {
    /// The tokens of a text.
    pub fn of(corpus: &Corpus, tokenizer: &Tokenizer) -> Result<Tokens> {
        let ids = |text: &str| -> Result<Vec<i32>> {
            Ok(tokenizer.try_encode(text)?.into_iter().map(|t| t as i32).collect())
        };
        Ok(Tokens { train: ids(&corpus.train)?, valid: ids(&corpus.valid)? })
    }
}

/// A model, its data and where it runs.
pub struct Prepared {
    /// Where the model is.
    pub device: Device,
    /// All devices that compute its gradients, that one first.
    pub devices: Vec<Device>,
    /// What makes tokens of text.
    pub tokenizer: Tokenizer,
    /// The model.
    pub gpt: Gpt,
    /// What it learns from.
    pub train: DataLoader,
    /// What it is validated on, if there is enough of it.
    pub valid: Option<DataLoader>,
    /// What a step is.
    pub pace: EpochMath,
    /// Tokens of the training text.
    pub tokens: usize,
    /// The training text's fingerprint.
    pub text: String,
    /// What the run is called unless the configuration names it.
    pub name: String,
}

impl Prepared {
    /// Makes the model and the loaders. A run that begins with another model has its weights. The tokens must be enough for the
    /// configuration ([`Config::check_data`]).
    pub fn new(
        config: &Config,
        corpus: &Corpus,
        tokenizer: Tokenizer,
        tokens: Tokens,
        from: Option<&Gpt>,
        device: Device,
    ) -> Result<Prepared> {
        let Tokens { train, valid } = tokens;
        let count = train.len();
        manual_seed(config.seed);
        let gpt = with_device(device, || Gpt::try_new(shape(config, tokenizer.vocabulary_size())))?;
        if let Some(model) = from {
            gpt.load_state_dict(&model.state_dict(), true)?;
        }
        let sequences = count / config.context;
        let windows = TokenWindows::try_new(train, config.context)?.at_random(sequences);
        let train = DataLoader::try_over(windows, config.batch)?
            .with_shuffle(false)
            .with_drop_last(sequences >= config.batch)
            .with_seed(config.seed)
            .with_device(device);
        let valid =
            if valid.len() > config.context { Some(validation(valid, config, device)?) } else { None };
        let pace = EpochMath {
            batches: train.len() as u64,
            accumulation: config.accumulation as u64,
            sequences: config.batch.min(sequences),
            context: config.context,
        };
        let text = fingerprint(&corpus.train);
        let kind = if device.is_gpu() { "gpu" } else { "cpu" };
        let name = format!("{}-L{}-H{}-E{}-{kind}", corpus.name, config.layers, config.heads, config.width);
        let devices = vec![device];
        Ok(Prepared { device, devices, tokenizer, gpt, train, valid, pace, tokens: count, text, name })
    }

    /// With several devices, of which the model's own is the first. Batches are made on the CPU, from where each takes its part.
    pub fn on_devices(mut self, config: &Config, devices: &[Device]) -> Result<Prepared> {
        self.devices = devices.to_vec();
        let (parts, _) = self.parts(config)?;
        if parts < devices.len() {
            let message = format!(
                "{} do not give each of {} devices one",
                config.cite("gradient-parts"),
                devices.len()
            );
            return Err(Error::new(ErrorKind::Argument, message));
        }
        GradientParts::new(parts)?.check(self.pace.sequences)?;
        if devices.len() > 1 {
            self.train = self.train.with_device(Device::Cpu);
        }
        Ok(self)
    }

    /// The names of its devices.
    pub fn place(&self) -> String {
        self.devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
    }

    /// How many parts a batch is computed in, or what this rank has of it, and how many of them the first device has.
    pub fn parts(&self, config: &Config) -> Result<(usize, usize)> {
        let (devices, (_, ranks)) = (self.devices.len(), self.train.shard());
        let parts = GradientParts::new(config.gradient_parts.unwrap_or(devices * ranks).div_ceil(ranks))?;
        Ok((parts.count(), parts.count().div_ceil(devices)))
    }
}

/// The first batches of the text, the same every time.
fn validation(mut tokens: Vec<i32>, config: &Config, device: Device) -> Result<DataLoader> {
    let most = config.valid_batches.saturating_mul((config.batch * config.context) as u64);
    tokens.truncate(usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1));
    let windows = TokenWindows::try_new(tokens, config.context)?;
    Ok(DataLoader::try_over(windows, config.batch)?.with_device(device))
}
