//! How plans are made: with guards or without, fused or op by op.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const UNSET: u8 = 2;
static GUARDS: AtomicU8 = AtomicU8::new(UNSET);

/// Turns the guards on or off for the whole program: every op's result is checked for NaN and infinity, every
/// index for its bounds, and the first offender is an error that names the op, the shape and the line that
/// called it. Guarded plans are not fused and run slower. `VOLTA_GUARDS=1` turns them on from outside.
pub fn set_guards(on: bool) {
    GUARDS.store(u8::from(on), Relaxed);
}

/// Whether the guards are on.
pub fn guards_enabled() -> bool {
    match GUARDS.load(Relaxed) {
        UNSET => {
            let on = volta_ir::environment::values().guards;
            set_guards(on);
            on
        }
        on => on == 1,
    }
}

thread_local! {
    static FUSION: Cell<bool> = const { Cell::new(true) };
}

/// Runs `f` with or without fusion on this thread. Without it every op is a kernel of its own: slower, for
/// comparing.
pub fn with_fusion<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            FUSION.set(self.0);
        }
    }
    let _restore = Restore(FUSION.replace(on));
    f()
}

pub(super) fn fusion_enabled() -> bool {
    FUSION.get()
}
