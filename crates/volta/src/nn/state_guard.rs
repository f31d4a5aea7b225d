//! Running a module without a trace: modes, buffers and random numbers are as before afterwards.

use super::module::walk;
use super::{Item, Module};
use crate::graph::Node;
use crate::tensor::{RngScope, Tensor};
use std::sync::Arc;

/// Keeps `module` in evaluation for as long as it lives, and then gives it back as it was, also after an error or a
/// panic.
pub(super) struct Untouched<'m, M: Module + ?Sized> {
    module: &'m M,
    /// In the order of the walk.
    modes: Vec<bool>,
    buffers: Vec<(Tensor, Arc<Node>)>,
    _random: RngScope,
}

impl<'m, M: Module + ?Sized> Untouched<'m, M> {
    pub fn enter(module: &'m M) -> Self {
        let mut modes = Vec::new();
        walk(module, &mut |_, item| {
            if let Item::Mode(mode) = item {
                modes.push(mode.is_training());
            }
        });
        let buffers = module.buffers().into_iter().map(|t| (t.clone(), t.node())).collect();
        module.eval();
        Untouched { module, modes, buffers, _random: RngScope::enter() }
    }
}

impl<M: Module + ?Sized> Drop for Untouched<'_, M> {
    fn drop(&mut self) {
        let mut modes = self.modes.drain(..);
        walk(self.module, &mut |_, item| {
            if let Item::Mode(mode) = item
                && let Some(training) = modes.next()
            {
                mode.set_training(training);
            }
        });
        for (buffer, before) in self.buffers.drain(..) {
            buffer.restore_node(before);
        }
    }
}
