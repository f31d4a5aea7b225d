//! Runs: a model, its data and its optimizer, moved one step at a time. JavaScript's worker decides when, and waits for each call
//! before the next.
//!
//! `classifier` learns digits, `images` are what it learns from, `histogram` sums up weights.

mod classifier;
mod histogram;
mod images;

use crate::error::{Thrown, argument, js};
use crate::handles::RUNS;
use crate::object::{list, object};
use classifier::Classifier;
use js_sys::{Float32Array, Promise, Uint8Array};
use volta::tab::promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A run of any kind.
pub enum AnyRun {
    /// Digits.
    Classifier(Box<Classifier>),
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

/// What is known of a run before its first step.
#[wasm_bindgen]
pub fn run_info(handle: u32) -> Promise {
    with_run(handle, async |run| match run {
        AnyRun::Classifier(run) => run.info(),
    })
}

/// One step, as a promise of its metrics.
#[wasm_bindgen]
pub fn run_step(handle: u32) -> Promise {
    with_run(handle, async |run| match run {
        AnyRun::Classifier(run) => run.step().await,
    })
}

/// What goes on from here.
#[wasm_bindgen]
pub fn run_checkpoint(handle: u32) -> Promise {
    with_run(handle, async |run| {
        let bytes = match run {
            AnyRun::Classifier(run) => run.checkpoint().await.map_err(js)?,
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
    })
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
