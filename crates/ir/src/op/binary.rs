//! The table of elementwise ops of two operands of one shape and type.

use super::Halves;

/// Hands the table to a macro. A row: documentation; variant; its name in reports; its method, and what settles the types of its
/// operands there; what it gives; in what type halves meet a number, which may lie out of their range where the result does not;
/// whether its derivative looks at the result, and at which operands, one bit each.
#[macro_export]
macro_rules! binary_ops {
    ($use:ident) => {
        $use! {
            /// a + b
            Add: "add", try_add = binary, Value, Widened, false, 0b00;
            /// a − b
            Sub: "sub", try_sub = binary, Value, Widened, false, 0b00;
            /// a · b
            Mul: "mul", try_mul = binary, Value, Widened, false, 0b11;
            /// a / b; of integers too, in floats.
            Div: "div", try_div = divide, Value, Widened, true, 0b10;
            /// The larger one, elementwise; NaN wins.
            Max: "max", try_maximum = binary, Value, Same, false, 0b11;
            /// The smaller one, elementwise; NaN wins.
            Min: "min", try_minimum = binary, Value, Same, false, 0b11;
            /// a − b·⌊a/b⌋: has the sign of `b`. Integers by zero are an error, at once where that is known, else of whoever waits
            /// for the device next, and give 0.
            Mod: "mod", try_remainder = binary, Value, Widened, false, 0b11;
            /// aᵇ
            Pow: "pow", try_pow = power, Value, Widened, true, 0b11;
            /// ⌊a/b⌋. Integers by zero are an error, as for the remainder, and give 0.
            FloorDiv: "floor_div", try_floor_divide = binary, Value, Widened, false, 0b00;
            /// Both true (not zero).
            And: "and", try_logical_and = logical, Value, Same, false, 0b00;
            /// At least one true (not zero).
            Or: "or", try_logical_or = logical, Value, Same, false, 0b00;
            /// Exactly one true (not zero).
            Xor: "xor", try_logical_xor = logical, Value, Same, false, 0b00;
            /// a < b
            Lt: "lt", try_lt = compare, Truth, Same, false, 0b00;
            /// a ≤ b
            Le: "le", try_le = compare, Truth, Same, false, 0b00;
            /// a = b
            Eq: "eq", try_eq = compare, Truth, Same, false, 0b00;
            /// a ≠ b
            Ne: "ne", try_ne = compare, Truth, Same, false, 0b00;
        }
    };
}

/// What the result of a binary op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// A value of the operands' type.
    Value,
    /// A truth value.
    Truth,
}

macro_rules! define {
    ($($(#[$doc:meta])* $variant:ident: $name:literal, $method:ident = $settle:ident, $gives:ident, $halves:ident, $result:literal,
        $operands:literal;)*) => {
        /// Elementwise ops of two operands of one shape and type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BinaryOp {
            $($(#[$doc])* $variant,)*
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

binary_ops!(define);
