//! f32 tensors on a GPU, and their operations.

use super::buffer::GpuBuffer;
use super::device::GpuDevice;
use super::shaders;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use volta_ir::call::Call;
use volta_ir::error::{Result, bail};

/// Invocations of a workgroup of an elementwise shader.
const WORKGROUP: usize = 256;
/// Rows and columns of a tile of a product.
const TILE: usize = 64;

/// An f32 tensor on a GPU. Operations check shapes and submit their work when they are called; what they
/// return is awaited like any other future, and borrows nothing.
pub struct GpuTensor {
    buffer: GpuBuffer,
    shape: Vec<usize>,
    device: Arc<GpuDevice>,
}

/// The number of elements.
fn count(shape: &[usize]) -> Result<usize> {
    match shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent)) {
        Some(n) if n <= isize::MAX as usize / 4 => Ok(n),
        _ => bail!(Shape, "shape {shape:?} has too many elements"),
    }
}

impl GpuTensor {
    /// Zeros.
    #[track_caller]
    pub fn zeros(shape: &[usize], device: Arc<GpuDevice>) -> Result<GpuTensor> {
        let _call = Call::enter("GpuTensor::zeros");
        let buffer = GpuBuffer::zeros(&device, count(shape)? * size_of::<f32>())?;
        Ok(GpuTensor { buffer, shape: shape.to_vec(), device })
    }

    /// A copy of `data`, in row-major order, as a tensor of that shape.
    #[track_caller]
    pub fn from_slice(data: &[f32], shape: &[usize], device: Arc<GpuDevice>) -> Result<GpuTensor> {
        let _call = Call::enter("GpuTensor::from_slice");
        let needed = count(shape)?;
        if data.len() != needed {
            bail!(Shape, "shape {shape:?} needs {needed} elements, and there are {}", data.len());
        }
        let buffer = GpuBuffer::try_from_slice(&device, data)?;
        Ok(GpuTensor { buffer, shape: shape.to_vec(), device })
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The device it is on.
    pub fn device(&self) -> &Arc<GpuDevice> {
        &self.device
    }

    /// Its memory: the elements in row-major order.
    pub fn buffer(&self) -> &GpuBuffer {
        &self.buffer
    }

    /// The elements, in row-major order.
    ///
    /// # Panics
    ///
    /// If the device was lost.
    #[track_caller]
    pub fn to_vec(&self) -> impl Future<Output = Vec<f32>> {
        self.buffer.read()
    }

    /// Elementwise sum of two tensors of one shape.
    #[track_caller]
    pub fn add(&self, other: &GpuTensor) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::add");
        ready(self.binary(other, shaders::ELEMENTWISE_ADD))
    }

    /// Elementwise difference of two tensors of one shape.
    #[track_caller]
    pub fn sub(&self, other: &GpuTensor) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::sub");
        ready(self.binary(other, shaders::ELEMENTWISE_SUB))
    }

    /// Elementwise product of two tensors of one shape.
    #[track_caller]
    pub fn mul(&self, other: &GpuTensor) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::mul");
        ready(self.binary(other, shaders::ELEMENTWISE_MUL))
    }

    /// Elementwise quotient of two tensors of one shape.
    #[track_caller]
    pub fn div(&self, other: &GpuTensor) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::div");
        ready(self.binary(other, shaders::ELEMENTWISE_DIV))
    }

    /// The larger of every element and 0; NaN stays.
    #[track_caller]
    pub fn relu(&self) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::relu");
        ready(self.unary(shaders::RELU))
    }

    /// 1 / (1 + exp(−x)) of every element.
    #[track_caller]
    pub fn sigmoid(&self) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::sigmoid");
        ready(self.unary(shaders::SIGMOID))
    }

    /// The product of two matrices: (M, K) by (K, N).
    #[track_caller]
    pub fn matmul(&self, other: &GpuTensor) -> impl Future<Output = Result<GpuTensor>> + use<> {
        let _call = Call::enter("GpuTensor::matmul");
        ready(self.product(other))
    }

    fn unary(&self, shader: &'static str) -> Result<GpuTensor> {
        let out = GpuTensor::zeros(&self.shape, Arc::clone(&self.device))?;
        let buffers = [self.buffer.buffer(), out.buffer.buffer()];
        self.device.run(shader, &buffers, self.numel().div_ceil(WORKGROUP) as u64)?;
        Ok(out)
    }

    fn binary(&self, other: &GpuTensor, shader: &'static str) -> Result<GpuTensor> {
        self.check_device(other)?;
        if self.shape != other.shape {
            bail!(Shape, "shapes {:?} and {:?} differ", self.shape, other.shape);
        }
        let out = GpuTensor::zeros(&self.shape, Arc::clone(&self.device))?;
        let buffers = [self.buffer.buffer(), other.buffer.buffer(), out.buffer.buffer()];
        self.device.run(shader, &buffers, self.numel().div_ceil(WORKGROUP) as u64)?;
        Ok(out)
    }

    fn product(&self, other: &GpuTensor) -> Result<GpuTensor> {
        self.check_device(other)?;
        let (&[rows, inner], &[same, columns]) = (&self.shape[..], &other.shape[..]) else {
            bail!(Shape, "shapes {:?} and {:?}: two matrices are needed", self.shape, other.shape);
        };
        if inner != same {
            bail!(
                Shape,
                "shapes {:?} and {:?}: the inner extents {inner} and {same} differ",
                self.shape,
                other.shape
            );
        }
        let out = GpuTensor::zeros(&[rows, columns], Arc::clone(&self.device))?;
        // Without inner elements the sums are the zeros that are there.
        if out.numel() > 0 && inner > 0 {
            let tiles = rows.div_ceil(TILE) * columns.div_ceil(TILE);
            let sizes = uniform(&self.device, [rows, inner, columns, tiles].map(|n| n as u32));
            let buffers = [self.buffer.buffer(), other.buffer.buffer(), out.buffer.buffer(), &sizes];
            self.device.run(shaders::MATMUL_SIMPLE, &buffers, tiles as u64)?;
        }
        Ok(out)
    }

    fn check_device(&self, other: &GpuTensor) -> Result<()> {
        if !Arc::ptr_eq(&self.device, &other.device) {
            bail!(Device, "the tensors are on two devices: {:?} and {:?}", self.device, other.device);
        }
        Ok(())
    }
}

/// A uniform buffer of four numbers.
fn uniform(device: &GpuDevice, numbers: [u32; 4]) -> wgpu::Buffer {
    let buffer = device.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: size_of_val(&numbers) as u64,
        usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    device.queue().write_buffer(&buffer, 0, bytemuck::bytes_of(&numbers));
    buffer
}

impl fmt::Debug for GpuTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuTensor({:?}, {:?})", self.shape, self.device)
    }
}
