//! A run while it runs: a bar on a terminal, lines without one, JSON for machines.

use super::clock::span;
use crate::output::{Output, say, say_error};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use volta::text::printable;
use volta::train::{Event, Row};
use volta_lm::EpochMath;

/// Shows events as they come.
pub struct Watch {
    output: Output,
    bar: ProgressBar,
    started: Instant,
    first: u64,
    total: u64,
    pace: EpochMath,
    /// The seconds that the kernels take for a token, as the last profiled step had it.
    kernels: Option<f64>,
    /// When the last line was written, without a terminal.
    last: Option<Instant>,
}

/// Lines without a terminal are this far apart.
const QUIET: Duration = Duration::from_secs(10);

impl Watch {
    pub fn new(output: Output, total: u64, pace: EpochMath) -> Watch {
        let bar = if output.quiet || output.json { ProgressBar::hidden() } else { ProgressBar::new(total) };
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} [{elapsed}, {eta} left]");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Watch { output, bar, started: Instant::now(), first: 0, total, pace, kernels: None, last: None }
    }

    /// Something to be read above the bar.
    pub fn say(&self, text: &str) {
        if self.output.quiet || self.output.json {
            return;
        }
        if self.bar.is_hidden() {
            say(text);
        } else {
            self.bar.println(printable(text));
        }
    }

    pub fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Resumed { step, .. } => {
                self.first = *step;
                self.bar.set_position(*step);
                self.bar.reset_eta();
                self.say(&format!("Going on after step {step}."));
                self.output.event(&json!({"event": "resumed", "step": step}));
            }
            Event::PassedOver { path, reason } => {
                let path = path.display();
                // Also if nothing but errors is asked for: some steps are made again.
                let warning = format!("warning: passing over {path}, which is damaged: {reason}");
                self.bar.suspend(|| say_error(&warning));
                self.output
                    .event(&json!({"event": "damaged", "checkpoint": path.to_string(), "reason": reason}));
            }
            Event::NonFinite { .. } => self.bar.finish_and_clear(),
            Event::Step { step } => self.bar.set_position(*step),
            Event::Profiled { step, profile, .. } => {
                self.kernels = Some(profile.total().as_secs_f64() / self.pace.tokens_of(*step) as f64);
            }
            Event::Measured { step, rows } => self.measured(*step, rows),
            Event::Validated { step, rows, better } => {
                let text = format!(
                    "step {step}: validation loss {:.4}, perplexity {:.2}{}",
                    value(rows, "loss"),
                    value(rows, "perplexity"),
                    if *better { "" } else { " (no better)" }
                );
                self.say(&text);
                self.output.event(&numbers("validation", *step, rows));
            }
            Event::Saved { step } => self.output.event(&json!({"event": "saved", "step": step})),
            Event::Finished { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
    }

    fn measured(&mut self, step: u64, rows: &[Row]) {
        let share = self.kernels.map(|seconds| (seconds * value(rows, "per_second")).min(1.0));
        let busy = share.map_or(String::new(), |share| format!(", {:.0}% in kernels", 100.0 * share));
        let skipped = rows.iter().find(|row| row.name == "skipped_steps" && row.value > 0.0);
        let skipped = skipped.map_or(String::new(), |row| format!(", {} steps skipped", row.value));
        let text = format!(
            "loss {:.4}, rate {:.1e}, {:.0} tokens/s{busy}{skipped}",
            value(rows, "loss"),
            value(rows, "learning_rate"),
            value(rows, "per_second")
        );
        self.output.event(&numbers("train", step, rows));
        if !self.bar.is_hidden() {
            self.bar.set_message(text);
            return;
        }
        if self.last.is_some_and(|t| t.elapsed() < QUIET) && step < self.total {
            return;
        }
        self.last = Some(Instant::now());
        let done = step.saturating_sub(self.first).max(1);
        let left = self.started.elapsed().mul_f64(self.total.saturating_sub(step) as f64 / done as f64);
        self.say(&format!("step {step}/{}: {text}, {} left", self.total, span(left)));
    }
}

/// The number whose name ends with `name`.
fn value(rows: &[Row], name: &str) -> f64 {
    rows.iter().find(|r| r.name.rsplit('/').next() == Some(name)).map_or(f64::NAN, |r| r.value)
}

fn numbers(event: &str, step: u64, rows: &[Row]) -> Value {
    let mut object = json!({"event": event, "step": step});
    for row in rows {
        let name = row.name.rsplit('/').next().unwrap_or(&row.name);
        object[name] = json!(row.value);
    }
    object
}
