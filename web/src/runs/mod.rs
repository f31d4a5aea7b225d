//! Runs: a model, its data and its optimizer, moved one step at a time. JavaScript's worker decides when, and waits for each call
//! before the next.
//!
//! `classifier` learns digits, `images` are what it learns from, `histogram` sums up its weights. `language` is a face of
//! `volta_lm`.

mod classifier;
mod histogram;
mod images;
mod language;

use crate::error::{Thrown, argument, js};
use crate::handles::{RUNS, WRITERS};
use crate::object::{list, object};
use classifier::Classifier;
use js_sys::{Float32Array, Promise, Uint8Array};
use language::{Language, Opened};
use volta::tab::promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A run of any kind.
pub enum AnyRun {
    /// Digits.
    Classifier(Box<Classifier>),
    /// Text.
    Language(Box<Language>),
    /// A language model that is not trained.
    Opened(Opened),
}

/// What cannot be asked of a model that is not trained.
fn untrained() -> JsValue {
    argument("this model is not trained here")
}

/// What `f` makes of a run, as a promise. Another call on the same run before that is an error.
fn with_run(handle: u32, f: impl AsyncFnOnce(&mut AnyRun) -> Thrown<JsValue> + 'static) -> Promise {
    promise(async move {
        let mut run = RUNS.with_borrow_mut(|all| all.borrow(handle))?;
        let result = f(&mut run).await;
        RUNS.with_borrow_mut(|all| all.restore(handle, run));
        result
    })
}

/// A digit classifier's run, as a promise of a handle.
#[wasm_bindgen]
pub fn run_classifier(
    options: JsValue,
    images: Option<Vec<u8>>,
    labels: Option<Vec<u8>>,
    checkpoint: Option<Vec<u8>>,
) -> Promise {
    promise(async move {
        let run = Classifier::new(&options, images.zip(labels), checkpoint)?;
        Ok(RUNS.with_borrow_mut(|all| all.insert(AnyRun::Classifier(Box::new(run)))).into())
    })
}

/// Parameters and memory of a classifier's step, without computing anything.
#[wasm_bindgen]
pub fn estimate_classifier(options: &JsValue) -> Thrown<JsValue> {
    classifier::estimate(options)
}

/// A language model's run, as a promise of a handle.
#[wasm_bindgen]
pub fn run_language_model(options: JsValue, checkpoint: Option<Vec<u8>>) -> Promise {
    promise(async move {
        let run = Language::new(&options, checkpoint).await.map_err(js)?;
        Ok(RUNS.with_borrow_mut(|all| all.insert(AnyRun::Language(Box::new(run)))).into())
    })
}

/// Parameters and memory of a language model's step, without computing anything.
#[wasm_bindgen]
pub fn estimate_language_model(options: &JsValue) -> Thrown<JsValue> {
    language::estimate(options)
}

/// A language model of files, by their names, as a promise of a handle and of what it is.
#[wasm_bindgen]
pub fn language_model_open(names: Vec<String>, files: js_sys::Array) -> Promise {
    promise(async move {
        let files =
            names.into_iter().zip(files.iter().map(|bytes| Uint8Array::new(&bytes).to_vec())).collect();
        let (model, info) = Opened::new(files).map_err(js)?;
        let handle = RUNS.with_borrow_mut(|all| all.insert(AnyRun::Opened(model)));
        // Setting a property of a new object does not fail.
        let _ = js_sys::Reflect::set(&info, &"handle".into(), &handle.into());
        Ok(info)
    })
}

/// What is known of a run before its first step.
#[wasm_bindgen]
pub fn run_info(handle: u32) -> Promise {
    with_run(handle, async |run| match run {
        AnyRun::Classifier(run) => run.info(),
        AnyRun::Language(run) => Ok(run.info()),
        AnyRun::Opened(_) => Err(untrained()),
    })
}

/// One step, as a promise of its metrics.
#[wasm_bindgen]
pub fn run_step(handle: u32) -> Promise {
    with_run(handle, async |run| match run {
        AnyRun::Classifier(run) => run.step().await,
        AnyRun::Language(run) => run.step().await.map_err(js),
        AnyRun::Opened(_) => Err(untrained()),
    })
}

/// What goes on from here.
#[wasm_bindgen]
pub fn run_checkpoint(handle: u32) -> Promise {
    with_run(handle, async |run| {
        let bytes = match run {
            AnyRun::Classifier(run) => run.checkpoint().await.map_err(js)?,
            AnyRun::Language(run) => run.checkpoint().await.map_err(js)?,
            AnyRun::Opened(_) => return Err(untrained()),
        };
        Ok(Uint8Array::from(&bytes[..]).into())
    })
}

/// The model alone.
#[wasm_bindgen]
pub fn run_model(handle: u32) -> Promise {
    with_run(handle, async |run| {
        let bytes = match run {
            AnyRun::Classifier(run) => run.model_file().await.map_err(js)?,
            AnyRun::Language(run) => run.model_file().await.map_err(js)?,
            AnyRun::Opened(_) => return Err(untrained()),
        };
        Ok(Uint8Array::from(&bytes[..]).into())
    })
}

/// Weights and gradients as histograms.
#[wasm_bindgen]
pub fn run_weights(handle: u32) -> Promise {
    with_run(handle, async |run| {
        let parameters = match run {
            AnyRun::Classifier(run) => run.named_parameters(),
            AnyRun::Language(run) => return run.weights().await.map_err(js),
            AnyRun::Opened(_) => return Err(untrained()),
        };
        let mut summaries = Vec::new();
        for (name, t) in parameters {
            let weights = t.to_vec_async::<f32>();
            let gradient = t.grad().map(|g| g.to_vec_async::<f32>());
            let weights = histogram::of(&weights.await.map_err(js)?);
            let gradient = match gradient {
                Some(gradient) => histogram::of(&gradient.await.map_err(js)?),
                None => JsValue::UNDEFINED,
            };
            let shape = list(t.shape().iter().map(|&e| JsValue::from(e as f64)));
            summaries.push(object([
                ("name", name.as_str().into()),
                ("shape", shape),
                ("histogram", weights),
                ("gradient", gradient),
            ]));
        }
        Ok(list(summaries))
    })
}

/// Probabilities of the digits for one image.
#[wasm_bindgen]
pub fn run_classify(handle: u32, pixels: Vec<f32>) -> Promise {
    with_run(handle, async |run| match run {
        AnyRun::Classifier(run) => {
            let probabilities = run.classify(pixels)?.await.map_err(js)?;
            Ok(Float32Array::from(&probabilities[..]).into())
        }
        _ => Err(argument("only a classifier tells digits apart")),
    })
}

/// A text that a language model begins to write.
#[wasm_bindgen]
pub fn writer_new(handle: u32, options: JsValue) -> Promise {
    promise(async move { language::begin_text(handle, &options).map(JsValue::from) })
}

/// Its next token.
#[wasm_bindgen]
pub fn writer_next(writer: u32) -> Promise {
    promise(language::next_token(writer))
}

/// Frees it.
#[wasm_bindgen]
pub fn writer_free(writer: u32) {
    let freed = WRITERS.with_borrow_mut(|all| all.remove(writer));
    drop(freed);
}

/// How much each token of a text looks at those before it, in one head.
#[wasm_bindgen]
pub fn run_attention(handle: u32, text: String, layer: usize, head: usize) -> Promise {
    promise(language::attention(handle, text, layer, head))
}

/// Frees a run; an error while it is busy.
#[wasm_bindgen]
pub fn run_free(handle: u32) -> Thrown<()> {
    match RUNS.with_borrow_mut(|all| all.remove(handle)) {
        Some(run) => {
            drop(run);
            Ok(())
        }
        None => Err(argument("the run is busy, or was freed already")),
    }
}

/// The built-in stories.
#[wasm_bindgen]
pub fn built_in_stories(seed: f64, bytes: usize) -> String {
    volta::text::stories(seed as u64, bytes)
}
