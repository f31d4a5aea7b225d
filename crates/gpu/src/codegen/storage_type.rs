//! How elements lie in a GPU's memory. WGSL has no bytes and no bf16, and f16 only where the adapter has it: what
//! is missing takes a word of its own.

use crate::caps::Caps;
use crate::dispatch::ComputeType;
use volta_ir::dtype::DType;

/// The form of an element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StorageType {
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

impl StorageType {
    pub fn of(dtype: DType, f16: bool) -> StorageType {
        match dtype {
            DType::F32 => StorageType::F32,
            DType::I32 => StorageType::I32,
            DType::I64 => StorageType::I64,
            DType::U32 => StorageType::U32,
            DType::F16 if f16 => StorageType::F16,
            DType::F16 => StorageType::F16Word,
            DType::BF16 => StorageType::Bf16Word,
            DType::U8 | DType::Bool => StorageType::Word,
            // Refused when it is made.
            DType::F64 => unreachable!("f64 on a GPU"),
        }
    }

    pub const fn size(self) -> usize {
        match self {
            StorageType::F16 => 2,
            StorageType::I64 => 8,
            _ => 4,
        }
    }

    /// The WGSL type in memory.
    pub const fn scalar(self) -> &'static str {
        match self {
            StorageType::F32 => "f32",
            StorageType::I32 => "i32",
            StorageType::I64 => "i64",
            StorageType::F16 => "f16",
            StorageType::U32 | StorageType::F16Word | StorageType::Bf16Word | StorageType::Word => "u32",
        }
    }

    /// An element, or four of them, of this form as `lane`.
    pub fn as_lane(self, lane: ComputeType, element: &str, wide: bool) -> String {
        let f32 = of_width("f32", wide);
        match (self, lane) {
            (StorageType::F16, ComputeType::F32) => format!("{f32}({element})"),
            (StorageType::F16Word, ComputeType::F32) => format!("half_of_bits{}({element})", suffix(wide)),
            (StorageType::Bf16Word, ComputeType::F32) => {
                format!("bitcast<{f32}>({element} << {}(16u))", of_width("u32", wide))
            }
            _ => element.to_string(),
        }
    }

    /// The form in memory of a value of `lane`.
    pub fn as_stored(self, lane: ComputeType, dtype: DType, value: &str, wide: bool) -> String {
        match (self, lane) {
            (StorageType::F16, ComputeType::F32) => format!("{}({value})", of_width("f16", wide)),
            (StorageType::F16Word, ComputeType::F32) => format!("bits_of_half{}({value})", suffix(wide)),
            (StorageType::Bf16Word, ComputeType::F32) => format!("bits_of_bfloat{}({value})", suffix(wide)),
            (StorageType::Word, ComputeType::U32) if dtype == DType::U8 => {
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

impl ComputeType {
    /// The lane a type is computed in.
    pub fn of(dtype: DType) -> ComputeType {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 | DType::F64 => ComputeType::F32,
            DType::I32 => ComputeType::I32,
            DType::I64 => ComputeType::I64,
            DType::U32 | DType::U8 | DType::Bool => ComputeType::U32,
        }
    }

    pub const fn scalar(self) -> &'static str {
        match self {
            ComputeType::F32 => "f32",
            ComputeType::F16 => "f16",
            ComputeType::I32 => "i32",
            ComputeType::U32 => "u32",
            ComputeType::I64 => "i64",
        }
    }

    pub fn name(self, wide: bool) -> String {
        of_width(self.scalar(), wide)
    }
}

/// Functions over the forms that have no WGSL type, and the rounding of 16-bit floats in registers.
pub(crate) fn conversions(caps: &Caps) -> String {
    let half = if caps.elides_f16_roundtrip {
        include_str!("wgsl/rounding.wgsl")
    } else if caps.f16 {
        "fn round_half(x: f32) -> f32 { return f32(f16(x)); }\n\
         fn round_half4(x: vec4<f32>) -> vec4<f32> { return vec4<f32>(vec4<f16>(x)); }\n"
    } else {
        "fn round_half(x: f32) -> f32 { return half_of_bits(bits_of_half(x)); }\n\
         fn round_half4(x: vec4<f32>) -> vec4<f32> { return half_of_bits4(bits_of_half4(x)); }\n"
    };
    format!("{}{half}", include_str!("wgsl/conversions.wgsl"))
}
