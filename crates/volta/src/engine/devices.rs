//! What can be done with a device.

use super::executor;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::telemetry::{Profile, Profiler};
use crate::wait::wait_for;

/// Opens the GPU that is `gpu:0`.
fn connect() -> Result<()> {
    #[cfg(feature = "gpu")]
    return volta_gpu::connect(0);
    #[cfg(not(feature = "gpu"))]
    Err(no_gpus())
}

#[cfg(not(feature = "gpu"))]
pub(super) fn no_gpus() -> crate::error::Error {
    let message = "Volta was built without GPUs: enable the feature `gpu` of volta-ml, or use the CPU";
    crate::error::Error::new(crate::error::ErrorKind::Device, message)
}

/// Whether `VOLTA_ADAPTER` asks for a GPU.
fn is_asked_for() -> bool {
    volta_ir::environment::values().adapter.is_some()
}

/// The GPUs that are open.
pub(super) fn gpus_in_use() -> Vec<Device> {
    #[cfg(feature = "gpu")]
    return volta_gpu::in_use().into_iter().map(Device::Gpu).collect();
    #[cfg(not(feature = "gpu"))]
    Vec::new()
}

impl Device {
    /// The best real GPU, or the adapter that `VOLTA_ADAPTER` names; opens it. Without one, an error that says
    /// what to install.
    #[track_caller]
    pub fn gpu() -> Result<Device> {
        let _call = Call::enter("Device::gpu");
        volta_ir::environment::check()?;
        connect()?;
        Ok(Device::Gpu(0))
    }

    /// All GPUs that `gpu:0`, `gpu:1` and so on mean, the best one first: none if there is none. A software adapter is among them only
    /// where `VOLTA_ADAPTER` names it.
    #[cfg(not(target_arch = "wasm32"))]
    #[track_caller]
    pub fn gpus() -> Result<Vec<Device>> {
        let _call = Call::enter("Device::gpus");
        volta_ir::environment::check()?;
        #[cfg(feature = "gpu")]
        return Ok(volta_gpu::adapters().into_iter().filter_map(|a| a.index).map(Device::Gpu).collect());
        #[cfg(not(feature = "gpu"))]
        Ok(Vec::new())
    }

    /// The best real GPU if there is one, else the CPU. Where `VOLTA_ADAPTER` asks for an adapter, it is that one, there or not:
    /// what is then computed is an error that says what is missing.
    pub fn auto() -> Device {
        let found = Device::gpu();
        if is_asked_for() { Device::Gpu(0) } else { found.unwrap_or(Device::Cpu) }
    }

    /// Whether it computes in `dtype`; an error if it is not there.
    #[track_caller]
    pub fn supports(self, dtype: DType) -> Result<bool> {
        let _call = Call::enter("supports");
        Ok(executor(self)?.unsupported_reason(dtype).is_none())
    }

    /// The bytes of memory that can be had there, if the system tells: on the CPU what is free, with swap space and within a
    /// container's limit; on a GPU all that it has.
    #[track_caller]
    pub fn memory(self) -> Result<Option<u64>> {
        let _call = Call::enter("memory");
        executor(self)?.memory()
    }

    /// Waits until everything that was asked of the device is done: for measuring, as nothing else needs it. What kernels found
    /// wrong is an error, as for [`synchronize`](crate::synchronize), which waits for all devices.
    #[track_caller]
    pub fn synchronize(self) -> Result<()> {
        wait_for(std::pin::pin!(self.synchronize_async()))
    }

    /// [`synchronize`](Self::synchronize) as a future, which blocks nobody: the only way in a browser. It is about what was asked
    /// of the device until this call.
    #[track_caller]
    pub fn synchronize_async(self) -> impl Future<Output = Result<()>> {
        let _call = Call::enter("synchronize");
        let waiting = executor(self).map(|executor| executor.synchronize());
        async move { waiting?.await }
    }
}

impl Profiler {
    /// [`end`](Self::end) when all devices have done what was asked of them: the only way to the times of a GPU's kernels in a
    /// browser. What failed is told by whoever reads it.
    pub async fn end_async(self) -> Profile {
        for device in gpus_in_use() {
            let _ = device.synchronize_async().await;
        }
        self.end()
    }
}
