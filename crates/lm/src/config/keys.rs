//! The table of keys: everything that `volta train` can be told. Reading files, variables and flags, the help
//! text, the errors and the saved configuration all come from it.

use super::choices::{Activation, Norm, Optimizer, Positions, Precision, Schedule, Shares, TokenizerSource};
use super::rule::{FromValue, NO_MOST, Rule, Value};

/// A key of the configuration.
pub struct Key {
    /// As files and flags write it.
    pub name: &'static str,
    /// What it is about.
    pub section: &'static str,
    /// In a few words.
    pub meaning: &'static str,
    /// What is allowed.
    pub rule: Rule,
    /// As one would write it.
    pub default: &'static str,
    /// What RustyFlow's `config.env` calls it.
    pub rustyflow: Option<&'static str>,
}

impl Key {
    /// The variable that sets it: `VOLTA_TRAIN_LEARNING_RATE`.
    pub fn variable(&self) -> String {
        format!("{}{}", super::sources::PREFIX, self.name.to_uppercase().replace('-', "_"))
    }

    /// Its place in the table.
    pub fn find(name: &str) -> Option<usize> {
        KEYS.iter().position(|key| key.name == name)
    }
}

macro_rules! rustyflow {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

/// Makes the table and, from the same lines, the structure that a training run reads.
macro_rules! keys {
    ($($section:literal {
        $($field:ident $name:literal: $type:ty = $default:literal, $rule:expr, $meaning:literal $(, $rustyflow:literal)?;)*
    })*) => {
        /// All keys, in the order of the help.
        pub const KEYS: &[Key] = &[$($(Key {
            name: $name,
            section: $section,
            meaning: $meaning,
            rule: $rule,
            default: $default,
            rustyflow: rustyflow!($($rustyflow)?),
        },)*)*];

        /// The values of all keys, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Values {
            $($(#[doc = $meaning] pub $field: $type,)*)*
        }

        impl Values {
            /// From values in the order of the table, each of which its key's rule has let through.
            pub(super) fn collect(values: impl IntoIterator<Item = Value>) -> Values {
                let mut values = values.into_iter();
                let mut next = || values.next().expect("one value a key");
                Values { $($($field: FromValue::from_value(next()),)*)* }
            }
        }
    };
}

const SIZE: Rule = Rule::Count { min: 1, max: 1 << 20 };
const INTERVAL: Rule = Rule::Count { min: 0, max: NO_MOST };
const WHOLE_RUN: Rule = Rule::Count { min: 1, max: NO_MOST };

keys! {
    "Data" {
        data "data": String = "stories",
            Rule::Text("stories, short, tinyshakespeare, wikitext-2, or the path of a file or folder"),
            "what to learn from", "DATASET";
        tokenizer "tokenizer": TokenizerSource = "chars",
            Rule::ChoiceOrPath(TokenizerSource::NAMES, "tokenizer.json"),
            "how text becomes tokens";
        vocabulary "vocabulary": Option<usize> = "none",
            Rule::Optional(&Rule::Count { min: 2, max: 1 << 24 }),
            "the most tokens that the tokenizer may have";
        valid_fraction "valid-fraction": f64 = "0.1", Rule::Real { min: 0.0, max: 0.9, above: false },
            "the part of the data, at its end, that is kept for validation where the data set has none";
    }
    "Model" {
        from "from": Option<String> = "none", Rule::Optional(&Rule::Text("the name or the file of a model")),
            "the model to begin with: its weights, tokenizer and shape, and a new optimizer";
        layers "layers": usize = "4", Rule::Count { min: 1, max: 1024 }, "transformer blocks", "NUM_LAYERS";
        heads "heads": usize = "4", Rule::Count { min: 1, max: 1024 },
            "attention heads of a block", "NUM_HEADS";
        width "width": usize = "128", SIZE, "the length of the vector that stands for a token", "EMBED_DIM";
        context "context": usize = "128", SIZE, "how many tokens the model sees at once", "SEQ_LEN";
        dropout "dropout": f64 = "0", Rule::Real { min: 0.0, max: 0.99, above: false },
            "the part of the values that training leaves out at random";
        positions "positions": Positions = "learned", Rule::Choice(Positions::NAMES),
            "how the model knows where a token stands";
        norm "norm": Norm = "layer", Rule::Choice(Norm::NAMES), "how values are normalised";
        activation "activation": Activation = "gelu", Rule::Choice(Activation::NAMES),
            "what the feed-forward layers apply";
        tied_head "tied-head": bool = "true", Rule::Flag,
            "whether the last layer uses the embedding's weights";
    }
    "Training" {
        optimizer "optimizer": Optimizer = "adamw", Rule::Choice(Optimizer::NAMES),
            "how weights are updated";
        learning_rate "learning-rate": f64 = "0.001", Rule::Real { min: 0.0, max: 10.0, above: true },
            "the size of an update, at its highest", "LEARNING_RATE";
        schedule "schedule": Schedule = "cosine", Rule::Choice(Schedule::NAMES),
            "how the learning rate goes down after the warmup";
        warmup "warmup": u64 = "100", INTERVAL, "the steps in which the learning rate rises";
        weight_decay "weight-decay": f64 = "0.01", Rule::Real { min: 0.0, max: 10.0, above: false },
            "how strongly weights are drawn to zero";
        betas "betas": Option<(f64, f64)> = "none", Rule::Optional(&Rule::Pair),
            "how long adam, adamw and lion remember; none takes the optimizer's own";
        momentum "momentum": Option<f64> = "none",
            Rule::Optional(&Rule::Real { min: 0.0, max: 0.999, above: false }),
            "how long sgd and muon remember; none takes the optimizer's own";
        clip "clip": f64 = "1", Rule::Real { min: 0.0, max: f64::MAX, above: false },
            "the longest gradient there may be; longer ones are shortened; 0 lets all pass";
        batch "batch": usize = "16", SIZE, "sequences of a batch; an update has one, unless accumulation says more", "BATCH_SIZE";
        accumulation "accumulation": usize = "1", SIZE,
            "batches whose mean gradient makes an update; the last of an epoch has those that are left";
        epochs "epochs": Option<u64> = "none", Rule::Optional(&WHOLE_RUN),
            "how often the whole data is seen; 1, unless steps are given", "NUM_EPOCHS";
        steps "steps": Option<u64> = "none", Rule::Optional(&WHOLE_RUN),
            "how many updates are made, instead of epochs";
        precision "precision": Precision = "f32", Rule::Choice(Precision::NAMES),
            "what products are computed in";
        exchange "exchange": Precision = "f32", Rule::Choice(Precision::NAMES),
            "what ranks send gradients in; f16 is half the bytes, and they are added in f32";
        zero "zero": usize = "0", Rule::Count { min: 0, max: 3 },
            "what ranks share out instead of each having all of it: 1 the optimizer's state, 2 gradients too, 3 parameters too; 0 nothing";
        sync_every "sync-every": Option<u64> = "none", Rule::Optional(&WHOLE_RUN),
            "steps that each rank makes by itself before all agree on parameters, for slow networks (DiLoCo); none exchanges gradients in every step";
        outer_lr "outer-lr": f64 = "0.7", Rule::Real { min: 0.0, max: 10.0, above: true },
            "with sync-every: how far the outer optimizer goes; 1 without momentum takes the mean of all ranks";
        outer_momentum "outer-momentum": f64 = "0.9", Rule::Real { min: 0.0, max: 0.999, above: false },
            "with sync-every: how long the outer optimizer remembers; it is SGD with Nesterov's momentum";
        seed "seed": u64 = "0", Rule::Count { min: 0, max: NO_MOST }, "where the random numbers start";
        device "device": String = "auto", Rule::Device,
            "where it runs; auto takes a GPU if there is one; of gpu:0,gpu:1 or gpus each computes a part of every batch";
        gradient_parts "gradient-parts": Option<usize> = "none",
            Rule::Optional(&Rule::Count { min: 1, max: 4096 }),
            "parts of a batch, whose gradients are added in one order: the same bits on any number of devices or ranks; none is one for each";
        shares "shares": Shares = "equal", Rule::Choice(Shares::NAMES),
            "how several devices share a batch: equally, or by their speed, measured while they run";
        memory "memory": Option<u64> = "none", Rule::Optional(&Rule::Bytes),
            "the most memory of the device that is in use at a time, as in 6GB; what does not fit is computed again or moved to the host and back; none takes what there is";
    }
    "Watching" {
        valid_interval "valid-interval": u64 = "200", INTERVAL,
            "steps between validations, besides the one at the end; 0 validates at the end only";
        valid_batches "valid-batches": u64 = "20", WHOLE_RUN, "batches of a validation";
        sample_interval "sample-interval": u64 = "200", INTERVAL,
            "steps between samples; 0 writes one at the end only";
        sample_length "sample-length": u64 = "200", WHOLE_RUN, "tokens of a sample";
        temperature "temperature": f64 = "0.8", Rule::Real { min: 0.0, max: 100.0, above: false },
            "how freely samples are drawn; 0 takes the likeliest token", "TEMPERATURE";
        top_k "top-k": usize = "0", Rule::Count { min: 0, max: 1 << 24 },
            "samples choose among so many tokens; 0 among all";
        top_p "top-p": f64 = "1", Rule::Real { min: 0.0, max: 1.0, above: true },
            "samples choose among the likeliest tokens of this probability together", "TOP_P";
        repetition_penalty "repetition-penalty": f64 = "1",
            Rule::Real { min: 0.0, max: 100.0, above: true },
            "samples avoid recent tokens if it is more than 1";
    }
    "Ranks" {
        rank_timeout "rank-timeout": u64 = "300", INTERVAL,
            "seconds without progress after which a rank ends the run, not counted while it compiles; 0 waits for ever";
    }
    "Output" {
        output "output": String = "models", Rule::Text("the path of a folder"),
            "the folder of the model, its checkpoints and reports";
        name "name": Option<String> = "none", Rule::Optional(&Rule::Text("a name")),
            "the model's name; none names it after data, shape and device";
        checkpoint_interval "checkpoint-interval": u64 = "500", INTERVAL,
            "steps between checkpoints; 0 writes one at the end only";
        log "log": String = "training_log.tsv", Rule::Text("the path of a file"),
            "the table that gets a line a run; in the output folder unless it names a folder itself";
    }
}
