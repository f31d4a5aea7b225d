//! `volta serve`: models behind OpenAI's HTTP interface.

use super::{Adapter, called, find, load};
use crate::device::DeviceFlag;
use crate::output::{Failure, Outcome, Output, say_error};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volta::models::Embedder;
use volta_serve::{ServeOptions, ServedModels, Server};

/// What holds the key, so that nobody sees it among the arguments.
const KEY: &str = "VOLTA_API_KEY";

#[derive(clap::Args)]
#[command(after_help = "\
Any client of OpenAI's interface can ask, at http://127.0.0.1:8080/v1:
  curl localhost:8080/v1/chat/completions -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'
A browser finds a page to chat at http://127.0.0.1:8080/, Prometheus its numbers at /metrics. docs/serving.md has more.")]
pub struct Options {
    /// The model that writes: a folder as Hugging Face has it, a GGUF file, or hf:OWNER/NAME.
    #[arg(required_unless_present = "embeddings")]
    model: Option<String>,
    /// The encoder that makes vectors, for /v1/embeddings: a folder as Hugging Face has it, or hf:OWNER/NAME.
    #[arg(long, value_name = "MODEL")]
    embeddings: Option<String>,
    /// What clients call the model [default: its file's or folder's name]
    #[arg(long)]
    name: Option<String>,
    /// The address to listen on; 0.0.0.0 lets other machines ask.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The port; 0 takes any that is free.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// What clients must send as `Authorization: Bearer KEY` [default: VOLTA_API_KEY, or else nothing]
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// Texts that are written at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_batch: u16,
    /// Texts that wait for a place; one more is answered with 429.
    #[arg(long, default_value_t = 64)]
    max_queue: u16,
    /// The most tokens of a text, with its prompt [default: the model's own, up to 8192]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    context: Option<u32>,
    /// Always compute a full batch: a text has the same bits whoever else is there, and costs as much alone as all do.
    #[arg(long)]
    fixed_batch: bool,
    /// The most megabytes of a request.
    #[arg(long, default_value_t = 2, value_name = "MB", value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_body: u16,
    /// Connections at once; one more is answered with 503.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,
    /// Seconds that a client may take over a part of its request, or over taking nothing of an answer.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    timeout: u32,
    #[command(flatten)]
    adapter: Adapter,
    #[command(flatten)]
    device: DeviceFlag,
}

/// Answers until Ctrl-C.
pub fn run(options: &Options, output: Output) -> Outcome {
    let api_key = key(options)?;
    if api_key.is_none() && !options.host.is_loopback() {
        say_error(format_args!(
            "note: whoever reaches {} may ask: set {KEY} to a secret that clients must send",
            options.host
        ));
    }
    let device = options.device.open()?;
    let (mut models, mut names) = (ServedModels::new(), Vec::new());
    if let Some(model) = &options.model {
        let path = path_of(model)?;
        let name = options.name.clone().unwrap_or_else(|| called(&path));
        output.note(format_args!("Reading {} …", path.display()));
        models = models.with_llm(&name, load(&path, &options.adapter)?);
        names.push(name);
    } else if options.adapter.adapter.is_some() {
        return Err(Failure::Usage("--adapter is for a model that writes: name it".into()));
    }
    if let Some(model) = &options.embeddings {
        let path = path_of(model)?;
        let name = called(&path);
        models = models.with_embedder(&name, Embedder::load(&path)?);
        names.push(name);
    }
    let timeout = Duration::from_secs(options.timeout.into());
    let server = Server::start(
        models,
        ServeOptions {
            host: options.host,
            port: options.port,
            api_key,
            max_batch: options.max_batch.into(),
            max_queue: options.max_queue.into(),
            context: options.context.map(|context| context as usize),
            fixed_batch: options.fixed_batch,
            max_body_bytes: usize::from(options.max_body) << 20,
            max_connections: options.max_connections as usize,
            header_timeout: timeout,
            body_timeout: timeout,
            write_timeout: timeout,
            ..ServeOptions::default()
        },
    );
    let server = server.map_err(|error| {
        let (host, port) = (options.host, options.port);
        Failure::Failed(format!(
            "cannot listen on {host}, port {port}: {error}; choose another with --port, or 0 for any"
        ))
    })?;
    stop_on_interrupt(&server)?;
    let url = format!("http://{}/", server.address());
    output.result(&json!({"url": url, "models": names, "device": device.to_string()}), &url);
    output.note(format_args!("OpenAI's interface is at {url}v1, a page to chat at {url}. Ctrl-C ends it."));
    server.run().map_err(|error| Failure::Failed(format!("the server ended: {error}")))
}

fn path_of(model: &str) -> Result<PathBuf, Failure> {
    find(Some(model))?.ok_or_else(|| {
        Failure::Failed(format!(
            "{model} is no folder with a config.json and no GGUF file: `volta download hf:OWNER/NAME` fetches one"
        ))
    })
}

/// The key, which nothing prints.
fn key(options: &Options) -> Result<Option<String>, Failure> {
    let key = match &options.api_key {
        Some(key) => Some(key.clone()),
        None => match std::env::var(KEY) {
            Ok(key) => Some(key).filter(|key| !key.is_empty()),
            Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Failure::Usage(format!("the variable {KEY} is no UTF-8")));
            }
        },
    };
    match key.as_ref().is_some_and(|key| key.is_empty() || key.bytes().any(|byte| !byte.is_ascii_graphic())) {
        true => {
            Err(Failure::Usage("the key must be letters, digits and signs of ASCII, without blanks".into()))
        }
        false => Ok(key),
    }
}

/// The first Ctrl-C lets answers come to their end, the second does not.
fn stop_on_interrupt(server: &Server) -> Outcome {
    let stopper = server.stopper();
    let is_stopping = AtomicBool::new(false);
    let handler = move || {
        if is_stopping.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        say_error("\nfinishing what is being answered; Ctrl-C again ends at once");
        stopper.stop();
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::Failed(format!("cannot listen for Ctrl-C: {e}")))
}
