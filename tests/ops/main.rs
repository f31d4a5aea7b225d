//! Every op against a naive reference: values, gradients, layouts, fusion; and PyTorch's edge cases by name.

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
mod index;
mod matmul;
mod movement;
mod norm;
mod reduce;
mod statistics;
mod unary;
