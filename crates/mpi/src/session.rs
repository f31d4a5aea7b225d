//! MPI from its beginning to its end.

use crate::launcher::launched_size;
use crate::world::MpiWorld;
use mpi::Threading;
use mpi::environment::Universe;
use std::sync::Arc;
use volta::parallel::{Single, World};
use volta::{Error, ErrorKind, Result};

/// MPI, from its beginning to its end, which must come on the thread that began it.
pub struct Session {
    /// None if this process is alone: MPI is not begun then.
    universe: Option<Universe>,
    world: Arc<dyn World>,
}

impl Session {
    /// Joins the other processes of the launcher, if there is one; a process by itself otherwise.
    ///
    /// # Errors
    ///
    /// MPI has begun already, or knows no threads.
    pub fn begin() -> Result<Session> {
        if launched_size().is_none() {
            return Ok(Session { universe: None, world: Arc::new(Single) });
        }
        let failed = |what: &str| Error::new(ErrorKind::Device, format!("MPI cannot be used: {what}"));
        let (universe, threading) = mpi::initialize_with_threading(Threading::Multiple)
            .ok_or_else(|| failed("it was begun before"))?;
        // One thread exchanges gradients, and another one may end everything meanwhile.
        if threading < Threading::Multiple {
            return Err(failed(
                "this build of it lets no second thread call it: it needs MPI_THREAD_MULTIPLE",
            ));
        }
        let world = Arc::new(MpiWorld::new());
        Ok(Session { universe: Some(universe), world })
    }

    /// This process among the others.
    pub fn world(&self) -> Arc<dyn World> {
        self.world.clone()
    }
}

impl Drop for Session {
    /// The end of MPI waits for all processes. A panic ends them instead, since they may wait for this one.
    fn drop(&mut self) {
        if self.universe.is_some() && std::thread::panicking() {
            self.world.abort(101);
        }
    }
}
