//! Ranks of MPI as Volta's [`World`](volta::parallel::World). Nothing else in Volta knows MPI, and this crate only with its feature `mpi`.
//!
//! `launcher` tells whether a launcher such as `mpirun` or `srun` has started this process as one of several; `session` is MPI from its
//! beginning to its end, and `world` what a rank does in between.

mod launcher;
#[cfg(feature = "mpi")]
mod session;
#[cfg(not(feature = "mpi"))]
#[path = "no_session.rs"]
mod session;
#[cfg(feature = "mpi")]
mod world;

pub use launcher::launched_size;
pub use session::Session;
