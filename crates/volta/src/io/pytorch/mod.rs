//! PyTorch's files since 1.6: a zip archive of uncompressed entries, one of which is a pickle that describes objects
//! and names the entries that hold the elements of their tensors.
//!
//! `zip` finds the entries, `pickle` reads the description without running anything, `flatten` turns nested
//! dictionaries into names with dots.

mod flatten;
mod pickle;
mod zip;

use super::source::Source;
use super::weights::{Entry, Weights};
use crate::error::Result;
use crate::regular_file::MAX_HEADER_BYTES;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The tensors of a PyTorch file.
pub(super) fn read(source: Arc<Source>) -> Result<Weights> {
    let (entries, metadata) = parse(&source).map_err(|what| source.wrong(what))?;
    Weights::new(source.label(), entries, metadata)
}

type Found = (Vec<Entry>, BTreeMap<String, String>);

fn parse(source: &Arc<Source>) -> Result<Found, String> {
    let files = zip::entries(source)?;
    // Everything lies in one folder, whose name is the file's when it was saved.
    let Some(folder) = files.keys().find_map(|name| name.strip_suffix("data.pkl")) else {
        return Err("it is a zip archive, but not one of PyTorch's: it has no data.pkl".to_string());
    };
    let file = |name: &str| files.get(&format!("{folder}{name}")).map(|range| &source[range.clone()]);
    if file("byteorder").is_some_and(|order| order != b"little") {
        return Err("its numbers are big-endian: save it again on a little-endian machine".to_string());
    }
    if files.keys().any(|name| name.starts_with(&format!("{folder}code/"))) {
        return Err("it is a TorchScript archive: save the module's state_dict() instead".to_string());
    }
    let described = file("data.pkl").unwrap_or_default();
    if described.len() > MAX_HEADER_BYTES {
        let length = described.len();
        return Err(format!("its data.pkl has {length} bytes; at most {MAX_HEADER_BYTES} are read"));
    }
    let pickle = pickle::run(described)?;
    let mut metadata = BTreeMap::new();
    let mut entries = Vec::new();
    for (name, leaf) in flatten::flatten(&pickle, described.len())? {
        match leaf {
            flatten::Leaf::Text(text) => {
                metadata.insert(name, text);
            }
            flatten::Leaf::Tensor(t) => {
                let entry = tensor(source, &files, folder, &name, t);
                entries.push(entry.map_err(|what| format!("tensor {name:?}: {what}"))?);
            }
        }
    }
    Ok((entries, metadata))
}

/// Checks that a tensor's elements are there.
fn tensor(
    source: &Arc<Source>,
    files: &HashMap<String, Range<usize>>,
    folder: &str,
    name: &str,
    t: &pickle::TensorView,
) -> Result<Entry, String> {
    let file = format!("{folder}data/{}", t.storage);
    let Some(range) = files.get(&file) else {
        return Err(format!("its elements should be in {file:?}, which is not there"));
    };
    let element = t.dtype.bits / 8;
    // Where there is no next element, it does not matter how far away it would be.
    let stride = |(&extent, &stride): (&usize, &usize)| if extent <= 1 { 0 } else { stride };
    let strides: Vec<usize> = t.shape.iter().zip(&t.strides).map(stride).collect();
    let count = t.shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent));
    let Some(bytes) = count.and_then(|n| n.checked_mul(element)) else {
        return Err(format!("its shape {:?} has more elements than can be counted", t.shape));
    };
    let mut entry = Entry::new(source, name, t.dtype.name, t.shape.clone(), (range.start, bytes));
    if bytes == 0 {
        return Ok(entry);
    }
    // Elements that a stride of 0 repeats are there once; beyond that a view may not be larger than what it views.
    let apart = t.shape.iter().zip(&strides).filter(|(_, stride)| **stride > 0);
    let apart: usize = apart.map(|(extent, _)| extent).product();
    let offset = t.offset.checked_mul(element).and_then(|o| o.checked_add(range.start));
    let end = offset.and_then(|start| {
        super::strided_copy::View { start, shape: &t.shape, strides: &strides, element }.end()
    });
    match (offset, end) {
        (Some(start), Some(end)) if end <= range.end && apart <= range.len() / element => {
            entry.move_to(start);
            Ok(entry.strided(strides))
        }
        _ => Err(format!(
            "shape {:?} with strides {:?} from element {} on does not lie within the {} elements of {file:?}",
            t.shape,
            t.strides,
            t.offset,
            range.len() / element
        )),
    }
}
