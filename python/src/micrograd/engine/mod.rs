//! A scalar engine with gradients: expressions of f64 numbers in one arena.
//!
//! | file | holds |
//! |---|---|
//! | `op` | the table of ops: value and slopes |
//! | `arena` | the nodes, who uses them, and their end |
//! | `neuron` | sums of products as one node: whole layers without a node a product |
//! | `backward` | gradients of everything that a value was computed from |
//!
//! Nothing here knows Python. A node is an index; whoever holds one owns a share of it, and so do the nodes that were
//! computed from it. A node ends with its last share, so that a training loop needs the memory of its largest step.

mod arena;
mod backward;
mod neuron;
mod op;

pub use arena::{Arena, NodeId, Operand};
pub use neuron::Neuron;
pub use op::{Fault, Op};
