//! What stands between the brackets, dimension by dimension.

use super::super::{PyTensor, array};
use super::common;
use crate::error::run;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyEllipsis, PyInt, PySlice, PyTuple};
use volta::{DType, Device, Shape, Tensor};

/// Positions along one dimension: numbers that are known, none of them negative, or a tensor of them.
#[derive(Clone)]
pub enum Positions {
    Known(Vec<i64>, Vec<usize>),
    Pending(Tensor),
}

impl Positions {
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Positions::Known(_, shape) => shape.clone(),
            Positions::Pending(tensor) => tensor.shape().to_vec(),
        }
    }
}

/// What happens to one dimension of the tensor, or to a new one.
pub enum Part {
    /// From `start` by `step`, `count` elements.
    Range { start: usize, step: usize, count: usize },
    /// One element, and the dimension goes.
    One(usize),
    /// A new dimension of size 1.
    New,
    /// Positions, which all such dimensions share.
    Picked(Positions),
    /// A new dimension that a truth value picks or not.
    PickedNew(Positions),
}

impl Part {
    /// Whether it takes part in what NumPy calls advanced indexing.
    pub fn picks(&self) -> bool {
        matches!(self, Part::Picked(_) | Part::PickedNew(_))
    }
}

/// An index, understood.
pub struct Index {
    pub parts: Vec<Part>,
    /// Whether the parts that pick stand side by side, but for single elements, which are taken first.
    pub together: bool,
    /// Single elements whose places are not known yet.
    pub later: Vec<Later>,
}

/// A single element that a tensor names. Its part is `One(0)`: the first of what is left when it is taken.
pub struct Later {
    pub at: Tensor,
    pub dim: usize,
    part: usize,
}

impl Index {
    /// Reads the places of single elements that are not known yet.
    pub fn look(&mut self, py: Python<'_>, shape: &Shape) -> PyResult<()> {
        for Later { at, dim, part } in std::mem::take(&mut self.later) {
            let place: i64 = run(py, || at.detach().try_item())?;
            self.parts[part] = Part::One(within(place as isize, shape[dim], dim)?);
        }
        Ok(())
    }
}

/// One object between the brackets.
enum Item<'py> {
    Int(isize),
    Slice(Bound<'py, PySlice>),
    New,
    Ellipsis,
    Truth(bool),
    Positions(Tensor),
    Mask(Tensor),
}

fn error(message: String) -> PyErr {
    PyIndexError::new_err(message)
}

/// The number that an object with `__index__` is.
fn integer(object: &Bound<'_, PyAny>) -> Option<isize> {
    object.extract().ok()
}

fn array_item<'py>(object: &Bound<'py, PyAny>) -> PyResult<Item<'py>> {
    let py = object.py();
    let mut array = py.import("numpy")?.call_method1("asarray", (object,)).map_err(|e| {
        error(format!(
            "an index must be an integer, slice, None, ..., mask or integer array: {}",
            e.value(py)
        ))
    })?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let empty = array.getattr("size")?.extract::<usize>()? == 0;
    if matches!(kind.as_str(), "i" | "u") || (empty && kind == "f" && !array::is_array(object.as_borrowed())?)
    {
        array = array.call_method1("astype", ("int64",))?;
    } else if kind != "b" {
        return Err(error(format!("an array of {} cannot be an index", array.getattr("dtype")?)));
    }
    // A copy: the index must not change with the array.
    tensor_item(py, &array::from_array(&array, Device::Cpu)?)
}

fn tensor_item<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Item<'py>> {
    match tensor.dtype() {
        DType::Bool if tensor.rank() == 0 => Ok(Item::Truth(run(py, || tensor.detach().try_item())?)),
        DType::Bool => Ok(Item::Mask(tensor.clone())),
        dtype if dtype.is_int() => Ok(Item::Positions(tensor.clone())),
        dtype => Err(error(format!("a tensor of {dtype} cannot be an index: integers or bool are needed"))),
    }
}

fn item<'py>(object: &Bound<'py, PyAny>) -> PyResult<Item<'py>> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(Item::Int(object.extract()?));
    }
    if let Ok(slice) = object.cast::<PySlice>() {
        return Ok(Item::Slice(slice.clone()));
    }
    if object.is_none() {
        return Ok(Item::New);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(Item::Ellipsis);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Item::Truth(truth.is_true()));
    }
    if let Ok(tensor) = object.cast::<PyTensor>() {
        return tensor_item(object.py(), &tensor.get().0);
    }
    if !array::is_array(object.as_borrowed())? {
        if let Some(index) = integer(object) {
            return Ok(Item::Int(index));
        }
        if object.extract::<String>().is_ok() || object.is_instance_of::<PyDict>() {
            return Err(error(format!("{} cannot be an index", object.get_type().name()?)));
        }
    }
    array_item(object)
}

/// The flat positions of what is not zero.
pub fn nonzero(py: Python<'_>, x: &Tensor) -> PyResult<Vec<usize>> {
    let bits: Vec<bool> = run(py, || x.detach().try_to_dtype(DType::Bool)?.try_to_vec())?;
    Ok(bits.iter().enumerate().filter(|(_, bit)| **bit).map(|(k, _)| k).collect())
}

/// The coordinate along dimension `k` of a flat position.
pub fn coordinate(at: usize, shape: &Shape, k: usize) -> usize {
    at / shape[k + 1..].iter().product::<usize>() % shape[k]
}

/// A place along a dimension, counted from the beginning.
fn within(at: isize, extent: usize, dim: usize) -> PyResult<usize> {
    let size = extent as isize;
    if at < -size || at >= size {
        return Err(error(format!("index {at} is out of range for dimension {dim} of size {extent}")));
    }
    Ok(at.rem_euclid(size) as usize)
}

/// Positions that can be looked at without waiting for the device are checked, and counted from the beginning.
fn positions(py: Python<'_>, tensor: &Tensor, extent: usize, dim: usize) -> PyResult<Positions> {
    if tensor.device() != Device::Cpu || !tensor.is_realized() {
        return Ok(Positions::Pending(tensor.clone()));
    }
    let mut all: Vec<i64> = run(py, || tensor.detach().try_to_vec())?;
    for at in &mut all {
        *at = within(*at as isize, extent, dim)? as i64;
    }
    Ok(Positions::Known(all, tensor.shape().to_vec()))
}

fn range(slice: &Bound<'_, PySlice>, extent: usize) -> PyResult<Part> {
    let step = slice.getattr("step")?;
    if !step.is_none() && step.extract::<isize>()? <= 0 {
        return Err(PyValueError::new_err(
            "the step of a slice must be positive: use flip to reverse a dimension",
        ));
    }
    let range = slice.indices(extent as isize)?;
    Ok(Part::Range { start: range.start as usize, step: range.step as usize, count: range.slicelength })
}

/// What `index` means for a tensor of this shape.
pub fn parse(py: Python<'_>, shape: &Shape, index: &Bound<'_, PyAny>) -> PyResult<Index> {
    let items: Vec<Item> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|object| item(&object)).collect::<PyResult<_>>()?,
        Err(_) => vec![item(index)?],
    };
    let taken: usize = items
        .iter()
        .map(|item| match item {
            Item::New | Item::Ellipsis | Item::Truth(_) => 0,
            Item::Mask(mask) => mask.rank(),
            _ => 1,
        })
        .sum();
    if taken > shape.rank() {
        return Err(error(format!("{taken} indices are too many for shape {shape}")));
    }
    if items.iter().filter(|i| matches!(i, Item::Ellipsis)).count() > 1 {
        return Err(error("an index can have one ellipsis ('...') only".to_string()));
    }
    let mut all = Parts { py, shape, parts: Vec::new(), later: Vec::new(), dim: 0, groups: 0, beside: false };
    let mut open = true;
    for item in &items {
        if matches!(item, Item::Ellipsis) {
            open = false;
            all.whole(shape.rank() - taken)?;
        } else {
            all.add(item)?;
        }
    }
    if open {
        all.whole(shape.rank() - taken)?;
    }
    let Parts { parts, later, groups, .. } = all;
    check_common(&parts)?;
    Ok(Index { parts, together: groups <= 1, later })
}

/// The parts of an index while they are found.
struct Parts<'a, 'py> {
    py: Python<'py>,
    shape: &'a Shape,
    parts: Vec<Part>,
    later: Vec<Later>,
    dim: usize,
    /// Runs of parts that pick.
    groups: usize,
    beside: bool,
}

impl Parts<'_, '_> {
    fn whole(&mut self, count: usize) -> PyResult<()> {
        self.beside = false;
        for _ in 0..count {
            self.parts.push(Part::Range { start: 0, step: 1, count: self.shape[self.dim] });
            self.dim += 1;
        }
        Ok(())
    }

    fn pick(&mut self, part: Part) {
        self.groups += usize::from(!self.beside);
        self.beside = true;
        self.parts.push(part);
    }

    fn add(&mut self, item: &Item<'_>) -> PyResult<()> {
        match item {
            Item::New => {
                self.beside = false;
                self.parts.push(Part::New);
            }
            Item::Slice(slice) => {
                self.beside = false;
                self.parts.push(range(slice, self.shape[self.dim])?);
                self.dim += 1;
            }
            Item::Int(at) => {
                self.parts.push(Part::One(within(*at, self.shape[self.dim], self.dim)?));
                self.dim += 1;
            }
            Item::Truth(truth) => {
                let found = if *truth { vec![0] } else { Vec::new() };
                let count = found.len();
                self.pick(Part::PickedNew(Positions::Known(found, vec![count])));
            }
            Item::Positions(tensor) => {
                match positions(self.py, tensor, self.shape[self.dim], self.dim)? {
                    Positions::Known(all, own) if own.is_empty() => {
                        self.parts.push(Part::One(all[0] as usize))
                    }
                    Positions::Pending(at) if at.rank() == 0 => {
                        self.later.push(Later { at, dim: self.dim, part: self.parts.len() });
                        self.parts.push(Part::One(0));
                    }
                    found => self.pick(Part::Picked(found)),
                }
                self.dim += 1;
            }
            Item::Mask(mask) => {
                let covered = &self.shape[self.dim..self.dim + mask.rank()];
                let own = mask.shape();
                if own[..] != *covered {
                    return Err(error(format!(
                        "a mask of shape {own} does not fit dimensions {covered:?} of shape {}",
                        self.shape
                    )));
                }
                let found = nonzero(self.py, mask)?;
                for k in 0..own.rank() {
                    let along = found.iter().map(|&at| coordinate(at, &own, k) as i64).collect();
                    self.pick(Part::Picked(Positions::Known(along, vec![found.len()])));
                    self.dim += 1;
                }
            }
            Item::Ellipsis => {}
        }
        Ok(())
    }
}

fn check_common(parts: &[Part]) -> PyResult<()> {
    let shapes: Vec<Vec<usize>> = picked(parts).map(Positions::shape).collect();
    if common(&shapes).is_none() {
        return Err(error(format!("index arrays of shapes {shapes:?} do not broadcast together")));
    }
    Ok(())
}

/// The positions of the parts that pick.
pub fn picked(parts: &[Part]) -> impl Iterator<Item = &Positions> {
    parts.iter().filter_map(|part| match part {
        Part::Picked(positions) | Part::PickedNew(positions) => Some(positions),
        _ => None,
    })
}

/// A mask alone, with the dimensions that it covers: assignments need not read it.
pub fn lone_mask(index: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let Ok(tensor) = index.cast::<PyTensor>() else { return Ok(None) };
    let tensor = &tensor.get().0;
    Ok((tensor.dtype() == DType::Bool && tensor.rank() > 0).then(|| tensor.clone()))
}

/// Positions on a tensor's device, from the beginning.
pub fn on_device(py: Python<'_>, positions: &Positions, like: &Tensor, extent: usize) -> PyResult<Tensor> {
    let device = like.device();
    match positions {
        Positions::Known(all, shape) => run(py, || host(all, shape)?.try_to_device(device)),
        Positions::Pending(tensor) => run(py, || {
            let wide = match tensor.dtype() {
                dtype @ (DType::I64 | DType::U32) => dtype,
                _ => DType::I32,
            };
            let here = tensor.detach().try_to_dtype(wide)?.try_to_device(device)?;
            here.try_lt(0)?.try_where_(&here.try_add(extent as i64)?, &here)
        }),
    }
}

/// Positions as a tensor of the host's, int32 where they fit, as a GPU may have nothing wider.
pub fn host(all: &[i64], shape: &[usize]) -> volta::Result<Tensor> {
    volta::with_device(Device::Cpu, || {
        match all.iter().map(|&at| i32::try_from(at)).collect::<Result<Vec<_>, _>>() {
            Ok(small) => Tensor::try_from_vec(small, shape),
            Err(_) => Tensor::try_from_slice(all, shape),
        }
    })
}
