//! A table with a line a run.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const HEADER: &str = "date\tdevice\tdata\tmodel\tsteps\tepochs\taverage_epoch_seconds\ttokens_per_second\ttrain_loss\tvalid_loss\tperplexity\tpath";

/// What a line says.
pub struct Line<'a> {
    pub date: &'a str,
    pub device: &'a str,
    pub data: &'a str,
    pub model: &'a str,
    pub steps: u64,
    pub epochs: f64,
    pub epoch_seconds: f64,
    pub tokens_per_second: f64,
    pub train_loss: Option<f64>,
    pub valid_loss: Option<f64>,
    pub path: &'a Path,
}

/// The table, to be written at its end; a new one begins with the names of the columns.
fn open(file: &Path) -> io::Result<File> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match File::options().append(true).create_new(true).open(file) {
        Ok(mut new) => {
            new.write_all(format!("{HEADER}\n").as_bytes())?;
            Ok(new)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => File::options().append(true).open(file),
        Err(error) => Err(error),
    }
}

/// Finds out whether lines can be added, before there is anything to say.
pub fn prepare(file: &Path) -> io::Result<()> {
    open(file).map(drop)
}

/// Adds a line.
pub fn add(file: &Path, line: &Line<'_>) -> io::Result<()> {
    let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.4}"));
    // A name with a tab in it must not become two columns.
    let clean = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let columns = [
        clean(line.date),
        clean(line.device),
        clean(line.data),
        clean(line.model),
        line.steps.to_string(),
        format!("{:.2}", line.epochs),
        format!("{:.2}", line.epoch_seconds),
        format!("{:.0}", line.tokens_per_second),
        number(line.train_loss),
        number(line.valid_loss),
        number(line.valid_loss.map(f64::exp)),
        clean(&line.path.display().to_string()),
    ];
    open(file)?.write_all(format!("{}\n", columns.join("\t")).as_bytes())
}
