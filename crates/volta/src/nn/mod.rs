//! Layers and what they have in common: names, shapes, layouts and first values are PyTorch's.
//!
//! `module` holds the trait, `visit` the walk over a module's tensors that everything else is made of, `state`
//! taking over all values by name, `summary` a printed overview, `init` first values. A layer is a file, a family of layers a folder.
//!
//! ```
//! use volta::{Linear, Module, ReLU, Sequential, Tensor};
//!
//! let layers: Vec<Box<dyn Module>> =
//!     vec![Box::new(Linear::new(4, 8, true)), Box::new(ReLU), Box::new(Linear::new(8, 2, true))];
//! let model = Sequential::new(layers);
//! assert_eq!(model.forward(&Tensor::zeros([3, 4])).shape()[..], [3, 2]);
//! ```

mod activation;
mod attention;
mod batch_norm;
mod buffer;
mod call;
mod conv;
mod conv_transpose;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod module;
mod norm;
mod pair;
mod pool;
mod profile_by_module;
mod quantized;
mod recurrent;
mod reshape;
mod rotary;
mod sequential;
mod state;
mod state_guard;
mod summary;
mod transformer;
mod visit;

pub use activation::{ELU, GELU, GELUTanh, LeakyReLU, LogSoftmax, Mish, ReLU, SiLU, Sigmoid, Softmax, Tanh};
pub(crate) use attention::grouped_attention;
pub use attention::{AttentionMask, KvCache, MultiHeadAttention, MultiHeadOptions};
pub use batch_norm::{BatchNorm, BatchNorm1d, BatchNorm2d, RunningStatistics};
pub use buffer::BufferField;
pub(crate) use call::layer;
pub use conv::{Conv1d, Conv2d};
pub use conv_transpose::ConvTranspose2d;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use module::{Module, num_parameters};
pub use norm::{GroupNorm, LayerNorm, RMSNorm};
pub use pair::Pair;
pub use pool::{AdaptiveAvgPool2d, AvgPool2d, MaxPool2d};
pub use profile_by_module::by_module;
pub use quantized::QuantizedLinear;
pub use recurrent::{GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell, RecurrentOptions, RecurrentWeights};
pub use reshape::{Flatten, Identity, PixelShuffle, Resize, Unflatten, Upsample};
pub use rotary::Rotary;
pub use sequential::Sequential;
pub use state::LoadReport;
pub use summary::{Summary, summary};
pub use transformer::{
    FeedForwardActivation, TransformerDecoderLayer, TransformerEncoderLayer, TransformerOptions,
};
pub use visit::{Field, Item, Mode, Visitor};
pub use volta_derive::Module;
