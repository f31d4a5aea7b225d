//! The values this thread has given to its user and not yet seen computed. An optimizer's step computes all of
//! them that are still held, so that none keeps an old parameter alive.

use super::Node;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// Below this many, forgotten nodes are not worth a sweep.
const SWEEP_FROM: usize = 4096;

thread_local! {
    static PENDING: RefCell<(Vec<Weak<Node>>, usize)> = const { RefCell::new((Vec::new(), SWEEP_FROM)) };
}

pub(crate) fn register(node: &Arc<Node>) {
    PENDING.with_borrow_mut(|(list, sweep_at)| {
        if list.len() >= *sweep_at {
            list.retain(|n| n.upgrade().is_some_and(|n| !n.is_realized()));
            *sweep_at = (2 * list.len()).max(SWEEP_FROM);
        }
        list.push(Arc::downgrade(node));
    });
}

/// Everything given out on this thread that is still held somewhere and has no values yet.
pub(crate) fn take_pending() -> Vec<Arc<Node>> {
    let list = PENDING.with_borrow_mut(|(list, _)| std::mem::take(list));
    list.into_iter().filter_map(|n| n.upgrade()).filter(|n| !n.is_realized()).collect()
}
