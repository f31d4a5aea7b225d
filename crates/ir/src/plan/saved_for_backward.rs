//! What a backward pass will ask for: of the values that get memory anyway, those outlive the plan.

use super::graph::PlanGraph;
use crate::op::derivative;

/// Keeps them.
pub(super) fn keep(graph: &mut PlanGraph, stored: &[bool]) {
    let mut needed = vec![false; graph.nodes.len()];
    for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.taped) {
        let (result, sources) = derivative::needs(&node.op);
        needed[n] |= result;
        for (k, &source) in node.sources.iter().enumerate() {
            needed[source] |= sources >> k & 1 == 1;
        }
    }
    // What is not in memory is computed again, from what it was computed from.
    for n in (0..needed.len()).rev() {
        if needed[n] && !stored[n] && !graph.nodes[n].input {
            graph.nodes[n].sources.iter().for_each(|&source| needed[source] = true);
        }
    }
    for (node, (needed, stored)) in graph.nodes.iter_mut().zip(needed.into_iter().zip(stored)) {
        node.keep |= needed && *stored && !node.input;
    }
}
