//! The environment variables that Volta reads. All are checked once, when something is first done: a value that a variable
//! cannot have is an error of that call, and names the variable.
//!
//! | variable | says | values |
//! |---|---|---|
//! | `VOLTA_DEVICE` | where tensors are created | `cpu`, `gpu`, `gpu:N` |
//! | `VOLTA_ADAPTER` | which GPU is `gpu:0`; software adapters count only where they are named | a part of its name |
//! | `VOLTA_THREADS` | how many threads the CPU computes with | 1 to 1024 |
//! | `VOLTA_GUARDS` | whether every result and index is checked, as by [`set_guards`](crate::set_guards) | `0`, `1` |
//! | `VOLTA_CACHE` | where compiled kernels are kept | a folder, or `off` |
//! | `VOLTA_DATA` | where sets of data are looked for first, and put | a folder |
//! | `VOLTA_MIRROR` | where they are fetched from | a URL |
//! | `VOLTA_LIMITS` | with what limits GPUs are opened, for tests | `webgpu` |
//! | `VOLTA_VIRTUAL_DEVICES` | how many devices each adapter counts as, for tests | 1 to 16 |
//! | `VOLTA_BLOCK_BYTES` | how large a piece of a large tensor is at most, for tests | bytes |
//! | `VOLTA_MAX_DISPATCH_MS` | how long a submission may take, by estimate | milliseconds |
//! | `VOLTA_TIER_UP_RUNS` | after how many runs a plan is compiled again, optimized | a whole number |
//!
//! An empty variable is as good as none. A variable's old name is read too, for one release, with a note on standard error.

use crate::device::Device;
use crate::error::Result;
pub use volta_ir::environment::check;

/// The device that `VOLTA_DEVICE` names.
///
/// # Errors
///
/// Those of [`check`].
#[track_caller]
pub fn device() -> Result<Option<Device>> {
    Ok(volta_ir::environment::get()?.device.map(Device::from))
}
