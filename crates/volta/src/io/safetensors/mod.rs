//! The safetensors format: the length of a header, a JSON header with every tensor's name, type, shape and place, and
//! the elements, little-endian, one tensor after the other without gaps.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::SafetensorsFile;

use std::collections::BTreeMap;

/// What a file says beside its tensors: texts by name.
pub type Metadata = BTreeMap<String, String>;

/// The member of the header that is no tensor.
const METADATA: &str = "__metadata__";

/// Longer headers are refused, as the format's own library does.
const LONGEST_HEADER: usize = crate::regular_file::MAX_HEADER_BYTES;
