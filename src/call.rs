//! Which public op the user called, and where: the outermost call on this thread names errors and nodes,
//! however many ops it is made of inside.

use std::cell::Cell;
use std::panic::Location;

/// The op a user called and the line that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub name: &'static str,
    pub location: &'static Location<'static>,
    /// Made while differentiating that op.
    pub backward: bool,
}

impl Origin {
    /// `matmul`, or `gradient of matmul`.
    pub fn label(&self) -> String {
        if self.backward { format!("gradient of {}", self.name) } else { self.name.to_string() }
    }
}

thread_local! {
    static CURRENT: Cell<Option<Origin>> = const { Cell::new(None) };
}

/// Marks a public call for as long as it lives; inside another one it changes nothing.
pub(crate) struct Call(Option<Option<Origin>>);

impl Call {
    #[track_caller]
    pub fn enter(name: &'static str) -> Call {
        // Not inside a closure, whose caller is this file.
        let origin = Origin { name, location: Location::caller(), backward: false };
        CURRENT.with(|c| match c.get() {
            Some(_) => Call(None),
            None => {
                c.set(Some(origin));
                Call(Some(None))
            }
        })
    }

    /// Whether the user made this call, and not another op.
    pub fn is_outermost(&self) -> bool {
        self.0.is_some()
    }

    /// Names what follows after `origin`, as its gradient.
    pub fn gradient_of(origin: Origin) -> Call {
        let origin = Origin { backward: true, ..origin };
        Call(Some(CURRENT.with(|c| c.replace(Some(origin)))))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(previous) = self.0 {
            CURRENT.with(|c| c.set(previous));
        }
    }
}

/// The running public call, or the caller itself where there is none.
#[track_caller]
pub(crate) fn current() -> Origin {
    CURRENT.with(Cell::get).unwrap_or(Origin { name: "volta", location: Location::caller(), backward: false })
}
