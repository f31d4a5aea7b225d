//! Primitives with kernels of their own.

use super::emit::{full, source};
use super::graph::{GraphWriter, int, ints, text};
use volta::{DType, Device, Result, Scalar, Tensor};
use volta_ir::bail;
use volta_ir::op::{ConvAttrs, ConvKind, NativeOp, Op, PoolAttrs};

pub(super) fn emit(g: &mut GraphWriter, k: usize, op: &NativeOp) -> Result<String> {
    let node = &g.trace.nodes[k];
    let operand = |g: &mut GraphWriter, j: usize| full(g, node.sources[j]);
    match op {
        NativeOp::Matmul => {
            let (a, b) = (operand(g, 0)?, operand(g, 1)?);
            Ok(g.node("MatMul", &[&a, &b], Vec::new()))
        }
        NativeOp::Conv(kind, attrs) => conv(g, k, *kind, attrs),
        NativeOp::Attention { causal, scale } => attention(g, k, *causal, *scale),
        NativeOp::ScatterAdd { axis } => {
            let (index, values) = (operand(g, 0)?, operand(g, 1)?);
            let dims = g.dims(k)?;
            let (zero, shape) = (g.scalar(Scalar::Float(0.0), node.dtype)?, g.shape(&dims)?);
            let zeros = g.node("Expand", &[&zero, &shape], Vec::new());
            let index = g.cast(&index, DType::I64);
            Ok(g.node(
                "ScatterElements",
                &[&zeros, &index, &values],
                vec![int("axis", *axis as i64), text("reduction", "add")],
            ))
        }
        NativeOp::ArgSort { axis, descending, .. } => {
            if g.twin(k).shape[*axis] != node.shape[*axis] {
                bail!(Argument, "the batch is sorted: say `fixed_batch`");
            }
            let (x, count) = (operand(g, 0)?, g.vector(&[node.shape[*axis] as i64])?);
            let attributes = vec![int("axis", *axis as i64), int("largest", i64::from(*descending))];
            let found = g.nodes("TopK", &[&x, &count], attributes, 2);
            Ok(g.cast(&found[1], node.dtype))
        }
        NativeOp::Cumsum { axis } => {
            let (x, axis) = (operand(g, 0)?, g.scalar(Scalar::Int(*axis as i64), DType::I64)?);
            Ok(g.node("CumSum", &[&x, &axis], Vec::new()))
        }
        NativeOp::MaxPoolIndex(attrs) => {
            let found = max_pool(g, k, attrs)?;
            let image = g.trace.nodes[node.sources[0]].shape;
            let count = g.scalar(Scalar::Int((image[2] * image[3]) as i64), DType::I64)?;
            let place = g.node("Mod", &[&found[1], &count], Vec::new());
            Ok(g.cast(&place, node.dtype))
        }
        other => bail!(Argument, "{} has no operator in ONNX", other.name()),
    }
}

fn max_pool(g: &mut GraphWriter, k: usize, attrs: &PoolAttrs) -> Result<Vec<String>> {
    let x = full(g, g.trace.nodes[k].sources[0])?;
    let PoolAttrs { kernel, stride, padding: p, dilation } = *attrs;
    // Windows at the end that fit are all counted.
    let attributes = vec![
        ints("kernel_shape", kernel),
        ints("strides", stride),
        ints("pads", [p[0], p[1], p[0], p[1]]),
        ints("dilations", dilation),
    ];
    Ok(g.nodes("MaxPool", &[&x], attributes, 2))
}

/// A node's source through reshapes.
fn before_reshape(g: &GraphWriter, mut place: usize) -> usize {
    while matches!(g.trace.nodes[place].op, Op::Reshape)
        && g.trace.nodes[place].given.is_none()
        && g.trace.nodes[place].value.is_none()
    {
        place = g.trace.nodes[place].sources[0];
    }
    place
}

/// A gather of the largest elements of windows is pooling.
pub(super) fn pooled(g: &mut GraphWriter, k: usize) -> Result<Option<String>> {
    let node = &g.trace.nodes[k];
    let (table, index) = (before_reshape(g, node.sources[0]), before_reshape(g, node.sources[1]));
    let Op::Native(NativeOp::MaxPoolIndex(attrs)) = &g.trace.nodes[index].op else { return Ok(None) };
    if before_reshape(g, g.trace.nodes[index].sources[0]) != table {
        return Ok(None);
    }
    let found = max_pool(g, index, attrs)?;
    let dims = g.dims(k)?;
    g.reshape(&found[0], &dims).map(Some)
}

fn conv(g: &mut GraphWriter, k: usize, kind: ConvKind, attrs: &ConvAttrs) -> Result<String> {
    let node = &g.trace.nodes[k];
    let (x, weight) = (full(g, node.sources[0])?, full(g, node.sources[1])?);
    let (from, w) = (g.trace.nodes[node.sources[0]].shape, g.trace.nodes[node.sources[1]].shape);
    let ConvAttrs { stride, padding: p, dilation, groups } = *attrs;
    let kernel = [w[2], w[3]];
    let mut attributes = vec![
        ints("kernel_shape", kernel),
        ints("strides", stride),
        ints("dilations", dilation),
        int("group", groups as i64),
    ];
    match kind {
        ConvKind::Forward => {
            // Where the padding at the end is not reached, ONNX reaches it no more.
            attributes.push(ints("pads", [p[0], p[1], p[0], p[1]]));
            Ok(g.node("Conv", &[&x, &weight], attributes))
        }
        ConvKind::InputGrad => {
            // What the last window of the other direction did not reach.
            let extra = |k: usize| {
                (node.shape[2 + k] + 2 * p[k])
                    .checked_sub((from[2 + k] - 1) * stride[k] + dilation[k] * (kernel[k] - 1) + 1)
            };
            let (Some(a), Some(b)) = (extra(0), extra(1)) else {
                bail!(Argument, "a transposed convolution of {from} to {} has no operator", node.shape)
            };
            attributes.push(ints("pads", [p[0], p[1], p[0], p[1]]));
            attributes.push(ints("output_padding", [a, b]));
            Ok(g.node("ConvTranspose", &[&x, &weight], attributes))
        }
        ConvKind::WeightGrad => bail!(Argument, "the gradient of a convolution's weights has no operator"),
    }
}

/// Attention by its formula.
fn attention(g: &mut GraphWriter, k: usize, causal: bool, scale: f64) -> Result<String> {
    let node = &g.trace.nodes[k];
    let (q, key, v) = (full(g, node.sources[0])?, full(g, node.sources[1])?, full(g, node.sources[2])?);
    let (queries, keys) = (g.trace.nodes[node.sources[0]].shape[2], g.trace.nodes[node.sources[1]].shape[2]);
    let dtype = g.trace.nodes[node.sources[0]].dtype;
    let turned = g.node("Transpose", &[&key], vec![ints("perm", [0, 1, 3, 2])]);
    let products = g.node("MatMul", &[&q, &turned], Vec::new());
    let factor = g.scalar(Scalar::Float(scale), dtype)?;
    let mut scores = g.node("Mul", &[&products, &factor], Vec::new());
    if node.sources.len() > 3 {
        let mask = source(g, node, 3);
        scores = g.node("Add", &[&scores, &mask], Vec::new());
    }
    if causal {
        let mask = volta::with_device(Device::Cpu, || {
            Tensor::try_tril_mask(queries, keys, 0)?.try_where_(0.0, f64::NEG_INFINITY)?.try_to_dtype(dtype)
        })?;
        let mask = g.constant(&mask)?;
        scores = g.node("Add", &[&scores, &mask], Vec::new());
    }
    let weights = g.node("Softmax", &[&scores], vec![int("axis", -1)]);
    let y = g.node("MatMul", &[&weights, &v], Vec::new());
    let y = g.node("Transpose", &[&y], vec![ints("perm", [0, 2, 1, 3])]);
    // Flat, as the kernel gives it (batch, queries, heads, width); what follows takes the result's part of it.
    let flat = g.vector(&[-1])?;
    Ok(g.node("Reshape", &[&y, &flat], Vec::new()))
}
