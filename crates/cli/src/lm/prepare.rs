//! Everything a run needs, made from its configuration.

use super::config::{self, Config, TokenizerSource};
use super::epoch_math::EpochMath;
use super::model_file::{Model, shape};
use super::run_manifest::fingerprint;
use crate::download::corpus;
use crate::output::{Failure, Output};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use volta::data::{DataLoader, TokenWindows};
use volta::models::Gpt;
use volta::optim::{
    AdamOptions, AdamWOptions, Chained, CosineAnnealingLR, ExponentialLR, LinearLR, LionOptions, MuonOptions,
    OneCycleLR, SGDOptions, Schedule, WarmupLR,
};
use volta::text::{CorpusOptions, Tokenizer, TokenizerKind, TokenizerOptions};
use volta::{Adam, AdamW, Device, Lion, Module, Muon, Optimizer, SGD, Tensor, manual_seed};

/// Lines about progress, where there is no terminal, are this far apart.
const SECONDS_BETWEEN_LINES: Duration = Duration::from_secs(10);

/// A model, its data and where it runs.
pub struct Prepared {
    pub device: Device,
    pub tokenizer: Tokenizer,
    pub gpt: Gpt,
    pub train: DataLoader,
    pub valid: Option<DataLoader>,
    pub pace: EpochMath,
    /// Tokens of the training text.
    pub tokens: usize,
    /// The training text's fingerprint.
    pub text: String,
    /// What the run is called unless the configuration names it.
    pub name: String,
}

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
    let ids = |text: &str| -> volta::Result<Vec<i32>> {
        Ok(tokenizer.try_encode(text)?.into_iter().map(|t| t as i32).collect())
    };
    let (train, valid) = (ids(&corpus.train)?, ids(&corpus.valid)?);
    let count = train.len();
    config.check_data(count, valid.len()).map_err(|e| Failure::Usage(e.to_string()))?;
    manual_seed(config.seed);
    let gpt = Gpt::try_new(shape(config, tokenizer.vocabulary_size()))?;
    if let Some(model) = from {
        gpt.load_state_dict(&model.gpt.state_dict(), true)?;
    }
    let sequences = count / config.context;
    let windows = TokenWindows::try_new(train, config.context)?.at_random(sequences);
    let train = DataLoader::try_over(windows, config.batch)?
        .with_shuffle(false)
        .with_drop_last(sequences >= config.batch)
        .with_seed(config.seed)
        .with_device(device);
    let valid = if valid.len() > config.context { Some(validation(valid, config, device)?) } else { None };
    let pace = EpochMath {
        batches: train.len() as u64,
        accumulation: config.accumulation as u64,
        sequences: config.batch.min(sequences),
        context: config.context,
    };
    let text = fingerprint(&corpus.train);
    let kind = if device.is_gpu() { "gpu" } else { "cpu" };
    let name = format!("{}-L{}-H{}-E{}-{kind}", corpus.name, config.layers, config.heads, config.width);
    Ok(Prepared { device, tokenizer, gpt, train, valid, pace, tokens: count, text, name })
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

/// The first batches of the text, the same every time.
fn validation(mut tokens: Vec<i32>, config: &Config, device: Device) -> volta::Result<DataLoader> {
    let most = config.valid_batches.saturating_mul((config.batch * config.context) as u64);
    tokens.truncate(usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1));
    let windows = TokenWindows::try_new(tokens, config.context)?;
    Ok(DataLoader::try_over(windows, config.batch)?.with_device(device))
}

/// The optimizer of the configuration. What has one axis, biases and norms, is not drawn to zero.
pub fn optimizer(config: &Config, gpt: &Gpt) -> volta::Result<Box<dyn Optimizer>> {
    let (wide, narrow): (Vec<_>, Vec<_>) = gpt.parameters().into_iter().partition(|p| p.rank() > 1);
    let (learning_rate, weight_decay) = (config.learning_rate, config.weight_decay);
    /// Two groups that differ in weight decay.
    macro_rules! grouped {
        ($optimizer:ident, $options:expr) => {{
            let options = $options;
            let mut optimizer = $optimizer::try_with(wide, options.clone())?;
            let mut free = options;
            free.weight_decay = 0.0;
            optimizer.try_add_group(narrow, free)?;
            Ok(Box::new(optimizer))
        }};
    }
    match config.optimizer {
        config::Optimizer::AdamW => {
            let own = AdamWOptions::default();
            let betas = config.betas.unwrap_or(own.betas);
            grouped!(AdamW, AdamWOptions { learning_rate, weight_decay, betas, ..own })
        }
        config::Optimizer::Adam => {
            let own = AdamOptions::default();
            let betas = config.betas.unwrap_or(own.betas);
            grouped!(Adam, AdamOptions { learning_rate, weight_decay, betas, ..own })
        }
        config::Optimizer::Lion => {
            let own = LionOptions::default();
            let betas = config.betas.unwrap_or(own.betas);
            grouped!(Lion, LionOptions { learning_rate, weight_decay, betas })
        }
        config::Optimizer::Sgd => {
            let own = SGDOptions::default();
            let momentum = config.momentum.unwrap_or(0.9);
            grouped!(SGD, SGDOptions { learning_rate, weight_decay, momentum, ..own })
        }
        config::Optimizer::Muon => {
            // Muon is made for the matrices between the layers; tables of tokens and what has one axis are AdamW's.
            let tables: Vec<Tensor> = gpt
                .named_parameters()
                .into_iter()
                .filter(|(name, p)| p.rank() > 1 && is_table(name))
                .map(|(_, p)| p)
                .collect();
            let hidden = wide.into_iter().filter(|p| !tables.iter().any(|t| t.is_same(p))).collect();
            let own = MuonOptions::default();
            let momentum = config.momentum.unwrap_or(own.momentum);
            // Its steps have a length of their own: twenty times AdamW's is its authors' ratio.
            let rate = 20.0 * learning_rate;
            let muon =
                Muon::try_with(hidden, MuonOptions { learning_rate: rate, weight_decay, momentum, ..own })?;
            let adam = AdamWOptions { learning_rate, weight_decay, ..AdamWOptions::default() };
            let mut others = AdamW::try_with(tables, adam.clone())?;
            others.try_add_group(narrow, AdamWOptions { weight_decay: 0.0, ..adam })?;
            Ok(Box::new(Chained::new(Box::new(muon), Box::new(others))))
        }
    }
}

/// Whether a parameter is a table of vectors, or makes logits.
fn is_table(name: &str) -> bool {
    ["tokens.", "positions.", "head."].iter().any(|part| name.starts_with(part))
}

/// The learning rate's way through `steps`.
pub fn schedule(config: &Config, steps: u64) -> Box<dyn Schedule> {
    let warmup = config.warmup.min(steps / 2);
    let rest = (steps - warmup).max(1);
    match config.schedule {
        config::Schedule::Constant => Box::new(WarmupLR::new(warmup, ExponentialLR::new(1.0))),
        config::Schedule::Linear => Box::new(WarmupLR::new(warmup, LinearLR::new(1.0, 0.0, rest))),
        config::Schedule::Cosine => Box::new(WarmupLR::new(warmup, CosineAnnealingLR::new(rest, 0.0))),
        config::Schedule::OneCycle => Box::new(OneCycleLR::new(steps)),
    }
}
