//! What flows through a graph.

use crate::element::ElementType;
use std::sync::{Arc, Mutex, PoisonError};
use volta::{DType, Device, Result, Tensor};

/// A tensor on its way through a graph.
#[derive(Clone)]
pub(crate) struct Value {
    pub tensor: Tensor,
    pub kind: ElementType,
    /// It lies on the CPU and follows from the file and from shapes alone.
    pub known: bool,
    /// A known value where others are computed.
    copy: Arc<Mutex<Option<Tensor>>>,
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        let kind = ElementType::of(tensor.dtype());
        Value { tensor, kind, known: false, copy: Arc::default() }
    }
}

impl Value {
    /// What follows from the file and from shapes alone.
    pub fn known(tensor: Tensor) -> Value {
        Value { known: true, ..Value::from(tensor) }
    }

    pub fn of_kind(self, kind: ElementType) -> Value {
        Value { kind, ..self }
    }

    /// The tensor on a device.
    pub fn on(&self, device: Device) -> Result<Tensor> {
        if !self.known || device == Device::Cpu {
            return Ok(self.tensor.clone());
        }
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        match &*copy {
            Some(there) if there.device() == device => Ok(there.clone()),
            _ => {
                let moved = to_device(&self.tensor, device)?;
                *copy = Some(moved.clone());
                Ok(moved)
            }
        }
    }
}

/// A copy on a device. Where that has no integers or floats of 64 bits, those of 32 stand for them.
pub(crate) fn to_device(x: &Tensor, device: Device) -> Result<Tensor> {
    let narrow = match x.dtype() {
        DType::I64 => DType::I32,
        DType::F64 => DType::F32,
        _ => return x.try_to_device(device),
    };
    x.try_to_device(device).or_else(|_| x.try_to_dtype(narrow)?.try_to_device(device))
}

impl Value {
    /// Of this type, if the tensor is what holds it.
    pub fn of_kind_if_held(self, kind: ElementType) -> Value {
        if kind.held_as() == self.tensor.dtype() { self.of_kind(kind) } else { self }
    }
}
