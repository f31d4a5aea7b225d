//! What an answer is made of: bytes, or a stream of events.

use crate::api::{ApiError, Stream};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer.
pub enum Reply {
    Bytes(Option<Bytes>),
    Stream(Box<Stream>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Reply::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Reply::Stream(stream) => {
                stream.poll_next(context).map(|event| event.map(|event| Ok(Frame::data(event.into()))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Bytes(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Reply::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer of a kind.
pub fn of_bytes(kind: &'static str, bytes: impl Into<Bytes>) -> Response<Reply> {
    with_kind(kind, Reply::Bytes(Some(bytes.into())))
}

pub fn of_json(json: &Value) -> Response<Reply> {
    of_bytes("application/json", json.to_string())
}

pub fn of_stream(stream: Stream) -> Response<Reply> {
    with_kind("text/event-stream; charset=utf-8", Reply::Stream(Box::new(stream)))
}

pub fn of_error(error: &ApiError) -> Response<Reply> {
    let mut response = of_json(&error.json());
    *response.status_mut() = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn with_kind(kind: &'static str, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
