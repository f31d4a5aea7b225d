//! A run of a language model that is driven from outside: steps are asked for one at a time, and nothing blocks.

use crate::config::{Config, TokenizerSource};
use crate::epoch_math::EpochMath;
use crate::histogram::{WeightReport, weight_reports};
use crate::model_file::{About, Model, TOKENIZER_NOTE};
use crate::optimizer::{optimizer, schedule, trainer_options};
use crate::plan::StepPlan;
use crate::prepare::{Prepared, Tokens};
use crate::run_manifest::RunManifest;
use crate::sampling::Writer;
use std::path::Path;
use std::sync::Arc;
use volta::models::Gpt;
use volta::nn::num_parameters;
use volta::text::{Corpus, SamplerOptions, Tokenizer, TokenizerOptions};
use volta::train::{History, Outcome, Row, Trainer, Training};
use volta::{Checkpoint, Device, Error, ErrorKind, Module, Result, Tensor, try_realize_all, with_device};

/// A training without a folder. What it saves is what `volta train` writes and reads.
pub struct Run {
    config: Config,
    name: String,
    device: Device,
    gpt: Arc<Gpt>,
    tokenizer: Tokenizer,
    pace: EpochMath,
    plan: Option<StepPlan>,
    training: Training<'static>,
    /// Whether the last step is made, and what follows it.
    is_finished: bool,
}

/// What a step has come to. What is read now and then only is there when it was.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMetrics {
    /// How many steps are made.
    pub step: u64,
    /// How many steps it will be.
    pub steps: u64,
    /// The mean loss of the steps since the last reading.
    pub loss: Option<f64>,
    /// The loss of the validation that was due.
    pub validation_loss: Option<f64>,
    /// The size of the update.
    pub learning_rate: f64,
    /// Tokens that it learnt from in a second, since the last reading.
    pub tokens_per_second: Option<f64>,
    /// Steps that were skipped since the last reading, in half precision.
    pub skipped: Option<f64>,
}

/// What a run goes on from.
#[derive(Clone, Debug)]
pub struct RunCheckpoint {
    checkpoint: Checkpoint,
    manifest: RunManifest,
    tokenizer: Tokenizer,
}

/// What a checkpoint in memory is called.
const IN_MEMORY: &str = "the checkpoint";

impl RunCheckpoint {
    /// Reads what [`Run::checkpoint`] or `volta train` has saved.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<RunCheckpoint> {
        let checkpoint = Checkpoint::from_bytes(bytes)?;
        let unusable = |what: &str| {
            Error::new(ErrorKind::Data, format!("the checkpoint cannot be gone on from: {what}"))
        };
        let manifest = RunManifest::of(&checkpoint, Path::new(IN_MEMORY))?;
        let manifest = manifest.ok_or_else(|| {
            unusable("it does not say what its run began with, as those of language models do")
        })?;
        let tokenizer = checkpoint.text(TOKENIZER_NOTE).map_err(|_| unusable("it has no tokenizer"))?;
        let tokenizer = Tokenizer::from_json(tokenizer)?;
        Ok(RunCheckpoint { checkpoint, manifest, tokenizer })
    }

    /// What its run was told.
    pub fn config(&self) -> &Config {
        &self.manifest.config
    }

    /// What its run is called.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// How many steps its run had made.
    pub fn step(&self) -> u64 {
        self.checkpoint.int("step").map_or(0, |step| step as u64)
    }
}

impl Run {
    /// A run that begins. Its text is the corpus, whatever the configuration calls it.
    pub async fn new(config: &Config, corpus: &Corpus, device: Device) -> Result<Run> {
        let tokenizer = match &config.tokenizer {
            TokenizerSource::File(path) => Tokenizer::from_file(path)?,
            TokenizerSource::Train(kind) => {
                let options = TokenizerOptions { vocabulary: config.vocabulary };
                Tokenizer::train(*kind, &corpus.train, &options)?
            }
        };
        let prepared = prepared(config, corpus, tokenizer, None, device)?;
        let name = config.name.clone().unwrap_or_else(|| prepared.name.clone());
        Run::begin(config, &name, prepared, None).await
    }

    /// A run that begins with the weights and the tokenizer of a model, and a new optimizer. Its shape is the model's.
    pub async fn from_model(config: &Config, model: &Model, corpus: &Corpus, device: Device) -> Result<Run> {
        let config = config.beginning_with(&model.config)?;
        let prepared = prepared(&config, corpus, model.tokenizer.clone(), Some(&model.gpt), device)?;
        let name = config.name.clone().unwrap_or_else(|| prepared.name.clone());
        Run::begin(&config, &name, prepared, None).await
    }

    /// A run that goes on from a checkpoint, on the same text: to the same bits on the same device. The configuration may be another
    /// than the [checkpoint's](RunCheckpoint::config) in what does not change what is learnt: its length, its intervals.
    pub async fn resume(
        saved: RunCheckpoint,
        config: &Config,
        corpus: &Corpus,
        device: Device,
    ) -> Result<Run> {
        let prepared = prepared(config, corpus, saved.tokenizer, None, device)?;
        let name = saved.manifest.name.clone();
        let changes = saved.manifest.changes(&RunManifest::now(&name, config, &prepared));
        if !changes.is_empty() {
            let message = format!(
                "the run {name} cannot go on with what it did not begin with; give its values and its text again, or start a \
                 new run:\n  {}",
                changes.join("\n  ")
            );
            return Err(Error::new(ErrorKind::Argument, message));
        }
        Run::begin(config, &name, prepared, Some(saved.checkpoint)).await
    }

    async fn begin(config: &Config, name: &str, prepared: Prepared, from: Option<Checkpoint>) -> Result<Run> {
        let steps = prepared.pace.steps(config.duration());
        if cfg!(target_arch = "wasm32") {
            // The plan of a step would compute it.
            try_realize_all(&prepared.gpt.parameters())?;
        }
        // Before anything is computed natively: what does not fit into memory is found here.
        let plan = StepPlan::fitting(config, &prepared)?;
        try_realize_all(&prepared.gpt.parameters())?;
        let notes = RunManifest::now(name, config, &prepared).notes();
        let Prepared { device, tokenizer, gpt, train, valid, pace, .. } = prepared;
        let gpt = Arc::new(gpt);
        let trainer = with_device(device, || -> Result<Trainer<'static>> {
            let optimizer = optimizer(config, &gpt)?;
            let trainer = Trainer::owning(gpt.clone(), optimizer, trainer_options(config, steps))
                .with_schedule(schedule(config, steps))
                .with_note(TOKENIZER_NOTE, &tokenizer.to_json());
            let trainer =
                notes.into_iter().fold(trainer, |trainer, (name, text)| trainer.with_note(name, &text));
            Ok(from.into_iter().fold(trainer, Trainer::with_checkpoint))
        })?;
        let model = gpt.clone();
        let training = trainer.begin(train, valid, move |x: &Tensor, y: &Tensor| batch_outcome(&model, x, y));
        let training = training.await?;
        let (config, name) = (config.clone(), name.to_string());
        Ok(Run { config, name, device, gpt, tokenizer, pace, plan, training, is_finished: false })
    }

    /// Makes the next step, and the readings and validations that are due after it; nothing if there is none left.
    pub async fn step(&mut self) -> Result<Option<StepMetrics>> {
        if self.is_finished {
            return Ok(None);
        }
        let (rows, before) = (self.training.history().rows.len(), self.training.steps());
        // Whoever has written a text meanwhile has switched the model.
        self.gpt.train();
        let stepped = self.training.step().await?;
        if self.training.is_over() {
            if stepped {
                self.training.step().await?;
            }
            self.training.finish().await?;
            self.is_finished = true;
        }
        let new = &self.training.history().rows[rows..];
        let has_news = self.training.steps() > before || !new.is_empty();
        Ok(has_news.then(|| self.metrics(new)))
    }

    fn metrics(&self, rows: &[Row]) -> StepMetrics {
        let value = |name: &str| rows.iter().rev().find(|row| row.name == name).map(|row| row.value);
        StepMetrics {
            step: self.training.steps(),
            steps: self.training.total_steps(),
            loss: value("train/loss"),
            validation_loss: value("validation/loss"),
            learning_rate: self.training.learning_rate(),
            tokens_per_second: value("per_second"),
            skipped: value("skipped_steps"),
        }
    }

    /// The loss of the validation data now. The run goes on as if nobody had looked.
    pub async fn validate(&mut self) -> Result<f64> {
        Ok(self.training.validate().await?[0].1)
    }

    /// The file that `volta train --resume` and [`resume`](Self::resume) go on from, at any time between two steps.
    pub async fn checkpoint(&mut self) -> Result<Vec<u8>> {
        self.training.checkpoint().await?.to_bytes_async().await
    }

    /// Where `volta train --resume` looks for the [checkpoint](Self::checkpoint), from the folder of models on.
    pub fn checkpoint_path(&self) -> String {
        format!("{}/checkpoints/step-{:08}.safetensors", self.name, self.training.steps())
    }

    /// The file that `volta chat`, `generate` and `eval` read.
    pub async fn model_file(&self) -> Result<Vec<u8>> {
        let about = About::of(self.training.history(), self.training.steps(), &self.device.to_string());
        Model::to_bytes(&self.gpt, &self.tokenizer, &self.config, &about).await
    }

    /// A text that the model writes as it is now.
    pub fn writer(&self, prompt: &str, options: SamplerOptions) -> Result<Writer<'_>> {
        Writer::new(&self.gpt, &self.tokenizer, prompt, options)
    }

    /// How the weights are spread, and, if asked for, their gradients on the batch that comes next. The run goes on as if nobody had
    /// looked.
    pub async fn weights(&self, with_gradients: bool) -> Result<Vec<WeightReport>> {
        let batch = if with_gradients { self.training.peek()? } else { None };
        weight_reports(&self.gpt, batch.as_ref().map(|(x, y)| (x, y))).await
    }

    /// Reads the loss every so many steps from here on, rather than as `volta train` does; 1 reads it after each.
    pub fn set_log_every(&mut self, steps: u64) {
        self.training.set_log_every(steps);
    }

    /// How many numbers are trained.
    pub fn parameters(&self) -> usize {
        num_parameters(&*self.gpt)
    }

    /// The model, which others may hold too.
    pub fn gpt(&self) -> &Arc<Gpt> {
        &self.gpt
    }

    /// What makes tokens of text.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a step is.
    pub fn pace(&self) -> EpochMath {
        self.pace
    }

    /// What a step needs.
    pub fn plan(&self) -> Option<&StepPlan> {
        self.plan.as_ref()
    }

    /// How many steps are made.
    pub fn steps(&self) -> u64 {
        self.training.steps()
    }

    /// How many steps it will be.
    pub fn total_steps(&self) -> u64 {
        self.training.total_steps()
    }

    /// All that was measured, since the checkpoint if it went on from one.
    pub fn history(&self) -> &History {
        self.training.history()
    }
}

/// What a batch comes to.
pub fn batch_outcome(gpt: &Gpt, x: &Tensor, y: &Tensor) -> Result<Outcome> {
    Ok(Outcome::from(gpt.try_loss(x, y)?).with_perplexity().with_units("tokens", x.numel()))
}

fn prepared(
    config: &Config,
    corpus: &Corpus,
    tokenizer: Tokenizer,
    from: Option<&Gpt>,
    device: Device,
) -> Result<Prepared> {
    let tokens = Tokens::of(corpus, &tokenizer)?;
    config.check_data(tokens.train.len(), tokens.valid.len())?;
    Prepared::new(config, corpus, tokenizer, tokens, from, device)
}
