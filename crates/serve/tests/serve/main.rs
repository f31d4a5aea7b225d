//! The server over the loopback, with tiny models of random weights.

mod access;
mod answers;
mod client;
mod errors;
mod formats;
mod hostile;
mod load;

volta_testing::main!();
