//! The model with what is trained of it, and the data as rows.

use super::options::Options;
use crate::output::{Failure, Output};
use crate::pretrained;
use serde_json::json;
use std::path::Path;
use volta::data::{DataLoader, Dataset};
use volta::models::{LanguageModel, Llm, Lora, LoraOptions};
use volta::train::Outcome;
use volta::{Device, Tensor, try_realize_all, with_device};
use volta_lm::finetune::{
    Example, Learner, PackedRows, Preferences, Tokenized, Tokens, dpo_outcome, packed_outcome, read_examples,
    tokenize,
};
use volta_lm::{EpochMath, fingerprint};

/// Rows are a multiple of this, so that runs on similar data share plans.
const GRAIN: usize = 32;
/// The least and the most tokens of a row, unless told otherwise.
const LENGTHS: [usize; 2] = [256, 1024];

/// What is trained, on what.
pub struct Prepared {
    pub llm: Llm,
    pub lora: Option<Lora>,
    pub train: DataLoader,
    pub valid: Option<DataLoader>,
    pub loss: Loss,
    pub pace: EpochMath,
    /// Tokens of a row.
    pub length: usize,
    /// Samples and tokens of the training data.
    pub samples: usize,
    pub tokens: usize,
    /// Which share of the rows is text.
    pub filled: f64,
    /// What samples go on from.
    pub prompt: Vec<u32>,
    /// What tells the data apart.
    pub fingerprint: String,
    /// Where the model lies.
    pub path: std::path::PathBuf,
}

/// What is made smaller.
pub enum Loss {
    /// The cross-entropy of what is learnt.
    NextTokens,
    /// DPO, with what the model took the answers of all pairs for, and beta.
    Preference { reference: Tensor, beta: f64 },
}

impl Loss {
    pub fn of(&self, llm: &Llm, x: &Tensor, y: &Tensor) -> volta::Result<Outcome> {
        match self {
            Loss::NextTokens => packed_outcome(llm, x, y),
            Loss::Preference { reference, beta } => dpo_outcome(llm, reference, *beta, x, y),
        }
    }
}

/// Texts or pairs for training and validation.
struct Parts {
    train: Tokenized,
    valid: Option<Tokenized>,
    fingerprint: String,
}

pub fn prepare(options: &Options, device: Device, output: Output) -> Result<Prepared, Failure> {
    volta::manual_seed(options.seed);
    let path = pretrained::find(Some(&options.model))?.ok_or_else(|| missing(&options.model))?;
    let texts = Texts::read(options)?;
    let mut llm = Llm::load_with(&path, options.storage())?;
    if llm.causal_lm().is_none() {
        return Err(Failure::Usage(format!(
            "{} is GPT-2: models of Llama's family are fine-tuned; `volta train --from` takes GPT-2",
            options.model
        )));
    }
    let parts = texts.tokens(&llm, options, output)?;
    let length = length(options, &llm, &parts)?;
    let lora = attach(options, &mut llm)?;
    let learner = Learner(&llm);
    try_realize_all(&volta::Module::parameters(&learner))?;
    let (train, valid, loss, filled) = loaders(options, &llm, &parts, length, device, output)?;
    let batches = train.len() as u64;
    let pace = EpochMath {
        batches,
        accumulation: u64::from(options.accumulation),
        sequences: options.batch as usize * if options.dpo { 2 } else { 1 },
        context: length,
    };
    let prompt = match &options.prompt {
        Some(prompt) => prompt_of(&llm, prompt, options.plain)?,
        None => parts.train.prompt.clone(),
    };
    let samples = parts.train.texts.len() + parts.train.pairs.len();
    Ok(Prepared {
        lora,
        train,
        valid,
        loss,
        pace,
        length,
        samples,
        tokens: parts.train.tokens(),
        filled,
        prompt,
        fingerprint: parts.fingerprint,
        path,
        llm,
    })
}

fn missing(model: &str) -> Failure {
    Failure::Failed(format!(
        "{model} is no folder with a config.json and no GGUF file: `volta download hf:OWNER/NAME` fetches one. What was trained here \
         goes on with `volta train --from`"
    ))
}

/// The model with adapters, unless all of it is trained.
fn attach(options: &Options, llm: &mut Llm) -> Result<Option<Lora>, Failure> {
    if options.full {
        return Ok(None);
    }
    let Some(model) = llm.causal_lm_mut() else { return Ok(None) };
    if let Some(folder) = &options.adapter {
        return Ok(Some(Lora::load(model, folder)?));
    }
    let lora = options.lora(LoraOptions::every_target(model));
    Lora::attach(model, lora).map(Some).map_err(|e| Failure::usage(&e))
}

/// The files of data.
struct Texts {
    train: Vec<(usize, Example)>,
    valid: Option<Vec<(usize, Example)>>,
    fingerprint: String,
}

impl Texts {
    fn read(options: &Options) -> Result<Texts, Failure> {
        let read = |path: &Path| -> Result<(Vec<(usize, Example)>, String), Failure> {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Failure::Failed(format!("cannot read {}: {e}", path.display())))?;
            Ok((read_examples(&path.display().to_string(), &text)?, fingerprint(&text)))
        };
        let (train, mut of_train) = read(&options.data)?;
        let valid = options.valid.as_deref().map(read).transpose()?;
        if let Some((_, of_valid)) = &valid {
            of_train = format!("{of_train}-{of_valid}");
        }
        let is_pair = |(_, e): &(usize, Example)| matches!(e, Example::Preference { .. });
        let pairs = train.iter().chain(valid.iter().flat_map(|v| &v.0)).filter(|e| is_pair(e)).count();
        if pairs > 0 && !options.dpo {
            return Err(Failure::Usage(
                "the data has pairs of answers, chosen and rejected: --dpo learns from these".into(),
            ));
        }
        if pairs == 0 && options.dpo {
            return Err(Failure::Usage(
                "--dpo learns from lines with prompt, chosen and rejected, and the data has none".into(),
            ));
        }
        Ok(Texts { train, valid: valid.map(|v| v.0), fingerprint: of_train })
    }

    fn tokens(mut self, llm: &Llm, options: &Options, output: Output) -> Result<Parts, Failure> {
        let longest = options.length.map_or(LENGTHS[1], |length| length as usize).min(llm.max_tokens());
        let label = options.data.display().to_string();
        if options.valid_fraction > 0.0 {
            // Spread over the data, so that both are of its kinds.
            let count = ((self.train.len() as f64 * options.valid_fraction).round() as usize).max(1);
            if count >= self.train.len() {
                return Err(Failure::Usage("--valid-fraction leaves nothing to learn from".into()));
            }
            let all = self.train.len();
            let chosen = |k: usize| (k * count) / all != ((k + 1) * count) / all;
            let (valid, train): (Vec<_>, Vec<_>) =
                self.train.into_iter().enumerate().partition(|(k, _)| chosen(*k));
            self.train = train.into_iter().map(|(_, e)| e).collect();
            self.valid = Some(valid.into_iter().map(|(_, e)| e).collect());
        }
        let tokens = |label: &str, examples: &[(usize, Example)]| -> Result<Tokenized, Failure> {
            // A row's first token has nothing before it that it would be learnt from.
            let found = tokenize(llm, label, examples, longest + 1, options.plain)?;
            if found.cut > 0 {
                output.event(&json!({
                    "event": "cut", "data": label, "length": longest, "samples": found.cut, "left_out": found.left_out,
                }));
                output.note(format_args!(
                    "{label}: {} samples are longer than {longest} tokens and are cut there; {} of them are left out, since nothing of \
                     what is learnt remains. --length changes it.",
                    found.cut, found.left_out
                ));
            }
            Ok(found)
        };
        let valid_label = options.valid.as_ref().map_or(label.clone(), |path| path.display().to_string());
        Ok(Parts {
            train: tokens(&label, &self.train)?,
            valid: self.valid.map(|valid| tokens(&valid_label, &valid)).transpose()?,
            fingerprint: self.fingerprint,
        })
    }
}

/// Tokens of a row.
fn length(options: &Options, llm: &Llm, parts: &Parts) -> Result<usize, Failure> {
    let most = llm.max_tokens();
    match options.length.map(|length| length as usize) {
        Some(length) if length > most => {
            Err(Failure::Usage(format!("--length is {length}: the model sees {most} tokens")))
        }
        Some(length) => Ok(length),
        None => {
            let longest = parts.train.longest().max(parts.valid.as_ref().map_or(0, Tokenized::longest)) - 1;
            // Pairs are not packed.
            let least = if options.dpo || options.no_packing { 0 } else { LENGTHS[0] };
            Ok(longest.max(least).next_multiple_of(GRAIN).min(most))
        }
    }
}

type Loaders = (DataLoader, Option<DataLoader>, Loss, f64);

fn loaders(
    options: &Options,
    llm: &Llm,
    parts: &Parts,
    length: usize,
    device: Device,
    output: Output,
) -> Result<Loaders, Failure> {
    let batch = options.batch as usize;
    let seeded = |loader: DataLoader| loader.with_seed(options.seed).with_device(device);
    if !options.dpo {
        let rows = |texts: &[Tokens]| PackedRows::new(texts, length, !options.no_packing);
        let train = rows(&parts.train.texts);
        let filled = train.filled();
        let valid = parts.valid.as_ref().map(|valid| DataLoader::try_over(rows(&valid.texts), batch));
        let valid = valid.transpose()?.map(seeded);
        let train = seeded(DataLoader::try_over(train, batch)?).with_shuffle(true);
        return Ok((train, valid, Loss::NextTokens, filled));
    }
    let train = Preferences::new(&parts.train.pairs, length, 0);
    let valid = parts.valid.as_ref().map(|valid| Preferences::new(&valid.pairs, length, train.len()));
    let all = train.len() + valid.as_ref().map_or(0, Dataset::len);
    let mut reference = Vec::new();
    if options.dry_run {
        reference.resize(2 * all, 0.0);
    } else {
        let bar = super::bar(output, all as u64, "pairs as the model takes them before");
        for pairs in [Some(&train), valid.as_ref()].into_iter().flatten() {
            let before = reference.len() / 2;
            reference.extend(pairs.reference(llm, batch, |done| bar.set_position((before + done) as u64))?);
        }
        bar.finish_and_clear();
    }
    let reference = with_device(device, || Tensor::try_from_vec(reference, [all, 2]))?;
    let loss = Loss::Preference { reference, beta: options.beta };
    let valid = valid.map(|valid| DataLoader::try_over(valid, batch)).transpose()?.map(seeded);
    Ok((seeded(DataLoader::try_over(train, batch)?).with_shuffle(true), valid, loss, 1.0))
}

/// A prompt of the user's, as a turn of a chat if the model knows such.
fn prompt_of(llm: &Llm, prompt: &str, plain: bool) -> Result<Vec<u32>, Failure> {
    if plain || !llm.chats() {
        return Ok(llm.prompt(prompt)?);
    }
    let turn = [volta::text::ChatMessage::new("user", prompt)];
    Ok(llm.tokenizer.try_encode(&llm.template()?.render(&turn, true)?)?)
}
