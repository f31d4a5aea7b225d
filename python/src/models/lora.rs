//! Adapters of low rank.

use super::network::{PyNetwork, failed};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use volta::models::{Lora, LoraOptions};

/// The engine's adapters of a model; `volta.models.Lora` is made of it.
#[pyclass(name = "Lora", module = "volta._volta._models", frozen)]
pub struct PyLora(Mutex<Option<Lora>>);

impl PyLora {
    fn of(lora: Lora) -> PyLora {
        PyLora(Mutex::new(Some(lora)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Lora>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy, while it is attached.
    fn attached(&self) -> PyResult<Lora> {
        self.lock().clone().ok_or_else(|| failed("the adapters are attached no longer"))
    }
}

#[pymethods]
impl PyLora {
    /// Gives the layers of a model adapters that change nothing yet, and freezes all else.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "PEFT's options")]
    fn attach(
        py: Python<'_>,
        network: PyRef<'_, PyNetwork>,
        rank: usize,
        alpha: f64,
        dropout: f64,
        targets: Vec<String>,
        rank_stabilized: bool,
        dora: bool,
    ) -> PyResult<PyLora> {
        let options = LoraOptions { rank, alpha, dropout, targets, rank_stabilized, dora };
        network.change(py, |network| Lora::attach(network.causal_lm_mut()?, options)).map(PyLora::of)
    }

    /// Attaches what PEFT's files hold.
    #[staticmethod]
    fn load(py: Python<'_>, network: PyRef<'_, PyNetwork>, folder: PathBuf) -> PyResult<PyLora> {
        network.change(py, |network| Lora::load(network.causal_lm_mut()?, folder)).map(PyLora::of)
    }

    /// Writes PEFT's files.
    fn save(
        &self,
        py: Python<'_>,
        network: PyRef<'_, PyNetwork>,
        folder: PathBuf,
        base: &str,
    ) -> PyResult<()> {
        let lora = self.attached()?;
        network.with(py, |network| lora.save(network.causal_lm()?, folder, base))
    }

    /// Adds the adapters to the weights, and takes them off.
    fn merge(&self, py: Python<'_>, network: PyRef<'_, PyNetwork>) -> PyResult<()> {
        let lora = self.attached()?;
        network.change(py, |network| lora.merge(network.causal_lm_mut()?))?;
        self.lock().take();
        Ok(())
    }

    /// Takes the adapters off.
    fn detach(&self, py: Python<'_>, network: PyRef<'_, PyNetwork>) -> PyResult<()> {
        let lora = self.attached()?;
        network.change(py, |network| {
            lora.detach(network.causal_lm_mut()?);
            Ok(())
        })?;
        self.lock().take();
        Ok(())
    }

    /// Rank, alpha, dropout, targets, and whether alpha is divided by the root of the rank, and whether lengths are trained by themselves.
    fn options(&self) -> PyResult<(usize, f64, f64, Vec<String>, bool, bool)> {
        let LoraOptions { rank, alpha, dropout, targets, rank_stabilized, dora } = self.attached()?.options;
        Ok((rank, alpha, dropout, targets, rank_stabilized, dora))
    }
}
