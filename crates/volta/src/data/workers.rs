//! Threads that make batches ahead of use. Whichever makes one, they are handed out in order; how far the threads may
//! run ahead is bounded; and they are joined when nobody wants their batches any more.

use super::batch::{Walk, said};
use crate::error::{ErrorKind, Result};
use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

type Batch = Result<(Tensor, Tensor)>;

pub(super) struct Workers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

struct Queue {
    state: Mutex<QueueState>,
    /// Something changed: a batch was made, taken, or nobody wants more.
    changed: Condvar,
    ahead: usize,
    end: usize,
}

struct QueueState {
    /// The batch that the next free thread makes.
    to_make: usize,
    /// The batch that is handed out next.
    to_take: usize,
    made: BTreeMap<usize, Batch>,
    stopped: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a batch to make, once there is room for it; `None` when there is nothing left to do.
    fn claim(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.to_make >= self.end {
                return None;
            }
            if state.to_make < state.to_take + self.ahead {
                state.to_make += 1;
                return Some(state.to_make - 1);
            }
            state = self.wait(state);
        }
    }

    fn work(&self, walk: &Walk) {
        while let Some(number) = self.claim() {
            // Whatever happens, an answer comes: the consumer waits for it.
            let batch = catch_unwind(AssertUnwindSafe(|| walk.batch(number))).unwrap_or_else(|panic| {
                let message = format!("batch {number}: a worker panicked: {}", said(&*panic));
                Err(walk.error(ErrorKind::Data, message))
            });
            self.lock().made.insert(number, batch);
            self.changed.notify_all();
        }
    }
}

impl Workers {
    pub fn start(all: &Arc<Walk>, numbers: Range<usize>, count: usize, ahead: usize) -> Result<Workers> {
        let (to_make, to_take) = (numbers.start, numbers.start);
        let state = QueueState { to_make, to_take, made: BTreeMap::new(), stopped: false };
        let queue = Queue { state: Mutex::new(state), changed: Condvar::new(), ahead, end: numbers.end };
        // Dropped on an error below: the threads that did start are joined.
        let mut workers = Workers { queue: Arc::new(queue), threads: Vec::with_capacity(count) };
        for k in 0..count.min(numbers.len()) {
            let (queue, walk) = (workers.queue.clone(), all.clone());
            let thread = Builder::new().name(format!("volta-loader-{k}")).spawn(move || queue.work(&walk));
            match thread {
                Ok(thread) => workers.threads.push(thread),
                Err(e) => {
                    let message =
                        format!("thread {k} of {count} could not be started: {e}; use fewer workers");
                    return Err(all.error(ErrorKind::Io, message));
                }
            }
        }
        Ok(workers)
    }

    /// The next batch, as soon as it is there. There must be one left.
    pub fn next(&mut self) -> Batch {
        let mut state = self.queue.lock();
        loop {
            let wanted = state.to_take;
            if let Some(batch) = state.made.remove(&wanted) {
                state.to_take += 1;
                drop(state);
                self.queue.changed.notify_all();
                return batch;
            }
            state = self.queue.wait(state);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.lock().stopped = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            // Its panics were caught, so there is nothing to learn from how it ended.
            let _ = thread.join();
        }
    }
}
