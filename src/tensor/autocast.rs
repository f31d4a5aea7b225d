//! Mixed precision: what tensor cores do well in half precision, everything else in f32.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::Op;
use std::cell::Cell;

thread_local! {
    static LOWER: Cell<Option<DType>> = const { Cell::new(None) };
}

/// Runs `f` with matrix products, linear maps, convolutions and attention in half precision: their f32 operands are
/// converted to `dtype` (`f16` or `bf16`) and summed in f32. Losses stay in f32, and so do the parameters: gradients
/// arrive in the parameters' own type. Call `backward` outside; with `f16`, scale the loss by a
/// [`GradScaler`](crate::GradScaler).
#[track_caller]
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<DType>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LOWER.set(self.0);
        }
    }
    let _restore = Restore(try_set_autocast(Some(dtype)).unwrap_or_else(|e| e.raise()));
    f()
}

/// What [`autocast`] does, from now on and on this thread, until it is called again with what it returns: for scopes that
/// are not closures.
#[track_caller]
pub fn try_set_autocast(dtype: Option<DType>) -> Result<Option<DType>> {
    let _call = crate::call::Call::enter("autocast");
    match dtype {
        Some(dtype) if !dtype.is_half() => {
            bail!(DType, "{dtype} is not half precision: use f16 or bf16")
        }
        _ => Ok(LOWER.replace(dtype)),
    }
}

impl Tensor {
    /// The operand of a product: in half precision where that is asked for.
    pub(super) fn lowered(&self) -> Result<Tensor> {
        match LOWER.get() {
            Some(dtype) if self.dtype() == DType::F32 => self.cast_as_it_lies(dtype),
            _ => Ok(self.clone()),
        }
    }

    /// Converts what a permuted tensor is made of, and permutes that: values are read and written in the order they lie
    /// in, and gradients come back in it.
    fn cast_as_it_lies(&self, dtype: DType) -> Result<Tensor> {
        let node = self.node();
        match (&node.op, node.sources().first()) {
            (Op::Permute(order), Some(source)) => {
                let order: Vec<usize> = order[..self.rank()].iter().map(|&axis| axis as usize).collect();
                Tensor::from_node(source.clone()).cast(dtype)?.permute_order(&order)
            }
            _ => self.cast(dtype),
        }
    }

    /// What a loss is computed from: f32 where products are in half precision.
    pub(super) fn raised(&self) -> Result<Tensor> {
        if LOWER.get().is_some() { self.widened() } else { Ok(self.clone()) }
    }
}
