//! How many threads compute, and what they do together. They are Volta's own: a caller inside somebody else's pool
//! waits without picking up that pool's work, which could wait for the engine in turn.

use super::thread_pool::Workers;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use volta_ir::call::Call;
use volta_ir::environment::{self, MAX_THREADS};
use volta_ir::error::{Result, bail};

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Lets the CPU compute with `count` threads, 1024 at most; 0 means as many as the machine has. It counts only before the
/// first computation; `VOLTA_THREADS` does the same from outside. Where the system does not start as many, it computes with
/// those that it does, and says so on standard error.
#[track_caller]
pub fn set_threads(count: usize) {
    try_set_threads(count).unwrap_or_else(|error| error.raise());
}

/// [`set_threads`] that returns its error.
#[track_caller]
pub fn try_set_threads(count: usize) -> Result<()> {
    let _call = Call::enter("set_threads");
    if count > MAX_THREADS {
        bail!(Argument, "{count} threads are too many: {MAX_THREADS} is the most");
    }
    ASKED.store(count, Ordering::Relaxed);
    Ok(())
}

/// How many threads compute: what was asked for, or as many as the machine has.
pub(crate) fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let set = ASKED.load(Ordering::Relaxed);
        if set > 0 {
            return set;
        }
        let available = || std::thread::available_parallelism().map_or(1, |n| n.get());
        environment::values().threads.unwrap_or_else(available).min(MAX_THREADS)
    })
}

/// Runs f(0..tasks), each once, over all threads; inline when there is nothing to share out.
pub fn parallel_for(tasks: usize, f: &(dyn Fn(usize) + Sync)) {
    static WORKERS: OnceLock<&'static Workers> = OnceLock::new();
    if tasks <= 1 || count() == 1 {
        (0..tasks).for_each(f);
    } else {
        WORKERS.get_or_init(|| Workers::start(count() - 1)).run(tasks, f);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_THREADS, try_set_threads};

    #[test]
    fn more_threads_than_can_be_are_an_error() {
        let error = try_set_threads(MAX_THREADS + 1).unwrap_err();
        assert!(error.message().contains("1025") && error.message().contains("1024"), "{error}");
    }
}
