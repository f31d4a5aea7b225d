//! Functions of several tensors.

use super::arguments::{Dims, Other, axis, tensors};
use super::{PyTensor, create, record};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use volta::{Operand, Result, Tensor};

/// Tensors one behind the other along a dimension.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0))]
fn cat(tensors: &Bound<'_, PyAny>, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<PyTensor> {
    let tensors = self::tensors(tensors)?;
    record(|| Tensor::try_cat(&tensors, dim))
}

/// Tensors of one shape along a new dimension.
#[pyfunction]
#[pyo3(signature = (tensors, dim=0))]
fn stack(tensors: &Bound<'_, PyAny>, #[pyo3(from_py_with = axis)] dim: isize) -> PyResult<PyTensor> {
    let tensors = self::tensors(tensors)?;
    record(|| Tensor::try_stack(&tensors, dim))
}

/// Sums of products by Einstein's rule: `einsum('bij,bjk->bik', a, b)`.
#[pyfunction]
#[pyo3(signature = (equation, *operands))]
fn einsum(equation: &str, operands: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
    let one_list = operands.len() == 1 && !operands.get_item(0)?.is_instance_of::<PyTensor>();
    let operands = if one_list { tensors(&operands.get_item(0)?)? } else { tensors(operands)? };
    record(|| Tensor::try_einsum(equation, &operands))
}

/// The elements of `input` where `condition` holds, of `other` elsewhere; with the condition alone, the positions where
/// it holds, as a tuple.
#[pyfunction]
#[pyo3(signature = (condition, input=None, other=None))]
fn r#where<'py>(
    py: Python<'py>,
    condition: &Bound<'py, PyAny>,
    input: Option<Other>,
    other: Option<Other>,
) -> PyResult<Bound<'py, PyAny>> {
    let condition = create::operand_tensor(condition)?;
    match (input, other) {
        (Some(a), Some(b)) => Ok(record(|| chosen(&condition, a, b))?.into_pyobject(py)?.into_any()),
        (None, None) => {
            let found = super::index::positions(py, &condition)?;
            Ok(PyTuple::new(py, found.into_iter().map(PyTensor::from))?.into_any())
        }
        _ => Err(pyo3::exceptions::PyTypeError::new_err("where: both alternatives are needed, or none")),
    }
}

/// The elements of `a` where the condition holds, of `b` elsewhere: two numbers have the types that Python's have.
fn chosen(condition: &Tensor, a: Other, b: Other) -> Result<Tensor> {
    match (a.0, b.0) {
        (Operand::Tensor(a), b) => condition.try_where_(&a, Other(b).beside(&a)?),
        (a, Operand::Tensor(b)) => condition.try_where_(Other(a).beside(&b)?, &b),
        (a, b) => {
            let here = |x: Operand| Other(x).into_tensor(condition.device());
            condition.try_where_(&here(a)?, &here(b)?)
        }
    }
}

/// Tensors expanded to their common shape.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn broadcast_tensors(tensors: &Bound<'_, PyTuple>) -> PyResult<Vec<PyTensor>> {
    let tensors = self::tensors(tensors)?;
    super::record_all(|| super::index::broadcast(&tensors))
}

/// The shape that shapes broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(py: Python<'py>, shapes: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    let mut all = Vec::new();
    for shape in shapes {
        let Dims(shape) = shape.extract()?;
        all.push(crate::error::call(|| Tensor::try_zeros(&shape[..]))?);
    }
    let common = crate::error::call(|| super::index::broadcast(&all))?;
    PyTuple::new(py, common.first().map(|t| t.shape().to_vec()).unwrap_or_default())
}

/// A tensor computed now, or several in one plan, with everything else this thread has pending.
#[pyfunction]
#[pyo3(signature = (*tensors))]
fn realize(py: Python<'_>, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
    let tensors = self::tensors(tensors)?;
    crate::error::run(py, || volta::try_realize_all(&tensors))
}

/// Adds the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cat, module)?)?;
    module.add_function(wrap_pyfunction!(stack, module)?)?;
    module.add_function(wrap_pyfunction!(einsum, module)?)?;
    module.add_function(wrap_pyfunction!(r#where, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(broadcast_shapes, module)?)?;
    module.add_function(wrap_pyfunction!(realize, module)?)
}
