//! The device: finding adapters, opening one with its limits and abilities, its errors and its end, the order of its work,
//! what the host does while it waits for it. It knows nothing of plans.

pub(super) mod adapter;
#[cfg(target_arch = "wasm32")]
pub(super) mod browser;
pub(super) mod device_errors;
pub(super) mod idle_queue;
pub(super) mod injected_faults;
pub(super) mod oneshot;
pub(super) mod open_device;
#[cfg(unix)]
pub(super) mod shutdown;
pub(super) mod work_queue;
