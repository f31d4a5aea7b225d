//! Waiting for several devices at once.

use crate::error::Result;

/// `wait(k)` for each `k` below `count`, each on a thread of its own.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn on_each<T: Send>(count: usize, wait: &(impl Fn(usize) -> Result<T> + Sync)) -> Vec<Result<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|k| scope.spawn(move || wait(k))).collect();
        let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(joined).collect()
    })
}

/// A tab has one thread.
#[cfg(target_arch = "wasm32")]
pub(super) fn on_each<T>(count: usize, wait: &impl Fn(usize) -> Result<T>) -> Vec<Result<T>> {
    (0..count).map(wait).collect()
}
