//! One file over HTTP into a `.part` file, with as many requests as it takes.

use super::Download;
use crate::error::{Error, ErrorKind, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// How a request ended short of a whole file.
enum Stop {
    /// Trying again may help.
    Again(String),
    /// It will not.
    Final(Error),
}

pub(super) fn fetch(url: &str, part: &Path, options: &Download, authorization: Option<&str>) -> Result<()> {
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(options.patience))
        .timeout_recv_response(Some(options.patience))
        .timeout_per_read(Some(options.patience))
        .build()
        .into();
    let bar = bar(url, options);
    let mut transfer = Transfer { url, part, agent, bar, authorization, version: None };
    let (mut tries, mut pause) = (0, options.pause);
    loop {
        let before = transfer.length();
        let why = match transfer.request() {
            Ok(()) => {
                transfer.bar.finish_and_clear();
                return Ok(());
            }
            Err(Stop::Final(error)) => return Err(error),
            Err(Stop::Again(why)) => why,
        };
        if transfer.length() > before {
            (tries, pause) = (0, options.pause);
        }
        if tries == options.retries {
            let message = format!(
                "{url} could not be fetched: {why}; check the network, ask again later, or name another place in \
                 VOLTA_MIRROR"
            );
            return Err(Error::new(ErrorKind::Io, message));
        }
        tries += 1;
        thread::sleep(pause);
        pause *= 2;
    }
}

fn bar(url: &str, options: &Download) -> ProgressBar {
    let target = if options.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style =
        ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
            .expect("a valid template");
    let name = url.rsplit('/').next().unwrap_or(url).to_string();
    ProgressBar::with_draw_target(None, target).with_style(style).with_message(name)
}

struct Transfer<'a> {
    url: &'a str,
    part: &'a Path,
    agent: Agent,
    bar: ProgressBar,
    /// The header that proves who asks. It does not follow to other hosts.
    authorization: Option<&'a str>,
    /// The server's mark of the version that is being fetched: what follows must be of the same.
    version: Option<String>,
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Where a range begins and how long the whole is: `bytes 5-9/10`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (place, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((place.split_once('-')?.0.parse().ok()?, total.parse().ok()?))
}

impl Transfer<'_> {
    fn length(&self) -> u64 {
        self.part.metadata().map_or(0, |m| m.len())
    }

    fn io(&self, error: &std::io::Error) -> Stop {
        Stop::Final(Error::io(self.part, error, "write a download"))
    }

    /// Asks for what is missing and appends it.
    fn request(&mut self) -> Result<(), Stop> {
        let have = self.length();
        let mut request = self.agent.get(self.url);
        if let Some(authorization) = self.authorization {
            request = request.header("Authorization", authorization);
        }
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
            if let Some(version) = &self.version {
                request = request.header("If-Range", version);
            }
        }
        let response = request.call().map_err(|e| match e {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                let message = format!("{} is no URL that can be asked for: {e}", self.url);
                Stop::Final(Error::new(ErrorKind::Argument, message))
            }
            e => Stop::Again(e.to_string()),
        })?;
        let status = response.status();
        let (start, total) = match status {
            StatusCode::OK => (0, response.body().content_length()),
            StatusCode::PARTIAL_CONTENT => match header(&response, "content-range").and_then(range) {
                Some((start, total)) if start == have => (start, Some(total)),
                _ => return Err(self.start_again("the server sent another range than was asked for")),
            },
            // Nothing is left to send, or what is here is of another file.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total =
                    header(&response, "content-range").and_then(|text| text.rsplit('/').next()?.parse().ok());
                return if total == Some(have) {
                    Ok(())
                } else {
                    Err(self.start_again("the server's file is shorter than what is here"))
                };
            }
            // Those that pass.
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                return Err(Stop::Again(format!("the server answered {status}")));
            }
            _ if status.is_server_error() => {
                return Err(Stop::Again(format!("the server answered {status}")));
            }
            _ => {
                let message = format!(
                    "{} could not be fetched: the server answered {status}; check the URL, or name another place in \
                     VOLTA_MIRROR",
                    self.url
                );
                return Err(Stop::Final(Error::new(ErrorKind::Io, message)));
            }
        };
        self.version = header(&response, "etag").filter(|tag| !tag.starts_with("W/")).map(String::from);
        self.receive(response, start, total)
    }

    /// Appends a body that begins at `start`.
    fn receive(&self, response: Response<Body>, start: u64, total: Option<u64>) -> Result<(), Stop> {
        let open = |options: &mut OpenOptions| options.create(true).open(self.part);
        let mut file = match start {
            0 => open(OpenOptions::new().write(true).truncate(true)),
            _ => open(OpenOptions::new().append(true)),
        }
        .map_err(|e| self.io(&e))?;
        self.bar.set_position(start);
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        let mut body = response.into_body().into_reader();
        let (mut have, mut block) = (start, vec![0; 1 << 16]);
        loop {
            match body.read(&mut block) {
                Ok(0) => break,
                Ok(n) => {
                    file.write_all(&block[..n]).map_err(|e| self.io(&e))?;
                    have += n as u64;
                    self.bar.set_position(have);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Stop::Again(format!("the connection broke after {have} bytes ({e})"))),
            }
        }
        match total {
            Some(total) if have < total => {
                Err(Stop::Again(format!("the connection ended after {have} of {total} bytes")))
            }
            // On the disk before it gets its name.
            _ => file.sync_all().map_err(|e| self.io(&e)),
        }
    }

    /// Forgets what is here, which does not fit what the server has.
    fn start_again(&self, why: &str) -> Stop {
        match File::create(self.part) {
            Ok(_) => Stop::Again(why.to_string()),
            Err(e) => self.io(&e),
        }
    }
}
