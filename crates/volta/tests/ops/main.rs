//! Every op against a naive reference: values, gradients, layouts, fusion; and PyTorch's edge cases by name.

#![allow(clippy::type_complexity, reason = "the type of a table is its columns")]
#![allow(clippy::reversed_empty_ranges, reason = "a range of a tensor may count from its end")]

#[macro_use]
mod driver;
mod layout;
mod random;
mod reference;
mod table;

mod activation;
mod attention;
mod binary;
mod cast;
mod conv;
mod edges;
mod edges_integer;
mod edges_unsigned;
mod einsum;
mod index;
mod join;
mod loss;
mod matmul;
mod movement;
mod norm;
mod pool;
mod quantized;
mod reduce;
mod resize;
mod sort;
mod statistics;
mod unary;

volta_testing::main!();
