//! Requests that mean no good leave the server alive and its memory flat.

use super::client::{Running, llm, receive};
use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use volta_serve::{ServeOptions, ServedModels};
use volta_testing::test;

fn server(options: ServeOptions) -> Running {
    Running::new(ServedModels::new().with_llm("tiny", llm("llama")), options)
}

fn is_alive(server: &Running) {
    server.ok("/v1/completions", &json!({"prompt": "x", "max_tokens": 1}));
}

/// Bytes of memory that this process has, where the system tells.
fn memory() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

#[test]
fn what_is_no_request_is_an_error() {
    let server = server(ServeOptions::default());
    let deep = format!("{{\"prompt\":{}", "[".repeat(200_000));
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{\"prompt\":\"x\",\"prompt\":\"y\"}",
        b"\xff\xfe{}",
        b"{\"prompt\":\"\\ud800\"}",
        b"{\"prompt\":1e999}",
        deep.as_bytes(),
    ];
    for body in bodies {
        let (status, _, answer) = server.ask("POST", "/v1/completions", "", body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]);
        assert_eq!(status, 400, "{shown}: {answer}");
        assert!(answer.contains("invalid_request_error"), "{answer}");
    }
    let heads: [&str; 6] = [
        "nonsense\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
    ];
    for head in heads {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        // A connection that is cut off is an answer, too.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{head:?}: {answer}");
    }
    let mut stream = server.connect();
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)).as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 2"));
    is_alive(&server);
}

#[test]
fn a_hundred_megabytes_are_refused_and_not_kept() {
    let server = server(ServeOptions::default());
    is_alive(&server);
    let before = memory();
    let part = vec![b' '; 1 << 20];
    for is_chunked in [false, true] {
        let mut stream = server.connect();
        let length = if is_chunked {
            "Transfer-Encoding: chunked".into()
        } else {
            format!("Content-Length: {}", 100 << 20)
        };
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..100 {
            if is_chunked {
                stream.write_all(b"100000\r\n").unwrap();
            }
            stream.write_all(&part).unwrap();
            if is_chunked {
                stream.write_all(b"\r\n").unwrap();
            }
        }
        if is_chunked {
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
        let (status, _, body) = receive(stream);
        assert_eq!(status, 413, "{body}");
        assert!(body.contains("body_too_large"), "{body}");
    }
    // Who asks first is refused before anything is sent.
    let mut stream = server.connect();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        100 << 20
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(receive(stream).0, 413);
    if let (Some(before), Some(after)) = (before, memory()) {
        assert!(after < before + (64 << 20), "{before} bytes became {after}");
    }
    is_alive(&server);
}

#[test]
fn slow_clients_are_let_go() {
    let patience = Duration::from_millis(300);
    let server =
        server(ServeOptions { header_timeout: patience, body_timeout: patience, ..ServeOptions::default() });
    let begun = Instant::now();
    for (sent, expected) in [
        ("", ""),
        ("GET / HTTP/1.1\r\nHost: loc", ""),
        (
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"pro",
            "HTTP/1.1 408",
        ),
    ] {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(String::from_utf8_lossy(&answer).starts_with(expected), "{sent:?}: {answer:?}");
    }
    // Nobody waited for the sixty seconds that this client would.
    assert!(begun.elapsed() < Duration::from_secs(50));
    is_alive(&server);
}

#[test]
fn a_thousand_connections_leave_room_when_they_go() {
    let patience = Duration::from_millis(500);
    let options = ServeOptions { max_connections: 64, header_timeout: patience, ..ServeOptions::default() };
    let server = server(options);
    let before = memory();
    // A process may have about a thousand sockets.
    let mut held = std::collections::VecDeque::new();
    for _ in 0..1000 {
        held.push_back(server.connect());
        if held.len() > 300 {
            held.pop_front();
        }
    }
    let told = held.iter_mut().filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut answer = [0; 12];
        (&**stream).read(&mut answer).is_ok_and(|n| answer[..n].starts_with(b"HTTP/1.1 503"))
    });
    assert!(told.count() > 0, "nobody was told that there are too many");
    drop(held);
    let begun = Instant::now();
    while !server.is_well() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    is_alive(&server);
    assert!(server.metric("volta_connections_refused_total") > 0);
    if let (Some(before), Some(after)) = (before, memory()) {
        assert!(after < before + (64 << 20), "{before} bytes became {after}");
    }
}
