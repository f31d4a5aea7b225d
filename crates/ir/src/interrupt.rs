//! Whoever waits for a plan may want it to stop: a check that is asked now and then while kernels run.

use crate::clock::Instant;
use crate::error::{Error, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// How often the check is asked at most: it may have to wait for others itself.
const EVERY: Duration = Duration::from_millis(20);

/// Whether to stop.
type Check = Rc<dyn Fn() -> bool>;

thread_local! {
    static CHECK: RefCell<Option<Check>> = const { RefCell::new(None) };
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static ASKING: Cell<bool> = const { Cell::new(false) };
    static INTERVAL: Cell<Duration> = const { Cell::new(EVERY) };
}

/// Runs `f`, and asks `stops` now and then whether what it computes is still wanted: between the kernels of a plan on the CPU,
/// and between its submissions and while waiting for it on a GPU. If not, the call that waits for values returns an error of
/// [`ErrorKind::Interrupted`]. Nothing is lost by that: what was not computed is computed when it is asked for again, and a plan
/// that has begun to write over what it is made of, as an optimizer's step does, is not stopped any more.
///
/// ```
/// use volta::{ErrorKind, Tensor, interruptible};
/// let x = Tensor::rand([64, 64]);
/// let stopped = interruptible(|| true, || x.matmul(&x).sum().try_item::<f32>());
/// assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
/// assert!(x.matmul(&x).sum().item::<f32>() > 0.0);
/// ```
pub fn interruptible<R>(stops: impl Fn() -> bool + 'static, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Check>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHECK.set(self.0.take());
        }
    }
    let _restore = Restore(CHECK.replace(Some(Rc::new(stops))));
    ASKED.set(None);
    f()
}

/// While the check is asked, which may do whatever it likes.
struct Asking;

impl Asking {
    fn begin() -> Asking {
        ASKING.set(true);
        Asking
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.set(false);
    }
}

/// An error in the middle of a plan of this thread, whose check asks for values: plans run one after the other.
pub fn check_not_asking() -> Result<()> {
    if ASKING.get() {
        let message = "nothing can be computed while a plan is asked whether to stop, as in the handler of a signal: do it afterwards";
        return Err(Error::new(ErrorKind::Interrupted, message));
    }
    Ok(())
}

/// Asks this thread's checks at every chance, however short ago the last one was. For tests.
#[doc(hidden)]
pub fn ask_at_every_chance() {
    INTERVAL.set(Duration::ZERO);
}

/// Whether somebody on this thread may want it to stop.
pub fn is_interruptible() -> bool {
    CHECK.with_borrow(Option::is_some)
}

/// An error if what this thread computes is not wanted any more.
pub fn check_interrupt() -> Result<()> {
    let Some(stops) = CHECK.with_borrow(Clone::clone) else { return Ok(()) };
    let now = Instant::now();
    if ASKED.get().is_some_and(|asked| now.duration_since(asked) < INTERVAL.get()) {
        return Ok(());
    }
    let stop = {
        let _asking = Asking::begin();
        stops()
    };
    // What takes long to answer is not asked all the time.
    ASKED.set(Some(Instant::now()));
    if stop {
        let message = "it was interrupted; what was not computed yet is computed when it is asked for again";
        return Err(Error::new(ErrorKind::Interrupted, message));
    }
    Ok(())
}
