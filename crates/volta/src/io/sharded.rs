//! Opening paths: a file, an index that spreads a model over several files, or a folder with one of these.

use super::checkpoint::SHARDS;
use super::json::Json;
use super::source::Source;
use super::weights::Weights;
use crate::error::{Result, bail};
use crate::regular_file::MAX_HEADER_BYTES;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The names that Hugging Face gives to a model's file, the best first.
const USUAL: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// What an index may have in front of its first brace.
const MAX_BLANKS_BYTES: usize = 4096;

#[track_caller]
pub(super) fn open(path: &Path) -> Result<Weights> {
    if path.is_dir() {
        let found = USUAL.iter().map(|name| path.join(name)).find(|p| p.is_file());
        return match found {
            Some(file) => open(&file),
            None => bail!(Io, "the folder {} has none of {}", path.display(), USUAL.join(", ")),
        };
    }
    let source = Arc::new(Source::open(path)?);
    // A safetensors file may begin with any byte, but has a zero among the first eight, which text has not.
    let is_text = !source.iter().take(8).any(|&b| b == 0);
    let beginning = &source[..source.len().min(MAX_BLANKS_BYTES)];
    if is_text && beginning.trim_ascii_start().first() == Some(&b'{') {
        return spread(&source, path.parent().unwrap_or(Path::new("")));
    }
    with_shards(Weights::of(source.clone())?, &source, path)
}

/// What a file says, with the tensors of the files beside it that it lists, as the checkpoint of several ranks does.
#[track_caller]
pub(super) fn with_shards(weights: Weights, file: &Source, path: &Path) -> Result<Weights> {
    let Some(list) = weights.metadata().get(SHARDS) else { return Ok(weights) };
    let list = Json::parse(list).map_err(|e| file.wrong(format!("its list of shards is damaged: {e}")))?;
    let Some(names) = list.list() else { return Err(file.wrong("its list of shards is none")) };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = weights.entries().to_vec();
    for name in names {
        let plain = |name: &&str| Path::new(name).file_name().is_some_and(|n| n == *name);
        let Some(name) = name.text().filter(plain) else {
            return Err(file.wrong(format!("the shard {name} is no file beside it")));
        };
        let shard = Weights::of(Arc::new(Source::open(&folder.join(name))?))?;
        entries.extend_from_slice(shard.entries());
    }
    Weights::new(file.label(), entries, weights.metadata().clone())
}

/// The tensors that an index names, each from the file that the index says it is in.
fn spread(index: &Source, folder: &Path) -> Result<Weights> {
    if index.len() > MAX_HEADER_BYTES {
        let length = index.len();
        return Err(index
            .wrong(format!("an index of {length} bytes is too long: at most {MAX_HEADER_BYTES} are read")));
    }
    let text = std::str::from_utf8(index).map_err(|e| index.wrong(format!("it is not UTF-8: {e}")))?;
    let json = Json::parse(text).map_err(|e| index.wrong(format!("it is no index of tensors: {e}")))?;
    let Ok(map) = json.member("weight_map", Json::object) else {
        return Err(index.wrong("it is no index of tensors: it has no \"weight_map\""));
    };
    let mut files: HashMap<&str, Weights> = HashMap::new();
    let mut entries = Vec::new();
    for (name, file) in map {
        // Files of other folders are nobody's business.
        let plain = |file: &&str| Path::new(file).file_name().is_some_and(|n| n == *file);
        let Some(file) = file.text().filter(plain) else {
            return Err(
                index.wrong(format!("tensor {name:?} is said to be in {file}, which is no file beside it"))
            );
        };
        let weights = match files.get(file) {
            Some(weights) => weights,
            None => {
                let source = Source::open(&folder.join(file))?;
                files.entry(file).or_insert(Weights::of(Arc::new(source))?)
            }
        };
        match weights.entry(name) {
            Some(entry) => entries.push(entry.clone()),
            None => return Err(index.wrong(format!("tensor {name:?} is said to be in {file:?}, and is not"))),
        }
    }
    let metadata: BTreeMap<String, String> = match json.get("metadata").and_then(Json::object) {
        Some(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), value.text().map_or(value.to_string(), String::from)))
            .collect(),
        None => BTreeMap::new(),
    };
    Weights::new(index.label(), entries, metadata)
}
