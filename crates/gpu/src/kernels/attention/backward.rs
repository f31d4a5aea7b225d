//! The backward pass, without adding to memory from several places: a dispatch whose workgroups own queries
//! leaves their gradients and what the second needs of every query, and one whose workgroups own keys leaves
//! those of keys and values. Both compute the weights again from the log-sum-exp. Where workgroups are few, both run at
//! once, and the second finds by itself what it needs.

use super::output_lse;
use super::problem::Problem;
use super::view::{OperandTile, View, bindings, result};
use crate::dispatch::{Binding, ComputeType, Memory};
use volta_ir::dtype::DType;
use volta_ir::op::attention::PackedGradient;
use volta_ir::plan::kernel::{NativeKernel, Operand};

pub(super) struct Gradient<'a> {
    pub problem: &'a Problem,
    pub output: &'a Operand,
    /// The forward pass's result and its log-sum-exp.
    pub out: View,
    pub lse: View,
    /// The gradient that flows into the result.
    pub grad: View,
    pub dq: OperandTile,
    pub dk: OperandTile,
    pub dv: OperandTile,
    /// Of the whole matrix of scores, whatever the mask's strides.
    pub dmask: Option<OperandTile>,
    /// Whether keys do not wait for queries.
    pub at_once: bool,
}

impl<'a> Gradient<'a> {
    pub fn of(problem: &'a Problem, kernel: &'a NativeKernel) -> Gradient<'a> {
        let (p, o) = (problem, &kernel.operands);
        let [out, lse] = output_lse::views(p, 3, &o[3]);
        let start = kernel.output.offset as usize;
        let places = PackedGradient::of([0, 1, 2].map(|k| o[k].shape));
        let [dq, dk, dv] = places.map(|place| {
            let piece = OperandTile::new("result", start + place.first(), place.rows, place.width);
            piece.side_by_side(place.across())
        });
        let dmask = start + places[2].end();
        let end = start + kernel.output.shape.numel();
        Gradient {
            problem,
            output: &kernel.output,
            out,
            lse,
            grad: View::of("grad", 4, &o[4]),
            dq,
            dk,
            dv,
            dmask: (dmask < end).then(|| OperandTile::new("result", dmask, p.queries, p.keys)),
            at_once: false,
        }
    }

    /// Bytes of what the dispatches hand on: for every query the log-sum-exp, then for every query the sum of
    /// its weights times their gradients.
    pub fn scratch(&self) -> u64 {
        (2 * self.problem.items() * self.problem.queries * 4) as u64
    }

    /// Where these two stand.
    pub fn statistics(&self) -> [OperandTile; 2] {
        let p = self.problem;
        let count = p.items() * p.queries;
        [0, count].map(|first| OperandTile::new("statistics", first, p.queries, 1))
    }

    pub fn statistics_binding(&self, writes: bool) -> Binding {
        Binding {
            name: "statistics",
            memory: Memory::Scratch(0),
            dtype: DType::F32,
            lane: ComputeType::F32,
            width: 1,
            reads: !writes,
            writes,
        }
    }

    /// What the queries' dispatch reads and writes.
    pub fn query_bindings(&self) -> Vec<Binding> {
        let inner = [&self.out, &self.grad].into_iter().filter(|v| v.cols > 0);
        let mut all = bindings(self.problem.views().chain(inner).chain([&self.lse]));
        let pieces: Vec<_> = [&self.dq].into_iter().chain(&self.dmask).collect();
        all.push(result(self.output.dtype, &pieces));
        all.extend((!self.at_once).then(|| self.statistics_binding(true)));
        all
    }

    /// What keys are shown besides queries, keys and values.
    pub fn seen_by_keys(&self) -> impl Iterator<Item = &View> {
        [&self.grad].into_iter().chain([&self.out, &self.lse].into_iter().filter(|_| self.at_once))
    }

    /// What the keys' dispatch reads and writes.
    pub fn key_bindings(&self) -> Vec<Binding> {
        let mut all = Vec::new();
        if self.problem.queries > 0 {
            all = bindings(self.problem.views().chain(self.seen_by_keys().filter(|v| v.cols > 0)));
            all.extend((!self.at_once).then(|| self.statistics_binding(false)));
        }
        all.push(result(self.output.dtype, &[&self.dk, &self.dv]));
        all
    }
}
