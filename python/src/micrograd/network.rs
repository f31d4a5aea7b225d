//! `micrograd_rs.Neuron`, `Layer` and `MLP`: a call is one walk through the engine, whatever the size.

use super::device::Device;
use super::engine::{self, Operand};
use super::value::{Value, arena, fault, operand};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// What has parameters: a class of your own says which by `parameters()`.
#[pyclass(frozen, subclass, module = "micrograd_rs")]
pub struct Module;

#[pymethods]
impl Module {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Module {
        Module
    }

    /// All values that training changes.
    fn parameters(&self) -> Vec<Py<Value>> {
        Vec::new()
    }

    /// Sets the gradients of all parameters to zero.
    fn zero_grad(this: &Bound<'_, Module>) -> PyResult<()> {
        for parameter in this.call_method0("parameters")?.try_iter()? {
            parameter?.setattr("grad", 0.0)?;
        }
        Ok(())
    }
}

/// `relu(w · x + b)`, or without `relu` where `nonlin` is false.
#[pyclass(frozen, extends = Module, module = "micrograd_rs")]
pub struct Neuron {
    neuron: engine::Neuron,
    device: Device,
    /// Weights, then the bias.
    parameters: Vec<Py<Value>>,
}

impl Drop for Neuron {
    fn drop(&mut self) {
        arena().release_list(self.neuron.parameters);
    }
}

impl Neuron {
    /// Weights from Python's `random.uniform(-1, 1)`, so that `random.seed` gives the same network again; a bias of 0.
    fn make(py: Python<'_>, nin: usize, nonlin: bool, device: Device) -> PyResult<Py<Neuron>> {
        let uniform = py.import("random")?.getattr("uniform")?;
        let mut numbers = Vec::with_capacity(nin + 1);
        for _ in 0..nin {
            numbers.push(uniform.call1((-1, 1))?.extract::<f64>()?);
        }
        numbers.push(0.0);
        let parameters = arena().list(numbers.into_iter().map(Operand::Number)).map_err(fault)?;
        let neuron = engine::Neuron { parameters, nonlin };
        let mut neuron = Neuron { neuron, device, parameters: Vec::with_capacity(nin + 1) };
        let ids: Vec<_> = arena().members(parameters).collect();
        for id in ids {
            arena().hold(id);
            neuron.parameters.push(Py::new(py, Value { id, device })?);
        }
        Py::new(py, (neuron, Module))
    }

    fn nin(&self) -> usize {
        self.parameters.len() - 1
    }
}

#[pymethods]
impl Neuron {
    #[new]
    #[pyo3(signature = (nin, nonlin = true, device = None))]
    fn new(py: Python<'_>, nin: usize, nonlin: bool, device: Option<Device>) -> PyResult<Py<Neuron>> {
        Neuron::make(py, nin, nonlin, device.unwrap_or_default())
    }

    fn __call__<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call(x, &[std::slice::from_ref(&self.neuron)], self.nin(), self.device)
    }

    fn parameters(&self, py: Python<'_>) -> Vec<Py<Value>> {
        self.parameters.iter().map(|p| p.clone_ref(py)).collect()
    }

    /// The weights.
    #[getter]
    fn w(&self, py: Python<'_>) -> Vec<Py<Value>> {
        self.parameters[..self.nin()].iter().map(|p| p.clone_ref(py)).collect()
    }

    /// The bias.
    #[getter]
    fn b(&self, py: Python<'_>) -> Py<Value> {
        self.parameters[self.nin()].clone_ref(py)
    }

    /// Whether negative sums become zero.
    #[getter]
    fn nonlin(&self) -> bool {
        self.neuron.nonlin
    }

    fn __repr__(&self) -> String {
        format!("{}Neuron({})", if self.neuron.nonlin { "ReLU" } else { "Linear" }, self.nin())
    }
}

/// Neurons side by side: `nin` numbers in, `nout` out.
#[pyclass(frozen, extends = Module, module = "micrograd_rs")]
pub struct Layer {
    neurons: Vec<Py<Neuron>>,
    cores: Vec<engine::Neuron>,
    nin: usize,
    device: Device,
}

impl Layer {
    fn make(py: Python<'_>, nin: usize, nout: usize, nonlin: bool, device: Device) -> PyResult<Py<Layer>> {
        let neurons =
            (0..nout).map(|_| Neuron::make(py, nin, nonlin, device)).collect::<PyResult<Vec<_>>>()?;
        let cores = neurons.iter().map(|n| n.get().neuron).collect();
        Py::new(py, (Layer { neurons, cores, nin, device }, Module))
    }
}

#[pymethods]
impl Layer {
    #[new]
    #[pyo3(signature = (nin, nout, nonlin = true, device = None))]
    fn new(
        py: Python<'_>,
        nin: usize,
        nout: usize,
        nonlin: bool,
        device: Option<Device>,
    ) -> PyResult<Py<Layer>> {
        Layer::make(py, nin, nout, nonlin, device.unwrap_or_default())
    }

    fn __call__<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call(x, &[&self.cores], self.nin, self.device)
    }

    fn parameters(&self, py: Python<'_>) -> Vec<Py<Value>> {
        self.neurons.iter().flat_map(|n| n.get().parameters(py)).collect()
    }

    /// The neurons.
    #[getter]
    fn neurons(&self, py: Python<'_>) -> Vec<Py<Neuron>> {
        self.neurons.iter().map(|n| n.clone_ref(py)).collect()
    }

    fn __repr__(&self) -> String {
        format!("Layer of [{}]", joined(self.neurons.iter().map(|n| n.get().__repr__())))
    }
}

/// Layers one after the other; all but the last end in `relu`.
#[pyclass(name = "MLP", frozen, extends = Module, module = "micrograd_rs")]
pub struct Mlp {
    layers: Vec<Py<Layer>>,
    parameters: Vec<Py<Value>>,
    nin: usize,
    device: Device,
}

#[pymethods]
impl Mlp {
    #[new]
    #[pyo3(signature = (nin, nouts, device = None))]
    fn new(py: Python<'_>, nin: usize, nouts: Vec<usize>, device: Option<Device>) -> PyResult<Py<Mlp>> {
        if nouts.is_empty() {
            return Err(PyValueError::new_err("an MLP needs a layer: MLP(2, [16, 1]) has two"));
        }
        let device = device.unwrap_or_default();
        let mut layers = Vec::with_capacity(nouts.len());
        let mut width = nin;
        for (k, &nout) in nouts.iter().enumerate() {
            layers.push(Layer::make(py, width, nout, k + 1 < nouts.len(), device)?);
            width = nout;
        }
        let parameters = layers.iter().flat_map(|l| l.get().parameters(py)).collect();
        Py::new(py, (Mlp { layers, parameters, nin, device }, Module))
    }

    fn __call__<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let layers: Vec<&[engine::Neuron]> = self.layers.iter().map(|l| &l.get().cores[..]).collect();
        call(x, &layers, self.nin, self.device)
    }

    fn parameters(&self, py: Python<'_>) -> Vec<Py<Value>> {
        self.parameters.iter().map(|p| p.clone_ref(py)).collect()
    }

    /// Sets the gradients of all parameters to zero.
    fn zero_grad(&self) {
        let mut arena = arena();
        self.parameters.iter().for_each(|p| arena.set_grad(p.get().id, 0.0));
    }

    /// The layers.
    #[getter]
    fn layers(&self, py: Python<'_>) -> Vec<Py<Layer>> {
        self.layers.iter().map(|l| l.clone_ref(py)).collect()
    }

    fn __repr__(&self) -> String {
        format!("MLP of [{}]", joined(self.layers.iter().map(|l| l.get().__repr__())))
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// One value where the last layer has one neuron, otherwise a list.
fn call<'py>(
    x: &Bound<'py, PyAny>,
    layers: &[&[engine::Neuron]],
    nin: usize,
    device: Device,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    // They stay alive until the engine has its own share of them, whatever the iterator does.
    let objects = match x.cast::<PyList>() {
        Ok(list) => list.iter().collect::<Vec<_>>(),
        Err(_) => x.try_iter()?.collect::<PyResult<Vec<_>>>()?,
    };
    if objects.len() != nin {
        return Err(PyValueError::new_err(format!("{} inputs for {nin} weights a neuron", objects.len())));
    }
    let mut inputs = Vec::with_capacity(nin);
    for object in &objects {
        match operand(object, device)? {
            Some(input) => inputs.push(input),
            None => {
                return Err(PyTypeError::new_err(format!(
                    "an input must be a Value or a number, not {object}"
                )));
            }
        }
    }
    let outputs = arena().layers(layers.iter().copied(), inputs).map_err(fault)?;
    let mut values = outputs.into_iter().map(|id| Value { id, device });
    if values.len() == 1 {
        let only = values.next().expect("there is one");
        return Bound::new(py, only).map(Bound::into_any);
    }
    PyList::new(py, values.map(|value| Bound::new(py, value)).collect::<PyResult<Vec<_>>>()?)
        .map(Bound::into_any)
}
