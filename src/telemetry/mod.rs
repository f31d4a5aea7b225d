//! What the engine and the executors did, and how long it took: counters, profiles by kernel, op and layer, traces.

mod by_op;
mod counters;
mod peak;
#[cfg(not(target_arch = "wasm32"))]
mod plan_recorder;
mod profile;
mod trace;

pub use by_op::{OpReport, OpTime};
pub use counters::{Counters, counters, reset_peak};
pub(crate) use counters::{
    change_pool_bytes, count_bind_group, count_compile, count_kernels, count_read, count_replay,
    count_shader, count_submission, count_upload, see_used_bytes,
};
pub use peak::Peak;
pub(crate) use peak::{known_peak, remember_peak};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use plan_recorder::{plans_of, record_plan};
pub use profile::{KernelTime, Profile, Profiler, profile};
pub(crate) use profile::{is_profiled, record_time, record_untimed, span, trace_kernel};
