//! A folder over HTTP/1.1, for one machine: `GET` and `HEAD` of regular files, and nothing else.
//!
//! Who asks by another host's name than the loopback's is refused, so that no web site can reach it through a name of its own.

use crate::output::{Failure, Outcome};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The longest head of a request that is read, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Requests that are answered at once; a page asks for few.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take over a part of its request or of the answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What files are, by their endings.
const TYPES: [(&str, &str); 11] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("txt", "text/plain; charset=utf-8"),
];

/// In every answer. With the first two a page may share memory among threads.
const HEADERS: &str = "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Embedder-Policy: require-corp\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
    Cache-Control: no-cache\r\nConnection: close\r\n";

/// Answers until the program ends.
pub fn serve(listener: &TcpListener, port: u16, folder: &Path) -> Outcome {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        // A client that went before it was accepted is no reason to end.
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (count, folder) = (open.clone(), folder.to_path_buf());
        let answering = std::thread::Builder::new().spawn(move || {
            // A client that goes away in the middle gets no answer.
            let _ = answer(stream, port, &folder);
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if answering.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Err(Failure::Failed("the port was closed".into()))
}

fn answer(mut stream: TcpStream, port: u16, folder: &Path) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = read_head(&mut stream)? else {
        return refuse(&mut stream, "431 Request Header Fields Too Large", true);
    };
    let Some(request) = Request::parse(&head) else { return refuse(&mut stream, "400 Bad Request", true) };
    let with_body = request.method == "GET";
    if !with_body && request.method != "HEAD" {
        return refuse(&mut stream, "405 Method Not Allowed\r\nAllow: GET, HEAD", true);
    }
    if !is_loopback(request.host, port) {
        return refuse(&mut stream, "403 Forbidden", with_body);
    }
    let found = path_of(request.target, folder).and_then(|path| Some((File::open(&path).ok()?, path)));
    let Some((mut file, path)) = found else { return refuse(&mut stream, "404 Not Found", with_body) };
    let about = file.metadata()?;
    let changed = about.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let tag = format!("\"{:x}-{changed:x}\"", about.len());
    if request.tag == Some(tag.as_str()) {
        return stream
            .write_all(format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n{HEADERS}\r\n").as_bytes());
    }
    let (kind, length) = (content_type(&path), about.len());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nETag: {tag}\r\n{HEADERS}\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if with_body {
        io::copy(&mut Read::by_ref(&mut file).take(length), &mut stream)?;
    }
    stream.flush()
}

/// The bytes before the empty line, or nothing if there are too many.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    loop {
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..count]);
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&head[..end]).into_owned()));
        }
        if head.len() > MAX_HEAD_BYTES {
            return Ok(None);
        }
    }
}

fn refuse(stream: &mut TcpStream, status: &str, with_body: bool) -> io::Result<()> {
    let text = format!("{}\n", status.split("\r\n").next().unwrap_or(status));
    let (length, body) = (text.len(), if with_body { text.as_str() } else { "" });
    let head = format!("Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n{HEADERS}");
    stream.write_all(format!("HTTP/1.1 {status}\r\n{head}\r\n{body}").as_bytes())?;
    stream.flush()
}

/// What matters of a request.
#[derive(Debug, PartialEq)]
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    host: &'a str,
    /// The version of the file that the client has.
    tag: Option<&'a str>,
}

impl<'a> Request<'a> {
    fn parse(head: &'a str) -> Option<Request<'a>> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        Some(Request { method, target, host: field("host")?, tag: field("if-none-match") })
    }
}

fn is_loopback(host: &str, port: u16) -> bool {
    let (name, given) = host.rsplit_once(':').unwrap_or((host, "80"));
    ["127.0.0.1", "localhost"].contains(&name) && given.parse() == Ok(port)
}

/// The regular file of a target, if it lies in the folder.
fn path_of(target: &str, folder: &Path) -> Option<PathBuf> {
    let path = percent_decoded(target.split(['?', '#']).next()?)?;
    let mut file = folder.to_path_buf();
    for part in path.strip_prefix('/')?.split('/').filter(|part| !part.is_empty()) {
        // No folder above, no drive, no file that is hidden.
        if part.starts_with('.') || part.contains(['\\', ':', '\0']) {
            return None;
        }
        file.push(part);
    }
    if file.is_dir() {
        file.push("index.html");
    }
    // A link in the folder may point out of it.
    let file = file.canonicalize().ok()?;
    (file.starts_with(folder) && file.is_file()).then_some(file)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn content_type(path: &Path) -> &'static str {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    TYPES.iter().find(|(name, _)| *name == ending).map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        assert!(
            is_loopback("127.0.0.1:8600", 8600)
                && is_loopback("localhost:8600", 8600)
                && is_loopback("localhost", 80)
        );
        for host in ["evil.example:8600", "127.0.0.1:80", "127.0.0.1.evil.example:8600", "", ":8600"] {
            assert!(!is_loopback(host, 8600), "{host}");
        }
    }

    #[test]
    fn a_target_names_a_file_of_the_folder_or_nothing() {
        let folder = std::env::temp_dir().join(format!("volta-web-server-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("page/volta")).unwrap();
        let folder = folder.canonicalize().unwrap();
        let page = folder.join("page");
        for file in ["secret.txt", "page/index.html", "page/volta/a b.wasm", "page/.hidden"] {
            std::fs::write(folder.join(file), "x").unwrap();
        }
        for (target, file) in
            [("/", "index.html"), ("/index.html?x=1", "index.html"), ("/volta/a%20b.wasm", "volta/a b.wasm")]
        {
            assert_eq!(path_of(target, &page), Some(page.join(file)), "{target}");
        }
        let outside = [
            "/../secret.txt",
            "/%2e%2e/secret.txt",
            "/volta/../../secret.txt",
            "/..%2fsecret.txt",
            "/.hidden",
            "//etc/passwd",
            "/volta",
            "/nothing",
            "secret.txt",
            "/%zz",
            "/%ff",
            "/a\\..\\secret.txt",
            "/c:/x",
            "/%00",
            "",
        ];
        for target in outside {
            assert_eq!(path_of(target, &page), None, "{target}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.join("secret.txt"), page.join("link.txt")).unwrap();
            assert_eq!(path_of("/link.txt", &page), None);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_request_is_read_or_refused() {
        let head = "GET /a HTTP/1.1\r\nhost: localhost:1\r\nIf-None-Match: \"7\"";
        let request = Request { method: "GET", target: "/a", host: "localhost:1", tag: Some("\"7\"") };
        assert_eq!(Request::parse(head), Some(request));
        for wrong in [
            "",
            "GET",
            "GET /a",
            "GET /a b HTTP/1.1\r\nHost: x",
            "GET /a FTP/1\r\nHost: x",
            "GET /a HTTP/1.1",
        ] {
            assert_eq!(Request::parse(wrong), None, "{wrong:?}");
        }
    }
}
