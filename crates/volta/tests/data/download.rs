//! Downloads from a server of our own that breaks, lies and refuses as told.

use crate::Folder;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use volta::ErrorKind;
use volta::data::{Download, Mnist, download};
use volta_testing::test;

/// What the server does with one request.
#[derive(Clone, Copy)]
enum Answer {
    /// Sends what is asked for, ranges too.
    Send,
    /// Sends everything, whatever range was asked for.
    SendAll,
    /// Promises what is asked for and hangs up after so many bytes.
    Break(usize),
    /// Sends a range that begins elsewhere.
    WrongRange,
    /// Only says a status.
    Status(&'static str),
}

/// What was asked for: the path, and where the range began.
type Asked = (String, Option<usize>);

struct Server {
    url: String,
    thread: JoinHandle<Vec<Asked>>,
}

fn read_request(stream: &TcpStream) -> Asked {
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a request"));
    let first = lines.next().expect("a request");
    let path = first.split(' ').nth(1).expect("a path").to_string();
    let mut start = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        let line = line.to_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = Some(range.trim_end_matches('-').parse().expect("an open range"));
        }
    }
    (path, start)
}

fn answer(stream: &mut TcpStream, content: &[u8], start: Option<usize>, how: Answer) -> std::io::Result<()> {
    let total = content.len();
    let mut send = |status: &str, headers: &str, body: &[u8], length: usize| {
        write!(
            stream,
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        )?;
        stream.write_all(body)
    };
    let range =
        |from: usize| format!("ETag: \"one\"\r\nContent-Range: bytes {from}-{}/{total}\r\n", total - 1);
    match (how, start) {
        (Answer::Status(status), _) => send(status, "", b"", 0),
        (Answer::WrongRange, _) => send("206 Partial Content", &range(1), &content[1..], total - 1),
        (Answer::Send | Answer::Break(_), Some(from)) if from >= total => {
            send("416 Range Not Satisfiable", &format!("Content-Range: bytes */{total}\r\n"), b"", 0)
        }
        (Answer::Send, Some(from)) => {
            send("206 Partial Content", &range(from), &content[from..], total - from)
        }
        (Answer::Break(after), Some(from)) => {
            send("206 Partial Content", &range(from), &content[from..][..after], total - from)
        }
        (Answer::Break(after), None) => send("200 OK", "ETag: \"one\"\r\n", &content[..after], total),
        (Answer::Send, None) | (Answer::SendAll, _) => send("200 OK", "", content, total),
    }
}

impl Server {
    /// Answers as many requests as there are answers, and then no more.
    fn start(content: Vec<u8>, answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let thread = thread::spawn(move || {
            let mut asked = Vec::new();
            for how in answers {
                let (mut stream, _) = listener.accept().expect("a connection");
                let (path, start) = read_request(&stream);
                // The other side may hang up first.
                let _ = answer(&mut stream, &content, start, how);
                asked.push((path, start));
            }
            asked
        });
        Server { url, thread }
    }

    fn asked(self) -> Vec<Asked> {
        self.thread.join().expect("the server does not panic")
    }

    /// Where every range began.
    fn starts(self) -> Vec<Option<usize>> {
        self.asked().into_iter().map(|(_, start)| start).collect()
    }
}

fn content() -> Vec<u8> {
    (0..200_000u32).map(|k| (k.wrapping_mul(k) / 7) as u8).collect()
}

fn sum(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect()
}

fn quick() -> Download {
    Download { retries: 2, pause: Duration::ZERO, progress: false, ..Default::default() }
}

fn fetch(server: &Server, path: &Path, sum: Option<&str>) -> volta::Result<()> {
    download(&format!("{}/a/file.bin", server.url), path, sum, &quick())
}

/// What is in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_fetched_once_and_kept() {
    let folder = Folder::new("download-once");
    let path = folder.path().join("deep/er/file.bin");
    let server = Server::start(content(), vec![Answer::Send]);
    fetch(&server, &path, Some(&sum(&content()))).expect("it is there");
    assert_eq!(std::fs::read(&path).expect("the file"), content());
    // The server has stopped answering: nobody asks it.
    fetch(&server, &path, Some(&sum(&content()).to_uppercase())).expect("it is there already");
    fetch(&server, &path, None).expect("it is there already");
    assert_eq!(server.asked(), [("/a/file.bin".to_string(), None)]);
    assert!(!folder.path().join("deep/er/file.bin.part").exists());
}

#[test]
fn a_broken_connection_goes_on_where_it_broke() {
    let folder = Folder::new("download-broken");
    let answers = vec![Answer::Break(50_000), Answer::Break(1_000), Answer::Send];
    for sum in [Some(sum(&content())), None] {
        let path = folder.path().join(if sum.is_some() { "with" } else { "without" });
        let server = Server::start(content(), answers.clone());
        fetch(&server, &path, sum.as_deref()).expect("the third request has the rest");
        assert_eq!(std::fs::read(&path).expect("the file"), content());
        assert_eq!(server.starts(), [None, Some(50_000), Some(51_000)]);
    }
}

#[test]
fn a_later_call_goes_on_if_a_checksum_vouches_for_it() {
    let folder = Folder::new("download-later");
    let path = folder.path().join("file.bin");
    let sum = sum(&content());
    let server = Server::start(content(), vec![Answer::Break(70_000), Answer::Status("404 Not Found")]);
    assert_eq!(fetch(&server, &path, Some(&sum)).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(names(&folder), ["file.bin.part"], "nothing under its name before it is whole");
    let server = Server::start(content(), vec![Answer::Send]);
    fetch(&server, &path, Some(&sum)).expect("the rest");
    assert_eq!(server.starts(), [Some(70_000)]);
    assert_eq!(names(&folder), ["file.bin"]);

    // Without a checksum it begins anew.
    folder.write("other.bin.part", b"something else");
    let server = Server::start(content(), vec![Answer::Send]);
    fetch(&server, &folder.path().join("other.bin"), None).expect("all of it");
    assert_eq!(server.starts(), [None]);
}

#[test]
fn a_part_that_is_whole_too_long_or_not_wanted_is_dealt_with() {
    let sum = sum(&content());
    /// What it is about, what is there already, what the server says, and what it is asked for.
    type Case = (&'static str, Vec<u8>, Vec<Answer>, Vec<Option<usize>>);
    let rows: [Case; 4] = [
        ("whole", content(), vec![Answer::Send], vec![Some(200_000)]),
        ("long", vec![0; 200_001], vec![Answer::Send, Answer::Send], vec![Some(200_001), None]),
        ("ignored", vec![0; 10], vec![Answer::SendAll], vec![Some(10)]),
        ("elsewhere", vec![0; 10], vec![Answer::WrongRange, Answer::Send], vec![Some(10), None]),
    ];
    for (name, part, answers, starts) in rows {
        let folder = Folder::new(&format!("download-{name}"));
        folder.write("file.bin.part", &part);
        let server = Server::start(content(), answers);
        let path = folder.path().join("file.bin");
        fetch(&server, &path, Some(&sum)).expect(name);
        assert_eq!(std::fs::read(&path).expect("the file"), content(), "{name}");
        assert_eq!(server.starts(), starts, "{name}");
    }
}

#[test]
fn a_wrong_checksum_is_an_error_and_leaves_nothing() {
    let folder = Folder::new("download-sum");
    let path = folder.path().join("file.bin");
    let server = Server::start(content(), vec![Answer::Send]);
    let error = fetch(&server, &path, Some(&sum(b"another file"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    for part in [sum(&content()), sum(b"another file"), format!("{}/a/file.bin", server.url)] {
        assert!(error.message().contains(&part), "{error}");
    }
    assert!(names(&folder).is_empty());
    // A file of the user's that does not fit stays, and is named.
    std::fs::write(&path, b"mine").expect("a file");
    let error = fetch(&server, &path, Some(&sum(&content()))).unwrap_err();
    assert!(error.message().contains("file.bin") && error.message().contains("delete it"), "{error}");
    assert_eq!(std::fs::read(&path).expect("the file"), b"mine");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn what_will_not_get_better_is_not_tried_again_and_what_may_is() {
    let folder = Folder::new("download-status");
    let path = folder.path().join("file.bin");
    let server = Server::start(content(), vec![Answer::Status("404 Not Found")]);
    let error = fetch(&server, &path, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("404") && error.message().contains("/a/file.bin"), "{error}");
    assert_eq!(server.asked().len(), 1);

    let busy = Answer::Status("503 Service Unavailable");
    let server = Server::start(content(), vec![busy, busy, Answer::Send]);
    fetch(&server, &path, None).expect("the third time");
    std::fs::remove_file(&path).expect("the file");

    let server = Server::start(content(), vec![busy, busy, busy]);
    let error = fetch(&server, &path, None).unwrap_err();
    assert!(error.message().contains("503") && error.message().contains("VOLTA_MIRROR"), "{error}");
    assert_eq!(server.asked().len(), 3, "once, and twice again");

    // Nobody listens there any more.
    let gone = Server::start(content(), vec![]);
    let url = gone.url.clone();
    gone.asked();
    assert_eq!(download(&url, &path, None, &quick()).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(download("file:///etc", &path, None, &quick()).unwrap_err().kind(), ErrorKind::Argument);
    assert!(names(&folder).is_empty());
}

#[test]
fn a_dataset_is_fetched_from_a_mirror_and_checked() {
    let folder = Folder::new("download-mnist");
    let server = Server::start(content(), vec![Answer::Send]);
    let options = Download { mirror: Some(format!("{}/base/", server.url)), ..quick() };
    let error = Mnist::download_with(folder.path(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "these are not MNIST's files: {error}");
    assert_eq!(error.op(), "Mnist::download");
    let path = "/base/ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz";
    assert_eq!(server.asked(), [(path.to_string(), None)]);
}
