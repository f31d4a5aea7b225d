//! How a server listens, and what it takes on.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The context of a model that could see more, unless told otherwise.
const MAX_CONTEXT: usize = 8192;

/// How a server listens, and what it takes on. The default listens on the loopback alone.
#[derive(Clone)]
pub struct ServeOptions {
    /// The address.
    pub host: IpAddr,
    /// The port; 0 takes any that is free.
    pub port: u16,
    /// What clients must send as `Authorization: Bearer KEY`.
    pub api_key: Option<String>,
    /// Texts that are written at once.
    pub max_batch: usize,
    /// Texts that wait for a place; one more is refused.
    pub max_queue: usize,
    /// The most tokens of a text, with its prompt. The model's own, up to 8192, unless given.
    pub context: Option<usize>,
    /// Whether a text's numbers are the same to the bit whoever else is there: every step then costs what a full batch does.
    pub fixed_batch: bool,
    /// The most bytes of a request.
    pub max_body_bytes: usize,
    /// Connections that are open at once; one more is refused.
    pub max_connections: usize,
    /// How long a client may take over the head of a request; one that is idle is closed then, too.
    pub header_timeout: Duration,
    /// How long a client may take over the body of a request.
    pub body_timeout: Duration,
    /// How long a client may take nothing of its answer.
    pub write_timeout: Duration,
    /// How long requests may go on when the server was asked to stop.
    pub grace: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 8080,
            api_key: None,
            max_batch: 16,
            max_queue: 64,
            context: None,
            fixed_batch: false,
            max_body_bytes: 2 << 20,
            max_connections: 256,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(20),
        }
    }
}

impl ServeOptions {
    /// The context of a model that sees so many tokens.
    pub(crate) fn context_of(&self, model: usize) -> usize {
        self.context.unwrap_or(MAX_CONTEXT).min(model)
    }
}
