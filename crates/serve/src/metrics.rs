//! What the server counts, in Prometheus' text form.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that others read.
#[derive(Default)]
pub struct Number(AtomicU64);

impl Number {
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub fn sub(&self, less: usize) {
        self.0.fetch_sub(less as u64, Ordering::Relaxed);
    }

    pub fn set(&self, value: usize) {
        self.0.store(value as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub struct Metrics {
    /// Texts that are being written.
    pub batch: Number,
    pub connections: Number,
    pub refused_connections: Number,
    pub prompt_tokens: Number,
    pub written_tokens: Number,
    /// Texts whose client went.
    pub cancelled: Number,
    first_tokens: Number,
    first_token_micros: Number,
    /// By path and status.
    answers: Mutex<BTreeMap<(&'static str, u16), u64>>,
}

impl Metrics {
    /// The time from a request to its first token.
    pub fn first_token(&self, after: Duration) {
        self.first_tokens.add(1);
        self.first_token_micros.add(after.as_micros() as usize);
    }

    /// An answer to a path.
    pub fn answered(&self, path: &'static str, status: u16) {
        let mut answers = self.answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *answers.entry((path, status)).or_default() += 1;
    }

    /// All of it. `load` are the texts that are written or wait.
    pub fn text(&self, load: usize) -> String {
        let waiting = (load as u64).saturating_sub(self.batch.get());
        let table = [
            ("texts_running", "gauge", "Texts that are being written.", self.batch.get()),
            ("texts_waiting", "gauge", "Texts that wait or whose prompt is being read.", waiting),
            ("connections", "gauge", "Open connections.", self.connections.get()),
            (
                "connections_refused_total",
                "counter",
                "Connections beyond the limit.",
                self.refused_connections.get(),
            ),
            ("prompt_tokens_total", "counter", "Tokens of prompts that were read.", self.prompt_tokens.get()),
            ("generated_tokens_total", "counter", "Tokens that were written.", self.written_tokens.get()),
            ("texts_cancelled_total", "counter", "Texts whose client went.", self.cancelled.get()),
        ];
        let mut out = String::new();
        for (name, kind, help, value) in table {
            let _ =
                writeln!(out, "# HELP volta_{name} {help}\n# TYPE volta_{name} {kind}\nvolta_{name} {value}");
        }
        let seconds = self.first_token_micros.get() as f64 / 1e6;
        let count = self.first_tokens.get();
        let name = "volta_time_to_first_token_seconds";
        let _ = writeln!(out, "# HELP {name} From a request to its first token.\n# TYPE {name} summary");
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {count}");
        let name = "volta_http_requests_total";
        let _ = writeln!(out, "# HELP {name} Answers by path and status.\n# TYPE {name} counter");
        let answers = self.answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for ((path, status), count) in answers.iter() {
            let _ = writeln!(out, "{name}{{path=\"{path}\",status=\"{status}\"}} {count}");
        }
        out
    }
}
