//! How long everything took: profiles by kernel, op and layer, traces.

mod by_op;
mod peak;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
mod plan_recorder;
mod profile;
mod trace;

pub use by_op::{OpReport, OpTime};
pub use peak::Peak;
pub(crate) use peak::{known_peak, remember_peak};
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub use plan_recorder::plans_of;
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
pub(crate) use plan_recorder::record_plan;
pub(crate) use profile::set_device;
pub use profile::{KernelTime, Profile, Profiler, profile};
pub use volta_ir::telemetry::{Counters, counters, reset_peak};
pub(crate) use volta_ir::telemetry::{count_compile, count_kernels, count_replay, span};
