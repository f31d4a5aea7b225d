//! Misuse of products, convolutions and attention.

use crate::{Misuse, check, f, of};
use volta::{AttentionOptions, ConvOptions, DType, ErrorKind};
use volta_testing::test;

#[test]
fn products_name_both_operands() {
    check(&[
        misuse!(
            Shape,
            "shapes [2, 3] and [4, 5] do not fit: the inner extents 3 and 4 differ",
            f(&[2, 3]),
            matmul | try_matmul(&f(&[4, 5]))
        ),
        misuse!(
            Shape,
            "shapes [3] and [4] do not fit: the inner extents 3 and 4 differ",
            f(&[3]),
            matmul | try_matmul(&f(&[4]))
        ),
        misuse!(
            Shape,
            "shapes [] and [2, 2]: both operands need at least one axis",
            f(&[]),
            matmul | try_matmul(&f(&[2, 2]))
        ),
        misuse!(
            Shape,
            "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1",
            f(&[2, 1, 1]),
            matmul | try_matmul(&f(&[3, 1, 1]))
        ),
        misuse!(
            DType,
            "operands are f32 and i32: convert one with to_dtype",
            f(&[2, 2]),
            matmul | try_matmul(&of(&[2, 2], DType::I32))
        ),
        misuse!(
            DType,
            "bool is not a number: convert it with to_dtype",
            of(&[2, 2], DType::Bool),
            matmul | try_matmul(&of(&[2, 2], DType::Bool))
        ),
        misuse!(
            Shape,
            "shapes [2, 2] and [2]: both operands must be vectors",
            f(&[2, 2]),
            dot | try_dot(&f(&[2]))
        ),
        misuse!(
            Shape,
            "shapes [2] and []: both operands must be vectors",
            f(&[2]),
            outer | try_outer(&f(&[]))
        ),
    ]);
}

fn conv(stride: usize, groups: usize) -> ConvOptions {
    ConvOptions { stride: [stride; 2], groups, ..Default::default() }
}

#[test]
fn convolutions_name_input_weight_and_options() {
    check(&[
        misuse!(
            Shape,
            "input [2, 3] and weight [4, 3, 1, 1] must both have 4 axes",
            f(&[2, 3]),
            conv2d | try_conv2d(&f(&[4, 3, 1, 1]), None, conv(1, 1))
        ),
        misuse!(
            DType,
            "input is i32 and weight f32: both must be the same float type",
            of(&[1, 1, 2, 2], DType::I32),
            conv2d | try_conv2d(&f(&[1, 1, 1, 1]), None, conv(1, 1))
        ),
        misuse!(
            Shape,
            "input [1, 3, 4, 4] has 3 channels, weight [2, 2, 3, 3] with 1 groups takes 2 and gives 2",
            f(&[1, 3, 4, 4]),
            conv2d | try_conv2d(&f(&[2, 2, 3, 3]), None, conv(1, 1))
        ),
        misuse!(
            Argument,
            "stride [0, 0], dilation [1, 1] and groups 1 must be at least 1",
            f(&[1, 1, 4, 4]),
            conv2d | try_conv2d(&f(&[1, 1, 3, 3]), None, conv(0, 1))
        ),
        misuse!(
            Shape,
            "a kernel of [1, 1, 5, 5] does not fit into input [1, 1, 4, 4] with padding [0, 0] and dilation [1, 1]",
            f(&[1, 1, 4, 4]),
            conv2d | try_conv2d(&f(&[1, 1, 5, 5]), None, conv(1, 1))
        ),
        misuse!(
            Shape,
            "the bias has shape [3], and there are 2 output channels",
            f(&[1, 1, 4, 4]),
            conv2d | try_conv2d(&f(&[2, 1, 3, 3]), Some(&f(&[3])), conv(1, 1))
        ),
        misuse!(
            Shape,
            "input [1, 1, 4, 4] and weight [1, 1, 2] must both have 3 axes",
            f(&[1, 1, 4, 4]),
            conv1d | try_conv1d(&f(&[1, 1, 2]), None, conv(1, 1))
        ),
        misuse!(
            Shape,
            "input [1, 3, 4, 4] has 3 channels, weight [2, 2, 3, 3] with 1 groups takes 2",
            f(&[1, 3, 4, 4]),
            conv_transpose2d | try_conv_transpose2d(&f(&[2, 2, 3, 3]), None, conv(1, 1))
        ),
        misuse!(
            Argument,
            "output padding [1, 1] must be smaller than stride [1, 1] or dilation [1, 1]",
            f(&[1, 1, 4, 4]),
            conv_transpose2d
                | try_conv_transpose2d(
                    &f(&[1, 1, 3, 3]),
                    None,
                    ConvOptions { output_padding: [1, 1], ..Default::default() }
                )
        ),
    ]);
}

fn with(dropout: f64) -> AttentionOptions<'static> {
    AttentionOptions { dropout, ..Default::default() }
}

#[test]
fn attention_names_all_three_operands() {
    check(&[
        misuse!(
            Shape,
            "q [3], k [3] and v [3] must have as many axes, at least 2",
            f(&[3]),
            scaled_dot_product_attention | try_scaled_dot_product_attention(&f(&[3]), &f(&[3]), with(0.0))
        ),
        misuse!(
            Shape,
            "q [2, 3], k [4, 5] and v [4, 3] do not fit: (…, queries, width), (…, keys, width), (…, keys, value width) are needed",
            f(&[2, 3]),
            scaled_dot_product_attention
                | try_scaled_dot_product_attention(&f(&[4, 5]), &f(&[4, 3]), with(0.0))
        ),
        misuse!(
            DType,
            "q, k and v are f32, f64 and f32: all must be the same float type",
            f(&[2, 3]),
            scaled_dot_product_attention
                | try_scaled_dot_product_attention(&of(&[2, 3], DType::F64), &f(&[2, 3]), with(0.0))
        ),
        misuse!(
            Argument,
            "a dropout of 1 is not a probability below 1",
            f(&[2, 3]),
            scaled_dot_product_attention
                | try_scaled_dot_product_attention(&f(&[2, 3]), &f(&[2, 3]), with(1.0))
        ),
    ]);
}
