//! Where text comes from: built in, a named set on disk, a file or a folder. Nothing is fetched unasked.

mod files;
mod named;
mod proverbs;

pub use named::{NamedSet, RemoteFile, Split, named_set, named_sets};

use crate::call::Call;
use crate::error::{Result, bail};
use std::path::{Path, PathBuf};

/// Where the numbers of the built-in stories start.
const STORIES_SEED: u64 = 0;
/// How much of them there is: enough to learn grammar from, and read over in seconds.
const STORIES_BYTES: usize = 450_000;

/// How a corpus is found and divided.
#[derive(Clone, Debug, PartialEq)]
pub struct CorpusOptions {
    /// The folder that holds named sets, each in a folder of its own; without one, that of `VOLTA_DATA`.
    pub folder: Option<PathBuf>,
    /// The part at the end that is kept for validation, where the set itself has none.
    pub valid_fraction: f64,
}

impl Default for CorpusOptions {
    fn default() -> Self {
        CorpusOptions { folder: None, valid_fraction: 0.1 }
    }
}

/// A text, divided into what is trained on and what is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// The set's name, or the name of the file or folder without its ending: what models are named after.
    pub name: String,
    /// The text to train on.
    pub train: String,
    /// The text to validate on; empty if its fraction is 0.
    pub valid: String,
    /// The text to test on, where the set has one.
    pub test: Option<String>,
    /// The files it was read from; none for what is built in.
    pub files: Vec<PathBuf>,
}

impl Corpus {
    /// Finds a text by the name of a set (see [`named_sets`]) or by the path of a file or a folder. A folder
    /// stands for all `.txt` and `.md` files under it, in the order of their paths.
    ///
    /// Sets that are not built in are looked for in [`CorpusOptions::folder`] or the folder that `VOLTA_DATA`
    /// names, then in [`cache_folder`].
    ///
    /// # Errors
    /// What is not there, with how to get it; a file that is not UTF-8, with the byte; a text that is empty.
    #[track_caller]
    pub fn load(name: &str, options: &CorpusOptions) -> Result<Corpus> {
        let _call = Call::enter("Corpus::load");
        let fraction = options.valid_fraction;
        check_fraction(fraction)?;
        let corpus = match named_set(name) {
            Some(set) if set.is_built_in() => {
                Corpus::divide(set.name, &built_in(set.name), fraction, Vec::new())
            }
            Some(set) => set.load(&folders(options), fraction)?,
            None => Corpus::from_path(Path::new(name), fraction)?,
        };
        if corpus.train.trim().is_empty() {
            bail!(Data, "there is no text to train on in {name:?}");
        }
        Ok(corpus)
    }

    /// A text of one's own, as [`load`](Self::load) divides that of a file; `name` is what models are named after.
    ///
    /// ```
    /// use volta::text::Corpus;
    /// let corpus = Corpus::from_text("poem", "one line\n".repeat(10).as_str(), 0.2)?;
    /// assert_eq!(corpus.valid, "one line\n".repeat(2));
    /// # Ok::<(), volta::Error>(())
    /// ```
    ///
    /// # Errors
    /// A text that is empty, and a fraction that is not less than 1.
    #[track_caller]
    pub fn from_text(name: &str, text: &str, valid_fraction: f64) -> Result<Corpus> {
        let _call = Call::enter("Corpus::from_text");
        check_fraction(valid_fraction)?;
        let corpus = Corpus::divide(name, text, valid_fraction, Vec::new());
        if corpus.train.trim().is_empty() {
            bail!(Data, "there is no text to train on in {name:?}");
        }
        Ok(corpus)
    }

    fn from_path(path: &Path, fraction: f64) -> Result<Corpus> {
        let (text, files) = files::read(path)?;
        let name = path.file_stem().map_or_else(|| "text".to_string(), |stem| stem.to_string_lossy().into());
        Ok(Corpus::divide(&name, &text, fraction, files))
    }

    /// Keeps the end of a text for validation. The cut is made at the end of a line where one is near.
    fn divide(name: &str, text: &str, fraction: f64, files: Vec<PathBuf>) -> Corpus {
        let mut cut = boundary(text, ((1.0 - fraction) * text.len() as f64).round() as usize);
        let near = boundary(text, cut + (text.len() - cut) / 4);
        if !text[..cut].ends_with('\n')
            && let Some(line_end) = text[cut..near].find('\n')
        {
            cut += line_end + 1;
        }
        let (train, valid) = text.split_at(cut);
        Corpus { name: name.to_string(), train: train.into(), valid: valid.into(), test: None, files }
    }
}

fn check_fraction(fraction: f64) -> Result<()> {
    if !(0.0..1.0).contains(&fraction) {
        bail!(Argument, "valid_fraction is {fraction}; it must be at least 0 and less than 1");
    }
    Ok(())
}

/// The last place up to `at` that is not inside of a character.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn built_in(name: &str) -> String {
    match name {
        "short" => proverbs::TEXT.to_string(),
        _ => super::stories(STORIES_SEED, STORIES_BYTES),
    }
}

/// Where named sets are looked for, in this order.
fn folders(options: &CorpusOptions) -> Vec<PathBuf> {
    let given = options.folder.clone().or_else(|| volta_ir::environment::values().data.clone());
    given.into_iter().chain(cache_folder()).collect()
}

/// Where named sets are looked for first, and put when they are fetched: the folder that `VOLTA_DATA` names, or else
/// [`cache_folder`].
pub fn data_folder() -> Option<PathBuf> {
    folders(&CorpusOptions::default()).into_iter().next()
}

/// The user's folder for data that was downloaded: `volta` in the system's folder for caches.
pub fn cache_folder() -> Option<PathBuf> {
    volta_ir::environment::values().user_cache.clone()
}

#[cfg(test)]
mod tests {
    use super::Corpus;

    #[test]
    fn the_cut_prefers_the_end_of_a_line_and_never_halves_a_character() {
        let lines = "0123456789\n".repeat(20);
        let corpus = Corpus::divide("x", &lines, 0.25, Vec::new());
        assert_eq!((corpus.train.len(), corpus.valid.len()), (165, 55));
        let corpus = Corpus::divide("x", &"é".repeat(50), 0.33, Vec::new());
        assert_eq!((corpus.train.len(), corpus.valid.len()), (66, 34));
        let corpus = Corpus::divide("x", "abc", 0.0, Vec::new());
        assert_eq!((corpus.train.as_str(), corpus.valid.as_str()), ("abc", ""));
    }
}
