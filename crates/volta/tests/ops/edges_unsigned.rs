//! u32 at its edges: numbers above 2³¹ are no negative ones, whatever is done with them.

use crate::driver::{available, summed};
use volta::train::accuracy;
use volta::{
    CrossEntropyOptions, DType, Scalar, Tensor, cross_entropy, cross_entropy_with, default_device, nll_loss,
};
use volta_testing::test;

const LARGE: u32 = 1 << 31;
/// Small ones, powers and their neighbours, and what looks negative to a signed type.
const EDGES: [u32; 14] =
    [0, 1, 2, 3, 7, 255, 256, 65_537, 16_777_217, LARGE - 1, LARGE, LARGE + 129, 4_000_000_000, u32::MAX];

fn numbers(x: &[u32]) -> Tensor {
    Tensor::from_slice(x, [x.len()])
}

/// Every edge with every other; a multiple of four of them, which a GPU computes together, and one less, which it does not.
fn pairs() -> [Vec<(u32, u32)>; 2] {
    let all: Vec<(u32, u32)> = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))).collect();
    let fewer = all[1..].to_vec();
    assert!(all.len().is_multiple_of(4));
    [all, fewer]
}

fn columns(pairs: &[(u32, u32)]) -> (Tensor, Tensor) {
    let (a, b): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    (numbers(&a), numbers(&b))
}

/// Numbers from all of the range, the same every time, with some that are alike.
fn scattered(count: u32) -> Vec<u32> {
    (0..count).map(|k| (k % 2003).wrapping_mul(2_654_435_761).rotate_left(7)).collect()
}

#[test]
fn arithmetic_wraps_around() {
    type Op = fn(&Tensor, &Tensor) -> Tensor;
    let table: &[(&str, Op, fn(u32, u32) -> u32)] = &[
        ("add", |a, b| a.add(b), u32::wrapping_add),
        ("sub", |a, b| a.sub(b), u32::wrapping_sub),
        ("mul", |a, b| a.mul(b), u32::wrapping_mul),
        ("floor_divide", |a, b| a.floor_divide(b.maximum(1)), |a, b| a / b.max(1)),
        ("remainder", |a, b| a.remainder(b.maximum(1)), |a, b| a % b.max(1)),
        ("pow", |a, b| a.pow(b), u32::wrapping_pow),
        ("maximum", |a, b| a.maximum(b), u32::max),
        ("minimum", |a, b| a.minimum(b), u32::min),
    ];
    for pairs in pairs() {
        let (a, b) = columns(&pairs);
        for (name, op, expected) in table {
            let expected: Vec<u32> = pairs.iter().map(|&(a, b)| expected(a, b)).collect();
            let result = op(&a, &b);
            assert_eq!(result.dtype(), DType::U32, "{name}");
            assert_eq!(result.to_vec::<u32>(), expected, "{name}");
        }
    }
}

#[test]
fn comparisons_know_no_sign() {
    type Op = fn(&Tensor, &Tensor) -> Tensor;
    let table: &[(&str, Op, fn(&u32, &u32) -> bool)] = &[
        ("lt", |a, b| a.lt(b), u32::lt),
        ("le", |a, b| a.le(b), u32::le),
        ("gt", |a, b| a.gt(b), u32::gt),
        ("ge", |a, b| a.ge(b), u32::ge),
        ("eq", |a, b| a.eq(b), u32::eq),
        ("ne", |a, b| a.ne(b), u32::ne),
    ];
    for pairs in pairs() {
        let (a, b) = columns(&pairs);
        for (name, op, expected) in table {
            let expected: Vec<bool> = pairs.iter().map(|(a, b)| expected(a, b)).collect();
            assert_eq!(op(&a, &b).to_vec::<bool>(), expected, "{name}");
        }
    }
    assert_eq!(numbers(&[0, LARGE]).lt(-1).to_vec::<bool>(), [false, false], "nothing is below zero");
}

#[test]
fn negatives_wrap_absolutes_stay_and_signs_are_zero_or_one() {
    let x = numbers(&EDGES);
    assert_eq!(x.neg().to_vec::<u32>(), EDGES.map(u32::wrapping_neg));
    assert_eq!(x.abs().to_vec::<u32>(), EDGES);
    assert_eq!(x.relu().to_vec::<u32>(), EDGES);
    assert_eq!(x.floor().to_vec::<u32>(), EDGES);
    assert_eq!(x.sign().to_vec::<u32>(), EDGES.map(|x| x.min(1)));
    assert_eq!(x.logical_not().to_vec::<bool>(), EDGES.map(|x| x == 0));
    assert_eq!(x.clamp(Some(2.0), Some(3e9)).to_vec::<u32>(), EDGES.map(|x| x.clamp(2, 3_000_000_000)));
}

#[test]
fn numbers_wrap_and_floats_saturate_on_their_way_into_a_tensor() {
    for (number, expected) in [(-1, u32::MAX), (1 << 32, 0), (i64::from(LARGE), LARGE), (i64::MIN, 0)] {
        assert_eq!(numbers(&[0]).add(number).to_vec::<u32>(), [expected], "0 + {number}");
        let padded = numbers(&[5]).pad(&[(0, 1)], number);
        assert_eq!(padded.to_vec::<u32>(), [5, expected], "padded with {number}");
    }
    for (number, expected) in [(-1.5, 0), (5e9, u32::MAX), (3e9, 3_000_000_000), (1.9, 1), (f64::NAN, 0)] {
        assert_eq!(
            numbers(&[5]).pad(&[(1, 0)], number).to_vec::<u32>(),
            [expected, 5],
            "padded with {number}"
        );
    }
    assert_eq!(Tensor::from_vec(vec![1u8], [1]).pad(&[(0, 1)], -1).to_vec::<u8>(), [1, 255]);
}

/// As in PyTorch: negative numbers wrap around as far as the type reaches.
#[test]
fn a_tensor_is_full_only_of_numbers_that_its_type_reaches() {
    let full = |number: Scalar, dtype| Tensor::try_full_of([1], number, dtype);
    for (number, expected) in [
        (Scalar::Int(-1), u32::MAX),
        (Scalar::Int(LARGE.into()), LARGE),
        (Scalar::Float(3e9), 3_000_000_000),
        (Scalar::Float(1.9), 1),
        (Scalar::Float(-0.5), 0),
    ] {
        assert_eq!(full(number, DType::U32).unwrap().to_vec::<u32>(), [expected], "{number:?}");
    }
    for (number, dtype) in [
        (Scalar::Int(1 << 32), DType::U32),
        (Scalar::Int(i64::MIN), DType::U32),
        (Scalar::Float(5e9), DType::U32),
        (Scalar::Float(f64::NAN), DType::U32),
        (Scalar::Float(300.5), DType::U8),
        (Scalar::Float(5e9), DType::I32),
    ] {
        let error = full(number, dtype).unwrap_err().to_string();
        assert!(error.contains(&format!("does not fit into {dtype}")), "{error}");
    }
}

#[test]
fn casts_from_floats_saturate() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let mut x = vec![0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 2_147_483_520.0, 2_147_483_648.0, 3e9, 4_294_967_040.0];
    x.extend([4_294_967_296.0, 5e9, 1e30, -1e30, inf, -inf, nan, -3e9, 255.9, 256.0]);
    for x in [&x[..], &x[1..]] {
        let floats = Tensor::vector(x);
        let expected: Vec<u32> = x.iter().map(|&x| x as u32).collect();
        assert_eq!(floats.to_dtype(DType::U32).to_vec::<u32>(), expected);
        let bytes: Vec<u8> = x.iter().map(|&x| x as u8).collect();
        assert_eq!(floats.to_dtype(DType::U8).to_vec::<u8>(), bytes);
    }
    let halves = Tensor::vector(&[65504.0, -1.0, inf]);
    assert_eq!(halves.to_dtype(DType::F16).to_dtype(DType::U32).to_vec::<u32>(), [65504, 0, u32::MAX]);
    assert_eq!(halves.to_dtype(DType::BF16).to_dtype(DType::U32).to_vec::<u32>(), [65536, 0, u32::MAX]);
}

#[test]
fn casts_to_and_from_integers_keep_the_bits() {
    let x = numbers(&EDGES);
    assert_eq!(x.to_dtype(DType::I32).to_vec::<i32>(), EDGES.map(|x| x as i32));
    assert_eq!(x.to_dtype(DType::I32).to_dtype(DType::U32).to_vec::<u32>(), EDGES);
    assert_eq!(x.to_dtype(DType::U8).to_vec::<u8>(), EDGES.map(|x| x as u8));
    assert_eq!(x.to_dtype(DType::Bool).to_vec::<bool>(), EDGES.map(|x| x != 0));
    let bytes = Tensor::from_vec(vec![0u8, 128, 255], [3]);
    assert_eq!(bytes.to_dtype(DType::U32).to_vec::<u32>(), [0, 128, 255]);
    assert_eq!(Tensor::from_vec(vec![true, false], [2]).to_dtype(DType::U32).to_vec::<u32>(), [1, 0]);
    if available(DType::I64) == DType::I64 {
        assert_eq!(
            x.to_dtype(DType::I64).to_vec::<i64>(),
            EDGES.map(i64::from),
            "no number becomes negative"
        );
        let wide = Tensor::from_vec(vec![-1i64, 1 << 32 | 9, i64::MIN, i64::from(u32::MAX)], [4]);
        assert_eq!(wide.to_dtype(DType::U32).to_vec::<u32>(), [u32::MAX, 9, 0, u32::MAX]);
    }
}

#[test]
fn casts_to_floats_round_to_the_nearest() {
    // Ties and what is next to them, above 2³¹ as below.
    let more = [LARGE + 128, LARGE + 384, LARGE + 385, u32::MAX - 127, u32::MAX - 128, 16_777_219];
    let all: Vec<u32> = EDGES.into_iter().chain(more).collect();
    let floats: Vec<f32> = all.iter().map(|&x| x as f32).collect();
    assert_eq!(numbers(&all).to_dtype(DType::F32).to_vec::<f32>(), floats);
    assert_eq!(numbers(&all).to_vec::<f32>(), floats, "on the way to the host");
    assert_eq!(numbers(&[LARGE]).div(numbers(&[1 << 30])).to_vec::<f32>(), [2.0]);
    assert_eq!(numbers(&[65_504, 70_000]).to_dtype(DType::F16).to_vec::<f32>(), [65504.0, f32::INFINITY]);
    assert_eq!(numbers(&[u32::MAX]).to_dtype(DType::BF16).to_vec::<f32>(), [4_294_967_296.0]);
    if !default_device().is_gpu() {
        let exact: Vec<f64> = all.iter().map(|&x| f64::from(x)).collect();
        assert_eq!(numbers(&all).to_dtype(DType::F64).to_vec::<f64>(), exact);
    }
}

#[test]
fn sums_are_wide_and_extrema_are_the_types_own() {
    // Few, a row that one workgroup folds, and one that several share.
    for count in [50, 3000, 300_000] {
        let x = scattered(count);
        let t = numbers(&x);
        let total: i64 = x.iter().map(|&x| i64::from(x)).sum();
        assert_eq!(t.sum().dtype(), summed(DType::U32));
        if summed(DType::U32) == DType::I64 {
            assert_eq!(t.sum().item::<i64>(), total, "{count}");
        } else {
            assert_eq!(t.sum().item::<u32>(), total as u32, "{count}");
        }
        let (most, least) = (*x.iter().max().unwrap(), *x.iter().min().unwrap());
        assert!(most > LARGE);
        assert_eq!((t.max().dtype(), t.max().item::<u32>()), (DType::U32, most));
        assert_eq!(t.min().item::<u32>(), least);
        assert_eq!(t.argmax().item::<i32>() as usize, x.iter().position(|&x| x == most).unwrap());
        assert_eq!(t.argmin().item::<i32>() as usize, x.iter().position(|&x| x == least).unwrap());
    }
    assert_eq!(numbers(&[u32::MAX, LARGE]).min().item::<u32>(), LARGE, "nothing is below the first");
    let table = numbers(&scattered(600)).reshape([200, 3]);
    let expected: Vec<u32> =
        (0..3).map(|k| scattered(600).into_iter().skip(k).step_by(3).max().unwrap()).collect();
    assert_eq!(table.max_dim(0, false).to_vec::<u32>(), expected);
    let product = numbers(&[LARGE, 2, 3]).prod();
    assert_eq!(product.dtype(), summed(DType::U32));
    assert_eq!(product.item::<i64>(), if product.dtype() == DType::I64 { 6 << 31 } else { 0 });
}

#[test]
fn running_sums_are_those_of_sums() {
    for count in [4, 20_000] {
        let x = scattered(count);
        let sums = numbers(&x).cumsum(0);
        assert_eq!(sums.dtype(), summed(DType::U32));
        let mut total = 0i64;
        let expected: Vec<i64> = x
            .iter()
            .map(|&x| {
                total += i64::from(x);
                total
            })
            .collect();
        if sums.dtype() == DType::I64 {
            assert_eq!(sums.to_vec::<i64>(), expected);
        } else {
            let wrapped: Vec<u32> = expected.iter().map(|&x| x as u32).collect();
            assert_eq!(sums.to_vec::<u32>(), wrapped);
        }
    }
}

#[test]
fn large_numbers_are_ordered_after_small_ones() {
    // Lines that one workgroup sorts, and those whose parts are merged.
    for count in [14, 900, 6000] {
        let mut x = scattered(count);
        x[..14].copy_from_slice(&EDGES);
        let t = numbers(&x);
        for descending in [false, true] {
            let mut order: Vec<i32> = (0..count as i32).collect();
            let key = |k: i32| if descending { !x[k as usize] } else { x[k as usize] };
            order.sort_by_key(|&k| key(k));
            let sorted: Vec<u32> = order.iter().map(|&k| x[k as usize]).collect();
            let (values, index) = t.sort(0, descending);
            assert_eq!(index.to_vec::<i32>(), order, "{count}, descending {descending}");
            assert_eq!((values.dtype(), values.to_vec::<u32>()), (DType::U32, sorted.clone()));
            let (top, _) = t.topk(5, 0, descending);
            assert_eq!(top.to_vec::<u32>(), sorted[..5]);
        }
    }
    assert_eq!(numbers(&[LARGE, 1, u32::MAX]).median().item::<u32>(), LARGE);
}

#[test]
fn products_of_matrices_wrap_around() {
    let (m, k, n) = (5usize, 7usize, 6usize);
    let (a, b) = (scattered(35), scattered(80)[38..].to_vec());
    let expected: Vec<u32> = (0..m * n)
        .map(|at| {
            let (i, j) = (at / n, at % n);
            (0..k).fold(0u32, |sum, l| sum.wrapping_add(a[i * k + l].wrapping_mul(b[l * n + j])))
        })
        .collect();
    let product = numbers(&a).reshape([m, k]).matmul(&numbers(&b).reshape([k, n]));
    assert_eq!((product.dtype(), product.to_vec::<u32>()), (DType::U32, expected.clone()));
    let finished: Vec<f32> = expected.iter().map(|&x| x as f32 * 0.5).collect();
    assert_eq!(product.mul(0.5).to_vec::<f32>(), finished);
}

#[test]
fn values_are_added_up_at_their_places_and_wrap_around() {
    // Few places, for which every sum is taken directly, and many, for which the index is sorted first.
    for (count, extent) in [(12, 3), (5000, 7), (5000, 1200)] {
        let values = scattered(count);
        let places: Vec<u32> = (0..count).map(|k| k.wrapping_mul(2_654_435_761) % extent).collect();
        let mut expected = vec![1u32; extent as usize];
        for (&place, &value) in places.iter().zip(&values) {
            let sum = &mut expected[place as usize];
            *sum = sum.wrapping_add(value);
        }
        let start = Tensor::full_of([extent as usize], 1, DType::U32);
        let sums = start.scatter_add(0, &numbers(&places), &numbers(&values));
        assert_eq!(sums.to_vec::<u32>(), expected, "{count} at {extent} places");
    }
}

#[test]
fn rows_of_a_table_are_looked_up_and_trained() {
    let table = Tensor::arange(0, 12).to_dtype(DType::F32).reshape([4, 3]).requires_grad(true);
    let rows = table.embedding(&numbers(&[3, 0, 3]));
    assert_eq!(rows.to_vec::<f32>(), [9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 9.0, 10.0, 11.0]);
    rows.sum().backward();
    let gradient = table.grad().expect("a gradient").to_vec::<f32>();
    assert_eq!(gradient, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0]);
}

#[test]
fn classes_may_be_unsigned() {
    let logits = Tensor::arange(0, 20).to_dtype(DType::F32).sin().reshape([4, 5]);
    let classes = [4u32, 0, 2, 1];
    let (unsigned, signed) = (numbers(&classes), numbers(&classes).to_dtype(DType::I32));
    let log = logits.log_softmax(1);
    let both = |loss: fn(&Tensor, &Tensor) -> Tensor, x: &Tensor| {
        [&unsigned, &signed].map(|classes| loss(x, classes).item::<f32>())
    };
    for [unsigned, signed] in [both(cross_entropy, &logits), both(nll_loss, &log), both(accuracy, &logits)] {
        assert_eq!(unsigned, signed);
        assert!(signed.is_finite());
    }
    // Without one of them.
    let options = CrossEntropyOptions { ignore_index: Some(2), ..Default::default() };
    let [left, right] =
        [&unsigned, &signed].map(|classes| cross_entropy_with(&logits, classes, options).item::<f32>());
    assert_eq!(left, right);
    assert_ne!(left, cross_entropy(&logits, &unsigned).item::<f32>());
    // What -100 wraps around to is a class that there is not, and not one that is left out.
    let wrapped = numbers(&[4, 0, 2, (-100i32) as u32]);
    assert_eq!(
        accuracy(&logits, &wrapped).item::<f32>(),
        accuracy(&logits, &numbers(&[4, 0, 2, 9])).item::<f32>()
    );
}

#[test]
fn pieces_are_joined_chosen_and_moved_as_they_are() {
    let x = numbers(&EDGES);
    let joined = Tensor::cat(&[x.clone(), numbers(&[LARGE, 5])], 0);
    assert_eq!(joined.to_vec::<u32>(), [&EDGES[..], &[LARGE, 5]].concat());
    let flipped: Vec<u32> = EDGES.into_iter().rev().collect();
    assert_eq!(x.flip(0).to_vec::<u32>(), flipped);
    let small = x.lt(i64::from(LARGE));
    assert_eq!(
        small.where_(&x, u32::MAX).to_vec::<u32>(),
        EDGES.map(|x| if x < LARGE { x } else { u32::MAX })
    );
    assert_eq!(x.masked_fill(&small, 1).to_vec::<u32>(), EDGES.map(|x| if x < LARGE { 1 } else { x }));
    assert_eq!(x.narrow(0, 10, 1).item::<u32>(), LARGE);
    assert_eq!(x.narrow(0, 10, 1).item::<i64>(), 1 << 31);
    assert_eq!(x.narrow(0, 10, 1).item::<f64>(), 2_147_483_648.0);
    assert_eq!(format!("{:?}", x.to_device(volta::Device::Cpu)), "Tensor(u32 [14] on cpu)");
}

#[test]
fn signed_and_unsigned_meet_in_a_type_that_holds_both() {
    let (x, bytes) = (numbers(&[LARGE, 1]), Tensor::from_vec(vec![255u8, 1], [2]));
    let sum = x.add(&bytes);
    assert_eq!((sum.dtype(), sum.to_vec::<u32>()), (DType::U32, vec![LARGE + 255, 2]));
    let signed = Tensor::from_vec(vec![-1i32, -2], [2]);
    if available(DType::I64) == DType::I64 {
        let sum = x.add(&signed);
        assert_eq!((sum.dtype(), sum.to_vec::<i64>()), (DType::I64, vec![(1 << 31) - 1, -1]));
        assert_eq!(signed.lt(&x).to_vec::<bool>(), [true, true]);
    } else {
        let error = x.try_add(&signed).unwrap_err();
        assert!(error.message().contains("does not compute in i64"), "{error}");
    }
    assert_eq!(x.add(0.5).dtype(), DType::F32);
}
