//! Sharing memory with others on the host: tensors of memory that somebody lends, and memory lent to somebody.

use super::Tensor;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine;
use crate::error::{Result, bail};
use crate::graph::{Node, Storage};
use crate::op::Op;
use crate::shape::{Dims, Shape};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use volta_cpu::HostBuffer;

/// The elements of a tensor on the CPU where they lie, row by row. While it lives they stay where they are, and no
/// kernel writes them: the engine gives the tensor's next value other memory.
#[derive(Clone)]
pub struct HostMemory {
    storage: Storage,
    shape: Shape,
    dtype: DType,
}

impl HostMemory {
    /// The first element. Whoever writes here changes every tensor that shares the memory, and what is pending may
    /// see either value.
    pub fn as_ptr(&self) -> *mut u8 {
        HostBuffer::of(&*self.storage).as_ptr()
    }

    /// Whether it may be written: not if it was lent only to be read.
    pub fn is_writable(&self) -> bool {
        HostBuffer::of(&*self.storage).is_writable()
    }

    /// The extents.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a realized buffer is as large as its tensor, and is not written while this holds it.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.shape.numel() * self.dtype.size()) }
    }
}

impl Tensor {
    /// A tensor, on the CPU, of elements that lie row by row in memory which `owner` lends until it is dropped. They
    /// are not copied. Ops read them when they are computed, and nothing writes them: an op in place gives the tensor
    /// another value. Whether others may write them is told to whoever asks for
    /// [`try_host_memory`](Self::try_host_memory).
    ///
    /// # Safety
    /// Until the owner is dropped, `data` must point to as many readable elements of `dtype` as `shape` has, aligned
    /// for it (a truth value is a byte of 0 or 1), and nobody may write them while a plan that reads them runs.
    #[track_caller]
    pub unsafe fn try_from_foreign(
        data: NonNull<u8>,
        shape: impl Into<Dims>,
        dtype: DType,
        writable: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Tensor> {
        let _call = Call::enter("from_foreign");
        let shape = shape.into().extents()?;
        if !(data.as_ptr() as usize).is_multiple_of(dtype.size()) {
            bail!(Argument, "memory at {data:p} is not aligned for {dtype}");
        }
        // SAFETY: promised by the caller.
        let buffer = unsafe { HostBuffer::lent(data, shape.numel() * dtype.size(), writable, owner) };
        let node = Node::realized(shape, dtype, Device::Cpu, Arc::new(buffer));
        Ok(Tensor::variable_of(node))
    }

    /// The elements of a tensor on the CPU where they lie, computed now if need be; nothing is copied.
    #[track_caller]
    pub fn try_host_memory(&self) -> Result<HostMemory> {
        let _call = Call::enter("host_memory");
        let node = self.node();
        if node.device != Device::Cpu {
            bail!(Device, "the tensor is on {}: move it to the cpu first", node.device);
        }
        if !node.is_realized() {
            engine::submit(engine::Reason::Read(&[&node]))?;
        }
        let storage = node.storage().expect("a realized node has storage");
        if matches!(node.op, Op::Const(_)) {
            self.hold_memory_of(&node, storage.clone());
        }
        HostBuffer::of(&*storage).show();
        Ok(HostMemory { storage, shape: node.shape, dtype: node.dtype })
    }

    /// A constant is known without looking at its memory; once others may write that, it must be looked at.
    fn hold_memory_of(&self, constant: &Node, storage: Storage) {
        let memory = Node::realized(constant.shape, constant.dtype, constant.device, storage);
        let unless_it_changed = |now: &Node| match now.id == constant.id {
            true => Ok(memory),
            false => bail!(Argument, "the tensor was assigned to meanwhile"),
        };
        // The result of an op cannot be exchanged; nor can it be seen to change by ops that are recorded later.
        let _ = self.exchange(unless_it_changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_device::with_device;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Memory that tells when it is let go.
    struct Lender(Arc<Vec<f32>>, Arc<AtomicBool>);

    impl Drop for Lender {
        fn drop(&mut self) {
            self.1.store(true, Ordering::SeqCst);
        }
    }

    fn lend(values: &Arc<Vec<f32>>) -> (Tensor, Arc<AtomicBool>) {
        let gone = Arc::new(AtomicBool::new(false));
        let lender = Box::new(Lender(values.clone(), gone.clone()));
        let data = NonNull::new(lender.0.as_ptr().cast_mut()).unwrap();
        // SAFETY: the vector lives as long as its lender and is not written.
        let tensor =
            unsafe { Tensor::try_from_foreign(data.cast(), [values.len()], DType::F32, false, lender) };
        (tensor.unwrap(), gone)
    }

    #[test]
    fn lent_memory_is_read_where_it_lies_and_given_back_when_nobody_needs_it() {
        let values = Arc::new(vec![1.0, 2.0, 3.0]);
        let (x, gone) = lend(&values);
        let memory = x.try_host_memory().unwrap();
        assert_eq!((memory.as_ptr() as usize, memory.is_writable()), (values.as_ptr() as usize, false));
        drop(memory);
        let y = x.mul(2.0);
        drop(x);
        assert!(!gone.load(Ordering::SeqCst), "y is pending and needs it");
        assert_eq!(y.to_vec::<f32>(), [2.0, 4.0, 6.0]);
        assert!(gone.load(Ordering::SeqCst));
    }

    #[test]
    fn no_update_is_written_over_lent_memory() {
        let values = Arc::new(vec![1.0, 2.0]);
        let (x, _) = lend(&values);
        for _ in 0..3 {
            x.assign(&x.add(1.0));
            crate::realize_all(std::slice::from_ref(&x));
            assert_eq!(values[..], [1.0, 2.0]);
        }
        assert_eq!(x.to_vec::<f32>(), [4.0, 5.0]);
    }

    #[test]
    fn what_is_written_to_the_memory_of_a_constant_is_seen() {
        let x = with_device(Device::Cpu, || Tensor::zeros([3]));
        let memory = x.try_host_memory().unwrap();
        // SAFETY: three floats, which no plan reads now.
        unsafe { *memory.as_ptr().cast::<f32>() = 5.0 };
        assert_eq!(x.expand([2, 3]).sum_dim(0, false).to_vec::<f32>(), [10.0, 0.0, 0.0]);
    }

    #[test]
    fn memory_that_was_asked_for_keeps_its_value() {
        let x = with_device(Device::Cpu, || Tensor::vector(&[1.0, 2.0]));
        let memory = x.try_host_memory().unwrap();
        x.assign(&x.add(1.0));
        crate::realize_all(std::slice::from_ref(&x));
        drop(x);
        assert_eq!(memory.bytes(), bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0]));
        assert_eq!((memory.shape()[..].to_vec(), memory.dtype()), (vec![2], DType::F32));
    }
}
