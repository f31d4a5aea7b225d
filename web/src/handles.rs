//! The tables of what JavaScript holds. A handle is a place in one of them.
//!
//! JavaScript frees a tensor when its garbage is collected, which may be many steps after the last use. An optimizer's step
//! computes everything that somebody still holds, so intermediate results would all be stored that nobody looks at. Hence
//! `backward` lets go of them, as it does of the tape: of results of ops that other ops have read, unless they were asked to
//! be kept. What no op has read, such as a loss, stays; so do operands of losses, such as logits.

use crate::error::{Thrown, thrown};
use std::cell::RefCell;
use volta::Tensor;

/// A table of what JavaScript holds.
pub struct Table<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Table<T> {
    const fn new() -> Table<T> {
        Table { entries: Vec::new(), free: Vec::new() }
    }

    /// Puts something in a free place.
    pub fn insert(&mut self, entry: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                (self.entries.len() - 1) as u32
            }
        }
    }

    /// What a handle names.
    pub fn get(&mut self, handle: u32) -> Thrown<&mut T> {
        match self.entries.get_mut(handle as usize) {
            Some(Some(entry)) => Ok(entry),
            _ => Err(thrown("argument", "this was disposed of already")),
        }
    }

    /// Takes what a handle names out of the table, for a while: its place is kept.
    pub fn borrow(&mut self, handle: u32) -> Thrown<T> {
        match self.entries.get_mut(handle as usize).and_then(Option::take) {
            Some(entry) => Ok(entry),
            None => Err(thrown("argument", "this was disposed of already, or is busy with another call")),
        }
    }

    /// Puts back what was borrowed.
    pub fn restore(&mut self, handle: u32, entry: T) {
        if let Some(place) = self.entries.get_mut(handle as usize) {
            *place = Some(entry);
        }
    }

    /// Takes what a handle names out for good.
    pub fn remove(&mut self, handle: u32) -> Option<T> {
        let entry = self.entries.get_mut(handle as usize).and_then(Option::take)?;
        self.free.push(handle);
        Some(entry)
    }
}

/// A table of its own, with a name.
macro_rules! tables {
    ($($(#[$meta:meta])* $name:ident: $type:ty;)*) => {
        thread_local! {$(
            $(#[$meta])*
            pub static $name: RefCell<Table<$type>> = const { RefCell::new(Table::new()) };
        )*}
    };
}

tables! {
    TENSORS: Held;
    LAYERS: crate::nn::Layer;
    OPTIMIZERS: Box<dyn crate::optim::AnyOptimizer>;
    SCHEDULERS: volta::Scheduler;
    AVERAGES: volta::Ema;
    RUNS: crate::runs::AnyRun;
    WRITERS: volta_lm::Writer<'static>;
    PROFILERS: crate::profile::Profiling;
    RAW_DEVICES: std::sync::Arc<volta::gpu::GpuDevice>;
    RAW_BUFFERS: std::rc::Rc<volta::gpu::GpuBuffer>;
    RAW_TENSORS: std::rc::Rc<volta::gpu::GpuTensor>;
}

/// Results of ops from which on those that were freed are looked for.
const MAX_RESULTS: usize = 1 << 16;

thread_local! {
    /// Results of ops since the last backward pass.
    static RESULTS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// A tensor that JavaScript holds.
pub struct Held {
    /// None if a backward pass has let it go.
    tensor: Option<Tensor>,
    /// Whether an op has read it whose result is what people look at.
    is_consumed: bool,
    /// Whether it stays whoever has read it.
    is_kept: bool,
}

const RELEASED: &str = "this is an intermediate result, and backward() has let it go with the graph: call keep() on it before \
                        backward(), or read it before";

/// Holds a tensor that was made, or is somebody else's.
pub fn hold(tensor: Tensor) -> u32 {
    TENSORS
        .with_borrow_mut(|all| all.insert(Held { tensor: Some(tensor), is_consumed: false, is_kept: true }))
}

/// Holds the result of an op.
pub fn hold_result(tensor: Tensor) -> u32 {
    let is_kept = !tensor.is_tracked();
    let handle =
        TENSORS.with_borrow_mut(|all| all.insert(Held { tensor: Some(tensor), is_consumed: false, is_kept }));
    if !is_kept {
        RESULTS.with_borrow_mut(|results| {
            if results.len() >= MAX_RESULTS {
                // Nobody goes backward through them: those that were freed meanwhile are forgotten.
                results.sort_unstable();
                results.dedup();
                TENSORS.with_borrow_mut(|all| results.retain(|&result| all.get(result).is_ok()));
            }
            results.push(handle);
        });
    }
    handle
}

/// The tensor that a handle names.
pub fn tensor(handle: u32) -> Thrown<Tensor> {
    TENSORS.with_borrow_mut(|all| all.get(handle)?.tensor.clone().ok_or_else(|| thrown("autograd", RELEASED)))
}

/// The tensors that handles name.
pub fn tensors(handles: &[u32]) -> Thrown<Vec<Tensor>> {
    handles.iter().map(|&handle| tensor(handle)).collect()
}

/// [`tensors`] that an op reads.
pub fn operands(handles: &[u32]) -> Thrown<Vec<Tensor>> {
    let tensors = tensors(handles)?;
    TENSORS.with_borrow_mut(|all| {
        handles.iter().try_for_each(|&h| all.get(h).map(|held| held.is_consumed = true))
    })?;
    Ok(tensors)
}

/// Keeps a tensor whoever reads it.
pub fn keep(handle: u32) -> Thrown<()> {
    TENSORS.with_borrow_mut(|all| all.get(handle).map(|held| held.is_kept = true))
}

/// Lets go of intermediate results that nothing was asked of.
pub fn release_intermediates() {
    let results = RESULTS.take();
    let released: Vec<Option<Tensor>> = TENSORS.with_borrow_mut(|all| {
        let release = |&handle: &u32| match all.get(handle) {
            Ok(held) if held.is_consumed && !held.is_kept => held.tensor.take_if(|t| !t.is_realized()),
            _ => None,
        };
        results.iter().map(release).collect()
    });
    // Outside of the table: it may be the end of a long chain.
    drop(released);
}

/// Frees what JavaScript does not hold any longer.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn tensors_free(handles: &[u32]) {
    let freed: Vec<Option<Held>> =
        TENSORS.with_borrow_mut(|all| handles.iter().map(|&handle| all.remove(handle)).collect());
    drop(freed);
}
