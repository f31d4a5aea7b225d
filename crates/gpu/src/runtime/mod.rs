//! Running a plan: `pipeline` compiles its shaders, which `disk_cache` keeps; `program` binds its memory and submits it, in
//! portions that `lower/submission.rs` limits; `preencode` encodes the next run ahead; `tiering` recompiles a plan that runs often.
//! `context` has the GPUs that are open, with what was tuned for them (`tuning_cache`). `profile` measures, `guard` checks every
//! kernel's results.

pub(super) mod context;
pub(super) mod disk_cache;
pub(super) mod guard;
pub(super) mod pipeline;
pub(super) mod preencode;
pub(super) mod profile;
pub(super) mod program;
pub(super) mod tiering;
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "a tab cannot wait for what it measures"))]
pub(super) mod tuning_cache;
