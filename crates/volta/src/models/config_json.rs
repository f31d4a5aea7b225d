//! A `config.json` whose every field must be understood: what nobody asked for and what says something is an error that names it.

use crate::error::{Error, ErrorKind, Result};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Fields that do not change what a model computes.
const HARMLESS: [&str; 33] = [
    "_attn_implementation_autoset",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "auto_map",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "resid_pdrop",
    "return_dict",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "use_cache",
];

/// The fields of an object, and which were asked for.
pub(super) struct Fields<'a> {
    label: String,
    map: &'a Map<String, Value>,
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Fields<'a> {
    /// The fields of a JSON object; `label` is what errors call it.
    pub fn of(label: &str, value: &'a Value) -> Result<Fields<'a>> {
        match value.as_object() {
            Some(map) => Ok(Fields { label: label.to_string(), map, used: RefCell::default() }),
            None => Err(Error::new(ErrorKind::Data, format!("{label} must be a JSON object"))),
        }
    }

    /// An error about a field.
    pub fn wrong(&self, name: &str, what: &str) -> Error {
        let value = self.map.get(name).unwrap_or(&Value::Null);
        let mut shown: String = value.to_string().chars().take(80).collect();
        if shown.len() < value.to_string().len() {
            shown.push('…');
        }
        Error::new(ErrorKind::Data, format!("{}: {name} is {shown}: {what}", self.label))
    }

    /// The value of a field; nothing if it is missing or null.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.used.borrow_mut().insert(name.to_string());
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether a field is there, also as null.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    fn read<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let read = |value| read(value).ok_or_else(|| self.wrong(name, &format!("{what} is needed")));
        self.get(name).map(read).transpose()
    }

    fn needed<T>(&self, name: &str, found: Option<T>) -> Result<T> {
        let missing = || Error::new(ErrorKind::Data, format!("{}: {name} is missing", self.label));
        found.ok_or_else(missing)
    }

    /// A size.
    pub fn size(&self, name: &str) -> Result<usize> {
        self.needed(name, self.size_if(name)?)
    }

    /// A size that may be missing.
    pub fn size_if(&self, name: &str) -> Result<Option<usize>> {
        self.read(name, "a whole number", |v| usize::try_from(v.as_u64()?).ok())
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.needed(name, self.number_if(name)?)
    }

    /// A number that may be missing.
    pub fn number_if(&self, name: &str) -> Result<Option<f64>> {
        self.read(name, "a number", Value::as_f64)
    }

    /// A switch; off unless given.
    pub fn switch(&self, name: &str) -> Result<bool> {
        Ok(self.switch_if(name)?.unwrap_or(false))
    }

    /// A switch that may be missing.
    pub fn switch_if(&self, name: &str) -> Result<Option<bool>> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<&'a str> {
        self.needed(name, self.text_if(name)?)
    }

    /// A text that may be missing.
    pub fn text_if(&self, name: &str) -> Result<Option<&'a str>> {
        self.read(name, "a text", Value::as_str)
    }

    /// The fields of an object inside, which may be missing.
    pub fn inner(&self, name: &str) -> Result<Option<Fields<'a>>> {
        self.get(name).map(|value| Fields::of(&format!("{}: {name}", self.label), value)).transpose()
    }

    /// An error that names a field that says something and that nobody asked for.
    pub fn finish(self) -> Result<()> {
        let used = self.used.borrow();
        let says = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        };
        let unknown = self
            .map
            .iter()
            .find(|(name, value)| says(value) && !used.contains(*name) && !HARMLESS.contains(&name.as_str()));
        match unknown {
            Some((name, _)) => {
                Err(self.wrong(name, "Volta does not know this field, so that it may compute something else"))
            }
            None => Ok(()),
        }
    }
}
