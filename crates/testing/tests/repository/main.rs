//! What holds of the repository and not of a program: imports, names, variables, dependencies.

mod dependencies;
mod layers;
mod public_api;
mod sources;
mod variables;
