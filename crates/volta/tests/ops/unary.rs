//! Elementwise ops of one operand.

use crate::reference::{erf, erfc, sigmoid};
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

type Method = fn(&Tensor) -> Tensor;

/// No axis at all, an empty one, odd sizes, one that needs several vectors and several threads.
const SHAPES: &[&[&[usize]]] =
    &[&[&[3, 5]], &[&[]], &[&[0]], &[&[2, 0, 3]], &[&[2, 1, 7]], &[&[67]], &[&[90, 401]]];

fn rows() -> Vec<Row> {
    const R: Values = Between(-2.0, 2.0);
    const POSITIVE: Values = Between(0.2, 4.0);
    const APART: Values = AwayFromZero(0.3, 3.0);
    // Name, call, reference, values, types, result's type for integers.
    let table: &[(&str, Method, fn(f64) -> f64, Values, &'static [DType], Gives)] = &[
        ("neg", Tensor::neg, |x| -x, R, NUMBERS, Gives::Same),
        ("recip", Tensor::recip, |x| 1.0 / x, APART, NUMBERS, Gives::Float),
        ("sqrt", Tensor::sqrt, f64::sqrt, POSITIVE, ALL, Gives::Float),
        ("rsqrt", Tensor::rsqrt, |x| 1.0 / x.sqrt(), POSITIVE, NUMBERS, Gives::Float),
        ("exp", Tensor::exp, f64::exp, R, ALL, Gives::Float),
        ("expm1", Tensor::expm1, f64::exp_m1, R, FLOATS, Gives::Float),
        ("log", Tensor::log, f64::ln, POSITIVE, NUMBERS, Gives::Float),
        ("log1p", Tensor::log1p, f64::ln_1p, Between(-0.6, 3.0), FLOATS, Gives::Float),
        ("exp2", Tensor::exp2, f64::exp2, R, ALL, Gives::Float),
        ("log2", Tensor::log2, f64::log2, POSITIVE, NUMBERS, Gives::Float),
        ("sin", Tensor::sin, f64::sin, Between(-4.0, 4.0), NUMBERS, Gives::Float),
        ("cos", Tensor::cos, f64::cos, Between(-4.0, 4.0), NUMBERS, Gives::Float),
        ("tanh", Tensor::tanh, f64::tanh, R, NUMBERS, Gives::Float),
        ("sigmoid", Tensor::sigmoid, sigmoid, Between(-5.0, 5.0), ALL, Gives::Float),
        ("erf", Tensor::erf, erf, Between(-3.0, 3.0), FLOATS, Gives::Float),
        ("erfc", Tensor::erfc, erfc, Between(-3.0, 3.0), FLOATS, Gives::Float),
        ("relu", Tensor::relu, |x| x.max(0.0), APART, NUMBERS, Gives::Same),
        ("abs", Tensor::abs, f64::abs, APART, NUMBERS, Gives::Same),
        ("sign", Tensor::sign, sign, APART, NUMBERS, Gives::Same),
        ("floor", Tensor::floor, f64::floor, OffIntegers, ALL, Gives::Same),
        ("ceil", Tensor::ceil, f64::ceil, OffIntegers, ALL, Gives::Same),
        ("round", Tensor::round, f64::round_ties_even, OffIntegers, ALL, Gives::Same),
        ("trunc", Tensor::trunc, f64::trunc, OffIntegers, ALL, Gives::Same),
        ("square", Tensor::square, |x| x * x, R, NUMBERS, Gives::Same),
    ];
    let mut rows: Vec<Row> = table
        .iter()
        .map(|&(name, call, reference, values, dtypes, gives)| {
            row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
                .cases(SHAPES)
                .values(&[values])
                .dtypes(dtypes)
                .gives(gives)
                .exact()
        })
        .collect();
    let flat: &[(&str, Method, fn(f64) -> f64)] = &[
        ("logical_not", Tensor::logical_not, |x| truth(x == 0.0)),
        ("isnan", Tensor::isnan, |x| truth(x.is_nan())),
    ];
    rows.extend(flat.iter().map(|&(name, call, reference)| {
        row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
            .cases(SHAPES)
            .values(&[Ties])
            .dtypes(ALL)
            .gives(Gives::Always(DType::Bool))
            .flat()
            .exact()
    }));
    rows
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// Values far from 1, where an approximation shows its edges; only the forward values.
fn wide_rows() -> Vec<Row> {
    let table: &[(&str, Method, fn(f64) -> f64, Values)] = &[
        ("exp of large magnitudes", Tensor::exp, f64::exp, Between(-80.0, 80.0)),
        ("exp2 of large magnitudes", Tensor::exp2, f64::exp2, Between(-120.0, 120.0)),
        ("expm1 near zero", Tensor::expm1, f64::exp_m1, Between(-1e-3, 1e-3)),
        ("log of small and large", Tensor::log, f64::ln, Between(1e-30, 1e30)),
        ("log2 of small ones", Tensor::log2, f64::log2, Between(1e-30, 1e-20)),
        ("log1p near zero", Tensor::log1p, f64::ln_1p, Between(-1e-3, 1e-3)),
        ("tanh near zero", Tensor::tanh, f64::tanh, Between(-1e-3, 1e-3)),
        ("tanh where it is flat", Tensor::tanh, f64::tanh, Between(-40.0, 40.0)),
        ("sigmoid where it is flat", Tensor::sigmoid, sigmoid, Between(-80.0, 80.0)),
        ("erf near zero", Tensor::erf, erf, Between(-1e-3, 1e-3)),
        ("erf where it is flat", Tensor::erf, erf, Between(-6.0, 6.0)),
        ("erfc where it is small", Tensor::erfc, erfc, Between(2.0, 9.0)),
        ("rsqrt of small and large", Tensor::rsqrt, |x| 1.0 / x.sqrt(), Between(1e-6, 1e6)),
    ];
    table
        .iter()
        .map(|&(name, call, reference, values)| {
            row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
                .case(&[&[1000]])
                .values(&[values])
                .dtypes(WIDE_FLOATS)
                .slack(2.0)
        })
        .collect()
}

checks!(rows());

#[test]
fn large_angles_are_reduced_well() {
    let table: [(&str, Method, fn(f64) -> f64); 2] =
        [("sin", Tensor::sin, f64::sin), ("cos", Tensor::cos, f64::cos)];
    let rows = table.map(|(name, call, reference)| {
        row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
            .case(&[&[1000]])
            .values(&[Between(-1000.0, 1000.0)])
            .dtypes(WIDE_FLOATS)
    });
    crate::driver::each_row(rows.into(), crate::driver::values);
}

#[test]
fn values_far_from_one_keep_their_relative_precision() {
    // Relative to the value itself: the inputs of each row give no result that is zero.
    crate::driver::each_row(wide_rows(), crate::driver::relative_values);
}
