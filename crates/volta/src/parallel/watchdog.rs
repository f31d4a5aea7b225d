//! A thread that ends a run whose ranks hang.

use super::world::World;
use crate::clock::Instant;
use crate::error::{Error, ErrorKind, Result};
use crate::telemetry::counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Watches over the progress of this rank. Nothing counts before the first sign of life, since plans and shaders are compiled until then.
pub struct Watchdog {
    signs: Arc<Signs>,
}

#[derive(Default)]
struct Signs {
    count: AtomicU64,
    over: AtomicBool,
}

/// What grows as long as something is done. The first counts signs alone.
fn signs_of_life(signs: &Signs) -> [u64; 4] {
    let counted = counters();
    let signs = signs.count.load(Ordering::Relaxed);
    [signs, counted.plans_compiled, counted.shaders_compiled, counted.kernels_run]
}

/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Those who only wait for others leave it so long to the one that hangs to say so; further apart by rank, so that one speaks.
const GRACE: Duration = Duration::from_secs(2);
const GRACE_A_RANK: Duration = Duration::from_millis(200);

impl Watchdog {
    /// Calls `end` with the reason once there was no [`sign`](Self::sign) for `timeout`.
    pub fn start(
        world: Arc<dyn World>,
        timeout: Duration,
        end: impl FnOnce(&str) + Send + 'static,
    ) -> Result<Watchdog> {
        let signs = Arc::new(Signs::default());
        let seen = signs.clone();
        let watch = move || {
            let (mut last, mut since) = (signs_of_life(&seen), Instant::now());
            while !seen.over.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL.min(timeout / 4));
                let now = signs_of_life(&seen);
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                let waits = world.is_waiting();
                let patience =
                    if waits { timeout + GRACE + GRACE_A_RANK * world.rank() as u32 } else { timeout };
                if now[0] > 0 && since.elapsed() >= patience {
                    let seconds = since.elapsed().as_secs();
                    return end(&match waits {
                        true => format!(
                            "it has waited for the others for {seconds} s: one of them hangs, or cannot be reached"
                        ),
                        false => format!("it has made no progress for {seconds} s"),
                    });
                }
            }
        };
        let thread = std::thread::Builder::new().name("volta-watchdog".into()).spawn(watch);
        thread.map_err(|e| Error::new(ErrorKind::Io, format!("cannot start a thread: {e}")))?;
        Ok(Watchdog { signs })
    }

    /// Something was done.
    pub fn sign(&self) {
        self.signs.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.signs.over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::Single;
    use std::sync::mpsc::channel;

    #[test]
    fn who_gives_no_sign_any_more_is_ended_and_who_never_gave_one_is_not() {
        let (send, ended) = channel();
        let end = |name: &'static str| {
            let send = send.clone();
            move |reason: &str| send.send((name, reason.to_string())).unwrap()
        };
        let timeout = Duration::from_millis(1);
        let compiling = Watchdog::start(Arc::new(Single), timeout, end("compiling")).unwrap();
        let hanging = Watchdog::start(Arc::new(Single), timeout, end("hanging")).unwrap();
        hanging.sign();
        let (name, reason) = ended.recv().unwrap();
        assert_eq!(name, "hanging");
        assert!(reason.contains("no progress"), "{reason}");
        drop((hanging, compiling));
    }
}
