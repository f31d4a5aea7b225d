//! `micrograd_rs.Value`: a handle of a node in the one arena of the process.

use super::device::Device;
use super::engine::{Arena, Fault, NodeId, Op, Operand};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ARENA: Mutex<Arena> = Mutex::new(Arena::new());

/// The arena. Nothing that may run Python or drop a `Value` happens while it is held: a thread that waits for it holds
/// the interpreter's lock.
pub fn arena() -> MutexGuard<'static, Arena> {
    ARENA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Python's exception for what an op cannot compute.
#[cold]
pub fn fault(fault: Fault) -> PyErr {
    match fault {
        Fault::ZeroDivision => PyZeroDivisionError::new_err("a Value is divided by zero"),
        Fault::Domain(message) => PyValueError::new_err(message),
        Fault::Overflow(op) => {
            PyOverflowError::new_err(format!("the result of {op} is beyond the largest float"))
        }
        Fault::Full => PyMemoryError::new_err("there are more values than the engine can count"),
    }
}

/// A number that remembers how it was computed, so that `backward` finds its gradient.
///
/// >>> a, b = Value(2.0), Value(3.0)
/// >>> c = a * b + a**2
/// >>> c.backward()
/// >>> a.grad, b.grad
/// (7.0, 2.0)
#[pyclass(frozen, module = "micrograd_rs")]
pub struct Value {
    pub id: NodeId,
    pub device: Device,
}

impl Drop for Value {
    fn drop(&mut self) {
        arena().release(self.id);
    }
}

/// What Python hands to an operator: another value, a number, or something else.
pub fn operand(other: &Bound<'_, PyAny>, device: Device) -> PyResult<Option<Operand>> {
    if let Ok(value) = other.cast_exact::<Value>() {
        let value = value.get();
        device.meet(value.device)?;
        return Ok(Some(Operand::Node(value.id)));
    }
    if let Ok(float) = other.cast_exact::<PyFloat>() {
        return Ok(Some(Operand::Number(float.value())));
    }
    match other.extract::<f64>() {
        Ok(number) => Ok(Some(Operand::Number(number))),
        Err(e) if e.is_instance_of::<PyTypeError>(other.py()) && !other.is_instance_of::<PyInt>() => Ok(None),
        Err(e) => Err(e),
    }
}

impl Value {
    fn unary(&self, op: Op) -> PyResult<Value> {
        let id = arena().unary(op, self.id).map_err(fault)?;
        Ok(Value { id, device: self.device })
    }

    /// `self op other`, or the other way round; `NotImplemented` for what is no number.
    #[inline]
    fn binary<'py>(&self, op: Op, other: &Bound<'py, PyAny>, reflected: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let Some(other) = operand(other, self.device)? else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        let this = Operand::Node(self.id);
        let (a, b) = if reflected { (other, this) } else { (this, other) };
        let id = arena().binary(op, a, b).map_err(fault)?;
        Bound::new(py, Value { id, device: self.device }).map(Bound::into_any)
    }
}

#[pymethods]
impl Value {
    #[new]
    #[pyo3(signature = (data, device = None))]
    fn new(data: f64, device: Option<Device>) -> PyResult<Value> {
        let id = arena().leaf(data).map_err(fault)?;
        Ok(Value { id, device: device.unwrap_or_default() })
    }

    /// The number. Setting it leaves what was computed from it as it is.
    #[getter]
    fn data(&self) -> f64 {
        arena().data(self.id)
    }

    #[setter]
    fn set_data(&self, data: f64) {
        arena().set_data(self.id, data);
    }

    /// The gradient that `backward` added up.
    #[getter]
    fn grad(&self) -> f64 {
        arena().grad(self.id)
    }

    #[setter]
    fn set_grad(&self, grad: f64) {
        arena().set_grad(self.id, grad);
    }

    /// Where it lives.
    #[getter]
    fn device(&self) -> Device {
        self.device
    }

    /// The same value on another device: both have one number and one gradient.
    fn to(&self, device: Device) -> Value {
        arena().hold(self.id);
        Value { id: self.id, device }
    }

    /// Sets this value's gradient to one, and adds to the gradients of everything that it was computed from.
    fn backward(&self, py: Python<'_>) {
        py.detach(|| arena().backward(self.id));
    }

    /// Zero where it is negative.
    fn relu(&self) -> PyResult<Value> {
        self.unary(Op::Relu)
    }

    /// The hyperbolic tangent.
    fn tanh(&self) -> PyResult<Value> {
        self.unary(Op::Tanh)
    }

    /// e to the power of it.
    fn exp(&self) -> PyResult<Value> {
        self.unary(Op::Exp)
    }

    /// The natural logarithm.
    fn log(&self) -> PyResult<Value> {
        self.unary(Op::Log)
    }

    fn __neg__(&self) -> PyResult<Value> {
        self.unary(Op::Neg)
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Add, other, false)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Add, other, true)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Sub, other, false)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Sub, other, true)
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Mul, other, false)
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Mul, other, true)
    }

    fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Div, other, false)
    }

    fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.binary(Op::Div, other, true)
    }

    fn __pow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        no_modulo(modulo)?;
        self.binary(Op::Pow, other, false)
    }

    fn __rpow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        no_modulo(modulo)?;
        self.binary(Op::Pow, other, true)
    }

    /// Whether both are one value: what is set in one is seen in the other.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast_exact::<Value>().is_ok_and(|other| other.get().id == self.id)
    }

    fn __hash__(&self) -> u64 {
        self.id.0 as u64
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (data, grad) = {
            let arena = arena();
            (arena.data(self.id), arena.grad(self.id))
        };
        Ok(format!("Value(data={}, grad={})", PyFloat::new(py, data).repr()?, PyFloat::new(py, grad).repr()?))
    }

    /// Above NumPy's scalars, which then leave `scalar * value` to us, and below its arrays, which go through their
    /// elements.
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __array_priority__: f64 = -1.0;
}

fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(m) if !m.is_none() => Err(PyTypeError::new_err("a Value has no power modulo a number")),
        _ => Ok(()),
    }
}

/// How many values the engine keeps: those that Python holds, and those that they were computed from.
#[pyfunction]
pub fn live_values() -> usize {
    arena().live()
}
