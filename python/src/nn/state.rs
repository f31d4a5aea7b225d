//! What is done with all tensors of a module at once: moving, and taking over values by name.

use crate::arguments::TensorArg;
use crate::error::{call, run};
use crate::tensor::{DTypeArg, DeviceArg, PyTensor, check_assignable, copied};
use pyo3::prelude::*;
use volta::nn::Visitor;
use volta::{Module, Result, StateDict, Tensor};

/// The tensors of a Python module, for what the engine does with modules.
struct Tensors(Vec<(String, Tensor)>);

impl Module for Tensors {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.clone()
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.0.iter().for_each(|(name, tensor)| visitor.parameter(name, tensor));
    }
}

/// Names and tensors as Python gives them.
type Named = Vec<(String, TensorArg)>;

fn tensors(named: Named) -> Tensors {
    Tensors(named.into_iter().map(|(name, t)| (name, t.0)).collect())
}

/// Moves tensors in place, to a device, and floats to a type.
#[pyfunction]
#[pyo3(signature = (tensors, device = None, dtype = None))]
fn move_tensors(
    py: Python<'_>,
    tensors: Vec<TensorArg>,
    device: Option<DeviceArg>,
    dtype: Option<DTypeArg>,
) -> PyResult<()> {
    let named = tensors.into_iter().enumerate().map(|(k, t)| (k.to_string(), t.0));
    let all = Tensors(named.collect());
    run(py, || {
        if let Some(device) = device {
            all.try_to_device(device.0)?;
        }
        match dtype {
            Some(dtype) => all.try_to_dtype(dtype.0),
            None => Ok(()),
        }
    })
}

/// Gives tensors the values that `given` has under their names. Names that are missing there, and names that nobody asked
/// for, are returned; if `strict`, they are an error, and nothing has changed. The values are copied: what is written to the
/// arrays that they came from is not seen by the module.
#[pyfunction]
fn load_tensors(
    py: Python<'_>,
    own: Named,
    given: Named,
    strict: bool,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let own = tensors(own);
    let given = given.into_iter().map(|(name, t)| (name, t.0));
    let report = run(py, || {
        let given = given.map(|(name, t)| Ok((name, copied(&t.detach())?)));
        own.load_state_dict(&given.collect::<Result<StateDict>>()?, strict)
    })?;
    Ok((report.missing, report.unexpected))
}

/// Gives a tensor another value, of the same shape; gradients are not recorded.
#[pyfunction]
fn assign(tensor: PyRef<'_, PyTensor>, value: PyRef<'_, PyTensor>) -> PyResult<()> {
    let t = &tensor.0;
    check_assignable(t)?;
    call(|| t.try_assign(&value.0.detach().try_to_device(t.device())?.try_to_dtype(t.dtype())?))
}

/// Makes a tensor collect gradients, or stop collecting them.
#[pyfunction]
fn set_requires_grad(tensor: PyRef<'_, PyTensor>, yes: bool) -> PyResult<()> {
    call(|| tensor.0.try_set_requires_grad(yes))
}

/// Forgets the gradients of all these tensors.
#[pyfunction]
fn zero_grad(tensors: Vec<PyRef<'_, PyTensor>>) {
    tensors.iter().for_each(|t| t.0.zero_grad());
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(move_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(load_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(assign, module)?)?;
    module.add_function(wrap_pyfunction!(set_requires_grad, module)?)?;
    module.add_function(wrap_pyfunction!(zero_grad, module)?)
}
