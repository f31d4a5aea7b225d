//! A progress bar; without the feature `progress`, one that is never seen.

#[cfg(feature = "progress")]
use indicatif::ProgressStyle;

/// A bar on standard error, where that is a terminal.
pub(super) struct ProgressBar(#[cfg(feature = "progress")] indicatif::ProgressBar);

#[cfg(feature = "progress")]
impl ProgressBar {
    pub fn new(steps: u64, done: u64) -> ProgressBar {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} [{elapsed} < {eta}] {msg}");
        let bar = indicatif::ProgressBar::new(steps).with_position(done);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.reset_eta();
        ProgressBar(bar)
    }

    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    pub fn set_position(&self, step: u64) {
        self.0.set_position(step);
    }

    pub fn set_message(&self, message: String) {
        self.0.set_message(message);
    }

    pub fn println(&self, line: &str) {
        self.0.println(line);
    }

    pub fn finish_and_clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(not(feature = "progress"))]
impl ProgressBar {
    pub fn new(_: u64, _: u64) -> ProgressBar {
        ProgressBar()
    }

    pub fn is_hidden(&self) -> bool {
        true
    }

    pub fn set_position(&self, _: u64) {}

    pub fn set_message(&self, _: String) {}

    pub fn println(&self, _: &str) {}

    pub fn finish_and_clear(&self) {}
}
