//! What belongs to a leaf, whatever values it is given.

use super::{Node, Storage, last_id};
use crate::dtype::DType;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};

/// A gradient, which autograd knows how to add up.
pub(crate) type Gradient = Arc<dyn Any + Send + Sync>;

/// A leaf's gradient, and its value in half precision.
pub(crate) struct Leaf {
    /// Smaller than the number of any node that is this leaf.
    pub since: u64,
    gradient: Mutex<Option<Gradient>>,
    half: Mutex<Half>,
}

/// A value in half precision, which whoever gives the leaf new values may leave besides.
#[derive(Default)]
struct Half {
    /// In what type it was asked for since the last step.
    asked: Option<DType>,
    /// The node that it is the value of, its type, and where it is.
    known: Option<(u64, DType, Storage)>,
}

impl Leaf {
    pub fn new() -> Leaf {
        Leaf { since: last_id(), gradient: Mutex::default(), half: Mutex::default() }
    }

    /// The gradient, for whoever looks at it or changes it; other threads wait meanwhile.
    pub fn gradient(&self) -> MutexGuard<'_, Option<Gradient>> {
        self.gradient.lock().expect("no panic while a gradient is held")
    }

    fn half(&self) -> MutexGuard<'_, Half> {
        self.half.lock().expect("no panic while a value is held")
    }

    /// The value of `node`, which is this leaf, in `dtype`, if it is known; and that it was asked for.
    pub fn cached_half(&self, node: &Node, dtype: DType) -> Option<Storage> {
        let mut half = self.half();
        half.asked = Some(dtype);
        // What is written through an array is the leaf's value, too.
        if node.storage().is_some_and(|storage| storage.is_exported()) {
            return None;
        }
        let known = half.known.as_ref().filter(|(of, known, _)| (*of, *known) == (node.id, dtype));
        known.map(|(.., storage)| storage.clone())
    }

    /// The type in which somebody has asked for its value since this was called last.
    pub fn half_was_asked_for(&self) -> Option<DType> {
        self.half().asked.take()
    }

    /// The leaf has another value.
    pub fn forget_half(&self) {
        let old = self.half().known.take();
        drop(old);
    }

    /// `half` has its value in half precision, which is that of `node`, if it was computed.
    pub fn cache_half(&self, node: &Node, half: &Node) {
        let known = half.storage().map(|storage| (node.id, half.dtype, storage));
        let old = std::mem::replace(&mut self.half().known, known);
        drop(old);
    }
}
