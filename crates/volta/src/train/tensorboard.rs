//! TensorBoard's event files: scalars that `tensorboard --logdir` shows.
//!
//! A file is a row of records, each framed by its length and two check sums; a record is a protocol buffer of which
//! four fields are used here: wall time, step, file version, and a summary of one tag and one number.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes scalars into an event file of its own.
pub struct EventWriter {
    file: BufWriter<File>,
    path: PathBuf,
}

impl EventWriter {
    /// A new file in `folder`, which is made if it is not there.
    pub fn create(folder: impl AsRef<Path>) -> Result<EventWriter> {
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::io(folder, &e, "make the folder for event files"))?;
        let now = now();
        // TensorBoard reads files in the order of their names, and takes any name with this word in it.
        let name = format!("events.out.tfevents.{:010}.{}.volta", now as u64, std::process::id());
        let mut path = folder.join(&name);
        // A run that began within the same second keeps its file.
        let mut number = 0;
        let file = loop {
            match File::create_new(&path) {
                Ok(file) => break file,
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    number += 1;
                    path = folder.join(format!("{name}.{number}"));
                }
                Err(e) => return Err(Error::io(&path, &e, "create the event file")),
            }
        };
        let mut writer = EventWriter { file: BufWriter::new(file), path };
        let mut event = Message::default();
        event.double(1, now);
        event.text(3, "brain.Event:2");
        writer.record(&event.0)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a number under a tag such as `loss/train`.
    pub fn scalar(&mut self, tag: &str, value: f64, step: u64) -> Result<()> {
        self.record(&scalar_event(tag, value as f32, step, now()))
    }

    /// Hands everything to the operating system.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|e| Error::io(&self.path, &e, "write the event file"))
    }

    fn record(&mut self, data: &[u8]) -> Result<()> {
        self.file.write_all(&framed(data)).map_err(|e| Error::io(&self.path, &e, "write the event file"))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn scalar_event(tag: &str, value: f32, step: u64, time: f64) -> Vec<u8> {
    let mut entry = Message::default();
    entry.text(1, tag);
    entry.float(2, value);
    let mut summary = Message::default();
    summary.bytes(1, &entry.0);
    let mut event = Message::default();
    event.double(1, time);
    event.number(2, step);
    event.bytes(5, &summary.0);
    event.0
}

/// Length, check sum of the length, data, check sum of the data.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend(length);
    out.extend(masked(crc32c(&length)).to_le_bytes());
    out.extend(data);
    out.extend(masked(crc32c(data)).to_le_bytes());
    out
}

/// Check sums of data that holds check sums are masked, lest they be weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The Castagnoli check sum.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 }
            },
        )
    })
}

/// A protocol buffer while it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// The key of a field: its number and how its value is written.
    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn number(&mut self, field: u64, n: u64) {
        self.key(field, 0);
        self.varint(n);
    }

    fn double(&mut self, field: u64, x: f64) {
        self.key(field, 1);
        self.0.extend(x.to_le_bytes());
    }

    fn float(&mut self, field: u64, x: f32) {
        self.key(field, 5);
        self.0.extend(x.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, data: &[u8]) {
        self.key(field, 2);
        self.varint(data.len() as u64);
        self.0.extend(data);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_sum_has_its_published_value() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn an_event_is_written_byte_for_byte() {
        let event = scalar_event("a", 1.0, 300, 2.0);
        let expected = [
            &[0x09][..],
            &2f64.to_le_bytes(),
            &[0x10, 0xac, 0x02],
            &[0x2a, 10, 0x0a, 8, 0x0a, 1, b'a', 0x15],
            &1f32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(event, expected);
    }

    #[test]
    fn a_file_is_a_row_of_framed_records() {
        let folder = std::env::temp_dir().join(format!("volta-events-{}", std::process::id()));
        let mut writer = EventWriter::create(&folder).unwrap();
        for step in 0..3 {
            writer.scalar("loss", 0.5, step).unwrap();
        }
        writer.flush().unwrap();
        let data = std::fs::read(writer.path()).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let (mut at, mut records) = (0, 0);
        while at < data.len() {
            let length = u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize;
            let record = &data[at + 12..at + 12 + length];
            assert_eq!(framed(record), data[at..at + 16 + length]);
            at += 16 + length;
            records += 1;
        }
        assert_eq!(records, 4);
    }
}
