//! How many threads compute, and what they do together. They are Volta's own: a caller inside somebody else's pool
//! waits without picking up that pool's work, which could wait for the engine in turn.

use super::workers::Workers;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Lets the CPU compute with `count` threads. It counts only before the first computation; `VOLTA_THREADS` does
/// the same from outside.
pub fn set_threads(count: usize) {
    ASKED.store(count, Ordering::Relaxed);
}

/// How many threads compute: what was asked for, or as many as the machine has.
pub(crate) fn count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let set = ASKED.load(Ordering::Relaxed);
        if set > 0 {
            return set;
        }
        let asked = std::env::var("VOLTA_THREADS").ok().and_then(|v| v.parse().ok()).filter(|&n| n > 0);
        asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    })
}

/// Runs f(0..tasks), each once, over all threads; inline when there is nothing to share out.
pub(crate) fn parallel_for(tasks: usize, f: &(dyn Fn(usize) + Sync)) {
    static WORKERS: OnceLock<&'static Workers> = OnceLock::new();
    if tasks <= 1 || count() == 1 {
        (0..tasks).for_each(f);
    } else {
        WORKERS.get_or_init(|| Workers::start(count() - 1)).run(tasks, f);
    }
}
