//! RustyFlow's `config.env`: assignments as a shell reads them, with RustyFlow's names.
//!
//! RustyFlow's models read words, so such a file means the tokenizer of words unless something says otherwise.
//! `MODEL_PATH` is the model's file: its folder becomes `output`, its name `name`. Without an ending it is the folder.

use super::keys::{KEYS, Key};
use super::sources::{Assignment, Origin, Reading, unknown};
use std::collections::HashMap;
use std::path::Path;

/// A line may double what the line before it made.
const MAX_VALUE_BYTES: usize = 1 << 16;

/// The one name that stands for two keys.
const MODEL_PATH: &str = "MODEL_PATH";

pub fn read(text: &str, path: &Path, environment: &[(String, String)]) -> Reading {
    let mut reading = Reading::default();
    let origin = |line| Origin::File { path: path.into(), line };
    let assign = |assignments: &mut Vec<Assignment>, name: &str, text: String, line: usize| {
        let key = Key::find(name).expect("the table has the key");
        assignments.push(Assignment { key, text, origin: origin(line) });
    };
    assign(&mut reading.assignments, "tokenizer", "words".into(), 1);
    // A shell sees what the file has set so far, and what it was started with.
    let mut known: HashMap<String, String> = environment.iter().cloned().collect();
    for (line, content) in text.lines().enumerate().map(|(at, content)| (at + 1, content.trim())) {
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let content = content.strip_prefix("export ").unwrap_or(content);
        let Some((name, written)) = content.split_once('=') else {
            reading.problems.push(format!("{content:?} ({}): must be KEY=VALUE", origin(line)));
            continue;
        };
        let name = name.trim_end();
        let value = match value(written, &known) {
            Ok(value) => value,
            Err(reason) => {
                reading.problems.push(format!("{name} ({}): {reason}", origin(line)));
                continue;
            }
        };
        known.insert(name.to_string(), value.clone());
        if name == MODEL_PATH {
            let path = Path::new(&value);
            if path.extension().is_none() || value.ends_with('/') {
                assign(&mut reading.assignments, "output", value, line);
                continue;
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.map_or(".".into(), |folder| folder.to_string_lossy().into());
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            assign(&mut reading.assignments, "output", folder, line);
            assign(&mut reading.assignments, "name", stem, line);
        } else if let Some(key) = KEYS.iter().position(|key| key.rustyflow == Some(name)) {
            reading.assignments.push(Assignment { key, text: value, origin: origin(line) });
        } else {
            let names = KEYS.iter().filter_map(|key| key.rustyflow).chain([MODEL_PATH]);
            reading.problems.push(unknown(name, &origin(line), names));
        }
    }
    reading
}

/// A value without its quotes and comment, and with the variables in it replaced.
fn value(written: &str, known: &HashMap<String, String>) -> Result<String, String> {
    let closed = |quote: char| {
        let inside = &written[1..];
        let end = inside.find(quote).ok_or(format!("the quotation mark {quote} is not closed"))?;
        let rest = inside[end + 1..].trim();
        match rest.is_empty() || rest.starts_with('#') {
            true => Ok(&inside[..end]),
            false => Err(format!("{rest:?} after the closing quotation mark")),
        }
    };
    match written.chars().next() {
        Some('\'') => Ok(closed('\'')?.to_string()),
        Some('"') => expanded(closed('"')?, known),
        _ => {
            let plain = written.find(" #").map_or(written, |comment| &written[..comment]);
            expanded(plain.trim(), known)
        }
    }
}

/// Replaces `$NAME` and `${NAME}`.
fn expanded(text: &str, known: &HashMap<String, String>) -> Result<String, String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let name = match rest.strip_prefix('{') {
            Some(braced) => {
                let end = braced.find('}').ok_or("a ${ is not closed")?;
                rest = &braced[end + 1..];
                &braced[..end]
            }
            None => {
                let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let name = &rest[..end];
                rest = &rest[end..];
                name
            }
        };
        match known.get(name) {
            Some(value) if result.len() + value.len() > MAX_VALUE_BYTES => {
                return Err(format!("with its variables it is longer than {MAX_VALUE_BYTES} bytes"));
            }
            Some(value) => result.push_str(value),
            None => return Err(format!("the variable {name:?} is used before it is set")),
        }
    }
    Ok(result + rest)
}
