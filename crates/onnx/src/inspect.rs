//! What a file holds, without computing anything.

use crate::element;
use crate::file;
use crate::model::{Port, subgraphs, unknown};
use crate::protobuf::{Chunk, GraphProto, ModelProto};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use volta::Result;
use volta_ir::bail;
use volta_ir::call::Call;

/// A tensor that a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTensor {
    /// Its name.
    pub name: String,
    /// Its element type, as ONNX calls it.
    pub element: String,
    /// Its extents.
    pub shape: Vec<i64>,
}

/// What an ONNX file says of itself. Printed, it is a table.
///
/// ```no_run
/// println!("{}", volta_onnx::OnnxSummary::open("resnet18.onnx")?);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OnnxSummary {
    /// Who made it.
    pub producer: String,
    /// The version of the format.
    pub ir_version: i64,
    /// Domains of operators and their versions; the standard's own has no name.
    pub opsets: Vec<(String, i64)>,
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
    /// Operators, and how often they occur.
    pub operators: BTreeMap<String, usize>,
    /// Those that Volta does not have.
    pub unknown: BTreeSet<String>,
    /// Its tensors.
    pub tensors: Vec<StoredTensor>,
}

fn count(graph: &GraphProto, operators: &mut BTreeMap<String, usize>) {
    for node in &graph.nodes {
        let name =
            if node.domain.is_empty() { node.op.clone() } else { format!("{}.{}", node.domain, node.op) };
        *operators.entry(name).or_default() += 1;
        subgraphs(node).for_each(|inner| count(inner, operators));
    }
}

impl OnnxSummary {
    /// Reads a file; tensors in other files are not opened.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<OnnxSummary> {
        let _call = Call::enter("OnnxSummary::open");
        let path = path.as_ref();
        OnnxSummary::from_bytes(file::read(path)?).map_err(|e| e.with_context(&path.display().to_string()))
    }

    /// Reads a file's bytes.
    #[track_caller]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<OnnxSummary> {
        let _call = Call::enter("OnnxSummary::from_bytes");
        let model = ModelProto::read(Chunk::whole(bytes))?;
        let Some(graph) = model.graph else { bail!(Data, "there is no graph: this is no ONNX file") };
        let (mut operators, mut missing) = (BTreeMap::new(), BTreeSet::new());
        count(&graph, &mut operators);
        unknown(&graph, &mut missing);
        let tensors = graph.initializers.iter().map(|tensor| StoredTensor {
            name: tensor.name.clone(),
            element: element::name(tensor.data_type),
            shape: tensor.dims.clone(),
        });
        let tensors: Vec<_> = tensors.collect();
        let inputs =
            graph.inputs.iter().filter(|input| !tensors.iter().any(|tensor| tensor.name == input.name));
        Ok(OnnxSummary {
            producer: format!("{} {}", model.producer, model.producer_version).trim().to_string(),
            ir_version: model.ir_version,
            opsets: model.opsets,
            inputs: inputs.map(Port::of).collect(),
            outputs: graph.outputs.iter().map(Port::of).collect(),
            operators,
            unknown: missing,
            tensors,
        })
    }

    /// How many numbers its tensors have.
    pub fn parameters(&self) -> u64 {
        let numel = |t: &StoredTensor| t.shape.iter().fold(1u64, |n, &e| n.saturating_mul(e.max(0) as u64));
        self.tensors.iter().map(numel).fold(0, u64::saturating_add)
    }
}

impl fmt::Display for OnnxSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opset = |(domain, version): &(String, i64)| {
            let domain = if domain.is_empty() { "ai.onnx" } else { domain };
            format!("{domain} {version}")
        };
        let opsets: Vec<_> = self.opsets.iter().map(opset).collect();
        writeln!(
            f,
            "ONNX, format {}, operators {}, by {}",
            self.ir_version,
            opsets.join(", "),
            self.producer
        )?;
        for (what, ports) in [("input", &self.inputs), ("output", &self.outputs)] {
            for port in ports {
                writeln!(f, "{what:6}  {port}")?;
            }
        }
        writeln!(f, "\noperators")?;
        let mut operators: Vec<_> = self.operators.iter().collect();
        operators.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (name, count) in operators {
            let mark = if self.unknown.contains(name) { "  not in Volta" } else { "" };
            writeln!(f, "{count:6}  {name}{mark}")?;
        }
        writeln!(f, "\ntensors")?;
        for tensor in &self.tensors {
            writeln!(f, "{}  {} {:?}", tensor.name, tensor.element, tensor.shape)?;
        }
        write!(f, "\n{} tensors, {} numbers", self.tensors.len(), self.parameters())
    }
}
