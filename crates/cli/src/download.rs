//! `volta download`: sets of data and models by name, fetched when asked for, and the offer to do so where a set is missing.

use super::output::{Failure, Outcome, Output, say};
use super::pretrained::HUB;
use serde_json::json;
use std::path::PathBuf;
use volta::io::HubRepo;
use volta::text::{Corpus, CorpusOptions, NamedSet, data_folder, named_set, named_sets};

#[derive(clap::Args)]
pub struct Options {
    /// The sets to fetch, or models of the Hub: hf:OWNER/NAME, hf:OWNER/NAME@REVISION, hf:OWNER/NAME/FILE. Without one, sets are listed.
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
    let (models, sets): (Vec<&String>, Vec<&String>) =
        options.sets.iter().partition(|name| name.starts_with(HUB));
    // Wrong names are found before anything is fetched.
    let models: Vec<HubRepo> = models
        .iter()
        .map(|name| name.parse::<HubRepo>().map_err(|e| Failure::usage(&e)))
        .collect::<Result<_, Failure>>()?;
    if let Some(unknown) = sets.iter().find(|name| !is_known(name)) {
        return Err(Failure::Usage(format!(
            "there is no set {unknown:?} to fetch: `volta download` lists them"
        )));
    }
    for repo in &models {
        let path = fetch_model(repo, output)?;
        output.result(
            &json!({"model": repo.to_string(), "path": path}),
            format!("{repo} is in {}", path.display()),
        );
    }
    if sets.is_empty() {
        return Ok(());
    }
    let folder = match options.folder.clone() {
        Some(folder) => folder,
        None => default_folder()?,
    };
    for name in sets {
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
    use super::{Failure, HubRepo, NamedSet, Outcome, Output, named_set};
    use std::io::{BufRead, IsTerminal, Write};
    use std::path::{Path, PathBuf};
    use volta::data::{Cifar10, Cifar100, Download, FashionMnist, Mnist};
    use volta::io::Hub;

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

    pub fn fetch_model(repo: &HubRepo, output: Output) -> Result<PathBuf, Failure> {
        let options = Download { progress: !output.quiet && !output.json, ..Download::default() };
        let hub = Hub::from_environment().map_err(|e| Failure::usage(&e))?;
        Ok(hub.fetch(repo, &options)?)
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
    use super::{Failure, HubRepo, NamedSet, Outcome, Output};
    use std::path::{Path, PathBuf};

    fn missing(name: &str) -> Failure {
        Failure::Failed(format!(
            "this program was built without downloads; with them, in Volta's folder: \
             cargo run --release --features download -- download {name}"
        ))
    }

    pub fn fetch(name: &str, _: &Path, _: Option<String>, _: Output) -> Outcome {
        Err(missing(name))
    }

    pub fn fetch_model(repo: &HubRepo, _: Output) -> Result<PathBuf, Failure> {
        Err(missing(&repo.to_string()))
    }

    pub fn offer(_: &NamedSet, _: Output) -> bool {
        false
    }
}
use transfer::{fetch, fetch_model, offer};
