//! The fields of a request: each is taken once, and what is left is an error.

use super::ApiError;
use crate::json::Json;

/// An object's fields, with where it stands.
pub struct Fields {
    path: String,
    fields: Vec<(String, Json)>,
}

impl Fields {
    /// A request's body.
    pub fn of_body(body: &[u8]) -> Result<Fields, ApiError> {
        let read =
            Json::read(body).map_err(|e| ApiError::new(400, format!("the body is no valid JSON: {e}")))?;
        Fields::of(read, "")
    }

    pub fn of(json: Json, path: &str) -> Result<Fields, ApiError> {
        match json {
            Json::Object(fields) => Ok(Fields { path: path.to_string(), fields }),
            other if path.is_empty() => {
                Err(ApiError::new(400, format!("the body must be an object, not {}", other.kind())))
            }
            other => Err(ApiError::wrong(path, format!("`{path}` must be an object, not {}", other.kind()))),
        }
    }

    /// A field's whole name.
    pub fn name(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }

    /// A field that is not as it must be.
    pub fn wrong(&self, name: &str, must: &str) -> ApiError {
        let name = self.name(name);
        ApiError::wrong(&name, format!("`{name}` must be {must}"))
    }

    /// A field; null is as good as none.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let place = self.fields.iter().position(|(own, _)| own == name)?;
        Some(self.fields.swap_remove(place).1).filter(|value| *value != Json::Null)
    }

    /// A field that must be there.
    pub fn need(&mut self, name: &str) -> Result<Json, ApiError> {
        self.take(name).ok_or_else(|| {
            let name = self.name(name);
            ApiError::wrong(&name, format!("`{name}` is missing"))
        })
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    pub fn switch(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.take(name) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// A number from one to another.
    pub fn number(&mut self, name: &str, from: f64, to: f64) -> Result<Option<f32>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Number(number)) if number.as_f64().is_some_and(|x| (from..=to).contains(&x)) => {
                Ok(number.as_f64().map(|x| x as f32))
            }
            Some(_) => Err(self.wrong(name, &format!("a number from {from} to {to}"))),
        }
    }

    /// A whole number from one to another.
    pub fn count(&mut self, name: &str, from: u64, to: u64) -> Result<Option<usize>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.count().filter(|x| (from..=to).contains(x)) {
                Some(count) => Ok(Some(count as usize)),
                None if to >= u64::from(u32::MAX) => {
                    Err(self.wrong(name, &format!("a whole number of at least {from}")))
                }
                None => Err(self.wrong(name, &format!("a whole number from {from} to {to}"))),
            },
        }
    }

    /// A seed: any whole number of 64 bits.
    pub fn seed(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Number(number)) => match (number.as_u64(), number.as_i64()) {
                (Some(seed), _) => Ok(Some(seed)),
                (None, Some(seed)) => Ok(Some(seed as u64)),
                _ => Err(self.wrong(name, "a whole number of 64 bits")),
            },
            Some(_) => Err(self.wrong(name, "a whole number of 64 bits")),
        }
    }

    /// Fields that change nothing here.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.take(name);
        }
    }

    /// Fields that may be there as long as they ask for nothing: empty, false, or one of the words.
    pub fn refuse(&mut self, names: &[(&str, &[&str], &str)]) -> Result<(), ApiError> {
        for (name, words, why) in names {
            let Some(value) = self.take(name) else { continue };
            let is_nothing = match &value {
                Json::Bool(value) => !value,
                Json::List(list) => list.is_empty(),
                Json::Object(fields) => fields.is_empty(),
                Json::Text(text) => words.contains(&text.as_str()),
                Json::Number(number) => words.contains(&number.to_string().as_str()),
                Json::Null => true,
            };
            if !is_nothing {
                let name = self.name(name);
                return Err(ApiError::unsupported(&name, format!("`{name}` is not supported: {why}")));
            }
        }
        Ok(())
    }

    /// What is left is not known.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.fields.iter().find(|(_, value)| *value != Json::Null) {
            None => Ok(()),
            Some((name, _)) => {
                let name = self.name(name);
                Err(ApiError::unsupported(&name, format!("`{name}` is not known to this server")))
            }
        }
    }
}
