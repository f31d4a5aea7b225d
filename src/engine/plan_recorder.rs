//! The plans that run while something is done, for whoever wants to look at them.

use super::Prepared;
use crate::device::Device;
use std::cell::RefCell;
use std::sync::Arc;

/// Plans, and where they ran.
type Seen = Vec<(Device, Arc<Prepared>)>;

thread_local! {
    static SEEN: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

/// Does `f`, and gives the plans that this thread ran on `device` meanwhile, each once.
pub(crate) fn plans_of<R>(device: Device, f: impl FnOnce() -> R) -> (R, Vec<Arc<Prepared>>) {
    struct Restore(Option<Seen>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SEEN.set(self.0.take());
        }
    }
    let _restore = Restore(SEEN.replace(Some(Vec::new())));
    let result = f();
    let seen = SEEN.take().unwrap_or_default();
    (result, seen.into_iter().filter(|(on, _)| *on == device).map(|(_, plan)| plan).collect())
}

/// Notes a plan that runs, while somebody wants to know.
pub(super) fn see(device: Device, prepared: &Arc<Prepared>) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen
            && !seen.iter().any(|(_, known)| Arc::ptr_eq(known, prepared))
        {
            seen.push((device, prepared.clone()));
        }
    });
}
