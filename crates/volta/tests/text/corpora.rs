//! Corpora: built in, by name, from files and folders, and what goes wrong with them.

use std::path::{Path, PathBuf};
use volta::ErrorKind;
use volta::text::{Corpus, CorpusOptions, named_set, named_sets};
use volta_testing::test;

/// A folder that is gone with the test.
pub struct TempFolder(PathBuf);

impl TempFolder {
    pub fn new(name: &str) -> TempFolder {
        let path = std::env::temp_dir().join(format!("volta-text-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TempFolder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn load(path: &Path) -> volta::Result<Corpus> {
    Corpus::load(path.to_str().unwrap(), &CorpusOptions { valid_fraction: 0.0, ..Default::default() })
}

fn in_folder(name: &str, folder: &TempFolder) -> volta::Result<Corpus> {
    Corpus::load(name, &CorpusOptions { folder: Some(folder.0.clone()), valid_fraction: 0.2 })
}

#[test]
fn what_is_built_in_needs_no_files() {
    for name in ["short", "stories", "built-in"] {
        let corpus = Corpus::load(name, &CorpusOptions::default()).unwrap();
        assert!(corpus.files.is_empty() && corpus.test.is_none());
        let part = corpus.valid.len() as f64 / (corpus.train.len() + corpus.valid.len()) as f64;
        assert!((0.06..=0.1).contains(&part), "{name} keeps {part} for validation");
        assert!(corpus.train.ends_with('\n'), "{name} is cut inside of a line");
    }
    let short = Corpus::load("short", &CorpusOptions::default()).unwrap();
    let words = short.train.split_whitespace().count();
    assert!((200..1000).contains(&words), "short has {words} words");
    let stories = Corpus::load("stories", &CorpusOptions::default()).unwrap();
    assert!((300_000..600_000).contains(&stories.train.len()));
    assert_eq!(stories.name, "stories");
    assert_eq!(Corpus::load("built-in", &CorpusOptions::default()).unwrap(), stories);
}

#[test]
fn a_file_is_read_whole() {
    let folder = TempFolder::new("file");
    let corpus = load(&folder.write("my text.tokens", "\u{FEFF}Grüße\nan alle".as_bytes())).unwrap();
    assert_eq!((corpus.train.as_str(), corpus.valid.as_str()), ("Grüße\nan alle", ""));
    assert_eq!(corpus.name, "my text");
    assert_eq!(corpus.files.len(), 1);
}

#[test]
fn a_folder_is_all_its_text_files_in_order() {
    let folder = TempFolder::new("folder");
    for (name, text) in
        [("b.txt", "two"), ("a/z.md", "one"), ("c.TXT", "three"), ("d.rs", "no"), ("txt", "no")]
    {
        folder.write(name, text.as_bytes());
    }
    let corpus = load(&folder.0).unwrap();
    assert_eq!(corpus.train, "one\ntwo\nthree");
    assert_eq!(corpus.files.len(), 3);
}

#[test]
fn files_that_are_not_utf8_are_named_with_the_byte() {
    let folder = TempFolder::new("encoding");
    folder.write("a.txt", b"fine");
    folder.write("b.txt", b"caf\xE9");
    let error = load(&folder.0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().contains("b.txt is not UTF-8: byte 3 is 0xE9"), "{error}");
}

#[test]
fn empty_and_missing_text_is_an_error() {
    let folder = TempFolder::new("empty");
    let error = load(&folder.write("empty.txt", b" \n")).unwrap_err();
    assert!(error.message().contains("no text to train on"), "{error}");
    std::fs::remove_file(folder.path("empty.txt")).unwrap();
    let error = load(&folder.0).unwrap_err();
    assert!(error.message().contains("no .txt or .md files"), "{error}");
    let error = load(&folder.path("nothing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("nothing") && error.message().contains("wikitext-2"), "{error}");
    for fraction in [-0.1, 1.0, f64::NAN] {
        let options = CorpusOptions { valid_fraction: fraction, ..Default::default() };
        assert_eq!(Corpus::load("short", &options).unwrap_err().kind(), ErrorKind::Argument);
    }
}

#[test]
fn a_named_set_is_found_in_the_folder_with_its_splits() {
    let folder = TempFolder::new("named");
    folder.write("wikitext-2/wiki.train.tokens", b"train words");
    let corpus = in_folder("wikitext-2", &folder).unwrap();
    assert_eq!(corpus.train.len() + corpus.valid.len(), 11);
    assert_eq!((corpus.valid.len(), corpus.test), (2, None));
    folder.write("wikitext-2/wiki.valid.tokens", b"valid words");
    folder.write("wikitext-2/wiki.test.tokens", b"test words");
    let corpus = in_folder("wikitext-2", &folder).unwrap();
    assert_eq!((corpus.train.as_str(), corpus.valid.as_str()), ("train words", "valid words"));
    assert_eq!((corpus.test.as_deref(), corpus.files.len()), (Some("test words"), 3));
    folder.write("tinyshakespeare/input.txt", b"0123456789");
    let corpus = in_folder("tinyshakespeare", &folder).unwrap();
    assert_eq!((corpus.train.as_str(), corpus.valid.as_str()), ("01234567", "89"));
}

#[test]
fn a_named_set_that_is_not_there_says_how_to_get_it() {
    let folder = TempFolder::new("missing");
    // The user's cache may have the set itself, but never a part of it alone.
    folder.write("wikitext-2/wiki.valid.tokens", b"valid words");
    let Err(error) = in_folder("wikitext-2", &folder) else { return };
    assert_eq!(error.kind(), ErrorKind::Io);
    let program =
        if cfg!(feature = "download") { "volta" } else { "cargo run --release --features download --" };
    assert!(error.message().contains(&format!("`{program} download wikitext-2`")), "{error}");
    assert!(error.message().contains("wiki.train.tokens is missing"), "{error}");
}

#[test]
fn every_set_that_is_not_built_in_says_where_it_is_published() {
    for set in named_sets() {
        assert_eq!(named_set(set.name), Some(set));
        assert!(!set.about.is_empty());
        for file in set.files {
            assert!(file.url.starts_with("https://"), "{}", file.url);
            assert!(
                file.sha256.is_none_or(|sum| sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit()))
            );
        }
    }
    assert_eq!(named_set("nothing"), None);
}

/// With real data, where `VOLTA_DATA` names its folder.
#[test]
fn the_real_sets_are_found_through_the_variable() {
    if std::env::var_os("VOLTA_DATA").is_none() {
        eprintln!("skipped: VOLTA_DATA is not set");
        return;
    }
    let corpus = Corpus::load("tinyshakespeare", &CorpusOptions::default()).unwrap();
    assert_eq!(corpus.train.len() + corpus.valid.len(), 1_115_394);
    assert!(corpus.train.starts_with("First Citizen:\n"));
}
