//! What `volta.optim` and `volta.amp` are made of: the engine's optimizers behind one class, what is done with gradients
//! before a step, running averages of parameters, and loss scaling.

mod clip;
mod ema;
mod optimizer;
mod scaler;
mod state;

use pyo3::prelude::*;

/// The module `volta._volta._optim`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_optim")?;
    module.add_class::<optimizer::PyOptimizer>()?;
    module.add_class::<ema::PyEma>()?;
    module.add_class::<scaler::PyGradScaler>()?;
    clip::register(&module)?;
    parent.add_submodule(&module)
}
