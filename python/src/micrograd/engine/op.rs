//! The table of ops: what each computes, and how its value changes with its operands.

/// How a node was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// A number that was given.
    Leaf,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Neg,
    Relu,
    Tanh,
    Exp,
    Log,
    /// The bias plus the products of weights and inputs; its operands are lists.
    Linear,
    /// The same, and zero where it is negative.
    LinearRelu,
}

/// What an op cannot compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A division by zero, or a negative power of it.
    ZeroDivision,
    /// A logarithm of zero or less, or a broken power of a negative number.
    Domain(&'static str),
    /// A result beyond the largest number.
    Overflow(&'static str),
    /// There are as many values as the arena can count.
    Full,
}

impl Op {
    /// Whether it has two nodes as operands.
    pub fn is_binary(self) -> bool {
        matches!(self, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Pow)
    }

    /// The value from its operands; `b` counts for ops of two operands only. Faults are those of Python's floats.
    #[inline]
    pub fn value(self, a: f64, b: f64) -> Result<f64, Fault> {
        Ok(match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div if b == 0.0 => return Err(Fault::ZeroDivision),
            Op::Div => a / b,
            Op::Pow => return power(a, b),
            Op::Neg => -a,
            Op::Relu => relu(a),
            Op::Tanh => a.tanh(),
            Op::Exp => within(a.exp(), a.is_finite(), "exp")?,
            Op::Log if a <= 0.0 => return Err(Fault::Domain("the logarithm needs a number above zero")),
            Op::Log => a.ln(),
            Op::Leaf | Op::Linear | Op::LinearRelu => a,
        })
    }

    /// How the value `out` changes with `a` and with `b`.
    #[inline]
    pub fn slopes(self, a: f64, b: f64, out: f64) -> (f64, f64) {
        match self {
            Op::Add => (1.0, 1.0),
            Op::Sub => (1.0, -1.0),
            Op::Mul => (b, a),
            Op::Div => (1.0 / b, -out / b),
            Op::Pow => {
                (if b == 0.0 { 0.0 } else { b * a.powf(b - 1.0) }, if a == 0.0 { 0.0 } else { out * a.ln() })
            }
            Op::Neg => (-1.0, 0.0),
            Op::Relu => (if out > 0.0 { 1.0 } else { 0.0 }, 0.0),
            Op::Tanh => (1.0 - out * out, 0.0),
            Op::Exp => (out, 0.0),
            Op::Log => (1.0 / a, 0.0),
            Op::Leaf | Op::Linear | Op::LinearRelu => (0.0, 0.0),
        }
    }
}

/// Zero for what is negative; NaN stays.
#[inline]
pub fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn power(a: f64, b: f64) -> Result<f64, Fault> {
    if a == 0.0 && b < 0.0 {
        return Err(Fault::ZeroDivision);
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err(Fault::Domain("a negative number has no real power with a fraction"));
    }
    within(a.powf(b), a.is_finite() && b.is_finite(), "**")
}

/// An infinite result of finite operands is an overflow.
#[inline]
fn within(out: f64, finite: bool, op: &'static str) -> Result<f64, Fault> {
    if out.is_infinite() && finite { Err(Fault::Overflow(op)) } else { Ok(out) }
}
