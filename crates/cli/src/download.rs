//! `volta download`: sets of data by name, fetched when asked for, and the offer to do so where one is missing.

use super::output::{Failure, Outcome, Output, say};
use serde_json::json;
use std::path::PathBuf;
use volta::text::{Corpus, CorpusOptions, NamedSet, data_folder, named_set, named_sets};

#[derive(clap::Args)]
pub struct Options {
    /// The sets to fetch; without one they are listed.
    sets: Vec<String>,
    /// The folder to put them into, each in a folder of its own. [default: VOLTA_DATA, or volta's in the cache]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// A base URL to fetch from instead of the publishers' hosts, whose names are appended. [env: VOLTA_MIRROR]
    #[arg(long)]
    mirror: Option<String>,
}

/// Images, which the examples train on.
const IMAGES: [(&str, &str); 4] = [
    ("mnist", "70,000 handwritten digits, 11 MB"),
    ("fashion-mnist", "70,000 pictures of clothes, 30 MB"),
    ("cifar-10", "60,000 small photographs of 10 kinds, 170 MB"),
    ("cifar-100", "60,000 small photographs of 100 kinds, 169 MB"),
];

/// Fetches the sets, or lists them.
pub fn run(options: &Options, output: Output) -> Outcome {
    if options.sets.is_empty() {
        list(output);
        return Ok(());
    }
    // Wrong names are found before anything is fetched.
    if let Some(unknown) = options.sets.iter().find(|name| !is_known(name)) {
        return Err(Failure::Usage(format!(
            "there is no set {unknown:?} to fetch: `volta download` lists them"
        )));
    }
    let folder = match options.folder.clone() {
        Some(folder) => folder,
        None => default_folder()?,
    };
    for name in &options.sets {
        let home = folder.join(name);
        fetch(name, &home, options.mirror.clone(), output)?;
        output.result(&json!({"set": name, "folder": home}), format!("{name} is in {}", home.display()));
    }
    Ok(())
}

fn is_known(name: &str) -> bool {
    named_set(name).is_some_and(|set| !set.is_built_in()) || IMAGES.iter().any(|(image, _)| *image == name)
}

fn list(output: Output) {
    let texts = named_sets().iter().filter(|set| !set.is_built_in()).map(|set| (set.name, set.about));
    for (name, about) in texts.chain(IMAGES) {
        output.result(&json!({"set": name, "about": about}), format!("{name:<16} {about}"));
    }
    if !output.json {
        say("\n`volta download NAME` fetches one");
    }
}

/// Where sets are looked for first.
fn default_folder() -> Result<PathBuf, Failure> {
    data_folder().ok_or_else(|| {
        Failure::Usage("there is no folder for caches here: give one with --folder, or set VOLTA_DATA".into())
    })
}

/// The text of a run or of an evaluation. If it is a named set that is not on this machine, and somebody sits at the
/// terminal, they are asked whether to fetch it.
pub fn corpus(name: &str, options: &CorpusOptions, output: Output) -> Result<Corpus, Failure> {
    let missing = match Corpus::load(name, options) {
        Ok(corpus) => return Ok(corpus),
        Err(error) => error,
    };
    match named_set(name).filter(|set| !set.is_built_in()) {
        Some(set) if offer(set, output) => {
            fetch(set.name, &default_folder()?.join(set.name), None, output)?;
            Ok(Corpus::load(name, options)?)
        }
        _ => Err(missing.into()),
    }
}

#[cfg(feature = "download")]
mod transfer {
    use super::{Failure, NamedSet, Outcome, Output, named_set};
    use std::io::{BufRead, IsTerminal, Write};
    use std::path::Path;
    use volta::data::{Cifar10, Cifar100, Download, FashionMnist, Mnist};

    pub fn fetch(name: &str, home: &Path, mirror: Option<String>, output: Output) -> Outcome {
        let options = Download { mirror, progress: !output.quiet && !output.json, ..Download::default() };
        match name {
            "mnist" => Mnist::download_with(home, &options)?,
            "fashion-mnist" => FashionMnist::download_with(home, &options)?,
            "cifar-10" => Cifar10::download_with(home, &options)?,
            "cifar-100" => Cifar100::download_with(home, &options)?,
            _ => match named_set(name) {
                Some(set) => set.download_with(home, &options)?,
                None => return Err(Failure::Usage(format!("there is no set {name:?}"))),
            },
        }
        Ok(())
    }

    /// Asks at the terminal; without one the answer is no.
    pub fn offer(set: &NamedSet, output: Output) -> bool {
        if output.quiet || output.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal()
        {
            return false;
        }
        let from = set.files.first().map_or("", |file| file.url);
        let mut err = std::io::stderr();
        let _ =
            write!(err, "{} ({}) is not on this machine. Fetch it from {from}? [y/N] ", set.name, set.about);
        let _ = err.flush();
        let mut answer = String::new();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }
}

#[cfg(not(feature = "download"))]
mod transfer {
    use super::{Failure, NamedSet, Outcome, Output};
    use std::path::Path;

    pub fn fetch(name: &str, _: &Path, _: Option<String>, _: Output) -> Outcome {
        Err(Failure::Failed(format!(
            "this program was built without downloads; with them, in Volta's folder: \
             cargo run --release --features download -- download {name}"
        )))
    }

    pub fn offer(_: &NamedSet, _: Output) -> bool {
        false
    }
}
use transfer::{fetch, offer};
