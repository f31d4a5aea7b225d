//! The native half of `micrograd_rs`.
//!
//! | module | holds |
//! |---|---|
//! | `engine` | the scalar engine, which knows nothing of Python |
//! | `device` | `Device` |
//! | `value` | `Value` |
//! | `network` | `Module`, `Neuron`, `Layer`, `MLP` |
//! | `tensor` | `Tensor` and `ValueBatch`, on Volta's tensors |

mod device;
mod engine;
mod network;
mod tensor;
mod value;

use pyo3::prelude::*;

/// Adds the module `_volta._micrograd`: its `Tensor` is not `volta.Tensor`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_micrograd")?;
    module.add_class::<device::Device>()?;
    module.add_class::<value::Value>()?;
    module.add_class::<network::Module>()?;
    module.add_class::<network::Neuron>()?;
    module.add_class::<network::Layer>()?;
    module.add_class::<network::Mlp>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<tensor::ValueBatch>()?;
    module.add_function(wrap_pyfunction!(value::live_values, &module)?)?;
    parent.add_submodule(&module)
}
