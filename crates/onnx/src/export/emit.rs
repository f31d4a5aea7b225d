//! Primitives as operators.

use super::graph::{GraphWriter, int};
use super::native;
use volta::{DType, Device, Recorded, Result, Scalar, Shape, Tensor};
use volta_ir::bail;
use volta_ir::op::{BinaryOp, Op, ReduceOp, UnaryOp};

/// Writes every node of the trace.
pub(super) fn emit(g: &mut GraphWriter) -> Result<()> {
    for k in 0..g.trace.nodes.len() {
        let node = &g.trace.nodes[k];
        let name = one(g, k, node).map_err(|e| e.with_context(&format!("in {}", node.label)))?;
        g.names.push(name);
    }
    Ok(())
}

/// The name of a source.
pub(super) fn source(g: &GraphWriter, node: &Recorded, k: usize) -> String {
    g.names[node.sources[k]].clone()
}

/// A source before it was repeated, where the operators of ONNX repeat by themselves: its name and shape.
fn loose(g: &GraphWriter, place: usize) -> (String, Shape) {
    let node = &g.trace.nodes[place];
    match &node.op {
        Op::Expand if node.given.is_none() && node.value.is_none() => loose(g, node.sources[0]),
        Op::Const(_) if node.given.is_none() => (g.names[place].clone(), Shape::of(&[])),
        Op::Iota { axis } if node.given.is_none() => {
            let mut extents = vec![1; node.shape.rank()];
            extents[*axis as usize] = node.shape[*axis as usize];
            (g.names[place].clone(), Shape::of(&extents))
        }
        _ => (g.names[place].clone(), node.shape),
    }
}

/// Operands of an elementwise operator: as few as possible are repeated before it.
fn operands(g: &mut GraphWriter, k: usize) -> Result<Vec<String>> {
    let node = &g.trace.nodes[k];
    let mut found: Vec<(String, Shape)> = node.sources.iter().map(|&place| loose(g, place)).collect();
    let joined = found.iter().try_fold(Shape::of(&[]), |all, (_, shape)| all.broadcast(shape))?;
    if joined != node.shape {
        found[0].0 = full(g, node.sources[0])?;
    }
    Ok(found.into_iter().map(|(name, _)| name).collect())
}

/// A value in its whole shape.
pub(super) fn full(g: &mut GraphWriter, place: usize) -> Result<String> {
    let node = &g.trace.nodes[place];
    let is_rule = node.given.is_none() && matches!(node.op, Op::Const(_) | Op::Iota { .. });
    let name = g.names[place].clone();
    if !is_rule || node.shape.rank() == 0 {
        return Ok(name);
    }
    let dims = g.dims(place)?;
    let shape = g.shape(&dims)?;
    Ok(g.node("Expand", &[&name, &shape], Vec::new()))
}

/// What a node is called after it was written.
fn one(g: &mut GraphWriter, k: usize, node: &Recorded) -> Result<String> {
    if let Some(given) = node.given {
        let name = g.trace.names[given].clone();
        if let (true, Some(value)) = (given >= g.trace.inputs.len(), &node.value) {
            g.hold(&name, value)?;
        }
        return Ok(name);
    }
    // What needs no source has no value that must be kept.
    if let Some(value) = &node.value
        && !node.op.is_rule()
    {
        if g.twin(k).shape != node.shape {
            bail!(Argument, "a value that was computed before depends on the batch: say `fixed_batch`");
        }
        return g.constant(value);
    }
    match &node.op {
        Op::Const(value) => g.scalar(*value, node.dtype),
        Op::Iota { axis } => {
            let axis = *axis as usize;
            if g.twin(k).shape[axis] != node.shape[axis] {
                bail!(Argument, "positions along the batch are counted: say `fixed_batch`");
            }
            g.index(axis, node.shape, node.dtype)
        }
        Op::Random { .. } => {
            bail!(Argument, "random numbers cannot be exported: put the module in evaluation first")
        }
        Op::Unary(op) => {
            let x = operand(g, node)?;
            unary(g, *op, &x, node.dtype)
        }
        Op::Binary(op) => {
            let names = operands(g, k)?;
            let operand = g.trace.nodes[node.sources[0]].dtype;
            binary(g, *op, &names[0], &names[1], operand)
        }
        Op::Where => {
            let names = operands(g, k)?;
            Ok(g.node("Where", &[&names[0], &names[1], &names[2]], Vec::new()))
        }
        Op::Cast => {
            let x = operand(g, node)?;
            Ok(g.cast(&x, node.dtype))
        }
        Op::Assert(_) | Op::Alias | Op::Custom(_) => operand(g, node),
        Op::Gather { axis } => gather(g, k, *axis as usize),
        Op::Reduce { op, axes } => {
            let x = operand(g, node)?;
            let name = match op {
                ReduceOp::Sum => "ReduceSum",
                ReduceOp::Prod => "ReduceProd",
                ReduceOp::Max => "ReduceMax",
                ReduceOp::Min => "ReduceMin",
            };
            let list: Vec<i64> = (0..8).filter(|k| axes >> k & 1 == 1).collect();
            let axes = g.vector(&list)?;
            Ok(g.node(name, &[&x, &axes], vec![int("keepdims", 1)]))
        }
        Op::ArgReduce { max, axes } => {
            let from = g.trace.nodes[node.sources[0]].shape;
            let long: Vec<usize> = (0..from.rank()).filter(|&k| axes >> k & 1 == 1 && from[k] != 1).collect();
            let axis = match long[..] {
                [] => axes.trailing_zeros() as usize,
                [axis] => axis,
                _ => bail!(Argument, "the place of an extreme over several axes has no operator"),
            };
            let x = operand(g, node)?;
            let found = g.node(
                if *max { "ArgMax" } else { "ArgMin" },
                &[&x],
                vec![int("axis", axis as i64), int("keepdims", 1)],
            );
            Ok(g.cast(&found, node.dtype))
        }
        Op::Native(op) => native::emit(g, k, op),
        Op::FusedElementwise(_) => bail!(Argument, "an optimizer's formula cannot be exported"),
        _ => movement(g, k),
    }
}

/// The only source, whole.
fn operand(g: &mut GraphWriter, node: &Recorded) -> Result<String> {
    full(g, node.sources[0])
}

fn movement(g: &mut GraphWriter, k: usize) -> Result<String> {
    let node = &g.trace.nodes[k];
    let from = g.trace.nodes[node.sources[0]].shape;
    match &node.op {
        Op::Expand => {
            let (x, _) = loose(g, node.sources[0]);
            let dims = g.dims(k)?;
            let shape = g.shape(&dims)?;
            Ok(g.node("Expand", &[&x, &shape], Vec::new()))
        }
        Op::Reshape => {
            let (x, dims) = (operand(g, node)?, g.dims(k)?);
            g.reshape(&x, &dims)
        }
        Op::Permute(order) => {
            let x = operand(g, node)?;
            let order = order[..from.rank()].iter().map(|&axis| axis as usize);
            Ok(g.node("Transpose", &[&x], vec![super::graph::ints("perm", order)]))
        }
        Op::Pad { pads, fill } => {
            let x = operand(g, node)?;
            let list: Vec<i64> =
                pads.iter().map(|p| p.0).chain(pads.iter().map(|p| p.1)).map(|p| p as i64).collect();
            let (pads, fill) = (g.vector(&list)?, g.scalar(*fill, node.dtype)?);
            Ok(g.node("Pad", &[&x, &pads, &fill], Vec::new()))
        }
        Op::Slice(parts) => {
            // Attention's result comes without what only its gradient needs.
            if matches!(
                &g.trace.nodes[node.sources[0]].op,
                Op::Native(volta_ir::op::NativeOp::Attention { .. })
            ) && parts[0] == (0, 1)
            {
                return operand(g, node);
            }
            let Op::Slice(others) = &g.twin(k).op else {
                bail!(Argument, "another batch is computed by other ops: say `fixed_batch`")
            };
            let other = g.twin(k).shape;
            let (mut starts, mut ends, mut axes, mut steps) =
                (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for (axis, &(start, step)) in parts.iter().enumerate() {
                let extent = node.shape[axis];
                if (start, step, extent) == (0, 1, from[axis]) {
                    continue;
                }
                if others[axis] != (start, step) || other[axis] != extent {
                    bail!(Argument, "a part of the batch is taken: say `fixed_batch`");
                }
                starts.push(start as i64);
                ends.push(if extent == 0 { start } else { start + (extent - 1) * step + 1 } as i64);
                axes.push(axis as i64);
                steps.push(step as i64);
            }
            slice(g, node, [starts, ends, axes, steps])
        }
        Op::Flip(mask) => {
            let axes: Vec<i64> = (0..from.rank() as i64).filter(|k| mask >> k & 1 == 1).collect();
            let count = axes.len();
            slice(g, node, [vec![-1; count], vec![i64::MIN; count], axes, vec![-1; count]])
        }
        Op::Windows { axis, step, dilation } => {
            let (x, axis) = (operand(g, node)?, *axis as usize);
            let (windows, size) = (node.shape[axis], node.shape[node.shape.rank() - 1]);
            if g.twin(k).shape[axis] != windows {
                bail!(Argument, "windows over the batch are taken: say `fixed_batch`");
            }
            let places: Vec<i64> =
                (0..windows * size).map(|k| (k / size * step + k % size * dilation) as i64).collect();
            let index = volta::with_device(Device::Cpu, || Tensor::try_from_vec(places, [windows, size]))?;
            let index = g.constant(&index)?;
            let found = g.node("Gather", &[&x, &index], vec![int("axis", axis as i64)]);
            let order = (0..=axis).chain(axis + 2..node.shape.rank()).chain([axis + 1]);
            Ok(g.node("Transpose", &[&found], vec![super::graph::ints("perm", order)]))
        }
        other => bail!(Argument, "{} has no operator in ONNX", other.name()),
    }
}

fn slice(g: &mut GraphWriter, node: &Recorded, lists: [Vec<i64>; 4]) -> Result<String> {
    let x = operand(g, node)?;
    if lists[0].is_empty() {
        return Ok(x);
    }
    let [starts, ends, axes, steps] = lists.map(|list| g.vector(&list));
    Ok(g.node("Slice", &[&x, &starts?, &ends?, &axes?, &steps?], Vec::new()))
}

/// Picking along an axis; whole slices where the positions are the same for all of them.
fn gather(g: &mut GraphWriter, k: usize, axis: usize) -> Result<String> {
    let node = &g.trace.nodes[k];
    if let Some(pooled) = native::pooled(g, k)? {
        return Ok(pooled);
    }
    let (name, shape) = loose(g, node.sources[1]);
    let table = full(g, node.sources[0])?;
    let slices = shape.rank() == node.shape.rank()
        && shape.iter().enumerate().all(|(j, &extent)| j == axis || extent == 1)
        && node
            .shape
            .iter()
            .zip(g.trace.nodes[node.sources[0]].shape.iter())
            .enumerate()
            .all(|(j, (a, b))| j == axis || a == b);
    if slices {
        let flat = g.vector(&[-1])?;
        let index = g.node("Reshape", &[&name, &flat], Vec::new());
        return Ok(g.node("Gather", &[&table, &index], vec![int("axis", axis as i64)]));
    }
    let index = full(g, node.sources[1])?;
    let index = g.cast(&index, DType::I64);
    Ok(g.node("GatherElements", &[&table, &index], vec![int("axis", axis as i64)]))
}

fn unary(g: &mut GraphWriter, op: UnaryOp, x: &str, dtype: DType) -> Result<String> {
    let simple = match op {
        UnaryOp::Neg => "Neg",
        UnaryOp::Recip => "Reciprocal",
        UnaryOp::Sqrt => "Sqrt",
        UnaryOp::Exp => "Exp",
        UnaryOp::Log => "Log",
        UnaryOp::Sin => "Sin",
        UnaryOp::Cos => "Cos",
        UnaryOp::Tanh => "Tanh",
        UnaryOp::Sigmoid => "Sigmoid",
        UnaryOp::Relu => "Relu",
        UnaryOp::Erf => "Erf",
        UnaryOp::Abs => "Abs",
        UnaryOp::Sign => "Sign",
        UnaryOp::Floor => "Floor",
        UnaryOp::Ceil => "Ceil",
        UnaryOp::Round => "Round",
        UnaryOp::Not if dtype == DType::Bool => "Not",
        UnaryOp::Not => "BitwiseNot",
        UnaryOp::Rsqrt
        | UnaryOp::Expm1
        | UnaryOp::Log1p
        | UnaryOp::Exp2
        | UnaryOp::Log2
        | UnaryOp::Erfc
        | UnaryOp::Trunc => "",
    };
    if !simple.is_empty() {
        return Ok(g.node(simple, &[x], Vec::new()));
    }
    let number = |g: &mut GraphWriter, value: f64| g.scalar(Scalar::Float(value), dtype);
    Ok(match op {
        UnaryOp::Rsqrt => {
            let root = g.node("Sqrt", &[x], Vec::new());
            g.node("Reciprocal", &[&root], Vec::new())
        }
        UnaryOp::Expm1 => {
            let (e, one) = (g.node("Exp", &[x], Vec::new()), number(g, 1.0)?);
            g.node("Sub", &[&e, &one], Vec::new())
        }
        UnaryOp::Log1p => {
            let one = number(g, 1.0)?;
            let more = g.node("Add", &[x, &one], Vec::new());
            g.node("Log", &[&more], Vec::new())
        }
        UnaryOp::Exp2 => {
            let two = number(g, 2.0)?;
            g.node("Pow", &[&two, x], Vec::new())
        }
        UnaryOp::Log2 => {
            let (log, scale) = (g.node("Log", &[x], Vec::new()), number(g, std::f64::consts::LOG2_E)?);
            g.node("Mul", &[&log, &scale], Vec::new())
        }
        UnaryOp::Erfc => {
            let (erf, one) = (g.node("Erf", &[x], Vec::new()), number(g, 1.0)?);
            g.node("Sub", &[&one, &erf], Vec::new())
        }
        _ => {
            let (size, sign) = (g.node("Abs", &[x], Vec::new()), g.node("Sign", &[x], Vec::new()));
            let whole = g.node("Floor", &[&size], Vec::new());
            g.node("Mul", &[&whole, &sign], Vec::new())
        }
    })
}

fn binary(g: &mut GraphWriter, op: BinaryOp, a: &str, b: &str, dtype: DType) -> Result<String> {
    let is_bool = dtype == DType::Bool;
    let name = match op {
        BinaryOp::Add => "Add",
        BinaryOp::Sub => "Sub",
        BinaryOp::Mul => "Mul",
        BinaryOp::Div => "Div",
        BinaryOp::Max => "Max",
        BinaryOp::Min => "Min",
        BinaryOp::Pow => "Pow",
        BinaryOp::And => {
            if is_bool {
                "And"
            } else {
                "BitwiseAnd"
            }
        }
        BinaryOp::Or => {
            if is_bool {
                "Or"
            } else {
                "BitwiseOr"
            }
        }
        BinaryOp::Xor => {
            if is_bool {
                "Xor"
            } else {
                "BitwiseXor"
            }
        }
        BinaryOp::Lt => "Less",
        BinaryOp::Le => "LessOrEqual",
        BinaryOp::Eq => "Equal",
        BinaryOp::Ne => {
            let same = g.node("Equal", &[a, b], Vec::new());
            return Ok(g.node("Not", &[&same], Vec::new()));
        }
        BinaryOp::Mod if !dtype.is_float() => "Mod",
        BinaryOp::FloorDiv if matches!(dtype, DType::U8 | DType::U32) => "Div",
        BinaryOp::FloorDiv if !dtype.is_float() => {
            // ONNX cuts quotients: what the remainder leaves divides evenly.
            let rest = g.node("Mod", &[a, b], Vec::new());
            let even = g.node("Sub", &[a, &rest], Vec::new());
            return Ok(g.node("Div", &[&even, b], Vec::new()));
        }
        BinaryOp::Mod | BinaryOp::FloorDiv => {
            let quotient = g.node("Div", &[a, b], Vec::new());
            let whole = g.node("Floor", &[&quotient], Vec::new());
            if op == BinaryOp::FloorDiv {
                return Ok(whole);
            }
            let part = g.node("Mul", &[&whole, b], Vec::new());
            return Ok(g.node("Sub", &[a, &part], Vec::new()));
        }
    };
    Ok(g.node(name, &[a, b], Vec::new()))
}
