//! Where a run keeps what it writes. Runs of one name are numbered: `NAME`, `NAME-2`, `NAME-3`, the last one highest.

use super::last_run;
use super::model_file::{self, DEFAULT_FOLDER};
use crate::output::{Failure, Outcome};
use std::io::ErrorKind;
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};
use volta::io::clear_unfinished;
use volta::train::RunLock;
use volta_lm::config::quoted;
use volta_lm::{Config, RunManifest};

/// The files of a run.
pub struct Places {
    pub name: String,
    /// Checkpoints, metrics and TensorBoard's events.
    pub folder: PathBuf,
    pub model: PathBuf,
    pub page: PathBuf,
    pub log: PathBuf,
}

/// Places that no other process writes to for as long as this lives.
pub struct Locked {
    pub places: Places,
    pub lock: RunLock,
}

/// The ending of pages.
const PAGE: &str = "html";

impl Places {
    /// Those of a new run: of the number after all that are there, and with a folder that it has made itself, so that
    /// no other run takes the same.
    pub fn make(config: &Config, name: &str) -> Result<Locked, Failure> {
        let cannot = |folder: &Path, e| Failure::Failed(format!("cannot make {}: {e}", folder.display()));
        let taken = numbers(config, name, |_| true);
        let mut number = taken.last().map_or(1, |&last| last + 1);
        loop {
            let places = Places::at(config, name, number);
            let parent = places.folder.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(parent).map_err(|e| cannot(parent, e))?;
            match std::fs::create_dir(&places.folder) {
                Ok(()) => return places.locked(),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(cannot(&places.folder, e)),
            }
        }
    }

    /// Those of the last run of a name, and what it began with as far as its checkpoint says.
    pub fn last(config: &Config, name: &str) -> Result<(Locked, Option<RunManifest>), Failure> {
        for number in numbers(config, name, Path::is_dir).into_iter().rev() {
            let places = Places::at(config, name, number);
            let begun = last_run::read(&places.folder);
            // A number may also be a part of another run's own name.
            let is_other =
                |begun: &Option<RunManifest>| begun.as_ref().is_some_and(|begun| begun.name != name);
            if number > 1 && begun.as_ref().is_ok_and(is_other) {
                continue;
            }
            let locked = places.locked()?;
            // Whoever had the lock until now may have written meanwhile.
            let begun = last_run::read(&locked.places.folder)?;
            [&locked.places.model, &locked.places.page].into_iter().try_for_each(clear_unfinished)?;
            return Ok((locked, begun));
        }
        Err(Failure::Usage(format!(
            "there is no run to go on with: {} does not exist; leave out --resume to start one, or name the run by \
             --name",
            Path::new(&config.output).join(name).display()
        )))
    }

    fn locked(self) -> Result<Locked, Failure> {
        let lock = RunLock::acquire(&self.folder)?;
        Ok(Locked { places: self, lock })
    }

    fn at(config: &Config, name: &str, number: u64) -> Places {
        let output = Path::new(&config.output);
        let name = if number == 1 { name.to_string() } else { format!("{name}-{number}") };
        Places {
            folder: output.join(&name),
            model: output.join(format!("{name}.{}", model_file::ENDING)),
            page: output.join(format!("{name}.{PAGE}")),
            log: log(config),
            name,
        }
    }

    /// The command that talks with the model, for a shell in the same folder.
    pub fn chat(&self, output: &str) -> String {
        let mut words = vec!["volta".to_string(), "chat".to_string()];
        if Path::new(output) != Path::new(DEFAULT_FOLDER) {
            words.push(format!("--models={output}"));
        }
        // What begins like a flag is none behind this.
        if self.name.starts_with('-') {
            words.push("--".to_string());
        }
        words.push(self.name.clone());
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// The table that gets a line a run.
pub fn log(config: &Config) -> PathBuf {
    let (output, log) = (Path::new(&config.output), Path::new(&config.log));
    if log.components().count() > 1 { log.to_path_buf() } else { output.join(log) }
}

/// Refuses a name that lies outside of the output folder, and a log that is a folder.
pub fn check(config: &Config) -> Outcome {
    if let Some(name) = &config.name
        && !is_name(name)
    {
        return Err(Failure::Usage(format!(
            "{}: must be a name in the output folder, and none that leads out of it",
            config.cite("name")
        )));
    }
    if config.log.ends_with(['/', MAIN_SEPARATOR]) || log(config).is_dir() {
        return Err(Failure::Usage(format!("{}: is a folder, and must be a file", config.cite("log"))));
    }
    Ok(())
}

/// Whether it is a file's name, or a path down to one.
fn is_name(name: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    !name.ends_with(['/', MAIN_SEPARATOR]) && Path::new(name).components().all(is_plain)
}

/// The numbers of a name that a folder, a model or a page has, in order.
fn numbers(config: &Config, name: &str, counts: impl Fn(&Path) -> bool) -> Vec<u64> {
    let base = Path::new(&config.output).join(name);
    let (Some(parent), Some(name)) = (base.parent(), base.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| counts(path));
    let mut numbers: Vec<u64> = paths.filter_map(|path| number(path.file_name()?.to_str()?, name)).collect();
    numbers.sort_unstable();
    numbers
}

/// The number of a run of `name` that a file or folder belongs to.
fn number(entry: &str, name: &str) -> Option<u64> {
    let rest = entry.strip_prefix(name)?;
    let endings = [model_file::ENDING, PAGE].map(|ending| format!(".{ending}"));
    let rest = endings.iter().find_map(|ending| rest.strip_suffix(ending)).unwrap_or(rest);
    if rest.is_empty() {
        return Some(1);
    }
    let digits = rest.strip_prefix('-')?;
    let number: u32 = digits.parse().ok()?;
    (number > 1 && number.to_string() == digits).then_some(number.into())
}

#[cfg(test)]
mod tests {
    use super::{is_name, number};

    #[test]
    fn names_stay_in_their_folder() {
        for name in ["a", "a b", "it's", "-x", "a..b", "a/b", ".a"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["..", ".", "../x", "a/../b", "/tmp/x", "./x", "a/", "a/.."] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn numbers_are_those_that_runs_are_given() {
        let table = [
            ("a", Some(1)),
            ("a.safetensors", Some(1)),
            ("a-2", Some(2)),
            ("a-12.html", Some(12)),
            ("a-1", None),
            ("a-02", None),
            ("a-x", None),
            ("ab", None),
            ("a.txt", None),
            ("b", None),
        ];
        for (entry, expected) in table {
            assert_eq!(number(entry, "a"), expected, "{entry}");
        }
    }
}
