//! `volta.dtype`: one object for each type of elements.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use volta::DType;

/// A type of elements: `volta.float32`, `volta.int64`, ...
#[pyclass(name = "dtype", module = "volta", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub struct PyDType(pub DType);

/// Python's and NumPy's name of a type, then the other names it goes by.
const NAMES: [(DType, &str, &[&str]); 9] = [
    (DType::F32, "float32", &["f32"]),
    (DType::F64, "float64", &["double", "float", "f64"]),
    (DType::F16, "float16", &["half", "f16"]),
    (DType::BF16, "bfloat16", &["bf16"]),
    (DType::I32, "int32", &["i32", "intc"]),
    (DType::I64, "int64", &["long", "int", "i64"]),
    (DType::U8, "uint8", &["u8"]),
    (DType::Bool, "bool", &["bool_"]),
    (DType::U32, "uint32", &["u32", "uintc"]),
];

/// PyTorch's second names.
const ALIASES: [(&str, DType); 5] = [
    ("float", DType::F32),
    ("double", DType::F64),
    ("half", DType::F16),
    ("int", DType::I32),
    ("long", DType::I64),
];

/// Python's name of a type.
pub fn name(dtype: DType) -> &'static str {
    NAMES[dtype as usize].1
}

/// The type that NumPy, or a user, calls so.
pub fn by_name(name: &str) -> Option<DType> {
    NAMES.iter().find(|(_, n, others)| *n == name || others.contains(&name)).map(|t| t.0)
}

/// The one object of a type.
pub fn object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    static ALL: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();
    let all = ALL.get_or_try_init(py, || {
        DType::ALL.into_iter().map(|d| Py::new(py, PyDType(d))).collect::<PyResult<_>>()
    })?;
    Ok(all[dtype as usize].clone_ref(py))
}

#[pymethods]
impl PyDType {
    /// Bytes of one element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether it is a float, through which gradients can flow.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    fn __repr__(&self) -> String {
        format!("volta.{}", name(self.0))
    }

    /// Pickled by its name: the same object comes back.
    fn __reduce__(&self) -> &'static str {
        name(self.0)
    }
}

/// A type as an argument: `volta.float32`, `'float32'`, `np.float32`, `float`, `int` or `bool`.
#[derive(Clone, Copy)]
pub struct DTypeArg(pub DType);

impl<'a, 'py> FromPyObject<'a, 'py> for DTypeArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<DTypeArg> {
        if let Ok(dtype) = object.cast::<PyDType>() {
            return Ok(DTypeArg(dtype.get().0));
        }
        let text = match object.extract::<String>() {
            Ok(text) => Some(text),
            Err(_) => object.getattr("__name__").or_else(|_| object.getattr("name"))?.extract().ok(),
        };
        text.as_deref().and_then(by_name).map(DTypeArg).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|n| n.1).collect();
            let shown = object.repr().map(|r| r.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!(
                "{shown} is no type of elements here: there are {}",
                known.join(", ")
            ))
        })
    }
}

/// Adds the class and its objects.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    for dtype in DType::ALL {
        module.add(name(dtype), object(module.py(), dtype)?)?;
    }
    for (alias, dtype) in ALIASES {
        module.add(alias, object(module.py(), dtype)?)?;
    }
    Ok(())
}
