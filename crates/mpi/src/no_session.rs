//! Without MPI a process is alone, and says so if it is not.

use crate::launcher::launched_size;
use std::sync::Arc;
use volta::parallel::{Single, World};
use volta::{Error, ErrorKind, Result};

/// MPI, from its beginning to its end.
pub struct Session(());

impl Session {
    /// A process by itself.
    ///
    /// # Errors
    ///
    /// A launcher has started several processes: each would take itself for the only one.
    pub fn begin() -> Result<Session> {
        match launched_size() {
            Some(size) if size > 1 => Err(Error::new(
                ErrorKind::Device,
                format!(
                    "a launcher has started {size} processes, and this Volta was built without MPI, so that they know nothing of \
                     each other: build it with the feature `mpi` (docs/parallel.md), or start it without the launcher"
                ),
            )),
            _ => Ok(Session(())),
        }
    }

    /// The process by itself.
    pub fn world(&self) -> Arc<dyn World> {
        Arc::new(Single)
    }
}
