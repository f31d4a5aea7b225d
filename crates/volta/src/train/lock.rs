//! One process at a time trains a run: a lock on its folder, which goes with the process, however that ends.

use crate::call::Call;
use crate::error::{Error, Result, bail};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file that is locked; in it stands the number of the process that has the lock.
const NAME: &str = "run.lock";

/// The right to write into the folder of a run, for as long as it lives. Whoever only reads needs none.
///
/// ```
/// use volta::train::RunLock;
///
/// # let folder = std::env::temp_dir().join(format!("volta-doc-lock-{}", std::process::id()));
/// let lock = RunLock::acquire(&folder)?;
/// let error = RunLock::acquire(&folder).unwrap_err();
/// assert!(error.message().contains(&format!("process {}", std::process::id())));
/// drop(lock);
/// RunLock::acquire(&folder)?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Debug)]
pub struct RunLock {
    folder: PathBuf,
    /// Unlocked when it is closed. Where files cannot be locked, as on some network disks, it is open all the same.
    _file: File,
}

impl RunLock {
    /// Locks a folder, which is made if need be. That another process has it locked is an error that names the process.
    #[track_caller]
    pub fn acquire(folder: impl AsRef<Path>) -> Result<RunLock> {
        let _call = Call::enter("RunLock::acquire");
        let folder = folder.as_ref();
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e, "make the folder of the run"))?;
        let path = folder.join(NAME);
        let failed = |e: std::io::Error| Error::io(&path, &e, "lock the run");
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(Io, "{}", in_use(folder, &mut file)),
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let name = format!("{}\n", std::process::id());
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(failed)?;
        file.write_all(name.as_bytes()).map_err(failed)?;
        Ok(RunLock { folder: folder.to_path_buf(), _file: file })
    }

    /// The folder that is locked.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// What to say about a folder that another process has locked.
fn in_use(folder: &Path, file: &mut File) -> String {
    let mut name = String::new();
    // On some systems a locked file cannot be read by others.
    let number = file.read_to_string(&mut name).ok().and_then(|_| name.trim().parse::<u32>().ok());
    let process = number.map_or("another process".to_string(), |number| format!("process {number}"));
    let stop =
        number.map_or("end it".to_string(), |number| format!("let it save and end by `kill -INT {number}`"));
    format!(
        "{process} is training the run in {}: wait until it has ended, or {stop}. What it has saved can be used meanwhile",
        folder.display()
    )
}
