//! Makes JavaScript, types and the `.wasm` of the module that Cargo built: `volta-bindgen MODULE FOLDER`.
//!
//! The program `wasm-bindgen` does the same, and brings a server, an HTTP client and TLS along, which take longer to build than this.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, folder] = &arguments[..] else {
        eprintln!("volta-bindgen: give the module and the folder to write to");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .out_name("volta")
        .typescript(true)
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("volta-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
