//! Layers and what they have in common: names, shapes, layouts and first values are PyTorch's.
//!
//! `module` holds the trait, `visit` the walk over a module's tensors that everything else is made of, `state`
//! taking over all values by name, `summary` a printed overview, `init` first values. A layer is a file.

mod activation;
mod call;
pub mod init;
mod linear;
mod module;
mod sequential;
mod state;
mod summary;
mod visit;

pub use activation::{ELU, GELU, GELUTanh, LeakyReLU, LogSoftmax, Mish, ReLU, SiLU, Sigmoid, Softmax, Tanh};
pub use linear::Linear;
pub use module::{Module, num_parameters};
pub use sequential::Sequential;
pub use state::LoadReport;
pub use summary::{Summary, summary};
pub use visit::{Field, Item, Mode, Visitor};
pub use volta_derive::Module;
