//! Work of the host that is done while it waits for the device, and not at all if it never does.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, Weak};

/// What waits at most: the plans of a step.
const MAX_WAITING: usize = 8;

pub(crate) trait IdleWork: Send + Sync {
    fn work(&self, device: &wgpu::Device);
}

#[derive(Default)]
pub(crate) struct IdleQueue(Mutex<VecDeque<Weak<dyn IdleWork>>>);

impl IdleQueue {
    /// Adds work, instead of the oldest if there is too much.
    pub fn push(&self, work: Weak<dyn IdleWork>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(work);
    }

    /// Does the oldest; false if there is none. A browser's tab does not wait, and has no time for it.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code))]
    pub fn work_one(&self, device: &wgpu::Device) -> bool {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(next) = next else { return false };
        if let Some(work) = next.upgrade() {
            work.work(device);
        }
        true
    }
}
