//! `/v1/models`, and whether a request means one that is there.

use super::ApiError;
use super::fields::Fields;
use serde_json::{Value, json};

/// What is said of a model.
pub fn describe(name: &str, since: u64) -> Value {
    json!({"id": name, "object": "model", "created": since, "owned_by": "volta"})
}

/// All models.
pub fn list<'n>(names: impl Iterator<Item = &'n str>, since: u64) -> Value {
    let data: Vec<Value> = names.map(|name| describe(name, since)).collect();
    json!({"object": "list", "data": data})
}

/// A model that is not there.
pub fn missing(name: &str) -> ApiError {
    let message = format!("The model `{name}` does not exist: /v1/models lists those that do.");
    ApiError { status: 404, ..ApiError::wrong("model", message) }.with_code("model_not_found")
}

/// Takes the field `model`, which must name the one that is meant or nothing.
pub fn check(fields: &mut Fields, own: &str) -> Result<(), ApiError> {
    match fields.text("model")? {
        Some(name) if name != own => Err(missing(&name)),
        _ => Ok(()),
    }
}
