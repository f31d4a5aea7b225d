//! How a configuration trains: its optimizer, its schedule, what the trainer is told.

use crate::config::{self, Config};
use volta::models::Gpt;
use volta::optim::{
    AdamOptions, AdamWOptions, Chained, CosineAnnealingLR, ExponentialLR, LinearLR, LionOptions, MuonOptions,
    OneCycleLR, SGDOptions, Schedule, WarmupLR, try_clip_grad_norm,
};
use volta::train::TrainerOptions;
use volta::{Adam, AdamW, DType, GradScaler, Lion, Module, Muon, Optimizer, Result, SGD, Tensor};

/// The optimizer of the configuration. What has one axis, biases and norms, is not drawn to zero.
pub fn optimizer(config: &Config, gpt: &Gpt) -> Result<Box<dyn Optimizer>> {
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

/// What the trainer of a run of so many steps is told, without what is about files.
pub fn trainer_options(config: &Config, steps: u64) -> TrainerOptions {
    // An interval of 0 means at the end only, where there are a validation and a checkpoint anyway.
    let every = |interval: u64| Some(if interval == 0 { u64::MAX } else { interval });
    TrainerOptions {
        epochs: match config.duration() {
            config::Duration::Epochs(epochs) => epochs,
            config::Duration::Steps(_) => u64::MAX,
        },
        steps: Some(steps),
        accumulate: config.accumulation,
        gradient_parts: config.gradient_parts,
        shares_by_speed: config.shares == config::Shares::Speed,
        clip: (config.clip > 0.0).then_some(config.clip),
        precision: config.is_half().then_some(DType::F16),
        log_every: (steps / 100).clamp(1, 50),
        validate_every: every(config.valid_interval),
        checkpoint_every: every(config.checkpoint_interval),
        progress: false,
        ..TrainerOptions::default()
    }
}

/// The optimizer's step with the gradients that there are, as a trainer makes it.
pub fn update(
    config: &Config,
    optimizer: &mut dyn Optimizer,
    mut scaler: Option<&mut GradScaler>,
) -> Result<()> {
    if config.clip > 0.0 {
        if let Some(scaler) = &mut scaler {
            scaler.try_unscale(&*optimizer)?;
        }
        try_clip_grad_norm(optimizer.parameters(), config.clip)?;
    }
    match scaler {
        Some(scaler) => scaler.try_step(optimizer),
        None => optimizer.try_step(),
    }
}
