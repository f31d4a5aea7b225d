//! Tests of the f32 functions: errors over sweeps of all f32, special values, and agreement of levels.

use super::isa::forced::{assert_levels_agree, at_each_level};
use super::{erf, unary};
use volta_ir::op::UnaryOp::{self, *};

/// Distance of `got` from the exact value in units of the last place of the f32 nearest to it.
pub(super) fn ulps(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if got.is_nan() || nearest.is_nan() {
        return if got.is_nan() == nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || nearest.is_infinite() {
        // At the threshold of overflow either neighbour will do.
        let near = f64::from(f32::MAX) * (1.0 + 2f64.powi(-23));
        let same = got == nearest || (exact.abs() - near).abs() < near * 2f64.powi(-23);
        return if same { 0.0 } else { f64::INFINITY };
    }
    let magnitude = nearest.abs().max(f32::MIN_POSITIVE);
    let exponent = (magnitude.to_bits() >> 23) as i32 - 127;
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 23)
}

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// A function, its reference, and a bound.
type Case = (UnaryOp, fn(f64) -> f64, f64);

/// Each function with its f64 reference and the largest error allowed.
const CASES: [Case; 13] = [
    (Exp, f64::exp, 1.1),
    (Expm1, f64::exp_m1, 1.6),
    (Exp2, f64::exp2, 1.3),
    (Log, f64::ln, 1.1),
    (Log1p, f64::ln_1p, 1.5),
    (Log2, f64::log2, 1.5),
    (Sin, f64::sin, 1.6),
    (Cos, f64::cos, 1.6),
    (Tanh, f64::tanh, 3.0),
    (Sigmoid, sigmoid, 3.0),
    (Erf, erf::erf64, 2.5),
    (Erfc, erf::erfc64, 6.0),
    (Rsqrt, |x| 1.0 / x.sqrt(), 1.6),
];

/// The worst error of each function over every `stride`-th f32, and where.
fn worst(stride: usize) -> Vec<(UnaryOp, f64, f32, f64)> {
    let run = |&(op, exact, bound): &Case| {
        let (mut error, mut at) = (0.0, 0.0);
        let mut bits = (0..=u32::MAX).step_by(stride).map(f32::from_bits);
        loop {
            let x: Vec<f32> = bits.by_ref().take(4096).collect();
            if x.is_empty() {
                break;
            }
            let mut y = vec![0.0; x.len()];
            unary(op, &x, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let e = ulps(y, exact(f64::from(x)));
                if e > error {
                    (error, at) = (e, x);
                }
            }
        }
        (op, error, at, bound)
    };
    CASES.iter().map(run).collect()
}

#[test]
fn errors_are_bounded() {
    for (level, worst) in at_each_level(|| worst(20_011)) {
        for (op, error, at, bound) in worst {
            assert!(error <= bound, "{op:?} at {level:?} is {error} ulp off at {at:e}");
        }
    }
}

#[test]
fn special_values() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const LEAST: f32 = f32::from_bits(1);
    let table: &[(UnaryOp, &[(f32, f32)])] = &[
        (Exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (88.8, INF), (-200.0, 0.0)]),
        (Exp, &[(-103.0, LEAST), (f32::MAX, INF), (f32::MIN, 0.0), (LEAST, 1.0)]),
        (
            Expm1,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (INF, INF),
                (-INF, -1.0),
                (NAN, NAN),
                (LEAST, LEAST),
                (-LEAST, -LEAST),
            ],
        ),
        (Expm1, &[(89.0, INF), (f32::MIN, -1.0), (f32::MAX, INF), (-30.0, -1.0)]),
        (
            Exp2,
            &[(0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (128.0, INF), (-149.0, LEAST), (10.0, 1024.0)],
        ),
        (Exp2, &[(-126.0, f32::MIN_POSITIVE), (f32::MAX, INF), (f32::MIN, 0.0), (127.0, 1.7014118e38)]),
        (Log, &[(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)]),
        (Log, &[(LEAST, -103.27893), (-LEAST, NAN), (f32::MAX, 88.72284)]),
        (
            Log2,
            &[
                (0.0, -INF),
                (1.0, 0.0),
                (8.0, 3.0),
                (LEAST, -149.0),
                (INF, INF),
                (-1.0, NAN),
                (NAN, NAN),
                (0.5, -1.0),
            ],
        ),
        (
            Log1p,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (-1.0, -INF),
                (INF, INF),
                (-2.0, NAN),
                (NAN, NAN),
                (LEAST, LEAST),
                (-INF, NAN),
            ],
        ),
        (
            Sin,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
                (LEAST, LEAST),
                (-LEAST, -LEAST),
            ],
        ),
        (Cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
        (
            Tanh,
            &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (LEAST, LEAST), (20.0, 1.0)],
        ),
        (Sigmoid, &[(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-103.0, LEAST), (50.0, 1.0)]),
        (
            Erf,
            &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (LEAST, LEAST), (-5.0, -1.0)],
        ),
        (Erfc, &[(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (-5.0, 2.0), (11.0, 0.0)]),
        (Relu, &[(-0.0, 0.0), (NAN, NAN), (-INF, 0.0), (3.0, 3.0), (INF, INF)]),
        (Sign, &[(NAN, 0.0), (-0.0, 0.0), (0.0, 0.0), (-7.0, -1.0), (INF, 1.0)]),
        (Round, &[(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (NAN, NAN), (1e30, 1e30)]),
        (Trunc, &[(-1.7, -1.0), (1.7, 1.0)]),
        (Floor, &[(-1.2, -2.0), (1.7, 1.0)]),
        (Ceil, &[(-1.2, -1.0), (1.2, 2.0)]),
        (Recip, &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (4.0, 0.25)]),
        (Sqrt, &[(-0.0, -0.0), (-1.0, NAN), (INF, INF), (4.0, 2.0)]),
        (Rsqrt, &[(0.0, INF), (4.0, 0.5), (INF, 0.0), (-1.0, NAN)]),
        (Neg, &[(0.0, -0.0), (1.0, -1.0)]),
        (Abs, &[(-0.0, 0.0), (-INF, INF), (NAN, NAN)]),
    ];
    for &(op, pairs) in table {
        // In every position of a block long enough to be a vector.
        for &(x, expected) in pairs {
            let mut out = [0.0; 37];
            unary(op, &[x; 37], &mut out);
            for y in out {
                let same = y.to_bits() == expected.to_bits() || (y.is_nan() && expected.is_nan());
                assert!(same, "{op:?}({x:e}) = {y:e}, not {expected:e}");
            }
        }
    }
}

#[test]
fn large_angles() {
    let x: Vec<f32> =
        (0..40_000).map(|i| (i as f32 * 7.7).powf(1.9) - 1e4).chain([1e9, 3e20, -1e30]).collect();
    let mut y = vec![0.0; x.len()];
    for (op, exact) in [(Sin, f64::sin as fn(f64) -> f64), (Cos, f64::cos)] {
        unary(op, &x, &mut y);
        for (&x, &y) in x.iter().zip(&y) {
            assert!(ulps(y, exact(f64::from(x))) < 1.5, "{op:?}({x})");
        }
    }
}

#[test]
fn levels_agree() {
    let x: Vec<f32> = (0..=u32::MAX).step_by(1_000_003).map(f32::from_bits).collect();
    // Exp and Sigmoid are fused where the level can: `errors_are_bounded` holds them on each.
    let all = [
        Neg, Recip, Sqrt, Rsqrt, Expm1, Log, Log1p, Exp2, Log2, Sin, Cos, Tanh, Relu, Erf, Erfc, Abs, Sign,
        Floor, Ceil, Round, Trunc,
    ];
    for op in all {
        assert_levels_agree(|| {
            let mut y = vec![0.0; x.len()];
            unary(op, &x, &mut y);
            y.iter().map(|y| if y.is_nan() { 0 } else { y.to_bits() }).collect::<Vec<_>>()
        });
    }
}
