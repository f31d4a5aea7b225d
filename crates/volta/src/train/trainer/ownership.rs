//! Whose the model and the optimizer are: lent for as long as the trainer lives, or given to it.

use crate::nn::Module;
use crate::optim::Optimizer;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The model.
pub(super) enum Held<'t> {
    Lent(&'t dyn Module),
    Shared(Arc<dyn Module>),
}

impl<'t> Deref for Held<'t> {
    type Target = dyn Module + 't;

    fn deref(&self) -> &Self::Target {
        match self {
            Held::Lent(model) => *model,
            Held::Shared(model) => &**model,
        }
    }
}

/// The optimizer.
pub(super) enum HeldMut<'t> {
    Lent(&'t mut dyn Optimizer),
    Owned(Box<dyn Optimizer>),
}

impl<'t> Deref for HeldMut<'t> {
    type Target = dyn Optimizer + 't;

    fn deref(&self) -> &Self::Target {
        match self {
            HeldMut::Lent(optimizer) => &**optimizer,
            HeldMut::Owned(optimizer) => &**optimizer,
        }
    }
}

impl DerefMut for HeldMut<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            HeldMut::Lent(optimizer) => &mut **optimizer,
            HeldMut::Owned(optimizer) => &mut **optimizer,
        }
    }
}
