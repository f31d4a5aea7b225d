//! PyTorch's answers at the edges of integers and bools, of casts, of slices and axes.

use crate::edges::assert_elements;
use volta::{DType, Range, Tensor};
use volta_testing::test;

fn ints(x: &[i32]) -> Tensor {
    Tensor::from_slice(x, [x.len()])
}

#[test(needs(more_than_webgpu))]
fn integer_division_rounds_down() {
    let (a, b) = (ints(&[7, -7, 7, -7, 6]), ints(&[2, 2, -2, -2, 3]));
    assert_eq!(a.floor_divide(&b).to_vec::<i32>(), [3, -4, -4, 3, 2]);
    assert_eq!(a.remainder(&b).to_vec::<i32>(), [1, 1, -1, -1, 0]);
    let quotient = ints(&[7, -7, 7, -7, 6, 5, 0]).div(ints(&[2, 2, -2, -2, 3, 0, 0]));
    assert_eq!(quotient.dtype(), DType::F32);
    assert_elements("div", &quotient, &[3.5, -3.5, -3.5, 3.5, 2.0, f32::INFINITY, f32::NAN]);
    // The one quotient that does not fit.
    let lowest = ints(&[i32::MIN]);
    assert_eq!(lowest.floor_divide(-1).to_vec::<i32>(), [i32::MIN]);
    assert_eq!(lowest.remainder(-1).to_vec::<i32>(), [0]);
    let lowest = Tensor::from_vec(vec![i64::MIN], [1]);
    assert_eq!(lowest.floor_divide(-1).to_vec::<i64>(), [i64::MIN]);
    assert_eq!(lowest.remainder(-1).to_vec::<i64>(), [0]);
}

/// A number that integers do not hold is none of them when they are divided by it, or when it meets bools.
#[test]
fn numbers_beyond_the_integers_stay_what_they_are() {
    let bytes = Tensor::from_vec(vec![100u8, 200], [2]);
    assert_elements("by 256", &bytes.div(256), &[0.390625, 0.78125]);
    assert_elements("by 400", &bytes.div(400), &[0.25, 0.5]);
    assert_elements("by -1", &bytes.div(-1), &[-100.0, -200.0]);
    assert_elements("by 4e9", &ints(&[1_000_000_000]).div(4_000_000_000i64), &[0.25]);
    if volta::default_device().is_gpu() {
        return;
    }
    let truth = Tensor::from_vec(vec![true, false], [2]);
    assert_eq!(truth.mul(3_000_000_000i64).to_vec::<i64>(), [3_000_000_000, 0]);
    assert_eq!(truth.where_(1i64 << 40, 0).to_vec::<i64>(), [1 << 40, 0]);
    assert_eq!(truth.add(1).dtype(), DType::I32);
}

#[test]
fn triangles_reach_as_far_as_is_asked_for() {
    for far in [3, 1 << 32, i64::MAX] {
        assert_eq!(Tensor::tril_mask(3, 3, far).to_vec::<bool>(), [true; 9]);
        assert_eq!(Tensor::triu_mask(3, 3, -far).to_vec::<bool>(), [true; 9]);
        assert_eq!(Tensor::triu_mask(3, 3, far).to_vec::<bool>(), [false; 9]);
    }
}

#[test]
fn float_remainders_have_the_sign_of_the_divisor() {
    let (a, b) = (Tensor::vector(&[7.5, -7.5, 7.5, -7.5, 1.0]), Tensor::vector(&[2.0, 2.0, -2.0, -2.0, 0.0]));
    assert_elements("remainder", &a.remainder(&b), &[1.5, 0.5, -0.5, -1.5, f32::NAN]);
    assert_elements("floor_divide", &a.floor_divide(&b), &[3.0, -4.0, -4.0, 3.0, f32::INFINITY]);
}

#[test]
fn integers_wrap_around() {
    let x = ints(&[i32::MAX, i32::MIN]);
    assert_eq!(x.add(1).to_vec::<i32>(), [i32::MIN, i32::MIN + 1]);
    assert_eq!(x.sub(1).to_vec::<i32>(), [i32::MAX - 1, i32::MAX]);
    assert_eq!(x.mul(2).to_vec::<i32>(), [-2, 0]);
    assert_eq!(x.neg().to_vec::<i32>(), [-i32::MAX, i32::MIN]);
    assert_eq!(x.abs().to_vec::<i32>(), [i32::MAX, i32::MIN]);
    let bytes = Tensor::from_vec(vec![0u8, 200, 255], [3]);
    assert_eq!(bytes.sub(1).to_vec::<u8>(), [255, 199, 254]);
    assert_eq!(bytes.add(100).to_vec::<u8>(), [100, 44, 99]);
    assert_eq!(bytes.neg().to_vec::<u8>(), [0, 56, 1]);
    assert_eq!(bytes.lt(100).to_vec::<bool>(), [true, false, false]);
}

#[test(needs(more_than_webgpu))]
fn sums_of_integers_are_wide_and_exact() {
    let x = ints(&[i32::MAX, i32::MAX, 1]);
    assert_eq!(x.sum().dtype(), DType::I64);
    assert_eq!(x.sum().item::<i64>(), 2 * i64::from(i32::MAX) + 1);
    assert_eq!(Tensor::from_vec(vec![200u8, 100], [2]).sum().item::<i64>(), 300);
    assert_eq!(Tensor::from_vec(vec![true, true, false], [3]).sum().item::<i64>(), 2);
    let large = Tensor::from_vec(vec![(1i64 << 60) + 1, 1], [2]);
    assert_eq!(large.sum().item::<i64>(), (1 << 60) + 2);
    assert_eq!(large.max().item::<i64>(), (1 << 60) + 1);
    assert_eq!(ints(&[100_000, 100_000]).prod().item::<i64>(), 10_000_000_000);
    assert_eq!(x.cumsum(0).to_vec::<i64>(), [2_147_483_647, 4_294_967_294, 4_294_967_295]);
}

#[test(needs(more_than_webgpu))]
fn large_integers_keep_every_bit_through_elementwise_ops_and_products() {
    let x = Tensor::from_vec(vec![(1i64 << 53) + 1, -(1i64 << 53) - 1], [2]);
    assert_eq!(x.add(0).to_vec::<i64>(), [(1 << 53) + 1, -(1 << 53) - 1]);
    assert_eq!(x.maximum(x.neg()).to_vec::<i64>(), [(1 << 53) + 1, (1 << 53) + 1]);
    assert_eq!(x.eq(x.add(1)).to_vec::<bool>(), [false, false]);
    assert_eq!(x.reshape([1, 2]).matmul(&x.reshape([2, 1])).to_vec::<i64>().len(), 1);
    assert_eq!(
        x.reshape([2, 1]).matmul(&Tensor::from_vec(vec![1i64], [1, 1])).to_vec::<i64>(),
        x.to_vec::<i64>()
    );
    for fill in [(1i64 << 53) + 1, 1 << 53, i64::MIN, i64::MAX] {
        let padded = x.pad(&[(1, 0)], fill);
        assert_eq!(padded.to_vec::<i64>(), [fill, (1 << 53) + 1, -(1 << 53) - 1], "as it lies in memory");
        let padded = (&x + 1).pad(&[(0, 1)], fill);
        assert_eq!(padded.to_vec::<i64>(), [(1 << 53) + 2, -(1 << 53), fill], "on the way");
    }
    let y = ints(&[16_777_217]);
    assert_eq!(y.mul(1).add(0).to_vec::<i32>(), [16_777_217], "beyond the integers of f32");
    assert_eq!(y.remainder(10).to_vec::<i32>(), [7]);
    assert_eq!(y.floor_divide(2).to_vec::<i32>(), [8_388_608]);
}

#[test]
fn integer_powers_are_exact() {
    let x = ints(&[3, -2, 0, 0, 1, -1]);
    let y = ints(&[19, 3, 0, 5, 100, 101]);
    assert_eq!(x.pow(&y).to_vec::<i32>(), [1_162_261_467, -8, 1, 0, 1, -1]);
}

#[test]
fn bool_arithmetic_is_or_and_and() {
    let (a, b) = (
        Tensor::from_vec(vec![true, true, false, false], [4]),
        Tensor::from_vec(vec![true, false, true, false], [4]),
    );
    let sum = a.add(&b);
    assert_eq!(sum.dtype(), DType::Bool);
    assert_eq!(sum.to_vec::<bool>(), [true, true, true, false], "a sum of bools is or");
    assert_eq!(a.mul(&b).to_vec::<bool>(), [true, false, false, false], "a product of bools is and");
    assert_eq!(a.maximum(&b).to_vec::<bool>(), [true, true, true, false]);
    assert_eq!(a.minimum(&b).to_vec::<bool>(), [true, false, false, false]);
    assert_eq!(a.lt(&b).to_vec::<bool>(), [false, false, true, false]);
    assert_eq!(a.add(1).to_vec::<i32>(), [2, 2, 1, 1], "a number makes it a number");
    assert_eq!(a.mul(0.5).to_vec::<f32>(), [0.5, 0.5, 0.0, 0.0]);
    assert_eq!(a.add(true).to_vec::<bool>(), [true; 4]);
    assert!(a.try_sub(&b).is_err(), "bools are not subtracted");
    assert!(a.try_neg().is_err(), "bools have no negative");
    assert_eq!(a.max_dim(0, false).to_vec::<bool>(), [true]);
    assert_eq!(a.min_dim(0, false).to_vec::<bool>(), [false]);
    assert_eq!(b.argmin().item::<i32>(), 1);
    assert_eq!(
        Tensor::vector(&[0.0, -0.0, f32::NAN, 0.5]).logical_not().to_vec::<bool>(),
        [true, true, false, false]
    );
}

#[test(needs(f64))]
fn casts_truncate_wrap_and_take_nan_to_zero() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = Tensor::vector(&[1.9, -1.9, 0.5, nan, inf, -inf, 3.0e9]);
    let i = x.to_dtype(DType::I32).to_vec::<i32>();
    assert_eq!(i[..4], [1, -1, 0, 0]);
    // Rust's own casts saturate, and PyTorch promises nothing here.
    assert_eq!(i[4..], [i32::MAX, i32::MIN, i32::MAX]);
    assert_eq!(x.to_dtype(DType::Bool).to_vec::<bool>(), [true, true, true, true, true, true, true]);
    assert_eq!(Tensor::vector(&[0.0, -0.0]).to_dtype(DType::Bool).to_vec::<bool>(), [false, false]);
    assert_eq!(ints(&[300, -1, 256]).to_dtype(DType::U8).to_vec::<u8>(), [44, 255, 0]);
    let wide = Tensor::from_vec(vec![(1i64 << 32) + 5, -1], [2]);
    assert_eq!(wide.to_dtype(DType::I32).to_vec::<i32>(), [5, -1]);
    assert_eq!(ints(&[2, 0, -3]).to_dtype(DType::Bool).to_vec::<bool>(), [true, false, true]);
    assert_eq!(Tensor::from_vec(vec![true, false], [2]).to_dtype(DType::F16).to_vec::<f32>(), [1.0, 0.0]);
    assert_eq!(ints(&[16_777_217]).to_dtype(DType::F32).to_vec::<f32>(), [16_777_216.0]);
    assert_eq!(ints(&[16_777_217]).to_dtype(DType::F64).to_vec::<f64>(), [16_777_217.0]);
}

#[test(needs(f64))]
fn numbers_take_the_tensors_type_unless_they_are_of_a_higher_kind() {
    use DType::*;
    for (dtype, int, float) in [
        (F32, F32, F32),
        (F64, F64, F64),
        (F16, F16, F16),
        (BF16, BF16, BF16),
        (I32, I32, F32),
        (I64, I64, F32),
        (U8, U8, F32),
        (U32, U32, F32),
        (Bool, I32, F32),
    ] {
        let x = Tensor::full_of([2], 1, dtype);
        assert_eq!(x.add(2).dtype(), int, "{dtype} + 2");
        assert_eq!(x.add(2.5).dtype(), float, "{dtype} + 2.5");
        assert_eq!((2.5 - &x.to_dtype(float)).dtype(), float);
        assert_eq!(x.add(2.5).to_vec::<f64>(), [3.5, 3.5], "{dtype}");
        assert_eq!((2 + &x).dtype(), int, "2 + {dtype}");
    }
    // A constant is computed in the tensor's precision, not before.
    assert_eq!(Tensor::from_vec(vec![1.0f64], [1]).mul(0.1).to_vec::<f64>(), [0.1]);
    assert_eq!(Tensor::vector(&[1.0]).mul(0.1).to_vec::<f64>(), [f64::from(0.1f32)]);
}

#[test]
fn slices_beyond_the_end_stop_there_and_backward_ones_are_empty() {
    let x = ints(&[0, 1, 2, 3, 4]);
    let table: &[(Range, &[i32])] = &[
        ((3..100).into(), &[3, 4]),
        ((7..9).into(), &[]),
        ((-100..2).into(), &[0, 1]),
        ((-2..).into(), &[3, 4]),
        ((..-3).into(), &[0, 1]),
        ((3..1).into(), &[]),
        ((..).into(), &[0, 1, 2, 3, 4]),
        ((-1..=-1).into(), &[4]),
        (Range::by(.., 2), &[0, 2, 4]),
        (Range::by(1..100, 3), &[1, 4]),
        (Range::by(-4..-1, 2), &[1, 3]),
        (Range::by(4.., 100), &[4]),
    ];
    for (range, expected) in table {
        assert_eq!(x.slice([*range]).to_vec::<i32>(), *expected, "{range:?}");
    }
}

#[test]
fn axes_count_from_the_end_when_negative_and_scalars_have_one_to_name() {
    let x = Tensor::arange(0, 6).reshape([2, 3]);
    assert_eq!(x.sum_dim(-1, false).to_vec::<i64>(), [3, 12]);
    assert_eq!(x.sum_dim(-2, false).to_vec::<i64>(), [3, 5, 7]);
    assert_eq!(x.argmax_dim(-2, true).shape()[..], [1, 3]);
    assert_eq!(x.transpose(-1, 0).shape()[..], [3, 2]);
    assert_eq!(x.unsqueeze(-2).shape()[..], [2, 1, 3]);
    assert_eq!(x.select(-1, -1).to_vec::<i32>(), [2, 5]);
    let one = Tensor::scalar(2.5);
    assert_eq!(one.sum_dim(0, false).item::<f32>(), 2.5);
    assert_eq!(one.max_dim(-1, true).item::<f32>(), 2.5);
    assert_eq!(one.argmax_dim(0, false).item::<i32>(), 0);
    assert_eq!(one.softmax(0).item::<f32>(), 1.0);
    assert_eq!(one.sort(0, true).0.item::<f32>(), 2.5);
    assert_eq!(one.cumsum(-1).item::<f32>(), 2.5);
    assert_eq!(one.flip(0).item::<f32>(), 2.5);
    assert_eq!(one.argsort(0, false).to_vec::<i32>(), [0]);
}

#[test(needs(more_than_webgpu))]
fn tensors_made_by_rules_hold_what_they_say() {
    assert_eq!(Tensor::arange(-2, 3).to_vec::<i32>(), [-2, -1, 0, 1, 2]);
    assert_eq!(Tensor::arange(3, 1).to_vec::<i32>(), [0i32; 0]);
    assert_eq!(Tensor::arange_step(0.0, 1.0, 0.25).to_vec::<f32>(), [0.0, 0.25, 0.5, 0.75]);
    assert_eq!(Tensor::arange_step(1.0, 0.0, -0.5).to_vec::<f32>(), [1.0, 0.5]);
    assert_eq!(Tensor::linspace(-1.0, 1.0, 5).to_vec::<f32>(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    assert_eq!(Tensor::linspace(3.0, 9.0, 1).to_vec::<f32>(), [3.0]);
    assert_eq!(Tensor::eye(2).to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(Tensor::tril_mask(2, 3, 0).to_vec::<bool>(), [true, false, false, true, true, false]);
    assert_eq!(Tensor::triu_mask(2, 3, 1).to_vec::<bool>(), [false, true, true, false, false, true]);
    assert_eq!(Tensor::full([2], 7).to_vec::<i32>(), [7, 7]);
    assert_eq!(Tensor::full_of([1], -1, DType::U8).to_vec::<u8>(), [255]);
    assert_eq!(Tensor::full([2, 0], true).to_vec::<bool>(), [false; 0]);
    assert_eq!(Tensor::scalar(1.5).shape()[..], [0usize; 0]);
    assert_eq!(Tensor::full_of([1], i64::MAX, DType::I64).to_vec::<i64>(), [i64::MAX]);
}

#[test]
fn a_number_outside_of_the_type_is_above_or_below_all_of_it() {
    type Op = fn(&Tensor, i64) -> Tensor;
    // What each says of a number above all, and of one below.
    let table: [(&str, Op, bool, bool); 6] = [
        ("lt", |x, n| x.lt(n), true, false),
        ("le", |x, n| x.le(n), true, false),
        ("gt", |x, n| x.gt(n), false, true),
        ("ge", |x, n| x.ge(n), false, true),
        ("eq", |x, n| x.eq(n), false, false),
        ("ne", |x, n| x.ne(n), true, true),
    ];
    let (bytes, words) =
        (Tensor::from_vec(vec![0u8, 5, 255], [3]), Tensor::from_vec(vec![0u32, 5, u32::MAX], [3]));
    for (x, above, below) in [
        (bytes, [256, 1 << 40], [-1, i64::MIN]),
        (words, [1 << 32, i64::MAX], [-1, -(1 << 32)]),
        (ints(&[i32::MIN, -5, i32::MAX]), [1 << 31, i64::MAX], [-(1 << 31) - 1, i64::MIN]),
    ] {
        for (name, op, of_larger, of_smaller) in table {
            for (numbers, expected) in [(above, of_larger), (below, of_smaller)] {
                for number in numbers {
                    let found = op(&x, number);
                    assert_eq!(found.dtype(), DType::Bool);
                    assert_eq!(found.to_vec::<bool>(), [expected; 3], "{} {name} {number}", x.dtype());
                }
            }
        }
    }
}

#[test]
fn the_larger_and_the_smaller_of_a_number_outside_of_the_type_are_known() {
    let bytes = Tensor::from_vec(vec![0u8, 5, 255], [3]);
    assert_eq!(bytes.maximum(-1).to_vec::<u8>(), [0, 5, 255]);
    assert_eq!(bytes.minimum(300).to_vec::<u8>(), [0, 5, 255]);
    assert_eq!(bytes.maximum(300).to_vec::<u8>(), [255; 3], "as near as the type comes");
    let words = Tensor::from_vec(vec![0u32, 5, u32::MAX], [3]);
    assert_eq!(words.maximum(-1).to_vec::<u32>(), [0, 5, u32::MAX]);
    assert_eq!(words.minimum(-1).to_vec::<u32>(), [0; 3]);
    for error in [bytes.try_remainder(256), bytes.try_floor_divide(-1), bytes.try_pow(300)].map(Result::err) {
        let error = error.expect("what it would be wrapped around to is another number").to_string();
        assert!(error.contains("is no u8: convert the tensor"), "{error}");
    }
}

#[test]
fn bounds_outside_of_the_type_bound_nothing() {
    let bytes = Tensor::from_vec(vec![0u8, 5, 255], [3]);
    let clamped = |min, max| bytes.clamp(min, max).to_vec::<u8>();
    assert_eq!(clamped(Some(-1.0), Some(100.0)), [0, 5, 100]);
    assert_eq!(clamped(Some(-300.0), Some(1e9)), [0, 5, 255]);
    assert_eq!(clamped(Some(300.0), None), [255; 3], "as near as the type comes");
    assert_eq!(clamped(None, Some(-2.0)), [0; 3]);
    assert_eq!(clamped(Some(10.0), Some(-1.0)), [0; 3], "the upper one of two that are the wrong way round");
    let x = ints(&[i32::MIN, 7, i32::MAX]);
    assert_eq!(x.clamp(Some(-5e9), Some(5e9)).to_vec::<i32>(), [i32::MIN, 7, i32::MAX]);
    assert_eq!(x.clamp(Some(5e9), None).to_vec::<i32>(), [i32::MAX; 3]);
}

#[test]
fn bits_of_integers_are_combined_in_every_type() {
    let (a, b) = ([6i32, 5, 127, 0], [3i32, 5, 1, 9]);
    type Pair = fn(&Tensor, &Tensor) -> Tensor;
    let table: [(&str, Pair, fn(i32, i32) -> i32); 3] = [
        ("and", |a, b| a.bitwise_and(b), |a, b| a & b),
        ("or", |a, b| a.bitwise_or(b), |a, b| a | b),
        ("xor", |a, b| a.bitwise_xor(b), |a, b| a ^ b),
    ];
    for dtype in [DType::I32, DType::U8, DType::U32] {
        let [x, y] = [a, b].map(|v| Tensor::from_vec(v.to_vec(), [4]).to_dtype(dtype));
        for (name, op, expected) in table {
            let result = op(&x, &y);
            assert_eq!(result.dtype(), dtype, "{name}");
            let expected: Vec<i32> = a.iter().zip(b).map(|(&a, b)| expected(a, b)).collect();
            assert_eq!(result.to_dtype(DType::I32).to_vec::<i32>(), expected, "{name} of {dtype}");
        }
        assert!(
            x.bitwise_not().bitwise_not().eq(&x).to_vec::<bool>().into_iter().all(|same| same),
            "{dtype}"
        );
    }
    assert_eq!(Tensor::from_vec(vec![6i32, -1], [2]).bitwise_not().to_vec::<i32>(), [-7, 0]);
    assert_eq!(Tensor::from_vec(vec![6u8, 255], [2]).bitwise_not().to_vec::<u8>(), [249, 0]);
    assert_eq!(Tensor::from_vec(vec![6i32, -8], [2]).bitwise_and(3).to_vec::<i32>(), [2, 0]);
    let truth = Tensor::from_vec(vec![true, false], [2]);
    assert_eq!(truth.bitwise_xor(truth.bitwise_not()).to_vec::<bool>(), [true, true]);
    assert!(Tensor::vector(&[1.0]).try_bitwise_and(1).is_err());
}
