//! Fetching files over HTTP and HTTPS, when asked to: resumed where a connection broke, checked, and put in place only
//! when whole.

mod hub;
mod known;
mod transfer;

use crate::call::Call;
use crate::error::{Error, Result, bail};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to fetch a file.
#[derive(Clone, Debug)]
pub struct Download {
    /// A base URL to fetch from instead: `https://files.example/a` is asked for what `https://host/path` has at
    /// `https://files.example/a/host/path`. Without one the environment variable `VOLTA_MIRROR` is.
    pub mirror: Option<String>,
    /// How often to try again without a byte's progress in between.
    pub retries: u32,
    /// How long to wait before the second try; twice as long before each one after.
    pub pause: Duration,
    /// How long the other side may say nothing.
    pub patience: Duration,
    /// Whether to show a bar, where there is a terminal.
    pub progress: bool,
}

impl Default for Download {
    fn default() -> Download {
        Download {
            mirror: None,
            retries: 4,
            pause: Duration::from_millis(500),
            patience: Duration::from_secs(30),
            progress: true,
        }
    }
}

/// Fetches `url` into the file `path`. A file that is there already is not fetched again.
///
/// What arrives is kept in a `.part` file beside it, from which a broken transfer goes on, now or, with a checksum, when
/// asked for again. The file itself appears when all of it is there and its SHA-256 is the one given.
///
/// ```no_run
/// use volta::data::{Download, download};
/// let url = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";
/// let sum = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed";
/// download(url, "data/tinyshakespeare/input.txt", Some(sum), &Download::default())?;
/// # Ok::<(), volta::Error>(())
/// ```
#[track_caller]
pub fn download(url: &str, path: impl AsRef<Path>, sha256: Option<&str>, options: &Download) -> Result<()> {
    let _call = Call::enter("download");
    let path = path.as_ref();
    if path.exists() {
        return match sha256 {
            Some(sum) => check(path, sum, "delete it to fetch it again"),
            None => Ok(()),
        };
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e, "make a folder for a download"))?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    if sha256.is_none() {
        // Nothing would tell whether its beginning is of the same file.
        remove(&part)?;
    }
    transfer::fetch(&source(url, options)?, &part, options, None)?;
    if let Some(sum) = sha256
        && let Err(wrong) = check(&part, sum, "it was thrown away; the server has another file than expected")
    {
        remove(&part)?;
        return Err(wrong.with_context(url));
    }
    fs::rename(&part, path).map_err(|e| Error::io(path, &e, "put a download in its place"))
}

/// Where to ask: the URL itself, or the mirror's.
fn source(url: &str, options: &Download) -> Result<String> {
    let Some((scheme, place)) =
        url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))
    else {
        bail!(Argument, "{url:?} is no URL that begins with http:// or https://");
    };
    let mirror = match &options.mirror {
        Some(mirror) => Some(mirror),
        None => volta_ir::environment::get()?.mirror.as_ref(),
    };
    Ok(match mirror.filter(|base| !base.is_empty()) {
        Some(base) => format!("{}/{place}", base.trim_end_matches('/')),
        None => format!("{scheme}://{place}"),
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(path, &e, "remove a partial download"))
        }
        _ => Ok(()),
    }
}

/// Whether a file has this SHA-256.
fn check(path: &Path, sum: &str, help: &str) -> Result<()> {
    let found = sha256(path)?;
    if !found.eq_ignore_ascii_case(sum) {
        bail!(Data, "{} has SHA-256 {found} where {sum} was expected: {help}", path.display());
    }
    Ok(())
}

/// The SHA-256 of a file, in hexadecimal digits.
fn sha256(path: &Path) -> Result<String> {
    hashed(path, Sha256::new())
}

/// The name that Git gives to a file's content.
fn git_sha1(path: &Path) -> Result<String> {
    let length = fs::metadata(path).map_err(|e| Error::io(path, &e, "check a file"))?.len();
    hashed(path, Sha1::new_with_prefix(format!("blob {length}\0")))
}

fn hashed(path: &Path, mut hash: impl Digest) -> Result<String> {
    let failed = |e| Error::io(path, &e, "check a file");
    let mut file = crate::regular_file::open(path).map_err(failed)?;
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => break,
            n => hash.update(&block[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
