//! The recorded computation: nodes never change their value, whatever is assigned later. A node is pending
//! until a plan gives it storage; then it lets go of its sources, unless autograd still needs them.

mod grad_mode;
mod integer_range;
mod leaf;
mod node_pool;
mod pending;

pub use grad_mode::{enable_grad, is_grad_enabled, no_grad, set_grad_enabled};
pub(crate) use integer_range::IntegerRange;
pub(crate) use leaf::{Gradient, Leaf};
pub(crate) use node_pool::recycle;
pub(crate) use pending::{register, take_pending};
pub(crate) use volta_ir::buffer::{Buffer, Storage};

use crate::call::{self, Origin};
use crate::device::Device;
use crate::dtype::DType;
use crate::op::Op;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub(crate) type Sources = SmallVec<[Arc<Node>; 4]>;

struct State {
    sources: Sources,
    storage: Option<Storage>,
}

/// One value of the recorded computation.
pub(crate) struct Node {
    /// Grows with every node: sources are always smaller than those who use them.
    pub id: u64,
    pub op: Op,
    pub shape: Shape,
    pub dtype: DType,
    pub device: Device,
    pub origin: Origin,
    /// Gradients flow through it (or end here, at a leaf).
    pub tracked: bool,
    pub leaf: Option<Arc<Leaf>>,
    /// How far its numbers reach, if they are i32 that stand for i64.
    pub wide_range: OnceLock<IntegerRange>,
    /// The node that it takes the place of on the tape, but for its type; 0 is none.
    autograd_alias: AtomicU64,
    /// The backward pass is done with it: sources may go as soon as the value is there.
    released: AtomicBool,
    state: Mutex<State>,
    /// Scratch of the planner: the pass it was seen in and its place there.
    pub mark: AtomicU64,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The largest number that a node has.
fn last_id() -> u64 {
    NEXT_ID.load(Ordering::Relaxed) - 1
}

thread_local! {
    static RECORDED: Cell<usize> = const { Cell::new(0) };
}

/// How many nodes this thread has recorded since its last plan.
pub(crate) fn recorded() -> usize {
    RECORDED.get()
}

/// A plan of this thread has run.
pub(crate) fn forget_recorded() {
    RECORDED.set(0);
}

/// What a new node is made of.
pub(crate) struct NodeSpec {
    pub op: Op,
    pub sources: Sources,
    pub shape: Shape,
    pub dtype: DType,
    pub device: Device,
    pub tracked: bool,
}

impl Node {
    pub fn record(recipe: NodeSpec) -> Arc<Node> {
        Node::build(recipe, None, None)
    }

    /// A node that has its values already.
    pub fn realized(shape: Shape, dtype: DType, device: Device, storage: Storage) -> Arc<Node> {
        let recipe = NodeSpec { op: Op::Data, sources: Sources::new(), shape, dtype, device, tracked: false };
        Node::build(recipe, None, Some(storage))
    }

    /// The value of `source` as a leaf that collects gradients in `leaf`.
    pub fn leaf(source: Arc<Node>, leaf: Arc<Leaf>) -> Arc<Node> {
        let storage = source.storage();
        let recipe = NodeSpec {
            op: Op::Alias,
            shape: source.shape,
            dtype: source.dtype,
            device: source.device,
            tracked: true,
            sources: if storage.is_some() { Sources::new() } else { [source].into_iter().collect() },
        };
        Node::build(recipe, Some(leaf), storage)
    }

    /// A node that has its values already, and a tape.
    pub fn known(recipe: NodeSpec, storage: Storage) -> Arc<Node> {
        Node::build(recipe, None, Some(storage))
    }

    fn build(recipe: NodeSpec, leaf: Option<Arc<Leaf>>, storage: Option<Storage>) -> Arc<Node> {
        let NodeSpec { op, sources, shape, dtype, device, tracked } = recipe;
        RECORDED.set(RECORDED.get() + 1);
        let wide_range = IntegerRange::of_wide(&op, &sources, shape, dtype);
        let wide_range = wide_range.map_or_else(OnceLock::new, OnceLock::from);
        node_pool::place(Node {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            op,
            shape,
            dtype,
            device,
            origin: call::current(),
            tracked,
            leaf,
            wide_range,
            autograd_alias: AtomicU64::new(0),
            released: AtomicBool::new(false),
            state: Mutex::new(State { sources, storage }),
            mark: AtomicU64::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while a node's state is held")
    }

    pub fn storage(&self) -> Option<Storage> {
        self.state().storage.clone()
    }

    pub fn is_realized(&self) -> bool {
        self.state().storage.is_some()
    }

    pub fn sources(&self) -> Sources {
        self.state().sources.clone()
    }

    /// Sees sources and storage under one lock.
    pub fn inspect<R>(&self, look: impl FnOnce(&[Arc<Node>], Option<&Storage>) -> R) -> R {
        let state = self.state();
        look(&state.sources, state.storage.as_ref())
    }

    /// Gives the node its values; without a tape to keep, its sources go.
    pub fn realize(&self, storage: Storage) {
        let old = {
            let mut state = self.state();
            state.storage = Some(storage);
            if self.tape_needed() { Sources::new() } else { std::mem::take(&mut state.sources) }
        };
        // Outside the lock: dropping sources may run through a long chain.
        drop(old);
    }

    /// Lets go of all it holds.
    fn wipe(&mut self) {
        self.op = Op::Data;
        self.leaf = None;
        let state = self.state.get_mut().expect("no panic while a node's state is held");
        state.sources.clear();
        state.storage = None;
    }

    /// It was made of what `other` is made of, and is used instead: gradients do not pass through `other`.
    pub fn set_autograd_alias(&self, other: &Node) {
        self.autograd_alias.store(other.id, Ordering::Relaxed);
    }

    /// Whether its gradient is one of `input`: of the node itself, of another value of the same leaf, or of what stands for
    /// the node.
    pub fn is_same_variable(&self, input: &Node) -> bool {
        let same_leaf = || matches!((&self.leaf, &input.leaf), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        self.id == input.id || self.autograd_alias.load(Ordering::Relaxed) == input.id || same_leaf()
    }

    /// No node that depends on this one, or on a value that its leaf had before, has a smaller number.
    pub fn first_id(&self) -> u64 {
        self.leaf.as_ref().map_or(self.id, |leaf| leaf.since)
    }

    /// Whether a backward pass may still ask for its sources.
    pub fn tape_needed(&self) -> bool {
        self.tracked && self.leaf.is_none() && !self.released.load(Ordering::Relaxed)
    }

    pub fn was_released(&self) -> bool {
        self.released.load(Ordering::Relaxed)
    }

    /// The backward pass has used it.
    pub fn release_tape(&self) {
        self.released.store(true, Ordering::Relaxed);
        let mut state = self.state();
        if state.storage.is_some() {
            let old = std::mem::take(&mut state.sources);
            drop(state);
            drop(old);
        }
    }
}

impl Drop for Node {
    /// Takes long chains apart in a loop: recursion would overflow the stack.
    fn drop(&mut self) {
        let Ok(state) = self.state.get_mut() else { return };
        if state.sources.is_empty() {
            return;
        }
        let mut queue: SmallVec<[Arc<Node>; 16]> = state.sources.drain(..).collect();
        while let Some(node) = queue.pop() {
            if let Some(mut last) = Arc::into_inner(node)
                && let Ok(state) = last.state.get_mut()
            {
                queue.extend(state.sources.drain(..));
            }
        }
    }
}
