//! Whoever waits for a plan may want it to stop: a check that is asked now and then while kernels run.

use crate::error::{Error, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How often the check is asked at most: it may have to wait for others itself.
const EVERY: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_millis(20) };

/// Whether to stop.
type Check = Rc<dyn Fn() -> bool>;

thread_local! {
    static CHECK: RefCell<Option<Check>> = const { RefCell::new(None) };
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static ASKING: Cell<bool> = const { Cell::new(false) };
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
pub(crate) fn check_not_asking() -> Result<()> {
    if ASKING.get() {
        let message = "nothing can be computed while a plan is asked whether to stop, as in the handler of a signal: do it afterwards";
        return Err(Error::new(ErrorKind::Interrupted, message));
    }
    Ok(())
}

/// Whether somebody on this thread may want it to stop.
pub(crate) fn is_interruptible() -> bool {
    CHECK.with_borrow(Option::is_some)
}

/// An error if what this thread computes is not wanted any more.
pub(crate) fn check_interrupt() -> Result<()> {
    let Some(stops) = CHECK.with_borrow(Clone::clone) else { return Ok(()) };
    let now = Instant::now();
    if ASKED.get().is_some_and(|asked| now.duration_since(asked) < EVERY) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Linear, Module, SGD, Tensor, with_device};

    /// Runs `f`, and stops it when it has been asked so often.
    fn stopped_after<R>(asks: usize, f: impl FnOnce() -> R) -> R {
        let asked = Cell::new(0);
        interruptible(move || asked.replace(asked.get() + 1) >= asks, f)
    }

    fn is_interrupted<T>(result: &Result<T>) -> bool {
        result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted)
    }

    /// A value that takes several kernels.
    fn products(x: &Tensor) -> Tensor {
        (0..6).fold(x.clone(), |y, _| y.matmul(x) * 0.1)
    }

    #[test]
    fn what_is_interrupted_is_computed_when_it_is_asked_for_again() {
        let x = Tensor::rand([16, 16]).realize().clone();
        let wanted = products(&x).to_vec::<f32>();
        let y = products(&x);
        assert!(is_interrupted(&stopped_after(0, || y.try_to_vec::<f32>())));
        assert!(!y.is_realized());
        with_device(Device::Cpu, || {
            let x = x.to_device(Device::Cpu);
            let y = products(&x);
            let mut asks = 0;
            while is_interrupted(&stopped_after(asks, || y.try_to_vec::<f32>())) {
                assert!(!y.is_realized());
                asks += 1;
            }
            assert!(asks >= 6, "{asks} asks");
        });
        assert_eq!(y.to_vec::<f32>(), wanted);
    }

    /// Two steps of training, the first of which is stopped after so many asks; and whether it was.
    fn train(asks: usize, reads_loss: bool) -> (Vec<f32>, bool) {
        crate::manual_seed(1);
        let model = Linear::new(8, 8, true);
        let x = Tensor::rand([4, 8]).realize().clone();
        let mut sgd = SGD::new(model.parameters(), 0.1, 0.9, 0.0);
        let mut stopped = false;
        for step in 0..2 {
            sgd.zero_grad();
            let loss = model.forward(&model.forward(&x).tanh()).tanh().square().mean();
            if reads_loss {
                loss.item::<f32>();
            }
            loss.backward();
            if step == 0 {
                stopped = is_interrupted(&stopped_after(asks, || sgd.try_step()));
            } else {
                sgd.step();
            }
        }
        (model.parameters().iter().flat_map(|p| p.to_vec::<f32>()).collect(), stopped)
    }

    #[test]
    fn a_step_that_is_interrupted_is_taken_whole_or_when_its_values_are_asked_for() {
        let train = |asks, reads_loss| with_device(Device::Cpu, || train(asks, reads_loss));
        for reads_loss in [false, true] {
            let (wanted, stopped) = train(usize::MAX, reads_loss);
            assert!(!stopped);
            let mut asks = 0;
            while {
                let (found, stopped) = train(asks, reads_loss);
                assert_eq!(found, wanted, "stopped after {asks} asks: {stopped}");
                stopped
            } {
                asks += 1;
            }
            assert!(asks > 0);
        }
    }

    #[test]
    fn a_check_that_asks_for_values_is_told_that_it_cannot() {
        let (x, other) = (Tensor::rand([8, 8]).realize().clone(), Tensor::vector(&[1.0, 2.0]));
        let seen = Rc::new(Cell::new(None));
        let told = seen.clone();
        let y = interruptible(
            move || {
                let answer = other.exp().try_to_vec::<f32>();
                told.set(Some(answer.map_err(|error| error.kind())));
                false
            },
            || x.matmul(&x).try_to_vec::<f32>(),
        );
        assert!(y.is_ok());
        assert_eq!(seen.take(), Some(Err(ErrorKind::Interrupted)));
    }
}
