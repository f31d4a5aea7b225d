//! Writes networks made of Volta's layers as ONNX files, each with an input and the output that Volta computes: a line of JSON for each.
//! `scripts/test-peers` compares them with what onnxruntime computes.
//!
//!     cargo run --release -p volta-ml-onnx --example onnx_export -- FOLDER

#[path = "../tests/onnx/networks.rs"]
mod networks;

use std::path::PathBuf;
use volta::{DType, Result, no_grad};
use volta_onnx::Export;

fn main() -> Result<()> {
    let Some(folder) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("onnx_export FOLDER: the folder to write to is missing");
        std::process::exit(2);
    };
    for network in networks::all() {
        let file = folder.join(format!("{}.onnx", network.name));
        Export::new(&*network.module)
            .input("x", &network.example)
            .save(&file, |x| Ok(vec![("y", network.forward(&x[0])?)]))?;
        // Another batch than the example's.
        let x = network.input(3);
        let y = no_grad(|| network.forward(&x))?;
        let numbers = |t: &volta::Tensor| t.try_to_dtype(DType::F64)?.try_to_vec::<f64>();
        println!(
            "{{\"file\":{:?},\"dtype\":\"{}\",\"shape\":{:?},\"input\":{:?},\"output\":{:?}}}",
            file.display().to_string(),
            x.dtype(),
            x.shape().to_vec(),
            numbers(&x)?,
            numbers(&y)?
        );
    }
    Ok(())
}
