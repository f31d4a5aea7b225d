//! Reading values: the point where what is pending is computed.

use super::Tensor;
use crate::call::Call;
use crate::dtype::{DType, Element};
use crate::engine;
use crate::error::{Result, bail};
use crate::op::Op;
use std::fmt;

impl Tensor {
    /// All elements in row-major order, converted to `T` if the tensor holds another type.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        self.try_to_vec().unwrap_or_else(|e| e.raise())
    }

    /// [`to_vec`](Self::to_vec) that returns its error.
    #[track_caller]
    pub fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let _call = Call::enter("to_vec");
        let tensor =
            if self.dtype() == T::DTYPE { self.clone() } else { self.detach().try_to_dtype(T::DTYPE)? };
        let node = tensor.node();
        let storage = match node.storage() {
            Some(storage) => storage,
            None => {
                engine::realize(&[&node])?;
                node.storage().expect("a realized node has storage")
            }
        };
        let executor = engine::executor(node.device);
        let mut out = vec![T::default(); node.shape.numel()];
        // SAFETY: every `Element` is a plain number without padding (the trait is sealed), and executors store
        // a bool as a byte of 0 or 1, so any bytes they give are valid elements.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), size_of_val(&out[..])) };
        executor.read(&*storage, bytes)?;
        Ok(out)
    }

    /// The value of a tensor of one element, converted to `T`.
    #[track_caller]
    pub fn item<T: Element>(&self) -> T {
        self.try_item().unwrap_or_else(|e| e.raise())
    }

    /// [`item`](Self::item) that returns its error.
    #[track_caller]
    pub fn try_item<T: Element>(&self) -> Result<T> {
        let _call = Call::enter("item");
        if self.numel() != 1 {
            bail!(Shape, "only a tensor of one element is one number, and this has shape {}", self.shape());
        }
        // A number is converted here rather than by one more kernel.
        let read = |t: &Tensor| -> Result<crate::Scalar> {
            Ok(match t.dtype() {
                DType::F32 => t.try_to_vec::<f32>()?[0].to_scalar(),
                DType::I32 => t.try_to_vec::<i32>()?[0].to_scalar(),
                DType::I64 => t.try_to_vec::<i64>()?[0].to_scalar(),
                DType::Bool => t.try_to_vec::<bool>()?[0].to_scalar(),
                _ => t.try_to_vec::<f64>()?[0].to_scalar(),
            })
        };
        Ok(T::from_scalar(read(self)?))
    }

    /// Computes the value now, if it is not there yet.
    #[track_caller]
    pub fn realize(&self) -> &Tensor {
        self.try_realize().unwrap_or_else(|e| e.raise());
        self
    }

    /// [`realize`](Self::realize) that returns its error.
    #[track_caller]
    pub fn try_realize(&self) -> Result<()> {
        let _call = Call::enter("realize");
        let node = self.node();
        if node.is_realized() { Ok(()) } else { engine::realize(&[&node]) }
    }

    /// Whether the value was computed already.
    pub fn is_realized(&self) -> bool {
        self.with_node(|n| n.is_realized() || matches!(n.op, Op::Const(_)))
    }
}

/// Computes several tensors in one plan, along with everything else this thread has pending and still holds.
#[track_caller]
pub fn realize_all(tensors: &[Tensor]) {
    try_realize_all(tensors).unwrap_or_else(|e| e.raise());
}

/// [`realize_all`] that returns its error.
#[track_caller]
pub fn try_realize_all(tensors: &[Tensor]) -> Result<()> {
    let _call = Call::enter("realize_all");
    let nodes: Vec<_> = tensors.iter().map(Tensor::node).collect();
    engine::realize_with_pending(&nodes)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {} on {}", self.dtype(), self.shape(), self.device())?;
        if self.is_tracked() {
            f.write_str(if self.is_leaf() { ", requires grad" } else { ", tracked" })?;
        }
        f.write_str(")")
    }
}
