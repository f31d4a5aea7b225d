//! What happened when: the host's work on plans and the kernels of every device, as a file that Perfetto and Chrome's
//! tracing page open.

use crate::clock::Instant;
use crate::device::Device;
use crate::plan::kernel::Kernel;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    Host,
    Device(Device),
}

/// Something that took time.
#[derive(Clone, Debug)]
struct Event {
    name: String,
    track: Track,
    /// Since the trace began.
    start: Duration,
    length: Duration,
    /// More about a kernel: its kind, its result, its arithmetic and its traffic.
    kernel: Option<(&'static str, String, u64, u64)>,
}

/// Everything since some moment.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    began: Instant,
    events: Vec<Event>,
}

impl Trace {
    pub fn begin() -> Trace {
        Trace { began: Instant::now(), events: Vec::new() }
    }

    /// The host did this until now.
    pub fn host(&mut self, name: &str, start: Instant) {
        let (start, length) = (start.saturating_duration_since(self.began), start.elapsed());
        self.events.push(Event { name: name.into(), track: Track::Host, start, length, kernel: None });
    }

    pub fn kernel(&mut self, kernel: &Kernel, device: Device, start: Instant, length: Duration) {
        let result = kernel.result();
        let about = (kernel.kind(), result, kernel.flops, kernel.bytes_read + kernel.bytes_written);
        self.events.push(Event {
            name: kernel.label.clone(),
            track: Track::Device(device),
            start: start.saturating_duration_since(self.began),
            length,
            kernel: Some(about),
        });
    }

    /// The trace as JSON, in the form of Chrome's trace events.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut tracks = vec![Track::Host];
        for event in &self.events {
            if !tracks.contains(&event.track) {
                tracks.push(event.track);
            }
        }
        writeln!(out, "{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [")?;
        write!(out, "{}", named("process_name", 0, "volta"))?;
        for (thread, track) in tracks.iter().enumerate() {
            let name = match track {
                Track::Host => "host".to_string(),
                Track::Device(device) => device.to_string(),
            };
            write!(out, ",\n{}", named("thread_name", thread, &name))?;
        }
        for event in &self.events {
            let thread = tracks.iter().position(|t| *t == event.track).expect("listed above");
            write!(out, ",\n{}", event.json(thread))?;
        }
        writeln!(out, "\n]}}")
    }
}

/// The name of the process or of a thread.
fn named(what: &str, thread: usize, name: &str) -> String {
    let name = quoted(name);
    format!(
        "{{\"name\": \"{what}\", \"ph\": \"M\", \"pid\": 1, \"tid\": {thread}, \"args\": {{\"name\": {name}}}}}"
    )
}

impl Event {
    fn json(&self, thread: usize) -> String {
        let micros = |d: Duration| d.as_secs_f64() * 1e6;
        let mut text = format!(
            "{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 1, \"tid\": {thread}, \"ts\": {:.3}, \"dur\": {:.3}",
            quoted(&self.name),
            if self.kernel.is_some() { "kernel" } else { "host" },
            micros(self.start),
            micros(self.length)
        );
        if let Some((kind, result, flops, bytes)) = &self.kernel {
            let _ = write!(
                text,
                ", \"args\": {{\"kind\": {}, \"result\": {}, \"flops\": {flops}, \"bytes\": {bytes}}}",
                quoted(kind),
                quoted(result)
            );
        }
        text + "}"
    }
}

/// A string as JSON writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_are_quoted_whatever_is_in_them() {
        assert_eq!(quoted("a + b"), "\"a + b\"");
        assert_eq!(quoted("say \"x\\y\"\n…\u{1}"), "\"say \\\"x\\\\y\\\"\\u000a…\\u0001\"");
    }
}
