//! What `volta.nn` is made of: parameters, the functions behind the layers, and what is done with all tensors of a module.
//! The layers themselves are Python classes over these.

mod attention;
mod conv;
mod functional;
mod init;
mod loss;
mod parameter;
mod recurrent;
mod state;

// What models of the engine have as parameters.
pub use parameter::PyParameter;

use pyo3::prelude::*;

/// The module `volta._volta._nn`.
pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = PyModule::new(parent.py(), "_nn")?;
    parameter::register(&module)?;
    init::register(&module)?;
    functional::register(&module)?;
    conv::register(&module)?;
    loss::register(&module)?;
    attention::register(&module)?;
    recurrent::register(&module)?;
    state::register(&module)?;
    parent.add_submodule(&module)
}
