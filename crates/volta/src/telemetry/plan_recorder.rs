//! The plans that run while something is done, for whoever wants to look at them.

use crate::device::Device;
use crate::plan::Plan;
use std::cell::RefCell;
use std::sync::Arc;

/// Plans, and where they ran.
type Recorded = Vec<(Device, Arc<Plan>)>;

thread_local! {
    static RECORDED: RefCell<Option<Recorded>> = const { RefCell::new(None) };
}

/// Does `f`, and gives the plans that this thread ran on `device` meanwhile, each once.
pub fn plans_of<R>(device: Device, f: impl FnOnce() -> R) -> (R, Vec<Arc<Plan>>) {
    struct Restore(Option<Recorded>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDED.set(self.0.take());
        }
    }
    let _restore = Restore(RECORDED.replace(Some(Vec::new())));
    let result = f();
    let recorded = RECORDED.take().unwrap_or_default();
    (result, recorded.into_iter().filter(|(on, _)| *on == device).map(|(_, plan)| plan).collect())
}

/// A plan runs on this thread.
pub(crate) fn record_plan(device: Device, plan: &Arc<Plan>) {
    RECORDED.with_borrow_mut(|recorded| {
        if let Some(recorded) = recorded
            && !recorded.iter().any(|(_, known)| Arc::ptr_eq(known, plan))
        {
            recorded.push((device, plan.clone()));
        }
    });
}
