//! The table of primitives that have a kernel of their own: what they are called, what they cost, what their derivatives look at,
//! and along which axes they can be split. How they are computed is in `cpu/native_kernels.rs` and `gpu/kernels/select.rs`.

use super::quantized::{BLOCK, BlockFormat};
use super::{ConvAttrs, ConvKind, PoolAttrs};
use crate::shape::Shape;

/// A primitive with a kernel of its own, that elementwise work may at most precede and follow.
#[derive(Clone, Debug, PartialEq)]
pub enum NativeOp {
    /// (…, M, K) by (…, K, N) with equal batch extents.
    Matmul,
    /// (x, words, scales) of a [quantised](super::quantized) matrix W of (rows, columns): x · Wᵀ of x of (M, columns), or, if
    /// `by_rows`, x · W of x of (M, rows).
    QuantizedMatmul {
        format: BlockFormat,
        by_rows: bool,
    },
    /// (words, scales) of a quantised matrix → its numbers.
    Dequantize(BlockFormat),
    Conv(ConvKind, Box<ConvAttrs>),
    /// (q, k, v[, mask]) → the output as (batch, queries, heads, width), then the log-sum-exp of every query as (batch,
    /// heads, queries), flat. In f16 a log-sum-exp is two numbers: a 64th of it, and 2048 times what is lost by that. With a mask one more stands
    /// beside it: what weights that are computed from it must be multiplied by.
    Attention {
        causal: bool,
        scale: f64,
    },
    /// (q, k, v, packed forward result, gradient of the output as (batch, heads, queries, width)[, mask]) → dq, dk and
    /// dv where [`PackedGradient`](super::attention::PackedGradient) says[, then dmask], flat.
    AttentionGrad {
        causal: bool,
        scale: f64,
    },
    /// (index, values): sums values into zeros of the node's shape; an index outside is dropped.
    ScatterAdd {
        axis: usize,
    },
    /// The stable order of an axis, as i32 indices. Every `sorted` elements of a line are in order already: at least one.
    ArgSort {
        axis: usize,
        descending: bool,
        sorted: usize,
    },
    Cumsum {
        axis: usize,
    },
    /// (index): the first position of a vector of indices that names each place, as i32; -1 where none does.
    FirstPosition,
    /// The flat position, in its image, of every window's first maximum, as i32.
    MaxPoolIndex(Box<PoolAttrs>),
}

/// Axes of operands and of the result along which a kernel can be split.
#[derive(Clone, Debug)]
pub struct SplitAxis {
    /// Numbers of operands, and their axes.
    pub operands: Vec<(usize, usize)>,
    /// The result's axis; none where it is its sums that are split.
    pub output: Option<usize>,
    /// Places where it may be split, and one.
    pub count: usize,
    pub kind: SplitKind,
}

/// What besides extents a part of a kernel must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind {
    /// Nothing.
    Extent,
    /// How many groups of a convolution it has.
    Groups,
    /// The first of the places that indices name.
    Places,
}

impl NativeOp {
    /// The primitive's name, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            NativeOp::Matmul => "matmul",
            NativeOp::QuantizedMatmul { .. } => "quantized_matmul",
            NativeOp::Dequantize(_) => "dequantize",
            NativeOp::Conv(ConvKind::Forward, _) => "conv",
            NativeOp::Conv(ConvKind::InputGrad, _) => "conv_input_grad",
            NativeOp::Conv(ConvKind::WeightGrad, _) => "conv_weight_grad",
            NativeOp::Attention { .. } => "attention",
            NativeOp::AttentionGrad { .. } => "attention_grad",
            NativeOp::ScatterAdd { .. } => "scatter_add",
            NativeOp::ArgSort { .. } => "argsort",
            NativeOp::Cumsum { .. } => "cumsum",
            NativeOp::FirstPosition => "first_position",
            NativeOp::MaxPoolIndex(_) => "max_pool_index",
        }
    }

    /// What its derivative looks at: whether at its result, and at which sources, one bit each.
    pub fn saved(&self) -> (bool, u8) {
        match self {
            NativeOp::Matmul | NativeOp::Conv(..) => (false, 0b11),
            NativeOp::QuantizedMatmul { .. } => (false, 0b110),
            NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => (true, u8::MAX),
            NativeOp::ScatterAdd { .. } => (false, 0b1),
            NativeOp::Dequantize(_)
            | NativeOp::ArgSort { .. }
            | NativeOp::Cumsum { .. }
            | NativeOp::FirstPosition
            | NativeOp::MaxPoolIndex(_) => (false, 0),
        }
    }

    /// Whether its result is positions and not values.
    pub fn gives_positions(&self) -> bool {
        matches!(self, NativeOp::ArgSort { .. } | NativeOp::FirstPosition | NativeOp::MaxPoolIndex(_))
    }

    /// Whether its kernels read an operand only where its elements follow each other in memory.
    pub fn needs_contiguous(&self, operand: usize) -> bool {
        match self {
            // Whole images.
            NativeOp::Conv(..) => true,
            // Blocks and their scales.
            NativeOp::QuantizedMatmul { .. } => operand > 0,
            NativeOp::Dequantize(_) => true,
            // The packed result.
            NativeOp::AttentionGrad { .. } => operand == 3,
            _ => false,
        }
    }

    /// Additions and multiplications for operands of these shapes.
    pub fn flops(&self, operands: &[Shape], output: &Shape) -> u64 {
        match self {
            NativeOp::Matmul | NativeOp::QuantizedMatmul { .. } => {
                2 * output.numel() as u64 * operands[0].size(-1) as u64
            }
            NativeOp::Conv(kind, _) => {
                // Every output element is a sum over the channels of a group and the window.
                let (_, weight, result) = kind.roles(&operands[0], &operands[1], output);
                2 * (result.numel() * weight[1..].iter().product::<usize>()) as u64
            }
            NativeOp::Attention { causal, .. } | NativeOp::AttentionGrad { causal, .. } => {
                let (q, k, v) = (operands[0], operands[1], operands[2]);
                let scores = (q[0] * q[1] * q[2] * k[2]) as u64;
                let products = if matches!(self, NativeOp::Attention { .. }) { [1, 1] } else { [3, 2] };
                let full = 2 * scores * (products[0] * q[3] as u64 + products[1] * v[3] as u64);
                if *causal { full / 2 } else { full }
            }
            _ => operands.iter().map(|shape| shape.numel() as u64).max().unwrap_or(0),
        }
    }

    /// The axes it can be split along, for operands of these shapes.
    pub fn split_axes(&self, operands: &[Shape], output: &Shape) -> Vec<SplitAxis> {
        let rank = output.rank();
        // Every axis of which the result has as many as the operands, but for one.
        let alike = |numbers: &[usize], but: usize| -> Vec<SplitAxis> {
            let cut = |axis: usize| {
                let operands: Vec<(usize, usize)> = numbers.iter().map(|&n| (n, axis)).collect();
                SplitAxis::of(&operands, Some(axis), output[axis])
            };
            (0..rank).filter(|&axis| axis != but).map(cut).collect()
        };
        match self {
            NativeOp::Matmul => {
                let (row, column) = (rank - 2, rank - 1);
                let mut all = alike(&[0, 1], column);
                all[row] = SplitAxis::of(&[(0, row)], Some(row), output[row]);
                all.push(SplitAxis::of(&[(1, column)], Some(column), output[column]));
                all.push(SplitAxis::of(&[(0, column), (1, row)], None, operands[0][column]));
                all
            }
            NativeOp::QuantizedMatmul { format, by_rows } => {
                split_quantized(*format, *by_rows, operands, output)
            }
            NativeOp::Dequantize(format) => {
                let mut all = vec![SplitAxis::of(&[(0, 0), (1, 0)], Some(0), output[0])];
                if output[1] == operands[1][1] * format.blocks_per_scale_word() * BLOCK {
                    all.push(SplitAxis::of(&[(0, 1), (1, 1)], Some(1), operands[1][1]));
                }
                all
            }
            NativeOp::Conv(kind, attrs) => split_conv(*kind, attrs.groups, operands, output),
            NativeOp::ScatterAdd { axis } => {
                let places = SplitAxis::of(&[], Some(*axis), output[*axis]);
                let mut all = alike(&[0, 1], *axis);
                all.push(SplitAxis { kind: SplitKind::Places, ..places });
                all.push(SplitAxis::of(&[(0, *axis), (1, *axis)], None, operands[1][*axis]));
                all
            }
            NativeOp::ArgSort { axis, .. } | NativeOp::Cumsum { axis } => alike(&[0], *axis),
            NativeOp::FirstPosition => {
                vec![SplitAxis { kind: SplitKind::Places, ..SplitAxis::of(&[], Some(0), output[0]) }]
            }
            NativeOp::MaxPoolIndex(_) => {
                (0..2).map(|axis| SplitAxis::of(&[(0, axis)], Some(axis), output[axis])).collect()
            }
            // Matrices of scores.
            NativeOp::Attention { .. } | NativeOp::AttentionGrad { .. } => {
                vec![SplitAxis::of(&[], Some(0), operands[0][0] * operands[0][1])]
            }
        }
    }

    /// Writes what shapes the generated code: a tag below 2⁸ and a detail, then what else there is.
    pub(super) fn encode(&self, key: &mut Vec<u64>) {
        let (tag, detail) = match self {
            NativeOp::Matmul => (18, 0),
            NativeOp::Conv(kind, _) => (19, *kind as u64),
            NativeOp::Attention { causal, .. } => (20, *causal as u64),
            NativeOp::AttentionGrad { causal, .. } => (21, *causal as u64),
            NativeOp::ScatterAdd { axis } => (22, *axis as u64),
            NativeOp::ArgSort { axis, descending, .. } => (23, *axis as u64 | (*descending as u64) << 8),
            NativeOp::Cumsum { axis } => (24, *axis as u64),
            NativeOp::MaxPoolIndex(_) => (25, 0),
            NativeOp::FirstPosition => (28, 0),
            NativeOp::Dequantize(format) => (32, *format as u64),
            NativeOp::QuantizedMatmul { format, by_rows } => (31, *format as u64 | (*by_rows as u64) << 8),
        };
        key.push(tag | detail << 8);
        let mut fields = |fields: &[[usize; 2]]| key.extend(fields.iter().flatten().map(|&x| x as u64));
        match self {
            NativeOp::Conv(_, a) => fields(&[a.stride, a.padding, a.dilation, [a.groups, 0]]),
            NativeOp::MaxPoolIndex(a) => fields(&[a.kernel, a.stride, a.padding, a.dilation]),
            NativeOp::Attention { scale, .. } | NativeOp::AttentionGrad { scale, .. } => {
                key.push(scale.to_bits());
            }
            _ => {}
        }
    }
}

impl SplitAxis {
    fn of(operands: &[(usize, usize)], output: Option<usize>, count: usize) -> SplitAxis {
        SplitAxis { operands: operands.to_vec(), output, count, kind: SplitKind::Extent }
    }
}

/// Rows of x, rows of the matrix, and its columns where words of scales begin with a block.
fn split_quantized(format: BlockFormat, by_rows: bool, operands: &[Shape], output: &Shape) -> Vec<SplitAxis> {
    let (x, words, scales) = (operands[0], operands[1], operands[2]);
    let columns = if by_rows { output[1] } else { x[1] };
    let mut all = vec![SplitAxis::of(&[(0, 0)], Some(0), output[0])];
    let rows = if by_rows {
        SplitAxis::of(&[(0, 1), (1, 0), (2, 0)], None, words[0])
    } else {
        SplitAxis::of(&[(1, 0), (2, 0)], Some(1), words[0])
    };
    all.push(rows);
    if columns == scales[1] * format.blocks_per_scale_word() * BLOCK {
        all.push(if by_rows {
            SplitAxis::of(&[(1, 1), (2, 1)], Some(1), scales[1])
        } else {
            SplitAxis::of(&[(0, 1), (1, 1), (2, 1)], None, scales[1])
        });
    }
    all
}

/// A convolution is split by images, by groups or, with one group, by channels of the outputs and of the inputs.
fn split_conv(kind: ConvKind, groups: usize, operands: &[Shape], output: &Shape) -> Vec<SplitAxis> {
    let (input, weight, result) = kind.roles(Some(0), Some(1), None);
    let shape = |which: Option<usize>| which.map_or(output, |k| &operands[k]);
    let cut = |axes: &[(Option<usize>, usize)], count: usize| SplitAxis {
        operands: axes.iter().filter_map(|&(which, axis)| Some((which?, axis))).collect(),
        output: axes.iter().find(|(which, _)| which.is_none()).map(|&(_, axis)| axis),
        count,
        kind: SplitKind::Extent,
    };
    let images = cut(&[(input, 0), (result, 0)], shape(input)[0]);
    if groups > 1 {
        let all = cut(&[(input, 1), (weight, 0), (result, 1)], groups);
        return vec![images, SplitAxis { kind: SplitKind::Groups, ..all }];
    }
    let outputs = cut(&[(weight, 0), (result, 1)], shape(weight)[0]);
    let inputs = cut(&[(input, 1), (weight, 1)], shape(weight)[1]);
    vec![images, outputs, inputs]
}
