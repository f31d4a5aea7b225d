//! Mixed precision: what tensor cores do well in half precision, what does not fit into halves in f32.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::graph::{Node, NodeSpec, Sources};
use crate::graph::{is_grad_enabled, no_grad};
use crate::op::Op;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static TYPES: Cell<AutocastTypes> = const { Cell::new(AutocastTypes { cpu: None, gpu: None }) };
}

/// What products compute in on each kind of device: `f16`, `bf16`, or nothing, which is what their operands are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutocastTypes {
    /// On the CPU.
    pub cpu: Option<DType>,
    /// On GPUs.
    pub gpu: Option<DType>,
}

impl AutocastTypes {
    /// The same on all devices.
    pub fn everywhere(dtype: Option<DType>) -> AutocastTypes {
        AutocastTypes { cpu: dtype, gpu: dtype }
    }

    /// Of a tensor, which is asked for its device only where that matters.
    fn of(self, tensor: &Tensor) -> Option<DType> {
        match self {
            AutocastTypes { cpu: None, gpu: None } => None,
            AutocastTypes { cpu, gpu } => {
                if tensor.device().is_gpu() {
                    gpu
                } else {
                    cpu
                }
            }
        }
    }
}

/// Runs `f` with matrix products, linear maps, convolutions and attention in half precision: their f32 operands are
/// converted to `dtype` (`f16` or `bf16`) and summed in f32. What follows them goes on in halves, except for what easily
/// leaves their range: losses, sums, products of elements, norms, powers, exponentials, logarithms and reciprocals of them
/// are f32. So are the parameters: gradients arrive in the parameters' own type. A backward pass is the same inside and
/// outside; with `f16`, scale the loss by a [`GradScaler`](crate::GradScaler).
#[track_caller]
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let types = AutocastTypes::everywhere(Some(dtype));
    let _restore = Restore(try_set_autocast(types).unwrap_or_else(|e| e.raise()));
    f()
}

/// What was there before.
struct Restore(AutocastTypes);

impl Drop for Restore {
    fn drop(&mut self) {
        TYPES.set(self.0);
    }
}

/// What [`autocast`] asks for on this thread.
pub fn autocast_types() -> AutocastTypes {
    TYPES.get()
}

/// Runs `f` with what [`autocast_types`] said elsewhere.
pub(crate) fn with_autocast<R>(types: AutocastTypes, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(TYPES.replace(types));
    f()
}

/// What [`autocast`] does, from now on and on this thread, until it is called again with what it returns: for scopes that
/// are not closures, and for one kind of device alone.
#[track_caller]
pub fn try_set_autocast(types: AutocastTypes) -> Result<AutocastTypes> {
    let _call = crate::call::Call::enter("autocast");
    match [types.cpu, types.gpu].into_iter().flatten().find(|dtype| !dtype.is_half()) {
        Some(dtype) => bail!(DType, "{dtype} is not half precision: use f16 or bf16"),
        None => Ok(TYPES.replace(types)),
    }
}

/// The value of a node in half precision, as it is known or by a conversion. Vectors are converted where they are read.
fn halved(node: &Arc<Node>, dtype: DType) -> Result<Tensor> {
    let leaf = node.leaf.as_ref().filter(|_| node.shape.rank() > 1);
    let known = leaf.and_then(|leaf| leaf.cached_half(node, dtype));
    let Some(storage) = known else { return Tensor::from_node(node.clone()).cast(dtype) };
    let tracked = is_grad_enabled();
    let sources = if tracked { [node.clone()].into_iter().collect() } else { Sources::new() };
    let (shape, device) = (node.shape, node.device);
    let recipe = NodeSpec { op: Op::Cast, sources, shape, dtype, device, tracked };
    Ok(Tensor::from_node(Node::known(recipe, storage)))
}

impl Tensor {
    /// What [`autocast`] asks for where this tensor is.
    pub(crate) fn autocast_dtype(&self) -> Option<DType> {
        TYPES.get().of(self)
    }

    /// The operand of a product: in half precision where that is asked for.
    pub(crate) fn autocast_operand(&self) -> Result<Tensor> {
        match self.autocast_dtype() {
            Some(dtype) if self.dtype() == DType::F32 => self.cast_keeping_layout(dtype),
            _ => Ok(self.clone()),
        }
    }

    /// Converts what a permuted tensor is made of, and permutes that: values are read and written in the order they lie
    /// in, and gradients come back in it.
    fn cast_keeping_layout(&self, dtype: DType) -> Result<Tensor> {
        let node = self.node();
        let (Op::Permute(order), Some(source)) = (&node.op, node.sources().first().cloned()) else {
            return halved(&node, dtype);
        };
        let order: Vec<usize> = order[..self.rank()].iter().map(|&axis| axis as usize).collect();
        let cast = || halved(&source, dtype)?.permute_order(&order);
        if !node.tracked {
            // It may have been cut from the tape that its source is on.
            return no_grad(cast);
        }
        let half = cast()?;
        half.node().set_autograd_alias(&node);
        Ok(half)
    }

    /// The value that a leaf was just given, in half precision where that of the value before was asked for: whoever has
    /// the value at hand can compute both, and then have it [kept](Self::keep_half). GPUs store bf16 in words, which nobody
    /// reads faster.
    pub(crate) fn half_copy(&self) -> Result<Option<Tensor>> {
        let node = self.node();
        match node.leaf.as_ref().and_then(|leaf| leaf.half_was_asked_for()) {
            Some(dtype) if dtype == DType::F16 || !node.device.is_gpu() => {
                no_grad(|| Tensor::from_node(node).cast(dtype)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `half` is the value of this leaf in half precision, for the next pass to read.
    pub(crate) fn keep_half(&self, half: &Tensor) {
        let node = self.node();
        if let Some(leaf) = &node.leaf {
            leaf.cache_half(&node, &half.node());
        }
    }

    /// What is computed from operands that products have left in half precision, and easily leaves the range of halves: f32.
    pub(crate) fn upcast(&self) -> Result<Tensor> {
        if self.autocast_dtype().is_some() { self.widened() } else { Ok(self.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SGD;

    fn autocast_operand(w: &Tensor) -> Tensor {
        autocast(DType::F16, || w.autocast_operand()).expect("f32 has halves")
    }

    fn step(sgd: &mut SGD, w: &Tensor, condition: bool) {
        sgd.zero_grad();
        autocast_operand(w).to_dtype(DType::F32).square().sum().backward();
        let condition = Tensor::scalar(if condition { 1.0 } else { 0.0 }).ne(0.0);
        sgd.try_step_if(Some(&condition)).expect("a step");
    }

    /// Steps leave halves of what they computed, for the next pass to read; these are the values whatever happens to them.
    #[test]
    fn one_kind_of_device_has_halves_and_the_other_has_not() {
        let x = Tensor::ones([2, 2]);
        let product = |types| with_autocast(types, || x.try_matmul(&x)).unwrap().dtype();
        let both = AutocastTypes { cpu: Some(DType::BF16), gpu: Some(DType::F16) };
        let expected = if x.device().is_gpu() { DType::F16 } else { DType::BF16 };
        assert_eq!(product(both), expected);
        let other = if x.device().is_gpu() {
            AutocastTypes { gpu: None, ..both }
        } else {
            AutocastTypes { cpu: None, ..both }
        };
        assert_eq!(product(other), DType::F32);
        assert!(try_set_autocast(AutocastTypes { cpu: Some(DType::F64), gpu: None }).is_err());
        assert_eq!(autocast_types(), AutocastTypes::default());
    }

    #[test]
    fn a_step_leaves_the_halves_that_the_next_pass_asks_for() {
        let w = Tensor::from_vec(vec![1.0f32, -2.0, 3.0, 0.1], [2, 2]).requires_grad(true);
        let mut sgd = SGD::new(vec![w.clone()], 0.05, 0.0, 0.0);
        assert!(!autocast_operand(&w).node().is_realized(), "nobody has converted it");
        let halves = |of: &Tensor| of.detach().to_dtype(DType::F16).to_vec::<f32>();
        for condition in [true, false, true] {
            step(&mut sgd, &w, condition);
            let half = autocast_operand(&w);
            assert!(half.node().is_realized(), "the step has left it");
            assert_eq!(half.to_vec::<f32>(), halves(&w));
            assert_eq!(autocast_operand(&w.transpose(0, 1)).to_vec::<f32>(), halves(&w.transpose(0, 1)));
        }
        assert_eq!(w.grad().expect("a gradient").dtype(), DType::F32);
        let before = autocast_operand(&w);
        w.assign(&Tensor::full([2, 2], 5.0));
        assert_eq!(autocast_operand(&w).to_vec::<f32>(), [5.0; 4], "the new value");
        assert_ne!(before.to_vec::<f32>(), [5.0; 4], "the value it had then");
    }

    #[test]
    fn halves_of_memory_that_others_may_write_are_not_kept() {
        let w = Tensor::ones([2, 2]).requires_grad(true);
        let mut sgd = SGD::new(vec![w.clone()], 0.5, 0.0, 0.0);
        step(&mut sgd, &w, true);
        let memory = w.detach().try_host_memory().expect("it is on the CPU");
        assert!(!autocast_operand(&w).node().is_realized(), "its value may be another one by now");
        drop(memory);
        assert!(!autocast_operand(&w).node().is_realized(), "or have been written before");
    }

    #[test]
    fn halves_that_nobody_asked_for_are_let_go() {
        let w = Tensor::ones([2, 2]).requires_grad(true);
        let mut sgd = SGD::new(vec![w.clone()], 0.5, 0.0, 0.0);
        step(&mut sgd, &w, true);
        for _ in 0..2 {
            sgd.zero_grad();
            w.square().sum().backward();
            sgd.step();
        }
        assert!(!autocast_operand(&w).node().is_realized());
    }
}
