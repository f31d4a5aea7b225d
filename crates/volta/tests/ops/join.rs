//! Joining, cutting and repeating.

use crate::reference::Array;
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

fn cat(parts: &[Array], axis: usize) -> Array {
    let mut shape = parts[0].shape.clone();
    shape[axis] = parts.iter().map(|p| p.shape[axis]).sum();
    Array::from_fn(&shape, |at| {
        let mut own = at.to_vec();
        for part in parts {
            if own[axis] < part.shape[axis] {
                return part.at(&own);
            }
            own[axis] -= part.shape[axis];
        }
        unreachable!("an index inside")
    })
}

fn stack(parts: &[Array], axis: usize) -> Array {
    let mut shape = parts[0].shape.clone();
    shape.insert(axis, 1);
    cat(&parts.iter().map(|p| p.reshape(&shape)).collect::<Vec<_>>(), axis)
}

/// Each place takes the element at `place(axis, position, extent)`.
fn picked(x: &Array, shape: &[usize], place: impl Fn(usize, usize, usize) -> usize) -> Array {
    Array::from_fn(shape, |at| {
        let own: Vec<usize> = at.iter().enumerate().map(|(k, &i)| place(k, i, x.shape[k])).collect();
        x.at(&own)
    })
}

fn joining_rows() -> Vec<Row> {
    let resolve = |axis: isize, rank: usize| axis.rem_euclid(rank as isize) as usize;
    let mut rows = vec![];
    for (axis, cases) in [
        (
            0isize,
            &[&[&[2, 3][..], &[1, 3], &[4, 3]][..], &[&[2], &[1], &[3]], &[&[5, 2]], &[&[100, 3], &[31, 3]]]
                [..],
        ),
        (
            1,
            &[
                &[&[2, 3], &[2, 1]],
                &[&[2, 0], &[2, 2]],
                &[&[2, 1, 2], &[2, 2, 2], &[2, 3, 2], &[2, 1, 2], &[2, 2, 2]],
            ],
        ),
        (-1, &[&[&[2, 3], &[2, 1]], &[&[2, 2, 1], &[2, 2, 3]]]),
    ] {
        rows.push(
            row(
                format!("cat along {axis}"),
                move |x| Tensor::cat(x, axis),
                move |x| cat(x, resolve(axis, x[0].rank())),
            )
            .cases(cases)
            .dtypes(ALL)
            .exact(),
        );
    }
    for (axis, cases) in [
        (0isize, &[&[&[2, 3][..], &[2, 3]][..], &[&[], &[], &[]], &[&[0], &[0]], &[&[4]]]),
        (-1, &[&[&[2, 3], &[2, 3]], &[&[3], &[3], &[3]], &[&[], &[]], &[&[2, 0], &[2, 0]]]),
    ] {
        rows.push(
            row(
                format!("stack along {axis}"),
                move |x| Tensor::stack(x, axis),
                move |x| stack(x, resolve(axis, x[0].rank() + 1)),
            )
            .cases(cases)
            .dtypes(ALL)
            .exact(),
        );
    }
    rows.push(
        row(
            "cat of a tensor with itself",
            |x| Tensor::cat(&[&x[0], &x[0].t(), &x[0]], 0),
            |x| cat(&[x[0].clone(), x[0].t(), x[0].clone()], 0),
        )
        .cases(&[&[&[3, 3]]])
        .exact(),
    );
    rows.push(
        row(
            "cat, then a product",
            |x| Tensor::cat(&[&x[0], &x[1]], 1).matmul(&x[2]),
            |x| cat(&x[..2], 1).matmul(&x[2]),
        )
        .cases(&[&[&[3, 2], &[3, 3], &[5, 4]]])
        .slack(8.0),
    );
    rows
}

fn cutting_rows() -> Vec<Row> {
    type Cut = fn(&Tensor) -> Vec<Tensor>;
    // How to cut, and axis, start and extent of the part that is looked at.
    let table: &[(&str, Cut, usize, usize, usize, usize)] = &[
        ("split(2, 0)", |x| x.split(2, 0), 1, 0, 2, 2),
        ("the last of split(2, 0)", |x| x.split(2, 0), 2, 0, 4, 1),
        ("split_sizes([1, 3, 2], -1)", |x| x.split_sizes(&[1, 3, 2], -1), 1, 1, 1, 3),
        ("chunk(2, 0)", |x| x.chunk(2, 0), 0, 0, 0, 3),
        ("the last of chunk(2, 0)", |x| x.chunk(2, 0), 1, 0, 3, 2),
        ("chunk(4, 1)", |x| x.chunk(4, 1), 2, 1, 4, 2),
    ];
    let mut rows: Vec<Row> = table
        .iter()
        .map(|&(name, cut, which, axis, start, extent)| {
            row(name, move |x| cut(&x[0])[which].clone(), move |x| x[0].slice(axis, start, 1, extent))
                .cases(&[&[&[5, 6]]])
                .dtypes(ALL)
                .exact()
        })
        .collect();
    rows.push(
        row("unbind(1)", |x| x[0].unbind(1)[2].clone(), |x| x[0].select(1, 2))
            .cases(&[&[&[3, 4]]])
            .dtypes(ALL)
            .exact(),
    );
    rows.push(
        row(
            "the parts of a split, joined in another order",
            |x| {
                let parts = x[0].split(2, 0);
                Tensor::cat(&[&parts[2], &parts[0], &parts[1]], 0)
            },
            |x| cat(&[x[0].slice(0, 4, 1, 1), x[0].slice(0, 0, 1, 4)], 0),
        )
        .cases(&[&[&[5, 3]]])
        .exact(),
    );
    rows
}

fn repeating_rows() -> Vec<Row> {
    let modulo = |x: &Array, shape: &[usize]| {
        let added = shape.len() - x.rank();
        let x = x.reshape(&[&vec![1; added][..], &x.shape].concat());
        picked(&x, shape, |_, i, extent| i % extent)
    };
    vec![
        row(
            "repeat([2, 3])",
            |x| x[0].repeat([2, 3]),
            move |x| {
                let s = &x[0].shape;
                let last = s.last().copied().unwrap_or(1);
                let first = if s.len() > 1 { s[0] } else { 1 };
                modulo(&x[0], &[2 * first, 3 * last])
            },
        )
        .cases(&[&[&[2, 3]], &[&[4]], &[&[]]])
        .dtypes(ALL)
        .exact(),
        row("repeat([0, 1])", |x| x[0].repeat([0, 1]), |x| x[0].slice(0, 0, 1, 0))
            .cases(&[&[&[2, 3]]])
            .exact(),
        row("tile([2])", |x| x[0].tile([2]), move |x| modulo(&x[0], &[x[0].shape[0], 2 * x[0].shape[1]]))
            .cases(&[&[&[2, 3]]])
            .exact(),
        row(
            "repeat_interleave(3, 1)",
            |x| x[0].repeat_interleave(3, Some(1)),
            |x| picked(&x[0], &[x[0].shape[0], 3 * x[0].shape[1]], |k, i, _| if k == 1 { i / 3 } else { i }),
        )
        .cases(&[&[&[2, 3]], &[&[2, 0]]])
        .dtypes(ALL)
        .exact(),
        row(
            "repeat_interleave(2)",
            |x| x[0].repeat_interleave(2, None),
            |x| Array::from_fn(&[2 * x[0].numel()], |at| x[0].data[at[0] / 2]),
        )
        .cases(&[&[&[2, 3]], &[&[]]])
        .exact(),
        row(
            "roll(2, 1)",
            |x| x[0].roll(2, 1),
            |x| picked(&x[0], &x[0].shape, |k, i, e| if k == 1 { (i + e * 2 - 2) % e } else { i }),
        )
        .cases(&[&[&[2, 5]], &[&[2, 1]], &[&[3, 2]]])
        .dtypes(ALL)
        .exact(),
        row(
            "roll([-1, 7], [0, 1])",
            |x| x[0].roll([-1, 7], [0, 1]),
            |x| picked(&x[0], &x[0].shape, |k, i, e| if k == 0 { (i + 1) % e } else { (i + 7 * e - 7) % e }),
        )
        .cases(&[&[&[3, 5]]])
        .exact(),
        row(
            "roll(3) of all",
            |x| x[0].roll(3, [0isize; 0]),
            |x| {
                let n = x[0].numel();
                Array::new(&x[0].shape, (0..n).map(|k| x[0].data[(k + n * 3 - 3) % n]).collect())
            },
        )
        .cases(&[&[&[2, 5]], &[&[4]]])
        .exact(),
    ]
}

fn rows() -> Vec<Row> {
    joining_rows().into_iter().chain(cutting_rows()).chain(repeating_rows()).collect()
}

checks!(rows());

#[test(needs(more_than_webgpu))]
fn joining_promotes_types_and_keeps_every_bit() {
    let joined = Tensor::cat(&[Tensor::from_vec(vec![1, 2], [2]), Tensor::vector(&[-0.0, f32::NAN])], 0);
    assert_eq!(joined.dtype(), DType::F32);
    let bits: Vec<u32> = joined.to_vec::<f32>().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits[..3], [1f32.to_bits(), 2f32.to_bits(), (-0f32).to_bits()]);
    assert!(f32::from_bits(bits[3]).is_nan());
    let nothing = Tensor::zeros([0]);
    let around = Tensor::cat(&[nothing.clone(), Tensor::ones([2, 2]), nothing], 1);
    assert_eq!(around.to_vec::<f32>(), [1.0; 4], "vectors of nothing fit anything, as in PyTorch");
    let wide =
        Tensor::cat(&[Tensor::from_vec(vec![i64::MAX, -1], [2]), Tensor::from_vec(vec![i64::MIN], [1])], 0);
    assert_eq!(wide.to_vec::<i64>(), [i64::MAX, -1, i64::MIN]);
}
