//! The training loop that people otherwise write again and again, and its parts, each of use by itself.
//!
//! `trainer` is the loop, `training` one of its runs that is driven from outside, step by step; `options` what it is told, `event` what
//! it tells, `progress` how that is shown, `files` what stays of a run, `lock` who may write there, `health` whether its numbers are
//! finite. `metrics` takes means on the device, `history` keeps and logs them, `chart` draws them, `tensorboard` writes them for
//! TensorBoard.
//!
//! ```
//! use volta::data::{DataLoader, TensorDataset};
//! use volta::train::{Trainer, TrainerOptions, classified};
//! use volta::{Adam, DType, Linear, Module, Tensor};
//!
//! let x = Tensor::randn([256, 2]);
//! let y = (x.narrow(1, 0, 1) - x.narrow(1, 1, 1)).gt(0.0).squeeze(1).to_dtype(DType::I32);
//! let mut data = DataLoader::over(TensorDataset::from_tensors(&x, &y)?, 32).with_shuffle(true);
//! let model = Linear::new(2, 2, true);
//! let mut adam = Adam::new(model.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
//! let options = TrainerOptions { epochs: 5, progress: false, ..TrainerOptions::default() };
//! let history = Trainer::new(&model, &mut adam, options)
//!     .fit(&mut data, None, |x, y| Ok(classified(&model.try_forward(x)?, y)))?;
//! assert!(history.last("train/accuracy").unwrap() > 0.9);
//! # Ok::<(), volta::Error>(())
//! ```

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
