//! Reading the header, and trusting nothing in it.

use super::{LONGEST_HEADER, METADATA, Metadata};
use crate::error::Result;
use crate::io::json::Json;
use crate::io::source::Source;
use crate::io::types::FileType;
use crate::io::weights::{Entry, Weights};
use std::sync::Arc;

/// The tensors of a safetensors file.
pub(in crate::io) fn read(source: Arc<Source>) -> Result<Weights> {
    let (entries, metadata) = parse(&source).map_err(|what| source.wrong(what))?;
    Weights::new(source.label(), entries, metadata)
}

fn parse(source: &Arc<Source>) -> Result<(Vec<Entry>, Metadata), String> {
    let Some((length, rest)) = source.split_first_chunk::<8>() else {
        return Err(format!("it is no safetensors file: it has only {} bytes", source.len()));
    };
    let length = u64::from_le_bytes(*length);
    let length = match usize::try_from(length) {
        Ok(n) if n > LONGEST_HEADER => {
            return Err(format!("its header is said to have {n} bytes; at most {LONGEST_HEADER} are read"));
        }
        Ok(n) if n <= rest.len() => n,
        _ => {
            return Err(format!(
                "its header is said to have {length} bytes, but only {} follow: the file is cut off",
                rest.len()
            ));
        }
    };
    let (header, data) = rest.split_at(length);
    let header = std::str::from_utf8(header).map_err(|e| format!("its header is not UTF-8: {e}"))?;
    let mut metadata = Metadata::new();
    let mut entries: Vec<(String, Tensor)> = Vec::new();
    // What is wrong with a member is said as it is, and what is no JSON as that.
    let mut is_json = true;
    let read = Json::parse_members(header, |name, value| {
        let read = if name == METADATA {
            texts(&value)
                .map(|texts| metadata = texts)
                .ok_or_else(|| format!("its {METADATA:?} is not an object of texts"))
        } else {
            Tensor::parse(&value, data.len())
                .map_err(|what| format!("tensor {name:?}: {what}"))
                .map(|tensor| entries.push((name, tensor)))
        };
        is_json = read.is_ok();
        read
    });
    read.map_err(|what| if is_json { format!("its header is not what it should be: {what}") } else { what })?;
    check_places(&entries, data.len())?;
    let first = source.len() - data.len();
    let entries = entries
        .into_iter()
        .map(|(name, t)| Entry::new(source, &name, &t.dtype, t.shape, (first + t.start, t.end - t.start)));
    Ok((entries.collect(), metadata))
}

fn texts(value: &Json) -> Option<Metadata> {
    value.object()?.iter().map(|(key, text)| Some((key.clone(), text.text()?.to_string()))).collect()
}

/// A tensor as the header describes it; its bytes are counted from the end of the header.
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    start: usize,
    end: usize,
}

impl Tensor {
    fn parse(value: &Json, available: usize) -> Result<Tensor, String> {
        let dtype = value.member("dtype", Json::text)?.to_string();
        let shape = value.member("shape", Json::sizes)?;
        let offsets = value.member("data_offsets", Json::sizes)?;
        let [start, end] = offsets[..] else {
            return Err(format!("its \"data_offsets\" are {offsets:?} instead of a start and an end"));
        };
        if start > end || end > available {
            return Err(format!("it is said to lie in bytes {start} to {end} of {available}"));
        }
        // What elements of a type unknown here take cannot be checked; nobody gets to see them.
        if let Some(known) = FileType::named(&dtype) {
            let needed = known.bytes(&shape);
            if needed != Some(end - start) {
                let needed = needed.map_or("more than can be counted".to_string(), |n| n.to_string());
                return Err(format!("{dtype} {shape:?} takes {needed} bytes, and it has {}", end - start));
            }
        }
        Ok(Tensor { dtype, shape, start, end })
    }
}

/// Tensors must fill the file one after the other: two that overlap, or bytes of nobody, are not what anyone wrote.
fn check_places(entries: &[(String, Tensor)], available: usize) -> Result<(), String> {
    let mut in_order: Vec<_> = entries.iter().collect();
    in_order.sort_by_key(|(_, t)| (t.start, t.end));
    let mut next = 0;
    for (name, t) in in_order {
        if t.start != next {
            let how = if t.start < next { "overlaps another" } else { "does not follow another" };
            return Err(format!(
                "tensor {name:?}: it lies at byte {} and {how}, which ends at {next}",
                t.start
            ));
        }
        next = t.end;
    }
    if next != available {
        return Err(format!(
            "its tensors end at byte {next}, and it has {available}: it was cut off or added to"
        ));
    }
    Ok(())
}
