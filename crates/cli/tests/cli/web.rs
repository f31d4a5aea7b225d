//! `volta web`: the built page over HTTP.

use super::{Folder, text, volta};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use volta_testing::test;

/// A server, which ends with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn of(folder: &Folder) -> Server {
        let mut process = volta(folder)
            .args(["--json", "web", "--port", "0", "--no-open", "--folder", "page"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let port =
            said["url"].as_str().unwrap().trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        Server { process, port }
    }

    /// The head and the body of the answer.
    fn ask(&self, request: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: {host}:{}\r\n\r\n", self.port).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_string(), body.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn page(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir_all(folder.0.join("page/volta")).unwrap();
    std::fs::write(folder.0.join("page/index.html"), "<p>hello").unwrap();
    std::fs::write(folder.0.join("page/volta/volta.wasm"), "asm").unwrap();
    std::fs::write(folder.0.join("secret.txt"), "secret").unwrap();
    folder
}

#[test]
fn the_built_page_is_served_with_its_types_and_headers() {
    let folder = page("web-serves");
    let server = Server::of(&folder);
    let (head, body) = server.ask("GET /", "127.0.0.1");
    assert!(head.starts_with("HTTP/1.1 200 OK") && body == "<p>hello", "{head}\n{body}");
    for line in [
        "Content-Type: text/html",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cross-Origin-Embedder-Policy: require-corp",
    ] {
        assert!(head.contains(line), "{line} is missing:\n{head}");
    }
    let (head, body) = server.ask("HEAD /volta/volta.wasm", "localhost");
    assert!(head.contains("Content-Type: application/wasm") && head.contains("Content-Length: 3"), "{head}");
    assert_eq!(body, "");
}

#[test]
fn nothing_else_is_served() {
    let folder = page("web-refuses");
    let server = Server::of(&folder);
    let cases = [
        ("GET /../secret.txt", "localhost", "404"),
        ("GET /%2e%2e/secret.txt", "localhost", "404"),
        ("GET /nothing", "localhost", "404"),
        ("POST /", "localhost", "405"),
        ("GET /", "evil.example", "403"),
        ("nonsense", "localhost", "400"),
    ];
    for (request, host, status) in cases {
        let (head, body) = server.ask(request, host);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request} {host}: {head}");
        assert!(!body.contains("secret"));
    }
}

#[test]
fn a_page_that_is_not_built_is_an_error_that_says_how() {
    let folder = Folder::new("web-missing");
    let said = volta(&folder).args(["web", "--no-open", "--port", "0", "--folder", "."]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("no built page"), "{}", text(&said.stderr));
}
