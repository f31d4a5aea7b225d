//! What the shaders must know of an element type: the lane it is read in, its sums, and its order.

use crate::dispatch::ComputeType;
use volta_ir::dtype::DType;

pub(super) struct Number {
    pub lane: ComputeType,
    /// The lane, and what sums are kept in, in WGSL.
    pub name: &'static str,
    pub zero: &'static str,
    /// Bytes of a sum.
    pub size: u64,
    /// How sums lie in scratch memory.
    pub scratch: (DType, ComputeType),
    /// Whether sums keep a byte of what they come to.
    byte: bool,
}

impl Number {
    pub fn of(dtype: DType) -> Number {
        let number = |lane, name, zero, size, scratch| Number {
            lane,
            name,
            zero,
            size,
            scratch: (scratch, lane),
            byte: matches!(dtype, DType::U8 | DType::Bool),
        };
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => number(ComputeType::F32, "f32", "0.0f", 4, DType::F32),
            DType::I32 => number(ComputeType::I32, "i32", "0i", 4, DType::I32),
            DType::I64 => number(ComputeType::I64, "i64", "0li", 8, DType::I64),
            DType::U32 | DType::U8 | DType::Bool => number(ComputeType::U32, "u32", "0u", 4, DType::U32),
            DType::F64 => unreachable!("f64 is computed on the CPU"),
        }
    }

    /// A finished sum as the output takes it: sums of bytes wrap.
    pub fn stored(&self, sum: &str) -> String {
        if self.byte { format!("({sum}) & 255u") } else { sum.to_string() }
    }

    pub fn order(&self) -> Order {
        match self.lane {
            ComputeType::I64 => Order {
                name: "i64",
                last: "9223372036854775807li",
                scratch: (DType::I64, ComputeType::I64),
                size: 8,
                function: "fn order_of(x: i64) -> i64 {\n    return x;\n}\n",
                lowest: "(-9223372036854775807li - 1li)",
            },
            // Bits tell NaN where arithmetic need not: shaders may assume that there is none.
            ComputeType::F32 | ComputeType::F16 => Order {
                function: "\
fn order_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) { return 0xffffffffu; }
    if (size == 0u) { return 0x80000000u; }
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
",
                lowest: "0x007fffffu",
                ..Order::UNSIGNED
            },
            ComputeType::I32 => Order {
                function: "fn order_of(x: i32) -> u32 {\n    return bitcast<u32>(x) ^ 0x80000000u;\n}\n",
                ..Order::UNSIGNED
            },
            ComputeType::U32 => Order::UNSIGNED,
        }
    }
}

/// Integers that stand in the order of the numbers: zeros are equal, NaN is one number and the largest.
pub(super) struct Order {
    pub name: &'static str,
    /// The largest key there is.
    pub last: &'static str,
    /// How keys lie in scratch memory.
    pub scratch: (DType, ComputeType),
    /// Bytes of a key.
    pub size: u64,
    /// `order_of`, from a lane to its key.
    pub function: &'static str,
    /// The key of the type's smallest number: −∞ for floats.
    pub lowest: &'static str,
}

impl Order {
    const UNSIGNED: Order = Order {
        name: "u32",
        last: "0xffffffffu",
        scratch: (DType::U32, ComputeType::U32),
        size: 4,
        function: "fn order_of(x: u32) -> u32 {\n    return x;\n}\n",
        lowest: "0u",
    };
}

/// The WGSL function `place_at(i) -> u32`: the index at position i, or [`OUTSIDE`] where it is not in
/// 0..extent.
pub(super) fn place_at(dtype: DType, extent: usize) -> String {
    let check = match dtype {
        DType::I32 => format!("k >= 0i && bitcast<u32>(k) < {extent}u"),
        DType::I64 => format!("u32(k >> 32u) == 0u && u32(k) < {extent}u"),
        _ => format!("k < {extent}u"),
    };
    format!(
        "\
fn place_at(i: u32) -> u32 {{
    let k = load_index(i);
    return select({OUTSIDE}, u32(k), {check});
}}
"
    )
}

/// No place: larger than any.
pub(super) const OUTSIDE: &str = "0xffffffffu";
