//! Several devices at once.

use crate::arguments::TensorArg;
use crate::error::{call, run};
use crate::tensor::{DeviceArg, PyTensor, call_for_tensor};
use pyo3::prelude::*;
use volta::parallel::{DataParallel, devices_named};

/// The engine's several devices; `volta.parallel.DataParallel` is made of it.
#[pyclass(name = "DataParallel", module = "volta._volta._parallel")]
pub struct PyDataParallel(DataParallel);

#[pymethods]
impl PyDataParallel {
    #[new]
    fn new(
        py: Python<'_>,
        parameters: Vec<TensorArg>,
        buffers: Vec<TensorArg>,
        devices: Vec<DeviceArg>,
        gradient_parts: Option<usize>,
        shares_by_speed: bool,
    ) -> PyResult<PyDataParallel> {
        let tensors = |all: Vec<TensorArg>| all.into_iter().map(|t| t.0).collect();
        let (parameters, buffers) = (tensors(parameters), tensors(buffers));
        let devices: Vec<_> = devices.into_iter().map(|device| device.0).collect();
        run(py, || {
            let mut parallel = DataParallel::of_tensors(parameters, buffers, &devices)?;
            if let Some(parts) = gradient_parts {
                parallel = parallel.with_gradient_parts(parts)?;
            }
            Ok(if shares_by_speed { parallel.with_shares_by_speed() } else { parallel })
        })
        .map(PyDataParallel)
    }

    /// Adds the gradient of a batch's mean loss to what the parameters have collected, and gives that loss.
    fn backward(
        &mut self,
        py: Python<'_>,
        step: Py<PyAny>,
        x: TensorArg,
        y: TensorArg,
    ) -> PyResult<PyTensor> {
        let step = |x: &_, y: &_| Ok(call_for_tensor(&step, &[x, y]));
        run(py, || self.0.try_backward(&x.0, &y.0, step)).map(PyTensor::from)
    }

    /// How many parts, or thousandths of the rows, each device has now.
    fn shares(&self) -> PyResult<Vec<usize>> {
        call(|| self.0.shares())
    }
}

/// The devices that a text names: several with commas between them, or `gpus`.
#[pyfunction]
fn devices(py: Python<'_>, text: &str) -> PyResult<Vec<crate::tensor::PyDevice>> {
    let all = run(py, || devices_named(text))?;
    Ok(all.into_iter().map(crate::tensor::PyDevice).collect())
}

/// The module `volta._volta._parallel`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_parallel")?;
    module.add_class::<PyDataParallel>()?;
    module.add_function(wrap_pyfunction!(devices, &module)?)?;
    parent.add_submodule(&module)
}
