//! Whole networks that are used again and again.
//!
//! `gpt` is the language model that the program trains, and `gpt2` loads GPT-2 into it. `causal_lm` is Llama and its relatives; `llm`
//! loads them with their tokenizers from the files of others. `generate` writes with any of them. `bert` encodes, and `embedder` makes
//! vectors of sentences with it. `lora` trains a part of a model. `vision` classifies images. `config_json` reads what these files say about a model.
//!
//! ```
//! use volta::models::{Gpt, GptOptions};
//! use volta::{Module, Tensor};
//!
//! let model = Gpt::new(GptOptions { vocabulary: 65, context: 32, layers: 2, ..GptOptions::default() });
//! let tokens = Tensor::randint(0, 65, [2, 32]);
//! assert_eq!(model.forward(&tokens).shape()[..], [2, 32, 65]);
//! ```

mod bert;
mod causal_lm;
mod config_json;
#[cfg(not(target_arch = "wasm32"))]
mod embedder;
mod generate;
mod gpt;
mod gpt2;
mod gpt_block;
mod gpt_cache;
mod llm;
mod lora;
mod vision;

pub use bert::{Bert, BertOptions};
pub use causal_lm::{
    CausalLm, CausalLmCache, CausalLmOptions, Gate, IGNORED, NormKind, RotaryOptions, RotaryScaling,
    WeightStorage,
};
#[cfg(not(target_arch = "wasm32"))]
pub use embedder::{Embedder, Pooling};
pub use generate::{Generation, LanguageModel, PausedGeneration};
pub use gpt::{Activation, Gpt, GptOptions, Norm, Positions};
pub use gpt_cache::GptCache;
pub use llm::{Llm, LlmBatch, LlmCache, TextId};
pub use lora::{Lora, LoraOptions, LoraSet};
pub use vision::{
    MobileNetV2, MobileNetV2Options, MobileNetV3, MobileNetV3Options, ResNet, ResNetOptions, VisionHeads,
    VisionTransformer, VisionTransformerOptions,
};
