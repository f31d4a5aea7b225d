//! Reading values: the point where what is pending is computed.

use super::Tensor;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::{DType, Element, Scalar};
use crate::engine;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Node, Storage};
use crate::op::Op;
use crate::plan::executor::Reading;
use crate::shape::Shape;
use crate::wait::wait_for;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

impl Tensor {
    /// All elements in row-major order, converted to `T` if the tensor holds another type.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        self.try_to_vec().unwrap_or_else(|e| e.raise())
    }

    /// [`to_vec`](Self::to_vec) that returns its error.
    #[track_caller]
    pub fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let _call = Call::enter("to_vec");
        // A device need not have the type that is asked for.
        let convert = self.device() == Device::Cpu && self.dtype() != T::DTYPE;
        let tensor = if convert { self.detach().try_to_dtype(T::DTYPE)? } else { self.clone() };
        let node = tensor.node();
        elements(&node, wait_for(reading(&node)?.as_mut())?)
    }

    /// [`to_vec`](Self::to_vec) as a future: what is needed for the values is submitted at once, and nobody is blocked while the
    /// device computes them. The only way in a browser.
    #[track_caller]
    pub fn to_vec_async<T: Element>(&self) -> impl Future<Output = Result<Vec<T>>> + use<T> {
        let _call = Call::enter("to_vec_async");
        let node = self.node();
        let reading = reading(&node);
        async move { elements(&node, reading?.await?) }
    }

    /// The value of a tensor of one element, converted to `T`.
    #[track_caller]
    pub fn item<T: Element>(&self) -> T {
        self.try_item().unwrap_or_else(|e| e.raise())
    }

    /// [`item`](Self::item) that returns its error.
    #[track_caller]
    pub fn try_item<T: Element>(&self) -> Result<T> {
        wait_for(std::pin::pin!(self.item_async()))
    }

    /// [`item`](Self::item) as a future, as [`to_vec_async`](Self::to_vec_async) is: the only way in a browser.
    #[track_caller]
    pub fn item_async<T: Element>(&self) -> impl Future<Output = Result<T>> + use<T> {
        let _call = Call::enter("item");
        let (node, count) = (self.node(), self.numel());
        let reading = if count == 1 {
            reading(&node)
        } else {
            let message =
                format!("only a tensor of one element is one number, and this has shape {}", self.shape());
            Err(Error::new(ErrorKind::Shape, message))
        };
        async move { Ok(T::from_scalar(scalar(&node, reading?.await?)?)) }
    }

    /// Computes the value now, if it is not there yet.
    #[track_caller]
    pub fn realize(&self) -> &Tensor {
        self.try_realize().unwrap_or_else(|e| e.raise());
        self
    }

    /// [`realize`](Self::realize) that returns its error.
    #[track_caller]
    pub fn try_realize(&self) -> Result<()> {
        let _call = Call::enter("realize");
        let node = self.node();
        if !node.is_realized() {
            engine::submit(engine::Reason::Read(&[&node]))?;
        }
        Ok(())
    }

    /// Whether the value was computed already.
    pub fn is_realized(&self) -> bool {
        self.with_node(|n| n.is_realized() || matches!(n.op, Op::Const(_)))
    }
}

/// The memory of a node, which is computed if need be.
pub(super) fn storage_of(node: &Arc<Node>) -> Result<Storage> {
    let storage = match node.storage() {
        Some(storage) => storage,
        None => {
            engine::submit(engine::Reason::Read(&[node]))?;
            node.storage().expect("a realized node has storage")
        }
    };
    if storage.is_gone() {
        engine::check_values(&*storage)?;
    }
    Ok(storage)
}

/// Computes a node if need be, and starts to copy its elements to the host.
fn reading(node: &Arc<Node>) -> Result<Reading> {
    let storage = storage_of(node)?;
    let (dtype, shape) = (node.dtype, node.shape);
    let bytes = engine::executor(node.device)?.read(storage, dtype, 0..shape.numel());
    Ok(Box::pin(async move { bytes.await.map_err(|error| while_reading(error, dtype, shape)) }))
}

/// An error of reading a tensor, which says so. An assertion that failed is not about what was read.
pub(super) fn while_reading(error: Error, dtype: DType, shape: Shape) -> Error {
    match error.kind() {
        ErrorKind::Index | ErrorKind::ZeroDivision => error,
        _ => error.with_context(&format!("reading {dtype} {shape}")),
    }
}

/// The elements of tensors as they are now, row by row, as they lie in the host's memory. What is pending is computed
/// in one plan, at once; a tensor's copy begins when the iterator comes to it.
pub(crate) fn readings(tensors: &[&Tensor]) -> Result<impl Iterator<Item = Result<Reading>> + use<>> {
    let nodes: Vec<Arc<Node>> = tensors.iter().map(|t| t.node()).collect();
    let pending: Vec<&Arc<Node>> = nodes.iter().filter(|n| !n.is_realized()).collect();
    if !pending.is_empty() {
        engine::submit(engine::Reason::Read(&pending))?;
    }
    Ok(nodes.into_iter().map(|node| reading(&node)))
}

/// The number that a node of one element is: converted here rather than by one more kernel.
fn scalar(node: &Node, bytes: Vec<u8>) -> Result<Scalar> {
    fn first<T: Element>(node: &Node, bytes: Vec<u8>) -> Result<Scalar> {
        Ok(elements::<T>(node, bytes)?[0].to_scalar())
    }
    match node.dtype {
        DType::F32 => first::<f32>(node, bytes),
        DType::I32 => first::<i32>(node, bytes),
        DType::I64 => first::<i64>(node, bytes),
        DType::U32 => first::<u32>(node, bytes),
        DType::Bool => first::<bool>(node, bytes),
        _ => first::<f64>(node, bytes),
    }
}

/// The bytes of a node's elements as `T`.
fn elements<T: Element>(node: &Node, bytes: Vec<u8>) -> Result<Vec<T>> {
    if node.dtype != T::DTYPE {
        let storage = engine::executor(Device::Cpu)?.upload(node.dtype, &bytes)?;
        let here = Tensor::from_node(Node::realized(node.shape, node.dtype, Device::Cpu, storage));
        return here.try_to_dtype(T::DTYPE)?.try_to_vec();
    }
    let mut out = vec![T::default(); node.shape.numel()];
    debug_assert_eq!(size_of_val(&out[..]), bytes.len());
    // SAFETY: every `Element` is a plain number without padding (the trait is sealed), and executors give a bool as
    // a byte of 0 or 1, so their bytes are valid elements, as many as there are.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.as_mut_ptr().cast::<u8>(), bytes.len()) };
    Ok(out)
}

/// Computes several tensors in one plan for each device, and nothing else: what the plan is depends on them alone.
pub(crate) fn compute_only<'t>(tensors: impl IntoIterator<Item = &'t Tensor>) -> Result<()> {
    let nodes: Vec<Arc<Node>> = tensors.into_iter().map(Tensor::node).filter(|n| !n.is_realized()).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    engine::submit(engine::Reason::Read(&nodes.iter().collect::<Vec<_>>())).map(drop)
}

/// Computes several tensors in one plan, along with everything else this thread has pending and still holds.
#[track_caller]
pub fn realize_all(tensors: &[Tensor]) {
    try_realize_all(tensors).unwrap_or_else(|e| e.raise());
}

/// [`realize_all`] that returns its error.
#[track_caller]
pub fn try_realize_all(tensors: &[Tensor]) -> Result<()> {
    let _call = Call::enter("realize_all");
    let nodes: Vec<_> = tensors.iter().map(Tensor::node).collect();
    engine::submit(engine::Reason::Step(&nodes)).map(drop)
}

/// Lets plans that are only made ([`plan_only`](crate::plan_only)) take these tensors for computed, without computing them and without memory
/// for them: so a model's training is planned that would not fit. Reading them, and computing anything of them, is an error
/// from then on.
///
/// ```
/// use volta::{Linear, Module, Tensor, assume_computed, plan_only};
/// let model = Linear::new(1 << 20, 1 << 20, false);
/// assume_computed(&model.parameters());
/// let plan = plan_only(|| model.try_forward(&Tensor::zeros([1, 1 << 20]))?.try_realize())?;
/// assert!(plan.unwrap().peak_bytes > 1 << 42);
/// # Ok::<(), volta::Error>(())
/// ```
pub fn assume_computed(tensors: &[Tensor]) {
    tensors.iter().for_each(|tensor| engine::assume(&tensor.node()));
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {} on {}", self.dtype(), self.shape(), self.device())?;
        if self.is_tracked() {
            f.write_str(if self.is_leaf() { ", requires grad" } else { ", tracked" })?;
        }
        f.write_str(")")
    }
}
