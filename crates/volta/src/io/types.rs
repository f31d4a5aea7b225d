//! The element types that files have: their names in safetensors and in PyTorch, and which of them Volta has.

use crate::dtype::DType;

/// An element type of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileType {
    /// In safetensors.
    pub name: &'static str,
    /// The storage class and the type in PyTorch.
    #[cfg_attr(not(feature = "pytorch"), allow(dead_code, reason = "only the reader of its files asks"))]
    pub torch: (&'static str, &'static str),
    pub bits: usize,
    pub dtype: Option<DType>,
}

const fn row(name: &'static str, torch: (&'static str, &'static str), bits: usize) -> FileType {
    FileType { name, torch, bits, dtype: None }
}

const fn ours(name: &'static str, torch: (&'static str, &'static str), dtype: DType) -> FileType {
    FileType { name, torch, bits: 8 * dtype.size(), dtype: Some(dtype) }
}

static TYPES: [FileType; 22] = [
    ours("F32", ("FloatStorage", "float32"), DType::F32),
    ours("F64", ("DoubleStorage", "float64"), DType::F64),
    ours("F16", ("HalfStorage", "float16"), DType::F16),
    ours("BF16", ("BFloat16Storage", "bfloat16"), DType::BF16),
    ours("I32", ("IntStorage", "int32"), DType::I32),
    ours("I64", ("LongStorage", "int64"), DType::I64),
    ours("U8", ("ByteStorage", "uint8"), DType::U8),
    ours("U32", ("", "uint32"), DType::U32),
    ours("BOOL", ("BoolStorage", "bool"), DType::Bool),
    row("I8", ("CharStorage", "int8"), 8),
    row("I16", ("ShortStorage", "int16"), 16),
    row("U16", ("", "uint16"), 16),
    row("U64", ("", "uint64"), 64),
    row("C64", ("ComplexFloatStorage", "complex64"), 64),
    row("C128", ("ComplexDoubleStorage", "complex128"), 128),
    row("F8_E4M3", ("", "float8_e4m3fn"), 8),
    row("F8_E5M2", ("", "float8_e5m2"), 8),
    row("F8_E8M0", ("", "float8_e8m0fnu"), 8),
    row("F6_E2M3", ("", ""), 6),
    row("F6_E3M2", ("", ""), 6),
    row("F4", ("", ""), 4),
    row("UNTYPED", ("UntypedStorage", ""), 8),
];

impl FileType {
    fn find(is: impl Fn(&FileType) -> bool) -> Option<&'static FileType> {
        TYPES.iter().find(|t| is(t))
    }

    pub fn named(name: &str) -> Option<&'static FileType> {
        FileType::find(|t| t.name == name)
    }

    #[cfg(any(feature = "pytorch", test))]
    pub fn of_torch_storage(class: &str) -> Option<&'static FileType> {
        FileType::find(|t| t.torch.0 == class && !class.is_empty())
    }

    #[cfg(any(feature = "pytorch", test))]
    pub fn of_torch_dtype(name: &str) -> Option<&'static FileType> {
        FileType::find(|t| t.torch.1 == name && !name.is_empty())
    }

    pub fn of(dtype: DType) -> &'static FileType {
        FileType::find(|t| t.dtype == Some(dtype)).expect("every type has a row")
    }

    /// The bytes of `shape`, if they can be counted and are whole.
    pub fn bytes(&self, shape: &[usize]) -> Option<usize> {
        let bits = shape.iter().try_fold(self.bits, |all, &extent| all.checked_mul(extent))?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_volta_has_a_name_in_files() {
        for dtype in DType::ALL {
            let row = FileType::of(dtype);
            assert_eq!(FileType::named(row.name), Some(row));
            assert_eq!(FileType::of_torch_dtype(row.torch.1), Some(row));
            // PyTorch has no storage class of its later types: they are in storage without one.
            assert_eq!(FileType::of_torch_storage(row.torch.0), (dtype != DType::U32).then_some(row));
            assert_eq!(row.bytes(&[3, 5]), Some(15 * dtype.size()));
        }
        assert_eq!(FileType::of(DType::F32).bytes(&[usize::MAX, 2]), None);
    }
}
