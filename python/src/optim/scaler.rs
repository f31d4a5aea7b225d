//! Loss scaling.

use super::optimizer::PyOptimizer;
use super::state::{Saved, from_python, to_python};
use crate::error::{call, run};
use crate::tensor::{PyTensor, record};
use pyo3::prelude::*;
use volta::{GradScaler, Stateful};

/// The engine's scaler; `volta.amp.GradScaler` is made of it.
#[pyclass(name = "GradScaler", module = "volta._volta._optim")]
pub struct PyGradScaler(GradScaler);

#[pymethods]
impl PyGradScaler {
    #[new]
    fn new(scale: f64, growth: f64, backoff: f64, interval: u32) -> PyGradScaler {
        PyGradScaler(GradScaler::with(scale, growth, backoff, interval))
    }

    /// The loss to call `backward` on.
    fn scale(&self, loss: PyRef<'_, PyTensor>) -> PyResult<PyTensor> {
        record(|| self.0.try_scale(&loss.0))
    }

    /// The scale now; reading it waits for the device.
    fn current(&self, py: Python<'_>) -> PyResult<f32> {
        run(py, || self.0.state().tensor("scale")?.try_item())
    }

    /// Divides the gradients of an optimizer by the scale.
    fn unscale(&mut self, optimizer: PyRef<'_, PyOptimizer>) -> PyResult<()> {
        let optimizer = optimizer.lock()?;
        call(|| self.0.try_unscale(&**optimizer))
    }

    /// Steps, unless a gradient is not finite, and adapts the scale.
    fn step(
        &mut self,
        py: Python<'_>,
        optimizer: PyRef<'_, PyOptimizer>,
        groups: Vec<Vec<f64>>,
    ) -> PyResult<()> {
        let mut guard = optimizer.lock()?;
        let (scaler, optimizer) = (&mut self.0, &mut **guard);
        run(py, || {
            optimizer.set_options(&groups)?;
            scaler.try_step(optimizer)
        })
    }

    fn state(&self) -> Saved {
        to_python(&self.0.state())
    }

    fn load_state(&mut self, py: Python<'_>, state: Saved) -> PyResult<()> {
        let state = from_python(py, state)?;
        call(|| self.0.load_state(&state))
    }
}
