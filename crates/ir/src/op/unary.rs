//! The table of elementwise ops of one operand.

/// Hands the table to a macro. A row: documentation; variant; its methods' names; what it does with operands that are not floats
/// ([`Domain`](crate::op::Domain)); in what type it computes halves ([`Halves`](crate::op::Halves)); what its derivative looks at
/// ([`Saved`](crate::op::Saved)).
#[macro_export]
macro_rules! unary_ops {
    ($use:ident) => {
        $use! {
            /// -x
            Neg: neg try_neg, Number, Same, Nothing;
            /// 1 / x
            Recip: recip try_recip, Float, Widened, Result;
            /// Square root; NaN below zero.
            Sqrt: sqrt try_sqrt, Float, Same, Result;
            /// 1 / √x
            Rsqrt: rsqrt try_rsqrt, Float, Widened, Result;
            /// eˣ
            Exp: exp try_exp, Float, Widened, Result;
            /// eˣ − 1, exact near zero.
            Expm1: expm1 try_expm1, Float, Widened, Result;
            /// Natural logarithm.
            Log: log try_log, Float, Widened, Operand;
            /// ln(1 + x), exact near zero.
            Log1p: log1p try_log1p, Float, Widened, Operand;
            /// 2ˣ
            Exp2: exp2 try_exp2, Float, Widened, Result;
            /// Logarithm to base 2.
            Log2: log2 try_log2, Float, Widened, Operand;
            /// Sine of radians.
            Sin: sin try_sin, Float, Same, Operand;
            /// Cosine of radians.
            Cos: cos try_cos, Float, Same, Operand;
            /// Hyperbolic tangent.
            Tanh: tanh try_tanh, Float, Same, Result;
            /// 1 / (1 + e⁻ˣ)
            Sigmoid: sigmoid try_sigmoid, Float, Same, Result;
            /// max(x, 0); NaN stays NaN.
            Relu: relu try_relu, Number, Same, Result;
            /// The Gauss error function.
            Erf: erf try_erf, Float, Same, Operand;
            /// 1 - erf x, exact where that is small.
            Erfc: erfc try_erfc, Float, Widened, Operand;
            /// |x|
            Abs: abs try_abs, Number, Same, Operand;
            /// −1, 0 or 1; of NaN it is 0.
            Sign: sign try_sign, Number, Same, Nothing;
            /// The next integer below.
            Floor: floor try_floor, Rounding, Same, Nothing;
            /// The next integer above.
            Ceil: ceil try_ceil, Rounding, Same, Nothing;
            /// The nearest integer, halves to even.
            Round: round try_round, Rounding, Same, Nothing;
            /// The integer part.
            Trunc: trunc try_trunc, Rounding, Same, Nothing;
        }
    };
}

/// What an op does with operands that are not floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Computes in floats: integers become f32.
    Float,
    /// Takes integers as they are; bool is an error.
    Number,
    /// Rounding: integers are their own result.
    Rounding,
    /// Truth values, and the bits of integers.
    Logical,
}

/// In what type an op computes halves, under autocast and elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// In their own.
    Same,
    /// In f32, which the result stays in: it may be far larger or smaller than the operand.
    Widened,
}

/// What the derivative of an op looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// At nothing but the gradient.
    Nothing,
    /// At the operand.
    Operand,
    /// At the result.
    Result,
}

macro_rules! define {
    ($($(#[$doc:meta])* $variant:ident: $name:ident $try_name:ident, $domain:ident, $halves:ident, $saved:ident;)*) => {
        /// Elementwise ops of one operand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryOp {
            $($(#[$doc])* $variant,)*
            /// Whether it is false or zero; of integers every bit.
            Not,
        }

        impl UnaryOp {
            /// The name of its method.
            pub const fn name(self) -> &'static str {
                match self {
                    $(UnaryOp::$variant => stringify!($name),)*
                    UnaryOp::Not => "not",
                }
            }

            /// What it does with operands that are not floats.
            pub const fn domain(self) -> Domain {
                match self {
                    $(UnaryOp::$variant => Domain::$domain,)*
                    UnaryOp::Not => Domain::Logical,
                }
            }

            /// In what type it computes halves.
            pub const fn halves(self) -> Halves {
                match self {
                    $(UnaryOp::$variant => Halves::$halves,)*
                    UnaryOp::Not => Halves::Same,
                }
            }

            /// What its derivative looks at.
            pub const fn saved(self) -> Saved {
                match self {
                    $(UnaryOp::$variant => Saved::$saved,)*
                    UnaryOp::Not => Saved::Nothing,
                }
            }
        }
    };
}

unary_ops!(define);
