//! The module behind the npm package `volta-ml`: Volta's tensors, layers, optimizers and runs for JavaScript.
//!
//! JavaScript holds *handles*, numbers that name what lives here; the typed layer in `package/` makes classes of them and
//! frees them. No call panics: every function returns an error that JavaScript throws.
//!
//! | file | holds |
//! |---|---|
//! | `handles` | the tables of what JavaScript holds, and which intermediate results a backward pass lets go |
//! | `error` | Volta's errors as JavaScript's |
//! | `arguments` | tensors and numbers of a call |
//! | `device` | opening a device, its description, memory |
//! | `tensor` `ops` `losses` | tensors: made, read, differentiated; the table of ops; losses |
//! | `nn` `optim` | layers; optimizers and schedules |
//! | `files` | safetensors and checkpoints |
//! | `profile` | where the time goes, as JavaScript's objects |
//! | `raw` | a GPU without the engine |
//! | `runs` | training a digit classifier and a language model, one step at a time |
#![cfg(target_arch = "wasm32")]

mod arguments;
mod device;
mod error;
mod files;
mod handles;
mod losses;
mod nn;
mod object;
mod ops;
mod optim;
mod profile;
mod raw;
mod runs;
mod tensor;
