//! What happens around the forward pass of every layer: ops inside it name the user's line, profiles and summaries
//! learn which layer they belong to.

use super::Module;
use crate::call::{Call, Layer, LayerScope};
use crate::default_device::with_device;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::cell::RefCell;

/// What a layer gave while somebody watched.
pub(super) struct CallRecord {
    /// Also of layers without fields; several of them may stand in one place.
    pub layer: Layer,
    pub shape: Shape,
}

thread_local! {
    static WATCH: RefCell<Option<Vec<CallRecord>>> = const { RefCell::new(None) };
}

/// Runs `body` as the forward pass of `module`.
#[track_caller]
pub(crate) fn layer<M: Module>(module: &M, body: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    let output = within(module, body)?;
    record_output(module, &output);
    Ok(output)
}

/// Tells whoever watches what `module` gave.
pub(super) fn record_output<M: Module>(module: &M, output: &Tensor) {
    WATCH.with_borrow_mut(|watch| {
        if let Some(seen) = watch {
            seen.push(CallRecord { layer: layer_at(module), shape: output.shape() });
        }
    });
}

/// Runs `body` as part of `module`: its ops name the caller's line.
#[track_caller]
pub(super) fn within<M: Module, R>(module: &M, body: impl FnOnce() -> R) -> R {
    let _scope = LayerScope::enter(layer_of(module));
    body()
}

/// Runs `make` with `device` as the place where tensors are created; its ops name the caller's line.
#[track_caller]
pub(super) fn on_device<R>(device: Device, make: impl FnOnce() -> R) -> R {
    let _scope = LayerScope::enter(None);
    with_device(device, make)
}

/// Misuse that the layer called `name` found itself, before any op did.
#[track_caller]
pub(super) fn misuse(name: &'static str, kind: ErrorKind, message: impl Into<String>) -> Error {
    let _call = Call::enter(name);
    Error::new(kind, message)
}

/// Runs `f` and tells which layers ran, in the order in which they ended.
pub(super) fn watch<R>(f: impl FnOnce() -> R) -> (R, Vec<CallRecord>) {
    let _watching = Watching { outer: WATCH.replace(Some(Vec::new())) };
    let result = f();
    (result, WATCH.take().unwrap_or_default())
}

/// Ends a watch, also by a panic: what layers give afterwards would pile up otherwise.
struct Watching {
    /// What the watch around this one has seen, if there is one.
    outer: Option<Vec<CallRecord>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCH.set(self.outer.take());
    }
}

/// The layer that a module is: `None` for one without fields, which has no place of its own in memory.
pub(super) fn layer_of<M: Module + ?Sized>(module: &M) -> Option<Layer> {
    (module.place().1 > 0).then(|| layer_at(module))
}

/// The layer that a module is. One without fields may share this with others of its kind.
pub(super) fn layer_at<M: Module + ?Sized>(module: &M) -> Layer {
    Layer { address: module.place().0, kind: module.kind() }
}

/// The panicking `forward` of a layer whose work is in `try_forward`.
macro_rules! forward {
    () => {
        #[track_caller]
        fn forward(&self, x: &$crate::tensor::Tensor) -> $crate::tensor::Tensor {
            self.try_forward(x).unwrap_or_else(|e| e.raise())
        }
    };
}
pub(super) use forward;

#[cfg(test)]
mod tests {
    use super::super::ReLU;
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_panic_ends_its_watch_and_not_the_one_around_it() {
        let run = || drop(ReLU.forward(&Tensor::zeros([2])));
        let ((), seen) = watch(|| {
            run();
            let inner = catch_unwind(|| {
                watch(|| {
                    run();
                    panic!("on purpose");
                })
            });
            assert!(inner.is_err());
            run();
        });
        assert_eq!(seen.len(), 2);
        assert!(catch_unwind(|| watch(|| panic!("on purpose"))).is_err());
        assert!(WATCH.with_borrow(Option::is_none));
    }
}
