//! Where the time of a run went: in products, in attention, in other kernels, and outside kernels.

use super::clock::span;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use volta::Profile;
use volta::parallel::ExchangeCost;

/// The times of profiled steps, and of the whole.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Kernels of all profiled steps, by kind.
    kinds: [Duration; KINDS.len()],
    /// How many steps were profiled, and the tokens they learnt from.
    profiled: u64,
    profiled_tokens: u64,
    /// How many steps there were, and the time they took with the loading of their data.
    pub steps: u64,
    pub training: Duration,
    /// The time spent waiting for data.
    pub waiting: Duration,
    pub tokens: u64,
    /// The most memory that the plan of a step needs.
    pub peak_bytes: usize,
    /// How many processes there were, and what their exchange has cost this one.
    pub ranks: usize,
    pub exchange: Option<ExchangeCost>,
}

/// What kernels are counted as, and how their kinds begin.
const KINDS: [(&str, &[&str]); 3] =
    [("matmul", &["matmul"]), ("attention", &["attention"]), ("other kernels", &[""])];

impl Times {
    /// Takes in a step of so many tokens that was profiled.
    pub fn add(&mut self, profile: &Profile, tokens: u64) {
        for kernel in &profile.kernels {
            let is = |begins: &[&str]| begins.iter().any(|b| kernel.kind.starts_with(b));
            let kind = KINDS.iter().position(|(_, begins)| is(begins)).expect("the last takes all");
            self.kinds[kind] += kernel.time;
        }
        self.profiled += 1;
        self.profiled_tokens += tokens;
    }

    /// Names, times over the whole run, and their shares of it. Times of kernels are those of the profiled steps,
    /// scaled to all tokens, since steps may differ.
    pub fn parts(&self) -> Vec<(&'static str, Duration, f64)> {
        if self.profiled_tokens == 0 || self.training.is_zero() {
            return Vec::new();
        }
        let scale = self.tokens as f64 / self.profiled_tokens as f64;
        let mut parts: Vec<(&'static str, Duration)> =
            KINDS.iter().zip(self.kinds).map(|((name, _), time)| (*name, time.mul_f64(scale))).collect();
        let kernels: Duration = parts.iter().map(|p| p.1).sum();
        parts.push(("outside kernels", self.training.saturating_sub(kernels)));
        let whole = self.training.max(kernels).as_secs_f64();
        parts.into_iter().map(|(name, time)| (name, time, time.as_secs_f64() / whole)).collect()
    }

    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.training.as_secs_f64().max(1e-9)
    }

    pub fn json(&self) -> Value {
        let parts: serde_json::Map<String, Value> = self
            .parts()
            .into_iter()
            .map(|(name, time, share)| {
                (name.to_string(), json!({"seconds": time.as_secs_f64(), "share": share}))
            })
            .collect();
        json!({
            "training_seconds": self.training.as_secs_f64(), "steps": self.steps, "tokens": self.tokens,
            "tokens_per_second": self.tokens_per_second(), "waiting_seconds": self.waiting.as_secs_f64(),
            "peak_bytes": self.peak_bytes, "profiled_steps": self.profiled, "parts": parts, "ranks": self.ranks,
            "exchange": self.exchange.map(|cost| json!({
                "bytes": cost.bytes, "seconds": cost.under_way.as_secs_f64(), "waited_seconds": cost.waited.as_secs_f64(),
                "hidden": cost.hidden(),
            })),
        })
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Profiling report: {} steps in {} ({:.0} tokens/s), peak memory of a step {:.1} MB",
            self.steps,
            span(self.training),
            self.tokens_per_second(),
            self.peak_bytes as f64 / 1e6
        )?;
        for (name, time, share) in self.parts() {
            writeln!(f, "  {name:<16} {:>12}  {:>5.1}%", span(time), 100.0 * share)?;
        }
        if let Some(cost) = &self.exchange {
            writeln!(
                f,
                "  exchange of gradients among {} ranks: {:.1} MB a step, {} under way, {:.0}% of it hidden",
                self.ranks,
                cost.bytes as f64 / 1e6 / self.steps.max(1) as f64,
                span(cost.under_way),
                100.0 * cost.hidden()
            )?;
        }
        write!(f, "  kernels as in {} profiled steps; waiting for data {}", self.profiled, span(self.waiting))
    }
}
