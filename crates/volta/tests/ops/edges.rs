//! PyTorch's answers at the edges of floats: NaN, infinities, signed zeros, ties, empty tensors.

use volta::{DType, Tensor, realize_all};
use volta_testing::test;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Panics unless the elements are the expected ones: NaN where NaN is expected, zeros of the same sign.
#[track_caller]
pub fn assert_elements(what: &str, actual: &Tensor, expected: &[f32]) {
    let actual: Vec<f32> = actual.to_vec();
    let same = |a: f32, e: f32| {
        (a.is_nan() && e.is_nan()) || (a == e && a.is_sign_negative() == e.is_sign_negative())
    };
    let all = actual.len() == expected.len() && actual.iter().zip(expected).all(|(&a, &e)| same(a, e));
    assert!(all, "{what}: {actual:?}, expected {expected:?}");
}

#[track_caller]
fn assert_grad(what: &str, leaf: &Tensor, expected: &[f32]) {
    assert_elements(what, &leaf.grad().expect("a gradient"), expected);
}

type Unary = fn(&Tensor) -> Tensor;

#[test]
fn unary_ops_at_special_values() {
    let x = [NAN, INF, -INF, 0.0, -0.0, -1.0];
    let table: &[(&str, Unary, [f32; 6])] = &[
        ("neg", Tensor::neg, [NAN, -INF, INF, -0.0, 0.0, 1.0]),
        ("abs", Tensor::abs, [NAN, INF, INF, 0.0, 0.0, 1.0]),
        ("recip", Tensor::recip, [NAN, 0.0, -0.0, INF, -INF, -1.0]),
        ("sqrt", Tensor::sqrt, [NAN, INF, NAN, 0.0, -0.0, NAN]),
        ("rsqrt", Tensor::rsqrt, [NAN, 0.0, NAN, INF, -INF, NAN]),
        ("log", Tensor::log, [NAN, INF, NAN, -INF, -INF, NAN]),
        ("log2", Tensor::log2, [NAN, INF, NAN, -INF, -INF, NAN]),
        ("log1p", Tensor::log1p, [NAN, INF, NAN, 0.0, -0.0, -INF]),
        ("relu", Tensor::relu, [NAN, INF, 0.0, 0.0, 0.0, 0.0]),
        ("tanh", Tensor::tanh, [NAN, 1.0, -1.0, 0.0, -0.0, -0.761_594_2]),
        ("floor", Tensor::floor, [NAN, INF, -INF, 0.0, -0.0, -1.0]),
        ("ceil", Tensor::ceil, [NAN, INF, -INF, 0.0, -0.0, -1.0]),
        ("round", Tensor::round, [NAN, INF, -INF, 0.0, -0.0, -1.0]),
        ("trunc", Tensor::trunc, [NAN, INF, -INF, 0.0, -0.0, -1.0]),
    ];
    for (name, call, expected) in table {
        let found = call(&Tensor::vector(&x)).to_vec::<f32>();
        let close = |a: f32, e: f32| (a.is_nan() && e.is_nan()) || a == e || (a - e).abs() < 1e-6;
        // The sign of a zero of relu and of abs is not promised beyond what IEEE says of max and |x|.
        let signs = *name != "relu";
        for ((&a, &e), &x) in found.iter().zip(expected).zip(&x) {
            assert!(close(a, e), "{name}({x:?}) is {a:?}, expected {e:?}");
            if signs && e == 0.0 {
                assert_eq!(
                    a.is_sign_negative(),
                    e.is_sign_negative(),
                    "{name}({x:?}) is {a:?}, expected {e:?}"
                );
            }
        }
    }
    let exp = Tensor::vector(&[NAN, INF, -INF, 0.0, -0.0, 1000.0, -1000.0]);
    assert_elements("exp", &exp.exp(), &[NAN, INF, 0.0, 1.0, 1.0, INF, 0.0]);
    assert_elements("exp2", &exp.exp2(), &[NAN, INF, 0.0, 1.0, 1.0, INF, 0.0]);
    assert_elements("expm1", &exp.expm1(), &[NAN, INF, -1.0, 0.0, -0.0, INF, -1.0]);
    assert_elements("sigmoid", &exp.sigmoid(), &[NAN, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]);
    assert_elements("erf", &exp.erf(), &[NAN, 1.0, -1.0, 0.0, -0.0, 1.0, -1.0]);
    assert_elements("erfc", &exp.erfc(), &[NAN, 0.0, 2.0, 1.0, 1.0, 0.0, 2.0]);
    for (name, call) in [("sin", Tensor::sin as Unary), ("cos", Tensor::cos)] {
        assert_elements(name, &call(&Tensor::vector(&[NAN, INF, -INF])), &[NAN, NAN, NAN]);
    }
}

#[test]
fn the_sign_of_zero_and_of_nan_is_zero() {
    let x = Tensor::vector(&[-3.0, -0.0, 0.0, 5.0, INF, -INF, NAN, -NAN]);
    let expected = [-1.0, 0.0, 0.0, 1.0, 1.0, -1.0, 0.0, 0.0];
    assert_eq!(x.sign().to_vec::<f32>(), expected);
    assert_eq!(x.to_dtype(DType::F16).sign().to_dtype(DType::F32).to_vec::<f32>(), expected);
    let x = x.requires_grad(true);
    x.abs().sum().backward();
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), expected, "the slope of |x|");
}

#[test]
fn halves_round_to_even() {
    let x = Tensor::vector(&[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 8_388_609.0, 0.499_999_97]);
    assert_elements("round", &x.round(), &[0.0, 2.0, 2.0, -0.0, -2.0, -2.0, 8_388_609.0, 0.0]);
    assert_elements("trunc", &Tensor::vector(&[1.9, -1.9, -0.5]).trunc(), &[1.0, -1.0, -0.0]);
    assert_elements("floor", &Tensor::vector(&[1.9, -1.1, -0.5]).floor(), &[1.0, -2.0, -1.0]);
    assert_elements("ceil", &Tensor::vector(&[1.1, -1.9, -0.5]).ceil(), &[2.0, -1.0, -0.0]);
}

#[test]
fn products_and_quotients_at_zero_and_infinity() {
    let a = Tensor::vector(&[0.0, 1.0, -1.0, 0.0, INF, 0.0]);
    let b = Tensor::vector(&[INF, 0.0, 0.0, 0.0, INF, -1.0]);
    assert_elements("mul", &(&a * &b), &[NAN, 0.0, -0.0, 0.0, INF, -0.0]);
    assert_elements("div", &(&a / &b), &[0.0, INF, -INF, NAN, NAN, -0.0]);
    assert_elements("add", &(&a + &b), &[INF, 1.0, -1.0, 0.0, INF, -1.0]);
    assert_elements("sub", &(&a - &b), &[-INF, 1.0, -1.0, 0.0, NAN, 1.0]);
    assert_elements("-0 + 0", &(Tensor::vector(&[-0.0, -0.0]) + Tensor::vector(&[0.0, -0.0])), &[0.0, -0.0]);
    // Adding or multiplying by neutral constants may be left out, but not what they do to zeros and NaN.
    let x = Tensor::vector(&[-0.0, NAN, INF, 0.0]);
    assert_elements("x + 0", &(&x + 0.0), &[0.0, NAN, INF, 0.0]);
    assert_elements("x - 0", &(&x - 0.0), &[-0.0, NAN, INF, 0.0]);
    assert_elements("x * 1", &(&x * 1.0), &[-0.0, NAN, INF, 0.0]);
    assert_elements("x * 0", &(&x * 0.0), &[-0.0, NAN, NAN, 0.0]);
    assert_elements("x / 1", &(&x / 1.0), &[-0.0, NAN, INF, 0.0]);
    assert_elements("0 - x", &(0.0 - &x), &[0.0, NAN, -INF, 0.0]);
    assert_elements("0 * x", &(0.0 * &x), &[-0.0, NAN, NAN, 0.0]);
    let same = &x;
    assert_elements("x - x", &(&x - same), &[0.0, NAN, NAN, 0.0]);
}

#[test]
fn powers_at_zero_one_and_below_zero() {
    let table: &[(f32, f32, f32)] = &[
        (0.0, 0.0, 1.0),
        (NAN, 0.0, 1.0),
        (INF, 0.0, 1.0),
        (1.0, NAN, 1.0),
        (0.0, 2.0, 0.0),
        (0.0, -1.0, INF),
        (-2.0, 2.0, 4.0),
        (-2.0, 3.0, -8.0),
        (-2.0, 0.5, NAN),
        (-1.0, INF, 1.0),
        (2.0, -INF, 0.0),
        (0.5, INF, 0.0),
        (-0.0, 3.0, -0.0),
    ];
    let base: Vec<f32> = table.iter().map(|t| t.0).collect();
    let exponent: Vec<f32> = table.iter().map(|t| t.1).collect();
    let expected: Vec<f32> = table.iter().map(|t| t.2).collect();
    assert_elements("pow", &Tensor::vector(&base).pow(Tensor::vector(&exponent)), &expected);
    for (base, exponent, expected) in table {
        assert_elements("pow by a number", &Tensor::vector(&[*base]).pow(*exponent), &[*expected]);
    }
}

#[test]
fn gradients_of_powers_at_zero_are_finite() {
    let x = Tensor::vector(&[0.0, 0.0, 0.0, 2.0]).requires_grad(true);
    let y = Tensor::vector(&[0.0, 1.0, 2.0, 3.0]).requires_grad(true);
    x.pow(&y).sum().backward();
    assert_grad("base", &x, &[0.0, 1.0, 0.0, 12.0]);
    let g = y.grad().expect("a gradient").to_vec::<f32>();
    assert_eq!(g[..3], [0.0, 0.0, 0.0], "PyTorch gives 0 for 0ʸ where y ≥ 0");
    assert!((g[3] - 8.0 * 2f32.ln()).abs() < 1e-5, "{g:?}");
    let x = Tensor::vector(&[0.0]).requires_grad(true);
    x.pow(2.0).sum().backward();
    assert_grad("x² at 0", &x, &[0.0]);
}

#[test]
fn nan_wins_in_maximum_and_minimum_from_either_side() {
    let a = Tensor::vector(&[NAN, 1.0, NAN, -INF]);
    let b = Tensor::vector(&[1.0, NAN, NAN, INF]);
    assert_elements("maximum", &a.maximum(&b), &[NAN, NAN, NAN, INF]);
    assert_elements("minimum", &a.minimum(&b), &[NAN, NAN, NAN, -INF]);
}

#[test]
fn nan_wins_in_max_min_and_their_positions() {
    for place in [0usize, 1, 4, 17, 36] {
        let mut data: Vec<f32> = (0..37).map(|k| k as f32).collect();
        data[place] = NAN;
        let x = Tensor::vector(&data);
        assert_elements("max", &x.max(), &[NAN]);
        assert_elements("min", &x.min(), &[NAN]);
        assert_eq!(x.argmax().item::<i32>(), place as i32, "argmax");
        assert_eq!(x.argmin().item::<i32>(), place as i32, "argmin");
        let columns = Tensor::from_vec(data.clone(), [37, 1]).expand([37, 3]);
        assert_elements("max of columns", &columns.max_dim(0, false), &[NAN; 3]);
        assert_eq!(columns.argmin_dim(0, false).to_vec::<i32>(), [place as i32; 3]);
    }
}

#[test]
fn comparisons_with_nan_are_false_and_unequal() {
    let (a, b) = (Tensor::vector(&[NAN, NAN, 1.0]), Tensor::vector(&[NAN, 1.0, NAN]));
    for (name, found) in
        [("lt", a.lt(&b)), ("le", a.le(&b)), ("gt", a.gt(&b)), ("ge", a.ge(&b)), ("eq", a.eq(&b))]
    {
        assert_eq!(found.to_vec::<bool>(), [false; 3], "{name}");
    }
    assert_eq!(a.ne(&b).to_vec::<bool>(), [true; 3]);
    assert_eq!(a.isnan().to_vec::<bool>(), [true, true, false]);
    assert_eq!(a.ge(0.0).to_vec::<bool>(), [false, false, true]);
    // Not less is not the same as at least, where NaN is about.
    assert_eq!(a.lt(0.0).logical_not().to_vec::<bool>(), [true, true, true]);
    assert_eq!(Tensor::vector(&[0.0]).eq(-0.0).to_vec::<bool>(), [true]);
}

#[test]
fn where_ignores_what_it_does_not_pick() {
    let c = Tensor::from_vec(vec![true, false], [2]);
    assert_elements(
        "where",
        &c.where_(Tensor::vector(&[1.0, NAN]), Tensor::vector(&[INF, 2.0])),
        &[1.0, 2.0],
    );
    // The gradient of the branch that was not taken must not leak as 0 · ∞.
    let x = Tensor::vector(&[0.0, 4.0]).requires_grad(true);
    x.gt(1.0).where_(x.sqrt(), &x).sum().backward();
    let g = x.grad().expect("a gradient").to_vec::<f32>();
    assert_eq!(g[1], 0.25);
    assert!(g[0].is_nan(), "PyTorch too gives 0 · ∞ = NaN here: {g:?}");
}

#[test]
fn ties_share_or_halve_or_take_the_first() {
    let x = Tensor::vector(&[2.0, 1.0, 2.0, 2.0]).requires_grad(true);
    x.max().backward();
    assert_grad("max shares among ties", &x, &[1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]);
    let (a, b) = (
        Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true),
        Tensor::vector(&[1.0, 3.0, 2.0]).requires_grad(true),
    );
    a.maximum(&b).sum().backward();
    assert_grad("maximum halves", &a, &[0.5, 0.0, 1.0]);
    assert_grad("maximum halves", &b, &[0.5, 1.0, 0.0]);
    assert_eq!(Tensor::vector(&[1.0, 5.0, 5.0]).argmax().item::<i32>(), 1);
    assert_eq!(Tensor::vector(&[3.0, 1.0, 1.0]).argmin().item::<i32>(), 1);
    let flat = Tensor::zeros([5, 40]);
    assert_eq!(flat.argmax().item::<i32>(), 0);
    assert_eq!(flat.argmax_dim(1, false).to_vec::<i32>(), [0; 5]);
    assert_eq!(flat.argmin_dim(0, false).to_vec::<i32>(), [0; 40]);
}

#[test]
fn gradients_at_kinks_are_pytorchs() {
    let table: &[(&str, Unary, [f32; 3])] = &[
        ("relu", Tensor::relu, [0.0, 0.0, 1.0]),
        ("abs", Tensor::abs, [-1.0, 0.0, 1.0]),
        ("sign", Tensor::sign, [0.0, 0.0, 0.0]),
        ("maximum(0)", |x| x.maximum(0.0), [0.0, 0.5, 1.0]),
        ("floor", Tensor::floor, [0.0, 0.0, 0.0]),
        ("clamp(0, 1)", |x| x.clamp(Some(0.0), Some(1.0)), [0.0, 0.0, 0.0]),
        ("clamp(0, 2)", |x| x.clamp(Some(0.0), Some(2.0)), [0.0, 0.0, 1.0]),
        ("clamp(none, 0)", |x| x.clamp(None, Some(0.0)), [1.0, 0.0, 0.0]),
        ("hardtanh(0, 2)", |x| x.hardtanh(0.0, 2.0), [0.0, 0.0, 1.0]),
        ("leaky_relu(0.25)", |x| x.leaky_relu(0.25), [0.25, 0.25, 1.0]),
    ];
    for (name, call, expected) in table {
        let x = Tensor::vector(&[-1.0, 0.0, 1.0]).requires_grad(true);
        call(&x).sum().backward();
        let found = x.grad().expect("a gradient").to_vec::<f32>();
        assert_eq!(found, expected, "{name}");
    }
    let x = Tensor::vector(&[0.0]).requires_grad(true);
    x.sqrt().sum().backward();
    assert_grad("sqrt at 0", &x, &[INF]);
}

#[test]
fn uniform_halves_are_below_one() {
    for dtype in [DType::F16, DType::BF16] {
        let x = Tensor::zeros([50_000]).to_dtype(dtype).rand_like().to_dtype(DType::F32).to_vec::<f32>();
        let most = x.iter().copied().fold(0.0, f32::max);
        let mean = x.iter().sum::<f32>() / x.len() as f32;
        assert!(x.iter().all(|x| (0.0..1.0).contains(x)) && most > 0.99, "{dtype}: {most}");
        assert!((mean - 0.5).abs() < 0.01, "{dtype}: {mean}");
    }
}

/// The number may lie out of their range where the result does not, as in PyTorch.
#[test]
fn halves_meet_numbers_that_they_do_not_hold() {
    for dtype in [DType::F16, DType::BF16] {
        let of = |x: f32| Tensor::from_vec(vec![x], [1]).to_dtype(dtype);
        let near = |what: &str, found: Tensor, expected: f32| {
            assert_eq!(found.dtype(), dtype);
            let found = found.to_vec::<f32>()[0];
            assert!(
                (found - expected).abs() <= 0.004 * expected.abs(),
                "{what} in {dtype}: {found}, not {expected}"
            );
        };
        near("product", of(0.25).mul(65536.0), 16384.0);
        near("product from the left", 65536.0 * of(0.25), 16384.0);
        near("quotient", of(1000.0).div(1e5), 0.01);
        near("quotient from the left", 1e5 / of(1000.0), 100.0);
        near(
            "difference from the left",
            70_000.0 - of(60_000.0),
            if dtype == DType::F16 { 10_000.0 } else { 10_096.0 },
        );
        near("power", of(-4.0).pow(3), -64.0);
        let x = of(0.5).requires_grad(true);
        (&x * 1e-3).sum().to_dtype(DType::F32).mul(1e3).backward();
        near("gradient", x.grad().expect("a gradient"), 1.0);
    }
}

#[test]
fn reductions_of_nothing_are_neutral_or_errors() {
    let none = Tensor::zeros([0]);
    assert_eq!(none.sum().item::<f32>(), 0.0);
    assert_eq!(none.prod().item::<f32>(), 1.0);
    assert!(none.mean().item::<f32>().is_nan());
    assert!(!none.any().item::<bool>());
    assert!(none.all().item::<bool>());
    assert_elements("logsumexp", &none.logsumexp(0, false), &[-INF]);
    for (name, error) in [
        ("max", none.try_max().err()),
        ("min", none.try_min().err()),
        ("argmax", none.try_argmax().err()),
        ("argmin", none.try_argmin().err()),
        ("max_dim", Tensor::zeros([2, 0]).try_max_dim(1, false).err()),
    ] {
        assert!(error.is_some(), "{name} of nothing is an error");
    }
    // Of no rows there is nothing to fold, and no error.
    let none = |shape: &[usize]| Tensor::from_vec(Vec::<f32>::new(), shape);
    assert_eq!(none(&[0, 5, 7]).sum_dim([0, 1], false).to_vec::<f32>(), [0.0; 7], "down columns");
    assert_eq!(none(&[0, 1 << 20]).exp().sum_dim(0, false).to_vec::<f32>(), vec![0.0; 1 << 20]);
    assert_eq!(none(&[3, 0]).exp().prod_dim(1, false).to_vec::<f32>(), [1.0; 3]);
    assert_eq!(none(&[0]).pad(&[(1, 2)], 4.0).to_vec::<f32>(), [4.0; 3]);
    // A number that is computed beside a sum of no rows.
    let number = Tensor::from_vec(vec![3f32], [0usize; 0]) * 2.0;
    let sums = (&none(&[0, 5]) * &number).sum_dim(1, false);
    realize_all(&[number.clone(), sums]);
    assert_eq!(number.item::<f32>(), 6.0);
    // A row that is computed beside sums of nothing.
    let row = Tensor::from_vec(vec![1f32, 2.0, 3.0], [3, 1]) * 2.0;
    let sums = (&none(&[3, 0]) + &row).sum_dim(1, false);
    realize_all(&[row.clone(), sums.clone()]);
    assert_eq!((row.to_vec::<f32>(), sums.to_vec::<f32>()), (vec![2.0, 4.0, 6.0], vec![0.0; 3]));
    assert_eq!(Tensor::zeros([0, 3]).max_dim(1, false).shape()[..], [0]);
    assert_eq!(Tensor::zeros([0, 3]).sum_dim(0, false).to_vec::<f32>(), [0.0; 3]);
    assert_eq!(Tensor::zeros([3, 0]).prod_dim(1, true).to_vec::<f32>(), [1.0; 3]);
    assert_eq!(Tensor::zeros([3, 0]).matmul(&Tensor::zeros([0, 2])).to_vec::<f32>(), [0.0; 6]);
}

#[test]
fn softmax_and_logsumexp_at_extremes() {
    let large = Tensor::vector(&[1000.0, 1000.0, -1000.0]);
    assert_elements("softmax", &large.softmax(0), &[0.5, 0.5, 0.0]);
    assert_elements("logsumexp", &large.logsumexp(0, false), &[1000.0 + 2f32.ln()]);
    let hidden = Tensor::vector(&[-INF, 0.0, -INF]);
    assert_elements("softmax with -inf", &hidden.softmax(0), &[0.0, 1.0, 0.0]);
    assert_elements("logsumexp of -inf", &Tensor::vector(&[-INF, -INF]).logsumexp(0, false), &[-INF]);
    assert_elements("logsumexp of inf", &Tensor::vector(&[INF, 1.0]).logsumexp(0, false), &[INF]);
    assert_elements("logsumexp of nan", &Tensor::vector(&[NAN, 1.0]).logsumexp(0, false), &[NAN]);
    assert_elements("softmax of -inf alone", &Tensor::vector(&[-INF, -INF]).softmax(0), &[NAN, NAN]);
    assert_elements("log_softmax", &large.log_softmax(0), &[-(2f32.ln()), -(2f32.ln()), -2000.0 - 2f32.ln()]);
}

#[test]
fn spreads_of_one_element_are_nan_with_correction_and_zero_without() {
    let one = Tensor::vector(&[3.0]);
    assert!(one.var(1).item::<f32>().is_nan());
    assert_eq!(one.var(0).item::<f32>(), 0.0);
    assert!(one.std(1).item::<f32>().is_nan());
    assert_elements("var_dim", &Tensor::ones([2, 1]).var_dim(1, 1, false), &[NAN, NAN]);
}

#[test]
fn sorting_puts_nan_last_and_keeps_ties_in_order() {
    let x = Tensor::vector(&[2.0, NAN, 1.0, 2.0, -INF]);
    let (values, places) = x.sort(0, false);
    assert_elements("ascending", &values, &[-INF, 1.0, 2.0, 2.0, NAN]);
    assert_eq!(places.to_vec::<i32>(), [4, 2, 0, 3, 1]);
    let (values, places) = x.sort(0, true);
    assert_elements("descending", &values, &[NAN, 2.0, 2.0, 1.0, -INF]);
    assert_eq!(places.to_vec::<i32>(), [1, 0, 3, 2, 4]);
    assert_eq!(x.topk(1, 0, true).1.to_vec::<i32>(), [1], "NaN is the largest");
    assert!(x.median().item::<f32>().is_nan());
}

#[test]
fn half_precision_overflows_and_rounds_as_ieee_says() {
    let f16 = |x: f32| Tensor::vector(&[x]).to_dtype(DType::F16);
    assert_elements("beyond the range", &f16(65520.0), &[INF]);
    assert_elements("the largest", &f16(65519.0), &[65504.0]);
    assert_elements("the smallest", &f16(5.960_464_5e-8), &[5.960_464_5e-8]);
    assert_elements("below the smallest", &f16(2.0e-8), &[0.0]);
    assert_elements("halfway, to even", &f16(2049.0), &[2048.0]);
    assert_elements("a sum that overflows", &(f16(60000.0) + f16(60000.0)), &[INF]);
    let bf16 = |x: f32| Tensor::vector(&[x]).to_dtype(DType::BF16);
    assert_elements("halfway, to even", &bf16(257.0), &[256.0]);
    assert_elements("halfway, to even", &bf16(259.0), &[260.0]);
    assert_elements("nan", &bf16(NAN), &[NAN]);
    // Rounded after every op, whether fused or not.
    let one = f16(1.0);
    assert_elements("2048 + 1 + 1", &(f16(2048.0) + &one + &one), &[2048.0]);
    let large = f16(60000.0);
    assert_elements("an overflow on the way", &((&large + &large) * 0.0), &[NAN]);
    // A sum is kept wide until its end.
    assert_elements("the sum of many", &Tensor::ones([4096]).to_dtype(DType::F16).sum(), &[4096.0]);
}

/// Beside what is looked up lies padding, far from the table.
#[test]
fn what_is_looked_up_can_be_padded() {
    let table = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], [2, 2]).realize().clone();
    let rows = Tensor::from_vec(vec![1i32], [1]).realize().clone();
    let padded = table.index_select(0, &rows).pad(&[(0, 0), (1 << 24, 3)], 0.0);
    assert_eq!(padded.sum().item::<f32>(), 7.0);
    let left = Tensor::full([1, 3], 5.0);
    let joined = Tensor::cat(&[&left, &table.index_select(0, &rows)], 1);
    assert_eq!(joined.to_vec::<f32>(), [5.0, 5.0, 5.0, 3.0, 4.0]);
}
