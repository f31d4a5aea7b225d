//! An ONNX file as a module.

use crate::attributes;
use crate::element::{self, ElementType};
use crate::protobuf::{Attribute, Chunk, Extent, GraphProto, ModelProto, NodeProto, TensorProto, ValueProto};
use crate::run::{Folded, Scope, run};
use crate::value::Value;
use crate::{file, ops};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use volta::nn::Visitor;
use volta::{DType, Device, Module, Result, Shape, Tensor};
use volta_ir::bail;
use volta_ir::call::Call;

/// An input or output of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its element type, as ONNX calls it.
    pub element: String,
    /// Its extents, if the file tells them: a number, or a name for what is known only when it runs.
    pub shape: Option<Vec<String>>,
}

impl Port {
    pub(crate) fn of(value: &ValueProto) -> Port {
        let extent = |extent: &Extent| match extent {
            Extent::Known(extent) => extent.to_string(),
            Extent::Named(name) => name.clone(),
            Extent::Unknown => "?".to_string(),
        };
        let element =
            if value.data_type == 0 { "no tensor".to_string() } else { element::name(value.data_type) };
        Port {
            name: value.name.clone(),
            element,
            shape: value.shape.as_ref().map(|s| s.iter().map(extent).collect()),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape.as_ref().map_or("of any shape".to_string(), |s| format!("({})", s.join(", ")));
        write!(f, "{} {} {shape}", self.name, self.element)
    }
}

/// What a file's tensor is to the module.
enum Weight {
    /// Trained, or kept beside what is trained.
    Held { tensor: Tensor, kind: ElementType, trained: bool },
    /// A setting or an index: on the CPU, where shapes are computed.
    Known(Value),
}

/// The tensors of a file, by name.
pub(crate) struct Weights {
    all: BTreeMap<String, Weight>,
    pub opset: i64,
    folder: Option<PathBuf>,
}

impl Weights {
    pub fn get(&self, name: &str) -> Option<Value> {
        Some(match self.all.get(name)? {
            Weight::Held { tensor, kind, .. } => Value::from(tensor.clone()).of_kind(*kind),
            Weight::Known(value) => value.clone(),
        })
    }

    /// A tensor inside of a node, as a known value.
    pub fn constant(&self, proto: &TensorProto) -> Result<Value> {
        let (tensor, kind) = element::tensor(proto, self.folder.as_deref(), Device::Cpu)?;
        Ok(Value::known(tensor).of_kind(kind))
    }

    fn add(&mut self, name: String, proto: &TensorProto, uses: &Uses) -> Result<()> {
        let is_float = ElementType::numbered(proto.data_type).is_ok_and(|kind| kind.held_as().is_float());
        let place = uses.of(&name);
        let is_large = proto.dims.iter().any(|&extent| extent > 1);
        let weight = if is_float && place != Use::Setting && (is_large || place == Use::Statistic) {
            let (tensor, kind) = element::tensor(proto, self.folder.as_deref(), volta::default_device())?;
            let trained = place == Use::Weight;
            Weight::Held { tensor: tensor.requires_grad(trained), kind, trained }
        } else {
            Weight::Known(self.constant(proto)?)
        };
        if self.all.insert(name.clone(), weight).is_some() {
            bail!(Data, "two tensors are called {name:?}");
        }
        Ok(())
    }
}

/// What a tensor is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Weight,
    /// A running mean or variance.
    Statistic,
    /// What only says how something is computed.
    Setting,
}

/// Every tensor's uses, in a graph and those inside of it.
struct Uses(HashMap<String, Use>);

impl Uses {
    fn new(graph: &GraphProto) -> Uses {
        let mut uses = Uses(HashMap::new());
        uses.visit(graph);
        uses
    }

    fn visit(&mut self, graph: &GraphProto) {
        for node in &graph.nodes {
            for (k, name) in node.inputs.iter().enumerate() {
                let kind = match (node.op.as_str(), k) {
                    ("BatchNormalization", 3 | 4) => Use::Statistic,
                    (
                        "Resize" | "Clip" | "QuantizeLinear" | "DequantizeLinear" | "OneHot" | "Range"
                        | "Dropout",
                        1..,
                    )
                    | ("Upsample", 1)
                    | ("Pad" | "NonMaxSuppression", 2..)
                    | ("Loop" | "If" | "Scan" | "Shape" | "Size" | "Range", _) => Use::Setting,
                    _ => Use::Weight,
                };
                self.0
                    .entry(name.clone())
                    .and_modify(|known| *known = weightier(*known, kind))
                    .or_insert(kind);
            }
            subgraphs(node).for_each(|inner| self.visit(inner));
        }
    }

    fn of(&self, name: &str) -> Use {
        self.0.get(name).copied().unwrap_or(Use::Weight)
    }
}

fn weightier(a: Use, b: Use) -> Use {
    if a == b { a } else { Use::Weight }
}

pub(crate) fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attributes.iter().filter_map(|attribute| match &attribute.value {
        Attribute::Graph(graph) => Some(&**graph),
        _ => None,
    })
}

/// Operators of a graph, and of those inside of it, that Volta does not have.
pub(crate) fn unknown(graph: &GraphProto, found: &mut BTreeSet<String>) {
    for node in &graph.nodes {
        if ops::find(node).is_none() {
            found.insert(if node.domain.is_empty() {
                node.op.clone()
            } else {
                format!("{}.{}", node.domain, node.op)
            });
        }
        subgraphs(node).for_each(|inner| unknown(inner, found));
    }
}

/// Lets go of the file: what nodes hold is copied.
fn detach(graph: &mut GraphProto) {
    let own = |chunk: &mut Chunk| *chunk = Chunk::whole(chunk.to_vec());
    let own_tensor = |tensor: &mut TensorProto| tensor.raw.iter_mut().for_each(own);
    graph.initializers.iter_mut().for_each(own_tensor);
    for attribute in graph.nodes.iter_mut().flat_map(|node| &mut node.attributes) {
        match &mut attribute.value {
            Attribute::Text(text) => own(text),
            Attribute::Texts(list) => list.iter_mut().for_each(own),
            Attribute::Tensor(tensor) => own_tensor(tensor),
            Attribute::Graph(inner) => detach(inner),
            _ => {}
        }
    }
}

/// Shapes, types and devices of inputs, and what follows from them.
type Fold = (Vec<(Shape, DType, Device)>, Folded);

/// How many kinds of inputs are remembered.
const MAX_FOLDED: usize = 16;

/// A network of an ONNX file. Its parameters are the float tensors of the file, under the names that they have there: an optimizer takes them
/// like those of any module. Means and variances of batch norms are buffers; the graph computes what the file says, while it trains, too.
///
/// ```no_run
/// use volta::{Module, Tensor};
/// use volta_onnx::Onnx;
///
/// let model = Onnx::load("resnet18.onnx")?;
/// let logits = model.forward(&Tensor::randn([1, 3, 224, 224]));
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Onnx {
    graph: GraphProto,
    opsets: Vec<(String, i64)>,
    ir_version: i64,
    weights: Weights,
    folds: Mutex<Vec<Fold>>,
}

impl Onnx {
    /// Opens a file. Tensors that it keeps in other files are read from its folder; parameters come to the default device.
    ///
    /// # Errors
    /// A file that cannot be read or is no ONNX file; operators that Volta does not have, all in one error, or attributes.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Onnx> {
        let _call = Call::enter("Onnx::load");
        let path = path.as_ref();
        let folder = path.parent().map(Path::to_path_buf);
        Onnx::new(file::read(path)?, folder).map_err(|e| e.with_context(&path.display().to_string()))
    }

    /// The network of a file's bytes.
    #[track_caller]
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Onnx> {
        let _call = Call::enter("Onnx::from_bytes");
        Onnx::new(bytes, None)
    }

    fn new(bytes: Vec<u8>, folder: Option<PathBuf>) -> Result<Onnx> {
        let ModelProto { graph, opsets, ir_version, functions, .. } = ModelProto::read(Chunk::whole(bytes))?;
        let Some(mut graph) = graph else { bail!(Data, "there is no graph: this is no ONNX file") };
        let Some(opset) =
            opsets.iter().find(|(d, _)| d.is_empty() || d == "ai.onnx").or(opsets.first()).map(|o| o.1)
        else {
            bail!(Data, "the version of the operators is missing: this is no ONNX file")
        };
        if graph.has_sparse {
            bail!(Data, "it has sparse tensors, which Volta does not read");
        }
        let mut missing = BTreeSet::new();
        unknown(&graph, &mut missing);
        if !missing.is_empty() {
            let list = missing.into_iter().collect::<Vec<_>>().join(", ");
            let hint = if functions.is_empty() {
                ""
            } else {
                ". The file defines functions: export it with them inlined"
            };
            bail!(Data, "Volta does not have these operators: {list}{hint}");
        }
        attributes::unknown(&graph, &mut missing);
        if !missing.is_empty() {
            let list = missing.into_iter().collect::<Vec<_>>().join(", ");
            bail!(Data, "Volta does not know these attributes, or not these values of them: {list}");
        }
        let mut weights = Weights { all: BTreeMap::new(), opset, folder };
        let uses = Uses::new(&graph);
        for proto in std::mem::take(&mut graph.initializers) {
            weights.add(proto.name.clone(), &proto, &uses)?;
        }
        for node in std::mem::take(&mut graph.nodes) {
            match (node.op.as_str(), node.attribute("value"), node.outputs.as_slice()) {
                ("Constant", Some(Attribute::Tensor(proto)), [name]) if node.domain.is_empty() => {
                    weights.add(name.clone(), proto, &uses)?;
                }
                _ => graph.nodes.push(node),
            }
        }
        // Old files list tensors that they hold among their inputs.
        graph.inputs.retain(|input| !weights.all.contains_key(&input.name));
        detach(&mut graph);
        Ok(Onnx { graph, opsets, ir_version, weights, folds: Mutex::default() })
    }

    /// What it takes.
    pub fn inputs(&self) -> Vec<Port> {
        self.graph.inputs.iter().map(Port::of).collect()
    }

    /// What it gives.
    pub fn outputs(&self) -> Vec<Port> {
        self.graph.outputs.iter().map(Port::of).collect()
    }

    /// All outputs for all inputs, both in the file's order. Misuse panics at the caller's line.
    #[track_caller]
    pub fn run(&self, inputs: &[Tensor]) -> Vec<Tensor> {
        self.try_run(inputs).unwrap_or_else(|e| e.raise())
    }

    /// [`run`](Self::run) that returns its error.
    #[track_caller]
    pub fn try_run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let _call = Call::enter("Onnx");
        let ports = &self.graph.inputs;
        if inputs.len() != ports.len() {
            let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
            bail!(
                Argument,
                "{} inputs are given, and {} are needed: {}",
                inputs.len(),
                ports.len(),
                names.join(", ")
            );
        }
        for (port, x) in ports.iter().zip(inputs) {
            check(port, x)?;
        }
        let held = self.weights.all.values().find_map(|weight| match weight {
            Weight::Held { tensor, .. } => Some(tensor.device()),
            Weight::Known(_) => None,
        });
        let device = inputs.first().map(Tensor::device).or(held).unwrap_or_else(volta::default_device);
        let mut scope = Scope::new(None);
        for (port, x) in ports.iter().zip(inputs) {
            let kind = ElementType::numbered(port.data_type).ok().filter(|kind| kind.held_as() == x.dtype());
            let value = Value::from(x.clone());
            scope.set(&port.name, kind.map_or(value.clone(), |kind| value.of_kind(kind)));
        }
        let key: Vec<_> = inputs.iter().map(|x| (x.shape(), x.dtype(), x.device())).collect();
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        let place = folds.iter().position(|(known, _)| *known == key);
        let (_, mut folded) = place.map_or((key.clone(), Folded::new()), |place| folds.swap_remove(place));
        drop(folds);
        let found = run(&self.graph, &mut scope, &self.weights, device, Some(&mut folded))?;
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        folds.truncate(MAX_FOLDED - 1);
        folds.insert(0, (key, folded));
        drop(folds);
        let give = |(port, value): (&ValueProto, Value)| {
            let kind = ElementType::numbered(port.data_type).unwrap_or(value.kind);
            kind.wrap(value.on(device)?)
        };
        self.graph.outputs.iter().zip(found).map(give).collect()
    }

    /// The file with the values that its tensors have now.
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let _call = Call::enter("Onnx::to_bytes");
        let mut graph = self.graph.clone();
        for (name, weight) in &self.weights.all {
            let (tensor, kind) = match weight {
                Weight::Held { tensor, kind, .. } => (tensor, *kind),
                Weight::Known(value) => (&value.tensor, value.kind),
            };
            graph.initializers.push(crate::write::tensor(name, tensor, kind)?);
        }
        let producer = crate::write::PRODUCER.to_string();
        let (opsets, producer_version) = (self.opsets.clone(), env!("CARGO_PKG_VERSION").to_string());
        let model = ModelProto {
            ir_version: self.ir_version,
            producer,
            producer_version,
            graph: Some(graph),
            opsets,
            functions: Vec::new(),
        };
        Ok(model.write())
    }

    /// Writes [`to_bytes`](Self::to_bytes) to a file: whole, or not at all.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let _call = Call::enter("Onnx::save");
        crate::write::file(path.as_ref(), &self.to_bytes()?)
    }
}

/// An error if an input is not what the file says.
fn check(port: &ValueProto, x: &Tensor) -> Result<()> {
    if let Ok(kind) = ElementType::numbered(port.data_type)
        && kind.held_as().is_float() != x.dtype().is_float()
    {
        bail!(DType, "the input {} is {}, and {} is needed", port.name, x.dtype(), kind.name());
    }
    let Some(extents) = &port.shape else { return Ok(()) };
    let fits = |(extent, &size): (&Extent, &usize)| !matches!(extent, Extent::Known(n) if *n >= 0 && *n != size as i64);
    if extents.len() != x.rank() || !extents.iter().zip(x.shape().iter()).all(fits) {
        bail!(Shape, "the input has shape {}: {} is needed", x.shape(), Port::of(port));
    }
    Ok(())
}

impl Module for Onnx {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let _call = Call::enter("Onnx");
        match self.try_run(std::slice::from_ref(x))?.into_iter().next() {
            Some(output) => Ok(output),
            None => bail!(Data, "the graph has no output"),
        }
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (name, weight) in &self.weights.all {
            if let Weight::Held { tensor, trained, .. } = weight {
                if *trained {
                    visitor.parameter(name, tensor);
                } else {
                    visitor.buffer(name, tensor);
                }
            }
        }
    }

    fn describe(&self) -> String {
        format!("{} nodes", self.graph.nodes.len())
    }
}
