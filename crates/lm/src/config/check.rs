//! What must hold between values.

use super::Config;
use super::choices::{Optimizer, Positions, TokenizerSource};
use volta::text::TokenizerKind;

/// What is wrong with the combination of values, if anything.
pub fn combinations(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    let mut require = |holds: bool, key: &str, reason: String| {
        if !holds {
            problems.push(format!("{}: {reason}", config.cite(key)));
        }
    };
    require(
        config.width.is_multiple_of(config.heads),
        "heads",
        format!("must divide {}: each head takes an equal part", config.cite("width")),
    );
    let head = config.width / config.heads;
    require(
        config.positions != Positions::Rotary || head.is_multiple_of(2),
        "positions",
        format!(
            "rotates pairs, but {} over {} leaves a head {head} numbers",
            config.cite("width"),
            config.cite("heads")
        ),
    );
    require(
        config.epochs.is_none() || config.steps.is_none(),
        "steps",
        format!("cannot go together with {}: give one of them", config.cite("epochs")),
    );
    require(
        config.steps.is_none_or(|steps| config.warmup <= steps || !config.is_given("warmup")),
        "warmup",
        format!("is longer than the whole run, {}", config.cite("steps")),
    );
    require(
        config.gradient_parts.is_none_or(|parts| parts <= config.batch),
        "gradient-parts",
        format!("is more than there are sequences in a batch, {}", config.cite("batch")),
    );
    require(
        config.zero == 0 || config.optimizer != Optimizer::Muon,
        "zero",
        format!(
            "cuts matrices, which {} moves as a whole: choose another optimizer",
            config.cite("optimizer")
        ),
    );
    require(
        config.zero == 0 || config.sync_every.is_none(),
        "zero",
        format!("needs gradients from all ranks in every step, and {} sends none", config.cite("sync-every")),
    );
    require(
        config.gradient_parts.is_none() || config.sync_every.is_none(),
        "gradient-parts",
        format!(
            "are of gradients that ranks exchange, and with {} they exchange none",
            config.cite("sync-every")
        ),
    );
    let every = config.sync_every.unwrap_or(1);
    for (key, interval) in
        [("valid-interval", config.valid_interval), ("checkpoint-interval", config.checkpoint_interval)]
    {
        require(
            interval.is_multiple_of(every),
            key,
            format!(
                "must be a multiple of {}: ranks have the same parameters then only",
                config.cite("sync-every")
            ),
        );
    }
    for key in ["outer-lr", "outer-momentum"] {
        require(
            config.sync_every.is_some() || !config.is_given(key),
            key,
            "is of the outer optimizer, which there is with sync-every alone".to_string(),
        );
    }
    let least = match config.tokenizer {
        TokenizerSource::Train(TokenizerKind::Words) => 3,
        TokenizerSource::Train(TokenizerKind::Bpe) => 257,
        _ => 2,
    };
    require(
        config.vocabulary.is_none_or(|size| size >= least),
        "vocabulary",
        format!("must be at least {least} with {}", config.cite("tokenizer")),
    );
    let grows = matches!(config.tokenizer, TokenizerSource::Train(kind) if kind != TokenizerKind::Bytes);
    require(
        config.vocabulary.is_none() || grows,
        "vocabulary",
        format!("cannot be chosen with {}, whose vocabulary is fixed", config.cite("tokenizer")),
    );
    let optimizer = config.optimizer;
    let has_betas = matches!(optimizer, Optimizer::Adam | Optimizer::AdamW | Optimizer::Lion);
    require(
        config.betas.is_none() || has_betas,
        "betas",
        format!("are not used by {}; it has momentum", config.cite("optimizer")),
    );
    require(
        config.momentum.is_none() || !has_betas,
        "momentum",
        format!("is not used by {}; it has betas", config.cite("optimizer")),
    );
    problems
}
