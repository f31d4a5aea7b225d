//! Block operations: one call computes one operation over a whole block of lanes.
//!
//! The interpreter of fused kernels evaluates its program on blocks of some hundred to some
//! thousand lanes. Each function here is a plain loop that LLVM vectorises, compiled once per
//! instruction-set level (`isa`) and picked at run time. Inputs and outputs never overlap. All
//! levels give the same bits but for the exponential and what is made of it.

#[cfg(test)]
mod accuracy_tests;
mod assert;
mod binary;
mod convert;
mod copy;
mod element;
mod erf;
mod exp;
mod float_binary;
mod half;
pub(crate) mod isa;
mod log;
mod pow;
mod random;
mod reduce;
mod rem;
mod select;
mod short_rows;
mod superinstructions;
mod trig;
mod unary;

pub(crate) use assert::first_failure;
pub(crate) use binary::{binary, compare};
pub(crate) use convert::{Cast, convert, to_bool};
pub(crate) use copy::copy_strided;
pub(crate) use element::LaneElement;
pub(crate) use half::{load_bf16, round_bf16, round_f16, store_bf16};
pub use half::{load_f16, store_f16};
pub(crate) use random::threefry_block;
pub(crate) use reduce::{accumulate, arg_reduce, count_nonfinite, reduce};
pub(crate) use select::{mul_add, select};
pub(crate) use short_rows::{broadcast_segments, reduce_segments};
pub(crate) use superinstructions::{exp_shifted, rescale, shifted_scaled, sum_products, sum_squares};
pub(crate) use unary::unary;

/// An input of a block operation: a block of its own, or one value for all lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand<'a, T> {
    Block(&'a [T]),
    Scalar(T),
}

impl<T> Operand<'_, T> {
    /// Panics unless a block has exactly `n` lanes.
    #[inline(always)]
    fn check(&self, n: usize) {
        if let Operand::Block(x) = self {
            assert_eq!(x.len(), n, "block lengths differ");
        }
    }
}
