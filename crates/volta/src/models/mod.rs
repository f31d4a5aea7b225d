//! Whole networks that are used again and again.
//!
//! ```
//! use volta::models::{Gpt, GptOptions};
//! use volta::{Module, Tensor};
//!
//! let model = Gpt::new(GptOptions { vocabulary: 65, context: 32, layers: 2, ..GptOptions::default() });
//! let tokens = Tensor::randint(0, 65, [2, 32]);
//! assert_eq!(model.forward(&tokens).shape()[..], [2, 32, 65]);
//! ```

mod generate;
mod gpt;
mod gpt2;
mod gpt_block;
mod gpt_cache;

pub use generate::Generation;
pub use gpt::{Activation, Gpt, GptOptions, Norm, Positions};
pub use gpt_cache::GptCache;
