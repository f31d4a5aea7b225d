//! Deep learning in pure Rust: lazy tensors, autograd and fused kernels.
//!
//! Calling an op checks shapes at once and records a node. Reading a value, or an optimizer's step, turns what
//! is pending into a *plan*: few, fused kernels and one memory layout. A plan is cached under the structure of
//! the graph, so the second step only replays it.
//!
//! The floors of the house, each using only those under it:
//!
//! | floor | holds |
//! |---|---|
//! | `dtype` `shape` `device` `error` | plain data |
//! | `op` | the table of primitives and their gradients |
//! | `graph` `autograd` | recorded nodes; gradients as more nodes |
//! | `plan` | fusion, views, memory, the plan cache |
//! | `cpu` | an executor of plans |
//! | `tensor` | what users hold |

mod autograd;
mod call;
mod cpu;
mod device;
mod dtype;
mod engine;
mod error;
mod graph;
mod op;
mod plan;
mod random;
mod shape;
mod tensor;

pub use autograd::{
    BackwardOptions, Function, apply, checkpoint, enable_grad, grad, no_grad, try_apply, try_checkpoint,
    try_grad,
};
pub use device::Device;
pub use dtype::{DType, Element, Scalar};
pub use engine::{Counters, counters, guards_enabled, last_plan, set_guards, with_fusion};
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
pub use plan::report::{KernelReport, PlanReport};
pub use shape::{Dims, MAX_RANK, Shape};
pub use tensor::{
    AttentionOptions, ConvOptions, Operand, Range, RngState, Tensor, manual_seed, realize_all,
    try_realize_all,
};
