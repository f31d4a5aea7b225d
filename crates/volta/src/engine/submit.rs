//! The one way from recorded nodes to a device, and what decides when they take it.

use super::{absent, dry_run, executor, guards_enabled, memory_limit, run};
use crate::device::Device;
use crate::error::Result;
use crate::graph::{Node, forget_recorded, recorded, take_pending};
use std::cell::Cell;
use std::sync::Arc;

/// What just happened on this thread that may be a reason to compute something.
pub(crate) enum Reason<'a> {
    /// These values are read.
    Read(&'a [&'a Arc<Node>]),
    /// These are wanted with all that this thread has pending and still holds: an optimizer's step, or a wait for everything.
    Step(&'a [Arc<Node>]),
    /// A backward pass begins at this value.
    Backward(&'a Arc<Node>),
    /// A backward pass has come to the operands of a large product: this gradient is computed with its siblings, of which those
    /// that are views of something stay so.
    LargeGradient { next: Arc<Node>, siblings: Vec<Arc<Node>> },
    /// A product of this operand, with so many results, is about to be recorded.
    Product { operand: &'a Arc<Node>, results: usize },
    /// An op over these nodes is about to be recorded.
    Op(&'a [Arc<Node>]),
}

/// Recorded nodes from which on a device may begin while more of them are recorded. Each further part of a forward pass is
/// twice as long: devices take longer for a node than the host does, and what lies between two parts is stored.
const FIRST_CHUNK_NODES: usize = 32;

/// Recorded nodes from which on a graph is not held any longer: planning takes little time for each, but they and what they are
/// made of take memory. A step of a large network records fewer.
const MAX_RECORDED_NODES: usize = 1 << 16;

thread_local! {
    /// Parts of this thread's forward pass that a device has begun with.
    static CHUNKS: Cell<u32> = const { Cell::new(0) };
}

/// Forgets how much this thread has recorded: whether something is due does not depend on what came before.
pub(crate) fn begin_independent() {
    CHUNKS.set(0);
    forget_recorded();
}

/// What is computed: values that are given memory of their own, and others of which views stay views.
type Work = (Vec<Arc<Node>>, Vec<Arc<Node>>);

/// Computes what is due for this reason. Whether anything was.
pub(crate) fn submit(reason: Reason<'_>) -> Result<bool> {
    let is_chunk = matches!(reason, Reason::Product { .. });
    let Some((values, siblings)) = due(reason)? else { return Ok(false) };
    run(values, siblings)?;
    if is_chunk {
        CHUNKS.set(CHUNKS.get() + 1);
    }
    Ok(true)
}

fn due(reason: Reason<'_>) -> Result<Option<Work>> {
    Ok(match reason {
        Reason::Read(nodes) => Some((nodes.iter().map(|node| Arc::clone(node)).collect(), Vec::new())),
        Reason::Step(nodes) => Some((nodes.to_vec(), take_pending())),
        Reason::LargeGradient { next, siblings } => Some((vec![next], siblings)),
        // A device that works beside the host begins with the forward pass, if that is long or it has begun already.
        Reason::Backward(loss) => {
            let has_begun = CHUNKS.replace(0) > 0;
            let is_long = has_begun || recorded() >= FIRST_CHUNK_NODES;
            (is_long && is_async(loss.device)?).then(|| (vec![loss.clone()], Vec::new()))
        }
        // As it does in the middle of one: at an operand that takes no more memory than the product will.
        Reason::Product { operand, results } => {
            let is_long = recorded() >> CHUNKS.get().min(16) >= FIRST_CHUNK_NODES
                && operand.shape.numel() <= results
                && operand.tracked
                && is_pending(operand);
            (is_long && is_async(operand.device)?).then(|| (Vec::new(), vec![operand.clone()]))
        }
        Reason::Op(sources) => {
            (absent::is_full(sources) || recorded() >= MAX_RECORDED_NODES && !dry_run::is_on()).then(|| {
                let mut nodes = take_pending();
                nodes.extend(sources.iter().filter(|source| !source.is_realized()).cloned());
                (Vec::new(), nodes)
            })
        }
    })
}

/// Whether a device computes while the host goes on. Checked runs and dry runs are one plan, and so are steps that may have to
/// compute again what the forward pass computes: what a part of it has handed out stays.
fn is_async(device: Device) -> Result<bool> {
    let executor = executor(device)?;
    Ok(!guards_enabled()
        && !dry_run::is_on()
        && executor.is_async()
        && !memory_limit::is_near(device, executor)?)
}

/// Whether it is, or is a view of, something that is yet to be computed.
fn is_pending(node: &Arc<Node>) -> bool {
    let mut node = node.clone();
    while node.storage().is_none() && node.leaf.is_none() {
        if !node.op.is_movement() && !node.op.is_alias() {
            return true;
        }
        let source = node.sources()[0].clone();
        node = source;
    }
    false
}
