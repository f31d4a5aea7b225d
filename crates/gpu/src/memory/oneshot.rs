//! An answer that a callback gives once, as a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// Gives the answer.
pub(crate) struct Sender<T>(Arc<Mutex<State<T>>>);

/// Waits for the answer.
pub(crate) struct Receiver<T>(Arc<Mutex<State<T>>>);

fn locked<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that is given once, and whoever waits for it.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = Arc::new(Mutex::new(State { value: None, waker: None }));
    (Sender(Arc::clone(&state)), Receiver(state))
}

impl<T> Sender<T> {
    pub fn give(self, value: T) {
        let waker = {
            let mut state = locked(&self.0);
            state.value = Some(value);
            state.waker.take()
        };
        // Outside the lock: the woken task may run at once.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// Whether the answer was given.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn is_there(&self) -> bool {
        locked(&self.0).value.is_some()
    }
}

impl<T> Future for Receiver<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = locked(&self.0);
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
