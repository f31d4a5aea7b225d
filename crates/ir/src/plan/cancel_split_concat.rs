//! Sees a tensor that was cut into parts, and joined again, as the tensor it was: what parts of a result become in a
//! backward pass is often the result of one kernel, and is read where it stands instead of being copied together.

use super::graph::PlanGraph;
use crate::dtype::Scalar;
use crate::op::{BinaryOp, Op};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Where the elements of a node stand in the memory of another. An axis of one element has a stride of 0.
#[derive(Clone, PartialEq)]
pub(super) struct Strided {
    pub base: usize,
    pub strides: SmallVec<[isize; 6]>,
    pub offset: isize,
}

impl Strided {
    /// A tensor where it is.
    pub fn whole(base: usize, shape: Shape) -> Strided {
        let strides = shape.strides();
        let stride = |k: usize| if shape[k] == 1 { 0 } else { strides[k] };
        Strided { base, strides: (0..shape.rank()).map(stride).collect(), offset: 0 }
    }

    /// The result of a movement op, given where its source stands. Nothing is said of what repeats or adds elements.
    pub fn moved(&self, op: &Op, source: Shape, node: Shape) -> Option<Strided> {
        let mut offset = self.offset;
        let strides = match op {
            Op::Reshape => reshaped(&self.strides, source, node)?,
            Op::Permute(order) => (0..node.rank()).map(|k| self.strides[order[k] as usize]).collect(),
            Op::Slice(parts) => {
                let mut strides = self.strides.clone();
                for (stride, &(start, step)) in strides.iter_mut().zip(parts.iter()) {
                    offset += start as isize * *stride;
                    *stride *= step as isize;
                }
                strides
            }
            _ => return None,
        };
        let mut moved = Strided { base: self.base, strides, offset };
        moved.strides.iter_mut().zip(node.iter()).filter(|(_, e)| **e == 1).for_each(|(s, _)| *s = 0);
        Some(moved)
    }

    /// Whether it is the whole of `base`, of this shape, in order.
    fn is_all(&self, shape: Shape, base: Shape) -> bool {
        shape.numel() == base.numel() && *self == Strided::whole(self.base, shape)
    }
}

/// The strides of the same elements in order under another shape, if axes that it joins are one walk.
fn reshaped(strides: &[isize], from: Shape, to: Shape) -> Option<SmallVec<[isize; 6]>> {
    let mut out = SmallVec::from_elem(0, to.rank());
    if to.numel() == 0 {
        return None;
    }
    // From the innermost axes outwards: a walk of `left` elements `stride` apart is what the new axes are cut from.
    let mut old = (0..from.rank()).rev().filter(|&k| from[k] != 1);
    let (mut left, mut stride) = (1, 0);
    for k in (0..to.rank()).rev().filter(|&k| to[k] != 1) {
        if left == 1 {
            let axis = old.next()?;
            (left, stride) = (from[axis], strides[axis]);
        }
        while left % to[k] != 0 {
            let axis = old.next()?;
            if strides[axis] != stride * left as isize {
                return None;
            }
            left *= from[axis];
        }
        out[k] = stride;
        stride *= to[k] as isize;
        left /= to[k];
    }
    Some(out)
}

/// More parts than this are not looked at: each sum of them would cost as much again.
const MAX_PARTS: usize = 32;

/// What is known of a node.
#[derive(Clone)]
enum Known {
    Whole(Strided),
    /// Parts along an axis, each with the place where it begins, and zeros around them.
    Parts {
        axis: usize,
        parts: Vec<(usize, usize, Strided)>,
    },
}

/// Replaces what is the whole of another tensor again by a name of it.
pub(super) fn run(graph: &mut PlanGraph) {
    let mut known: Vec<Option<Known>> = Vec::with_capacity(graph.nodes.len());
    // What each node is no more than another shape of.
    let mut shaped_of: Vec<usize> = Vec::with_capacity(graph.nodes.len());
    let mut any = false;
    for n in 0..graph.nodes.len() {
        let found = look(graph, n, &known);
        let node = &graph.nodes[n];
        let is_alias = matches!(node.op, Op::Reshape) || node.op.is_alias();
        shaped_of.push(if !node.input && is_alias { shaped_of[node.sources[0]] } else { n });
        if let Some(Known::Whole(at)) = &found
            && at.base != n
            && at.is_all(graph.nodes[n].shape, graph.nodes[at.base].shape)
            && shaped_of[n] != shaped_of[at.base]
        {
            graph.nodes[n].op = Op::Reshape;
            graph.nodes[n].sources = SmallVec::from_slice(&[at.base]);
            shaped_of[n] = shaped_of[at.base];
            any = true;
        }
        known.push(found);
    }
    if any {
        forget_unread(graph);
    }
}

/// Where node `n` stands, given what is known of those before it.
fn look(graph: &PlanGraph, n: usize, known: &[Option<Known>]) -> Option<Known> {
    let node = &graph.nodes[n];
    let source = |k: usize| Some((known[node.sources[k]].as_ref()?, graph.nodes[node.sources[k]].shape));
    let itself = || Some(Known::Whole(Strided::whole(n, node.shape)));
    match &node.op {
        _ if node.input => itself(),
        op if op.is_alias() => source(0).map(|(known, _)| known.clone()),
        Op::Pad { pads, fill } => {
            let (Known::Whole(at), shape) = source(0)? else { return None };
            let mut padded = (0..pads.len()).filter(|&k| pads[k] != (0, 0));
            let (Some(axis), None) = (padded.next(), padded.next()) else { return None };
            let part = (pads[axis].0, shape[axis], at.clone());
            is_zero(*fill).then(|| Known::Parts { axis, parts: vec![part] })
        }
        op if op.is_movement() => {
            let (Known::Whole(at), shape) = source(0)? else { return None };
            at.moved(op, shape, node.shape).map(Known::Whole)
        }
        Op::Binary(BinaryOp::Add) => {
            let sides = (source(0).map(|s| s.0), source(1).map(|s| s.0));
            let (Some(Known::Parts { axis, parts: a }), Some(Known::Parts { axis: other, parts: b })) = sides
            else {
                return itself();
            };
            let apart = |x: &Strided, y: &Strided| x.base != y.base || x.strides.len() != y.strides.len();
            if axis != other || a.len() + b.len() > MAX_PARTS || apart(&a[0].2, &b[0].2) {
                return itself();
            }
            let mut parts = [&a[..], &b[..]].concat();
            parts.sort_unstable_by_key(|part| part.0);
            if parts.windows(2).any(|two| two[0].0 + two[0].1 > two[1].0) {
                return itself();
            }
            if parts.iter().map(|part| part.1).sum::<usize>() < node.shape[*axis] {
                return Some(Known::Parts { axis: *axis, parts });
            }
            joined(*axis, &parts).map(Known::Whole).or_else(itself)
        }
        _ => itself(),
    }
}

/// Whether nothing changes by adding it. A gradient has no use for the sign of a zero.
fn is_zero(fill: Scalar) -> bool {
    fill.to_f64() == 0.0
}

/// Parts that are next to each other along an axis, and begin with it, as one tensor, if they stand so in memory too.
fn joined(axis: usize, parts: &[(usize, usize, Strided)]) -> Option<Strided> {
    let (_, extent, first) = &parts[0];
    let mut whole = first.clone();
    if *extent == 1 {
        // One element does not say how far it is to the next.
        let (at, _, next) = parts.get(1)?;
        whole.strides[axis] = (next.offset - first.offset) / *at as isize;
    }
    let fits = |(at, extent, part): &(usize, usize, Strided)| {
        let mut here = whole.clone();
        here.offset += *at as isize * whole.strides[axis];
        here.strides[axis] = if *extent == 1 { 0 } else { whole.strides[axis] };
        here == *part
    };
    parts.iter().all(fits).then_some(whole)
}

/// Leaves nothing to compute of what nobody asks for any more: it would count as a reader of what it is made of.
fn forget_unread(graph: &mut PlanGraph) {
    let mut read: Vec<bool> = graph.nodes.iter().map(|n| n.keep || n.input).collect();
    for n in (0..graph.nodes.len()).rev() {
        let node = &mut graph.nodes[n];
        if !read[n] {
            node.op = Op::Const(node.dtype.zero());
            node.sources.clear();
        }
        if !node.input {
            node.sources.iter().for_each(|&source| read[source] = true);
        }
    }
}
