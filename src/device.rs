//! Where tensors live.

use crate::environment;
use crate::error::{Error, bail};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

/// A place that holds tensors and runs plans.
///
/// `Device::gpu()` finds the best real GPU, `Device::auto()` takes it or else the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Device {
    /// The host's processor.
    #[default]
    Cpu,
    /// A GPU by its index: 0 is the best one, or the one that `VOLTA_ADAPTER` names.
    Gpu(usize),
}

impl Device {
    /// The host's processor.
    pub const fn cpu() -> Device {
        Device::Cpu
    }

    /// Whether it is a GPU.
    pub const fn is_gpu(self) -> bool {
        matches!(self, Device::Gpu(_))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(index) => write!(f, "gpu:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `gpu`, `gpu:1`; `gpu` is `gpu:0`. Whether the device is there shows when it is used.
    fn from_str(name: &str) -> Result<Device, Error> {
        match name.trim().to_lowercase().as_str() {
            "cpu" => Ok(Device::Cpu),
            "gpu" => Ok(Device::Gpu(0)),
            other => match other.strip_prefix("gpu:").and_then(|n| n.parse().ok()) {
                Some(index) => Ok(Device::Gpu(index)),
                None => bail!(Argument, "{name:?} is no device: use cpu, gpu or gpu:N"),
            },
        }
    }
}

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
            .get_or_insert_with(|| environment::values().device.unwrap_or(Device::Cpu))
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
    use crate::error::ErrorKind;

    #[test]
    fn devices_are_read_as_they_are_printed() {
        for device in [Device::Cpu, Device::Gpu(0), Device::Gpu(3)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        let error = "tpu".parse::<Device>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
    }

    #[test]
    fn the_default_of_a_scope_ends_with_it() {
        with_device(Device::Gpu(7), || assert_eq!(default_device(), Device::Gpu(7)));
        assert_ne!(default_device(), Device::Gpu(7));
    }
}
