//! Models of the Hub from a server of our own that lays them out as the Hub does.

use crate::Folder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use volta::data::Download;
use volta::io::{Hub, HubRepo, Secret};
use volta_testing::test;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A file of the repository: its content, and the checksum that the server tells.
struct File {
    content: Vec<u8>,
    tag: String,
}

/// Method, path and the header that proves who asks.
type Asked = (String, String, Option<String>);

struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What the server does otherwise.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Plain,
    /// Breaks off the first transfer of the weights in the middle.
    Breaks,
    /// Answers only those who prove who they are.
    Private,
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The repository: small files under Git's checksum, weights under their own.
fn files() -> BTreeMap<&'static str, File> {
    let weights: Vec<u8> = (0..50_000u32).map(|k| ((k * k) >> 3) as u8).collect();
    let tag = sha256(&weights);
    BTreeMap::from([
        ("config.json", File { content: br#"{"a": 1}"#.to_vec(), tag: CONFIG_TAG.into() }),
        ("model.safetensors", File { content: weights, tag }),
        ("README.md", File { content: b"no".to_vec(), tag: "f".repeat(40) }),
        ("../escape.json", File { content: b"no".to_vec(), tag: "f".repeat(40) }),
    ])
}

fn serve(files: BTreeMap<&'static str, File>, manner: Manner) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = asked.clone();
    std::thread::spawn(move || {
        let mut broken = false;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            answer(&mut stream, &files, manner, &mut broken, &record);
        }
    });
    Server { url, asked }
}

fn answer(
    stream: &mut TcpStream,
    files: &BTreeMap<&'static str, File>,
    manner: Manner,
    broken: &mut bool,
    asked: &Mutex<Vec<Asked>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else { return };
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap().to_string(), words.next().unwrap().to_string());
    let (mut start, mut proof) = (None, None);
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            start = Some(range.trim_end_matches('-').parse::<usize>().unwrap());
        }
        if line.to_lowercase().starts_with("authorization: ") {
            proof = Some(line["authorization: ".len()..].to_string());
        }
    }
    asked.lock().unwrap().push((method.clone(), path.clone(), proof.clone()));
    let mut send = |status: &str, headers: &str, length: usize, body: &[u8]| {
        let head =
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
        let _ = stream.write_all(head.as_bytes());
        if method != "HEAD" {
            let _ = stream.write_all(body);
        }
    };
    if manner == Manner::Private && proof.as_deref() != Some("Bearer hf_secret") {
        return send("401 Unauthorized", "", 0, b"");
    }
    if path == "/api/models/me/tiny/revision/main" {
        let siblings: Vec<String> =
            files.keys().map(|name| format!(r#"{{"rfilename": "{name}"}}"#)).collect();
        let body = format!(r#"{{"sha": "{COMMIT}", "siblings": [{}]}}"#, siblings.join(", "));
        return send("200 OK", "", body.len(), body.as_bytes());
    }
    let Some(file) =
        path.strip_prefix(&format!("/me/tiny/resolve/{COMMIT}/")).and_then(|name| files.get(name))
    else {
        return send("404 Not Found", "", 0, b"");
    };
    let tag = format!("ETag: \"{}\"\r\n", file.tag);
    let length = file.content.len();
    if method == "HEAD" {
        // As the Hub does for large files, which lie elsewhere.
        return send(
            "302 Found",
            &format!("X-Linked-Etag: \"{}\"\r\nLocation: /elsewhere\r\n", file.tag),
            0,
            b"",
        );
    }
    match start {
        Some(from) => {
            let range = format!("{tag}Content-Range: bytes {from}-{}/{length}\r\n", length - 1);
            send("206 Partial Content", &range, length - from, &file.content[from..]);
        }
        None if manner == Manner::Breaks && length > 10_000 && !*broken => {
            *broken = true;
            send("200 OK", &tag, length, &file.content[..10_000]);
        }
        None => send("200 OK", &tag, length, &file.content),
    }
}

/// Git's name of `{"a": 1}`: what `git hash-object` says.
const CONFIG_TAG: &str = "4a036f56bb619924ec4189bd84ed716c766971ae";

fn hub(server: &Server, folder: &Folder, token: Option<&str>) -> Hub {
    Hub { endpoint: server.url.clone(), cache: folder.0.join("hub"), token: token.map(Secret::new) }
}

fn options() -> Download {
    Download { pause: Duration::from_millis(1), progress: false, retries: 2, ..Download::default() }
}

fn repo() -> HubRepo {
    "hf:me/tiny".parse().unwrap()
}

#[test]
fn a_model_is_laid_out_as_the_hub_does() {
    let folder = Folder::new("hub");
    let server = serve(files(), Manner::Plain);
    let hub = hub(&server, &folder, None);
    assert!(hub.find(&repo()).is_none());
    let error = hub.need(&repo()).unwrap_err();
    assert!(error.message().contains("volta download hf:me/tiny"), "{error}");
    let path = hub.fetch(&repo(), &options()).unwrap();
    let home = folder.0.join("hub/models--me--tiny");
    assert_eq!(path, home.join("snapshots").join(COMMIT));
    assert_eq!(std::fs::read_to_string(home.join("refs/main")).unwrap(), COMMIT);
    assert_eq!(std::fs::read(path.join("config.json")).unwrap(), br#"{"a": 1}"#);
    assert_eq!(std::fs::read(home.join("blobs").join(CONFIG_TAG)).unwrap(), br#"{"a": 1}"#);
    assert_eq!(std::fs::read(path.join("model.safetensors")).unwrap().len(), 50_000);
    // Nobody wants the rest, and nothing leaves the folder.
    assert!(!path.join("README.md").exists() && !home.join("snapshots/escape.json").exists());
    assert_eq!(hub.find(&repo()), Some(path));
    // What is there is not fetched again.
    let before = server.asked.lock().unwrap().len();
    hub.fetch(&repo(), &options()).unwrap();
    assert_eq!(server.asked.lock().unwrap().len(), before + 1);
}

#[test]
fn what_breaks_off_goes_on_from_there() {
    let folder = Folder::new("hub-broken");
    let server = serve(files(), Manner::Breaks);
    let path = hub(&server, &folder, None).fetch(&repo(), &options()).unwrap();
    let weights = std::fs::read(path.join("model.safetensors")).unwrap();
    assert_eq!(sha256(&weights), files()["model.safetensors"].tag);
}

#[test]
fn a_file_that_is_not_what_was_promised_is_thrown_away() {
    for name in ["config.json", "model.safetensors"] {
        let folder = Folder::new("hub-wrong");
        let mut files = files();
        files.get_mut(name).unwrap().content[0] ^= 1;
        let server = serve(files, Manner::Plain);
        let error = hub(&server, &folder, None).fetch(&repo(), &options()).unwrap_err();
        assert!(error.message().contains("checksum"), "{name}: {error}");
        assert!(hub(&server, &folder, None).find(&repo()).is_none());
        let blobs = folder.0.join("hub/models--me--tiny/blobs");
        let left = std::fs::read_dir(blobs)
            .unwrap()
            .filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().ends_with(".incomplete"));
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn a_token_proves_who_asks_and_is_never_shown() {
    let folder = Folder::new("hub-private");
    let server = serve(files(), Manner::Private);
    let error = hub(&server, &folder, None).fetch(&repo(), &options()).unwrap_err();
    assert!(error.message().contains("HF_TOKEN"), "{error}");
    let error = hub(&server, &folder, Some("hf_wrong")).fetch(&repo(), &options()).unwrap_err();
    assert!(error.message().contains("HF_TOKEN") && !error.message().contains("hf_wrong"), "{error}");
    let with = hub(&server, &folder, Some("hf_secret"));
    with.fetch(&repo(), &options()).unwrap();
    assert!(!format!("{with:?}").contains("hf_secret"));
    // Not in the clear to others.
    let elsewhere = Hub { endpoint: "http://127.0.0.1.example".into(), ..with };
    let error = elsewhere.fetch(&repo(), &options()).unwrap_err();
    assert!(error.message().contains("in the clear"), "{error}");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in
        ["hf:a", "hf:../b", "hf:a/..", "hf:a/b/../../c", "hf:a/b@../x", "hf:a/b@", "hf:/b", "hf:a/b//c"]
    {
        assert!(name.parse::<HubRepo>().is_err(), "{name}");
    }
    let file: HubRepo = "hf:a/b@v1/c/d.gguf".parse().unwrap();
    assert_eq!(
        (file.name.as_str(), file.revision.as_str(), file.file.as_deref()),
        ("a/b", "v1", Some("c/d.gguf"))
    );
    assert_eq!(file.to_string(), "hf:a/b@v1/c/d.gguf");
}

#[test]
fn a_repository_that_is_not_there_is_an_error() {
    let folder = Folder::new("hub-missing");
    let server = serve(files(), Manner::Plain);
    let missing: HubRepo = "hf:me/other".parse().unwrap();
    let error = hub(&server, &folder, None).fetch(&missing, &options()).unwrap_err();
    assert!(error.message().contains("no such repository"), "{error}");
    let file: HubRepo = "hf:me/tiny/model.gguf".parse().unwrap();
    let error = hub(&server, &folder, None).fetch(&file, &options()).unwrap_err();
    assert!(error.message().contains("model.gguf"), "{error}");
}
