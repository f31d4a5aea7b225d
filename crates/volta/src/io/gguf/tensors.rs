//! The table of tensors: names, types, shapes and places, each compared with the file's size.

use super::cursor::Cursor;
use super::metadata::check_key;
use super::types::GgufType;
use std::collections::HashMap;

/// ggml has no tensors of more axes.
const MAX_AXES: u32 = 4;
/// A name of one byte, the number of axes, one of them, the type and the place.
pub(super) const LEAST_BYTES: usize = 8 + 1 + 4 + 4 + 8;

/// A tensor as a GGUF file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufTensor {
    name: String,
    kind: GgufType,
    shape: Vec<usize>,
    /// Where its bytes begin; counted from the end of the header until that is known.
    pub(super) start: usize,
    bytes: usize,
}

impl GgufTensor {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its element type.
    pub fn kind(&self) -> GgufType {
        self.kind
    }

    /// The extents of its axes in row-major order, as everywhere in Volta: the file has them the other way round.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The size of its elements in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn read(cursor: &mut Cursor, number: usize, alignment: usize) -> Result<GgufTensor, String> {
        let name = cursor.text(&format!("the name of tensor {number}"))?;
        check_key(&name).map_err(|what| format!("the name of tensor {number} {what}"))?;
        let read = |cursor: &mut Cursor| -> Result<_, String> {
            let axes: u32 = cursor.number("its number of axes")?;
            if axes > MAX_AXES {
                return Err(format!("it is said to have {axes} axes; {MAX_AXES} is the most"));
            }
            let mut shape = Vec::new();
            for extent in cursor.numbers::<u64>(axes as usize, "its shape")? {
                let size = usize::try_from(extent).ok().filter(|&n| n > 0 && n <= i64::MAX as usize);
                shape.push(size.ok_or_else(|| format!("an axis is said to have extent {extent}"))?);
            }
            shape.reverse();
            let id: u32 = cursor.number("its type")?;
            let kind =
                GgufType::of_id(id).ok_or_else(|| format!("its type has number {id}, which is not known"))?;
            let place: u64 = cursor.number("its place")?;
            let start = usize::try_from(place).map_err(|_| format!("it is said to lie at byte {place}"))?;
            if !start.is_multiple_of(alignment) {
                return Err(format!(
                    "it is said to lie at byte {start}, which is no multiple of {alignment}"
                ));
            }
            let bytes = kind.bytes(&shape)?;
            Ok((kind, shape, start, bytes))
        };
        match read(cursor) {
            Ok((kind, shape, start, bytes)) => Ok(GgufTensor { name, kind, shape, start, bytes }),
            Err(what) => Err(format!("tensor {name:?}: {what}")),
        }
    }
}

pub(super) fn read(cursor: &mut Cursor, count: usize, alignment: usize) -> Result<Vec<GgufTensor>, String> {
    (0..count).map(|number| GgufTensor::read(cursor, number, alignment)).collect()
}

/// Moves tensors behind the header, which ends at `first` of `length` bytes. None may reach beyond the end, or into
/// another.
pub(super) fn place(tensors: &mut [GgufTensor], first: usize, length: usize) -> Result<(), String> {
    for t in tensors.iter_mut() {
        let start = t.start.checked_add(first);
        let fits = start.and_then(|start| start.checked_add(t.bytes)).is_some_and(|end| end <= length);
        match start {
            Some(start) if fits => t.start = start,
            _ => {
                let (name, start, bytes) = (&t.name, t.start, t.bytes);
                let behind = length.saturating_sub(first);
                return Err(format!(
                    "tensor {name:?}: its {bytes} bytes are said to lie at byte {start} of {behind}: the file is cut off"
                ));
            }
        }
    }
    let mut in_order: Vec<&GgufTensor> = tensors.iter().collect();
    in_order.sort_by_key(|t| t.start);
    for pair in in_order.windows(2) {
        if pair[0].start + pair[0].bytes > pair[1].start {
            return Err(format!("tensor {:?} overlaps {:?}", pair[1].name, pair[0].name));
        }
    }
    Ok(())
}

/// The number of each name.
pub(super) fn by_name(tensors: &[GgufTensor]) -> Result<HashMap<String, usize>, String> {
    let mut places = HashMap::new();
    for (k, t) in tensors.iter().enumerate() {
        if places.insert(t.name.clone(), k).is_some() {
            return Err(format!("two tensors are called {:?}", t.name));
        }
    }
    Ok(places)
}
