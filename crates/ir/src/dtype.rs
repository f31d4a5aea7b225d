//! Element types and single values.

use crate::error::{Result, bail};
use half::{bf16, f16};
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit float, the default.
    F32,
    /// 64-bit float; on the CPU, for gradient checks.
    F64,
    /// IEEE half precision.
    F16,
    /// Brain float: f32's range, 8 bits of precision.
    BF16,
    /// 32-bit integer: what index-giving ops return, on every device. Arithmetic wraps around: convert positions with
    /// `to_dtype(DType::I64)` before what may go further.
    I32,
    /// 64-bit integer.
    I64,
    /// Unsigned byte.
    U8,
    /// True or false, a byte each.
    Bool,
    /// Unsigned 32-bit integer.
    U32,
}

impl DType {
    /// Every type, in declaration order.
    pub const ALL: [DType; 9] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::Bool,
        DType::U32,
    ];

    /// The name as users write it: `f32`, `bool`, …
    pub const fn name(self) -> &'static str {
        ["f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool", "u32"][self as usize]
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        [4, 8, 2, 2, 4, 8, 1, 1, 4][self as usize]
    }

    /// Whether gradients can flow through it.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// Whether it is a signed or unsigned integer (bool is not).
    pub const fn is_int(self) -> bool {
        matches!(self, DType::I32 | DType::I64 | DType::U8 | DType::U32)
    }

    /// 16-bit floats, computed in f32 and rounded after every op.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// The type in which positions of this integer type are counted: it goes as far as an axis may, which a byte does
    /// not.
    #[doc(hidden)]
    pub const fn of_positions(self) -> DType {
        match self {
            DType::I64 | DType::U32 => self,
            _ => DType::I32,
        }
    }

    /// The type that composites compute in.
    #[doc(hidden)]
    pub const fn wide(self) -> DType {
        if self.is_half() { DType::F32 } else { self }
    }

    /// The least and the most that this integer type holds.
    #[doc(hidden)]
    pub const fn range(self) -> (i64, i64) {
        match self {
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            DType::U8 => (0, u8::MAX as i64),
            DType::U32 => (0, u32::MAX as i64),
            DType::Bool => (0, 1),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// The number of this integer type that is nearest to `number`.
    #[doc(hidden)]
    pub fn nearest(self, number: i64) -> i64 {
        let (least, most) = self.range();
        number.clamp(least, most)
    }

    /// Whether a number is one of this integer type's.
    #[doc(hidden)]
    pub fn holds(self, number: i64) -> bool {
        self.nearest(number) == number
    }

    /// Nothing, as a number that does not change the type it meets.
    #[doc(hidden)]
    pub const fn zero(self) -> Scalar {
        match self {
            DType::Bool => Scalar::Bool(false),
            DType::I32 | DType::I64 | DType::U8 | DType::U32 => Scalar::Int(0),
            _ => Scalar::Float(0.0),
        }
    }

    /// The type two operands meet in: floats over integers over bool, then the wider one. Of two as wide, neither of
    /// which holds the other, it is the next: `f16` with `bf16` meets in `f32`, and `i32` with `u32`, as in NumPy, in
    /// `i64`, which not every GPU has.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        let rank = |d: DType| match d {
            Bool => 0,
            U8 => 1,
            I32 | U32 => 2,
            I64 => 3,
            F16 | BF16 => 4,
            F32 => 5,
            F64 => 6,
        };
        match (self, other) {
            (F16, BF16) | (BF16, F16) => F32,
            (I32, U32) | (U32, I32) => I64,
            _ if rank(self) >= rank(other) => self,
            _ => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One number, of whichever kind the user wrote; it takes the tensor's type where it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// As a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
            Scalar::Bool(x) => f64::from(u8::from(x)),
        }
    }

    /// As an integer, truncated.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Float(x) => x as i64,
            Scalar::Int(x) => x,
            Scalar::Bool(x) => i64::from(x),
        }
    }

    /// The number that a tensor of `dtype` holds for this one. Integers wrap, and floats are cut off to integers and to
    /// their range, as by Rust's `as`; floats are rounded where they are stored.
    #[doc(hidden)]
    pub fn within(self, dtype: DType) -> Scalar {
        match dtype {
            DType::I32 => i32::from_scalar(self).to_scalar(),
            DType::I64 => i64::from_scalar(self).to_scalar(),
            DType::U8 => u8::from_scalar(self).to_scalar(),
            DType::U32 => u32::from_scalar(self).to_scalar(),
            DType::Bool => Scalar::Bool(self.is_true()),
            DType::F32 | DType::F64 | DType::F16 | DType::BF16 => self,
        }
    }

    /// The number itself, if a tensor of `dtype` can hold it: an error for an integer type that does not reach so far, as
    /// in PyTorch. Floats are cut to integers, and negative numbers wrap around to unsigned ones as far as these reach.
    pub fn checked(self, dtype: DType) -> Result<Scalar> {
        if !dtype.is_int() {
            return Ok(self);
        }
        let (least, most) = dtype.range();
        let least = if least == 0 { -most } else { least };
        let fits = match self {
            // The ends of i64 are no floats: the next one above it is.
            Scalar::Float(x) => x.trunc() >= least as f64 && (x.trunc() <= most as f64 && x < 2f64.powi(63)),
            Scalar::Int(x) => (least..=most).contains(&x),
            Scalar::Bool(_) => true,
        };
        if !fits {
            let number = match self {
                Scalar::Float(x) => x.to_string(),
                other => other.to_i64().to_string(),
            };
            bail!(
                Argument,
                "{number} does not fit into {dtype}, which goes from {} to {most}",
                dtype.range().0
            );
        }
        // A float saturates where it is cast; an integer wraps.
        Ok(match self {
            Scalar::Float(x) => Scalar::Int(x as i64),
            other => other,
        })
    }

    /// Whether it is neither zero nor false.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Float(x) => x != 0.0,
            Scalar::Int(x) => x != 0,
            Scalar::Bool(x) => x,
        }
    }

    /// The type a tensor made of this value alone gets: of integers `i32`, or `i64` where that does not hold it.
    pub fn natural_dtype(self) -> DType {
        match self {
            Scalar::Float(_) => DType::F32,
            Scalar::Int(x) if DType::I32.holds(x) => DType::I32,
            Scalar::Int(_) => DType::I64,
            Scalar::Bool(_) => DType::Bool,
        }
    }
}

macro_rules! scalar_from {
    ($($ty:ty => $variant:ident as $wide:ty),*) => {$(
        impl From<$ty> for Scalar {
            fn from(x: $ty) -> Self {
                Scalar::$variant(x as $wide)
            }
        }
    )*};
}
scalar_from!(f32 => Float as f64, f64 => Float as f64, i32 => Int as i64, i64 => Int as i64,
    u8 => Int as i64, u32 => Int as i64, usize => Int as i64, bool => Bool as bool);

mod sealed {
    pub trait Sealed {}
}

/// Rust types that tensors are made of and read as.
pub trait Element: sealed::Sealed + Copy + Send + Sync + Default + fmt::Debug + 'static {
    /// The matching [`DType`].
    const DTYPE: DType;
    /// From a single value, as a cast.
    fn from_scalar(value: Scalar) -> Self;
    /// To a single value.
    fn to_scalar(self) -> Scalar;
}

/// Integers wrap; floats saturate.
macro_rules! integer {
    ($scalar:ident as $ty:ty) => {
        match $scalar {
            Scalar::Float(x) => x as $ty,
            other => other.to_i64() as $ty,
        }
    };
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident, $from:expr, $to:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn from_scalar(value: Scalar) -> Self {
                let from: fn(Scalar) -> $ty = $from;
                from(value)
            }
            fn to_scalar(self) -> Scalar {
                let to: fn($ty) -> Scalar = $to;
                to(self)
            }
        }
    )*};
}
elements! {
    f32, F32, |s| s.to_f64() as f32, |x| Scalar::Float(f64::from(x));
    f64, F64, |s| s.to_f64(), Scalar::Float;
    f16, F16, |s| f16::from_f64(s.to_f64()), |x| Scalar::Float(x.to_f64());
    bf16, BF16, |s| bf16::from_f64(s.to_f64()), |x| Scalar::Float(x.to_f64());
    i32, I32, |s| integer!(s as i32), |x| Scalar::Int(i64::from(x));
    i64, I64, |s| s.to_i64(), Scalar::Int;
    u8, U8, |s| integer!(s as u8), |x| Scalar::Int(i64::from(x));
    u32, U32, |s| integer!(s as u32), |x| Scalar::Int(i64::from(x));
    bool, Bool, |s| s.is_true(), Scalar::Bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_prefers_floats_then_width_and_is_symmetric() {
        use DType::*;
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a), "{a} {b}");
            }
        }
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(Bool.promote(U8), U8);
        assert_eq!([U8, I64, I32, F16].map(|d| d.promote(U32)), [U32, I64, I64, F16]);
    }

    #[test]
    fn a_number_becomes_what_a_cast_makes_of_it() {
        use DType::*;
        for (number, dtype, expected) in [
            (Scalar::Int(-1), U8, 255),
            (Scalar::Int(-1), U32, 4_294_967_295),
            (Scalar::Int(1 << 33 | 7), U32, 7),
            (Scalar::Float(-1.5), U32, 0),
            (Scalar::Float(5e9), U32, 4_294_967_295),
            (Scalar::Float(3e9), U32, 3_000_000_000),
            (Scalar::Float(5e9), I32, 2_147_483_647),
            (Scalar::Float(f64::NAN), I32, 0),
            (Scalar::Bool(true), U8, 1),
        ] {
            assert_eq!(number.within(dtype), Scalar::Int(expected), "{number:?} as {dtype}");
        }
        assert_eq!(Scalar::Float(0.5).within(Bool), Scalar::Bool(true));
        assert_eq!(Scalar::Float(0.1).within(F16), Scalar::Float(0.1));
    }

    #[test]
    fn a_number_that_a_type_cannot_hold_is_an_error() {
        use DType::*;
        let good = [
            (Scalar::Int(-255), U8, Scalar::Int(1)),
            (Scalar::Int(-1), U32, Scalar::Int(4_294_967_295)),
            (Scalar::Float(2.9), I32, Scalar::Int(2)),
            (Scalar::Float(-0.5), U8, Scalar::Int(0)),
            (Scalar::Float(-1.5), U8, Scalar::Int(255)),
            (Scalar::Float(255.9), U8, Scalar::Int(255)),
            (Scalar::Int(1 << 40), I64, Scalar::Int(1 << 40)),
            (Scalar::Int(300), Bool, Scalar::Bool(true)),
            (Scalar::Float(1e39), F32, Scalar::Float(1e39)),
        ];
        for (number, dtype, expected) in good {
            assert_eq!(number.checked(dtype).unwrap().within(dtype), expected, "{number:?} as {dtype}");
        }
        let bad = [
            (Scalar::Int(300), U8),
            (Scalar::Int(-256), U8),
            (Scalar::Int(1 << 40), I32),
            (Scalar::Int(1 << 40), U32),
            (Scalar::Float(3e9), I32),
            (Scalar::Float(f64::NAN), I32),
            (Scalar::Float(f64::INFINITY), I64),
            (Scalar::Float(2f64.powi(63)), I64),
        ];
        for (number, dtype) in bad {
            let error = number.checked(dtype).unwrap_err().to_string();
            assert!(error.contains(&format!("does not fit into {dtype}")), "{error}");
        }
    }

    #[test]
    fn an_integer_type_holds_what_comes_back_from_it() {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
            for number in [
                i64::MIN,
                -(1 << 31) - 1,
                -(1 << 31),
                -1,
                0,
                255,
                256,
                (1 << 31) - 1,
                1 << 31,
                (1 << 32) - 1,
                1 << 32,
            ] {
                let back = Scalar::Int(number).within(dtype) == Scalar::Int(number);
                assert_eq!(dtype.holds(number), back, "{number} of {dtype}");
            }
        }
    }
}
