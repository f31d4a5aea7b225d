//! A run of several processes: each finds its device, all must want the same, one of them speaks, and one that fails ends all.

use super::devices;
use crate::output::{Failure, Output, say_error};
use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use volta::parallel::{Watchdog, World, agree};
use volta::{Device, try_set_threads};
use volta_lm::{Config, RunManifest};

/// The processes of a run, or this one by itself.
pub struct Ranks {
    pub world: Arc<dyn World>,
    logs: OnceCell<Logs>,
    /// Whether all processes know that the run has failed.
    is_known: Cell<bool>,
}

impl Ranks {
    pub fn new(world: Arc<dyn World>) -> Ranks {
        Ranks { world, logs: OnceCell::new(), is_known: Cell::new(false) }
    }

    /// Whether this process is by itself.
    pub fn is_alone(&self) -> bool {
        self.world.size() == 1
    }

    /// Whether this process writes the files and speaks.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// How much this process says.
    pub fn output(&self, output: Output) -> Output {
        if self.is_first() { output } else { Output { quiet: true, json: false } }
    }

    /// The devices of this process. Of those that its machine has it takes the one of its number there, unless one is named; processes on
    /// one CPU share its threads.
    pub fn devices(&self, names: &str) -> Result<Vec<Device>, Failure> {
        let (own, count) = (self.world.local_rank(), self.world.local_size());
        let is_own = count > 1 && ["auto", "gpu"].contains(&names);
        if !is_own || !devices(names)?[0].is_gpu() {
            let all = devices(names)?;
            if !self.is_alone() && all.len() > 1 {
                return Err(Failure::Usage(format!(
                    "--device {names}: each rank has one device; start a rank for each, or one process for all of them"
                )));
            }
            return self.with_threads(all);
        }
        devices(&format!("gpu:{own}")).map_err(|failure| {
            Failure::Usage(format!(
                "{} has {count} ranks, and no GPU for the one with the local number {own} ({}): start one rank for each GPU, or let \
                 several share one by --device gpu:0",
                self.world.host(),
                failure.message()
            ))
        })
    }

    fn with_threads(&self, devices: Vec<Device>) -> Result<Vec<Device>, Failure> {
        let count = self.world.local_size();
        if !devices[0].is_gpu() && count > 1 && std::env::var_os("VOLTA_THREADS").is_none() {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            try_set_threads((cores / count).max(1))?;
        }
        Ok(devices)
    }

    /// What this process has come to, unless another one has failed: then that one says why, and all end.
    pub fn together<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        if self.is_alone() {
            return result;
        }
        let mine = result.as_ref().err().map_or(String::new(), |f| format!("{}:{}", f.code(), f.message()));
        let all = self.world.gather_texts(&mine)?;
        let Some((rank, said)) = all.iter().enumerate().find(|(_, said)| !said.is_empty()) else {
            return result;
        };
        self.is_known.set(true);
        let code = said.split(':').next().and_then(|code| code.parse().ok()).unwrap_or(1);
        match result {
            Err(failure) if rank == self.world.rank() => Err(self.named(failure)),
            _ => Err(Failure::Told(code)),
        }
    }

    /// A failure, with the name of the process if it is not the first.
    fn named(&self, failure: Failure) -> Failure {
        if self.is_first() { failure } else { failure.with_context(&self.world.name()) }
    }

    /// An error on all processes unless they have the same flags, version, text and tokenizer.
    pub fn agree(&self, config: &Config, begun: &RunManifest) -> Result<(), Failure> {
        let effective = config.effective();
        let keys = effective.lines().filter_map(|line| line.split_once(" = "));
        // What runs where is each machine's own business.
        let keys = keys.filter(|(name, _)| *name != "device").map(|(name, value)| (name, value.to_string()));
        let version = ("Volta's version", env!("CARGO_PKG_VERSION").to_string());
        let files = begun.notes().into_iter().filter_map(|(name, value)| match name {
            "text" => Some(("the text's fingerprint", value)),
            "tokenizer" => Some(("the tokenizer's fingerprint", value)),
            _ => None,
        });
        let values: Vec<_> = std::iter::once(version).chain(files).chain(keys).collect();
        let agreed = agree(&*self.world, &values).map_err(|e| Failure::usage(&e));
        self.is_known.set(agreed.is_err());
        // All have the same error, and one of them says it.
        if self.is_first() { agreed } else { agreed.map_err(|failure| Failure::Told(failure.code())) }
    }

    /// The folder of the run, which the first process knows; each has a log there.
    pub fn folder(&self, folder: Option<&Path>, device: Device) -> Result<PathBuf, Failure> {
        let folder = folder.map_or(String::new(), |folder| folder.display().to_string());
        let folder = PathBuf::from(self.world.broadcast_text(0, &folder)?);
        if !self.is_alone() {
            let opened = self.together(Logs::open(&folder, &*self.world))?;
            let logs = self.logs.get_or_init(|| opened);
            logs.add(
                self.world.rank(),
                &format!("process {} on {}, {device}", std::process::id(), self.world.host()),
            );
        }
        Ok(folder)
    }

    /// Something that happened, for this process's log.
    pub fn note(&self, line: &str) {
        if let Some(logs) = self.logs.get() {
            logs.add(self.world.rank(), line);
        }
    }

    /// Ends all processes if this one hangs, or waits in vain.
    pub fn watch(&self, timeout: Duration) -> Result<Option<Watchdog>, Failure> {
        if self.is_alone() || timeout.is_zero() {
            return Ok(None);
        }
        let (world, logs) = (self.world.clone(), self.logs.get().cloned());
        let end = move |reason: &str| {
            tell(&*world, logs.as_ref(), reason);
            world.abort(1);
        };
        Ok(Some(Watchdog::start(self.world.clone(), timeout, end)?))
    }

    /// Ends this process, and all others with it if it has failed while they go on.
    pub fn end(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        match outcome {
            Err(failure) if !self.is_alone() && failure.is_own() && !self.is_known.get() => {
                tell(&*self.world, self.logs.get(), failure.message());
                self.world.abort(failure.code().into());
                Err(failure)
            }
            other => other,
        }
    }
}

/// Says once why a run ends, and in the log of every process.
fn tell(world: &dyn World, logs: Option<&Logs>, reason: &str) {
    let reason = format!("{} has ended the run: {reason}", world.name());
    say_error(format_args!("error: {}", volta::text::printable(&reason)));
    if let Some(logs) = logs {
        (0..world.size()).for_each(|rank| logs.add(rank, &reason));
    }
}

/// A file for each process: what became of it.
#[derive(Clone)]
struct Logs {
    folder: PathBuf,
}

impl Logs {
    fn open(folder: &Path, world: &dyn World) -> Result<Logs, Failure> {
        let logs = Logs { folder: folder.join("ranks") };
        let failed = |e: std::io::Error| {
            Failure::Failed(format!(
                "cannot write {}: {e}; all ranks must see the folder of the run, as on a network's disk",
                logs.path(world.rank()).display()
            ))
        };
        // Made by the first process alone, this would be missing where its folder is not seen.
        match std::fs::create_dir(&logs.folder) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(e)),
            _ => logs.file(world.rank()).map(drop).map_err(failed),
        }?;
        Ok(logs)
    }

    fn path(&self, rank: usize) -> PathBuf {
        self.folder.join(format!("rank-{rank}.log"))
    }

    fn file(&self, rank: usize) -> std::io::Result<File> {
        File::options().append(true).create(true).open(self.path(rank))
    }

    /// A log that takes nothing is no reason to end.
    fn add(&self, rank: usize, line: &str) {
        let line = format!("{} {}\n", volta_lm::now(), line.replace('\n', " "));
        let _ = self.file(rank).and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
