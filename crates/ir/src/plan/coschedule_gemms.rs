//! Products of f16 with few results and long sums: by itself, such a product leaves a part of a large device idle. So those
//! that have time wait for others of their kind.

use super::fuse::{Body, Fusion};
use super::schedule::SMALL_KERNEL_ITERATIONS;
use crate::dtype::DType;
use crate::op::NativeOp;
use std::collections::HashMap;

/// Results that are few.
const MAX_UNDERFILLED_RESULTS: usize = 5 << 19;
/// Results of such products that keep a large device busy for several rounds of tiles. Where a plan has so many, they run in
/// batches, elsewhere in pairs. Products of a batch at most.
const MIN_BATCH_RESULTS: usize = 20 << 20;
const MAX_BATCH_GEMMS: usize = 12;

/// What they may keep in memory while they wait for a partner, or for a batch, as a part of all that the plan writes.
const PAIR_HELD: usize = 20;
const BATCH_HELD: usize = 10;

#[derive(Clone, Copy)]
struct Narrow {
    results: usize,
    /// Of each result.
    terms: usize,
    /// Whether there are enough of its kind for batches.
    batched: bool,
}

/// The narrow products among a plan's kernels in the making.
pub(super) struct UnderfilledGemms {
    groups: Vec<Option<Narrow>>,
}

impl UnderfilledGemms {
    pub fn of(fusion: &Fusion) -> UnderfilledGemms {
        let mut groups: Vec<Option<Narrow>> = fusion.groups.iter().map(|group| narrow(&group.body)).collect();
        let mut results: HashMap<usize, usize> = HashMap::new();
        groups.iter().flatten().for_each(|one| *results.entry(one.terms).or_default() += one.results);
        groups.iter_mut().flatten().for_each(|one| one.batched = results[&one.terms] >= MIN_BATCH_RESULTS);
        UnderfilledGemms { groups }
    }

    pub fn none() -> UnderfilledGemms {
        UnderfilledGemms { groups: Vec::new() }
    }

    fn get(&self, group: usize) -> Option<Narrow> {
        self.groups.get(group).copied().flatten()
    }

    pub fn contains(&self, group: usize) -> bool {
        self.get(group).is_some()
    }

    /// Those that wait, the oldest first, in pairs and batches of one kind; some are not full yet.
    pub fn together(&self, waiting: &[usize]) -> Vec<GemmBatch> {
        let mut all: Vec<GemmBatch> = Vec::new();
        for &group in waiting {
            let Some(narrow) = self.get(group) else { continue };
            let kind = |t: &&mut GemmBatch| t.terms == narrow.terms && t.groups.len() < t.most();
            match all.iter_mut().find(kind) {
                Some(others) => {
                    others.groups.push(group);
                    others.results += narrow.results;
                }
                None => {
                    let Narrow { results, terms, batched } = narrow;
                    all.push(GemmBatch { groups: vec![group], results, terms, batched });
                }
            }
        }
        all
    }

    /// Whether those that wait may keep so many bytes in memory, of so many that the plan writes.
    pub fn may_hold(&self, waiting: &[usize], held: usize, written: usize) -> bool {
        let batched = waiting.iter().any(|&group| self.get(group).is_some_and(|narrow| narrow.batched));
        held <= written / if batched { BATCH_HELD } else { PAIR_HELD }
    }
}

/// Narrow products that may run together.
pub(super) struct GemmBatch {
    pub groups: Vec<usize>,
    results: usize,
    terms: usize,
    batched: bool,
}

impl GemmBatch {
    fn most(&self) -> usize {
        if self.batched { MAX_BATCH_GEMMS } else { 2 }
    }

    /// Whether they need not wait for more.
    pub fn is_full(&self) -> bool {
        self.groups.len() == self.most() || self.batched && self.results >= MIN_BATCH_RESULTS
    }

    /// The order in which they run. In a batch the last one is first: what that reads was only just written, and once it has
    /// waited for it, nobody else has to.
    pub fn in_order(&self) -> Vec<usize> {
        if self.batched { self.groups.iter().rev().copied().collect() } else { self.groups.clone() }
    }
}

/// The product that this is, if it is narrow, but too much work for a small kernel.
fn narrow(body: &Body) -> Option<Narrow> {
    let Body::Native(s) = body else { return None };
    let halves = s.operands.iter().all(|operand| operand.dtype == DType::F16);
    let (results, terms) = (s.output.shape.numel(), s.operands[0].shape.last().copied().unwrap_or(1));
    let fits = s.op == NativeOp::Matmul
        && halves
        && s.epilogue.is_none()
        && s.prologues.is_empty()
        && results <= MAX_UNDERFILLED_RESULTS;
    (fits && results.saturating_mul(terms) > SMALL_KERNEL_ITERATIONS).then_some(Narrow {
        results,
        terms,
        batched: false,
    })
}
