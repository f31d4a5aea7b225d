//! What Volta's executors and its engine share: types, shapes, errors, ops, plans, telemetry.
//!
//! This crate is a part of [`volta`](https://crates.io/crates/volta-ml), which re-exports what users name. All else is between
//! Volta's own crates, and may change with every version.

#![allow(missing_docs, reason = "what users name is documented; the rest is for Volta's own crates")]

pub mod buffer;
pub mod call;
pub mod clock;
#[warn(missing_docs)]
pub mod device;
#[warn(missing_docs)]
pub mod dtype;
pub mod environment;
#[warn(missing_docs)]
pub mod error;
#[warn(missing_docs)]
pub mod interrupt;
pub mod op;
pub mod plan;
#[warn(missing_docs)]
pub mod printable;
pub mod random;
pub mod regular_file;
#[warn(missing_docs)]
pub mod shape;
pub mod telemetry;
pub mod wait;
pub mod warn;
