//! The training loop that people otherwise write again and again, and its parts, each of use by itself.
//!
//! `trainer` is the loop, `training` one of its runs that is driven from outside, step by step; `options` what it is told, `event` what
//! it tells, `progress` how that is shown, `files` what stays of a run, `lock` who may write there, `health` whether its numbers are
//! finite. `metrics` takes means on the device, `history` keeps and logs them, `chart` draws them, `tensorboard` writes them for
//! TensorBoard.

mod chart;
mod event;
#[cfg_attr(target_arch = "wasm32", path = "no_files.rs")]
mod files;
mod health;
mod history;
mod lock;
mod metrics;
mod options;
mod progress;
mod progress_bar;
mod tensorboard;
mod trainer;
mod training;

pub use chart::{Chart, Series, escaped, stacked};
pub use event::Event;
pub use history::{CsvLog, History, Row, read_csv};
pub use lock::RunLock;
pub use metrics::{Means, Meter, Outcome, accuracy, classified, try_accuracy, try_classified};
pub use options::{OnNonFinite, TrainerOptions};
pub use tensorboard::EventWriter;
pub use trainer::Trainer;
pub use training::Training;
