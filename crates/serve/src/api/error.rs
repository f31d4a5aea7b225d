//! What goes wrong, as OpenAI's interface says it.

use serde_json::{Value, json};

/// An error with its status.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    pub status: u16,
    pub message: String,
    /// The field that it is about.
    pub param: Option<String>,
    pub code: Option<&'static str>,
    /// Seconds after which to try again.
    pub retry_after: Option<u32>,
}

impl ApiError {
    pub fn new(status: u16, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), param: None, code: None, retry_after: None }
    }

    /// A field that is not as it must be.
    pub fn wrong(param: &str, message: impl Into<String>) -> ApiError {
        ApiError { param: Some(param.to_string()), ..ApiError::new(400, message) }
    }

    /// A field that asks for what is not there.
    pub fn unsupported(param: &str, message: impl Into<String>) -> ApiError {
        ApiError::wrong(param, message).with_code("unsupported_parameter")
    }

    pub fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(500, message)
    }

    /// All places are taken.
    pub fn busy() -> ApiError {
        let message = "the queue is full: try again later, or start the server with a larger --max-queue";
        ApiError { retry_after: Some(1), ..ApiError::new(429, message).with_code("queue_full") }
    }

    #[must_use]
    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError { code: Some(code), ..self }
    }

    pub fn json(&self) -> Value {
        let kind = match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}
