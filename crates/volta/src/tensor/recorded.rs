//! What a tensor is computed from, for those who write it down in another form.

use super::Tensor;
use crate::dtype::DType;
use crate::graph::Node;
use crate::op::Op;
use crate::shape::Shape;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// One value of a recorded computation.
#[doc(hidden)]
pub struct Recorded {
    pub op: Op,
    /// Places, in the list, of what it is computed from.
    pub sources: Vec<usize>,
    pub shape: Shape,
    pub dtype: DType,
    /// The public op that made it.
    pub label: &'static str,
    /// Which of the given tensors it is.
    pub given: Option<usize>,
    /// Its value, if it is there.
    pub value: Option<Tensor>,
}

/// All values that `outputs` are computed from, sources first, down to those of `given` and to what is computed already; and
/// the places of `outputs` among them.
#[doc(hidden)]
pub fn recorded(outputs: &[Tensor], given: &[Tensor]) -> (Vec<Recorded>, Vec<usize>) {
    let given: HashMap<u64, usize> = given.iter().enumerate().map(|(k, t)| (t.node().id, k)).collect();
    let mut nodes: HashMap<u64, Arc<Node>> = HashMap::new();
    let mut waiting: Vec<Arc<Node>> = outputs.iter().map(Tensor::node).collect();
    let sources = |node: &Node| {
        let ends = given.contains_key(&node.id) || node.is_realized();
        let sources = if ends { Vec::new() } else { node.sources().to_vec() };
        let count = node.op.value_sources(sources.len());
        sources.into_iter().take(count).collect::<Vec<_>>()
    };
    while let Some(node) = waiting.pop() {
        if let Entry::Vacant(place) = nodes.entry(node.id) {
            waiting.extend(sources(&node));
            place.insert(node);
        }
    }
    // Sources have smaller numbers than those who use them.
    let mut order: Vec<u64> = nodes.keys().copied().collect();
    order.sort_unstable();
    let places: HashMap<u64, usize> = order.iter().enumerate().map(|(place, &id)| (id, place)).collect();
    let entry = |id: &u64| {
        let node = &nodes[id];
        Recorded {
            op: node.op.clone(),
            sources: sources(node).iter().map(|source| places[&source.id]).collect(),
            shape: node.shape,
            dtype: node.dtype,
            label: node.origin.name,
            given: given.get(id).copied(),
            value: node.is_realized().then(|| Tensor::from_node(node.clone())),
        }
    };
    (order.iter().map(entry).collect(), outputs.iter().map(|t| places[&t.node().id]).collect())
}
