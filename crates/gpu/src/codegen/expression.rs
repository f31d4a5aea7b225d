//! The WGSL expression of every elementwise op, by the lane it is computed in.

use crate::codegen::storage_type::suffix;
use crate::dispatch::ComputeType;
use volta_ir::dtype::{DType, Scalar};
use volta_ir::op::{BinaryOp, ReduceOp, UnaryOp};

/// `value` rounded to what a 16-bit float can hold; other types are as they are computed.
pub(super) fn rounded(value: String, dtype: DType, wide: bool) -> String {
    match dtype {
        DType::F16 => format!("round_half{}({value})", suffix(wide)),
        DType::BF16 => format!("round_bfloat{}({value})", suffix(wide)),
        DType::U8 => format!("(({value}) & {}(255u))", ComputeType::U32.name(wide)),
        _ => value,
    }
}

/// A truth value as the number it is stored as.
fn truth(condition: &str, wide: bool) -> String {
    let t = ComputeType::U32.name(wide);
    format!("select({t}(0u), {t}(1u), {condition})")
}

/// The driver's own function, for results that are rounded to halves; none where it is not cheaper or not good enough.
pub(super) fn rough(op: UnaryOp, a: &str, wide: bool) -> Option<String> {
    let s = suffix(wide);
    match op {
        UnaryOp::Exp => Some(format!("m_rough_exp{s}({a})")),
        UnaryOp::Sigmoid => Some(format!("m_rough_sigmoid{s}({a})")),
        _ => None,
    }
}

pub(super) fn unary(op: UnaryOp, a: &str, dtype: DType, wide: bool) -> String {
    use UnaryOp as U;
    let (lane, s) = (ComputeType::of(dtype), suffix(wide));
    let t = lane.name(wide);
    let float = lane == ComputeType::F32;
    match op {
        U::Neg if float => format!("(-{a})"),
        U::Neg => format!("({t}(0) - {a})"),
        U::Recip => format!("m_recip{s}({a})"),
        U::Sqrt => format!("m_sqrt{s}({a})"),
        U::Rsqrt => format!("m_rsqrt{s}({a})"),
        U::Exp => format!("m_exp{s}({a})"),
        U::Expm1 => format!("m_expm1{s}({a})"),
        U::Log => format!("m_log{s}({a})"),
        U::Log1p => format!("m_log1p{s}({a})"),
        U::Exp2 => format!("m_exp2{s}({a})"),
        U::Log2 => format!("m_log2{s}({a})"),
        U::Sin => format!("m_sin{s}({a})"),
        U::Cos => format!("m_cos{s}({a})"),
        U::Tanh => format!("m_tanh{s}({a})"),
        U::Sigmoid => format!("m_sigmoid{s}({a})"),
        U::Erf => format!("m_erf{s}({a})"),
        U::Relu if float => format!("m_relu{s}({a})"),
        U::Relu => format!("select({a}, {t}(0), {a} <= {t}(0))"),
        U::Abs if lane == ComputeType::U32 => a.to_string(),
        U::Abs if lane == ComputeType::I64 => format!("select({a}, {t}(0) - {a}, {a} < {t}(0))"),
        U::Abs => format!("abs({a})"),
        U::Sign if lane == ComputeType::U32 => format!("min({a}, {t}(1u))"),
        U::Sign if float => format!("m_sign{s}({a})"),
        U::Sign => format!("select(select({t}(0), {t}(-1), {a} < {t}(0)), {t}(1), {a} > {t}(0))"),
        U::Floor => format!("floor({a})"),
        U::Ceil => format!("ceil({a})"),
        U::Round => format!("round({a})"),
        U::Trunc => format!("trunc({a})"),
        // Bytes and truth values are true or not; of other integers every bit is turned.
        U::Not if lane == ComputeType::U32 && dtype != DType::U32 => truth(&format!("{a} == {t}(0u)"), wide),
        U::Not => format!("(~{a})"),
    }
}

/// `dtype` is that of the operands.
pub(super) fn binary(op: BinaryOp, a: &str, b: &str, dtype: DType, wide: bool) -> String {
    use BinaryOp as B;
    let (lane, s) = (ComputeType::of(dtype), suffix(wide));
    let float = lane == ComputeType::F32;
    let of_integers = |name: &str| match lane {
        ComputeType::U32 => format!("{name}_u{s}({a}, {b})"),
        ComputeType::I64 => format!("{name}_l({a}, {b})"),
        _ => format!("{name}_i{s}({a}, {b})"),
    };
    match op {
        // Sums of truth values are "or", products "and".
        B::Add | B::Max if dtype == DType::Bool => format!("({a} | {b})"),
        B::Mul | B::Min if dtype == DType::Bool => format!("({a} & {b})"),
        B::Sub if float && a == b => format!("m_difference{s}({a})"),
        B::Div if float && a == b => format!("m_quotient{s}({a})"),
        B::Le if float => truth(&format!("m_less_equal{s}({a}, {b})"), wide),
        B::Eq if float => truth(&format!("m_equal{s}({a}, {b})"), wide),
        B::Ne if float => truth(&format!("!m_equal{s}({a}, {b})"), wide),
        B::Add => format!("({a} + {b})"),
        B::Sub => format!("({a} - {b})"),
        B::Mul => format!("({a} * {b})"),
        B::Div if float => format!("m_div{s}({a}, {b})"),
        // Only floats are divided; integers divide by flooring.
        B::Div => of_integers("m_floor_div"),
        B::Max if float => format!("m_max{s}({a}, {b})"),
        B::Min if float => format!("m_min{s}({a}, {b})"),
        B::Max => format!("select({b}, {a}, {a} > {b})"),
        B::Min => format!("select({b}, {a}, {a} < {b})"),
        B::Mod if float => format!("m_mod{s}({a}, {b})"),
        B::Mod => of_integers("m_mod"),
        B::Pow if float => format!("m_pow{s}({a}, {b})"),
        B::Pow => of_integers("m_pow"),
        B::FloorDiv if float => format!("m_floor_div{s}({a}, {b})"),
        B::FloorDiv => of_integers("m_floor_div"),
        B::And => format!("({a} & {b})"),
        B::Or => format!("({a} | {b})"),
        B::Xor => format!("({a} ^ {b})"),
        B::Lt => truth(&format!("{a} < {b}"), wide),
        B::Le => truth(&format!("{a} <= {b}"), wide),
        B::Eq => truth(&format!("{a} == {b}"), wide),
        B::Ne => truth(&format!("{a} != {b}"), wide),
    }
}

/// `a` of type `from` as `to`: floats truncate towards zero, saturate, and NaN gives zero; integers wrap.
pub(super) fn cast(a: &str, from: DType, to: DType, wide: bool) -> String {
    let (source, target) = (ComputeType::of(from), ComputeType::of(to));
    let t = target.name(wide);
    if to == DType::Bool && source == ComputeType::F32 {
        return truth(&format!("m_is_true{}({a})", suffix(wide)), wide);
    }
    if to == DType::Bool {
        return truth(&format!("{a} != {}(0)", source.name(wide)), wide);
    }
    match (source, target) {
        (a_lane, b_lane) if a_lane == b_lane => a.to_string(),
        (ComputeType::F32, ComputeType::I32) => format!("m_to_i32{}({a})", suffix(wide)),
        (ComputeType::F32, ComputeType::U32) if to == DType::U8 => {
            format!("min(m_to_u32{}({a}), {t}(255u))", suffix(wide))
        }
        (ComputeType::F32, ComputeType::U32) => format!("m_to_u32{}({a})", suffix(wide)),
        // By halves: a conversion may take the highest bit for a sign.
        (ComputeType::U32, ComputeType::I64) if from == DType::U32 => format!("m_join_words({a}, 0u)"),
        (ComputeType::F32, ComputeType::I64) => format!("m_to_i64({a})"),
        _ => format!("{t}({a})"),
    }
}

/// A number fixed in the plan.
pub(super) fn literal(x: impl Into<Scalar>, dtype: DType) -> String {
    let number = x.into();
    match ComputeType::of(dtype) {
        ComputeType::F32 | ComputeType::F16 => {
            let x = number.to_f64();
            let x = match dtype {
                DType::F16 => half::f16::from_f64(x).to_f32(),
                DType::BF16 => half::bf16::from_f64(x).to_f32(),
                _ => x as f32,
            };
            match x {
                x if x.is_nan() => "m_nan()".into(),
                f32::INFINITY => "m_inf()".into(),
                f32::NEG_INFINITY => "(-m_inf())".into(),
                // The shortest text of the largest number lies above it, and Tint takes no text for less than it is.
                x if x.abs() == f32::MAX => format!("f32({}3.4028234e38)", if x < 0.0 { "-" } else { "" }),
                x => format!("f32({x:?})"),
            }
        }
        ComputeType::I32 => format!("i32({})", number.within(dtype).to_i64()),
        ComputeType::U32 => format!("{}u", number.within(dtype).to_i64()),
        ComputeType::I64 => i64_literal(number.to_i64()),
    }
}

fn i64_literal(x: i64) -> String {
    // The least number has no literal of its own.
    if x == i64::MIN { "(-9223372036854775807li - 1li)".into() } else { format!("i64({x}li)") }
}

/// What a fold starts from.
pub(super) fn identity(op: ReduceOp, dtype: DType) -> String {
    let lane = ComputeType::of(dtype);
    match (op, lane) {
        (ReduceOp::Sum, _) => format!("{}(0)", lane.scalar()),
        (ReduceOp::Prod, _) => format!("{}(1)", lane.scalar()),
        (ReduceOp::Max, ComputeType::F32 | ComputeType::F16) => "(-m_inf())".into(),
        (ReduceOp::Min, ComputeType::F32 | ComputeType::F16) => "m_inf()".into(),
        (ReduceOp::Max, ComputeType::I32) => "i32(-2147483648)".into(),
        (ReduceOp::Min, ComputeType::I32) => "2147483647i".into(),
        (ReduceOp::Max, ComputeType::U32) => "0u".into(),
        (ReduceOp::Min, ComputeType::U32) if dtype == DType::U32 => "4294967295u".into(),
        (ReduceOp::Min, ComputeType::U32) => "255u".into(),
        (ReduceOp::Max, ComputeType::I64) => i64_literal(i64::MIN),
        (ReduceOp::Min, ComputeType::I64) => i64_literal(i64::MAX),
    }
}

/// Two partial folds as one.
pub(super) fn combine(op: ReduceOp, a: &str, b: &str, dtype: DType, wide: bool) -> String {
    let op = match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Prod => BinaryOp::Mul,
        ReduceOp::Max => BinaryOp::Max,
        ReduceOp::Min => BinaryOp::Min,
    };
    binary(op, a, b, dtype, wide)
}
