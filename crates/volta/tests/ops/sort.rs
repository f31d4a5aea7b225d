//! Sorting, extrema with positions, medians; triangles, masks and running products.

use crate::index::order;
use crate::reference::Array;
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

fn sorted(line: &[f64], descending: bool) -> Vec<f64> {
    order(line, descending).iter().map(|&p| line[p as usize]).collect()
}

fn middle(line: &[f64]) -> usize {
    order(line, false)[(line.len() - 1) / 2] as usize
}

fn places(line: &[f64], largest: bool) -> usize {
    order(line, largest)[0] as usize
}

type Pair = fn(&Tensor) -> (Tensor, Tensor);
type Line = fn(&[f64]) -> Vec<f64>;

fn axis(x: &Array, axis: isize) -> usize {
    axis.rem_euclid(x.rank() as isize) as usize
}

fn ordering_rows() -> Vec<Row> {
    const LAST: isize = -1;
    // The positions a line is put into, per op; values follow from them.
    let table: &[(&str, Pair, isize, Line)] = &[
        ("sort(-1)", |x| x.sort(-1, false), LAST, |l| order(l, false)),
        ("sort(0, descending)", |x| x.sort(0, true), 0, |l| order(l, true)),
        ("topk(3, -1)", |x| x.topk(3, -1, true), LAST, |l| order(l, true)[..3].to_vec()),
        ("topk(2, 0, smallest)", |x| x.topk(2, 0, false), 0, |l| order(l, false)[..2].to_vec()),
        ("topk(1, -1)", |x| x.topk(1, -1, true), LAST, |l| order(l, true)[..1].to_vec()),
        ("topk(0, -1)", |x| x.topk(0, -1, true), LAST, |_| vec![]),
        ("max_with_index(-1, true)", |x| x.max_with_index(-1, true), LAST, |l| vec![places(l, true) as f64]),
        ("min_with_index(0, true)", |x| x.min_with_index(0, true), 0, |l| vec![places(l, false) as f64]),
        ("median_dim(-1, true)", |x| x.median_dim(-1, true), LAST, |l| vec![middle(l) as f64]),
        ("median_dim(0, true)", |x| x.median_dim(0, true), 0, |l| vec![middle(l) as f64]),
    ];
    let shapes: &[&[&[usize]]] = &[&[&[5, 4]], &[&[2, 3, 7]], &[&[9]], &[&[40, 65]]];
    let mut rows = vec![];
    for &(name, call, dim, line) in table {
        let values = move |l: &[f64]| -> Vec<f64> { line(l).iter().map(|&p| l[p as usize]).collect() };
        rows.push(
            row(
                format!("values of {name}"),
                move |x| call(&x[0]).0,
                move |x| x[0].along(axis(&x[0], dim), values),
            )
            .cases(shapes)
            .values(&[Apart])
            .dtypes(ALL)
            .exact(),
        );
        rows.push(
            row(
                format!("positions of {name}"),
                move |x| call(&x[0]).1,
                move |x| x[0].along(axis(&x[0], dim), line),
            )
            .cases(shapes)
            .values(&[Ties])
            .dtypes(NUMBERS)
            .gives(Gives::Always(DType::I32))
            .flat(),
        );
    }
    rows.push(
        row(
            "max_with_index(1, false)",
            |x| x[0].max_with_index(1, false).0,
            |x| x[0].fold(&[1], false, |g| sorted(g, true)[0]),
        )
        .cases(&[&[&[3, 5]], &[&[2, 3, 4]]])
        .values(&[Apart])
        .exact(),
    );
    rows.push(
        row("median", |x| x[0].median(), |x| Array::scalar(x[0].data[middle(&x[0].data)]))
            .cases(&[&[&[5]], &[&[2, 3]], &[&[]]])
            .values(&[Apart])
            .exact(),
    );
    rows
}

fn mask_rows() -> Vec<Row> {
    let mut rows = vec![];
    for diagonal in [-1i64, 0, 2] {
        for lower in [true, false] {
            let kept = move |at: &[usize]| {
                let offset = at[at.len() - 1] as i64 - at[at.len() - 2] as i64;
                if lower { offset <= diagonal } else { offset >= diagonal }
            };
            rows.push(
                row(
                    format!("{}({diagonal})", if lower { "tril" } else { "triu" }),
                    move |x| if lower { x[0].tril(diagonal) } else { x[0].triu(diagonal) },
                    move |x| Array::from_fn(&x[0].shape, |at| if kept(at) { x[0].at(at) } else { 0.0 }),
                )
                .cases(&[&[&[3, 5]], &[&[2, 4, 3]], &[&[0, 3]]])
                .dtypes(ALL)
                .exact(),
            );
        }
    }
    rows.push(
        row(
            "masked_fill",
            |x| x[0].masked_fill(&x[1], -1.5),
            |x| x[0].zip(&x[1], |v, m| if m != 0.0 { -1.5 } else { v }),
        )
        .cases(&[&[&[3, 5], &[3, 5]], &[&[3, 5], &[5]], &[&[3, 5], &[3, 1]]])
        .values(&[Between(-2.0, 2.0), Truth])
        .exact(),
    );
    rows.push(
        row(
            "one_hot",
            |x| x[0].one_hot(4),
            |x| {
                let shape = [&x[0].shape[..], &[4]].concat();
                Array::from_fn(&shape, |at| {
                    let (class, place) = at.split_last().expect("an axis");
                    f64::from(u8::from(x[0].at(place) == *class as f64))
                })
            },
        )
        .cases(&[&[&[5]], &[&[2, 3]], &[&[]], &[&[0]]])
        .values(&[Index(4)])
        .dtypes(&[DType::I32])
        .flat()
        .exact(),
    );
    for dim in [0isize, -1] {
        rows.push(
            row(
                format!("cumprod({dim})"),
                move |x| x[0].cumprod(dim),
                move |x| {
                    x[0].along(axis(&x[0], dim), |line| {
                        line.iter()
                            .scan(1.0, |p, v| {
                                *p *= v;
                                Some(*p)
                            })
                            .collect()
                    })
                },
            )
            .cases(&[&[&[4, 5]], &[&[2, 3, 2]], &[&[0]]])
            .values(&[Between(0.5, 1.6)])
            .dtypes(NUMBERS)
            .gives(Gives::Wide)
            .slack(8.0),
        );
        for n in [0usize, 1, 2, 6] {
            rows.push(
                row(
                    format!("diff({n}, {dim})"),
                    move |x| x[0].diff(n, dim),
                    move |x| {
                        x[0].along(axis(&x[0], dim), |line| {
                            (0..n).fold(line.to_vec(), |l, _| l.windows(2).map(|w| w[1] - w[0]).collect())
                        })
                    },
                )
                .cases(&[&[&[4, 5]], &[&[3]]])
                .dtypes(NUMBERS)
                .slack(4.0)
                .exact(),
            );
        }
    }
    rows
}

fn rows() -> Vec<Row> {
    ordering_rows().into_iter().chain(mask_rows()).collect()
}

checks!(rows());
