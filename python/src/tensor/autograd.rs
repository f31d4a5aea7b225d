//! Gradients: `backward`, `grad`, and functions whose gradients are written in Python.

use super::arguments::tensors;
use super::{PyTensor, create};
use crate::error::{call, run, throw};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use volta::{BackwardOptions, Function, Tensor};

thread_local! {
    /// What is called when the backward pass that runs on this thread is over.
    static CALLBACKS: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// Those of the pass that is over; what an earlier one left, which failed, goes with them.
fn take_callbacks() -> Vec<Py<PyAny>> {
    CALLBACKS.with(RefCell::take)
}

/// Calls `function()` when the backward pass is over that calls this: from the `backward` of a function of Python's.
#[pyfunction]
fn _after_backward(function: Py<PyAny>) {
    CALLBACKS.with_borrow_mut(|all| all.push(function));
}

fn options(retain_graph: Option<bool>, create_graph: bool) -> BackwardOptions {
    BackwardOptions { retain_graph: retain_graph.unwrap_or(create_graph), create_graph }
}

#[pymethods]
impl PyTensor {
    /// Adds the gradient of this number to `grad` of every leaf it was computed from. A tensor of several elements
    /// needs a `gradient` of its shape to start from. The graph is let go afterwards unless `retain_graph=True`;
    /// `create_graph=True` records the gradients, for gradients of them.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&PyTensor>,
        retain_graph: Option<bool>,
        create_graph: bool,
    ) -> PyResult<()> {
        let gradient = gradient.map(|g| g.0.clone());
        take_callbacks();
        run(py, || self.0.try_backward_with(gradient.as_ref(), options(retain_graph, create_graph)))?;
        take_callbacks().iter().try_for_each(|callback| callback.call0(py).map(drop))
    }

    /// Whether gradients flow into or through it. Assigning makes a leaf collect gradients, or stop.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.is_tracked()
    }

    #[setter]
    fn set_requires_grad(&self, requires_grad: bool) -> PyResult<()> {
        if !requires_grad && self.0.is_tracked() && !self.0.is_leaf() {
            return Err(PyRuntimeError::new_err(
                "requires_grad: the tensor is not a leaf: use detach() for a value without gradients",
            ));
        }
        if requires_grad && self.0.is_tracked() {
            return Ok(());
        }
        call(|| self.0.try_set_requires_grad(requires_grad))
    }

    /// Makes a leaf collect gradients, or stop, and returns it.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: &Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        slf.get().set_requires_grad(requires_grad)?;
        Ok(slf.clone())
    }

    /// Whether it was not computed from anything that requires gradients.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The gradient that `backward` collected, or `None`.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        let gradient = self.0.grad()?;
        if !gradient.is_assignable() {
            // From now on what changes it in place changes what is collected.
            self.0.set_grad(Some(gradient.assignable()));
        }
        self.0.grad().map(PyTensor)
    }

    #[setter]
    fn set_grad(&self, gradient: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(gradient) = gradient else {
            self.0.zero_grad();
            return Ok(());
        };
        let gradient = create::operand_tensor(gradient)?;
        let of = |t: &Tensor| (t.shape(), t.dtype(), t.device());
        if of(&gradient) != of(&self.0) {
            let say = |t: &Tensor| format!("{} {} on {}", t.dtype(), t.shape(), t.device());
            let message = format!("grad: the gradient is {} and the tensor {}", say(&gradient), say(&self.0));
            return Err(PyRuntimeError::new_err(message));
        }
        call(|| {
            self.0.set_grad(Some(gradient));
            Ok(())
        })
    }

    /// The same value, cut from the tape.
    fn detach(&self) -> PyTensor {
        PyTensor::from(self.0.detach())
    }

    /// Cuts this tensor from the tape.
    fn detach_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let x = &slf.get().0;
        let off = call(|| x.try_set_requires_grad(false));
        if x.is_tracked() {
            off?;
            let before = volta::set_grad_enabled(false);
            let done = call(|| x.try_update(&x.detach()));
            volta::set_grad_enabled(before);
            done?;
        }
        Ok(slf.clone())
    }
}

/// A list of tensors, or one.
fn one_or_more(object: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    match object.cast::<PyTensor>() {
        Ok(tensor) => Ok(vec![tensor.get().0.clone()]),
        Err(_) => tensors(object),
    }
}

/// The gradients of the sum of `outputs` with respect to `inputs`, as a tuple; nothing is added to `grad`. An input
/// that no output depends on is an error, or gives `None` with `allow_unused=True`.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=false, allow_unused=false))]
fn grad<'py>(
    outputs: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyAny>,
    grad_outputs: Option<&Bound<'py, PyAny>>,
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = outputs.py();
    let (outputs, inputs) = (one_or_more(outputs)?, one_or_more(inputs)?);
    let seeds = grad_outputs.map(one_or_more).transpose()?;
    take_callbacks();
    let found = run(py, || {
        let (outputs, inputs): (Vec<&Tensor>, Vec<&Tensor>) =
            (outputs.iter().collect(), inputs.iter().collect());
        let seeds: Option<Vec<&Tensor>> = seeds.as_ref().map(|s| s.iter().collect());
        volta::try_grad(&outputs, &inputs, seeds.as_deref(), options(retain_graph, create_graph))
    })?;
    if !take_callbacks().is_empty() {
        return Err(PyRuntimeError::new_err(
            "grad: gradients of a DistributedDataParallel are exchanged by loss.backward(): take grad of the module inside of it",
        ));
    }
    if !allow_unused && found.iter().any(Option::is_none) {
        return Err(PyRuntimeError::new_err(
            "grad: an input was not used to compute the outputs: pass allow_unused=True to get None for it",
        ));
    }
    PyTuple::new(py, found.into_iter().map(|g| g.map(PyTensor::from)))
}

/// Whether what this thread computes is recorded for gradients.
#[pyfunction]
fn is_grad_enabled() -> bool {
    volta::is_grad_enabled()
}

/// Records gradients from now on, or not, and returns what was before.
#[pyfunction]
fn _set_grad_enabled(mode: bool) -> bool {
    volta::set_grad_enabled(mode)
}

/// A function of Python's, with a gradient of its own.
struct Own {
    forward: Py<PyAny>,
    backward: Py<PyAny>,
}

fn objects(inputs: &[Tensor]) -> Vec<PyTensor> {
    inputs.iter().cloned().map(PyTensor::from).collect()
}

/// The tensor that Python's function returned.
fn returned(py: Python<'_>, result: PyResult<Py<PyAny>>) -> Tensor {
    let tensor = result.and_then(|object| {
        let object = object.bind(py);
        object.cast::<PyTensor>().map(|t| t.get().0.clone()).map_err(|_| {
            let kind = object.get_type().name().map(|n| n.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("the function must return one tensor, not {kind}"))
        })
    });
    tensor.unwrap_or_else(|error| throw(error))
}

/// The tensor that Python's function makes of tensors; its exception unwinds to whoever called the engine.
pub fn call_for_tensor(function: &Py<PyAny>, arguments: &[&Tensor]) -> Tensor {
    Python::attach(|py| {
        let arguments = arguments.iter().map(|t| PyTensor::from((*t).clone()));
        let arguments = PyTuple::new(py, arguments);
        returned(py, arguments.and_then(|arguments| function.call1(py, arguments)))
    })
}

impl Function for Own {
    fn forward(&self, inputs: &[Tensor]) -> Tensor {
        Python::attach(|py| returned(py, self.forward.call1(py, (objects(inputs),))))
    }

    fn backward(&self, inputs: &[Tensor], output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
        Python::attach(|py| {
            let arguments =
                (objects(inputs), PyTensor::from(output.clone()), PyTensor::from(gradient.clone()));
            let gradients = self.backward.call1(py, arguments);
            let gradients = gradients.and_then(|list| list.extract::<Vec<Option<PyTensor>>>(py));
            gradients.unwrap_or_else(|error| throw(error)).into_iter().map(|g| g.map(|g| g.0)).collect()
        })
    }
}

/// `forward(inputs)`, whose gradient is `backward(inputs, output, gradient)`.
#[pyfunction]
fn _apply(forward: Py<PyAny>, backward: Py<PyAny>, inputs: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let inputs = tensors(inputs)?;
    let own = Own { forward, backward };
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    call(|| volta::try_apply(own, &inputs)).map(PyTensor::from)
}

/// `function(inputs)`, computed again in the backward pass instead of being kept.
#[pyfunction]
fn _checkpoint(function: Py<PyAny>, inputs: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let inputs = tensors(inputs)?;
    let again =
        move |inputs: &[Tensor]| Python::attach(|py| returned(py, function.call1(py, (objects(inputs),))));
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    call(|| volta::try_checkpoint(again, &inputs)).map(PyTensor::from)
}

/// Adds the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(grad, module)?)?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_after_backward, module)?)?;
    module.add_function(wrap_pyfunction!(_apply, module)?)?;
    module.add_function(wrap_pyfunction!(_checkpoint, module)?)
}
