//! One node that is being computed: its inputs, its attributes, what it gives.

use crate::element::ElementType;
use crate::model::Weights;
use crate::protobuf::{Attribute, GraphProto, NodeProto, TensorProto};
use crate::run::Scope;
use crate::value::Value;
use volta::{DType, Device, Result, Tensor};
use volta_ir::bail;

/// What an operator gives.
pub(crate) type Outputs = Vec<Value>;

/// How an operator is computed.
pub(crate) type Operator = fn(&Call) -> Result<Outputs>;

pub(crate) struct Call<'a> {
    pub node: &'a NodeProto,
    pub inputs: Vec<Option<Value>>,
    /// The version of the standard's operators.
    pub opset: i64,
    /// Where it is computed.
    pub device: Device,
    pub scope: &'a Scope<'a>,
    pub weights: &'a Weights,
}

/// One output.
pub(crate) fn one(tensor: Tensor) -> Result<Outputs> {
    Ok(vec![tensor.into()])
}

impl Call<'_> {
    /// How many inputs there are, those at the end that are left out aside.
    pub fn count(&self) -> usize {
        self.inputs.len()
    }

    pub fn value(&self, k: usize) -> Option<&Value> {
        self.inputs.get(k).and_then(Option::as_ref)
    }

    fn need(&self, k: usize) -> Result<&Value> {
        match self.value(k) {
            Some(value) => Ok(value),
            None => bail!(Data, "input {k} is missing"),
        }
    }

    /// An input that must be there.
    pub fn x(&self, k: usize) -> Result<Tensor> {
        self.need(k)?.on(self.device)
    }

    /// An input that may be left out.
    pub fn maybe(&self, k: usize) -> Result<Option<Tensor>> {
        self.value(k).map(|value| value.on(self.device)).transpose()
    }

    pub fn has(&self, k: usize) -> bool {
        self.value(k).is_some()
    }

    pub fn kind(&self, k: usize) -> ElementType {
        self.value(k).map_or(ElementType::F32, |value| value.kind)
    }

    /// All inputs.
    pub fn all(&self) -> Result<Vec<Tensor>> {
        (0..self.count()).map(|k| self.x(k)).collect()
    }

    /// The integers of an input, which the shape of the result follows from.
    pub fn ints(&self, k: usize) -> Result<Vec<i64>> {
        self.need(k)?.tensor.try_to_device(Device::Cpu)?.try_to_dtype(DType::I64)?.try_to_vec()
    }

    pub fn maybe_ints(&self, k: usize) -> Result<Option<Vec<i64>>> {
        if self.has(k) { self.ints(k).map(Some) } else { Ok(None) }
    }

    pub fn int_at(&self, k: usize) -> Result<i64> {
        match self.ints(k)?.first() {
            Some(&number) => Ok(number),
            None => bail!(Data, "input {k} has no number"),
        }
    }

    pub fn floats(&self, k: usize) -> Result<Vec<f64>> {
        self.need(k)?.tensor.try_to_device(Device::Cpu)?.try_to_dtype(DType::F64)?.try_to_vec()
    }

    pub fn float_at(&self, k: usize) -> Result<f64> {
        match self.floats(k)?.first() {
            Some(&number) => Ok(number),
            None => bail!(Data, "input {k} has no number"),
        }
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attribute(name)
    }

    fn wrong<T>(&self, name: &str) -> Result<T> {
        bail!(Data, "the attribute {name} is of another kind than ONNX says")
    }

    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Int(x)) => Ok(Some(*x)),
            Some(_) => self.wrong(name),
        }
    }

    pub fn int(&self, name: &str, usual: i64) -> Result<i64> {
        Ok(self.maybe_int(name)?.unwrap_or(usual))
    }

    pub fn axis(&self, usual: isize) -> Result<isize> {
        Ok(self.int("axis", usual as i64)? as isize)
    }

    pub fn flag(&self, name: &str, usual: bool) -> Result<bool> {
        Ok(self.int(name, usual.into())? != 0)
    }

    pub fn maybe_float(&self, name: &str) -> Result<Option<f64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Float(x)) => Ok(Some(f64::from(*x))),
            Some(_) => self.wrong(name),
        }
    }

    pub fn float(&self, name: &str, usual: f64) -> Result<f64> {
        Ok(self.maybe_float(name)?.unwrap_or(usual))
    }

    pub fn text(&self, name: &str, usual: &str) -> Result<String> {
        match self.attribute(name) {
            None => Ok(usual.to_string()),
            Some(Attribute::Text(x)) => Ok(x.text()),
            Some(_) => self.wrong(name),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        match self.attribute(name) {
            None => Ok(Vec::new()),
            Some(Attribute::Texts(list)) => Ok(list.iter().map(|text| text.text()).collect()),
            Some(_) => self.wrong(name),
        }
    }

    pub fn int_list(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(list)) => Ok(Some(list.clone())),
            Some(_) => self.wrong(name),
        }
    }

    /// A list of sizes, each at least 0.
    pub fn sizes(&self, name: &str) -> Result<Option<Vec<usize>>> {
        let Some(list) = self.int_list(name)? else { return Ok(None) };
        list.iter().map(|&x| size(x)).collect::<Result<Vec<_>>>().map(Some)
    }

    pub fn float_list(&self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(list)) => Ok(Some(list.clone())),
            Some(_) => self.wrong(name),
        }
    }

    pub fn tensor(&self, name: &str) -> Result<Option<&TensorProto>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Tensor(tensor)) => Ok(Some(tensor)),
            Some(_) => self.wrong(name),
        }
    }

    pub fn graph(&self, name: &str) -> Result<&GraphProto> {
        match self.attribute(name) {
            Some(Attribute::Graph(graph)) => Ok(graph),
            _ => bail!(Data, "the graph {name} is missing"),
        }
    }

    /// Integers or numbers that an attribute has in old versions, and an input in new ones.
    pub fn ints_of(&self, name: &str, k: usize) -> Result<Option<Vec<i64>>> {
        match self.int_list(name)? {
            Some(list) => Ok(Some(list)),
            None => self.maybe_ints(k),
        }
    }

    /// Makes a tensor where the node is computed.
    pub fn make(&self, make: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        volta::with_device(self.device, make)
    }

    /// A vector of integers where the node is computed.
    pub fn vector(&self, numbers: Vec<i64>) -> Result<Tensor> {
        let count = numbers.len();
        let host = volta::with_device(Device::Cpu, || Tensor::try_from_vec(numbers, [count]))?;
        crate::value::to_device(&host, self.device)
    }

    /// Positions as i64, where the device has it.
    pub fn positions(&self, x: Tensor) -> Tensor {
        x.try_to_dtype(DType::I64).unwrap_or(x)
    }
}

/// A number of a file as the length of a list that the host makes.
pub(crate) fn list_length(number: i64) -> Result<usize> {
    match size(number)? {
        length if length <= 1 << 26 => Ok(length),
        length => bail!(Data, "a list of {length} numbers would be made"),
    }
}

/// A number of a file as a size.
pub(crate) fn size(number: i64) -> Result<usize> {
    match usize::try_from(number) {
        Ok(size) if number <= 1 << 40 => Ok(size),
        _ => bail!(Data, "{number} is no size"),
    }
}
