//! Which public op the user called, and where: the outermost call on this thread names errors and nodes,
//! however many ops it is made of inside. Inside a layer, ops keep their names, and the line is the one that
//! called the layer.

use std::cell::Cell;
use std::panic::Location;

/// The op a user called and the line that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub name: &'static str,
    pub location: &'static Location<'static>,
    /// Made while differentiating that op.
    pub backward: bool,
    /// The layer that called it, if one did.
    pub layer: Option<Layer>,
}

/// A layer while it runs: where it stands in memory, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layer {
    pub address: usize,
    pub kind: &'static str,
}

impl Origin {
    /// `matmul`, or `gradient of matmul`.
    pub fn label(&self) -> String {
        if self.backward { format!("gradient of {}", self.name) } else { self.name.to_string() }
    }
}

impl Origin {
    /// `name` called from here, or from where the running layer was called.
    #[track_caller]
    pub fn here(name: &'static str) -> Origin {
        let caller = Location::caller();
        let (location, layer) = SCOPE.with(Cell::get).map_or((caller, None), |s| (s.location, s.layer));
        Origin { name, location, backward: false, layer }
    }
}

/// What a running layer lends to the ops it calls.
#[derive(Clone, Copy)]
struct Scope {
    /// The line that called the outermost layer.
    location: &'static Location<'static>,
    layer: Option<Layer>,
}

thread_local! {
    static CURRENT: Cell<Option<Origin>> = const { Cell::new(None) };
    static SCOPE: Cell<Option<Scope>> = const { Cell::new(None) };
}

/// Marks a layer as running for as long as it lives.
pub struct LayerScope(Option<Scope>);

impl LayerScope {
    /// Without a `layer` only the caller's line is kept.
    #[track_caller]
    pub fn enter(layer: Option<Layer>) -> LayerScope {
        let caller = Location::caller();
        SCOPE.with(|s| {
            let outer = s.get();
            let location = outer.map_or(caller, |o| o.location);
            s.set(Some(Scope { location, layer: layer.or(outer.and_then(|o| o.layer)) }));
            LayerScope(outer)
        })
    }

    /// While it lives, what is called stands for itself, as code of the user's does.
    pub fn leave() -> LayerScope {
        LayerScope(SCOPE.with(Cell::take))
    }
}

impl Drop for LayerScope {
    fn drop(&mut self) {
        SCOPE.with(|s| s.set(self.0));
    }
}

/// Marks a public call for as long as it lives; inside another one it changes nothing.
pub struct Call(Option<Option<Origin>>);

impl Call {
    #[track_caller]
    pub fn enter(name: &'static str) -> Call {
        // Not inside a closure, whose caller is this file.
        let origin = Origin::here(name);
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
pub fn current() -> Origin {
    let here = Origin::here("volta");
    CURRENT.with(Cell::get).unwrap_or(here)
}
