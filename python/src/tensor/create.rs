//! Making tensors: from data, by rules, at random.

use super::arguments::{Dims, Number, constant, extents, sizes_or_named};
use super::device::{DeviceArg, as_index, as_integers, integer, or_default};
use super::dtype::DTypeArg;
use super::elementwise::copied;
use super::{PyTensor, array};
use crate::error::{call, run};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use volta::{DType, Device, Result, Scalar, Tensor};

/// Makes a tensor on a device, and a leaf of it if it is to require gradients.
fn make(device: Device, requires_grad: bool, body: impl FnOnce() -> Result<Tensor>) -> PyResult<PyTensor> {
    call(|| {
        let tensor = volta::with_device(device, body)?;
        if requires_grad { tensor.try_requires_grad(true) } else { Ok(tensor) }
    })
    .map(PyTensor::from)
}

fn converted(tensor: Tensor, dtype: Option<DTypeArg>) -> Result<Tensor> {
    dtype.map_or_else(|| Ok(tensor.clone()), |d| tensor.try_to_dtype(d.0))
}

/// The tensor that an object is or can be made into: a tensor, an array, a number, nested lists.
pub fn operand_tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match object.cast::<PyTensor>() {
        Ok(tensor) => Ok(tensor.get().0.clone()),
        Err(_) => Ok(tensor(object, None, None, false)?.0),
    }
}

/// What an object is or can be made into, to be put into another tensor: of its type and on its device. Numbers are made in
/// that type at once, since float32 does not hold what float64 does.
pub fn value_for(object: &Bound<'_, PyAny>, target: &Tensor) -> PyResult<Tensor> {
    let (dtype, device) = (target.dtype(), target.device());
    match object.cast::<PyTensor>() {
        Ok(tensor) => {
            let value = &tensor.get().0;
            run(object.py(), || value.try_to_device(device)?.try_to_dtype(dtype))
        }
        Err(_) => Ok(tensor(object, Some(DTypeArg(dtype)), Some(DeviceArg(device)), false)?.0),
    }
}

/// A tensor with a copy of `data`: a number, nested lists of numbers, a NumPy array or a tensor.
///
/// Python's floats become float32, integers int64, truth values bool; arrays keep their type.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None, requires_grad=false))]
pub fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let py = data.py();
    if let Ok(tensor) = data.cast::<PyTensor>() {
        let (x, to) = (&tensor.get().0, device.map_or(tensor.get().0.device(), |d| d.0));
        let copy = run(py, || converted(copied(&x.detach())?.try_to_device(to)?, dtype))?;
        return make(to, requires_grad, || Ok(copy));
    }
    let device = or_default(device)?;
    let is_number = data.is_exact_instance_of::<PyFloat>()
        || data.is_exact_instance_of::<PyInt>()
        || data.is_exact_instance_of::<PyBool>();
    if is_number {
        let Number(value) = data.extract()?;
        return make(device, requires_grad, || match dtype {
            Some(dtype) => Tensor::try_full_of([0usize; 0], value, dtype.0),
            None => constant(&[], value, device),
        });
    }
    let typed = data.hasattr("dtype")?;
    let list = if typed { data.clone() } else { plain(data)? };
    let array = py.import("numpy")?.call_method1("asarray", (list,)).map_err(|e| {
        PyValueError::new_err(format!("tensor: the data is no array of numbers: {}", e.value(py)))
    })?;
    // NumPy reads Python's floats as float64, which a device may not have.
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let wanted = match (&dtype, typed, kind.as_str()) {
        (Some(dtype), ..) => Some(dtype.0),
        (None, false, "f") => Some(DType::F32),
        (None, false, "i") => Some(integer(device)?),
        _ => None,
    };
    if kind == "O" {
        return Err(PyTypeError::new_err("tensor: the data is no array of numbers"));
    }
    let range = match wanted {
        Some(dtype) if !typed && dtype.is_int() => range_within(&array, dtype)?,
        _ => None,
    };
    let host = array::from_array(&array, Device::Cpu)?;
    let tensor = run(py, || {
        let tensor = wanted.map_or_else(|| Ok(host.clone()), |d| host.try_to_dtype(d))?;
        tensor.try_to_device(device)
    })?;
    make(device, requires_grad, || match (dtype, range) {
        (None, Some((least, most))) => Ok(as_integers(&tensor, least, most)?.assignable()),
        _ => Ok(tensor.assignable()),
    })
}

/// The least and the most of the numbers of lists, if there are any: an error if the type cannot hold them. Arrays are cast
/// instead.
fn range_within(array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<(i64, i64)>> {
    if array.getattr("size")?.extract::<usize>()? == 0 {
        return Ok(None);
    }
    let end = |name: &str| {
        let Number(end) = array.call_method0(name)?.extract()?;
        let fits =
            end.checked(dtype).map_err(|e| PyValueError::new_err(format!("tensor: {}", e.message())))?;
        Ok::<i64, PyErr>(fits.to_i64())
    };
    Ok(Some((end("min")?, end("max")?)))
}

/// Nested lists in which tensors of one element stand as their numbers, which NumPy would ask for one by one.
fn plain<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let holds_tensors = data.try_iter().is_ok_and(|mut items| {
        items.next().is_some_and(|first| first.is_ok_and(|f| f.is_instance_of::<PyTensor>()))
    });
    if !holds_tensors {
        return Ok(data.clone());
    }
    let lists: Vec<Bound<'py, PyAny>> =
        data.try_iter()?.map(|item| item?.call_method0("tolist")).collect::<PyResult<_>>()?;
    Ok(lists.into_pyobject(data.py())?.into_any())
}

/// `data` as a tensor: itself if it is one, sharing memory with an array on the CPU, otherwise a copy.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, device=None))]
fn as_tensor<'py>(
    data: &Bound<'py, PyAny>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    if let Ok(tensor) = data.cast::<PyTensor>() {
        let x = &tensor.get().0;
        let to = device.map_or(x.device(), |d| d.0);
        if to == x.device() && dtype.is_none_or(|d| d.0 == x.dtype()) {
            return Ok(data.clone());
        }
        let moved = run(py, || converted(x.try_to_device(to)?, dtype))?;
        return Ok(PyTensor::from(moved).into_pyobject(py)?.into_any());
    }
    let here = or_default(device)? == Device::Cpu;
    let made = if here && array::is_array(data.as_borrowed())? {
        let shared = array::shared(data)?;
        PyTensor::from(call(|| converted(shared, dtype))?)
    } else {
        tensor(data, dtype, device, false)?
    };
    Ok(made.into_pyobject(py)?.into_any())
}

/// Functions of a shape: `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`.
macro_rules! shaped {
    ($($(#[doc = $doc:literal])* $name:ident = $make:expr;)*) => {$(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(
            signature = (*args, size=None, dtype=None, device=None, requires_grad=false),
            text_signature = "(*size, dtype=None, device=None, requires_grad=False)"
        )]
        fn $name(
            args: &Bound<'_, PyTuple>,
            size: Option<Dims>,
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let size = sizes_or_named(args, size, "size")?;
            let (shape, device) = (extents(&size)?, or_default(device)?);
            let body: fn(&[usize], Option<DTypeArg>) -> Result<Tensor> = $make;
            make(device, requires_grad, || body(&shape, dtype))
        }
    )*};
}

fn kind(dtype: Option<DTypeArg>) -> DType {
    dtype.map_or(DType::F32, |d| d.0)
}

shaped! {
    /// Zeros of a shape.
    zeros = |shape, dtype| Tensor::try_full_of(shape, 0.0, kind(dtype));
    /// Ones of a shape.
    ones = |shape, dtype| Tensor::try_full_of(shape, 1.0, kind(dtype));
    /// A tensor whose values do not matter; they are zeros.
    empty = |shape, dtype| Tensor::try_full_of(shape, 0.0, kind(dtype));
    /// Uniform random numbers in [0, 1).
    rand = |shape, dtype| Ok(Tensor::try_full_of(shape, 0.0, kind(dtype))?.rand_like());
    /// Normal random numbers with mean 0 and deviation 1.
    randn = |shape, dtype| converted(Tensor::try_randn(shape)?, dtype);
}

/// One value everywhere.
#[pyfunction]
#[pyo3(signature = (size, fill_value, *, dtype=None, device=None, requires_grad=false))]
fn full(
    size: Dims,
    fill_value: Number,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (shape, device) = (extents(&size.0)?, or_default(device)?);
    make(device, requires_grad, || match dtype {
        Some(dtype) => Tensor::try_full_of(&shape[..], fill_value.0, dtype.0),
        None => constant(&shape, fill_value.0, device),
    })
}

/// Numbers from a start (0 by default) up to, not including, an end, `step` apart: `arange(end)`,
/// `arange(start, end)`, `arange(start, end, step)`. Of integers they are int64, otherwise float32.
#[pyfunction]
#[pyo3(signature = (start, end=None, step=None, *, dtype=None, device=None, requires_grad=false))]
fn arange(
    start: Number,
    end: Option<Number>,
    step: Option<Number>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let device = or_default(device)?;
    let (start, end) = end.map_or((Scalar::Int(0), start.0), |end| (start.0, end.0));
    let step = step.map_or(Scalar::Int(1), |s| s.0);
    let whole = [start, end, step].iter().all(|s| !matches!(s, Scalar::Float(_)));
    let default = if whole { integer(device)? } else { DType::F32 };
    let (is_given, dtype) = (dtype.is_some(), dtype.map_or(default, |d| d.0));
    if whole || dtype.is_int() {
        let numbers = whole_numbers(start, end, step, dtype)?;
        return make(device, requires_grad, || match is_given {
            true => numbers.tensor(dtype),
            false => as_integers(&numbers.tensor(dtype)?, numbers.ends().0, numbers.ends().1),
        });
    }
    let (a, b, c) = (start.to_f64(), end.to_f64(), step.to_f64());
    let far = (b - a) / c;
    if !far.is_finite() || far < 0.0 {
        return Err(no_numbers(start, end, step));
    }
    make(device, requires_grad, || of_numbers((0..far.ceil() as usize).map(|k| a + k as f64 * c), dtype))
}

fn no_numbers(start: Scalar, end: Scalar, step: Scalar) -> PyErr {
    let (a, b, c) = (start.to_f64(), end.to_f64(), step.to_f64());
    PyValueError::new_err(format!("arange: no numbers from {a} to {b} by {c}"))
}

/// `count` integers, `step` apart.
struct Whole {
    start: i64,
    step: i64,
    count: usize,
}

/// The integers of a range. Bounds and step are cut to integers, as PyTorch does it. How many there are is said by what was cut
/// for int64, and by the numbers as they were given for other types.
fn whole_numbers(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> PyResult<Whole> {
    let cut = |s: Scalar| {
        let whole = s.checked(DType::I64).map_err(|_| no_numbers(start, end, step))?;
        Ok::<i64, PyErr>(whole.to_i64())
    };
    let (first, last, by) = (cut(start)?, cut(end)?, cut(step)?);
    let is_float = [start, end, step].iter().any(|s| matches!(s, Scalar::Float(_)));
    let way = i128::from(last) - i128::from(first);
    if by == 0 || way.signum() * i128::from(by).signum() < 0 {
        return Err(no_numbers(start, end, step));
    }
    let count = if is_float && dtype != DType::I64 {
        ((end.to_f64() - start.to_f64()) / step.to_f64()).ceil() as i128
    } else {
        way.unsigned_abs().div_ceil(u128::from(by.unsigned_abs())) as i128
    };
    match usize::try_from(count) {
        Ok(count) => Ok(Whole { start: first, step: by, count }),
        Err(_) => Err(no_numbers(start, end, step)),
    }
}

impl Whole {
    /// The least and the most of them.
    fn ends(&self) -> (i64, i64) {
        let last = self.start.wrapping_add(self.step.wrapping_mul(self.count.saturating_sub(1) as i64));
        (self.start.min(last), self.start.max(last))
    }

    fn tensor(&self, dtype: DType) -> Result<Tensor> {
        let &Whole { start, step, count } = self;
        let small = |x: i64| i32::try_from(x).is_ok();
        if small(start) && small(start.saturating_add(step.saturating_mul(count as i64))) && small(step) {
            let index = Tensor::try_arange(0, count as i64)?;
            return index.try_mul(step)?.try_add(start)?.try_to_dtype(dtype);
        }
        let numbers = (0..count).map(|k| start.wrapping_add(step.wrapping_mul(k as i64)));
        // Not every device that has int32 and uint32 has int64.
        let tensor = match dtype {
            DType::U32 => Tensor::try_from_vec(numbers.map(|x| x as u32).collect(), [count])?,
            DType::I32 => Tensor::try_from_vec(numbers.map(|x| x as i32).collect(), [count])?,
            _ => Tensor::try_from_vec(numbers.collect(), [count])?,
        };
        tensor.try_to_dtype(dtype)
    }
}

/// A vector of numbers that were computed in float64, in a type that may have as many digits.
fn of_numbers(numbers: impl ExactSizeIterator<Item = f64>, dtype: DType) -> Result<Tensor> {
    let count = numbers.len();
    let tensor = match dtype {
        DType::F64 => Tensor::try_from_vec(numbers.collect::<Vec<f64>>(), [count])?,
        DType::I64 => Tensor::try_from_vec(numbers.map(|x| x as i64).collect(), [count])?,
        DType::U32 => Tensor::try_from_vec(numbers.map(|x| x as u32).collect(), [count])?,
        DType::I32 => Tensor::try_from_vec(numbers.map(|x| x as i32).collect(), [count])?,
        _ => Tensor::try_from_vec(numbers.map(|x| x as f32).collect(), [count])?,
    };
    tensor.try_to_dtype(dtype)
}

/// `steps` numbers evenly spaced from `start` to `end`, both included.
#[pyfunction]
#[pyo3(signature = (start, end, steps, *, dtype=None, device=None, requires_grad=false))]
fn linspace(
    start: Number,
    end: Number,
    steps: usize,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (device, dtype) = (or_default(device)?, kind(dtype));
    // Integers go from an integer to an integer.
    let bound = |x: Number| if dtype.is_float() { x.0.to_f64() } else { x.0.to_f64().trunc() };
    let (start, end) = (bound(start), bound(end));
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    // Each half from its own end, as PyTorch does: both ends are exact, and the middle lies in the middle.
    let at = |k: usize| match k {
        k if steps == 1 || k < steps / 2 => start + k as f64 * step,
        k => end - (steps - 1 - k) as f64 * step,
    };
    make(device, requires_grad, || of_numbers((0..steps).map(at), dtype))
}

/// Ones on the diagonal of a matrix, zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, *, dtype=None, device=None, requires_grad=false))]
fn eye(
    n: usize,
    m: Option<usize>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let (m, device) = (m.unwrap_or(n), or_default(device)?);
    make(device, requires_grad, || {
        let square = Tensor::try_eye(n.max(m))?.try_narrow(0, 0, n)?.try_narrow(1, 0, m)?;
        square.try_to_dtype(kind(dtype))
    })
}

/// Uniform random integers from `low` (0 by default) up to, not including, `high`: `randint(high, size)` or
/// `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (low, high=None, size=None, *, dtype=None, device=None))]
fn randint(
    low: i64,
    high: Option<&Bound<'_, PyAny>>,
    size: Option<Dims>,
    dtype: Option<DTypeArg>,
    device: Option<DeviceArg>,
) -> PyResult<PyTensor> {
    let missing =
        || PyTypeError::new_err("randint: randint(high, size) or randint(low, high, size) is needed");
    let (low, high, size): (i64, i64, Dims) = match (high, size) {
        (None, Some(size)) => (0, low, size),
        (Some(high), Some(size)) => (low, high.extract()?, size),
        (Some(size), None) => (0, low, size.extract()?),
        (None, None) => return Err(missing()),
    };
    let (shape, device) = (extents(&size.0)?, or_default(device)?);
    make(device, false, || {
        let drawn = Tensor::try_randint(low, high, &shape[..])?;
        dtype.map_or_else(|| as_integers(&drawn, low, high - 1), |d| drawn.try_to_dtype(d.0))
    })
}

/// The numbers from 0 up to, not including, `n` in random order.
#[pyfunction]
#[pyo3(signature = (n, *, dtype=None, device=None))]
fn randperm(n: usize, dtype: Option<DTypeArg>, device: Option<DeviceArg>) -> PyResult<PyTensor> {
    let device = or_default(device)?;
    make(device, false, || {
        let order = Tensor::try_rand([n])?.try_argsort(0, false)?;
        dtype.map_or_else(|| as_index(&order, n), |d| order.try_to_dtype(d.0))
    })
}

/// 1 with the probability that each element gives, 0 elsewhere, in its type.
#[pyfunction]
fn bernoulli(input: &PyTensor) -> PyResult<PyTensor> {
    let x = &input.0;
    make(x.device(), false, || Tensor::try_rand(x.shape())?.try_lt(x)?.try_to_dtype(x.dtype()))
}

/// Positions on and below a diagonal, or on and above it, as a bool matrix.
macro_rules! triangles {
    ($($(#[doc = $doc:literal])* $name:ident = $make:ident;)*) => {$(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (rows, columns, diagonal=0, *, device=None))]
        fn $name(rows: usize, columns: usize, diagonal: i64, device: Option<DeviceArg>) -> PyResult<PyTensor> {
            make(or_default(device)?, false, || Tensor::$make(rows, columns, diagonal))
        }
    )*};
}

triangles! {
    /// A bool matrix: true on and below a diagonal.
    tril_mask = try_tril_mask;
    /// A bool matrix: true on and above a diagonal.
    triu_mask = try_triu_mask;
}

/// Functions of a tensor whose shape, and type and device unless said otherwise, the new one has.
macro_rules! like {
    ($($(#[doc = $doc:literal])* $name:ident($($argument:ident: $ty:ty),*) = $make:expr;)*) => {$(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (input, $($argument,)* *, dtype=None, device=None, requires_grad=false))]
        fn $name(
            input: &PyTensor,
            $($argument: $ty,)*
            dtype: Option<DTypeArg>,
            device: Option<DeviceArg>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let x = &input.0;
            let (dtype, device) = (dtype.map_or(x.dtype(), |d| d.0), device.map_or(x.device(), |d| d.0));
            let body: fn(volta::Shape, $($ty,)* DType) -> Result<Tensor> = $make;
            make(device, requires_grad, || body(x.shape(), $($argument,)* dtype))
        }
    )*};
}

like! {
    /// Zeros of a tensor's shape and type.
    zeros_like() = |shape, dtype| Tensor::try_full_of(shape, 0.0, dtype);
    /// Ones of a tensor's shape and type.
    ones_like() = |shape, dtype| Tensor::try_full_of(shape, 1.0, dtype);
    /// A tensor of another's shape and type whose values do not matter; they are zeros.
    empty_like() = |shape, dtype| Tensor::try_full_of(shape, 0.0, dtype);
    /// One value in a tensor's shape and type.
    full_like(fill_value: Number) = |shape, value, dtype| Tensor::try_full_of(shape, value.0, dtype);
    /// Uniform random numbers in [0, 1) of a tensor's shape and type.
    rand_like() = |shape, dtype| Ok(Tensor::try_full_of(shape, 0.0, dtype)?.rand_like());
    /// Normal random numbers of a tensor's shape and type.
    randn_like() = |shape, dtype| Tensor::try_randn(shape)?.try_to_dtype(dtype);
    /// Uniform random integers from `low` up to, not including, `high`, of a tensor's shape and type.
    randint_like(low: i64, high: i64) = |shape, low, high, dtype| Tensor::try_randint(low, high, shape)?.try_to_dtype(dtype);
}

/// Starts the random numbers anew: the same seed gives the same numbers, bit for bit, on every device.
#[pyfunction]
fn manual_seed(seed: i64) {
    volta::manual_seed(seed as u64);
}

/// The state of the random numbers, to go on from with `set_rng_state`.
#[pyfunction]
fn get_rng_state() -> PyResult<(i64, i64)> {
    use volta::Stateful;
    let state = volta::RngState::save().state();
    call(|| Ok((state.int("seed")?, state.int("drawn")?)))
}

/// Goes on with the random numbers from a state of `get_rng_state`.
#[pyfunction]
fn set_rng_state(state: (i64, i64)) -> PyResult<()> {
    use volta::{State, Stateful};
    call(|| {
        let mut rng = volta::RngState::save();
        rng.load_state(&State::new().with("seed", state.0).with("drawn", state.1))?;
        rng.restore();
        Ok(())
    })
}

/// Adds the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident)*) => {{ $(module.add_function(wrap_pyfunction!($name, module)?)?;)* }};
    }
    add!(tensor as_tensor zeros ones empty rand randn full arange linspace eye randint randperm bernoulli);
    add!(tril_mask triu_mask zeros_like ones_like empty_like full_like rand_like randn_like randint_like);
    add!(manual_seed get_rng_state set_rng_state);
    Ok(())
}
