//! Writes the program of one map kernel: starting from what it must store, every value is followed back through
//! views and elementwise ops to the slots it is read from.

use super::graph::PlanGraph;
use super::kernel::{Access, Instruction, LoopLevel, MapKernel, Operand, Step, Store, Value};
use super::view::{Affine, Check, View};
use crate::dtype::{DType, Scalar};
use crate::op::formula::FormulaStep;
use crate::op::{Op, ReduceOp};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The loops of a kernel, named after the axes of a shape: first those that make rows, then those reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub shape: Shape,
    pub reduced: u8,
}

impl Domain {
    pub fn map(shape: Shape) -> Domain {
        Domain { shape, reduced: 0 }
    }

    /// Axes in loop order.
    fn order(&self) -> Vec<usize> {
        let is_reduced = |k: &usize| self.reduced >> k & 1 == 1;
        let axes = 0..self.shape.rank();
        axes.clone().filter(|k| !is_reduced(k)).chain(axes.filter(is_reduced)).collect()
    }

    fn outer(&self) -> usize {
        self.shape.rank() - self.reduced.count_ones() as usize
    }

    fn rows(&self) -> Shape {
        self.shape.without(self.reduced)
    }
}

/// Why a program could not be written.
pub enum FusionBlocker {
    /// This node's values are needed in memory first.
    Materialize(usize),
    /// The outputs do not belong into one kernel.
    Incompatible,
}

type Built<T> = Result<T, FusionBlocker>;

pub struct Builder<'a> {
    graph: &'a PlanGraph,
    /// What is read from memory if it is not computed here.
    stored: &'a [bool],
    /// What is computed here although it is stored.
    members: &'a [usize],
    domain: Domain,
    extents: Vec<usize>,
    outer: usize,
    code: Vec<Instruction>,
    known: HashMap<(usize, View), Value>,
    /// What is computed here and not stored, some more than once.
    computed: Vec<usize>,
}

impl<'a> Builder<'a> {
    /// The program that computes `members` and stores those of them that are `outputs`.
    pub fn build(
        graph: &'a PlanGraph,
        stored: &'a [bool],
        domain: &Domain,
        members: &'a [usize],
        outputs: &[usize],
    ) -> Built<MapKernel> {
        Builder::new(graph, stored, domain, members).write(outputs).map(|(kernel, _)| kernel)
    }

    /// The program that computes and stores one value, and what it computes on the way.
    pub fn alone(
        graph: &'a PlanGraph,
        stored: &'a [bool],
        domain: &Domain,
        n: usize,
    ) -> Built<(MapKernel, Vec<usize>)> {
        Builder::new(graph, stored, domain, &[n]).write(&[n])
    }

    fn new(graph: &'a PlanGraph, stored: &'a [bool], domain: &Domain, members: &'a [usize]) -> Builder<'a> {
        let extents: Vec<usize> = domain.order().iter().map(|&k| domain.shape[k]).collect();
        let outer = domain.outer();
        Builder {
            graph,
            stored,
            members,
            domain: domain.clone(),
            extents,
            outer,
            code: Vec::new(),
            known: HashMap::new(),
            computed: Vec::new(),
        }
    }

    fn write(mut self, outputs: &[usize]) -> Built<(MapKernel, Vec<usize>)> {
        let mut stores = Vec::new();
        for &node in outputs {
            stores.push(self.output(node)?);
        }
        let mut kernel = MapKernel { extents: self.extents, outer: self.outer, code: self.code, stores };
        kernel.remove_unused();
        Ok((kernel, self.computed))
    }

    fn loops(&self) -> usize {
        self.extents.len()
    }

    /// Where `view` stands in memory; loops of one iteration leave no trace in it.
    fn position(&self, view: &View) -> Affine {
        let mut position = view.position(self.loops());
        self.forget_single(&mut position);
        position
    }

    fn forget_single(&self, form: &mut Affine) {
        for (c, &e) in form.coefficients.iter_mut().zip(&self.extents) {
            if e <= 1 {
                *c = 0;
            }
        }
    }

    fn output(&mut self, node: usize) -> Built<Store> {
        let shape = self.graph.nodes[node].shape;
        let folds = matches!(self.graph.nodes[node].op, Op::Reduce { .. } | Op::ArgReduce { .. });
        let mut attempts = Vec::new();
        if shape.numel() == self.domain.shape.numel() && !(folds && self.domain.reduced != 0) {
            attempts.push((LoopLevel::Full, self.full_view()));
        }
        if self.domain.reduced != 0 && shape.numel() == self.domain.rows().numel() {
            attempts.push((LoopLevel::Row, self.row_view()));
        }
        // Behind no rows nothing is written.
        if self.domain.reduced != 0 && shape.numel() == 1 && self.domain.rows().numel() > 0 {
            attempts.push((
                LoopLevel::Global,
                View { shape: Shape::of(&[]), coordinates: Default::default(), checks: vec![] },
            ));
        }
        // What an attempt has left is only in the way of others.
        let others = attempts.len() > 1;
        let (code, known) = (self.code.len(), if others { self.known.clone() } else { HashMap::new() });
        let mut obstacle = FusionBlocker::Incompatible;
        for (rank, view) in attempts {
            // A shape without room is written nowhere; any view does.
            let Some(view) = view.to_shape(shape, &self.extents) else { continue };
            match self.value(node, &view).and_then(|v| self.raise(v, rank)) {
                Ok(value) => {
                    let access = Access { slot: node, position: self.position(&view) };
                    return Ok(Store { value, access });
                }
                Err(o) => obstacle = o,
            }
            if others {
                self.code.truncate(code);
                self.known.clone_from(&known);
            }
        }
        Err(obstacle)
    }

    fn full_view(&self) -> View {
        let order = self.domain.order();
        let mut loops_of = vec![0; order.len()];
        for (l, &axis) in order.iter().enumerate() {
            loops_of[axis] = l;
        }
        View::along(self.domain.shape, &loops_of, self.loops())
    }

    fn row_view(&self) -> View {
        let loops_of: Vec<usize> = (0..self.outer).collect();
        View::along(self.domain.rows(), &loops_of, self.loops())
    }

    fn push(&mut self, step: Step, dtype: DType, rank: LoopLevel) -> Value {
        self.code.push(Instruction { step, dtype, rank });
        self.code.len() - 1
    }

    /// `value` at the rank a store needs.
    fn raise(&mut self, value: Value, rank: LoopLevel) -> Built<Value> {
        let Instruction { dtype, rank: have, .. } = self.code[value];
        match (have, rank) {
            (a, b) if a == b => Ok(value),
            (LoopLevel::Uniform, _) | (LoopLevel::Row, LoopLevel::Full) => {
                Ok(self.push(Step::Broadcast(value), dtype, rank))
            }
            _ => Err(FusionBlocker::Incompatible),
        }
    }

    /// The rank of what is computed from `values`.
    fn common_level(&self, values: &[Value]) -> Built<LoopLevel> {
        let mut rank = LoopLevel::Uniform;
        for &v in values {
            rank = match (rank, self.code[v].rank) {
                (LoopLevel::Uniform, r) | (r, LoopLevel::Uniform) => r,
                (LoopLevel::Global, LoopLevel::Global) => LoopLevel::Global,
                (LoopLevel::Global, _) | (_, LoopLevel::Global) => return Err(FusionBlocker::Incompatible),
                (a, b) => a.max(b),
            };
        }
        Ok(rank)
    }

    fn rank_of(&self, forms: &[&Affine]) -> LoopLevel {
        let moves = |from: usize, to: usize| {
            forms.iter().any(|f| (from..to).any(|l| f.coefficients[l] != 0 && self.extents[l] > 1))
        };
        if moves(self.outer, self.loops()) || (moves(0, self.outer) && self.outer == self.loops()) {
            LoopLevel::Full
        } else if moves(0, self.outer) {
            LoopLevel::Row
        } else {
            LoopLevel::Uniform
        }
    }

    fn value(&mut self, node: usize, view: &View) -> Built<Value> {
        let node = self.graph.resolve(node);
        if let Some(&value) = self.known.get(&(node, view.clone())) {
            return Ok(value);
        }
        let value = self.compute(node, view)?;
        self.known.insert((node, view.clone()), value);
        Ok(value)
    }

    fn compute(&mut self, n: usize, view: &View) -> Built<Value> {
        let graph = self.graph;
        let node = &graph.nodes[n];
        if node.input || (self.stored[n] && !self.members.contains(&n)) {
            if node.shape.numel() == 0 {
                // Nobody uses an element of a tensor that has none, and none can be read.
                return Ok(self.push(Step::Literal(Scalar::Int(0)), node.dtype, LoopLevel::Uniform));
            }
            let position = self.position(view);
            let forms: Vec<&Affine> = view.checks.iter().map(|c| &c.form).chain([&position]).collect();
            let rank = self.rank_of(&forms);
            let access = Access { slot: n, position };
            return Ok(self.push(
                Step::Load { access, checks: view.checks.clone(), fill: Scalar::Int(0) },
                node.dtype,
                rank,
            ));
        }
        self.computed.push(n);
        match &node.op {
            Op::Const(_) => Ok(self.push(Step::Argument(n), node.dtype, LoopLevel::Uniform)),
            Op::Iota { axis } => {
                let here = self.shaped(view, n)?;
                let form = here.coordinates[*axis as usize].clone();
                let rank = self.rank_of(&[&form]);
                Ok(self.push(Step::Iota(form), node.dtype, rank))
            }
            Op::Random { kind, .. } => {
                let counter = self.position(view);
                let rank = self.rank_of(&[&counter]);
                Ok(self.push(Step::Random { kind: *kind, argument: n, counter }, node.dtype, rank))
            }
            op @ (Op::Unary(_) | Op::Cast | Op::Binary(_) | Op::Where) => {
                let mut of = SmallVec::<[Value; 3]>::new();
                for &source in &node.sources {
                    of.push(self.value(source, view)?);
                }
                self.apply(op, &of, node.dtype)
            }
            Op::FusedElementwise(formula) => {
                let mut values = SmallVec::<[Value; 24]>::new();
                for step in &formula.steps {
                    values.push(match step {
                        FormulaStep::Source(k) => self.alike(node.sources[*k], view)?,
                        FormulaStep::Apply { op, of, dtype } => {
                            let of: SmallVec<[Value; 3]> = of.iter().map(|&k| values[k]).collect();
                            self.apply(op, &of, *dtype)?
                        }
                    });
                }
                Ok(values[values.len() - 1])
            }
            Op::Gather { axis } => self.gather(n, *axis as usize, view),
            // Where a check fails, nobody asks for the value, which is a fill.
            Op::Assert(_) if !view.checks.is_empty() => Err(FusionBlocker::Materialize(n)),
            Op::Assert(assertion) => {
                let of = self.value(node.sources[0], view)?;
                let rank = self.code[of].rank;
                Ok(self.push(Step::Assert { of, assertion: *assertion, site: n }, node.dtype, rank))
            }
            Op::Reduce { op, axes } => {
                let (op, axes) = (*op, *axes);
                self.reduce(n, axes, view, |v| Step::Reduce(op, v)).or_else(|o| self.total(n, op, o))
            }
            Op::ArgReduce { max, axes } => {
                self.reduce(n, *axes, view, |of| Step::ArgReduce { max: *max, of })
            }
            Op::Pad { fill, .. } => self.pad(n, *fill, view),
            op if op.is_movement() => {
                let source = graph.source(n, 0);
                let inner = view.through(op, node.shape, graph.nodes[source].shape, &self.extents);
                self.value(source, &inner.ok_or(FusionBlocker::Materialize(n))?)
            }
            _ => Err(FusionBlocker::Materialize(n)),
        }
    }

    /// An elementwise op of values.
    fn apply(&mut self, op: &Op, of: &[Value], dtype: DType) -> Built<Value> {
        let step = match (op, of) {
            (Op::Unary(op), &[a]) => Step::Unary(*op, a),
            (Op::Cast, &[a]) => Step::Cast(a),
            (Op::Binary(op), &[a, b]) => Step::Binary(*op, a, b),
            (Op::Where, &[c, a, b]) => Step::Where(c, a, b),
            (op, of) => unreachable!("{} of {} values is not elementwise", op.name(), of.len()),
        };
        let rank = self.common_level(of)?;
        Ok(self.push(step, dtype, rank))
    }

    /// A source of a formula: one without axes is the same wherever it is looked at from.
    fn alike(&mut self, source: usize, view: &View) -> Built<Value> {
        let everywhere = View { shape: Shape::of(&[]), coordinates: Default::default(), checks: Vec::new() };
        let single = self.graph.nodes[source].shape.rank() == 0;
        self.value(source, if single { &everywhere } else { view })
    }

    fn shaped(&self, view: &View, n: usize) -> Built<View> {
        view.to_shape(self.graph.nodes[n].shape, &self.extents).ok_or(FusionBlocker::Materialize(n))
    }

    fn pad(&mut self, n: usize, fill: Scalar, view: &View) -> Built<Value> {
        let source = self.graph.source(n, 0);
        let (shape, dtype) = (self.graph.nodes[source].shape, self.graph.nodes[n].dtype);
        let node = &self.graph.nodes[n];
        let inner =
            view.through(&node.op, node.shape, shape, &self.extents).ok_or(FusionBlocker::Materialize(n))?;
        let value = self.value(source, &inner)?;
        if view.checks.is_empty()
            && let Instruction { step: Step::Load { access, checks, fill: none }, rank, .. } =
                &self.code[value]
            && *checks == inner.checks
            && none.to_f64() == 0.0
        {
            let step = Step::Load { access: access.clone(), checks: checks.clone(), fill };
            let rank = *rank;
            return Ok(self.push(step, dtype, rank));
        }
        let checks: Vec<Check> = inner.checks.iter().filter(|c| !view.checks.contains(c)).cloned().collect();
        let forms: Vec<&Affine> = checks.iter().map(|c| &c.form).collect();
        let rank = self.rank_of(&forms);
        let valid = self.push(Step::Valid(checks), DType::Bool, rank);
        let fill = self.push(Step::Literal(fill), dtype, LoopLevel::Uniform);
        let rank = self.common_level(&[valid, value])?;
        Ok(self.push(Step::Where(valid, value, fill), dtype, rank))
    }

    fn gather(&mut self, n: usize, axis: usize, view: &View) -> Built<Value> {
        // Where a check fails, the index is a fill, and the other coordinates lie outside of the table.
        if !view.checks.is_empty() {
            return Err(FusionBlocker::Materialize(n));
        }
        let node = &self.graph.nodes[n];
        let here = self.shaped(view, n)?;
        let table = self.graph.source(n, 0);
        let mut at = table;
        while !self.graph.nodes[at].input && !self.stored[at] && self.graph.nodes[at].op.is_movement() {
            self.computed.push(at);
            at = self.graph.source(at, 0);
        }
        let table = operand(self.graph, self.stored, table).map_err(FusionBlocker::Materialize)?;
        if self.members.contains(&table.slot) {
            return Err(FusionBlocker::Incompatible);
        }
        let mut position = Affine::constant(self.loops(), table.offset);
        for (k, form) in here.coordinates.iter().enumerate().filter(|(k, _)| *k != axis) {
            for (p, c) in position.coefficients.iter_mut().zip(&form.coefficients) {
                *p += c * table.strides[k];
            }
            position.offset += form.offset * table.strides[k];
        }
        self.forget_single(&mut position);
        let index = self.value(node.sources[1], view)?;
        let own = self.rank_of(&[&position]);
        let rank = match (own, self.code[index].rank) {
            (_, LoopLevel::Global) => return Err(FusionBlocker::Incompatible),
            (a, b) => a.max(b),
        };
        let access = Access { slot: table.slot, position };
        let step = Step::Gather { access, index, stride: table.strides[axis], extent: table.shape[axis] };
        Ok(self.push(step, node.dtype, rank))
    }

    /// A reduction over exactly the kernel's reduced loops, seen from where they do not matter.
    fn reduce(&mut self, n: usize, axes: u8, view: &View, step: impl Fn(Value) -> Step) -> Built<Value> {
        let graph = self.graph;
        let source = graph.source(n, 0);
        let shape = graph.nodes[source].shape;
        let mut here = self.shaped(view, n)?;
        let inner: Vec<usize> = (self.outer..self.loops()).collect();
        let moves = |f: &Affine| inner.iter().any(|&l| f.coefficients[l] != 0 && self.extents[l] > 1);
        if inner.is_empty()
            || here.coordinates.iter().any(moves)
            || here.checks.iter().any(|c| moves(&c.form))
        {
            return Err(FusionBlocker::Materialize(n));
        }
        let reduced: Vec<usize> = (0..shape.rank()).filter(|k| axes >> k & 1 == 1).collect();
        if reduced.len() != inner.len()
            || reduced.iter().zip(&inner).any(|(&k, &l)| shape[k] != self.extents[l])
        {
            return Err(FusionBlocker::Materialize(n));
        }
        for (&k, &l) in reduced.iter().zip(&inner) {
            here.coordinates[k] = Affine::index(self.loops(), l);
        }
        here.shape = shape;
        let value = self.value(source, &here)?;
        let value = self.raise(value, LoopLevel::Full)?;
        Ok(self.push(step(value), graph.nodes[n].dtype, LoopLevel::Row))
    }

    /// A sum of everything, of values that stand one to a row.
    fn total(&mut self, n: usize, op: ReduceOp, otherwise: FusionBlocker) -> Built<Value> {
        let source = self.graph.source(n, 0);
        let shape = self.graph.nodes[source].shape;
        let every_row = shape.numel() == self.domain.rows().numel() && self.graph.nodes[n].shape.numel() == 1;
        if self.domain.reduced == 0 || !every_row || shape.numel() == 0 {
            return Err(otherwise);
        }
        let Some(view) = self.row_view().to_shape(shape, &self.extents) else { return Err(otherwise) };
        let value = self.value(source, &view)?;
        let value = self.raise(value, LoopLevel::Row)?;
        Ok(self.push(Step::GlobalReduce(op, value), self.graph.nodes[n].dtype, LoopLevel::Global))
    }
}

/// A stored tensor seen through movement as strides; or the node that must be stored first.
pub fn operand(graph: &PlanGraph, stored: &[bool], node: usize) -> Result<Operand, usize> {
    let node = graph.resolve(node);
    let shape = graph.nodes[node].shape;
    let axes: Vec<usize> = (0..shape.rank()).collect();
    let mut view = View::along(shape, &axes, shape.rank());
    let mut at = node;
    // What only has another shape is the same in memory: others may read it under its first one.
    let mut same = node;
    while !graph.nodes[at].input && !stored[at] {
        let n = &graph.nodes[at];
        if !n.op.is_movement() {
            return Err(at);
        }
        let source = graph.source(at, 0);
        view = match view.through(&n.op, n.shape, graph.nodes[source].shape, &shape) {
            Some(v) if v.checks.is_empty() => v,
            _ => return Err(same),
        };
        if same == at && matches!(n.op, Op::Reshape) {
            same = source;
        }
        at = source;
    }
    let position = view.position(shape.rank());
    Ok(Operand {
        slot: at,
        dtype: graph.nodes[at].dtype,
        shape,
        strides: position.coefficients.to_vec(),
        offset: position.offset,
    })
}
