//! Nodes that nobody holds any more, kept for the next ones: a step records as many as the step before it, and
//! allocating them costs as much as filling them in.

use super::Node;
use std::cell::RefCell;
use std::sync::Arc;

/// More than this many are given back; a training step of a large network records a few thousand.
const MAX_POOLED_NODES: usize = 8192;

thread_local! {
    static BLANK: RefCell<Vec<Arc<Node>>> = const { RefCell::new(Vec::new()) };
}

/// Lets go of nodes, oldest first in the list, and keeps the memory of those that nobody else holds.
pub(crate) fn recycle(mut nodes: Vec<Arc<Node>>) {
    // The newest first: each lets go of its sources, which stand before it.
    while let Some(mut node) = nodes.pop() {
        if let Some(free) = Arc::get_mut(&mut node) {
            // Not while the list is borrowed: what a node holds may record others when it goes.
            free.wipe();
            BLANK.with_borrow_mut(|blank| {
                if blank.len() < MAX_POOLED_NODES {
                    blank.push(node)
                }
            });
        }
    }
}

/// A node in memory of its own.
pub(super) fn place(node: Node) -> Arc<Node> {
    match BLANK.with_borrow_mut(Vec::pop) {
        Some(mut blank) => {
            *Arc::get_mut(&mut blank).expect("nobody holds a blank node") = node;
            blank
        }
        None => Arc::new(node),
    }
}

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn a_node_in_used_memory_is_new_in_every_respect() {
        let x = Tensor::vector(&[1.0, 2.0]).requires_grad(true);
        for k in 0..3 {
            let y = (&x * f64::from(k)).exp().sum();
            y.backward();
            let grad = x.grad().expect("the gradient was collected").to_vec::<f32>();
            let slope = |x: f64| (f64::from(k) * (f64::from(k) * x).exp()) as f32;
            assert!((grad[0] - slope(1.0)).abs() < 1e-4 && (grad[1] - slope(2.0)).abs() < 1e-3, "{grad:?}");
            x.zero_grad();
            // What is recorded now stands where the step before was.
            let z = Tensor::vector(&[3.0]) + 4.0;
            assert!(!z.is_tracked() && z.grad().is_none());
            assert_eq!(z.to_vec::<f32>(), [7.0]);
        }
    }
}
