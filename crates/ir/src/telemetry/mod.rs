//! What executors tell of their work: totals, and the times of kernels for whoever profiles this thread.

mod counters;
mod recorder;

pub use counters::{
    Counters, change_pool_bytes, count_bind_group, count_compile, count_kernels, count_read, count_replay,
    count_shader, count_submission, count_upload, counters, reset_peak, see_used_bytes,
};
pub use recorder::{Recorder, is_profiled, record_time, record_untimed, set_recorder, span, trace_kernel};
