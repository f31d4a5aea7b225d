//! Language models: what files of others hold, tokens and chats.

use super::network::{Network, PyNetwork};
use crate::error::run;
use crate::tensor::{DeviceArg, or_default};
use pyo3::prelude::*;
use std::path::PathBuf;
use volta::models::{CausalLm, CausalLmOptions, LanguageModel, Llm};
use volta::text::ChatMessage;
use volta::{Result, with_device};

#[pymethods]
impl PyNetwork {
    /// Reads a language model with all that belongs to it.
    #[staticmethod]
    #[pyo3(signature = (path, device = None))]
    fn load_llm(py: Python<'_>, path: PathBuf, device: Option<DeviceArg>) -> PyResult<PyNetwork> {
        let device = or_default(device)?;
        let llm = run(py, || with_device(device, || Llm::load(path)))?;
        Ok(Network::Llm(Box::new(llm)).into())
    }

    /// A language model with small random values, as a `config.json` describes it.
    #[staticmethod]
    #[pyo3(signature = (config, device = None))]
    fn causal_lm(py: Python<'_>, config: &str, device: Option<DeviceArg>) -> PyResult<PyNetwork> {
        let device = or_default(device)?;
        let model =
            run(py, || with_device(device, || CausalLm::try_new(CausalLmOptions::from_config(config)?)))?;
        Ok(Network::CausalLm(Box::new(model)).into())
    }

    /// The tokens of a text, with or without what the tokenizer puts around it.
    fn encode(&self, py: Python<'_>, text: &str, special: bool) -> PyResult<Vec<u32>> {
        self.with(py, |network| {
            let tokenizer = match network {
                Network::Embedder(embedder) => &embedder.tokenizer,
                other => &other.llm()?.tokenizer,
            };
            if special { tokenizer.try_encode_with_special_tokens(text) } else { tokenizer.try_encode(text) }
        })
    }

    /// The tokens of a text to go on from: one at least.
    fn prompt(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        self.with(py, |network| network.llm()?.prompt(text))
    }

    /// The text of tokens.
    fn decode(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<String> {
        self.with(py, |network| {
            Ok(match network {
                Network::Embedder(embedder) => embedder.tokenizer.decode(&tokens),
                other => other.llm()?.tokenizer.decode(&tokens),
            })
        })
    }

    /// Whether a token ends what the model writes.
    fn ends(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        self.with(py, |network| Ok(network.llm()?.ends(token)))
    }

    /// The most tokens that it sees at once, and how many there are.
    fn sizes(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        self.with(py, |network| {
            Ok(match network {
                Network::Llm(model) => (model.max_tokens(), model.vocabulary()),
                Network::Embedder(embedder) => (embedder.max_tokens, embedder.model.options.vocabulary),
                Network::Bert(model) => (model.options.context, model.options.vocabulary),
                Network::CausalLm(model) => (model.options.context, model.options.vocabulary),
            })
        })
    }

    /// How its makers pick tokens: temperature, top-k, top-p and the penalty of repetitions.
    fn sampling(&self, py: Python<'_>) -> PyResult<(f32, usize, f32, f32)> {
        self.with(py, |network| {
            let s = &network.llm()?.sampling;
            Ok((s.temperature, s.top_k, s.top_p, s.repetition_penalty))
        })
    }

    /// Whether the model brings a template of chats.
    fn chats(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |network| Ok(network.llm()?.chats()))
    }

    /// The text of a chat in the model's own template; with `answer`, up to where an answer begins.
    fn render(&self, py: Python<'_>, messages: Vec<(String, String)>, answer: bool) -> PyResult<String> {
        let messages: Vec<ChatMessage> =
            messages.into_iter().map(|(role, content)| ChatMessage::new(role, content)).collect();
        self.with(py, |network| -> Result<String> { network.llm()?.template()?.render(&messages, answer) })
    }
}
