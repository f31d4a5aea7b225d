//! Encoders, and the vectors of sentences that they make.

use super::network::{Network, PyNetwork, is_no};
use crate::error::{call, run};
use crate::tensor::{DeviceArg, PyTensor, or_default};
use pyo3::prelude::*;
use std::path::PathBuf;
use volta::models::{Bert, BertOptions, Embedder, Pooling};
use volta::{Device, Result, Tensor, with_device};

fn embedder(network: &Network) -> Result<&Embedder> {
    match network {
        Network::Embedder(embedder) => Ok(embedder),
        _ => Err(is_no("encoder with a tokenizer")),
    }
}

#[pymethods]
impl PyNetwork {
    /// Reads an encoder with all that belongs to it.
    #[staticmethod]
    #[pyo3(signature = (path, device = None))]
    fn load_embedder(py: Python<'_>, path: PathBuf, device: Option<DeviceArg>) -> PyResult<PyNetwork> {
        let device = or_default(device)?;
        let embedder = run(py, || with_device(device, || Embedder::load(path)))?;
        Ok(Network::Embedder(Box::new(embedder)).into())
    }

    /// An encoder with small random values, as a `config.json` describes it.
    #[staticmethod]
    #[pyo3(signature = (config, device = None))]
    fn bert(py: Python<'_>, config: &str, device: Option<DeviceArg>) -> PyResult<PyNetwork> {
        let device = or_default(device)?;
        let model = run(py, || with_device(device, || Bert::try_new(BertOptions::from_config(config)?)))?;
        Ok(Network::Bert(Box::new(model)).into())
    }

    /// A vector for each token; `seen` is false where a text is filled up.
    fn vectors(
        &self,
        py: Python<'_>,
        tokens: PyRef<'_, PyTensor>,
        seen: PyRef<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (tokens, seen) = (tokens.0.clone(), seen.0.clone());
        self.with(py, |network| match network {
            Network::Embedder(embedder) => embedder.model.try_encode(&tokens, &seen),
            Network::Bert(model) => model.try_encode(&tokens, &seen),
            _ => Err(is_no("encoder")),
        })
        .map(PyTensor::from)
    }

    /// One vector a text, on the CPU.
    fn embed(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<PyTensor> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (vectors, width) = self.with(py, |network| {
            let embedder = embedder(network)?;
            Ok((embedder.embed(&texts)?, embedder.model.options.width))
        })?;
        let flat: Vec<f32> = vectors.into_iter().flatten().collect();
        let shape = [flat.len() / width, width];
        call(|| with_device(Device::Cpu, || Tensor::try_from_vec(flat, shape))).map(PyTensor::from)
    }

    /// The tokens of a text with those around it, and no more than the encoder sees.
    fn sentence_tokens(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        self.with(py, |network| embedder(network)?.tokens(text))
    }

    /// How the vectors of a text's tokens become one, and whether that gets the length 1.
    fn pooling(&self, py: Python<'_>) -> PyResult<(&'static str, bool)> {
        self.with(py, |network| {
            let embedder = embedder(network)?;
            let name = match embedder.pooling {
                Pooling::Mean => "mean",
                Pooling::First => "cls",
                Pooling::Max => "max",
            };
            Ok((name, embedder.normalized))
        })
    }
}
