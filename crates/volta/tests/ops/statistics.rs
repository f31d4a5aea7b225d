//! Means, spreads, norms, the softmax family, questions about all elements.

use crate::reference::Array;
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn mean(group: &[f64]) -> f64 {
    group.iter().sum::<f64>() / group.len() as f64
}

fn variance(group: &[f64], correction: f64) -> f64 {
    let m = mean(group);
    group.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (group.len() as f64 - correction).max(0.0)
}

fn logsumexp(group: &[f64]) -> f64 {
    let peak = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    group.iter().map(|x| (x - peak).exp()).sum::<f64>().ln() + peak
}

fn norm(group: &[f64], p: f64) -> f64 {
    let sizes = group.iter().map(|x| x.abs());
    match p {
        f64::INFINITY => sizes.fold(0.0, f64::max),
        f64::NEG_INFINITY => sizes.fold(f64::INFINITY, f64::min),
        0.0 => group.iter().filter(|&&x| x != 0.0).count() as f64,
        _ => sizes.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
    }
}

fn every(rank: usize, axes: &[isize]) -> Vec<usize> {
    if axes.is_empty() {
        return (0..rank).collect();
    }
    let mut all: Vec<usize> = axes.iter().map(|a| a.rem_euclid(rank as isize) as usize).collect();
    all.sort_unstable();
    all
}

type Method = fn(&Tensor, &[isize], bool) -> Tensor;
type Fold = fn(&[f64]) -> f64;

fn folding_rows() -> Vec<Row> {
    const R: Values = Between(-2.0, 2.0);
    const AWAY: Values = AwayFromZero(0.3, 2.0);
    let bools = Gives::Always(DType::Bool);
    let table: &[(&str, Method, Fold, Values, &'static [DType], Gives)] = &[
        ("mean_dim", |x, a, k| x.mean_dim(a, k), mean, R, FLOATS, Gives::Same),
        ("var_dim, correction 1", |x, a, k| x.var_dim(a, 1, k), |g| variance(g, 1.0), R, FLOATS, Gives::Same),
        ("var_dim, correction 0", |x, a, k| x.var_dim(a, 0, k), |g| variance(g, 0.0), R, FLOATS, Gives::Same),
        ("std_dim", |x, a, k| x.std_dim(a, 1, k), |g| variance(g, 1.0).sqrt(), R, FLOATS, Gives::Same),
        ("norm_dim(1)", |x, a, k| x.norm_dim(1.0, a, k), |g| norm(g, 1.0), AWAY, FLOATS, Gives::Same),
        ("norm_dim(2)", |x, a, k| x.norm_dim(2.0, a, k), |g| norm(g, 2.0), AWAY, FLOATS, Gives::Same),
        ("norm_dim(3)", |x, a, k| x.norm_dim(3.0, a, k), |g| norm(g, 3.0), AWAY, FLOATS, Gives::Same),
        (
            "norm_dim(0.5)",
            |x, a, k| x.norm_dim(0.5, a, k),
            |g| norm(g, 0.5),
            Between(0.1, 0.5),
            WIDE_FLOATS,
            Gives::Same,
        ),
        (
            "norm_dim(inf)",
            |x, a, k| x.norm_dim(f64::INFINITY, a, k),
            |g| norm(g, f64::INFINITY),
            Between(0.5, 3.0),
            FLOATS,
            Gives::Same,
        ),
        (
            "norm_dim(-inf)",
            |x, a, k| x.norm_dim(f64::NEG_INFINITY, a, k),
            |g| norm(g, f64::NEG_INFINITY),
            Between(0.5, 2.0),
            FLOATS,
            Gives::Same,
        ),
        ("norm_dim(0)", |x, a, k| x.norm_dim(0.0, a, k), |g| norm(g, 0.0), Ties, FLOATS, Gives::Same),
        ("logsumexp", |x, a, k| x.logsumexp(a, k), logsumexp, R, NUMBERS, Gives::Float),
        ("any_dim", |x, a, k| x.any_dim(a, k), |g| truth(g.iter().any(|&x| x != 0.0)), Ties, ALL, bools),
        ("all_dim", |x, a, k| x.all_dim(a, k), |g| truth(g.iter().all(|&x| x != 0.0)), Ties, ALL, bools),
    ];
    let axes: &[(&[isize], &[&[usize]])] = &[
        (&[], &[&[3, 5], &[2, 3, 4], &[60, 50]]),
        (&[0], &[&[3, 5], &[4], &[129, 5]]),
        (&[-1], &[&[3, 5], &[2, 3, 4], &[5, 513]]),
        (&[0, -1], &[&[2, 3, 4]]),
    ];
    let mut rows = vec![];
    for &(name, call, fold, values, dtypes, gives) in table {
        for &(over, shapes) in axes {
            for keepdim in [false, true] {
                let mut r = row(
                    format!("{name} over {over:?}, {keepdim}"),
                    move |x| call(&x[0], over, keepdim),
                    move |x| x[0].fold(&every(x[0].rank(), over), keepdim, fold),
                )
                .values(&[values])
                .dtypes(dtypes)
                .gives(gives)
                .slack(16.0);
                if matches!(gives, Gives::Always(_)) || name == "norm_dim(0)" {
                    r = r.flat();
                }
                rows.push(shapes.iter().fold(r, |r, shape| r.case(&[shape])));
            }
        }
    }
    rows
}

fn whole_rows() -> Vec<Row> {
    let table: &[(&str, fn(&Tensor) -> Tensor, Fold)] = &[
        ("mean", Tensor::mean, mean),
        ("var(1)", |x| x.var(1), |g| variance(g, 1.0)),
        ("std(0)", |x| x.std(0), |g| variance(g, 0.0).sqrt()),
        ("norm(2)", |x| x.norm(2.0), |g| norm(g, 2.0)),
    ];
    table
        .iter()
        .map(|&(name, call, fold)| {
            row(name, move |x| call(&x[0]), move |x| Array::scalar(fold(&x[0].data)))
                .cases(&[&[&[3, 5]], &[&[2]], &[&[2, 3, 4]]])
                .slack(16.0)
        })
        .chain([
            row("any", |x| x[0].any(), |x| Array::scalar(truth(x[0].data.iter().any(|&v| v != 0.0))))
                .cases(&[&[&[3, 5]], &[&[]], &[&[0]]])
                .dtypes(ALL)
                .gives(Gives::Always(DType::Bool))
                .flat(),
            row("all", |x| x[0].all(), |x| Array::scalar(truth(x[0].data.iter().all(|&v| v != 0.0))))
                .cases(&[&[&[3, 5]], &[&[]], &[&[0]]])
                .dtypes(ALL)
                .gives(Gives::Always(DType::Bool))
                .flat(),
        ])
        .collect()
}

fn softmax_rows() -> Vec<Row> {
    let mut rows = vec![];
    for axis in [0isize, 1, -1] {
        let k = move |x: &Array| axis.rem_euclid(x.rank() as isize) as usize;
        for (name, log) in [("softmax", false), ("log_softmax", true)] {
            rows.push(
                row(
                    format!("{name}({axis})"),
                    move |x| if log { x[0].log_softmax(axis) } else { x[0].softmax(axis) },
                    move |x| {
                        let y = x[0].softmax(k(&x[0]));
                        if log { y.map(f64::ln) } else { y }
                    },
                )
                .cases(&[&[&[3, 5]], &[&[2, 3, 4]], &[&[3, 0]], &[&[3, 700]], &[&[130, 33]]])
                .values(&[Between(-5.0, 5.0)])
                .slack(8.0),
            );
        }
    }
    rows
}

fn rows() -> Vec<Row> {
    folding_rows().into_iter().chain(whole_rows()).chain(softmax_rows()).collect()
}

checks!(rows());

#[test(needs(f64))]
fn isclose_weighs_both_tolerances_and_takes_equal_infinities() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let a = Tensor::from_vec(vec![1.0, 1.0, 0.0, nan, inf, inf, 100.0], [7]);
    let b = Tensor::from_vec(vec![1.0 + 1e-9, 1.1, 1e-9, nan, inf, -inf, 100.0005], [7]);
    assert_eq!(a.isclose(&b, 1e-5, 1e-8).to_vec::<bool>(), [true, false, true, false, true, false, true]);
    assert!(!a.allclose(&b, 1e-5, 1e-8));
    assert!(b.narrow(0, 0, 2).allclose(&a.narrow(0, 0, 2), 0.2, 0.0));
}

#[test]
fn integers_are_close_or_not_on_every_device() {
    let a = Tensor::from_vec(vec![100i32, 100, -7, 16_777_217, i32::MIN], [5]);
    let b = Tensor::from_vec(vec![101i32, 110, -7, 16_777_216, i32::MAX], [5]);
    assert_eq!(a.isclose(&b, 0.05, 0.0).to_vec::<bool>(), [true, false, true, true, false]);
    assert_eq!(a.isclose(&b, 0.0, 0.5).to_vec::<bool>(), [false, false, true, false, false]);
    assert!(a.allclose(&a, 0.0, 0.0));
    let bytes = Tensor::from_vec(vec![1u8, 255], [2]);
    assert_eq!(
        bytes.isclose(&Tensor::from_vec(vec![255u8, 254], [2]), 0.0, 1.0).to_vec::<bool>(),
        [false, true]
    );
    let truth = Tensor::from_vec(vec![true, false], [2]);
    assert_eq!(truth.isclose(&truth.logical_not(), 0.0, 0.5).to_vec::<bool>(), [false, false]);
    assert!(truth.allclose(&truth, 0.0, 0.0));
}

#[test]
fn spreads_and_norms_of_equal_elements_have_a_zero_gradient() {
    type Method = fn(&Tensor) -> Tensor;
    let table: [(&str, Method, f64); 4] = [
        ("std", |x| x.std(1), 2.0),
        ("norm 0", |x| x.norm(0.0), 0.0),
        ("norm 2", |x| x.norm(2.0), 0.0),
        ("norm 3", |x| x.norm(3.0), 0.0),
    ];
    for (name, call, value) in table {
        let x = Tensor::full([4], value).requires_grad(true);
        let y = call(&x);
        y.backward();
        assert_eq!(y.item::<f32>(), 0.0, "{name}");
        assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [0.0; 4], "{name}");
    }
}

#[test]
fn a_count_of_what_is_not_zero_has_a_zero_gradient() {
    let x = Tensor::vector(&[0.0, -2.0, f32::NAN, 3.0]).requires_grad(true);
    let count = x.norm(0.0);
    count.backward();
    assert_eq!(count.item::<f32>(), 3.0);
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [0.0; 4]);
}
