//! The training loop that people otherwise write again and again, and its parts, each of use by itself.
//!
//! `trainer` is the loop, `options` what it is told, `event` what it tells, `progress` how that is shown, `files` what
//! stays of a run, `lock` who may write there, `health` whether its numbers are finite. `metrics` takes means on the device, `history` keeps and logs them, `chart` draws them, `tensorboard`
//! writes them for TensorBoard.

mod chart;
mod event;
#[cfg(not(target_arch = "wasm32"))]
mod files;
#[cfg(not(target_arch = "wasm32"))]
mod health;
mod history;
#[cfg(not(target_arch = "wasm32"))]
mod lock;
mod metrics;
#[cfg(not(target_arch = "wasm32"))]
mod options;
#[cfg(not(target_arch = "wasm32"))]
mod progress;
#[cfg(not(target_arch = "wasm32"))]
mod progress_bar;
mod tensorboard;
#[cfg(not(target_arch = "wasm32"))]
mod trainer;

pub use chart::{Chart, Series, escaped, stacked};
pub use event::Event;
pub use history::{CsvLog, History, Row, read_csv};
#[cfg(not(target_arch = "wasm32"))]
pub use lock::RunLock;
pub use metrics::{Means, Meter, Outcome, accuracy, classified, try_accuracy, try_classified};
#[cfg(not(target_arch = "wasm32"))]
pub use options::{OnNonFinite, TrainerOptions};
pub use tensorboard::EventWriter;
#[cfg(not(target_arch = "wasm32"))]
pub use trainer::Trainer;
