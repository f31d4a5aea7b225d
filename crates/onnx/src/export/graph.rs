//! The ONNX graph while it is written: names, constants, and extents that follow the batch.

use super::trace::Trace;
use crate::element::ElementType;
use crate::protobuf::{Attribute, AttributeProto, Chunk, GraphProto, NodeProto, ValueProto};
use crate::write;
use std::collections::{HashMap, HashSet};
use volta::{DType, Device, Recorded, Result, Scalar, Shape, Tensor};
use volta_ir::bail;

/// An extent: a number, or so many times the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dim {
    Known(usize),
    Batch(usize),
}

pub(super) struct GraphWriter<'a> {
    pub trace: &'a Trace,
    other: Option<&'a Trace>,
    graph: GraphProto,
    /// What each node of the trace is called.
    pub names: Vec<String>,
    used: HashSet<String>,
    constants: HashMap<(Vec<u8>, Vec<i64>, i64), String>,
    count: usize,
    batch: Option<String>,
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.to_string(), value: Attribute::Int(value) }
}

pub(super) fn ints(name: &str, values: impl IntoIterator<Item = usize>) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        value: Attribute::Ints(values.into_iter().map(|x| x as i64).collect()),
    }
}

pub(super) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.to_string(), value: Attribute::Text(Chunk::whole(value.as_bytes().to_vec())) }
}

impl<'a> GraphWriter<'a> {
    pub fn new(trace: &'a Trace, other: Option<&'a Trace>) -> Result<GraphWriter<'a>> {
        if let Some(other) = other {
            let same = |(a, b): (&Recorded, &Recorded)| {
                a.op.name() == b.op.name()
                    && a.sources == b.sources
                    && a.given == b.given
                    && a.shape.rank() == b.shape.rank()
            };
            if trace.nodes.len() != other.nodes.len() || !trace.nodes.iter().zip(&other.nodes).all(same) {
                bail!(
                    Argument,
                    "another batch is computed by other ops: say `fixed_batch`, with an example of the batch that is needed"
                );
            }
        }
        let used =
            trace.names.iter().cloned().chain(trace.outputs.iter().map(|(name, _)| name.clone())).collect();
        Ok(GraphWriter {
            trace,
            other,
            graph: GraphProto { name: "volta".to_string(), ..GraphProto::default() },
            names: Vec::new(),
            used,
            constants: HashMap::new(),
            count: 0,
            batch: None,
        })
    }

    pub fn fresh(&mut self, stem: &str) -> String {
        loop {
            self.count += 1;
            let name = format!("{stem}_{}", self.count);
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Adds a node with one output, and says how that is called.
    pub fn node(&mut self, op: &str, inputs: &[&str], attributes: Vec<AttributeProto>) -> String {
        self.nodes(op, inputs, attributes, 1).remove(0)
    }

    /// Adds a node with several outputs.
    pub fn nodes(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        outputs: usize,
    ) -> Vec<String> {
        let outputs: Vec<String> = (0..outputs).map(|_| self.fresh(&op.to_lowercase())).collect();
        self.graph.nodes.push(NodeProto {
            op: op.to_string(),
            inputs: inputs.iter().map(|name| name.to_string()).collect(),
            outputs: outputs.clone(),
            attributes,
            ..NodeProto::default()
        });
        outputs
    }

    /// A tensor of the file under a name of its own.
    pub fn hold(&mut self, name: &str, x: &Tensor) -> Result<()> {
        if !self.graph.initializers.iter().any(|held| held.name == name) {
            self.graph.initializers.push(write::tensor(name, x, ElementType::of(x.dtype()))?);
        }
        Ok(())
    }

    /// A constant; equal ones are one.
    pub fn constant(&mut self, x: &Tensor) -> Result<String> {
        let proto = write::tensor("", x, ElementType::of(x.dtype()))?;
        let key = (proto.raw.as_deref().unwrap_or_default().to_vec(), proto.dims.clone(), proto.data_type);
        if let Some(name) = self.constants.get(&key) {
            return Ok(name.clone());
        }
        let name = self.fresh("constant");
        self.graph.initializers.push(crate::protobuf::TensorProto { name: name.clone(), ..proto });
        self.constants.insert(key, name.clone());
        Ok(name)
    }

    pub fn scalar(&mut self, value: Scalar, dtype: DType) -> Result<String> {
        let x = volta::with_device(Device::Cpu, || Tensor::try_full_of([1usize; 0], value, dtype))?;
        self.constant(&x)
    }

    pub fn vector(&mut self, numbers: &[i64]) -> Result<String> {
        let x = volta::with_device(Device::Cpu, || Tensor::try_from_slice(numbers, [numbers.len()]))?;
        self.constant(&x)
    }

    /// The same node as another batch has it.
    pub fn twin(&self, k: usize) -> &'a Recorded {
        &self.other.unwrap_or(self.trace).nodes[k]
    }

    /// An extent by what it is in both traces.
    pub fn dim(&self, one: usize, other: usize) -> Result<Dim> {
        if one == other {
            return Ok(Dim::Known(one));
        }
        let batch = self.trace.batch;
        let times = other.wrapping_sub(one);
        if other > one && times.checked_mul(batch) == Some(one) {
            return Ok(Dim::Batch(times));
        }
        bail!(
            Argument,
            "an extent is {one} for a batch of {batch} and {other} for one more, which is no multiple of it: say `fixed_batch`"
        )
    }

    pub fn dims(&self, k: usize) -> Result<Vec<Dim>> {
        let (one, other) = (self.trace.nodes[k].shape, self.twin(k).shape);
        one.iter().zip(other.iter()).map(|(&a, &b)| self.dim(a, b)).collect()
    }

    /// Extents as a vector that is computed where the batch is known.
    pub fn shape(&mut self, dims: &[Dim]) -> Result<String> {
        let mut parts: Vec<(bool, Vec<i64>)> = Vec::new();
        for dim in dims {
            match (dim, parts.last_mut()) {
                (Dim::Known(n), Some((false, list))) => list.push(*n as i64),
                (Dim::Known(n), _) => parts.push((false, vec![*n as i64])),
                (Dim::Batch(times), _) => parts.push((true, vec![*times as i64])),
            }
        }
        if parts.iter().all(|part| !part.0) {
            let numbers: Vec<i64> = parts.into_iter().flat_map(|part| part.1).collect();
            return self.vector(&numbers);
        }
        let mut names = Vec::new();
        for (follows, list) in parts {
            let numbers = self.vector(&list)?;
            names.push(match follows {
                false => numbers,
                true if list == [1] => self.batch()?,
                true => {
                    let batch = self.batch()?;
                    self.node("Mul", &[&batch, &numbers], Vec::new())
                }
            });
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(if names.len() == 1 {
            names[0].to_string()
        } else {
            self.node("Concat", &names, vec![int("axis", 0)])
        })
    }

    /// The batch, as a vector of one number.
    fn batch(&mut self) -> Result<String> {
        if let Some(name) = &self.batch {
            return Ok(name.clone());
        }
        let input = self.trace.names[0].clone();
        let name = self.node("Shape", &[&input], vec![int("start", 0), int("end", 1)]);
        self.batch = Some(name.clone());
        Ok(name)
    }

    /// The values of a name under another shape.
    pub fn reshape(&mut self, name: &str, dims: &[Dim]) -> Result<String> {
        let follows = dims.iter().filter(|dim| matches!(dim, Dim::Batch(_))).count();
        let is_empty = dims.contains(&Dim::Known(0));
        let shape = if follows == 1 && !is_empty {
            let numbers: Vec<i64> =
                dims.iter().map(|dim| if let Dim::Known(n) = dim { *n as i64 } else { -1 }).collect();
            self.vector(&numbers)?
        } else {
            self.shape(dims)?
        };
        Ok(self.node(
            "Reshape",
            &[name, &shape],
            if is_empty { vec![int("allowzero", 1)] } else { Vec::new() },
        ))
    }

    pub fn cast(&mut self, name: &str, to: DType) -> String {
        self.node("Cast", &[name], vec![int("to", ElementType::of(to).number())])
    }

    /// A vector along one axis of a tensor, as a constant.
    pub fn index(&mut self, axis: usize, shape: Shape, dtype: DType) -> Result<String> {
        let mut extents = vec![1; shape.rank()];
        extents[axis] = shape[axis];
        let x = volta::with_device(Device::Cpu, || Tensor::try_arange(0, shape[axis] as i64))?;
        let x = x.try_to_dtype(dtype)?.try_reshape(&extents)?;
        self.constant(&x)
    }

    /// The graph, without what no output needs.
    pub fn finish(mut self, inputs: Vec<ValueProto>, outputs: Vec<ValueProto>) -> Result<GraphProto> {
        for ((name, _), &place) in self.trace.outputs.iter().zip(&self.trace.places) {
            let from = self.names[place].clone();
            self.graph.nodes.push(NodeProto {
                op: "Identity".to_string(),
                inputs: vec![from],
                outputs: vec![name.clone()],
                ..NodeProto::default()
            });
        }
        let mut needed: HashSet<String> = outputs.iter().map(|port| port.name.clone()).collect();
        let mut kept = Vec::new();
        for node in self.graph.nodes.into_iter().rev() {
            if node.outputs.iter().any(|name| needed.contains(name)) {
                needed.extend(node.inputs.iter().cloned());
                kept.push(node);
            }
        }
        kept.reverse();
        self.graph.nodes = kept;
        self.graph.initializers.retain(|held| needed.contains(&held.name));
        self.graph.inputs = inputs;
        self.graph.outputs = outputs;
        Ok(self.graph)
    }
}
