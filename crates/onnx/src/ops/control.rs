//! Graphs inside of nodes.

use super::Rows;
use crate::call::{Call, Outputs, size};
use crate::protobuf::GraphProto;
use crate::run::{Scope, run};
use crate::value::Value;
use volta::{DType, Device, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("If", |c| body(c, c.graph(if c.int_at(0)? != 0 { "then_branch" } else { "else_branch" })?, Vec::new())),
    ("Loop", repeat),
    ("Scan", scan),
];

/// The outputs of a graph inside of a node.
fn body(c: &Call, graph: &GraphProto, inputs: Vec<Value>) -> Result<Outputs> {
    if graph.inputs.len() < inputs.len() {
        bail!(Data, "the graph inside takes {} inputs, and {} are given", graph.inputs.len(), inputs.len());
    }
    let mut scope = Scope::new(Some(c.scope));
    for proto in &graph.initializers {
        scope.set(&proto.name, c.weights.constant(proto)?);
    }
    for (port, value) in graph.inputs.iter().zip(inputs) {
        scope.set(&port.name, value);
    }
    run(graph, &mut scope, c.weights, c.device, None)
}

fn host(make: impl FnOnce() -> Result<Tensor>) -> Result<Value> {
    volta::with_device(Device::Cpu, make).map(Value::known)
}

fn truth(value: &Value) -> Result<bool> {
    let host = value.tensor.try_to_device(Device::Cpu)?.try_to_dtype(DType::Bool)?;
    Ok(host.try_to_vec::<bool>()?.first().copied().unwrap_or(false))
}

fn values(c: &Call, from: usize) -> Result<Vec<Value>> {
    let need = |k: usize| match c.value(k) {
        Some(value) => Ok(value.clone()),
        None => bail!(Data, "input {k} is missing"),
    };
    (from..c.count()).map(need).collect()
}

/// Results of all steps, side by side along an axis.
fn stacked(c: &Call, steps: &[Vec<Value>], k: usize, axis: isize, reverse: bool) -> Result<Value> {
    let mut parts = steps.iter().map(|step| step[k].on(c.device)).collect::<Result<Vec<_>>>()?;
    if reverse {
        parts.reverse();
    }
    Ok(Tensor::try_stack(&parts, axis)?.into())
}

fn repeat(c: &Call) -> Result<Outputs> {
    let graph = c.graph("body")?;
    let most = if c.has(0) { c.int_at(0)? } else { i64::MAX };
    let mut goes_on = !c.has(1) || c.int_at(1)? != 0;
    let mut carried = if c.count() > 2 { values(c, 2)? } else { Vec::new() };
    let count = carried.len();
    let mut steps = Vec::new();
    let mut step = 0;
    while goes_on && step < most {
        let mut inputs = vec![
            host(|| Tensor::try_from_vec(vec![step], [1usize; 0]))?,
            host(|| Tensor::try_full_of([1usize; 0], true, DType::Bool))?,
        ];
        inputs.extend(carried);
        let mut outputs = body(c, graph, inputs)?;
        if outputs.len() <= count {
            bail!(Data, "the graph inside gives {} outputs for {count} values", outputs.len());
        }
        goes_on = truth(&outputs[0])?;
        let scanned = outputs.split_off(1 + count);
        carried = outputs.split_off(1);
        steps.push(scanned);
        step += 1;
    }
    let scans = graph.outputs.len().saturating_sub(1 + count);
    if steps.is_empty() && scans > 0 {
        bail!(Data, "a loop without a step has no results to put side by side");
    }
    for k in 0..scans {
        carried.push(stacked(c, &steps, k, 0, false)?);
    }
    Ok(carried)
}

fn scan(c: &Call) -> Result<Outputs> {
    let (graph, count) = (c.graph("body")?, size(c.int("num_scan_inputs", 1)?)?);
    if c.opset < 9 {
        bail!(Data, "Scan of version 8 of the operators: Volta has that of version 9");
    }
    let all = values(c, 0)?;
    let Some(states) = all.len().checked_sub(count).filter(|_| count > 0) else {
        bail!(Data, "{count} inputs are to be scanned, of {}", all.len())
    };
    let mut carried = all[..states].to_vec();
    let scanned = all[states..].iter().map(|value| value.on(c.device)).collect::<Result<Vec<_>>>()?;
    let list = |name: &str| Ok::<_, volta::Error>(c.int_list(name)?.unwrap_or_default());
    let (axes, directions) = (list("scan_input_axes")?, list("scan_input_directions")?);
    let (out_axes, out_directions) = (list("scan_output_axes")?, list("scan_output_directions")?);
    let at = |list: &[i64], k: usize| list.get(k).copied().unwrap_or(0);
    let length = scanned[0].shape().try_size(at(&axes, 0) as isize)?;
    let mut steps = Vec::new();
    for step in 0..length {
        let mut inputs = carried;
        for (k, x) in scanned.iter().enumerate() {
            let place = if at(&directions, k) == 1 { length - 1 - step } else { step };
            inputs.push(x.try_select(at(&axes, k) as isize, place as isize)?.into());
        }
        let mut outputs = body(c, graph, inputs)?;
        if outputs.len() < states {
            bail!(Data, "the graph inside gives {} outputs for {states} values", outputs.len());
        }
        let results = outputs.split_off(states);
        carried = outputs;
        steps.push(results);
    }
    let results = steps.first().map_or(0, Vec::len);
    for k in 0..results {
        carried.push(stacked(c, &steps, k, at(&out_axes, k) as isize, at(&out_directions, k) == 1)?);
    }
    Ok(carried)
}
