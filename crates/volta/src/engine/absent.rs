//! Values that are not here between plans: a plan that reads them is given them for as long as it runs. Ranks that share out a model's
//! parameters keep them so.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Buffer, Node, Storage, is_grad_enabled};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// In the place of values that somebody else can bring.
pub(crate) struct Absent {
    /// By which they are asked for.
    pub number: usize,
    pub bytes: usize,
}

impl Buffer for Absent {
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// Nobody has them but while a plan runs.
    fn is_gone(&self) -> bool {
        true
    }
}

/// Brings the values of these numbers.
pub(crate) type Bring = dyn Fn(&[usize]) -> Result<Vec<Storage>>;

#[derive(Clone)]
struct Provider {
    bring: Rc<Bring>,
    /// A forward pass is computed as far as it is recorded before it reads more than this.
    most_bytes: usize,
}

thread_local! {
    static PROVIDER: RefCell<Option<Provider>> = const { RefCell::new(None) };
    /// What this thread's recorded nodes will read, and how many bytes that is.
    static AWAITED: RefCell<HashSet<usize>> = RefCell::default();
    static AWAITED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Until this is dropped, this thread's plans are brought what they read.
pub(crate) struct Provided(Option<Provider>);

/// Has `bring` bring absent values to this thread's plans. Of values in a forward pass, about so many bytes are here at once.
pub(crate) fn provide(bring: Rc<Bring>, most_bytes: usize) -> Provided {
    forget_awaited();
    Provided(PROVIDER.replace(Some(Provider { bring, most_bytes })))
}

impl Drop for Provided {
    fn drop(&mut self) {
        PROVIDER.set(self.0.take());
        forget_awaited();
    }
}

fn forget_awaited() {
    AWAITED.with_borrow_mut(HashSet::clear);
    AWAITED_BYTES.set(0);
}

fn absent(storage: &Storage) -> Option<&Absent> {
    storage.as_any().downcast_ref()
}

/// Whether what is recorded should be computed before an op over these nodes is: with it, a plan would read too much. The backward pass
/// is computed in buckets anyway.
pub(super) fn is_full(sources: &[Arc<Node>]) -> bool {
    if !is_grad_enabled() {
        return false;
    }
    let Some(most_bytes) = PROVIDER.with_borrow(|provider| provider.as_ref().map(|p| p.most_bytes)) else {
        return false;
    };
    let mut is_full = false;
    for node in sources {
        let Some(storage) = node.storage() else { continue };
        let Some(absent) = absent(&storage) else { continue };
        if AWAITED.with_borrow(|awaited| awaited.contains(&absent.number)) {
            continue;
        }
        if AWAITED_BYTES.get() > 0 && AWAITED_BYTES.get() + absent.bytes > most_bytes {
            is_full = true;
            forget_awaited();
        }
        AWAITED.with_borrow_mut(|awaited| awaited.insert(absent.number));
        AWAITED_BYTES.set(AWAITED_BYTES.get() + absent.bytes);
    }
    is_full
}

/// While it lives, the nodes that a plan reads have their values; then they are absent again.
pub(super) struct Brought(Vec<(Arc<Node>, Storage)>);

impl Drop for Brought {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|(node, absent)| node.realize(absent));
    }
}

/// Brings what is absent among the values that these nodes are computed of. It may wait for other ranks, so no engine is held meanwhile.
pub(super) fn bring<'n>(roots: impl Iterator<Item = &'n Arc<Node>>) -> Result<Brought> {
    let mut brought = Brought(Vec::new());
    let Some(provider) = PROVIDER.with_borrow(Clone::clone) else { return Ok(brought) };
    let mut found: BTreeMap<usize, Vec<(Arc<Node>, Storage)>> = BTreeMap::new();
    let mut seen = HashSet::new();
    let mut waiting: Vec<Arc<Node>> = roots.cloned().collect();
    while let Some(node) = waiting.pop() {
        if !seen.insert(node.id) {
            continue;
        }
        node.inspect(|sources, values| match values {
            Some(values) => {
                if let Some(absent) = absent(values) {
                    found.entry(absent.number).or_default().push((node.clone(), values.clone()));
                }
            }
            None => waiting.extend(sources[..node.op.value_sources(sources.len())].iter().cloned()),
        });
    }
    if found.is_empty() {
        return Ok(brought);
    }
    let numbers: Vec<usize> = found.keys().copied().collect();
    // What brings them may compute by itself.
    let storages = {
        let _nobody = Provided(PROVIDER.take());
        (provider.bring)(&numbers)?
    };
    for (nodes, storage) in found.into_values().zip(storages) {
        for (node, absent) in nodes {
            node.realize(storage.clone());
            brought.0.push((node, absent));
        }
    }
    Ok(brought)
}

/// An error if these values are absent.
pub(super) fn check(values: &dyn Buffer) -> Result<()> {
    if values.as_any().is::<Absent>() {
        let message = "this parameter is shared out among ranks, and no rank has all of it between steps: read it when training has ended, \
                       or share out less (Sharding::Gradients, --zero 2)";
        return Err(Error::new(ErrorKind::Argument, message));
    }
    Ok(())
}
