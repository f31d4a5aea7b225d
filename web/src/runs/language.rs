//! A language model's run, and models that are opened to write: faces of `volta_lm`.

use crate::error::{Thrown, argument, js};
use crate::handles::{RUNS, WRITERS};
use crate::object::{list, number, object, text};
use js_sys::Float32Array;
use std::collections::BTreeMap;
use std::sync::Arc;
use volta::models::Gpt;
use volta::text::{Corpus, CorpusOptions, SamplerOptions, Tokenizer, TokenizerKind, TokenizerOptions};
use volta::{Device, Error, Module, Result, Tensor, default_device, with_device};
use volta_lm::{Config, Histogram, Model, Run, RunCheckpoint, StepPlan, WeightReport, Writer};
use wasm_bindgen::JsValue;

/// Options as the page names them, and the keys that they stand for.
const KEYS: [(&str, &str); 18] = [
    ("layers", "layers"),
    ("heads", "heads"),
    ("width", "width"),
    ("context", "context"),
    ("dropout", "dropout"),
    ("tokenizer", "tokenizer"),
    ("vocabulary", "vocabulary"),
    ("learningRate", "learning-rate"),
    ("weightDecay", "weight-decay"),
    ("clip", "clip"),
    ("warmup", "warmup"),
    ("schedule", "schedule"),
    ("batch", "batch"),
    ("steps", "steps"),
    ("seed", "seed"),
    ("validateEvery", "valid-interval"),
    ("temperature", "temperature"),
    ("topP", "top-p"),
];

/// What a page's run is unless it says otherwise: small enough for a processor in a tab.
const DEFAULTS: [(&str, &str); 9] = [
    ("layers", "2"),
    ("heads", "4"),
    ("width", "64"),
    ("context", "64"),
    ("batch", "8"),
    ("steps", "1000"),
    ("warmup", "50"),
    ("valid-interval", "100"),
    ("valid-batches", "8"),
];

/// What was given, by key.
fn given(options: &JsValue) -> Vec<(&'static str, String)> {
    let value = |name: &str| number(options, name).map(|x| x.to_string()).or_else(|| text(options, name));
    KEYS.iter().filter_map(|&(name, key)| Some((key, value(name)?))).collect()
}

fn pairs<'v>(values: &'v [(&'static str, String)]) -> Vec<(&'static str, &'v str)> {
    values.iter().map(|(key, value)| (*key, value.as_str())).collect()
}

/// The configuration of a run that begins.
fn config(options: &JsValue) -> Result<Config> {
    let given = given(options);
    let mut values: Vec<(&str, &str)> = DEFAULTS.to_vec();
    values.retain(|(key, _)| !given.iter().any(|(known, _)| known == key));
    values.extend(pairs(&given));
    Ok(Config::given(&values)?)
}

/// The text of a run: what was given, or what the configuration names.
fn corpus(options: &JsValue, config: &Config) -> Result<Corpus> {
    match text(options, "text") {
        Some(text) => Corpus::from_text("text", &text, config.valid_fraction),
        None => {
            let options = CorpusOptions { valid_fraction: config.valid_fraction, ..CorpusOptions::default() };
            Corpus::load(&config.data, &options)
        }
    }
}

/// Parameters and memory of a step, without computing anything.
pub fn estimate(options: &JsValue) -> Thrown<JsValue> {
    let estimated = || -> Result<(f64, f64)> {
        let config = config(options)?;
        let corpus = corpus(options, &config)?;
        // A tokenizer of pairs is not trained for a guess: it takes as many as it may.
        let vocabulary = match (text(options, "tokenizer").as_deref(), config.vocabulary) {
            (Some("bytes"), _) => 256,
            (Some("bpe"), most) => most.unwrap_or(1024),
            _ => Tokenizer::train(TokenizerKind::Chars, &corpus.train, &TokenizerOptions::default())?
                .vocabulary_size(),
        };
        let plan = StepPlan::estimate(&config, vocabulary, Device::Cpu)?;
        let gpt = with_device(Device::Cpu, || Gpt::try_new(volta_lm::shape(&config, vocabulary)))?;
        let parameters = volta::nn::num_parameters(&gpt) as f64;
        Ok((parameters, plan.map_or(0.0, |plan| plan.peak_bytes() as f64)))
    };
    let (parameters, peak) = estimated().map_err(js)?;
    Ok(object([("parameters", parameters.into()), ("peakBytes", peak.into())]))
}

/// A model as writers hold it. A worker has one model for as long as it lives, so that it is never given back.
#[derive(Clone, Copy)]
struct Lent {
    gpt: &'static Gpt,
    tokenizer: &'static Tokenizer,
}

impl Lent {
    fn new(gpt: &Arc<Gpt>, tokenizer: &Tokenizer) -> Lent {
        Lent { gpt: Box::leak(Box::new(gpt.clone())), tokenizer: Box::leak(Box::new(tokenizer.clone())) }
    }

    fn writer(self, options: &JsValue) -> Result<Writer<'static>> {
        let prompt = text(options, "prompt").unwrap_or_default();
        let usual = SamplerOptions::default();
        let seed = number(options, "seed").unwrap_or_else(|| (js_sys::Math::random() * 9e15).floor());
        let options = SamplerOptions {
            temperature: number(options, "temperature").unwrap_or(0.8) as f32,
            top_p: number(options, "topP").unwrap_or(0.95) as f32,
            seed: seed as u64,
            ..usual
        };
        Writer::new(self.gpt, self.tokenizer, &prompt, options)
    }

    /// The attention of a head over a text: tokens, and a matrix of weights.
    async fn attention(self, text: &str, layer: usize, head: usize) -> Result<JsValue> {
        let mut ids = self.tokenizer.try_encode(text)?;
        ids.truncate(self.gpt.options.context);
        if ids.is_empty() {
            return Err(Error::new(volta::ErrorKind::Argument, "there is no text to look at"));
        }
        let count = ids.len();
        let device = self.gpt.parameters().first().map_or_else(default_device, Tensor::device);
        let tokens: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
        let weights = with_device(device, || {
            self.gpt.try_attention(&Tensor::try_from_vec(tokens, [1, count])?, layer, head)
        })?;
        let weights = weights.to_vec_async::<f32>().await?;
        let tokens = ids.iter().map(|&id| JsValue::from(self.tokenizer.decode(&[id])));
        Ok(object([("tokens", list(tokens)), ("weights", Float32Array::from(&weights[..]).into())]))
    }
}

/// A language model that is trained.
pub struct Language {
    run: Run,
    lent: Option<Lent>,
}

impl Language {
    /// From fresh weights, or from a checkpoint with its own configuration, in which other values may be given.
    pub async fn new(options: &JsValue, checkpoint: Option<Vec<u8>>) -> Result<Language> {
        let device = default_device();
        let mut run = match checkpoint {
            None => {
                let config = config(options)?;
                Run::new(&config, &corpus(options, &config)?, device).await?
            }
            Some(bytes) => {
                let saved = RunCheckpoint::from_bytes(bytes)?;
                let config = saved.config().with(&pairs(&given(options)))?;
                let corpus = corpus(options, &config)?;
                Run::resume(saved, &config, &corpus, device).await?
            }
        };
        run.set_log_every(1);
        Ok(Language { run, lent: None })
    }

    /// What is known before the first step.
    pub fn info(&self) -> JsValue {
        let plan = self.run.plan().map_or(JsValue::NULL, |plan| {
            let kernels = js_sys::Array::new_with_length(plan.kernels() as u32);
            object([
                ("kernels", kernels.into()),
                ("peakBytes", (plan.peak_bytes() as f64).into()),
                ("text", plan.to_string().into()),
            ])
        });
        object([
            ("parameters", (self.run.parameters() as f64).into()),
            ("step", (self.run.steps() as f64).into()),
            ("steps", (self.run.total_steps() as f64).into()),
            ("plan", plan),
        ])
    }

    /// One step, with its loss.
    pub async fn step(&mut self) -> Result<JsValue> {
        let before = self.run.steps();
        // What follows the last step, a validation, is told with it.
        let mut told = self.run.step().await?;
        while told.as_ref().is_none_or(|metrics| metrics.loss.is_none())
            && self.run.steps() < self.run.total_steps()
        {
            told = self.run.step().await?;
        }
        let Some(metrics) = told else {
            return Err(Error::new(volta::ErrorKind::Argument, "the run is over: there is no step left"));
        };
        let or_nothing = |x: Option<f64>| x.map_or(JsValue::UNDEFINED, JsValue::from);
        let config = self.run.config();
        let tokens =
            (self.run.steps() - before) as usize * config.batch * config.accumulation * config.context;
        Ok(object([
            ("step", (metrics.step as f64).into()),
            ("steps", (metrics.steps as f64).into()),
            ("loss", metrics.loss.unwrap_or(f64::NAN).into()),
            ("validationLoss", or_nothing(metrics.validation_loss)),
            ("learningRate", metrics.learning_rate.into()),
            ("tokens", (tokens as f64).into()),
        ]))
    }

    /// What goes on from here.
    pub async fn checkpoint(&mut self) -> Result<Vec<u8>> {
        self.run.checkpoint().await
    }

    /// The model alone.
    pub async fn model_file(&self) -> Result<Vec<u8>> {
        self.run.model_file().await
    }

    /// Weights, and gradients on the batch that comes next.
    pub async fn weights(&self) -> Result<JsValue> {
        let reports = self.run.weights(true).await?;
        Ok(list(reports.iter().map(report)))
    }

    fn lent(&mut self) -> Lent {
        let (gpt, tokenizer) = (self.run.gpt(), self.run.tokenizer());
        *self.lent.get_or_insert_with(|| Lent::new(gpt, tokenizer))
    }
}

fn histogram(of: &Histogram) -> JsValue {
    let count: f64 = of.counts.iter().map(|&n| f64::from(n)).sum::<f64>().max(1.0);
    let width = (f64::from(of.high) - f64::from(of.low)) / of.counts.len().max(1) as f64;
    let middle = |k: usize| f64::from(of.low) + width * (k as f64 + 0.5);
    let moment = |f: &dyn Fn(f64) -> f64| -> f64 {
        of.counts.iter().enumerate().map(|(k, &n)| f64::from(n) * f(middle(k))).sum::<f64>() / count
    };
    let mean = moment(&|x| x);
    object([
        ("min", f64::from(of.low).into()),
        ("max", f64::from(of.high).into()),
        ("counts", js_sys::Uint32Array::from(&of.counts[..]).into()),
        ("mean", mean.into()),
        ("std", moment(&|x| (x - mean) * (x - mean)).sqrt().into()),
    ])
}

fn report(of: &WeightReport) -> JsValue {
    object([
        ("name", of.name.as_str().into()),
        ("shape", list(of.shape.iter().map(|&e| JsValue::from(e as f64)))),
        ("histogram", histogram(&of.values)),
        ("gradient", of.gradient.as_ref().map_or(JsValue::UNDEFINED, histogram)),
    ])
}

/// A language model that only writes.
pub struct Opened(Lent);

impl Opened {
    /// Of a file of `volta train` or of a tab, or of GPT-2's files.
    pub fn new(mut files: BTreeMap<String, Vec<u8>>) -> Result<(Opened, JsValue)> {
        let device = default_device();
        let is_gpt2 = files.contains_key("tokenizer.json") || files.contains_key("merges.txt");
        let model = match files.pop_first() {
            Some((_, bytes)) if files.is_empty() => Model::from_bytes(bytes, device)?,
            Some((name, bytes)) if is_gpt2 => {
                files.insert(name, bytes);
                Model::from_gpt2(files, device)?
            }
            _ => {
                let message = "give one safetensors file of a model, or GPT-2's files: model.safetensors and tokenizer.json \
                               (or vocab.json and merges.txt)";
                return Err(Error::new(volta::ErrorKind::Argument, message));
            }
        };
        let Model { gpt, tokenizer, .. } = model;
        let shape = gpt.options;
        let whole = |x: usize| JsValue::from(x as f64);
        let info = [
            ("parameters", whole(volta::nn::num_parameters(&gpt))),
            ("layers", whole(shape.layers)),
            ("heads", whole(shape.heads)),
            ("width", whole(shape.width)),
            ("context", whole(shape.context)),
            ("vocabulary", whole(tokenizer.vocabulary_size())),
            ("tokenizer", tokenizer.kind().name().into()),
        ];
        Ok((Opened(Lent::new(&Arc::new(gpt), &tokenizer)), object(info)))
    }
}

/// The model of a run or of a file.
fn lent(handle: u32) -> Thrown<Lent> {
    RUNS.with_borrow_mut(|all| match all.get(handle)? {
        super::AnyRun::Language(run) => Ok(run.lent()),
        super::AnyRun::Opened(opened) => Ok(opened.0),
        super::AnyRun::Classifier(_) => Err(argument("a classifier writes no text")),
    })
}

/// A text that a model begins to write.
pub fn begin_text(handle: u32, options: &JsValue) -> Thrown<u32> {
    let writer = lent(handle)?.writer(options).map_err(js)?;
    Ok(WRITERS.with_borrow_mut(|all| all.insert(writer)))
}

/// Its next token.
pub async fn next_token(writer: u32) -> Thrown<JsValue> {
    let mut taken = WRITERS.with_borrow_mut(|all| all.borrow(writer))?;
    let token = taken.write().await;
    WRITERS.with_borrow_mut(|all| all.restore(writer, taken));
    let token = token.map_err(js)?;
    Ok(object([("text", token.text.into()), ("probability", token.probability.into())]))
}

/// Where a head of a model looks.
pub async fn attention(handle: u32, text: String, layer: usize, head: usize) -> Thrown<JsValue> {
    lent(handle)?.attention(&text, layer, head).await.map_err(js)
}
