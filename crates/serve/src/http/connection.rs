//! Taking connections, up to a limit, until the server is stopped.

use super::timed_io::TimedIo;
use super::{Shared, router};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// The longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 32 << 10;
const MAX_HEADERS: usize = 64;

/// What a connection beyond the limit hears.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: application/json\r\nContent-Length: 118\r\n\r\n\
    {\"error\":{\"message\":\"too many connections: try again later\",\"type\":\"server_error\",\"param\":null,\"code\":\"connections\"}}\n";

/// Takes connections until the server is stopped and all have ended, or their time is over.
pub async fn accept(listener: TcpListener, shared: &Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let most = shared.options.max_connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let places = Arc::new(Semaphore::new(most));
    while let Some(taken) = unless_stopped(listener.accept(), &mut stop).await {
        let Ok((stream, _)) = taken else {
            // No descriptor is free, say: others will be, when connections end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            shared.metrics.refused_connections.add(1);
            // Whether it can hear that is its own affair.
            let _ = stream.try_write(FULL);
            continue;
        };
        let (shared, stop) = (shared.clone(), stop.clone());
        tokio::spawn(async move {
            shared.metrics.connections.add(1);
            serve(stream, &shared, stop).await;
            shared.metrics.connections.sub(1);
            drop(place);
        });
    }
    drop(listener);
    let all = places.acquire_many(most as u32);
    // Those that are left are cut off.
    let _ = tokio::time::timeout(shared.options.grace, all).await;
}

/// What a future gives, or nothing if the server is stopped first.
async fn unless_stopped<T>(future: impl Future<Output = T>, stop: &mut watch::Receiver<bool>) -> Option<T> {
    let (mut future, mut stopped) = (pin!(future), pin!(stop.wait_for(|stop| *stop)));
    poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

async fn serve(stream: TcpStream, shared: &Arc<Shared>, mut stop: watch::Receiver<bool>) {
    // Parts of an answer are small, and wanted at once.
    let _ = stream.set_nodelay(true);
    let own = shared.clone();
    let service = service_fn(move |request| router::answer(own.clone(), request));
    let io = TimedIo::new(stream, shared.options.write_timeout);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.options.header_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(io, service);
    let (mut connection, mut stopped) = (pin!(connection), pin!(stop.wait_for(|stop| *stop)));
    let mut is_stopping = false;
    // A client that goes, or says what is no HTTP, has ended its connection.
    let _ = poll_fn(|context| {
        if !is_stopping && stopped.as_mut().poll(context).is_ready() {
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    })
    .await;
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_full_server_says_has_the_length_that_it_names() {
        let text = std::str::from_utf8(super::FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }
}
