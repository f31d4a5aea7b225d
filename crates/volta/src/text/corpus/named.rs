//! The table of named sets: what they are, which files they have, and where those are published.

use super::Corpus;
use super::files::read_text;
use crate::error::{Result, bail};
use std::path::{Path, PathBuf};

/// A text that has a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NamedSet {
    /// What to call it, and its folder's name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its files; none if it is built in. The first is the one to train on.
    pub files: &'static [RemoteFile],
}

/// What a file of a set is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// To train on.
    Train,
    /// To validate on.
    Valid,
    /// To test on.
    Test,
}

/// A file of a set, and where it is published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemoteFile {
    /// What it is for.
    pub split: Split,
    /// Its name in the set's folder.
    pub name: &'static str,
    /// Where it can be had.
    pub url: &'static str,
    /// The SHA-256 of what should be there, where it is known.
    pub sha256: Option<&'static str>,
}

/// The plain text of WikiText-2, as PyTorch's examples keep it.
macro_rules! wikitext_folder {
    () => {
        "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/"
    };
}

const SETS: [NamedSet; 4] = [
    NamedSet { name: "stories", about: "simple English stories, written by the program itself", files: &[] },
    NamedSet { name: "short", about: "a few hundred words of proverbs, for quick checks", files: &[] },
    NamedSet {
        name: "tinyshakespeare",
        about: "a million characters of Shakespeare's plays",
        files: &[RemoteFile {
            split: Split::Train,
            name: "input.txt",
            url: "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            sha256: Some("86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
        }],
    },
    NamedSet {
        name: "wikitext-2",
        about: "two million words of Wikipedia's good articles",
        files: &[
            wikitext(Split::Train, "wiki.train.tokens", concat!(wikitext_folder!(), "train.txt")),
            wikitext(Split::Valid, "wiki.valid.tokens", concat!(wikitext_folder!(), "valid.txt")),
            wikitext(Split::Test, "wiki.test.tokens", concat!(wikitext_folder!(), "test.txt")),
        ],
    },
];

const fn wikitext(split: Split, name: &'static str, url: &'static str) -> RemoteFile {
    RemoteFile { split, name, url, sha256: None }
}

/// Every set that has a name.
pub fn named_sets() -> &'static [NamedSet] {
    &SETS
}

/// The set of a name; `built-in` is another name of `stories`.
pub fn named_set(name: &str) -> Option<&'static NamedSet> {
    let name = if name == "built-in" { "stories" } else { name };
    SETS.iter().find(|set| set.name == name)
}

impl NamedSet {
    /// Whether it needs no files.
    pub fn is_built_in(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads it from the first of the folders that has it.
    pub(super) fn load(&self, folders: &[PathBuf], fraction: f64) -> Result<Corpus> {
        let homes: Vec<PathBuf> = folders.iter().map(|folder| folder.join(self.name)).collect();
        match homes.iter().find(|home| home.join(self.files[0].name).is_file()) {
            Some(home) => self.read(home, fraction),
            None => self.missing(&homes),
        }
    }

    /// Reads what is there of it in its folder; only the text to train on must be.
    fn read(&self, home: &Path, fraction: f64) -> Result<Corpus> {
        let mut files = Vec::new();
        let mut text_of = |split: Split| {
            let paths = self.files.iter().filter(|file| file.split == split).map(|file| home.join(file.name));
            match paths.into_iter().find(|path| path.is_file()) {
                Some(path) => {
                    files.push(path.clone());
                    read_text(&path).map(Some)
                }
                None => Ok(None),
            }
        };
        let train = text_of(Split::Train)?.unwrap_or_default();
        let (valid, test) = (text_of(Split::Valid)?, text_of(Split::Test)?);
        let divided = match valid {
            Some(valid) => Corpus { name: self.name.into(), train, valid, test: None, files },
            None => Corpus::divide(self.name, &train, fraction, files),
        };
        Ok(Corpus { test, ..divided })
    }

    /// Fetches its files into `home`, its own folder, those that are not there yet.
    #[cfg(all(feature = "download", not(target_arch = "wasm32")))]
    #[track_caller]
    pub fn download_with(&self, home: impl AsRef<Path>, options: &crate::data::Download) -> Result<()> {
        let _call = crate::call::Call::enter("NamedSet::download");
        self.files.iter().try_for_each(|file| {
            crate::data::download(file.url, home.as_ref().join(file.name), file.sha256, options)
        })
    }

    /// The command that fetches it.
    fn how_to_get(&self) -> String {
        let program =
            if cfg!(feature = "download") { "volta" } else { "cargo run --release --features download --" };
        format!("`{program} download {}`", self.name)
    }

    fn missing(&self, homes: &[PathBuf]) -> Result<Corpus> {
        let name = self.name;
        let file = self.files[0].name;
        let partial = homes.iter().flat_map(|home| self.files.iter().map(|file| home.join(file.name)));
        if let Some(there) = partial.into_iter().find(|path| path.is_file()) {
            bail!(
                Io,
                "{name} is not complete: {file} is missing beside {0}; get it with {1}, \
                 or give the path {0} to use that file alone",
                there.display(),
                self.how_to_get()
            );
        }
        let places: Vec<String> = homes.iter().map(|home| home.join(file).display().to_string()).collect();
        bail!(
            Io,
            "{name} is not on this machine; get it with {}, or set VOLTA_DATA to the folder \
             that holds {name}/{file}{}",
            self.how_to_get(),
            if places.is_empty() { String::new() } else { format!(" (looked for {})", places.join(", ")) }
        )
    }
}
