//! What happens around the forward pass of every layer: ops inside it name the user's line, profiles and summaries
//! learn which layer they belong to.

use super::Module;
use crate::call::{Call, Layer, LayerScope};
use crate::device::{Device, with_device};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::cell::RefCell;

/// What a layer gave while somebody watched.
pub(super) struct Seen {
    pub layer: Layer,
    pub shape: Shape,
}

thread_local! {
    static WATCH: RefCell<Option<Vec<Seen>>> = const { RefCell::new(None) };
}

/// Runs `body` as the forward pass of `module`.
#[track_caller]
pub(crate) fn layer<M: Module>(module: &M, body: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    let layer = Layer::of(module);
    let output = within(module, body)?;
    WATCH.with_borrow_mut(|watch| {
        if let (Some(seen), Some(layer)) = (watch, layer) {
            seen.push(Seen { layer, shape: output.shape() });
        }
    });
    Ok(output)
}

/// Runs `body` as part of `module`: its ops name the caller's line.
#[track_caller]
pub(super) fn within<M: Module, R>(module: &M, body: impl FnOnce() -> R) -> R {
    let _scope = LayerScope::enter(Layer::of(module));
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
pub(super) fn watch<R>(f: impl FnOnce() -> R) -> (R, Vec<Seen>) {
    let outer = WATCH.replace(Some(Vec::new()));
    let result = f();
    let seen = WATCH.replace(outer).unwrap_or_default();
    (result, seen)
}

impl Layer {
    /// `None` for a layer without fields, which has no place of its own in memory.
    pub(super) fn of<M: Module + ?Sized>(module: &M) -> Option<Layer> {
        let (address, size) = module.place();
        (size > 0).then(|| Layer { address, kind: module.kind() })
    }
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
