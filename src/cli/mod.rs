//! The command line: `volta` alone trains a small network, `volta bench` measures.

mod bench;
mod demo;

use clap::{Parser, Subcommand};

/// Deep learning in pure Rust.
///
/// Without a command it trains a small network on data it makes itself and shows the plan of a step.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: demo::Options,
}

#[derive(Subcommand)]
enum Command {
    /// Measure workloads; one JSON line each.
    Bench(bench::Options),
}

pub fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Bench(options)) => bench::run(&options),
        None => demo::run(&cli.demo),
    }
}
