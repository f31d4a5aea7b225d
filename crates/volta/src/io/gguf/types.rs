//! The element types of GGUF: plain numbers, and blocks of weights that share scales.

use super::{decode, decode_k, encode};
use crate::dtype::DType;
use crate::op::quantized::BlockFormat;

/// Decodes whole blocks.
pub(in crate::io) type Decoder = fn(&[u8], &mut [f32]);

/// How elements are read.
enum Content {
    /// Plain numbers, of a type that Volta has.
    Numbers(DType),
    /// Blocks that become f32.
    Blocks(Decoder),
    /// Listed, not read.
    Foreign,
}
use Content::{Blocks, Foreign, Numbers};

macro_rules! types {
    ($($variant:ident $id:literal, $elements:literal in $bytes:literal, $content:expr, $encode:expr;)*) => {
        /// An element type of GGUF files, by the name that llama.cpp gives it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, non_camel_case_types, reason = "they are known by these names")]
        #[non_exhaustive]
        pub enum GgufType {
            $($variant,)*
        }

        impl GgufType {
            /// Every type there is.
            pub const ALL: &[GgufType] = &[$(GgufType::$variant,)*];

            /// Its number in files.
            pub fn id(self) -> u32 {
                match self {
                    $(GgufType::$variant => $id,)*
                }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(GgufType::$variant => stringify!($variant),)*
                }
            }

            /// How many elements a block has, and how many bytes. Plain numbers are blocks of one.
            pub fn block(self) -> (usize, usize) {
                match self {
                    $(GgufType::$variant => ($elements, $bytes),)*
                }
            }

            fn content(self) -> Content {
                match self {
                    $(GgufType::$variant => $content,)*
                }
            }

            /// Writes f32 as whole blocks; nothing if this type is not written.
            pub(super) fn encoder(self) -> Option<fn(&[f32], &mut Vec<u8>)> {
                match self {
                    $(GgufType::$variant => $encode,)*
                }
            }
        }
    };
}

types! {
    F32 0, 1 in 4, Numbers(DType::F32), Some(encode::f32s);
    F16 1, 1 in 2, Numbers(DType::F16), Some(encode::f16s);
    Q4_0 2, 32 in 18, Blocks(decode::q4_0), Some(encode::q4_0);
    Q4_1 3, 32 in 20, Blocks(decode::q4_1), Some(encode::q4_1);
    Q5_0 6, 32 in 22, Blocks(decode::q5_0), None;
    Q5_1 7, 32 in 24, Blocks(decode::q5_1), None;
    Q8_0 8, 32 in 34, Blocks(decode::q8_0), Some(encode::q8_0);
    Q8_1 9, 32 in 40, Foreign, None;
    Q2_K 10, 256 in 84, Blocks(decode_k::q2_k), None;
    Q3_K 11, 256 in 110, Blocks(decode_k::q3_k), None;
    Q4_K 12, 256 in 144, Blocks(decode_k::q4_k), None;
    Q5_K 13, 256 in 176, Blocks(decode_k::q5_k), None;
    Q6_K 14, 256 in 210, Blocks(decode_k::q6_k), None;
    Q8_K 15, 256 in 292, Foreign, None;
    IQ2_XXS 16, 256 in 66, Foreign, None;
    IQ2_XS 17, 256 in 74, Foreign, None;
    IQ3_XXS 18, 256 in 98, Foreign, None;
    IQ1_S 19, 256 in 50, Foreign, None;
    IQ4_NL 20, 32 in 18, Foreign, None;
    IQ3_S 21, 256 in 110, Foreign, None;
    IQ2_S 22, 256 in 82, Foreign, None;
    IQ4_XS 23, 256 in 136, Foreign, None;
    I8 24, 1 in 1, Foreign, None;
    I16 25, 1 in 2, Foreign, None;
    I32 26, 1 in 4, Numbers(DType::I32), None;
    I64 27, 1 in 8, Numbers(DType::I64), None;
    F64 28, 1 in 8, Numbers(DType::F64), None;
    IQ1_M 29, 256 in 56, Foreign, None;
    BF16 30, 1 in 2, Numbers(DType::BF16), Some(encode::bf16s);
    TQ1_0 34, 256 in 54, Foreign, None;
    TQ2_0 35, 256 in 66, Foreign, None;
    MXFP4 39, 32 in 17, Foreign, None;
}

impl GgufType {
    pub(super) fn of_id(id: u32) -> Option<GgufType> {
        GgufType::ALL.iter().copied().find(|t| t.id() == id)
    }

    /// The type that its elements have in a tensor: their own, or f32 for blocks; nothing for types that are only listed.
    pub fn dtype(self) -> Option<DType> {
        match self.content() {
            Numbers(dtype) => Some(dtype),
            Blocks(_) => Some(DType::F32),
            Foreign => None,
        }
    }

    /// What blocks are decoded with; nothing for plain numbers and for types that are only listed.
    pub(in crate::io) fn decoder(self) -> Option<Decoder> {
        match self.content() {
            Blocks(decode) => Some(decode),
            Numbers(_) | Foreign => None,
        }
    }

    /// The format of a [`QuantizedMatrix`](crate::QuantizedMatrix) with the same blocks, if there is one.
    pub fn block_format(self) -> Option<BlockFormat> {
        match self {
            GgufType::Q8_0 => Some(BlockFormat::Int8),
            GgufType::Q4_0 => Some(BlockFormat::Int4),
            GgufType::Q4_1 => Some(BlockFormat::Int4Min),
            _ => None,
        }
    }

    /// llama.cpp's number for files whose matrices are mostly of this type, of those that are written.
    pub fn file_type(self) -> Option<u32> {
        match self {
            GgufType::F32 => Some(0),
            GgufType::F16 => Some(1),
            GgufType::Q4_0 => Some(2),
            GgufType::Q4_1 => Some(3),
            GgufType::Q8_0 => Some(7),
            GgufType::BF16 => Some(32),
            _ => None,
        }
    }

    /// Whether files with this type can be written.
    pub fn is_written(self) -> bool {
        self.encoder().is_some()
    }

    /// The bytes of `shape`, if rows are whole blocks.
    pub(super) fn bytes(self, shape: &[usize]) -> Result<usize, String> {
        let (elements, bytes) = self.block();
        let row = shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(elements) {
            return Err(format!(
                "its rows of {row} elements are not whole blocks of {}, which have {elements}",
                self.name()
            ));
        }
        let count = shape.iter().try_fold(1usize, |all, &extent| all.checked_mul(extent));
        let total = count.and_then(|n| (n / elements).checked_mul(bytes));
        total.ok_or_else(|| format!("{} {shape:?} takes more bytes than can be counted", self.name()))
    }
}
