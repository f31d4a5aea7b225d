//! Computing a graph, node by node. Whatever follows from shapes alone is computed on the CPU, and once for inputs of one shape.

use crate::call::{Call, Outputs};
use crate::model::Weights;
use crate::ops;
use crate::protobuf::{GraphProto, NodeProto};
use crate::value::Value;
use std::collections::HashMap;
use volta::{Device, Result};
use volta_ir::bail;

/// Values by name, of a graph and of those around it.
pub(crate) struct Scope<'a> {
    values: HashMap<&'a str, Value>,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub fn new(outer: Option<&'a Scope<'a>>) -> Scope<'a> {
        Scope { values: HashMap::new(), outer }
    }

    pub fn set(&mut self, name: &'a str, value: Value) {
        self.values.insert(name, value);
    }

    fn get(&self, name: &str, weights: &Weights) -> Option<Value> {
        let own = self.values.get(name).cloned();
        own.or_else(|| match self.outer {
            Some(outer) => outer.get(name, weights),
            None => weights.get(name),
        })
    }
}

/// Operators whose results differ from run to run.
fn is_random(op: &str) -> bool {
    matches!(
        op,
        "RandomNormal"
            | "RandomNormalLike"
            | "RandomUniform"
            | "RandomUniformLike"
            | "Bernoulli"
            | "Multinomial"
            | "Dropout"
    )
}

/// Known results of nodes, for inputs of one shape.
pub(crate) type Folded = HashMap<usize, Outputs>;

/// Computes the nodes of a graph.
pub(crate) fn run<'a>(
    graph: &'a GraphProto,
    scope: &mut Scope<'a>,
    weights: &Weights,
    device: Device,
    mut folded: Option<&mut Folded>,
) -> Result<Vec<Value>> {
    for (place, node) in graph.nodes.iter().enumerate() {
        let outputs = match folded.as_ref().and_then(|folded| folded.get(&place)) {
            Some(outputs) => outputs.clone(),
            None => {
                let outputs =
                    compute(node, scope, weights, device).map_err(|e| e.with_context(&label(node)))?;
                if let Some(folded) = &mut folded
                    && outputs.iter().all(|value| value.known)
                {
                    folded.insert(place, outputs.clone());
                }
                outputs
            }
        };
        for (name, value) in node.outputs.iter().zip(outputs) {
            if !name.is_empty() {
                scope.set(name, value);
            }
        }
    }
    graph.outputs.iter().map(|output| named(&output.name, scope, weights)).collect()
}

fn named(name: &str, scope: &Scope, weights: &Weights) -> Result<Value> {
    match scope.get(name, weights) {
        Some(value) => Ok(value),
        None => bail!(Data, "nothing computes {name:?}"),
    }
}

/// What an error names a node by.
fn label(node: &NodeProto) -> String {
    if node.name.is_empty() { node.op.clone() } else { format!("{} {:?}", node.op, node.name) }
}

fn compute(node: &NodeProto, scope: &Scope, weights: &Weights, device: Device) -> Result<Outputs> {
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for name in &node.inputs {
        inputs.push(if name.is_empty() { None } else { Some(named(name, scope, weights)?) });
    }
    while inputs.last().is_some_and(Option::is_none) {
        inputs.pop();
    }
    let is_known = inputs.iter().flatten().all(|value| value.known) && !is_random(&node.op);
    let device = if is_known { Device::Cpu } else { device };
    let Some(operator) = ops::find(node) else { bail!(Data, "the operator is not known") };
    let first = inputs.iter().flatten().next().map(|value| value.kind);
    let call = Call { node, inputs, opset: weights.opset, device, scope, weights };
    ops::check_ranks(&call)?;
    let mut outputs = operator(&call)?;
    for value in &mut outputs {
        value.known |= is_known && value.tensor.device() == Device::Cpu;
        // A type that another one holds goes on where nothing else was said.
        if let Some(kind) = first
            && kind.held_as() == value.tensor.dtype()
            && value.kind == crate::element::ElementType::of(value.tensor.dtype())
        {
            value.kind = kind;
        }
    }
    Ok(outputs)
}
