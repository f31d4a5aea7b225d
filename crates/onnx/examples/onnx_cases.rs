//! Computes the cases of a file and compares: a line of name and verdict for each. `scripts/test-peers` makes such files of the standard's
//! node tests and of networks that onnxruntime computed.
//!
//!     cargo run --release -p volta-ml-onnx --example onnx_cases -- FILE

#[path = "../tests/onnx/cases.rs"]
mod cases;

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("onnx_cases FILE: a file of cases is missing; scripts/test-peers makes one");
        std::process::exit(2);
    };
    let bytes = std::fs::read(&path).unwrap_or_else(|error| {
        eprintln!("{path}: {error}");
        std::process::exit(1);
    });
    for (name, case) in cases::read(&bytes) {
        let verdict = std::panic::catch_unwind(|| case.check()).unwrap_or(Err("panic".to_string()));
        match verdict {
            Ok(()) => println!("{name}\tok"),
            Err(wrong) => println!("{name}\t{}", wrong.replace(['\n', '\t'], " ")),
        }
    }
}
