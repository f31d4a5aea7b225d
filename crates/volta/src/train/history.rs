//! What a run measured, step by step: kept in memory, appended to a CSV file, drawn as curves.

use super::chart::{Chart, Series};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::io::atomic;
use crate::regular_file;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Optimizer steps done.
    pub step: u64,
    /// The epoch it belongs to, from 1.
    pub epoch: u64,
    /// What was measured: `train/loss`, `validation/accuracy`.
    pub name: String,
    /// The number.
    pub value: f64,
}

/// All that was measured, in the order in which it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One number each.
    pub rows: Vec<Row>,
}

impl History {
    /// The values of a name with their steps.
    pub fn series(&self, name: &str) -> Vec<(u64, f64)> {
        self.rows.iter().filter(|r| r.name == name).map(|r| (r.step, r.value)).collect()
    }

    /// The last value of a name.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.rows.iter().rev().find(|r| r.name == name).map(|r| r.value)
    }

    /// All names, in the order in which they first came.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        names
    }

    /// A chart a quantity: what has the same name after the last slash (`train/loss`, `validation/loss`) shares one.
    pub fn charts(&self) -> Vec<Chart> {
        let mut charts: Vec<Chart> = Vec::new();
        for name in self.names() {
            let (part, quantity) = name.rsplit_once('/').unwrap_or(("", name));
            let points = self.series(name).into_iter().map(|(step, v)| (step as f64, v)).collect();
            let series = Series { name: if part.is_empty() { quantity } else { part }.to_string(), points };
            match charts.iter_mut().find(|c| c.title == quantity) {
                Some(chart) => chart.series.push(series),
                None => charts.push(Chart {
                    title: quantity.to_string(),
                    x_label: "step".to_string(),
                    series: vec![series],
                }),
            }
        }
        charts
    }
}

/// Longer logs are not read.
const MAX_LOG_BYTES: usize = 1 << 30;

const HEADER: &str = "step,epoch,name,value";

/// A CSV file that grows with the run: `step,epoch,name,value`.
pub struct CsvLog {
    file: File,
    path: PathBuf,
}

impl CsvLog {
    /// A new file; one that is there already is replaced.
    pub fn create(path: impl AsRef<Path>) -> Result<CsvLog> {
        CsvLog::write(path.as_ref(), &History::default())
    }

    /// Goes on with the file of a run that stopped, without what it measured after `step`; also what it had measured.
    /// Without the file it begins a new one.
    pub fn resume(path: impl AsRef<Path>, step: u64) -> Result<(CsvLog, History)> {
        let path = path.as_ref();
        let way_out = |e: Error| {
            let message = format!("{}; to go on without what it holds, move this file away", e.message());
            Error::new(e.kind(), message)
        };
        let mut history = if path.exists() { read_csv(path).map_err(way_out)? } else { History::default() };
        history.rows.retain(|r| r.step <= step);
        Ok((CsvLog::write(path, &history)?, history))
    }

    fn write(path: &Path, history: &History) -> Result<CsvLog> {
        let lines: String = history.rows.iter().map(line).collect();
        // Whoever is killed here leaves the log as it was.
        atomic::write(path, |sink| sink(format!("{HEADER}\n{lines}").as_bytes()))?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|e| Error::io(path, &e, "write the log"))?;
        Ok(CsvLog { file, path: path.to_path_buf() })
    }

    /// Adds rows; they are with the operating system when this returns. A name with a comma or a line break is refused:
    /// nobody could read it back.
    pub fn add(&mut self, rows: &[Row]) -> Result<()> {
        if let Some(row) = rows.iter().find(|row| row.name.contains([',', '\n', '\r'])) {
            bail!(Argument, "{:?} is no name for the log: a comma or a line break would end it", row.name);
        }
        let lines: String = rows.iter().map(line).collect();
        self.file.write_all(lines.as_bytes()).map_err(|e| Error::io(&self.path, &e, "write the log"))
    }
}

fn line(row: &Row) -> String {
    format!("{},{},{},{}\n", row.step, row.epoch, row.name, row.value)
}

/// Reads what a [`CsvLog`] wrote. A last line that was cut off is passed over.
pub fn read_csv(path: impl AsRef<Path>) -> Result<History> {
    let path = path.as_ref();
    let text =
        regular_file::read_text(path, MAX_LOG_BYTES).map_err(|e| Error::io(path, &e, "read the log"))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut history = History::default();
    for (k, line) in whole.lines().enumerate().skip(1) {
        let row = parsed(line).ok_or_else(|| {
            let message = format!("line {} of {} is not {HEADER}: {line:?}", k + 1, path.display());
            Error::new(ErrorKind::Data, message)
        })?;
        history.rows.push(row);
    }
    Ok(history)
}

fn parsed(line: &str) -> Option<Row> {
    let mut parts = line.split(',');
    let row = Row {
        step: parts.next()?.parse().ok()?,
        epoch: parts.next()?.parse().ok()?,
        name: parts.next()?.to_string(),
        value: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: u64, name: &str, value: f64) -> Row {
        Row { step, epoch: 1, name: name.into(), value }
    }

    #[test]
    fn a_log_that_goes_on_forgets_what_came_after_the_checkpoint_and_a_torn_line() {
        let path = std::env::temp_dir().join(format!("volta-log-{}.csv", std::process::id()));
        let mut log = CsvLog::create(&path).unwrap();
        let rows =
            [row(1, "train/loss", 0.1 + 0.2), row(2, "train/loss", f64::NAN), row(3, "train/loss", 1e-30)];
        log.add(&rows).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"4,1,train/lo").unwrap();
        let (mut log, history) = CsvLog::resume(&path, 2).unwrap();
        assert_eq!(history.rows[0], rows[0]);
        assert_eq!(history.rows.len(), 2);
        log.add(&rows[2..]).unwrap();
        let back = read_csv(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(back.last("train/loss"), Some(1e-30));
        assert!(back.rows[1].value.is_nan());
    }

    #[test]
    fn a_line_that_is_not_one_is_named() {
        let path = std::env::temp_dir().join(format!("volta-bad-log-{}.csv", std::process::id()));
        std::fs::write(&path, "step,epoch,name,value\n1,1,a,0.5\n1,x,a,2\n").unwrap();
        let error = read_csv(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(error.message().contains("line 3"), "{error}");
    }

    #[test]
    fn what_is_measured_twice_shares_a_chart() {
        let rows = vec![row(1, "train/loss", 1.0), row(1, "validation/loss", 2.0), row(1, "rate", 3.0)];
        let charts = History { rows }.charts();
        let titles: Vec<(&str, usize)> = charts.iter().map(|c| (c.title.as_str(), c.series.len())).collect();
        assert_eq!(titles, [("loss", 2), ("rate", 1)]);
    }
}
