//! The program `volta`, the command line: `volta` alone trains a small language model on stories that it tells itself.

mod bench;
mod device;
#[cfg(feature = "gpu")]
mod devices;
mod download;
mod inspect;
mod lm;
mod output;
mod pretrained;
mod quantize;
#[cfg(feature = "gpu")]
mod tune;
mod web;

use clap::{CommandFactory, Parser, Subcommand};
use output::{Failure, Outcome, Output};
use std::process::ExitCode;

/// Deep learning in pure Rust: train language models on any GPU, or on the CPU, and talk with them.
///
/// Without a command it trains a small model on built-in text for a minute or two, shows what it learns, and writes
/// the model and a report to the folder `models`.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand)]
enum Command {
    /// Train a language model on a text.
    Train(Box<lm::train::Options>),
    /// Fine-tune a model of others on your data: adapters of it, or all of it.
    Finetune(Box<lm::finetune::Options>),
    /// Talk with a model.
    Chat(lm::chat::Options),
    /// Let a model go on from a prompt.
    Generate(lm::generate::Options),
    /// Measure a model's loss and perplexity on a text.
    Eval(lm::eval::Options),
    /// Add adapters to a model's weights, and write it.
    Merge(pretrained::merge::Options),
    /// Make vectors of texts.
    Embed(pretrained::embed::Options),
    /// Serve a model to programs that speak OpenAI's interface, with a page to chat.
    #[cfg(feature = "serve")]
    Serve(Box<pretrained::serve::Options>),
    /// List the models that were trained.
    Models(lm::models::Options),
    /// Fetch a set of data by its name, or a model of the Hub as hf:OWNER/NAME; or list the sets.
    Download(download::Options),
    /// List where plans can run.
    #[cfg(feature = "gpu")]
    Devices(devices::Options),
    /// List the tensors of a file.
    Inspect(inspect::Options),
    /// Write a file's matrices in 4 or 8 bits.
    Quantize(quantize::Options),
    /// Measure workloads; one JSON line each.
    Bench(bench::Options),
    /// Find the fastest kernels for a model on this GPU, and remember them.
    #[cfg(feature = "gpu")]
    Tune(tune::Options),
    /// Serve the page that trains in a browser's tab, on this machine.
    Web(web::Options),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => return output::show(&said),
    };
    output::finish(run(&cli))
}

fn run(cli: &Cli) -> Outcome {
    volta::environment::check().map_err(|error| Failure::usage(&error))?;
    #[cfg(feature = "gpu")]
    devices::expect_no_session();
    let output = cli.output;
    match &cli.command {
        Some(Command::Train(options)) => lm::train::run(options, output),
        Some(Command::Finetune(options)) => lm::finetune::run(options, output),
        Some(Command::Chat(options)) => lm::chat::run(options, output),
        Some(Command::Generate(options)) => lm::generate::run(options, output),
        Some(Command::Eval(options)) => lm::eval::run(options, output),
        Some(Command::Merge(options)) => pretrained::merge::run(options, output),
        Some(Command::Embed(options)) => pretrained::embed::run(options, output),
        #[cfg(feature = "serve")]
        Some(Command::Serve(options)) => pretrained::serve::run(options, output),
        Some(Command::Models(options)) => lm::models::run(options, output),
        Some(Command::Download(options)) => download::run(options, output),
        #[cfg(feature = "gpu")]
        Some(Command::Devices(options)) => devices::run(options, output),
        Some(Command::Inspect(options)) => inspect::run(options, output),
        Some(Command::Quantize(options)) => quantize::run(options, output),
        Some(Command::Bench(options)) => bench::run(options),
        #[cfg(feature = "gpu")]
        Some(Command::Tune(options)) => tune::run(options, output),
        Some(Command::Web(options)) => web::run(options, output),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "volta", &mut script);
            output::say_part(&String::from_utf8_lossy(&script));
            Ok(())
        }
        None => lm::train::run(&lm::train::Options::main_job(), output),
    }
}
