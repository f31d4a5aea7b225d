//! The metadata of a file: values by their keys, in the order of the file.

use super::cursor::Cursor;
use super::value::{FromGguf, GgufValue, write_text};
use std::collections::HashMap;

/// The format's own limit.
const MAX_KEY_BYTES: usize = 65_535;
/// The key, the type and a value of one byte.
pub(super) const LEAST_BYTES: usize = 8 + 1 + 4 + 1;
/// What tensors' places are multiples of, unless metadata says otherwise.
pub(super) const DEFAULT_ALIGNMENT: usize = 32;
pub(super) const ALIGNMENT: &str = "general.alignment";

/// What a GGUF file says beside its tensors: values by keys, in order.
#[derive(Clone, Debug, Default)]
pub struct GgufMetadata {
    entries: Vec<(String, GgufValue)>,
    places: HashMap<String, usize>,
}

impl GgufMetadata {
    /// Nothing yet.
    pub fn new() -> GgufMetadata {
        GgufMetadata::default()
    }

    /// Gives a key its value; what it had before is gone.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<GgufValue>) {
        let (key, value) = (key.into(), value.into());
        match self.places.get(&key) {
            Some(&k) => self.entries[k].1 = value,
            None => {
                self.places.insert(key.clone(), self.entries.len());
                self.entries.push((key, value));
            }
        }
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&GgufValue> {
        self.places.get(key).map(|&k| &self.entries[k].1)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &GgufValue)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key as a type; what is wrong if it has another.
    pub(super) fn get<'a, T: FromGguf<'a>>(&'a self, key: &str) -> Result<Option<T>, String> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let wrong = || {
            let shown: String = value.to_string().chars().take(100).collect();
            format!("{key:?} should be {}, and is {} ({shown})", T::WANTED, value.type_name())
        };
        T::from_gguf(value).map(Some).ok_or_else(wrong)
    }

    pub(super) fn read(cursor: &mut Cursor, count: usize) -> Result<GgufMetadata, String> {
        let mut metadata = GgufMetadata::new();
        for k in 0..count {
            let key = cursor.text(&format!("key {k} of the metadata"))?;
            check_key(&key).map_err(|what| format!("key {k} of the metadata {what}"))?;
            let value = GgufValue::read(cursor, &format!("the value of {key:?}"))?;
            if metadata.value(&key).is_some() {
                return Err(format!("{key:?} stands twice in its metadata"));
            }
            metadata.set(key, value);
        }
        Ok(metadata)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (key, value) in self.iter() {
            write_text(key, out);
            out.extend(value.id().to_le_bytes());
            value.write(out);
        }
    }

    /// What tensors' places are multiples of.
    pub(super) fn alignment(&self) -> Result<usize, String> {
        match self.value(ALIGNMENT) {
            None => Ok(DEFAULT_ALIGNMENT),
            Some(GgufValue::U32(n)) if n.is_power_of_two() => Ok(*n as usize),
            Some(other) => Err(format!(
                "{ALIGNMENT:?} should be a power of two as u32, and is {other} ({})",
                other.type_name()
            )),
        }
    }
}

/// What is wrong with a key.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    match key.len() {
        0 => Err("is empty".to_string()),
        n if n > MAX_KEY_BYTES => Err(format!("has {n} bytes; {MAX_KEY_BYTES} is the most")),
        _ => Ok(()),
    }
}
