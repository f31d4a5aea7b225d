//! The device on which tensors are created unless said otherwise.

use crate::device::Device;
use std::cell::Cell;
use std::sync::Mutex;

static DEFAULT: Mutex<Option<Device>> = Mutex::new(None);

thread_local! {
    static HERE: Cell<Option<Device>> = const { Cell::new(None) };
}

/// Where tensors are created unless said otherwise: the CPU, or what [`set_default_device`], [`with_device`] or
/// the environment variable `VOLTA_DEVICE` (`cpu`, `gpu`, `gpu:N`) say.
pub fn default_device() -> Device {
    HERE.get().unwrap_or_else(|| {
        *DEFAULT
            .lock()
            .expect("no panic while the default is held")
            .get_or_insert_with(|| volta_ir::environment::values().device.map_or(Device::Cpu, Device::from))
    })
}

/// Creates tensors on `device` from now on, in all threads.
pub fn set_default_device(device: Device) {
    *DEFAULT.lock().expect("no panic while the default is held") = Some(device);
}

/// What [`with_device`] does, from now on and on this thread, until it is called again with what it returns: for scopes
/// that are not closures.
pub fn set_thread_device(device: Option<Device>) -> Option<Device> {
    HERE.replace(device)
}

/// Runs `f`, on this thread, with `device` as the place where tensors are created.
pub fn with_device<R>(device: Device, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Device>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    let _restore = Restore(HERE.replace(Some(device)));
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_of_a_scope_ends_with_it() {
        with_device(Device::Gpu(7), || assert_eq!(default_device(), Device::Gpu(7)));
        assert_ne!(default_device(), Device::Gpu(7));
    }
}
