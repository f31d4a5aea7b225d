//! Fetching a model from Hugging Face's Hub into the cache that other programs share.
//!
//! A file lies under its checksum in `blobs`, and a link in `snapshots/COMMIT` gives it its name. What breaks off goes on from the
//! unfinished blob.

use super::{Download, git_sha1, sha256, transfer};
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::io::{Hub, HubRepo, is_plain_path};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use ureq::http::Response;
use ureq::{Agent, Body};

/// Small files that a model may need, beside its weights.
const WANTED: [&str; 14] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "adapter_config.json",
    "model.safetensors.index.json",
];
const WEIGHTS: &str = ".safetensors";
const GGUF: &str = ".gguf";
/// What follows the name of a blob that is not whole.
const UNFINISHED: &str = ".incomplete";

impl Hub {
    /// Fetches what is missing of a model, and gives its folder, or the file that is meant.
    ///
    /// # Errors
    /// A repository, a revision or a file that is not there or not public, a broken connection, a file that is not what was promised.
    #[track_caller]
    pub fn fetch(&self, repo: &HubRepo, options: &Download) -> Result<PathBuf> {
        let _call = Call::enter("Hub::fetch");
        let session = Session::new(self, options)?;
        let (commit, names) = session.list(repo)?;
        let chosen = chosen(repo, &names)?;
        let folder = self.folder(repo);
        let snapshot = folder.join("snapshots").join(&commit);
        for name in &chosen {
            session.file(repo, &commit, name, &folder)?;
        }
        // Last, so that what is named is whole.
        let named = folder.join("refs").join(&repo.revision);
        make_folder(named.parent().unwrap_or(&folder))?;
        crate::io::write_file(&named, commit.as_bytes())?;
        Ok(repo.file.as_ref().map_or_else(|| snapshot.clone(), |file| snapshot.join(file)))
    }
}

/// The files of a repository that are wanted.
fn chosen<'n>(repo: &HubRepo, names: &'n [String]) -> Result<Vec<&'n str>> {
    if let Some(file) = &repo.file {
        return match names.iter().find(|name| *name == file) {
            Some(name) => Ok(vec![name.as_str()]),
            None => bail!(Data, "{} has no file {file:?}", repo.name),
        };
    }
    let is_top = |name: &&str| !name.contains('/');
    let all = || names.iter().map(String::as_str);
    let weights: Vec<&str> = all().filter(is_top).filter(|name| name.ends_with(WEIGHTS)).collect();
    if weights.is_empty() {
        let single: Vec<&str> = all().filter(|name| name.ends_with(GGUF)).take(8).collect();
        if single.is_empty() {
            bail!(Data, "{} has no weights as safetensors or GGUF", repo.name);
        }
        bail!(
            Data,
            "{} has its weights as GGUF: name one, as in hf:{}/{}; there are {}",
            repo.name,
            repo.name,
            single[0],
            single.join(", ")
        );
    }
    Ok(all().filter(|name| WANTED.contains(name)).chain(weights).collect())
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(path, &e, "make a folder of the Hub's cache"))
}

struct Session<'a> {
    hub: &'a Hub,
    options: &'a Download,
    agent: Agent,
    /// The header that proves who asks.
    authorization: Option<String>,
}

impl<'a> Session<'a> {
    fn new(hub: &'a Hub, options: &'a Download) -> Result<Session<'a>> {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(options.patience))
            .timeout_recv_response(Some(options.patience))
            .timeout_per_read(Some(options.patience))
            .build()
            .into();
        let is_local = |rest: &str| {
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| {
                host.strip_prefix(local).is_some_and(|port| port.is_empty() || port.starts_with(':'))
            })
        };
        let is_open = hub.endpoint.strip_prefix("http://").is_some_and(|rest| !is_local(rest));
        if hub.token.is_some() && is_open {
            bail!(
                Argument,
                "HF_TOKEN would be sent in the clear to {}: use https, or unset it",
                hub.endpoint
            );
        }
        let authorization = hub.token.as_ref().map(|token| format!("Bearer {}", token.reveal()));
        Ok(Session { hub, options, agent, authorization })
    }

    fn failed(&self, url: &str, why: &str) -> Error {
        Error::new(ErrorKind::Io, format!("{url} could not be fetched: {why}"))
    }

    fn check(&self, url: &str, response: &Response<Body>) -> Result<()> {
        let status = response.status();
        let why = match status.as_u16() {
            200..=299 | 301..=308 => return Ok(()),
            401 | 403 if self.authorization.is_none() => {
                "it is not public, or there is no such thing: set HF_TOKEN to a token that may read it"
            }
            401 | 403 => "the token in HF_TOKEN may not read it: ask for access on its page",
            404 => "there is no such repository, revision or file",
            _ => "ask again later",
        };
        Err(self.failed(url, &format!("the server answered {status}: {why}")))
    }

    fn call(
        &self,
        mut request: ureq::RequestBuilder<ureq::typestate::WithoutBody>,
        url: &str,
    ) -> Result<Response<Body>> {
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let response = request.call().map_err(|e| self.failed(url, &e.to_string()))?;
        self.check(url, &response)?;
        Ok(response)
    }

    /// The commit of a revision, and the names of its files.
    fn list(&self, repo: &HubRepo) -> Result<(String, Vec<String>)> {
        let url = format!("{}/api/models/{}/revision/{}", self.hub.endpoint, repo.name, repo.revision);
        let mut response = self.call(self.agent.get(&url), &url)?;
        if response.status().is_redirection() {
            return Err(self.failed(&url, "the repository has another name now"));
        }
        let text = response.body_mut().read_to_string().map_err(|e| self.failed(&url, &e.to_string()))?;
        let json: Value =
            serde_json::from_str(&text).map_err(|_| self.failed(&url, "its answer is no JSON"))?;
        let names: Option<Vec<String>> = json["siblings"]
            .as_array()
            .map(|all| all.iter().filter_map(|file| Some(file["rfilename"].as_str()?.to_string())).collect());
        match (json["sha"].as_str().filter(|sha| is_hex(sha, 40)), names) {
            (Some(commit), Some(names)) => {
                // Names that would lead out of the cache are nobody's.
                Ok((commit.to_string(), names.into_iter().filter(|name| is_plain_path(name)).collect()))
            }
            _ => Err(self.failed(&url, "its answer names no commit and files")),
        }
    }

    /// Fetches one file, unless it is there.
    fn file(&self, repo: &HubRepo, commit: &str, name: &str, folder: &Path) -> Result<()> {
        let link = folder.join("snapshots").join(commit).join(name);
        if link.is_file() {
            return Ok(());
        }
        let url = format!("{}/{}/resolve/{commit}/{name}", self.hub.endpoint, repo.name);
        let response = self.call(self.agent.head(&url), &url)?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let tag = header("x-linked-etag")
            .or(header("etag"))
            .map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
        let Some(tag) = tag.filter(|tag| is_hex(tag, 40) || is_hex(tag, 64)) else {
            return Err(self.failed(&url, "the server does not say its checksum"));
        };
        let blobs = folder.join("blobs");
        make_folder(&blobs)?;
        let blob = blobs.join(tag);
        if !blob.is_file() {
            let unfinished = blobs.join(format!("{tag}{UNFINISHED}"));
            transfer::fetch(&url, &unfinished, self.options, self.authorization.as_deref())?;
            let found = if tag.len() == 64 { sha256(&unfinished)? } else { git_sha1(&unfinished)? };
            if found != tag {
                super::remove(&unfinished)?;
                bail!(
                    Data,
                    "{url} has the checksum {found} where {tag} was promised: it was thrown away; ask again"
                );
            }
            fs::rename(&unfinished, &blob)
                .map_err(|e| Error::io(&blob, &e, "put a download in its place"))?;
        }
        make_folder(link.parent().unwrap_or(folder))?;
        name_blob(&blob, &link, 2 + name.matches('/').count())
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Gives a blob its name: by a link, which other programs expect, and by a copy where there are none.
fn name_blob(blob: &Path, link: &Path, up: usize) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(link, &e, "name a file of the Hub's cache");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(link).map_err(failed)?;
    }
    #[cfg(unix)]
    {
        let name = blob.file_name().unwrap_or_default();
        let target: PathBuf = std::iter::repeat_n(Path::new(".."), up).collect();
        std::os::unix::fs::symlink(target.join("blobs").join(name), link).map_err(failed)
    }
    #[cfg(not(unix))]
    {
        let _ = up;
        fs::copy(blob, link).map(drop).map_err(failed)
    }
}
