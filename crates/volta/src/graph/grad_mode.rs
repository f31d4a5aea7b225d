//! Whether ops are recorded for differentiation, on this thread.

use std::cell::Cell;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        ENABLED.set(self.0);
    }
}

fn with_mode<R>(enabled: bool, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(ENABLED.replace(enabled));
    f()
}

/// Runs `f` without a tape: what it computes is not differentiated, and costs no memory for it.
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    with_mode(false, f)
}

/// Runs `f` with a tape, also inside [`no_grad`].
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    with_mode(true, f)
}

/// Whether what this thread computes is recorded for differentiation.
pub fn is_grad_enabled() -> bool {
    ENABLED.get()
}

/// What [`no_grad`] and [`enable_grad`] do, from now on and on this thread, until it is called again with what it
/// returns: for scopes that are not closures.
pub fn set_grad_enabled(yes: bool) -> bool {
    ENABLED.replace(yes)
}
