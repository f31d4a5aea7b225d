//! Reading a request's body: up to a length, and in a time.

use crate::api::ApiError;
use crate::options::ServeOptions;
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use std::future::poll_fn;
use std::pin::Pin;

/// How much of a body that is too long is read and thrown away, so that its sender comes to hear why it is refused.
const MAX_THROWN_AWAY: usize = 256 << 20;

/// All of a body.
pub async fn read(request: Request<Incoming>, options: &ServeOptions) -> Result<Vec<u8>, ApiError> {
    let most = options.max_body_bytes;
    let too_long = || {
        let message = format!("the body has more than {most} bytes: the server was started with this limit");
        ApiError::new(413, message).with_code("body_too_large")
    };
    let said = request.body().size_hint().exact();
    let asks_first = request.headers().contains_key(EXPECT);
    if said.is_some_and(|length| length > most as u64) && asks_first {
        return Err(too_long());
    }
    let mut body = request.into_body();
    let reading = async {
        let (mut bytes, mut length) = (Vec::new(), 0usize);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| ApiError::new(400, "the body ended too early"))?;
            let Ok(part) = frame.into_data() else { continue };
            length = length.saturating_add(part.len());
            if length <= most {
                bytes.extend_from_slice(&part);
            } else {
                bytes = Vec::new();
            }
            if length > MAX_THROWN_AWAY {
                break;
            }
        }
        if length > most { Err(too_long()) } else { Ok(bytes) }
    };
    let late = |_| ApiError::new(408, "the body took too long to arrive").with_code("timeout");
    tokio::time::timeout(options.body_timeout, reading).await.map_err(late)?
}
