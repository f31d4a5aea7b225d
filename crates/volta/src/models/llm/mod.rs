//! A language model of others with all that it takes to use it: its tokenizer, its template of chats, where it ends, how it samples.
//!
//! `folder` reads what Hugging Face has in a folder, `gguf` a file of llama.cpp, and `save` writes both, with `vocabulary`. `batch` goes on with many
//! texts at once.

mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod gguf;
#[cfg(not(target_arch = "wasm32"))]
mod save;
#[cfg(not(target_arch = "wasm32"))]
mod vocabulary;

pub use batch::{LlmBatch, TextId};
#[cfg(not(target_arch = "wasm32"))]
pub(super) use folder::{Texts, read_text};

#[cfg(not(target_arch = "wasm32"))]
use super::WeightStorage;
use super::{CausalLm, CausalLmCache, Gpt, GptCache, LanguageModel};
#[cfg(not(target_arch = "wasm32"))]
use crate::call::Call;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::nn::{Module, Visitor};
use crate::tensor::Tensor;
#[cfg(feature = "chat")]
use crate::text::ChatTemplate;
use crate::text::{SamplerOptions, Tokenizer};
use std::collections::{BTreeMap, BTreeSet};

/// The network.
enum Network {
    Llama(Box<CausalLm>),
    #[cfg_attr(
        target_arch = "wasm32",
        expect(dead_code, reason = "it comes from folders, which a tab does not have")
    )]
    Gpt(Box<Gpt>),
}

/// What a network remembers of a text.
pub struct LlmCache(Cache);

enum Cache {
    Llama(CausalLmCache),
    Gpt(GptCache),
}

/// A language model that others have trained: the network, its tokenizer, and what its files say about using it.
///
/// ```no_run
/// use volta::models::{Generation, Llm};
/// use volta::text::Sampler;
/// let llm = Llm::load("SmolLM2-135M-Instruct")?; // a folder of Hugging Face, or a GGUF file
/// let mut text = Generation::new(&llm, Sampler::new(llm.sampling.clone())?);
/// text.read(&llm.prompt("The capital of France is")?)?;
/// let mut shown = llm.tokenizer.decode_stream();
/// for _ in 0..20 {
///     let token = text.write()?;
///     if llm.ends(token) {
///         break;
///     }
///     print!("{}", shown.push(token));
/// }
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Llm {
    network: Network,
    /// What makes tokens of text.
    pub tokenizer: Tokenizer,
    /// How its makers pick tokens.
    pub sampling: SamplerOptions,
    /// Tokens that end a text.
    stops: BTreeSet<u32>,
    template: Option<String>,
    special: BTreeMap<String, String>,
}

impl Llm {
    /// Reads a model, to the default device: a folder as Hugging Face has it (`config.json`, `*.safetensors`, `tokenizer.json`), or a
    /// GGUF file, whose matrices stay as they are stored ([`WeightStorage::AsStored`]).
    ///
    /// # Errors
    /// What cannot be read, is missing, or is not understood; the message names the file and the field.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Llm> {
        Llm::load_with(path, WeightStorage::default())
    }

    /// [`load`](Self::load) with a choice of what matrices are in memory. To train all of a model they must be floats.
    ///
    /// ```no_run
    /// use volta::models::{Llm, WeightStorage};
    /// let all_is_trained = Llm::load_with("SmolLM2.q4_1.gguf", WeightStorage::Floats)?;
    /// # Ok::<(), volta::Error>(())
    /// ```
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn load_with(path: impl AsRef<std::path::Path>, storage: WeightStorage) -> Result<Llm> {
        let _call = Call::enter("Llm::load");
        let path = path.as_ref();
        if path.is_dir() {
            return Llm::of_folder(path, storage);
        }
        Llm::of_gguf_with(&crate::io::Gguf::open(path)?, storage)
    }

    /// What the network is, to be trained or taken apart; nothing if it is GPT-2.
    pub fn causal_lm(&self) -> Option<&CausalLm> {
        match &self.network {
            Network::Llama(model) => Some(model),
            Network::Gpt(_) => None,
        }
    }

    /// [`causal_lm`](Self::causal_lm), to be changed: by adapters, say.
    pub fn causal_lm_mut(&mut self) -> Option<&mut CausalLm> {
        match &mut self.network {
            Network::Llama(model) => Some(model),
            Network::Gpt(_) => None,
        }
    }

    /// Where its parameters are.
    pub fn device(&self) -> Device {
        match &self.network {
            Network::Llama(model) => model.device(),
            Network::Gpt(model) => model.device(),
        }
    }

    /// How many tokens the network knows.
    pub fn vocabulary(&self) -> usize {
        match &self.network {
            Network::Llama(model) => model.options.vocabulary,
            Network::Gpt(model) => model.options.vocabulary,
        }
    }

    /// The mean cross-entropy of every next token: both are integers of (batch, length).
    #[track_caller]
    pub fn try_loss(&self, tokens: &Tensor, next: &Tensor) -> Result<Tensor> {
        match &self.network {
            Network::Llama(model) => model.try_loss(tokens, next),
            Network::Gpt(model) => model.try_loss(tokens, next),
        }
    }

    /// Whether a token ends what the model writes.
    pub fn ends(&self, token: u32) -> bool {
        self.stops.contains(&token)
    }

    /// The token that its makers end texts with.
    pub fn end_token(&self) -> Option<u32> {
        let named = self.special.get("eos_token").and_then(|token| self.tokenizer.id(token));
        named.or_else(|| self.stops.first().copied())
    }

    /// The tokens of a text to go on from, with what the tokenizer puts in front. An empty text has at least one token.
    #[track_caller]
    pub fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        let tokens = self.tokenizer.try_encode_with_special_tokens(text)?;
        if !tokens.is_empty() {
            return Ok(tokens);
        }
        let first = self.special.get("bos_token").and_then(|token| self.tokenizer.id(token));
        match first.or_else(|| self.stops.first().copied()) {
            Some(token) => Ok(vec![token]),
            None => self.tokenizer.try_encode("\n"),
        }
    }

    /// The template of chats that the model brings.
    ///
    /// # Errors
    /// A model without one, or with one that is not understood.
    #[cfg(feature = "chat")]
    #[track_caller]
    pub fn template(&self) -> Result<ChatTemplate> {
        match &self.template {
            Some(source) => ChatTemplate::new(source, self.special.clone()),
            None => Err(Error::new(
                ErrorKind::Data,
                "this model brings no chat template: it was not trained to chat; let it go on from a text instead",
            )),
        }
    }

    /// Whether the model brings a template of chats.
    pub fn chats(&self) -> bool {
        self.template.is_some()
    }
}

/// A tokenizer and a network that may belong together.
fn check(tokenizer: &Tokenizer, vocabulary: usize) -> Result<()> {
    let size = tokenizer.vocabulary_size();
    if size > vocabulary {
        let message = format!(
            "the tokenizer has {size} tokens, and the model knows {vocabulary}: they do not belong together"
        );
        return Err(Error::new(ErrorKind::Data, message));
    }
    Ok(())
}

impl LanguageModel for Llm {
    type Cache = LlmCache;

    fn max_tokens(&self) -> usize {
        match &self.network {
            Network::Llama(model) => model.max_tokens(),
            Network::Gpt(model) => model.max_tokens(),
        }
    }

    fn start(&self) -> LlmCache {
        LlmCache(match &self.network {
            Network::Llama(model) => Cache::Llama(model.start()),
            Network::Gpt(model) => Cache::Gpt(model.start()),
        })
    }

    fn read(&self, tokens: &[u32], cache: &mut LlmCache) -> Result<Tensor> {
        match (&self.network, &mut cache.0) {
            (Network::Llama(model), Cache::Llama(cache)) => model.read(tokens, cache),
            (Network::Gpt(model), Cache::Gpt(cache)) => model.read(tokens, cache),
            _ => Err(Error::new(ErrorKind::Argument, "the cache belongs to another model")),
        }
    }

    fn truncate(&self, cache: &mut LlmCache, length: usize) {
        match &mut cache.0 {
            Cache::Llama(cache) => cache.truncate(length),
            Cache::Gpt(cache) => cache.truncate(length),
        }
    }
}

impl Module for Llm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        match &self.network {
            Network::Llama(model) => model.try_forward(x),
            Network::Gpt(model) => model.try_forward(x),
        }
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        match &self.network {
            Network::Llama(model) => model.visit(visitor),
            Network::Gpt(model) => model.visit(visitor),
        }
    }

    fn kind(&self) -> &'static str {
        match &self.network {
            Network::Llama(model) => model.kind(),
            Network::Gpt(model) => model.kind(),
        }
    }

    fn describe(&self) -> String {
        match &self.network {
            Network::Llama(model) => model.describe(),
            Network::Gpt(model) => model.describe(),
        }
    }
}
