//! The gradient that a leaf collects. To the graph it is an opaque value.

use super::Tensor;
use crate::error::Result;
use crate::graph::{Gradient, Leaf, register};
use std::sync::Arc;

fn tensor(gradient: &Gradient) -> Tensor {
    gradient.downcast_ref::<Tensor>().expect("gradients are tensors").clone()
}

/// The leaf's gradient, if it has one.
pub(crate) fn gradient_of(leaf: &Leaf) -> Option<Tensor> {
    leaf.gradient().as_ref().map(tensor)
}

/// Adds to the leaf's gradient; other threads that add meanwhile wait.
pub(crate) fn add_gradient(leaf: &Leaf, gradient: &Tensor) -> Result<()> {
    let mut slot = leaf.gradient();
    let sum = match &*slot {
        Some(before) => tensor(before).try_add(gradient)?,
        None => gradient.clone(),
    };
    register(&sum.node());
    *slot = Some(Arc::new(sum));
    Ok(())
}

/// Gives the leaf this gradient, or none.
pub(crate) fn set_gradient(leaf: &Leaf, gradient: Option<Tensor>) {
    let gradient = gradient.map(|tensor| Arc::new(tensor) as Gradient);
    let old = std::mem::replace(&mut *leaf.gradient(), gradient);
    drop(old);
}

#[cfg(test)]
mod tests {
    use crate::Tensor;
    use std::sync::Arc;

    #[test]
    fn a_gradient_that_was_never_computed_goes_with_its_leaf() {
        let w = Tensor::vector(&[1.0, 2.0]).requires_grad(true);
        (&w * &w).sum().backward();
        let (node, gradient) = (Arc::downgrade(&w.node()), Arc::downgrade(&w.grad().unwrap().node()));
        let same = w.clone();
        drop(w);
        assert!(gradient.upgrade().is_some(), "another handle may ask for it");
        drop(same);
        assert!(node.upgrade().is_none() && gradient.upgrade().is_none());
    }
}
