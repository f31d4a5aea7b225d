//! `volta serve`: a model over HTTP, from its start to Ctrl-C.

use super::{Folder, text, volta};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use volta_testing::test;

fn model(name: &str) -> String {
    format!("{}/../volta/tests/models/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A server, which ends with the test.
struct Server {
    process: Child,
    said: Value,
}

impl Server {
    fn new(folder: &Folder, arguments: &[&str], key: &str) -> Server {
        let mut process = volta(folder)
            .args(["--json", "serve", "--port", "0", "--device", "cpu"])
            .args(arguments)
            .env("VOLTA_API_KEY", key)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { said: serde_json::from_str(&line).unwrap(), process }
    }

    fn ask(&self, path: &str, headers: &str, body: &str) -> String {
        let address = self.said["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_model_is_served_until_ctrl_c() {
    let folder = Folder::new("serve");
    let (writes, embeds) = (model("llama.gguf"), model("bert"));
    let mut server = Server::new(&folder, &[&writes, "--embeddings", &embeds, "--name", "tiny"], "");
    assert_eq!(server.said["models"], serde_json::json!(["tiny", "bert"]));
    let answer =
        server.ask("/v1/completions", "", r#"{"prompt":"The river","max_tokens":3,"temperature":0}"#);
    assert!(answer.contains("\"completion_tokens\":3"), "{answer}");
    assert!(server.ask("/v1/embeddings", "", r#"{"input":"x"}"#).contains("\"embedding\""));
    #[cfg(unix)]
    {
        let process = server.process.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &process]).status().unwrap().success());
        assert_eq!(server.process.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn the_key_comes_from_the_variable_and_is_never_printed() {
    let folder = Folder::new("serve-key");
    let mut server = Server::new(&folder, &[&model("llama.gguf")], "a-secret");
    assert!(server.ask("/v1/models", "", "").contains("401"));
    assert!(server.ask("/v1/models", "Authorization: Bearer a-secret\r\n", "").contains("llama.gguf"));
    server.process.kill().unwrap();
    let mut said = String::new();
    server.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains("a-secret") && !server.said.to_string().contains("a-secret"), "{said}");
}

#[test]
fn what_cannot_be_served_says_why() {
    let folder = Folder::new("serve-wrong");
    for (arguments, key, status, expected) in [
        (&["nothing.gguf"][..], "", 1, "volta download"),
        (&[], "", 2, "MODEL"),
        (&["x.gguf", "--max-batch", "0"], "", 2, "--max-batch"),
        (&["x.gguf"], "two words", 2, "key"),
    ] {
        let mut command = volta(&folder);
        command.args(["serve", "--device", "cpu"]).args(arguments).env("VOLTA_API_KEY", key);
        let run = command.output().unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(status), "{said}");
        assert!(said.contains(expected) && !said.contains("two words"), "{said}");
    }
}
