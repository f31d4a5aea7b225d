//! Indexing by tensors of positions, orders and running sums.

use crate::reference::Array;
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

fn gather(x: &Array, axis: usize, index: &Array) -> Array {
    Array::from_fn(&index.shape, |at| {
        let mut own = at.to_vec();
        own[axis] = index.at(at) as usize;
        x.at(&own)
    })
}

fn scatter_add(x: &Array, axis: usize, index: &Array, values: &Array) -> Array {
    let mut out = x.clone();
    Array::from_fn(&index.shape, |at| {
        let mut own = at.to_vec();
        own[axis] = index.at(at) as usize;
        *out.at_mut(&own) += values.at(at);
        0.0
    });
    out
}

fn index_add(x: &Array, axis: usize, index: &Array, values: &Array) -> Array {
    let mut out = x.clone();
    Array::from_fn(&values.shape, |at| {
        let mut own = at.to_vec();
        own[axis] = index.data[at[axis]] as usize;
        *out.at_mut(&own) += values.at(at);
        0.0
    });
    out
}

fn index_select(x: &Array, axis: usize, index: &Array) -> Array {
    let mut shape = x.shape.clone();
    shape[axis] = index.numel();
    Array::from_fn(&shape, |at| {
        let mut own = at.to_vec();
        own[axis] = index.data[at[axis]] as usize;
        x.at(&own)
    })
}

/// The stable order, NaN last where ascending.
pub fn order(line: &[f64], descending: bool) -> Vec<f64> {
    let mut places: Vec<usize> = (0..line.len()).collect();
    let rank = |x: f64| (x.is_nan(), if x.is_nan() { 0.0 } else { x });
    places.sort_by(|&a, &b| {
        let (x, y) = (rank(line[a]), rank(line[b]));
        let ascending = x.0.cmp(&y.0).then(x.1.partial_cmp(&y.1).expect("not NaN"));
        if descending { ascending.reverse() } else { ascending }
    });
    places.into_iter().map(|p| p as f64).collect()
}

fn picking_rows() -> Vec<Row> {
    const R: Values = Between(-2.0, 2.0);
    let mut rows = vec![];
    // The axis, the extent that is picked from, and shapes of table and index.
    let table: &[(isize, usize, &[&[&[usize]]])] = &[
        (0, 4, &[&[&[4, 3], &[5, 3]], &[&[4, 3], &[2, 2]], &[&[4], &[0]], &[&[4], &[400]]]),
        (1, 5, &[&[&[3, 5], &[3, 2]], &[&[3, 5], &[2, 7]], &[&[2, 5, 3], &[2, 4, 3]], &[&[3, 5], &[3, 0]]]),
        (-1, 6, &[&[&[2, 3, 6], &[2, 3, 1]], &[&[9, 6], &[9, 50]]]),
    ];
    for &(axis, extent, cases) in table {
        let k = move |x: &Array| axis.rem_euclid(x.rank() as isize) as usize;
        for index in [DType::I32, DType::I64, DType::U8, DType::U32] {
            rows.push(
                row(
                    format!("gather({axis}) by {index}"),
                    move |x| x[0].gather(axis, &x[1]),
                    move |x| gather(&x[0], k(&x[0]), &x[1]),
                )
                .cases(cases)
                .values(&[R, IndexAs(extent, index)])
                .dtypes(ALL)
                .exact(),
            );
        }
        // The index of a gather fits as the index of a scatter of values that are as large.
        let mut r = row(
            format!("scatter_add({axis})"),
            move |x| x[0].scatter_add(axis, &x[1], &x[2]),
            move |x| scatter_add(&x[0], k(&x[0]), &x[1], &x[2]),
        )
        .values(&[R, Index(extent), R])
        .dtypes(NUMBERS)
        .slack(8.0);
        for case in cases {
            let larger: Vec<usize> = case[1].iter().map(|e| e + 1).collect();
            r = r.case(&[case[0], case[1], case[1]]).case(&[case[0], case[1], &larger]);
        }
        rows.push(r);
    }
    for (axis, cases) in [
        (0isize, &[[&[4, 3][..], &[5]], [&[4], &[2]], [&[4, 2, 3], &[3]], [&[4, 3], &[0]]]),
        (1, &[[&[3, 4], &[5]], [&[2, 4, 3], &[3]], [&[2, 4, 0], &[3]], [&[20, 4], &[90]]]),
        (-1, &[[&[3, 4], &[5]], [&[4], &[2]], [&[2, 3, 4], &[1]], [&[0, 4], &[2]]]),
    ] {
        let r = row(
            format!("index_select({axis})"),
            move |x| x[0].index_select(axis, &x[1]),
            move |x| index_select(&x[0], axis.rem_euclid(x[0].rank() as isize) as usize, &x[1]),
        );
        let r = cases.iter().fold(r, |r, case| r.case(case));
        rows.push(r.values(&[R, Index(4)]).dtypes(ALL).exact());
    }
    for (axis, cases) in [
        (
            0isize,
            &[
                [&[4, 3][..], &[5], &[5, 3]],
                [&[4], &[2], &[2]],
                [&[4, 2, 3], &[3], &[3, 2, 3]],
                [&[4, 3], &[0], &[0, 3]],
            ],
        ),
        (
            -1,
            &[
                [&[3, 4], &[5], &[3, 5]],
                [&[4], &[], &[1]],
                [&[2, 3, 4], &[1], &[2, 3, 1]],
                [&[0, 4], &[2], &[0, 2]],
            ],
        ),
    ] {
        let r = row(
            format!("index_add({axis})"),
            move |x| x[0].index_add(axis, &x[1], &x[2]),
            move |x| index_add(&x[0], axis.rem_euclid(x[0].rank() as isize) as usize, &x[1], &x[2]),
        );
        let r = cases.iter().fold(r, |r, case| r.case(case));
        rows.push(r.values(&[R, Index(4), R]).dtypes(NUMBERS).slack(8.0));
    }
    rows.push(
        row(
            "embedding",
            |x| x[0].embedding(&x[1]),
            |x| {
                let flat = x[1].reshape(&[x[1].numel()]);
                let rows = index_select(&x[0], 0, &flat);
                rows.reshape(&[&x[1].shape[..], &[x[0].shape[1]]].concat())
            },
        )
        .cases(&[&[&[6, 3], &[2, 4]], &[&[6, 3], &[]], &[&[6, 3], &[0, 2]], &[&[6, 33], &[7, 30]]])
        .values(&[R, Index(6)])
        .dtypes(NUMBERS)
        .exact(),
    );
    rows
}

fn ordering_rows() -> Vec<Row> {
    let mut rows = vec![];
    for descending in [false, true] {
        for axis in [0isize, -1] {
            for (kind, values) in [("", Apart), (" of ties", Ties)] {
                let k = move |x: &Array| if axis < 0 { x.rank() - 1 } else { 0 };
                rows.push(
                    row(
                        format!("argsort({axis}, {descending}){kind}"),
                        move |x| x[0].argsort(axis, descending),
                        move |x| x[0].along(k(&x[0]), |line| order(line, descending)),
                    )
                    .cases(&[
                        &[&[5, 4]],
                        &[&[7]],
                        &[&[2, 3, 4]],
                        &[&[0]],
                        &[&[3, 0]],
                        &[&[3, 200]],
                        &[&[300, 2]],
                    ])
                    .values(&[values])
                    .dtypes(ALL)
                    .gives(Gives::Always(DType::I32))
                    .flat(),
                );
            }
        }
    }
    for axis in [0isize, 1, -1] {
        let k = move |x: &Array| axis.rem_euclid(x.rank() as isize) as usize;
        rows.push(
            row(
                format!("cumsum({axis})"),
                move |x| x[0].cumsum(axis),
                move |x| {
                    x[0].along(k(&x[0]), |line| {
                        let mut sum = 0.0;
                        line.iter()
                            .map(|v| {
                                sum += v;
                                sum
                            })
                            .collect()
                    })
                },
            )
            .cases(&[&[&[5, 4]], &[&[2, 3, 4]], &[&[3, 0]], &[&[0, 3]], &[&[3, 500]], &[&[500, 3]]])
            .values(&[Between(-1.0, 1.0)])
            .dtypes(ALL)
            .gives(Gives::Wide)
            .slack(16.0),
        );
    }
    rows.push(
        row("cumsum of a number", |x| x[0].cumsum(0), |x| x[0].clone())
            .case(&[&[]])
            .dtypes(ALL)
            .gives(Gives::Wide),
    );
    rows
}

fn rows() -> Vec<Row> {
    picking_rows().into_iter().chain(ordering_rows()).collect()
}

checks!(rows());

#[test]
fn an_index_computed_from_the_tensor_itself_picks_from_it() {
    let x = Tensor::vector(&[3.0, 1.0, 2.0]).requires_grad(true);
    let sorted = x.gather(0, &x.argsort(0, false));
    (&sorted * &Tensor::vector(&[1.0, 10.0, 100.0])).sum().backward();
    assert_eq!(sorted.to_vec::<f32>(), [1.0, 2.0, 3.0]);
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [100.0, 1.0, 10.0]);
}

#[test]
fn truths_at_one_place_are_true_however_many_they_are() {
    for count in [1usize, 2, 3, 255, 256, 257, 512] {
        let values = Tensor::full([count], true);
        let index = Tensor::zeros([count]).to_dtype(DType::I32);
        let start = Tensor::from_vec(vec![false, false, true], [3]);
        let found = start.scatter_add(0, &index, &values);
        assert_eq!(found.dtype(), DType::Bool);
        assert_eq!(found.to_dtype(DType::I32).to_vec::<i32>(), [1, 0, 1], "{count}");
    }
}

#[test]
fn what_is_added_under_autocast_takes_the_wider_type() {
    let index = Tensor::from_vec(vec![1i32, 1, 0], [3]);
    for (into, source) in [(DType::F32, DType::F16), (DType::F16, DType::F32), (DType::F16, DType::BF16)] {
        let x = Tensor::zeros([2]).to_dtype(into).requires_grad(true);
        let values = Tensor::vector(&[1.0, 2.0, 1000.5]).to_dtype(source).requires_grad(true);
        let sums = volta::autocast(DType::F16, || {
            [x.scatter_add(0, &index, &values), x.index_add(0, &index, &values)]
        });
        for sums in sums {
            assert_eq!(sums.dtype(), DType::F32, "{source} into {into}");
            let last = values.detach().to_dtype(DType::F32).to_vec::<f32>()[2];
            assert_eq!(sums.to_vec::<f32>(), [last, 3.0]);
            sums.sum().backward();
        }
        assert_eq!((x.grad().unwrap().dtype(), values.grad().unwrap().dtype()), (into, source));
        let error = x.try_index_add(0, &index, &values).unwrap_err();
        assert!(error.to_string().contains(&format!("cannot add {source} to {into}")), "{error}");
    }
    let integers = Tensor::zeros([2]).to_dtype(DType::I32);
    let error = volta::autocast(DType::F16, || integers.try_index_add(0, &index, &Tensor::ones([3])));
    assert!(error.unwrap_err().to_string().contains("cannot add f32 to i32"));
}

#[test]
fn slices_are_added_to_a_tensor_without_axes() {
    let x = Tensor::scalar(2.0f32);
    let index = Tensor::from_vec(vec![0i32], [1]);
    let y = x.index_add(0, &index, &Tensor::scalar(3.0f32));
    assert_eq!((y.rank(), y.item::<f32>()), (0, 5.0));
    let error = Tensor::zeros([3]).try_index_add(0, &index, &Tensor::ones([2])).unwrap_err().to_string();
    assert!(error.contains("the values have shape [2]: 1 positions along axis 0 of [3] need [1]"), "{error}");
}
