//! Training on several devices at once: each computes gradients of a part of a batch, one optimizer makes the step.
//!
//! `gradient_parts` cuts a global batch at fixed borders and adds what the parts give in one fixed tree, whoever computed them: that is
//! why results do not depend on how many devices there are. `shares` says which device has how many parts.

mod gradient_parts;
mod shares;

pub use gradient_parts::{GradientParts, TreeSum};
pub use shares::{Speeds, shares};
