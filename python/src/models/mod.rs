//! Networks that the engine brings: language models and encoders of others, and adapters.
//!
//! | module | holds |
//! |---|---|
//! | `network` | what they have in common: tensors, modes, a forward pass |
//! | `llm` | language models with tokenizers and templates of chats |
//! | `generation` | a text that such a model writes |
//! | `embedder` | encoders, and vectors of sentences |
//! | `lora` | adapters of low rank |

mod embedder;
mod generation;
mod llm;
mod lora;
mod network;

use pyo3::prelude::*;

/// The module `volta._volta._models`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_models")?;
    module.add_class::<network::PyNetwork>()?;
    module.add_class::<generation::PyGeneration>()?;
    module.add_class::<lora::PyLora>()?;
    parent.add_submodule(&module)
}
