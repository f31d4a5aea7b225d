//! What belongs to a leaf, whatever values it is given.

use super::{Node, register};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;
use std::sync::{Arc, Mutex, MutexGuard};

/// A leaf's gradient, and its value in half precision.
#[derive(Default)]
pub(crate) struct Leaf {
    gradient: Mutex<Option<Tensor>>,
    half: Mutex<Half>,
}

/// A value in half precision, which whoever gives the leaf new values may leave besides.
#[derive(Default)]
struct Half {
    /// In what type it was asked for since the leaf got its value.
    asked: Option<DType>,
    /// The node that it is the value of, and the value.
    known: Option<(u64, Arc<Node>)>,
}

impl Leaf {
    fn gradient(&self) -> MutexGuard<'_, Option<Tensor>> {
        self.gradient.lock().expect("no panic while a gradient is held")
    }

    fn half(&self) -> MutexGuard<'_, Half> {
        self.half.lock().expect("no panic while a value is held")
    }

    pub fn get(&self) -> Option<Tensor> {
        self.gradient().clone()
    }

    /// Adds to what is there; other threads that add meanwhile wait.
    pub fn add(&self, gradient: &Tensor) -> Result<()> {
        let mut slot = self.gradient();
        let sum = match &*slot {
            Some(before) => before.try_add(gradient)?,
            None => gradient.clone(),
        };
        register(&sum.node());
        *slot = Some(sum);
        Ok(())
    }

    pub fn set(&self, gradient: Option<Tensor>) {
        let old = std::mem::replace(&mut *self.gradient(), gradient);
        drop(old);
    }

    /// The value of `node`, which is this leaf, in `dtype`, if it is known; and that it was asked for.
    pub fn ask_for_half(&self, node: &Node, dtype: DType) -> Option<Arc<Node>> {
        let mut half = self.half();
        half.asked = Some(dtype);
        let fits = |(of, value): &(u64, Arc<Node>)| *of == node.id && value.dtype == dtype;
        if half.known.as_ref().is_some_and(|known| !fits(known)) {
            half.known = None;
        }
        half.known.as_ref().map(|(_, value)| value.clone())
    }

    /// The type in which somebody asked for the value that the leaf had until now; it is let go.
    pub fn half_was_asked_for(&self) -> Option<DType> {
        std::mem::take(&mut *self.half()).asked
    }

    /// `value` is that of `node`, which is this leaf, in half precision.
    pub fn know_half(&self, node: &Node, value: Arc<Node>) {
        *self.half() = Half { asked: None, known: Some((node.id, value)) };
    }
}
