//! The GPU without the engine: a device, buffers and f32 tensors, one shader an operation, all async.
//!
//! ```no_run
//! use std::sync::Arc;
//! use volta::gpu::{GpuDevice, GpuTensor};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Arc::new(GpuDevice::new().await?);
//! println!("Using GPU: {}", device.info().name);
//! let a = GpuTensor::from_slice(&[1.0, 2.0, 3.0, 4.0], &[4], Arc::clone(&device))?;
//! let b = GpuTensor::from_slice(&[5.0, 6.0, 7.0, 8.0], &[4], Arc::clone(&device))?;
//! assert_eq!(a.add(&b).await?.to_vec().await, [6.0, 8.0, 10.0, 12.0]);
//! # Ok(())
//! # }
//! ```

mod adapter;
mod buffer;
mod device;
pub mod shaders;
mod tensor;

pub use buffer::GpuBuffer;
pub use device::GpuDevice;
pub use tensor::GpuTensor;
