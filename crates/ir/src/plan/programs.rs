//! The program of every stored value by itself. Where one cannot be written, another value is stored first, and only the
//! programs that computed that one are written anew.

use super::fuse::natural_domain;
use super::graph::PlanGraph;
use super::kernel::MapKernel;
use super::lower_loops::{Builder, FusionBlocker};
use super::materialize::Materialized;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// What is stored, and a program for each of those that have one: the others are computed by kernels of their own kind.
pub(super) fn write_each(
    graph: &PlanGraph,
    mut stored: Materialized,
    fuse: bool,
) -> (Vec<bool>, Vec<Option<MapKernel>>) {
    let count = graph.nodes.len();
    let mut programs: Vec<Option<MapKernel>> = (0..count).map(|_| None).collect();
    // Those whose programs compute a value that is not stored.
    let mut users: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); count];
    // The first come first, always: of those behind, some are not known to be stored yet.
    let (mut all, mut again) = (0..count, BTreeSet::new());
    while let Some(n) = again.pop_first().or_else(|| all.next()) {
        let node = &graph.nodes[n];
        if !stored.flags[n] || node.input || node.op.needs_own_kernel() {
            continue;
        }
        let missing = match Builder::alone(graph, &stored.flags, &natural_domain(graph, n), n) {
            Ok((program, computed)) => {
                computed.into_iter().for_each(|m| users[m].push(n as u32));
                programs[n] = Some(program);
                continue;
            }
            // A value that blocks its own program is a view of something: store what it views.
            Err(FusionBlocker::Materialize(m)) if m != n => m,
            Err(_) => graph.source(n, 0),
        };
        debug_assert!(!stored.flags[missing], "node {missing} is stored already");
        again.insert(n);
        for changed in stored.add(graph, missing, fuse) {
            again.insert(changed);
            again.extend(std::mem::take(&mut users[changed]).into_iter().map(|user| user as usize));
        }
        // What has not been looked at yet has its turn anyway.
        again.split_off(&all.start);
    }
    (stored.flags, programs)
}
