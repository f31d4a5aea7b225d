//! ONNX's files: what the standard's tests and onnxruntime compute of them, training, hostile ones, and what Volta writes.
//!
//! `scripts/make-onnx-fixtures` makes the files; `scripts/test-peers` runs all of the standard's tests, and onnxruntime itself.

mod cases;
mod exported;
mod hostile;
mod imported;
mod networks;
mod nodes;

use std::path::PathBuf;

/// A file of the fixtures.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/onnx/fixtures").join(name)
}

fn cases_of(name: &str) -> std::collections::BTreeMap<String, cases::Case> {
    cases::read(&std::fs::read(fixture(name)).expect("a fixture"))
}

volta_testing::main!();
