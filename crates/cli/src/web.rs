//! `volta web`: the page that trains in a browser's tab, served on this machine alone.

mod server;

use super::output::{Failure, Outcome, Output};
use serde_json::json;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where `web/build` leaves the page, from the repository's root.
const BUILT: &str = "web/dist/page";

#[derive(clap::Args)]
pub struct Options {
    /// The port on the loopback; 0 takes any that is free. Browsers keep runs by address, so another port has other runs.
    #[arg(long, default_value_t = 8600)]
    port: u16,
    /// The folder of the built page. [default: web/dist/page of this repository]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Open it in a browser. This is the default at a terminal.
    #[arg(long, overrides_with = "no_open")]
    open: bool,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
}

/// Serves the page until the program is ended.
pub fn run(options: &Options, output: Output) -> Outcome {
    let folder = page(options.folder.as_deref())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(|error| {
        let port = options.port;
        Failure::Failed(format!(
            "cannot listen on port {port}: {error}; choose another with --port, or 0 for any"
        ))
    })?;
    let port = listener
        .local_addr()
        .map_err(|error| Failure::Failed(format!("cannot tell the port: {error}")))?
        .port();
    let url = format!("http://127.0.0.1:{port}/");
    output.result(&json!({"url": url, "folder": folder}), &url);
    output.note("Volta trains in your browser there. Ctrl-C ends it.");
    if options.open || (!options.no_open && std::io::stdout().is_terminal()) {
        open_browser(&url, output);
    }
    server::serve(&listener, port, &folder)
}

/// The folder of the page, if it is built.
fn page(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(folder) = given {
        return built(folder).ok_or_else(|| {
            Failure::Usage(format!("{} has no index.html: it is no built page", folder.display()))
        });
    }
    let program = std::env::current_exe().ok();
    let begin =
        [std::env::current_dir().ok(), program.as_deref().and_then(Path::parent).map(Path::to_path_buf)];
    begin.iter().flatten().flat_map(|from| from.ancestors()).find_map(|root| built(&root.join(BUILT))).ok_or_else(|| {
        Failure::Failed(format!(
            "the page is not built: run web/build in Volta's repository, which leaves it in {BUILT}, or name its folder with \
             --folder"
        ))
    })
}

fn built(folder: &Path) -> Option<PathBuf> {
    folder.join("index.html").is_file().then(|| folder.canonicalize().ok()).flatten()
}

/// Asks the system to open an address; where it cannot, there is the address to copy.
fn open_browser(url: &str, output: Output) {
    let command: (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let arguments = command.1.iter().map(OsString::from).chain([url.into()]);
    let quiet = Command::new(command.0)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if quiet.is_err() {
        output.note(format_args!("No browser could be opened: go to {url}"));
    }
}
