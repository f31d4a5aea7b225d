//! The training loop that people otherwise write again and again, and its parts, each of use by itself.
//!
//! `metrics` takes means on the device, `history` keeps and logs them, `chart` draws them, `tensorboard` writes them
//! for TensorBoard.

mod chart;
mod history;
mod metrics;
mod tensorboard;

pub use chart::{Chart, Series};
pub use history::{CsvLog, History, Row, read_csv};
pub use metrics::{Meter, Outcome, accuracy, classified};
pub use tensorboard::EventWriter;
