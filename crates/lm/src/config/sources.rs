//! Where values come from: a TOML file, RustyFlow's `config.env`, variables, flags. Each source becomes a list
//! of assignments; later lists win.

use super::env_file;
use super::keys::{KEYS, Key};
use super::suggest::did_you_mean;
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// What the variables of `volta train` begin with.
pub const PREFIX: &str = "VOLTA_TRAIN_";

/// A configuration is never longer.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    Variable(String),
    Flag(&'static str),
    /// What another program gives, by the name of its key.
    Option(String),
}

impl Origin {
    /// Later sources win over earlier ones.
    pub fn rank(&self) -> usize {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Variable(_) => 2,
            Origin::Flag(_) => 3,
            Origin::Option(_) => 4,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "the default"),
            Origin::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Origin::Variable(name) => write!(f, "the variable {name}"),
            Origin::Flag(name) => write!(f, "the flag --{name}"),
            Origin::Option(name) => write!(f, "the option {name}"),
        }
    }
}

/// A key that a source sets, with the value as it is written there.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub key: usize,
    pub text: String,
    pub origin: Origin,
}

/// What a source says, and what is wrong with it.
#[derive(Debug, Default, PartialEq)]
pub struct Reading {
    pub assignments: Vec<Assignment>,
    pub problems: Vec<String>,
}

impl Reading {
    pub fn problem(message: String) -> Reading {
        Reading { assignments: Vec::new(), problems: vec![message] }
    }
}

/// The text of a file, if it is as short as a configuration is.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_FILE_BYTES {
        let what = format!("it is longer than {MAX_FILE_BYTES} bytes");
        return Err(Error::new(ErrorKind::InvalidData, what));
    }
    Ok(text)
}

/// Reads a file: `.env` as RustyFlow's shell-like format, anything else as TOML.
pub fn file(path: &Path, environment: &[(String, String)]) -> Reading {
    match read_text(path) {
        Ok(text) if path.extension().is_some_and(|e| e == "env") => env_file::read(&text, path, environment),
        Ok(text) => toml_text(&text, path),
        Err(error) => Reading::problem(format!("cannot read the configuration {}: {error}", path.display())),
    }
}

/// Reads TOML: keys at the top, as in `learning-rate = 0.001`.
pub fn toml_text(text: &str, path: &Path) -> Reading {
    let line_of = |byte: usize| text[..byte.min(text.len())].matches('\n').count() + 1;
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(span.start));
            return Reading::problem(format!(
                "{}, line {line}: not TOML: {}",
                path.display(),
                error.message()
            ));
        }
    };
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut reading = Reading::default();
    for (name, value) in entries {
        let origin = Origin::File { path: path.into(), line: line_of(name.span().start) };
        let name = name.into_inner().replace('_', "-");
        match (Key::find(&name), plain(value.get_ref())) {
            (Some(key), Some(text)) => reading.assignments.push(Assignment { key, text, origin }),
            (Some(key), None) => reading.problems.push(format!(
                "{name} ({origin}): is a {}; it must be {}",
                value.get_ref().type_str(),
                KEYS[key].rule.allowed()
            )),
            (None, _) => reading.problems.push(unknown(&name, &origin, KEYS.iter().map(|key| key.name))),
        }
    }
    reading
}

/// A TOML value as one would write it after a flag.
fn plain(value: &DeValue) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(n) if n.radix() == 10 => n.as_str().to_string(),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok()?.to_string(),
        DeValue::Float(x) => x.as_str().to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(list) => {
            list.iter().map(|item| plain(item.get_ref())).collect::<Option<Vec<_>>>()?.join(",")
        }
        DeValue::Table(_) | DeValue::Datetime(_) => return None,
    })
}

/// The device that `VOLTA_DEVICE` names, unless anything says more of this run.
pub fn device(environment: &[(String, String)]) -> Reading {
    const NAME: &str = "VOLTA_DEVICE";
    let named = environment.iter().find(|(name, text)| name == NAME && !text.is_empty());
    let assignment = named.and_then(|(_, text)| {
        let text = text.trim().to_lowercase();
        Some(Assignment { key: Key::find("device")?, text, origin: Origin::Variable(NAME.to_string()) })
    });
    Reading { assignments: assignment.into_iter().collect(), problems: Vec::new() }
}

/// Reads the variables that begin with [`PREFIX`].
pub fn variables(environment: &[(String, String)]) -> Reading {
    let mut reading = Reading::default();
    let mut names: Vec<&(String, String)> =
        environment.iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    names.sort();
    for (name, text) in names {
        let origin = Origin::Variable(name.clone());
        match KEYS.iter().position(|key| key.variable() == *name) {
            Some(key) => reading.assignments.push(Assignment { key, text: text.clone(), origin }),
            None => {
                let known: Vec<String> = KEYS.iter().map(Key::variable).collect();
                reading.problems.push(unknown(name, &origin, known.iter().map(String::as_str)));
            }
        }
    }
    reading
}

/// The flags, whose names clap has checked.
pub fn flags(values: &[(&'static str, String)]) -> Reading {
    let assignments = values.iter().filter_map(|(name, text)| {
        Some(Assignment { key: Key::find(name)?, text: text.clone(), origin: Origin::Flag(name) })
    });
    Reading { assignments: assignments.collect(), problems: Vec::new() }
}

/// What another program gives, by the names of keys.
pub fn options(values: &[(&str, &str)]) -> Reading {
    let mut reading = Reading::default();
    for (name, text) in values {
        let origin = Origin::Option(name.to_string());
        match Key::find(name) {
            Some(key) => reading.assignments.push(Assignment { key, text: text.to_string(), origin }),
            None => reading.problems.push(unknown(name, &origin, KEYS.iter().map(|key| key.name))),
        }
    }
    reading
}

/// The message about a key that does not exist.
pub fn unknown<'a>(name: &str, origin: &Origin, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(name, names.clone());
    let known = if near.is_empty() {
        format!("; the keys are {}", names.collect::<Vec<_>>().join(", "))
    } else {
        String::new()
    };
    format!("{name} ({origin}): there is no such key{near}{known}")
}
