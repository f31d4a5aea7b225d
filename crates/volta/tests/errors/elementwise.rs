//! Misuse of elementwise ops, creators and reductions.

use crate::{Misuse, bools, check, f};
use volta::{ErrorKind, Tensor};
use volta_testing::test;

#[test]
fn elementwise_ops_name_shapes_and_types() {
    check(&[
        misuse!(
            Shape,
            "shapes [2, 3] and [4] do not broadcast: extents 3 and 4 differ and neither is 1",
            f(&[2, 3]),
            add | try_add(f(&[4]))
        ),
        misuse!(
            Shape,
            "shape [2147483648, 2147483648] has too many elements",
            Tensor::zeros([1usize << 31, 1]),
            add | try_add(Tensor::zeros([1, 1usize << 31]))
        ),
        misuse!(
            Shape,
            "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1",
            f(&[2]),
            mul | try_mul(f(&[3]))
        ),
        misuse!(
            Shape,
            "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1",
            f(&[2]),
            maximum | try_maximum(f(&[3]))
        ),
        misuse!(
            Shape,
            "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1",
            f(&[2]),
            lt | try_lt(f(&[3]))
        ),
        misuse!(
            Shape,
            "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1",
            bools(),
            where_ | try_where_(f(&[3]), 0.0)
        ),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), sub | try_sub(bools())),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), neg | try_neg()),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), abs | try_abs()),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), pow | try_pow(bools())),
        misuse!(
            DType,
            "bool is not a number: convert it with to_dtype",
            bools(),
            remainder | try_remainder(bools())
        ),
        misuse!(
            Autograd,
            "floor_div has no gradient, and an operand requires one: detach it, or compute this under no_grad",
            f(&[2]).requires_grad(true),
            floor_divide | try_floor_divide(2.0)
        ),
    ]);
}

#[test]
fn creators_name_what_cannot_be_made() {
    check(&[
        misuse!(
            Shape,
            "3 elements do not fill shape [2, 2], which has 4",
            Tensor::from_vec | try_from_vec(vec![1.0f32; 3], [2, 2])
        ),
        misuse!(
            Shape,
            "0 elements do not fill shape [], which has 1",
            Tensor::from_slice | try_from_slice(&[0i32; 0], [0usize; 0])
        ),
        misuse!(Shape, "extent -1 of [2, -1] is negative", Tensor::zeros | try_zeros([2, -1])),
        misuse!(
            Shape,
            "shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 axes; at most 8 are possible",
            Tensor::ones | try_ones([1; 9])
        ),
        misuse!(
            Shape,
            "shape [9223372036854775807, 4] has too many elements",
            Tensor::full | try_full([isize::MAX, 4], 0)
        ),
        misuse!(
            Argument,
            "no numbers from 0 to 1 by 0",
            Tensor::arange_step | try_arange_step(0.0, 1.0, 0.0)
        ),
        misuse!(Argument, "no i32 numbers from 3 up to 3", Tensor::randint | try_randint(3, 3, [2])),
        misuse!(Argument, "1.5 is not a probability", Tensor::bernoulli | try_bernoulli(1.5, [2])),
    ]);
}

#[test]
fn reductions_name_axes_and_empty_shapes() {
    check(&[
        misuse!(
            Shape,
            "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1",
            f(&[2, 3]),
            sum_dim | try_sum_dim(2, false)
        ),
        misuse!(
            Shape,
            "axis -3 is out of range for shape [2, 3]: it must lie in -2..=1",
            f(&[2, 3]),
            max_dim | try_max_dim(-3, true)
        ),
        misuse!(
            Shape,
            "axis 1 is out of range for shape []: it must lie in -1..=0",
            f(&[]),
            min_dim | try_min_dim(1, true)
        ),
        misuse!(
            Shape,
            "axis -1 appears twice in [1, -1]",
            f(&[2, 3]),
            prod_dim | try_prod_dim([1, -1], false)
        ),
        misuse!(
            Shape,
            "the extremum of no elements: shape [0] is empty along the reduced axes",
            f(&[0]),
            max | try_max()
        ),
        misuse!(
            Shape,
            "the extremum of no elements: shape [2, 0] is empty along the reduced axes",
            f(&[2, 0]),
            min_dim | try_min_dim(1, false)
        ),
        misuse!(
            Shape,
            "the extremum of no elements: shape [0] is empty along the reduced axes",
            f(&[0]),
            argmax | try_argmax()
        ),
        misuse!(
            Shape,
            "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1",
            f(&[2, 3]),
            argmin_dim | try_argmin_dim(2, false)
        ),
    ]);
}
