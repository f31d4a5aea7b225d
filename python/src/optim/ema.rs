//! Running averages of parameters.

use super::state::{Saved, from_python, to_python};
use crate::arguments::TensorArg;
use crate::error::{call, run};
use pyo3::prelude::*;
use volta::{Ema, Stateful};

/// The engine's running averages; `volta.optim.EMA` is made of it.
#[pyclass(name = "Ema", module = "volta._volta._optim")]
pub struct PyEma(Ema);

#[pymethods]
impl PyEma {
    #[new]
    fn new(parameters: Vec<TensorArg>, decay: f64) -> PyResult<PyEma> {
        let parameters = parameters.into_iter().map(|p| p.0).collect();
        call(|| Ema::try_new(parameters, decay)).map(PyEma)
    }

    /// Takes in what the parameters are now.
    fn update(&mut self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.try_update())
    }

    /// Exchanges parameters and averages.
    fn swap(&mut self) -> PyResult<()> {
        call(|| self.0.try_swap())
    }

    /// The averages, in the order of the parameters.
    fn averages(&self) -> Vec<TensorArg> {
        self.0.averages().iter().map(|t| TensorArg(t.variable())).collect()
    }

    /// Gives other tensors the values of the averages.
    fn copy_to(&self, targets: Vec<TensorArg>) -> PyResult<()> {
        let targets: Vec<_> = targets.into_iter().map(|t| t.0).collect();
        call(|| self.0.try_copy_to(&targets))
    }

    fn state(&self) -> Saved {
        to_python(&self.0.state())
    }

    fn load_state(&mut self, py: Python<'_>, state: Saved) -> PyResult<()> {
        let state = from_python(py, state)?;
        call(|| self.0.load_state(&state))
    }
}
