//! A server in this process, and a client of bare sockets.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use volta::models::{Embedder, Generation, LanguageModel, Llm};
use volta::text::{Sampler, SamplerOptions};
use volta_serve::{ServeOptions, ServedModels, Server, Stopper};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../volta/tests/models/fixtures").join(name)
}

pub fn llm(name: &str) -> Llm {
    Llm::load(fixture(name)).unwrap()
}

/// The tiny Llama with a longer context.
pub fn long_llm() -> Llm {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("volta-serve-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(fixture("llama")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let longer = config.replace("\"max_position_embeddings\": 64", "\"max_position_embeddings\": 2048");
    assert_ne!(config, longer);
    std::fs::write(folder.join("config.json"), longer).unwrap();
    let llm = Llm::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    llm
}

/// A server that ends with the test.
pub struct Running {
    pub address: SocketAddr,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Running {
    pub fn new(models: ServedModels, options: ServeOptions) -> Running {
        let grace = Duration::from_millis(500);
        let server = Server::start(models, ServeOptions { port: 0, grace, ..options }).unwrap();
        let (address, stopper) = (server.address(), server.stopper());
        Running { address, stopper, thread: Some(std::thread::spawn(|| server.run())) }
    }

    pub fn of(name: &str) -> Running {
        Running::new(ServedModels::new().with_llm("tiny", llm(name)), ServeOptions::default())
    }

    pub fn with_embeddings() -> Running {
        let embedder = Embedder::load(fixture("bert")).unwrap();
        let models = ServedModels::new().with_llm("tiny", llm("llama")).with_embedder("vectors", embedder);
        Running::new(models, ServeOptions::default())
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The status, the head and the body of an answer.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
        let mut stream = self.connect();
        send(&mut stream, method, path, headers, body);
        receive(stream)
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, "Host: localhost\r\n", b"");
        (status, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", path, "Host: localhost\r\n", body.to_string().as_bytes());
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// An answer that must be well.
    pub fn ok(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{body}\n{answer}");
        answer
    }

    /// The events of a stream, without its end.
    pub fn stream(&self, path: &str, body: &Value) -> Vec<Value> {
        let (status, head, text) = self.ask("POST", path, "Host: localhost\r\n", body.to_string().as_bytes());
        assert_eq!(status, 200, "{text}");
        assert!(head.to_lowercase().contains("text/event-stream"), "{head}");
        let mut events: Vec<&str> = text.split_terminator("\n\n").collect();
        assert_eq!(events.pop(), Some("data: [DONE]"), "{text}");
        events.iter().map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()).unwrap()).collect()
    }

    /// Whether it answers.
    pub fn is_well(&self) -> bool {
        let mut stream = self.connect();
        let mut answer = Vec::new();
        // One that is refused may be cut off before it is read.
        let _ = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
        let _ = stream.read_to_end(&mut answer);
        answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200")
    }

    /// A number of `/metrics`.
    pub fn metric(&self, name: &str) -> u64 {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing:\n{text}")).parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// Sends a request of HTTP/1.0, whose answer ends with its connection.
pub fn send(stream: &mut TcpStream, method: &str, path: &str, headers: &str, body: &[u8]) {
    let head = format!("{method} {path} HTTP/1.0\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
}

/// The status, the head and the body of an answer.
pub fn receive(mut stream: TcpStream) -> (u16, String, String) {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_string(), body.to_string())
}

/// What `volta generate` writes: up to so many tokens.
pub fn generated(llm: &Llm, prompt: &[u32], options: &SamplerOptions, most: usize) -> (String, usize) {
    let mut text = Generation::new(llm, Sampler::new(options.clone()).unwrap());
    text.read(prompt).unwrap();
    let mut stream = llm.tokenizer.decode_stream();
    let (mut written, mut count) = (String::new(), 0);
    while count < most.min(llm.max_tokens() - prompt.len()) {
        let token = text.write().unwrap();
        if llm.ends(token) {
            break;
        }
        count += 1;
        written += &stream.push(token);
    }
    (written + &stream.finish(), count)
}

pub fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}
