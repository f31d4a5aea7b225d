//! Waiting for a future on the calling thread.

use crate::error::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

thread_local! {
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Whether whoever asks a future on this thread has nothing else to do meanwhile: it may wait for a device itself.
#[cfg(not(target_arch = "wasm32"))]
pub fn may_wait() -> bool {
    MAY_WAIT.get()
}

/// What a future gives, for callers that may wait. In a browser nobody may: there, what takes time is an error.
pub fn wait_for<T, F>(mut future: Pin<&mut F>) -> Result<T>
where
    F: Future<Output = Result<T>> + ?Sized,
{
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_WAIT.set(self.0);
        }
    }
    let _before = Before(MAY_WAIT.replace(true));
    let mut task = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut task) {
            return output;
        }
        if cfg!(target_arch = "wasm32") {
            let message = "a browser cannot wait for a GPU: use the form of this call that is a future, such as `to_vec_async`";
            return Err(Error::new(ErrorKind::Device, message));
        }
        // The answer is in the hands of another thread.
        std::thread::yield_now();
    }
}
