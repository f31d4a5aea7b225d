//! Models by their names on Hugging Face's Hub, and the cache that other programs share: `models--OWNER--NAME/snapshots/COMMIT/…`.

use crate::call::Call;
use crate::error::{Result, bail};
use crate::regular_file::read_text;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What names of repositories begin with on command lines.
const SCHEME: &str = "hf:";
/// Where files come from unless told otherwise.
const ENDPOINT: &str = "https://huggingface.co";
/// The most bytes of a file that names a commit.
const MAX_REF_BYTES: usize = 256;

/// A repository of a model: `hf:OWNER/NAME`, with `@REVISION` behind it unless it is `main`, and with `/FILE` if one file is meant.
///
/// ```
/// use volta::io::HubRepo;
/// let repo: HubRepo = "hf:HuggingFaceTB/SmolLM2-135M-Instruct".parse()?;
/// assert_eq!((repo.name.as_str(), repo.revision.as_str()), ("HuggingFaceTB/SmolLM2-135M-Instruct", "main"));
/// assert!("hf:../secret".parse::<HubRepo>().is_err());
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubRepo {
    /// Owner and name.
    pub name: String,
    /// A branch, a tag or a commit.
    pub revision: String,
    /// The one file that is meant.
    pub file: Option<String>,
}

/// Whether a part of a path is a plain name.
fn is_plain(part: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "._-+ ".contains(c);
    !part.is_empty() && part.chars().all(known) && !part.chars().all(|c| c == '.')
}

/// Whether a path of a repository stays inside of it.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.split('/').all(is_plain)
}

impl FromStr for HubRepo {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<HubRepo> {
        let _call = Call::enter("HubRepo");
        let inner = text.strip_prefix(SCHEME).unwrap_or(text);
        let mut parts = inner.splitn(3, '/');
        let (owner, name, file) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next());
        let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
        let all = [owner, name, revision];
        if !all.into_iter().all(is_plain) || !file.is_none_or(is_plain_path) {
            bail!(
                Argument,
                "{text:?} is no model of the Hub: hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:OWNER/NAME/FILE is needed"
            );
        }
        Ok(HubRepo {
            name: format!("{owner}/{name}"),
            revision: revision.to_string(),
            file: file.map(String::from),
        })
    }
}

impl fmt::Display for HubRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.name)?;
        if self.revision != "main" {
            write!(f, "@{}", self.revision)?;
        }
        self.file.as_ref().map_or(Ok(()), |file| write!(f, "/{file}"))
    }
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// What is hidden, for the one place that needs it.
    #[cfg(feature = "download")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} characters)", self.0.chars().count())
    }
}

/// Where models come from, and where they are kept.
#[derive(Clone, Debug)]
pub struct Hub {
    /// A URL without a slash at its end.
    pub endpoint: String,
    /// The folder of all repositories.
    pub cache: PathBuf,
    /// What repositories that are not public ask for.
    pub token: Option<Secret>,
}

impl Hub {
    /// As the variables say that other programs read, too: `HF_ENDPOINT`, `HF_HUB_CACHE`, `HF_HOME` and `HF_TOKEN`.
    #[track_caller]
    pub fn from_environment() -> Result<Hub> {
        let _call = Call::enter("Hub::from_environment");
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = |name: &str| set(name).map(PathBuf::from);
        let text = |name: &str| match set(name).map(std::ffi::OsString::into_string) {
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => bail!(Argument, "the variable {name} is not UTF-8"),
            None => Ok(None),
        };
        let home = folder("HF_HOME").or_else(|| {
            let caches = folder("XDG_CACHE_HOME");
            let user = || folder(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
            Some(caches.or_else(|| Some(user()?.join(".cache")))?.join("huggingface"))
        });
        let Some(cache) = folder("HF_HUB_CACHE").or_else(|| Some(home?.join("hub"))) else {
            bail!(Argument, "there is no folder for models of the Hub: set HF_HOME");
        };
        let endpoint = text("HF_ENDPOINT")?.unwrap_or_else(|| ENDPOINT.to_string());
        if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
            bail!(
                Argument,
                "the variable HF_ENDPOINT is {endpoint:?}: a URL that begins with https:// is needed"
            );
        }
        Ok(Hub {
            endpoint: endpoint.trim_end_matches('/').to_string(),
            cache,
            token: text("HF_TOKEN")?.map(Secret::new),
        })
    }

    /// The folder of a repository.
    pub(crate) fn folder(&self, repo: &HubRepo) -> PathBuf {
        self.cache.join(format!("models--{}", repo.name.replace('/', "--")))
    }

    /// Where a model lies in the cache, if it is there: a folder, or the file that is meant. Nothing is fetched.
    #[track_caller]
    pub fn find(&self, repo: &HubRepo) -> Option<PathBuf> {
        let folder = self.folder(repo);
        let commit = read_text(&folder.join("refs").join(&repo.revision), MAX_REF_BYTES)
            .map_or_else(|_| repo.revision.clone(), |text| text.trim().to_string());
        if !is_plain(&commit) {
            return None;
        }
        let snapshot = folder.join("snapshots").join(commit);
        let found = match &repo.file {
            Some(file) => snapshot.join(file),
            None => snapshot,
        };
        let is_whole = |path: &Path| {
            if repo.file.is_some() { path.is_file() } else { path.join("config.json").is_file() }
        };
        is_whole(&found).then_some(found)
    }

    /// Where a model lies in the cache; an error that says how to fetch it if it does not.
    #[track_caller]
    pub fn need(&self, repo: &HubRepo) -> Result<PathBuf> {
        let _call = Call::enter("Hub::need");
        match self.find(repo) {
            Some(path) => Ok(path),
            None => {
                bail!(Io, "{repo} is not in {}: fetch it with `volta download {repo}`", self.cache.display())
            }
        }
    }
}
