//! Connections, requests and answers over HTTP/1.1.
//!
//! `connection` takes them one by one, `timed_io` lets go of clients that take nothing; `router` finds what answers a path, `access`
//! says who may ask, `body` reads a request, and `reply` is what an answer is made of.

mod access;
mod body;
mod connection;
mod reply;
mod router;
mod timed_io;

use crate::api::embeddings::Encoder;
use crate::engine::{Engine, Limits};
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use volta::models::{Embedder, LanguageModel, Llm};

/// The models of a server, with the names that clients call them.
#[derive(Default)]
pub struct ServedModels {
    llm: Option<(String, Llm)>,
    embedder: Option<(String, Embedder)>,
}

impl ServedModels {
    /// None yet.
    pub fn new() -> ServedModels {
        ServedModels::default()
    }

    /// With one that writes.
    #[must_use]
    pub fn with_llm(self, name: &str, llm: Llm) -> ServedModels {
        ServedModels { llm: Some((name.to_string(), llm)), ..self }
    }

    /// With one that makes vectors.
    #[must_use]
    pub fn with_embedder(self, name: &str, embedder: Embedder) -> ServedModels {
        ServedModels { embedder: Some((name.to_string(), embedder)), ..self }
    }
}

/// What every request can see.
struct Shared {
    options: ServeOptions,
    engine: Option<(String, Arc<Engine>)>,
    encoder: Option<(String, Arc<Encoder>)>,
    metrics: Arc<Metrics>,
    since: u64,
}

/// A server that listens. It answers when it [runs](Self::run).
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<watch::Sender<bool>>,
}

/// Ends a server from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    /// Asks the server to end: nothing new is taken, and what is being answered has [`grace`](ServeOptions::grace).
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Listens, and starts the models' threads.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn start(models: ServedModels, options: ServeOptions) -> io::Result<Server> {
        let listener = TcpListener::bind((options.host, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let metrics = Arc::new(Metrics::default());
        let mut threads = Vec::new();
        let engine = match models.llm {
            None => None,
            Some((name, llm)) => {
                let limits = Limits {
                    batch: options.max_batch.max(1),
                    queue: options.max_queue,
                    context: options.context_of(llm.max_tokens()),
                    fixed: options.fixed_batch,
                };
                let (engine, thread) = Engine::start(Arc::new(llm), limits, metrics.clone())?;
                threads.push(thread);
                Some((name, Arc::new(engine)))
            }
        };
        let encoder = match models.embedder {
            None => None,
            Some((name, embedder)) => {
                let (encoder, thread) = Encoder::start(embedder, options.max_queue)?;
                threads.push(thread);
                Some((name, Arc::new(encoder)))
            }
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let shared = Arc::new(Shared { options, engine, encoder, metrics, since });
        Ok(Server { listener, address, shared, threads, stop: Arc::new(watch::Sender::new(false)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Answers until it is stopped.
    ///
    /// # Errors
    /// A system that gives no thread or no socket.
    pub fn run(self) -> io::Result<()> {
        let Server { listener, shared, threads, stop, .. } = self;
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().max_blocking_threads(4).build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            connection::accept(listener, &shared, stop.subscribe()).await;
            Ok::<(), io::Error>(())
        })?;
        // What is left is let go of, so that the models' threads have nobody who could hand in more.
        drop((runtime, shared));
        for thread in threads {
            thread.join().map_err(|_| io::Error::other("a model's thread has panicked"))?;
        }
        Ok(())
    }
}
