//! How elements lie in a GPU's memory. WGSL has no bytes and no bf16, and f16 only where the adapter has it: what
//! is missing takes a word of its own.

use crate::dtype::DType;
use crate::gpu::lower::dispatch::{Caps, Lane};

/// The form of an element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    F32,
    I32,
    I64,
    U32,
    /// A half as such.
    F16,
    /// A half's bits in a word.
    F16Word,
    /// A bfloat's bits in a word.
    Bf16Word,
    /// A byte or a truth value in a word.
    Word,
}

impl Stored {
    pub fn of(dtype: DType, f16: bool) -> Stored {
        match dtype {
            DType::F32 => Stored::F32,
            DType::I32 => Stored::I32,
            DType::I64 => Stored::I64,
            DType::U32 => Stored::U32,
            DType::F16 if f16 => Stored::F16,
            DType::F16 => Stored::F16Word,
            DType::BF16 => Stored::Bf16Word,
            DType::U8 | DType::Bool => Stored::Word,
            // Refused when it is made.
            DType::F64 => unreachable!("f64 on a GPU"),
        }
    }

    pub const fn size(self) -> usize {
        match self {
            Stored::F16 => 2,
            Stored::I64 => 8,
            _ => 4,
        }
    }

    /// The WGSL type in memory.
    pub const fn scalar(self) -> &'static str {
        match self {
            Stored::F32 => "f32",
            Stored::I32 => "i32",
            Stored::I64 => "i64",
            Stored::F16 => "f16",
            Stored::U32 | Stored::F16Word | Stored::Bf16Word | Stored::Word => "u32",
        }
    }

    /// An element, or four of them, of this form as `lane`.
    pub fn as_lane(self, lane: Lane, element: &str, wide: bool) -> String {
        let f32 = of_width("f32", wide);
        match (self, lane) {
            (Stored::F16, Lane::F32) => format!("{f32}({element})"),
            (Stored::F16Word, Lane::F32) => format!("half_of_bits{}({element})", suffix(wide)),
            (Stored::Bf16Word, Lane::F32) => {
                format!("bitcast<{f32}>({element} << {}(16u))", of_width("u32", wide))
            }
            _ => element.to_string(),
        }
    }

    /// The form in memory of a value of `lane`.
    pub fn as_stored(self, lane: Lane, dtype: DType, value: &str, wide: bool) -> String {
        match (self, lane) {
            (Stored::F16, Lane::F32) => format!("{}({value})", of_width("f16", wide)),
            (Stored::F16Word, Lane::F32) => format!("bits_of_half{}({value})", suffix(wide)),
            (Stored::Bf16Word, Lane::F32) => format!("bits_of_bfloat{}({value})", suffix(wide)),
            (Stored::Word, Lane::U32) if dtype == DType::U8 => {
                format!("({value} & {}(255u))", of_width("u32", wide))
            }
            _ => value.to_string(),
        }
    }
}

pub(crate) fn suffix(wide: bool) -> &'static str {
    if wide { "4" } else { "" }
}

/// `f32`, or `vec4<f32>`.
pub(crate) fn of_width(scalar: &str, wide: bool) -> String {
    if wide { format!("vec4<{scalar}>") } else { scalar.to_string() }
}

impl Lane {
    /// The lane a type is computed in.
    pub fn of(dtype: DType) -> Lane {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 | DType::F64 => Lane::F32,
            DType::I32 => Lane::I32,
            DType::I64 => Lane::I64,
            DType::U32 | DType::U8 | DType::Bool => Lane::U32,
        }
    }

    pub const fn scalar(self) -> &'static str {
        match self {
            Lane::F32 => "f32",
            Lane::F16 => "f16",
            Lane::I32 => "i32",
            Lane::U32 => "u32",
            Lane::I64 => "i64",
        }
    }

    pub fn name(self, wide: bool) -> String {
        of_width(self.scalar(), wide)
    }
}

/// Functions over the forms that have no WGSL type, and the rounding of two-byte floats in registers.
pub(crate) fn conversions(caps: &Caps) -> String {
    let half = if caps.skips_rounding {
        include_str!("../codegen/wgsl/rounding.wgsl")
    } else if caps.f16 {
        "fn round_half(x: f32) -> f32 { return f32(f16(x)); }\n\
         fn round_half4(x: vec4<f32>) -> vec4<f32> { return vec4<f32>(vec4<f16>(x)); }\n"
    } else {
        "fn round_half(x: f32) -> f32 { return half_of_bits(bits_of_half(x)); }\n\
         fn round_half4(x: vec4<f32>) -> vec4<f32> { return half_of_bits4(bits_of_half4(x)); }\n"
    };
    format!("{}{half}", include_str!("../codegen/wgsl/conversions.wgsl"))
}
