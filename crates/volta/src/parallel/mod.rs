//! Training by several at once, devices or processes: each computes gradients of a part of a batch.
//!
//! `gradient_parts` cuts a global batch at fixed borders and adds what the parts give in one fixed tree, whoever computed them: that is
//! why results do not depend on how many devices there are. `shares` says which device has how many parts.
//!
//! A [`World`] is all that knows how processes talk; `world` has that of a single one, `threads` one of threads, for tests, and a crate
//! of its own the one of MPI. `agreement` finds out whether all ranks want the same. `summation` adds what they have, in any order or in
//! the fixed tree; `exchange` does it while the backward pass goes on, in `buckets` of gradients. `watchdog` ends a run whose ranks hang.

mod agreement;
mod buckets;
mod exchange;
mod gradient_parts;
mod shares;
mod summation;
mod threads;
mod watchdog;
mod world;

pub use agreement::agree;
pub(crate) use buckets::{Buckets, Reading};
pub(crate) use exchange::Exchange;
pub use exchange::{ExchangeCost, ExchangeOptions, time_exchange};
pub use gradient_parts::{GradientParts, TreeSum};
pub use shares::{Speeds, shares};
pub use summation::Summation;
pub(crate) use summation::join;
pub use threads::ThreadWorld;
pub use watchdog::Watchdog;
pub use world::{Single, World, check_parts, check_root, check_same};
