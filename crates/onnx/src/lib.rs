//! ONNX: files of others as modules whose parameters can be trained, and networks of Volta as files for others.
//!
//! `protobuf` reads and writes the messages; `element` is the table of element types. `model` makes a module of a file, `run` computes its
//! nodes by the table of operators in `ops`; `attributes` finds those that nobody would look at. `inspect` tells what a file holds. `export` writes what a module computes.
//!
//! The reader is written by hand: the crate `onnx-ir` brings a code generator's whole representation, and `prost` with a compiler
//! of schemas; ONNX's messages are a few hundred lines.

mod attributes;
mod call;
mod element;
mod export;
mod file;
mod inspect;
mod model;
mod ops;
mod protobuf;
mod run;
mod value;
mod write;

pub use element::{ElementType, read_tensor};
pub use export::{Export, export};
pub use inspect::{OnnxSummary, StoredTensor};
pub use model::{Onnx, Port};
pub use ops::operators;
