//! A network of the engine, as Python holds it.

use crate::error::{raise, run};
use crate::nn::PyParameter;
use crate::tensor::{PyDevice, PyTensor};
use pyo3::prelude::*;
use std::sync::{PoisonError, RwLock};
use volta::models::{Bert, CausalLm, Embedder, Llm};
use volta::{Error, ErrorKind, Module, Result, Tensor};

/// What there is.
pub enum Network {
    /// A language model with its tokenizer.
    Llm(Box<Llm>),
    /// One by itself.
    CausalLm(Box<CausalLm>),
    /// An encoder with its tokenizer.
    Embedder(Box<Embedder>),
    /// One by itself.
    Bert(Box<Bert>),
}

/// An error for what a network is not.
pub fn is_no(what: &str) -> Error {
    Error::new(ErrorKind::Argument, format!("this network is no {what}"))
}

impl Network {
    pub fn module(&self) -> &dyn Module {
        match self {
            Network::Llm(model) => &**model,
            Network::CausalLm(model) => &**model,
            Network::Embedder(embedder) => &embedder.model,
            Network::Bert(model) => &**model,
        }
    }

    pub fn llm(&self) -> Result<&Llm> {
        match self {
            Network::Llm(model) => Ok(model),
            _ => Err(is_no("language model with a tokenizer")),
        }
    }

    pub fn causal_lm(&self) -> Result<&CausalLm> {
        match self {
            Network::Llm(model) => model.causal_lm().ok_or_else(no_adapters),
            Network::CausalLm(model) => Ok(model),
            _ => Err(is_no("language model")),
        }
    }

    pub fn causal_lm_mut(&mut self) -> Result<&mut CausalLm> {
        match self {
            Network::Llm(model) => model.causal_lm_mut().ok_or_else(no_adapters),
            Network::CausalLm(model) => Ok(model),
            _ => Err(is_no("language model")),
        }
    }
}

fn no_adapters() -> Error {
    Error::new(ErrorKind::Argument, "GPT-2 takes no adapters: models of Llama's family do")
}

/// A network of the engine; the classes of `volta.models` are made of it.
#[pyclass(name = "Network", module = "volta._volta._models", frozen)]
pub struct PyNetwork(RwLock<Network>);

impl From<Network> for PyNetwork {
    fn from(network: Network) -> PyNetwork {
        PyNetwork(RwLock::new(network))
    }
}

impl PyNetwork {
    /// Does something with the network while Python's other threads run. Nobody waits for it who holds up Python.
    pub fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&Network) -> Result<T> + Send) -> PyResult<T> {
        run(py, || f(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Changes the network.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Network) -> Result<T> + Send,
    ) -> PyResult<T> {
        run(py, || f(&mut self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A parameter, or a tensor that is kept with them.
#[derive(IntoPyObject)]
enum Own<'py> {
    Parameter(Bound<'py, PyParameter>),
    Buffer(Bound<'py, PyTensor>),
}

#[pymethods]
impl PyNetwork {
    /// Its parameters and buffers, with their names: the tensors themselves.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Own<'py>)>> {
        let (parameters, buffers) = self.with(py, |network| {
            let module = network.module();
            Ok((module.named_parameters(), module.named_buffers()))
        })?;
        let buffer = |t: Tensor| Bound::new(py, PyTensor(t)).map(Own::Buffer);
        let parameter = |t: Tensor| match t.dtype().is_float() {
            true => PyParameter::shared(py, t).map(Own::Parameter),
            // Blocks of quantised weights.
            false => buffer(t),
        };
        let parameters = parameters.into_iter().map(|(name, t)| Ok((name, parameter(t)?)));
        parameters.chain(buffers.into_iter().map(|(name, t)| Ok((name, buffer(t)?)))).collect()
    }

    /// Switches layers that behave differently while they train.
    fn set_training(&self, py: Python<'_>, training: bool) -> PyResult<()> {
        self.with(py, |network| {
            let module = network.module();
            if training {
                module.train()
            } else {
                module.eval()
            };
            Ok(())
        })
    }

    /// The sizes that matter.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |network| Ok(network.module().describe()))
    }

    /// Where its parameters are.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<PyDevice> {
        self.with(py, |network| {
            Ok(match network {
                Network::Llm(model) => model.device(),
                Network::CausalLm(model) => model.device(),
                Network::Embedder(embedder) => embedder.model.device(),
                Network::Bert(model) => model.device(),
            })
        })
        .map(PyDevice)
    }

    /// Logits for tokens.
    fn forward(&self, py: Python<'_>, tokens: PyRef<'_, PyTensor>) -> PyResult<PyTensor> {
        let tokens = tokens.0.clone();
        self.with(py, |network| network.module().try_forward(&tokens)).map(PyTensor::from)
    }

    /// The mean cross-entropy of every next token.
    fn loss(
        &self,
        py: Python<'_>,
        tokens: PyRef<'_, PyTensor>,
        next: PyRef<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (tokens, next) = (tokens.0.clone(), next.0.clone());
        self.with(py, |network| match network {
            Network::Llm(model) => model.try_loss(&tokens, &next),
            other => other.causal_lm()?.try_loss(&tokens, &next),
        })
        .map(PyTensor::from)
    }
}

/// An error of a function that Python calls.
pub fn failed(message: impl Into<String>) -> PyErr {
    raise(Error::new(ErrorKind::Argument, message.into()))
}
