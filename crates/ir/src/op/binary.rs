//! The table of elementwise ops of two operands of one shape and type.

use super::Halves;

/// What the result of a binary op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// A value of the operands' type.
    Value,
    /// A truth value.
    Truth,
}

/// A row: variant; name; what it gives; in what type halves meet a number, which may lie out of their range where the result does not;
/// whether its derivative looks at the result, and at which operands, one bit each.
macro_rules! binary_ops {
    ($($variant:ident: $name:literal, $gives:ident, $halves:ident, $result:literal, $operands:literal;)*) => {
        /// Elementwise ops of two operands of one shape and type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are those of the tensor methods")]
        pub enum BinaryOp {
            $($variant,)*
        }

        impl BinaryOp {
            /// The primitive's name, for reports.
            pub const fn name(self) -> &'static str {
                match self { $(BinaryOp::$variant => $name,)* }
            }

            /// Whether the result is a truth value.
            pub const fn compares(self) -> bool {
                match self { $(BinaryOp::$variant => matches!(Gives::$gives, Gives::Truth),)* }
            }

            /// In what type halves meet a number.
            pub const fn halves(self) -> Halves {
                match self { $(BinaryOp::$variant => Halves::$halves,)* }
            }

            /// What its derivative looks at: whether at its result, and at which operands, one bit each.
            pub const fn saved(self) -> (bool, u8) {
                match self { $(BinaryOp::$variant => ($result, $operands),)* }
            }
        }
    };
}

binary_ops! {
    Add: "add", Value, Widened, false, 0b00;
    Sub: "sub", Value, Widened, false, 0b00;
    Mul: "mul", Value, Widened, false, 0b11;
    Div: "div", Value, Widened, true, 0b10;
    Max: "max", Value, Same, false, 0b11;
    Min: "min", Value, Same, false, 0b11;
    Mod: "mod", Value, Widened, false, 0b11;
    Pow: "pow", Value, Widened, true, 0b11;
    FloorDiv: "floor_div", Value, Widened, false, 0b00;
    And: "and", Value, Same, false, 0b00;
    Or: "or", Value, Same, false, 0b00;
    Xor: "xor", Value, Same, false, 0b00;
    Lt: "lt", Truth, Same, false, 0b00;
    Le: "le", Truth, Same, false, 0b00;
    Eq: "eq", Truth, Same, false, 0b00;
    Ne: "ne", Truth, Same, false, 0b00;
}
