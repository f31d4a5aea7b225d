//! ONNX's messages, as far as Volta reads and writes them. Numbers of fields are those of `onnx.proto`.

use super::wire::{Chunk, Field, Reader, Writer};
use volta::Result;
use volta_ir::bail;

/// Graphs inside of graphs; the standard has no limit.
const MAX_DEPTH: usize = 32;

#[derive(Default, Debug)]
pub struct ModelProto {
    pub ir_version: i64,
    pub producer: String,
    pub producer_version: String,
    pub graph: Option<GraphProto>,
    /// Domains and versions of their operators.
    pub opsets: Vec<(String, i64)>,
    /// Names of functions that the file defines.
    pub functions: Vec<(String, String)>,
}

#[derive(Clone, Default, Debug)]
pub struct GraphProto {
    pub name: String,
    pub nodes: Vec<NodeProto>,
    pub initializers: Vec<TensorProto>,
    pub inputs: Vec<ValueProto>,
    pub outputs: Vec<ValueProto>,
    pub has_sparse: bool,
}

#[derive(Clone, Default, Debug)]
pub struct NodeProto {
    pub name: String,
    pub op: String,
    pub domain: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attributes: Vec<AttributeProto>,
}

#[derive(Clone, Debug)]
pub enum Attribute {
    Float(f32),
    Int(i64),
    Text(Chunk),
    Tensor(TensorProto),
    Graph(Box<GraphProto>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<Chunk>),
    /// Of a kind that no operator here takes.
    Other,
}

#[derive(Clone, Debug)]
pub struct AttributeProto {
    pub name: String,
    pub value: Attribute,
}

#[derive(Clone, Default, Debug)]
pub struct TensorProto {
    pub name: String,
    pub dims: Vec<i64>,
    pub data_type: i64,
    pub raw: Option<Chunk>,
    pub floats: Vec<f32>,
    /// `int32_data`, `int64_data` or `uint64_data`.
    pub ints: Vec<i64>,
    pub doubles: Vec<f64>,
    /// Where else the data is: keys and values.
    pub external: Option<Vec<(String, String)>>,
}

/// An extent of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    Known(i64),
    Named(String),
    Unknown,
}

#[derive(Clone, Default, Debug)]
pub struct ValueProto {
    pub name: String,
    /// The number of its element type; 0 if it is no tensor.
    pub data_type: i64,
    pub shape: Option<Vec<Extent>>,
}

fn each(chunk: Chunk, mut take: impl FnMut(u64, Field) -> Result<()>) -> Result<()> {
    let mut reader = Reader::new(chunk);
    while let Some((number, field)) = reader.next()? {
        take(number, field)?;
    }
    Ok(())
}

fn pair(chunk: Chunk) -> Result<(String, String)> {
    let mut found = (String::new(), String::new());
    each(chunk, |number, field| {
        match number {
            1 => found.0 = field.text()?,
            2 => found.1 = field.text()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

impl ModelProto {
    pub fn read(chunk: Chunk) -> Result<ModelProto> {
        let mut model = ModelProto::default();
        each(chunk, |number, field| {
            match number {
                1 => model.ir_version = field.int()?,
                2 => model.producer = field.text()?,
                3 => model.producer_version = field.text()?,
                7 => model.graph = Some(GraphProto::read(field.chunk()?, 0)?),
                8 => {
                    let mut opset = (String::new(), 0);
                    each(field.chunk()?, |number, field| {
                        match number {
                            1 => opset.0 = field.text()?,
                            2 => opset.1 = field.int()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    model.opsets.push(opset);
                }
                25 => {
                    let mut function = (String::new(), String::new());
                    each(field.chunk()?, |number, field| {
                        match number {
                            1 => function.1 = field.text()?,
                            10 => function.0 = field.text()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    model.functions.push(function);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(model)
    }

    pub fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.int(1, self.ir_version);
        w.text(2, &self.producer);
        w.text(3, &self.producer_version);
        if let Some(graph) = &self.graph {
            w.bytes(7, &graph.write());
        }
        for (domain, version) in &self.opsets {
            let mut opset = Writer::default();
            opset.text(1, domain);
            opset.int(2, *version);
            w.bytes(8, &opset.finish());
        }
        w.finish()
    }
}

impl GraphProto {
    fn read(chunk: Chunk, depth: usize) -> Result<GraphProto> {
        if depth > MAX_DEPTH {
            bail!(Data, "graphs stand in graphs more than {MAX_DEPTH} deep");
        }
        let mut graph = GraphProto::default();
        each(chunk, |number, field| {
            match number {
                1 => graph.nodes.push(NodeProto::read(field.chunk()?, depth)?),
                2 => graph.name = field.text()?,
                5 => graph.initializers.push(TensorProto::read(field.chunk()?)?),
                11 => graph.inputs.push(ValueProto::read(field.chunk()?)?),
                12 => graph.outputs.push(ValueProto::read(field.chunk()?)?),
                15 => graph.has_sparse = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok(graph)
    }

    fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        self.nodes.iter().for_each(|node| w.bytes(1, &node.write()));
        w.text(2, &self.name);
        self.initializers.iter().for_each(|tensor| w.bytes(5, &tensor.write()));
        self.inputs.iter().for_each(|value| w.bytes(11, &value.write()));
        self.outputs.iter().for_each(|value| w.bytes(12, &value.write()));
        w.finish()
    }
}

impl NodeProto {
    fn read(chunk: Chunk, depth: usize) -> Result<NodeProto> {
        let mut node = NodeProto::default();
        each(chunk, |number, field| {
            match number {
                1 => node.inputs.push(field.text()?),
                2 => node.outputs.push(field.text()?),
                3 => node.name = field.text()?,
                4 => node.op = field.text()?,
                5 => node.attributes.push(AttributeProto::read(field.chunk()?, depth)?),
                7 => node.domain = field.text()?,
                _ => {}
            }
            Ok(())
        })?;
        if node.domain == "ai.onnx" {
            node.domain.clear();
        }
        Ok(node)
    }

    fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        // An input that is left out has an empty name.
        self.inputs.iter().for_each(|name| w.bytes(1, name.as_bytes()));
        self.outputs.iter().for_each(|name| w.bytes(2, name.as_bytes()));
        w.text(3, &self.name);
        w.text(4, &self.op);
        self.attributes.iter().for_each(|attribute| w.bytes(5, &attribute.write()));
        w.text(7, &self.domain);
        w.finish()
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name).map(|a| &a.value)
    }
}

impl AttributeProto {
    fn read(chunk: Chunk, depth: usize) -> Result<AttributeProto> {
        let (mut name, mut kind) = (String::new(), 0);
        let (mut float, mut int, mut text) = (None, None, None);
        let (mut tensor, mut graph) = (None, None);
        let (mut floats, mut ints, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        each(chunk, |number, field| {
            match number {
                1 => name = field.text()?,
                2 => float = Some(field.float()?),
                3 => int = Some(field.int()?),
                4 => text = Some(field.chunk()?),
                5 => tensor = Some(TensorProto::read(field.chunk()?)?),
                6 => graph = Some(GraphProto::read(field.chunk()?, depth + 1)?),
                7 => field.floats_into(&mut floats)?,
                8 => field.ints_into(&mut ints)?,
                9 => texts.push(field.chunk()?),
                20 => kind = field.int()?,
                _ => {}
            }
            Ok(())
        })?;
        // Old files have no kind, and one field that is there.
        let value = match kind {
            1 => Attribute::Float(float.unwrap_or(0.0)),
            2 => Attribute::Int(int.unwrap_or(0)),
            3 => Attribute::Text(text.unwrap_or_default()),
            4 => tensor.map_or(Attribute::Other, Attribute::Tensor),
            5 => graph.map_or(Attribute::Other, |g| Attribute::Graph(Box::new(g))),
            6 => Attribute::Floats(floats),
            7 => Attribute::Ints(ints),
            8 => Attribute::Texts(texts),
            0 => match (float, int, text, tensor, graph) {
                (Some(x), ..) => Attribute::Float(x),
                (_, Some(x), ..) => Attribute::Int(x),
                (_, _, Some(x), ..) => Attribute::Text(x),
                (_, _, _, Some(x), _) => Attribute::Tensor(x),
                (.., Some(x)) => Attribute::Graph(Box::new(x)),
                _ if !floats.is_empty() => Attribute::Floats(floats),
                _ if !texts.is_empty() => Attribute::Texts(texts),
                _ => Attribute::Ints(ints),
            },
            _ => Attribute::Other,
        };
        Ok(AttributeProto { name, value })
    }

    fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.text(1, &self.name);
        let kind = match &self.value {
            Attribute::Float(x) => {
                w.float(2, *x);
                1
            }
            Attribute::Int(x) => {
                w.int(3, *x);
                2
            }
            Attribute::Text(x) => {
                w.bytes(4, x);
                3
            }
            Attribute::Tensor(x) => {
                w.bytes(5, &x.write());
                4
            }
            Attribute::Graph(x) => {
                w.bytes(6, &x.write());
                5
            }
            Attribute::Floats(list) => {
                list.iter().for_each(|x| w.float(7, *x));
                6
            }
            Attribute::Ints(list) => {
                list.iter().for_each(|x| w.int(8, *x));
                7
            }
            Attribute::Texts(list) => {
                list.iter().for_each(|x| w.bytes(9, x));
                8
            }
            Attribute::Other => 0,
        };
        w.int(20, kind);
        w.finish()
    }
}

impl TensorProto {
    pub fn read(chunk: Chunk) -> Result<TensorProto> {
        let mut tensor = TensorProto::default();
        let (mut external, mut is_external) = (Vec::new(), false);
        each(chunk, |number, field| {
            match number {
                1 => field.ints_into(&mut tensor.dims)?,
                2 => tensor.data_type = field.int()?,
                4 => field.floats_into(&mut tensor.floats)?,
                5 | 7 | 11 => field.ints_into(&mut tensor.ints)?,
                8 => tensor.name = field.text()?,
                9 => tensor.raw = Some(field.chunk()?),
                10 => field.doubles_into(&mut tensor.doubles)?,
                13 => external.push(pair(field.chunk()?)?),
                14 => is_external = field.int()? == 1,
                _ => {}
            }
            Ok(())
        })?;
        tensor.external = is_external.then_some(external);
        Ok(tensor)
    }

    pub fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        self.dims.iter().for_each(|&extent| w.int(1, extent));
        w.int(2, self.data_type);
        w.text(8, &self.name);
        w.bytes(9, self.raw.as_deref().unwrap_or_default());
        w.finish()
    }
}

impl ValueProto {
    fn read(chunk: Chunk) -> Result<ValueProto> {
        let mut value = ValueProto::default();
        each(chunk, |number, field| {
            match number {
                1 => value.name = field.text()?,
                2 => each(field.chunk()?, |number, field| match number {
                    1 => each(field.chunk()?, |number, field| {
                        match number {
                            1 => value.data_type = field.int()?,
                            2 => value.shape = Some(read_shape(field.chunk()?)?),
                            _ => {}
                        }
                        Ok(())
                    }),
                    _ => Ok(()),
                })?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(value)
    }

    fn write(&self) -> Vec<u8> {
        let mut shape = Writer::default();
        for extent in self.shape.iter().flatten() {
            let mut w = Writer::default();
            match extent {
                Extent::Known(extent) => w.int(1, *extent),
                Extent::Named(name) => w.text(2, name),
                Extent::Unknown => {}
            }
            shape.bytes(1, &w.finish());
        }
        let (mut tensor, mut kind, mut w) = (Writer::default(), Writer::default(), Writer::default());
        tensor.int(1, self.data_type);
        if self.shape.is_some() {
            tensor.bytes(2, &shape.finish());
        }
        kind.bytes(1, &tensor.finish());
        w.text(1, &self.name);
        w.bytes(2, &kind.finish());
        w.finish()
    }
}

fn read_shape(chunk: Chunk) -> Result<Vec<Extent>> {
    let mut shape = Vec::new();
    each(chunk, |number, field| {
        if number == 1 {
            let mut extent = Extent::Unknown;
            each(field.chunk()?, |number, field| {
                match number {
                    1 => extent = Extent::Known(field.int()?),
                    2 => extent = Extent::Named(field.text()?),
                    _ => {}
                }
                Ok(())
            })?;
            shape.push(extent);
        }
        Ok(())
    })?;
    Ok(shape)
}
