//! The precision composites compute in: half floats become f32 inside, and the result is rounded once.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Result, bail};

impl Tensor {
    /// An error unless the elements are floats.
    pub(crate) fn check_float(&self) -> Result<()> {
        if !self.dtype().is_float() {
            bail!(
                DType,
                "a tensor of {} {}: it must hold floats, convert it with to_dtype",
                self.dtype(),
                self.shape()
            );
        }
        Ok(())
    }

    /// Half floats as f32; others as they are.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        self.try_to_dtype(self.dtype().wide())
    }

    /// Integers and bools as f32; floats as they are.
    pub(crate) fn floated(&self) -> Result<Tensor> {
        if self.dtype().is_float() { Ok(self.clone()) } else { self.try_to_dtype(DType::F32) }
    }

    /// `f` of floats, computed in at least f32 and rounded to their own type at the end.
    pub(crate) fn in_wide(&self, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
        self.check_float()?;
        f(&self.widened()?)?.try_to_dtype(self.dtype())
    }
}
