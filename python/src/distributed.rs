//! Several processes at once: the world that `volta.distributed` speaks to, in bytes, and gradients of all ranks.

use crate::arguments::TensorArg;
use crate::error::{call, run};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volta::Result;
use volta::parallel::{ExchangeOptions, GradientExchange, World, agree};
use volta_mpi::Session;

/// MPI, which begins once in a process and must end on the thread that began it.
#[pyclass(name = "Session", module = "volta._volta._distributed", unsendable)]
pub struct PySession(Option<Session>);

#[pymethods]
impl PySession {
    /// Joins the other processes that the launcher has started; a process by itself is a world of one.
    #[staticmethod]
    fn begin() -> PyResult<PySession> {
        call(Session::begin).map(|session| PySession(Some(session)))
    }

    /// The processes.
    fn world(&self) -> PyResult<PyWorld> {
        match &self.0 {
            Some(session) => Ok(PyWorld(session.world())),
            None => Err(PyRuntimeError::new_err("MPI has ended in this process")),
        }
    }

    /// Waits for all processes, and ends MPI.
    fn end(&mut self) {
        self.0 = None;
    }
}

/// The processes of a run as one of them sees it. What they send are bytes.
#[pyclass(name = "World", module = "volta._volta._distributed", frozen)]
pub struct PyWorld(Arc<dyn World>);

/// Numbers of bytes.
fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (fours, _) = bytes.as_chunks::<4>();
    fours.iter().map(|four| f32::from_ne_bytes(*four)).collect()
}

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

impl PyWorld {
    /// Calls the world, which waits for the others.
    fn exchanged<'py>(
        &self,
        py: Python<'py>,
        exchange: impl FnOnce(&dyn World) -> Result<Vec<u8>> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, || exchange(&*self.0))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

#[pymethods]
impl PyWorld {
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn local_rank(&self) -> usize {
        self.0.local_rank()
    }

    #[getter]
    fn local_size(&self) -> usize {
        self.0.local_size()
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// Waits until all ranks are here.
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.0.barrier())
    }

    /// The bytes of one rank, of which all have as many.
    fn broadcast<'py>(&self, py: Python<'py>, bytes: &[u8], root: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = bytes.to_vec();
        self.exchanged(py, |world| world.broadcast(root, &mut bytes).map(|()| bytes))
    }

    /// The bytes of all ranks, one behind the other, of which each has as many.
    fn all_gather<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut all = vec![0; bytes.len() * self.0.size()];
        self.exchanged(py, |world| world.all_gather(bytes, &mut all).map(|()| all))
    }

    /// The bytes of each rank, which need not have as many.
    fn gather<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = run(py, || self.0.gather_bytes(bytes))?;
        Ok(all.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Part `r` of every rank's bytes for rank `r`.
    fn all_to_all<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut incoming = vec![0; bytes.len()];
        self.exchanged(py, |world| world.all_to_all(bytes, &mut incoming).map(|()| incoming))
    }

    /// Sums of 32-bit floats, in whatever order is fastest.
    fn sum<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut sums = numbers(bytes);
        self.exchanged(py, |world| world.all_reduce(&mut sums).map(|()| bytes_of(&sums)))
    }

    /// This rank's part of the sums of 32-bit floats.
    fn sum_scatter<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let all = numbers(bytes);
        let mut mine = vec![0.0; all.len() / self.0.size()];
        self.exchanged(py, |world| world.reduce_scatter(&all, &mut mine).map(|()| bytes_of(&mine)))
    }

    /// An error, the same one on all ranks, unless they have the same values under these names.
    fn agree(&self, py: Python<'_>, values: Vec<(String, String)>) -> PyResult<()> {
        let values: Vec<(&str, String)> =
            values.iter().map(|(name, value)| (&name[..], value.clone())).collect();
        run(py, || agree(&*self.0, &values))
    }

    /// Ends all ranks, whatever they are doing.
    fn abort(&self, code: i32) {
        self.0.abort(code);
    }
}

/// The mean of all ranks' gradients; `volta.nn.parallel.DistributedDataParallel` is made of it.
#[pyclass(name = "GradientExchange", module = "volta._volta._distributed", frozen)]
pub struct PyGradientExchange(Mutex<GradientExchange>);

impl PyGradientExchange {
    fn lock(&self) -> MutexGuard<'_, GradientExchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyGradientExchange {
    #[new]
    fn new(world: PyRef<'_, PyWorld>, bucket_bytes: Option<usize>) -> PyResult<PyGradientExchange> {
        let mut options = ExchangeOptions::default();
        if let Some(bytes) = bucket_bytes {
            if bytes == 0 {
                return Err(PyValueError::new_err("buckets of 0 bytes hold no gradients"));
            }
            options.bucket_bytes = bytes;
        }
        let world = world.0.clone();
        let exchange = call(|| GradientExchange::new(world, options))?;
        Ok(PyGradientExchange(Mutex::new(exchange)))
    }

    /// Replaces the gradients of these parameters by their means over all ranks.
    fn average(&self, py: Python<'_>, parameters: Vec<TensorArg>) -> PyResult<()> {
        let parameters: Vec<_> = parameters.into_iter().map(|p| p.0).collect();
        run(py, || self.lock().average(&parameters))
    }

    /// Bytes that this rank gave, seconds that they were under way, and seconds of these that were waited for.
    fn cost(&self, py: Python<'_>) -> PyResult<(u64, f64, f64)> {
        let cost = run(py, || Ok(self.lock().cost()))?;
        Ok((cost.bytes, cost.under_way.as_secs_f64(), cost.waited.as_secs_f64()))
    }
}

/// The module `volta._volta._distributed`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_distributed")?;
    module.add("HAS_MPI", cfg!(feature = "mpi"))?;
    module.add_class::<PySession>()?;
    module.add_class::<PyWorld>()?;
    module.add_class::<PyGradientExchange>()?;
    parent.add_submodule(&module)
}
