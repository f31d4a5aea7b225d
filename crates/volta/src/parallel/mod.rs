//! Training on several devices at once: each computes gradients of parts of a batch, one optimizer makes the step.
//!
//! `gradient_parts` cuts a global batch at fixed borders and adds what the parts give in one fixed tree, whoever computed them: that is
//! why results do not depend on how many devices there are. `data_parallel` has the devices of this process compute the parts, with the
//! `replicas` of a model's values; `shares` says which device has how many parts, `times` measures how fast they are, `devices` says what lists of devices
//! mean, and `threads` waits for several of them.

mod data_parallel;
mod devices;
mod gradient_parts;
mod replicas;
mod shares;
mod threads;
mod times;

pub use data_parallel::DataParallel;
pub(crate) use data_parallel::{PartOutput, Pass};
pub use devices::devices_named;
pub use gradient_parts::{GradientParts, TreeSum};
pub use shares::{Speeds, shares};
