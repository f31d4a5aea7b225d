//! `volta download`, and sets that are not there.

use super::{Folder, ok, text, tiny_on, volta};
#[cfg(feature = "download")]
use serde_json::Value;
#[cfg(feature = "download")]
use std::io::{BufRead, BufReader};
use volta_testing::test;

/// Answers one request for each of these files, by the ends of their paths, and then stops.
#[cfg(feature = "download")]
fn serve(files: Vec<(&'static str, &'static str)>) -> (String, std::thread::JoinHandle<()>) {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for _ in 0..files.len() {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            let path = request.split(' ').nth(1).unwrap().to_string();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let body = files.iter().find(|(name, _)| path.ends_with(name)).map(|(_, body)| *body).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    (url, thread)
}

#[test]
#[cfg(feature = "download")]
fn a_set_is_fetched_when_asked_for_and_trained_on() {
    let folder = Folder::new("download");
    let text = "the cat sat on the mat and the dog lay on the rug . ";
    let text: &'static str = Box::leak(text.repeat(40).into_boxed_str());
    let (url, server) = serve(vec![("/train.txt", text), ("/valid.txt", text), ("/test.txt", text)]);
    let data = folder.0.join("data");
    let fetched = volta(&folder)
        .args(["--json", "download", "wikitext-2", "--mirror", &url, "--folder"])
        .arg(&data)
        .output()
        .unwrap();
    let line: Value = serde_json::from_str(&ok(&fetched)).unwrap();
    assert_eq!(line["set"], "wikitext-2");
    server.join().unwrap();
    assert_eq!(std::fs::read_to_string(data.join("wikitext-2/wiki.test.tokens")).unwrap(), text);
    let trained = tiny_on("wikitext-2", &mut volta(&folder))
        .args(["--steps", "4"])
        .env("VOLTA_DATA", &data)
        .output()
        .unwrap();
    ok(&trained);
}

#[cfg(unix)]
#[test]
#[cfg(feature = "download")]
fn the_command_that_fetches_a_missing_set_works_when_pasted() {
    let folder = Folder::new("pasted-download");
    let text: &'static str = "the cat sat on the mat . ";
    let (url, server) = serve(vec![("/train.txt", text), ("/valid.txt", text), ("/test.txt", text)]);
    let data = folder.0.join("data");
    let mut training = volta(&folder);
    tiny_on("wikitext-2", &mut training)
        .env("VOLTA_DATA", &data)
        .env("XDG_CACHE_HOME", &data)
        .env("HOME", &data);
    let said = super::text(&training.output().unwrap().stderr);
    let command = said.split('`').nth(1).unwrap_or_else(|| panic!("{said}"));
    let mut shell = super::output::pasted(&folder, command);
    ok(&shell.env("VOLTA_MIRROR", &url).env("VOLTA_DATA", &data).output().unwrap());
    server.join().unwrap();
    assert!(data.join("wikitext-2/wiki.train.tokens").is_file());
}

#[test]
fn a_set_that_is_missing_is_not_fetched_unasked() {
    let folder = Folder::new("missing-set");
    let run = tiny_on("wikitext-2", &mut volta(&folder))
        .env("VOLTA_DATA", folder.0.join("data"))
        .env("XDG_CACHE_HOME", folder.0.join("cache"))
        .env("HOME", &folder.0)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(text(&run.stderr).contains(" download wikitext-2`"), "{}", text(&run.stderr));
    let unknown = volta(&folder).args(["download", "nothing"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(ok(&volta(&folder).arg("download").output().unwrap()).contains("tinyshakespeare"));
}
