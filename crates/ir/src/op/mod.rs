//! The table of primitives. Everything a tensor can do is made of these; each has a line in
//! autograd's table of derivatives, or none, which [`derivative`] tells.

pub mod attention;
mod binary;
pub mod derivative;
pub mod formula;
mod native;
pub mod quantized;
mod unary;

pub use binary::BinaryOp;
pub use native::{NativeOp, SplitAxis, SplitKind};
pub use unary::{Domain, Halves, Saved, UnaryOp};

use crate::dtype::Scalar;
use crate::shape::MAX_RANK;
use formula::FusedElementwise;
use std::any::Any;
use std::sync::Arc;

/// What must hold of every integer that an [`Op::Assert`] passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assertion {
    /// It names a place of an axis of this extent.
    InBounds { extent: usize },
    /// It divides.
    NonZero,
}

/// Ways to fold many values into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the tensor methods")]
pub enum ReduceOp {
    Sum,
    Prod,
    Max,
    Min,
}

/// What a random source yields for each element, from the element's own counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomKind {
    /// f32 in [0, 1), 24 bits of the first word.
    Uniform,
    /// The same of the second word, independent of the first.
    UniformSecond,
    /// i32 in [0, 2³¹).
    Bits,
}

/// A two-dimensional convolution's parameters; the shapes are those of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvAttrs {
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

/// Which of the three bilinear maps of a convolution: each one's gradients are the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvKind {
    /// (input, weight) → output
    Forward,
    /// (output's gradient, weight) → input's gradient; also the transposed convolution
    InputGrad,
    /// (input, output's gradient) → weight's gradient
    WeightGrad,
}

impl ConvKind {
    /// (input, weight, output) of a kernel's first and second operand and its result.
    pub fn roles<T>(self, first: T, second: T, result: T) -> (T, T, T) {
        match self {
            ConvKind::Forward => (first, second, result),
            ConvKind::InputGrad => (result, second, first),
            ConvKind::WeightGrad => (first, result, second),
        }
    }
}

/// A pooling window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolAttrs {
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

/// A function that knows its own gradient: one of the user's, or a checkpoint. Autograd knows what is inside.
pub trait CustomOp: Any + Send + Sync {}

/// What a node computes from its sources. Shapes and types are the node's.
#[derive(Clone)]
pub enum Op {
    // Sources.
    /// Its storage was there from the start.
    Data,
    /// One value everywhere.
    Const(Scalar),
    /// The index along an axis.
    Iota {
        axis: u8,
    },
    Random {
        kind: RandomKind,
        key: [u32; 2],
    },

    // Elementwise: all sources have the node's shape.
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// (condition, if true, if false)
    Where,
    Cast,
    /// Many of these at once; it has no gradient.
    FusedElementwise(Arc<FusedElementwise>),
    /// The value of its source. A kernel that computes an integer of which it does not hold reports that to whoever waits
    /// for the device next.
    Assert(Assertion),
    /// (table, index): picks along an axis; an index outside reads NaN (or 0).
    Gather {
        axis: u8,
    },

    // Folding; the reduced axes stay with extent 1.
    Reduce {
        op: ReduceOp,
        axes: u8,
    },
    /// The flat position of the first extremum over the axes, as i32.
    ArgReduce {
        max: bool,
        axes: u8,
    },

    // Movement: the same values, elsewhere.
    Reshape,
    Permute([u8; MAX_RANK]),
    /// Repeats axes of extent 1, and adds axes in front.
    Expand,
    /// (before, after) of every axis, filled with a value.
    Pad {
        pads: Box<[(usize, usize)]>,
        fill: Scalar,
    },
    /// (start, step) of every axis; the extents are the node's.
    Slice(Box<[(usize, usize)]>),
    /// Reverses the axes of a mask.
    Flip(u8),
    /// Sliding windows over an axis, as a new last axis; the windows may overlap.
    Windows {
        axis: u8,
        step: usize,
        dilation: usize,
    },

    /// With a kernel of its own.
    Native(NativeOp),

    // Names for values.
    /// The value of its source, a new leaf for autograd.
    Alias,
    /// The value of its first source; the gradient goes to the others by its own rule.
    Custom(Arc<dyn CustomOp>),
}

impl Op {
    /// The primitive's name, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Data => "data",
            Op::Const(_) => "const",
            Op::Iota { .. } => "iota",
            Op::Random { .. } => "random",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Where => "where",
            Op::Cast => "cast",
            Op::FusedElementwise(_) => "formula",
            Op::Assert(_) => "assert",
            Op::Gather { .. } => "gather",
            Op::Reduce { op, .. } => match op {
                ReduceOp::Sum => "reduce_sum",
                ReduceOp::Prod => "reduce_prod",
                ReduceOp::Max => "reduce_max",
                ReduceOp::Min => "reduce_min",
            },
            Op::ArgReduce { max: true, .. } => "argmax",
            Op::ArgReduce { max: false, .. } => "argmin",
            Op::Reshape => "reshape",
            Op::Permute(_) => "permute",
            Op::Expand => "expand",
            Op::Pad { .. } => "pad",
            Op::Slice(_) => "slice",
            Op::Flip(_) => "flip",
            Op::Windows { .. } => "windows",
            Op::Native(op) => op.name(),
            Op::Alias => "alias",
            Op::Custom(_) => "function",
        }
    }

    /// Whether it only says where values stand.
    pub fn is_movement(&self) -> bool {
        matches!(
            self,
            Op::Reshape
                | Op::Permute(_)
                | Op::Expand
                | Op::Pad { .. }
                | Op::Slice(_)
                | Op::Flip(_)
                | Op::Windows { .. }
        )
    }

    /// Whether it is another name of its first source's value.
    pub fn is_alias(&self) -> bool {
        matches!(self, Op::Alias | Op::Custom(_))
    }

    /// How many of its sources make its value: a name has one, and further ones only for its gradient.
    pub fn value_sources(&self, all: usize) -> usize {
        if self.is_alias() { all.min(1) } else { all }
    }

    /// Whether it is a matrix product or a convolution.
    pub fn is_product(&self) -> bool {
        matches!(self, Op::Native(NativeOp::Matmul | NativeOp::QuantizedMatmul { .. } | NativeOp::Conv(..)))
    }

    /// Whether it has a kernel of its own, that others may at most follow.
    pub fn needs_own_kernel(&self) -> bool {
        matches!(self, Op::Native(_))
    }

    /// Whether it needs no storage to be read: a rule gives its values.
    pub fn is_rule(&self) -> bool {
        matches!(self, Op::Const(_) | Op::Iota { .. } | Op::Random { .. })
    }

    /// Writes everything that shapes the generated code. Values that may change from step to step without
    /// changing it (constants, random keys) are left out: they are arguments.
    pub fn encode(&self, key: &mut Vec<u64>) {
        let (tag, detail): (u64, u64) = match self {
            Op::Data => (0, 0),
            Op::Const(_) => (1, 0),
            Op::Iota { axis } => (2, *axis as u64),
            Op::Random { kind, .. } => (3, *kind as u64),
            Op::Unary(op) => (4, *op as u64),
            Op::Binary(op) => (5, *op as u64),
            Op::Where => (6, 0),
            Op::Cast => (7, 0),
            Op::Gather { axis } => (8, *axis as u64),
            Op::Reduce { op, axes } => (9, *op as u64 | (*axes as u64) << 8),
            Op::ArgReduce { max, axes } => (10, *max as u64 | (*axes as u64) << 8),
            Op::Reshape => (11, 0),
            Op::Permute(order) => (12, order.iter().fold(0, |word, &axis| word << 4 | axis as u64)),
            Op::Expand => (13, 0),
            Op::Pad { .. } => (14, 0),
            Op::Slice(_) => (15, 0),
            Op::Flip(mask) => (16, *mask as u64),
            Op::Windows { axis, .. } => (17, *axis as u64),
            Op::Native(op) => return op.encode(key),
            Op::Alias | Op::Custom(_) => (26, 0),
            Op::FusedElementwise(formula) => (27, formula.id),
            Op::Assert(Assertion::InBounds { .. }) => (29, 0),
            Op::Assert(Assertion::NonZero) => (30, 0),
        };
        key.push(tag | detail << 8);
        let pairs = |key: &mut Vec<u64>, pairs: &[(usize, usize)]| {
            key.extend(pairs.iter().flat_map(|p| [p.0 as u64, p.1 as u64]));
        };
        match self {
            Op::Pad { pads, fill } => {
                // Floats are not all integers, and integers of 64 bits not all floats.
                key.extend([fill.to_f64().to_bits(), fill.to_i64() as u64]);
                pairs(key, pads);
            }
            Op::Slice(parts) => pairs(key, parts),
            Op::Windows { step, dilation, .. } => key.extend([*step as u64, *dilation as u64]),
            Op::Assert(Assertion::InBounds { extent }) => key.push(*extent as u64),
            _ => {}
        }
    }
}
