//! Optimizers, what is done with gradients and parameters around their steps, and schedules: against formulas in f64,
//! against PyTorch's numbers, and with the counters that show what was compiled and copied.

mod around;
mod formulas;
mod groups;
mod scaling;
mod schedules;
mod state;
mod support;
mod torch;

volta_testing::main!();
