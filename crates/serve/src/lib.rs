//! Language models behind OpenAI's HTTP interface.
//!
//! `http` takes connections and requests, `api` reads and answers them. `engine` is the thread on which the model runs: one batch that
//! texts join and leave at every token. `grammar` says which tokens may come next where an answer must be JSON. `metrics` counts.
//!
//! ```no_run
//! use volta::models::Llm;
//! use volta_serve::{ServeOptions, ServedModels, Server};
//! let models = ServedModels::new().with_llm("smollm2", Llm::load("SmolLM2-135M-Instruct")?);
//! let server = Server::start(models, ServeOptions::default())?;
//! println!("http://{}/", server.address());
//! server.run()?; // until somebody calls `stop` of `server.stopper()`
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api;
mod engine;
mod grammar;
mod http;
mod json;
mod metrics;
mod options;

pub use http::{ServedModels, Server, Stopper};
pub use options::ServeOptions;
