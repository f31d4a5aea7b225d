//! How far a training is: a bar on a terminal, lines elsewhere.

use super::event::Event;
use super::history::Row;
use super::progress_bar::ProgressBar;
use super::trainer::SKIPPED;
use std::io::Write;

/// Shows events as they come.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn new(steps: u64, done: u64) -> Progress {
        Progress { bar: ProgressBar::new(steps, done) }
    }

    pub fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::PassedOver { path, reason } => {
                self.say(&format!("passing over {}, which is damaged: {reason}", path.display()));
            }
            Event::NonFinite { step, what, .. } => self.say(&format!("step {step:>6}  {what} is not finite")),
            Event::WentBack { step, factor } => {
                self.say(&format!("going back to step {step}, with learning rates times {factor}"));
                self.bar.set_position(*step);
            }
            Event::Resumed { step, epoch } => {
                self.say(&format!("going on after step {step}, epoch {}", epoch + 1));
            }
            Event::Step { step } => self.bar.set_position(*step),
            Event::Measured { step, rows } => {
                let text = text(rows);
                if self.bar.is_hidden() {
                    self.say(&format!("step {step:>6}  {text}"));
                } else {
                    self.bar.set_message(text);
                }
            }
            Event::Validated { step, rows, better } => {
                self.say(&format!("step {step:>6}  {}{}", text(rows), if *better { "  (best)" } else { "" }));
            }
            Event::Saved { .. } | Event::Profiled { .. } => {}
            Event::Finished { .. } => self.bar.finish_and_clear(),
        }
    }

    fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            // Where nobody reads standard error there is nobody to tell, and no reason to end a training.
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            self.bar.println(line);
        }
    }
}

/// `train loss 0.1234, accuracy 0.98, 1234 per second`.
fn text(rows: &[Row]) -> String {
    let mut words = Vec::new();
    let mut part = "";
    for row in rows.iter().filter(|row| row.name != SKIPPED || row.value > 0.0) {
        let (of, name) = row.name.rsplit_once('/').unwrap_or(("", &row.name));
        let prefix = if of.is_empty() || of == part { String::new() } else { format!("{of} ") };
        part = if of.is_empty() { part } else { of };
        words.push(match name {
            "accuracy" => format!("{prefix}accuracy {:.2}%", 100.0 * row.value),
            "learning_rate" => format!("rate {:.2e}", row.value),
            SKIPPED => format!("{} steps skipped", row.value),
            "per_second" => format!("{:.0} a second", row.value),
            _ => format!("{prefix}{name} {:.4}", row.value),
        });
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_like_a_sentence() {
        let row = |name: &str, value| Row { step: 1, epoch: 1, name: name.into(), value };
        let rows = [row("train/loss", 0.5), row("train/accuracy", 0.981), row("learning_rate", 1e-3)];
        assert_eq!(text(&rows), "train loss 0.5000, accuracy 98.10%, rate 1.00e-3");
    }
}
