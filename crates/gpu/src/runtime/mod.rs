//! Running a plan: `pipeline` compiles its shaders, which `disk_cache` keeps; `program` binds its memory and submits it, in
//! portions that `submission` limits; `work_queue` keeps runs in order that wait for a browser to compile their shaders; `preencode` encodes the next run ahead; `tiering` recompiles a plan that runs often.
//! `profile` measures, `guard` checks every kernel's results, `assertions` reports indices and divisors that are wrong.

pub(super) mod assertions;
pub(super) mod disk_cache;
pub(super) mod guard;
pub(super) mod pipeline;
pub(super) mod preencode;
pub(super) mod profile;
pub(super) mod program;
pub(super) mod tiering;
pub(super) mod work_queue;
