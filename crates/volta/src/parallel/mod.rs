//! Training by several at once, devices or processes: each computes gradients of parts of a batch, and all make the same step.
//!
//! `gradient_parts` cuts a global batch at fixed borders and adds what the parts give in one fixed tree, whoever computed them: that is
//! why results do not depend on how many devices there are. `data_parallel` has the devices of this process compute the parts, with the
//! `replicas` of a model's values; `shares` says which device has how many parts, `times` measures how fast they are,
//! `devices` says what lists of devices mean, and `threads` waits for several of them.
//!
//! A [`World`] is all that knows how processes talk; `world` has that of a single one, `thread_world` one of threads, for tests, and a crate
//! of its own the one of MPI. `agreement` finds out whether all ranks want the same. `summation` adds what they have, in any order or in
//! the fixed tree; `exchange` does it while the backward pass goes on, in `buckets` of gradients; `gradient_exchange` is both for loops
//! of one's own. `sharding` says what ranks have only their share of, and `exact_sum` adds up what they have of a norm; `local_steps` are
//! those between two exchanges. `watchdog` ends a run whose ranks hang.
//!
//! ```
//! use volta::parallel::DataParallel;
//! use volta::{Adam, Device, Linear, Module, Optimizer, Tensor, try_mse_loss};
//!
//! let model = Linear::new(4, 1, true);
//! let mut optimizer = Adam::new(model.parameters(), 0.001, (0.9, 0.999), 1e-8, 0.0);
//! // All devices that are to share the work: `Device::gpus()?`, say.
//! let mut parallel = DataParallel::new(&model, &[Device::Cpu])?;
//! let (x, y) = (Tensor::randn([8, 4]), Tensor::zeros([8, 1]));
//! optimizer.zero_grad();
//! let loss = parallel.try_backward(&x, &y, |x, y| try_mse_loss(&model.try_forward(x)?, y))?;
//! optimizer.step();
//! assert!(loss.item::<f32>() >= 0.0);
//! # Ok::<(), volta::Error>(())
//! ```

mod agreement;
mod buckets;
mod data_parallel;
mod devices;
mod exact_sum;
mod exchange;
mod gradient_exchange;
mod gradient_parts;
mod local_steps;
mod replicas;
mod sharding;
mod shares;
mod summation;
mod thread_world;
mod threads;
mod times;
mod watchdog;
mod world;

pub use agreement::agree;
pub(crate) use buckets::{Buckets, Reading};
pub use data_parallel::DataParallel;
pub(crate) use data_parallel::{PartOutput, Pass};
pub use devices::devices_named;
pub(crate) use exact_sum::ExactSum;
pub(crate) use exchange::{Exchange, Gatherer, Gathering};
pub use exchange::{ExchangeCost, ExchangeOptions, time_exchange};
pub use gradient_exchange::GradientExchange;
pub use gradient_parts::{GradientParts, TreeSum};
pub use local_steps::LocalSteps;
pub(crate) use sharding::ShardLayout;
pub use sharding::Sharding;
pub use shares::{Speeds, shares};
pub use summation::Summation;
pub(crate) use summation::join;
pub use thread_world::ThreadWorld;
pub use watchdog::Watchdog;
pub use world::{Single, World, check_parts, check_root, check_same};
