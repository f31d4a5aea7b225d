//! Plans that are made but not run: what a step would need, before it is taken.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Buffer, Node};
use crate::plan::Plan;
use crate::plan::report::PlanReport;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static SEEN: RefCell<Option<PlanReport>> = const { RefCell::new(None) };
}

/// Runs `f` until it would compute something of a structure that was not computed before, and gives the plan for that
/// without running it; `None` if there was nothing. What `f` changed until then stays changed, and what it assigned
/// stays pending, so it should work on tensors of its own.
///
/// ```
/// use volta::{Adam, Linear, Module, Tensor, plan_only};
/// let model = Linear::new(784, 10, true);
/// volta::realize_all(&model.parameters());
/// let mut adam = Adam::new(model.parameters(), 0.001, (0.9, 0.999), 1e-8, 0.0);
/// let plan = plan_only(|| {
///     model.try_forward(&Tensor::zeros([32, 784]))?.sum().try_backward()?;
///     adam.try_step()
/// })?;
/// assert!(plan.unwrap().peak_bytes > 0);
/// # Ok::<(), volta::Error>(())
/// ```
pub fn plan_only(f: impl FnOnce() -> Result<()>) -> Result<Option<PlanReport>> {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _restore = Restore(ON.replace(true));
    SEEN.set(None);
    match (f(), SEEN.take()) {
        (Err(e), Some(report)) if e.kind() == ErrorKind::NotRun => Ok(Some(report)),
        (Err(e), _) => Err(e),
        (Ok(()), report) => Ok(report),
    }
}

/// In the place of values that were never computed.
struct Assumed;

impl Buffer for Assumed {
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// They are there for plans that are only made.
    fn is_gone(&self) -> bool {
        !ON.get()
    }
}

/// Plans that are only made take this node for computed.
pub(crate) fn assume(node: &Node) {
    if !node.is_realized() {
        node.realize(Arc::new(Assumed));
    }
}

/// Whether these values are only assumed to be there.
pub(super) fn is_assumed(values: &dyn Buffer) -> bool {
    values.as_any().is::<Assumed>()
}

/// An error if these values were never computed.
pub(super) fn check(values: &dyn Buffer) -> Result<()> {
    if values.is_gone() && is_assumed(values) {
        let message =
            "these values were never computed: assume_computed was called for plans that are not run";
        return Err(Error::new(ErrorKind::NotRun, message));
    }
    Ok(())
}

/// Whether plans are only made.
pub(super) fn is_on() -> bool {
    ON.get()
}

/// Keeps the report of a new plan, and stops there, while plans are only made.
pub(super) fn look(plan: &Plan) -> Result<()> {
    if !ON.get() {
        return Ok(());
    }
    SEEN.set(Some(PlanReport::of(plan)));
    Err(Error::new(ErrorKind::NotRun, "the plan was made but not run, as plan_only asks"))
}
