//! What users hold: a value, recorded when an op is called and computed when it is needed.
//!
//! `record` makes nodes; `create`, `elementwise`, `reduce`, `movement`, `matmul`, `conv`, `index` hold the
//! primitives and what is one step away from them. The rest is composed of these, one subject a file, so that
//! the planner fuses it and autograd knows its gradient.

pub(crate) mod activation;
mod assertion;
pub(crate) mod attention;
mod autocast;
mod band;
mod cat_split;
mod conv;
mod create;
pub(crate) mod custom_gradient;
mod dropout;
mod einsum;
mod elementwise;
mod index;
mod interop;
pub(crate) mod leaf_gradient;
mod mask;
mod matmul;
mod measure_peak;
mod movement;
mod norm;
mod operators;
mod pool;
mod precision;
pub(crate) mod quantized;
mod read;
pub(crate) mod record;
mod recorded;
mod reduce;
mod resize;
pub(crate) mod softmax;
mod sort;
mod statistics;
mod transfer;

pub use attention::AttentionOptions;
pub(crate) use autocast::with_autocast;
pub use autocast::{AutocastTypes, autocast, autocast_types, try_set_autocast};
pub use conv::ConvOptions;
pub(crate) use create::{RngScope, bytes_of, next_key};
pub use create::{RngState, manual_seed};
pub use elementwise::Operand;
pub use interop::HostMemory;
pub use measure_peak::measure_peak;
pub use movement::Range;
pub use pool::PoolOptions;
pub use quantized::QuantizedMatrix;
pub use read::{assume_computed, realize_all, try_realize_all};
pub(crate) use read::{compute_only, readings};
pub use recorded::{Recorded, recorded};
pub use resize::Interpolation;
pub(crate) use transfer::{broadcast, copied_to};

use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::graph::{Leaf, Node};
use crate::graph::{is_grad_enabled, no_grad};
use crate::shape::Shape;
use record::FinishOp;
use std::sync::{Arc, Mutex};

/// An n-dimensional array on some device, lazy and differentiable.
///
/// Clones are cheap and name the same tensor: what is assigned to one is seen by all.
///
/// ```
/// use volta::Tensor;
/// let x = Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true);
/// let y = (&x * &x).sum();
/// y.backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 4.0, 6.0]);
/// ```
#[derive(Clone)]
pub struct Tensor(Inner);

#[derive(Clone)]
enum Inner {
    /// The result of an op.
    Value(Arc<Node>),
    /// A tensor the user made: others may hold it, and it may be assigned to.
    Variable(Arc<Variable>),
}

struct Variable {
    node: Mutex<Arc<Node>>,
}

impl Drop for Variable {
    /// Nobody can ask for its gradient any more. One that was never computed is made of the leaf that has it, and both would stay.
    fn drop(&mut self) {
        let Ok(node) = self.node.get_mut() else { return };
        if let Some(leaf) = &node.leaf {
            leaf_gradient::set_gradient(leaf, None);
        }
    }
}

impl Tensor {
    pub(crate) fn from_node(node: Arc<Node>) -> Tensor {
        Tensor(Inner::Value(node))
    }

    pub(crate) fn variable_of(node: Arc<Node>) -> Tensor {
        Tensor(Inner::Variable(Arc::new(Variable { node: Mutex::new(node) })))
    }

    /// The node that is this tensor's value now.
    pub(crate) fn node(&self) -> Arc<Node> {
        match &self.0 {
            Inner::Value(node) => node.clone(),
            Inner::Variable(v) => v.node.lock().expect("no panic while a variable is held").clone(),
        }
    }

    fn with_node<R>(&self, look: impl FnOnce(&Node) -> R) -> R {
        match &self.0 {
            Inner::Value(node) => look(node),
            Inner::Variable(v) => look(&v.node.lock().expect("no panic while a variable is held")),
        }
    }

    /// The extents of all axes.
    pub fn shape(&self) -> Shape {
        self.with_node(|n| n.shape)
    }

    /// The extent of one axis, counted from the end when negative.
    #[track_caller]
    pub fn size(&self, axis: isize) -> usize {
        self.shape().size(axis)
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.with_node(|n| n.shape.rank())
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.with_node(|n| n.shape.numel())
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.with_node(|n| n.dtype)
    }

    /// Where it lives.
    pub fn device(&self) -> Device {
        self.with_node(|n| n.device)
    }

    /// Whether gradients flow into or through it.
    pub fn is_tracked(&self) -> bool {
        self.with_node(|n| n.tracked)
    }

    /// Whether it collects its own gradient.
    pub fn is_leaf(&self) -> bool {
        self.with_node(|n| n.leaf.is_some() || !n.tracked)
    }

    /// The same value as a leaf that collects gradients, or as one that does not.
    #[track_caller]
    pub fn requires_grad(&self, yes: bool) -> Tensor {
        self.try_requires_grad(yes).unwrap_or_else(|e| e.raise())
    }

    /// [`requires_grad`](Self::requires_grad) that returns its error.
    #[track_caller]
    pub fn try_requires_grad(&self, yes: bool) -> Result<Tensor> {
        let _call = crate::call::Call::enter("requires_grad");
        let value = self.detach().node();
        if !yes {
            return Ok(Tensor::variable_of(value));
        }
        if !self.dtype().is_float() {
            bail!(DType, "only floats can collect gradients, and this is {}", self.dtype());
        }
        Ok(Tensor::variable_of(Node::leaf(value, Arc::new(Leaf::new()))))
    }

    /// The same value as a tensor of its own that can be assigned to.
    pub fn variable(&self) -> Tensor {
        Tensor::variable_of(self.detach().node())
    }

    /// The same value, tape included, as a tensor that can be assigned to and changed in place.
    pub fn assignable(&self) -> Tensor {
        if self.is_assignable() { self.clone() } else { Tensor::variable_of(self.node()) }
    }

    /// The gradient collected by `backward`, if any.
    pub fn grad(&self) -> Option<Tensor> {
        self.with_node(|n| n.leaf.clone()).and_then(|leaf| leaf_gradient::gradient_of(&leaf))
    }

    /// Replaces the collected gradient; `None` clears it.
    #[track_caller]
    pub fn set_grad(&self, gradient: Option<Tensor>) {
        let _call = crate::call::Call::enter("set_grad");
        match self.with_node(|n| n.leaf.clone()) {
            Some(leaf) => leaf_gradient::set_gradient(&leaf, gradient),
            None if gradient.is_none() => {}
            None => crate::Error::new(
                crate::ErrorKind::Autograd,
                "this tensor does not collect gradients: make it with requires_grad(true)",
            )
            .raise(),
        }
    }

    /// Forgets the collected gradient.
    pub fn zero_grad(&self) {
        if let Some(leaf) = self.with_node(|n| n.leaf.clone()) {
            leaf_gradient::set_gradient(&leaf, None);
        }
    }

    /// The same value, cut from the tape.
    pub fn detach(&self) -> Tensor {
        let node = self.node();
        if !node.tracked {
            return Tensor::from_node(node);
        }
        no_grad(|| record::renamed(&node))
    }

    /// Gives this tensor, and every clone of it, a new value of the same shape, type and device. Values that
    /// were computed from the old one keep it.
    #[track_caller]
    pub fn assign(&self, value: &Tensor) {
        self.try_assign(value).unwrap_or_else(|e| e.raise());
    }

    /// [`assign`](Self::assign) that returns its error.
    #[track_caller]
    pub fn try_assign(&self, value: &Tensor) -> Result<()> {
        let _call = crate::call::Call::enter("assign");
        let new = value.detach().node();
        crate::graph::register(&new);
        self.exchange(|node| {
            check_fits(&new, node)?;
            Ok(match &node.leaf {
                Some(leaf) => {
                    leaf.forget_half();
                    Node::leaf(new, leaf.clone())
                }
                None => new,
            })
        })
    }

    /// What an op in place does: [`assign`](Self::assign) that goes on recording. Where gradients are recorded, they flow
    /// through the new value, and a leaf that collects them cannot be changed; elsewhere a leaf stays one.
    #[track_caller]
    pub fn try_update(&self, value: &Tensor) -> Result<()> {
        let _call = crate::call::Call::enter("update");
        if !is_grad_enabled() {
            return self.try_assign(value);
        }
        let new = value.node();
        self.exchange(|node| {
            check_fits(&new, node)?;
            if node.leaf.is_some() {
                bail!(
                    Autograd,
                    "a leaf that collects gradients cannot be changed in place while they are recorded: do it under \
                     no_grad, or change a copy"
                );
            }
            // Otherwise it would be the same leaf under two names.
            let new = if new.leaf.is_some() { Tensor::from_node(new).finish().node() } else { new };
            if !new.is_realized() {
                crate::graph::register(&new);
            }
            Ok(new)
        })
    }

    /// Gives this tensor, and every clone of it, the value of another node.
    fn exchange(&self, next: impl FnOnce(&Node) -> Result<Arc<Node>>) -> Result<()> {
        let Inner::Variable(variable) = &self.0 else {
            bail!(
                Argument,
                "this tensor is the result of an op; only tensors that were created, or made with variable() or \
                 requires_grad(), can be assigned to"
            );
        };
        let mut node = variable.node.lock().expect("no panic while a variable is held");
        let next = next(&node)?;
        let old = std::mem::replace(&mut *node, next);
        drop(node);
        // Outside the lock: it may be the end of a long chain.
        drop(old);
        Ok(())
    }

    /// Gives this tensor, and every clone of it, the very node it had before. What cannot be
    /// assigned to has it still.
    pub(crate) fn restore_node(&self, before: Arc<Node>) {
        if let Inner::Variable(variable) = &self.0 {
            let now = std::mem::replace(
                &mut *variable.node.lock().expect("no panic while a variable is held"),
                before,
            );
            drop(now);
        }
    }

    /// Moves this tensor, and every clone of it, to another device and type, with its gradient.
    #[track_caller]
    pub(crate) fn try_move(&self, device: Device, dtype: DType) -> Result<()> {
        let to = |t: &Tensor| t.detach().try_to_device(device)?.try_to_dtype(dtype);
        let moved = to(self)?.node();
        let gradient = self.grad().map(|g| to(&g)).transpose()?;
        crate::graph::register(&moved);
        self.exchange(|node| {
            Ok(match &node.leaf {
                Some(_) => {
                    let leaf = Arc::new(Leaf::new());
                    leaf_gradient::set_gradient(&leaf, gradient);
                    Node::leaf(moved, leaf)
                }
                None => moved,
            })
        })
    }

    /// Makes this tensor, and every clone of it, collect gradients from now on, or stop collecting them.
    #[track_caller]
    pub fn set_requires_grad(&self, yes: bool) {
        self.try_set_requires_grad(yes).unwrap_or_else(|e| e.raise());
    }

    /// [`set_requires_grad`](Self::set_requires_grad) that returns its error.
    #[track_caller]
    pub fn try_set_requires_grad(&self, yes: bool) -> Result<()> {
        let _call = crate::call::Call::enter("set_requires_grad");
        if yes == self.with_node(|n| n.leaf.is_some()) {
            return Ok(());
        }
        let node = self.try_requires_grad(yes)?.node();
        self.exchange(|_| Ok(node))
    }

    /// Whether it can be given another value.
    pub fn is_assignable(&self) -> bool {
        matches!(self.0, Inner::Variable(_))
    }

    /// Whether both name the same tensor: what is assigned to one is seen by the other.
    pub fn is_same(&self, other: &Tensor) -> bool {
        self.address() == other.address()
    }

    /// What tells this tensor from others for as long as it lives.
    pub(crate) fn address(&self) -> usize {
        match &self.0 {
            Inner::Value(node) => Arc::as_ptr(node) as usize,
            Inner::Variable(variable) => Arc::as_ptr(variable) as usize,
        }
    }
}

/// An error if `new` cannot take the place of `old`.
fn check_fits(new: &Node, old: &Node) -> Result<()> {
    if (old.shape, old.dtype, old.device) != (new.shape, new.dtype, new.device) {
        let of = |n: &Node| format!("{} {} on {}", n.dtype, n.shape, n.device);
        bail!(Shape, "cannot put {} into {}", of(new), of(old));
    }
    Ok(())
}
