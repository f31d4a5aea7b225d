//! A text that a language model writes, token by token.

use super::network::{PyNetwork, failed};
use crate::error::call;
use pyo3::prelude::*;
use std::sync::{Mutex, TryLockError};
use volta::models::{Generation, Llm, PausedGeneration};
use volta::text::{Sampler, SamplerOptions};

/// A text and the model that writes it; what `volta.models.Llm` generates with.
#[pyclass(name = "Generation", module = "volta._volta._models", frozen)]
pub struct PyGeneration {
    network: Py<PyNetwork>,
    /// Nothing after an error that lost it.
    text: Mutex<Option<PausedGeneration<Llm>>>,
}

impl PyGeneration {
    /// Goes on with the text.
    fn resume<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Generation<'_, Llm>) -> volta::Result<T> + Send,
    ) -> PyResult<T> {
        let mut text = match self.text.try_lock() {
            Ok(text) => text,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(failed("another thread goes on with this text")),
        };
        let Some(paused) = text.take() else { return Err(failed("the text ended with an error")) };
        let network = self.network.get();
        let (result, paused) = network.with(py, |network| {
            let mut generation = paused.resume(network.llm()?);
            let result = f(&mut generation);
            Ok((result, generation.pause()))
        })?;
        *text = Some(paused);
        call(|| result)
    }
}

#[pymethods]
impl PyGeneration {
    /// A text that begins with these tokens.
    #[new]
    fn new(
        py: Python<'_>,
        network: Py<PyNetwork>,
        tokens: Vec<u32>,
        sampling: (f32, usize, f32, f32),
        seed: u64,
    ) -> PyResult<PyGeneration> {
        let (temperature, top_k, top_p, repetition_penalty) = sampling;
        let options = SamplerOptions { temperature, top_k, top_p, repetition_penalty, seed };
        let sampler = call(|| Sampler::new(options))?;
        let paused = network.get().with(py, |network| {
            let mut text = Generation::new(network.llm()?, sampler);
            text.read(&tokens)?;
            Ok(text.pause())
        })?;
        Ok(PyGeneration { network, text: Mutex::new(Some(paused)) })
    }

    /// The next token, picked and taken in.
    fn write(&self, py: Python<'_>) -> PyResult<u32> {
        self.resume(py, |text| text.write())
    }
}
