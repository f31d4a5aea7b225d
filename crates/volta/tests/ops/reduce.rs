//! Folding axes: sums, products, extrema and their positions.

use crate::reference::Array;
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

fn largest(group: &[f64]) -> f64 {
    group.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(group: &[f64]) -> f64 {
    group.iter().copied().fold(f64::INFINITY, f64::min)
}

fn first_place(group: &[f64], of: f64) -> f64 {
    group.iter().position(|&x| x == of).expect("one of them") as f64
}

type Fold = fn(&[f64]) -> f64;

/// An axis list with the shapes it is tried on; the axes of an empty list are all.
const AXES: &[(&[isize], &[&[usize]])] = &[
    (&[], &[&[3, 5], &[], &[7], &[2, 3, 4, 5], &[30, 301]]),
    (&[0], &[&[3, 5], &[4], &[257, 9], &[9, 2, 3]]),
    (&[-1], &[&[3, 5], &[4], &[9, 1025], &[2, 3, 33]]),
    (&[1], &[&[3, 4, 5], &[2, 300, 17]]),
    (&[0, 2], &[&[3, 4, 5]]),
    (&[-2, -1], &[&[2, 3, 4, 5]]),
    (&[0, 1, 3], &[&[2, 3, 4, 5]]),
];

/// Whole axes without elements, folded and not.
const EMPTY: &[(&[isize], &[&[usize]])] =
    &[(&[], &[&[0], &[2, 0]]), (&[0], &[&[0, 3], &[3, 0]]), (&[-1], &[&[2, 0], &[0, 4]])];

fn resolve(axes: &[isize], rank: usize) -> Vec<usize> {
    if axes.is_empty() {
        return (0..rank).collect();
    }
    let mut all: Vec<usize> = axes.iter().map(|&a| a.rem_euclid(rank as isize) as usize).collect();
    all.sort_unstable();
    all
}

fn rows() -> Vec<Row> {
    type Method = fn(&Tensor, &[isize], bool) -> Tensor;
    let table: &[(&str, Method, Fold, Values, &'static [DType], Gives, bool)] = &[
        (
            "sum_dim",
            |x, a, k| x.sum_dim(a, k),
            |g| g.iter().sum(),
            Between(-1.0, 1.0),
            ALL,
            Gives::Wide,
            true,
        ),
        (
            "prod_dim",
            |x, a, k| x.prod_dim(a, k),
            |g| g.iter().product(),
            Between(0.7, 1.3),
            ALL,
            Gives::Wide,
            true,
        ),
        ("max_dim", |x, a, k| x.max_dim(a, k), largest, Apart, ALL, Gives::Same, false),
        ("min_dim", |x, a, k| x.min_dim(a, k), smallest, Apart, ALL, Gives::Same, false),
    ];
    let mut rows = Vec::new();
    for &(name, call, fold, values, dtypes, gives, of_nothing) in table {
        let empty = if of_nothing { EMPTY } else { &[] };
        for (axes, shapes) in AXES.iter().chain(empty) {
            for keepdim in [false, true] {
                let nothing = shapes.iter().any(|s| s.contains(&0));
                let label =
                    format!("{name}({axes:?}, {keepdim}){}", if nothing { " of nothing" } else { "" });
                let mut r = row(
                    label,
                    move |x| call(&x[0], axes, keepdim),
                    move |x| x[0].fold(&resolve(axes, x[0].rank()), keepdim, fold),
                )
                .values(&[values])
                .dtypes(dtypes)
                .gives(gives)
                .slack(8.0);
                for shape in *shapes {
                    r = r.case(&[shape]);
                }
                rows.push(r);
            }
        }
    }
    rows.extend(whole_rows());
    rows
}

fn all(x: &Array, fold: Fold) -> Array {
    Array::scalar(fold(&x.data))
}

/// Folds of everything, and positions.
fn whole_rows() -> Vec<Row> {
    type Method = fn(&Tensor) -> Tensor;
    let whole: &[(&str, Method, Fold, Values, Gives)] = &[
        ("sum", Tensor::sum, |g| g.iter().sum(), Between(-1.0, 1.0), Gives::Wide),
        ("prod", Tensor::prod, |g| g.iter().product(), Between(0.8, 1.2), Gives::Wide),
        ("max", Tensor::max, largest, Apart, Gives::Same),
        ("min", Tensor::min, smallest, Apart, Gives::Same),
    ];
    let shapes: &[&[&[usize]]] = &[&[&[3, 5]], &[&[]], &[&[1]], &[&[2, 3, 2]], &[&[50, 41]]];
    let mut rows: Vec<Row> = whole
        .iter()
        .map(|&(name, call, fold, values, gives)| {
            row(name, move |x| call(&x[0]), move |x| all(&x[0], fold))
                .cases(shapes)
                .values(&[values])
                .dtypes(NUMBERS)
                .gives(gives)
                .slack(8.0)
        })
        .collect();
    let argmax: Fold = |g| first_place(g, largest(g));
    let argmin: Fold = |g| first_place(g, smallest(g));
    let places: &[(&str, Method, Fold)] =
        &[("argmax", Tensor::argmax, argmax), ("argmin", Tensor::argmin, argmin)];
    for &(name, call, fold) in places {
        for (kind, values) in [("", Apart), (" of ties", Ties)] {
            rows.push(
                row(format!("{name}{kind}"), move |x| call(&x[0]), move |x| all(&x[0], fold))
                    .cases(shapes)
                    .values(&[values])
                    .dtypes(ALL)
                    .gives(Gives::Always(DType::I32))
                    .flat(),
            );
        }
    }
    type AlongAxis = fn(&Tensor, isize, bool) -> Tensor;
    let along: &[(&str, AlongAxis, Fold)] = &[
        ("argmax_dim", |x, a, k| x.argmax_dim(a, k), argmax),
        ("argmin_dim", |x, a, k| x.argmin_dim(a, k), argmin),
    ];
    for &(name, call, fold) in along {
        for axis in [0isize, 1, -1] {
            for keepdim in [false, true] {
                rows.push(
                    row(
                        format!("{name}({axis}, {keepdim})"),
                        move |x| call(&x[0], axis, keepdim),
                        move |x| x[0].fold(&resolve(&[axis], x[0].rank()), keepdim, fold),
                    )
                    .cases(&[&[&[3, 5]], &[&[2, 3, 4]], &[&[7, 300]], &[&[300, 7]]])
                    .values(&[Ties])
                    .dtypes(ALL)
                    .gives(Gives::Always(DType::I32))
                    .flat(),
                );
            }
        }
    }
    rows
}

checks!(rows());

/// A product with zeros among its factors: by the others where there is one, nothing where there are more.
#[test(needs(f64))]
fn the_gradient_of_a_product_with_zeros_is_the_product_of_the_others() {
    let x = Tensor::from_vec(vec![2.0, 0.0, 5.0, 0.0, 3.0, 0.0, 2.0, 3.0, 4.0], [3, 3]).requires_grad(true);
    x.prod_dim(1, false).sum().backward();
    let expected = [0.0, 10.0, 0.0, 0.0, 0.0, 0.0, 12.0, 8.0, 6.0];
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>(), expected);
}

/// The Hessian of x·y·z at x = 0 is not zero: [[0, z, y], [z, 0, 0], [y, 0, 0]].
#[test(needs(f64))]
fn the_second_gradient_of_a_product_sees_past_a_zero() {
    let x = Tensor::from_vec(vec![0.0, 3.0, 2.0], [3]).requires_grad(true);
    let options = volta::BackwardOptions { create_graph: true, ..Default::default() };
    let first = volta::grad(&[&x.prod()], &[&x], options)[0].clone().expect("a gradient");
    assert_eq!(first.to_vec::<f64>(), [6.0, 0.0, 0.0]);
    let second =
        volta::grad(&[&first.sum()], &[&x], Default::default())[0].clone().expect("a second gradient");
    assert_eq!(second.to_vec::<f64>(), [5.0, 2.0, 3.0]);
}

#[test]
fn more_ties_than_a_half_counts_share_the_gradient() {
    type Method = fn(&Tensor) -> Tensor;
    for (name, call) in [("max", (|x| x.max()) as Method), ("min", |x| x.min())] {
        for dtype in [DType::F16, DType::BF16] {
            let x = Tensor::ones([70_000]).to_dtype(dtype).requires_grad(true);
            call(&x).backward();
            let g = x.grad().expect("a gradient");
            assert_eq!(g.dtype(), dtype);
            for g in [g.to_vec::<f32>()[0], g.to_vec::<f32>()[69_999]] {
                assert!((g * 70_000.0 - 1.0).abs() < 0.01, "{name} of {dtype}: {g}");
            }
        }
    }
}
