//! Views: the same values elsewhere.

use crate::reference::Array;
use crate::table::*;
use volta::{Range, Tensor};
use volta_testing::test;

type Method = fn(&Tensor) -> Tensor;
type Naive = fn(&Array) -> Array;

/// Windows of an axis as a new last axis.
fn windows(x: &Array, axis: usize, size: usize, step: usize, dilation: usize) -> Array {
    let mut shape = x.shape.clone();
    shape[axis] = (x.shape[axis] - ((size - 1) * dilation + 1)) / step + 1;
    shape.push(size);
    Array::from_fn(&shape, |at| {
        let mut own = at[..at.len() - 1].to_vec();
        own[axis] = at[axis] * step + at[at.len() - 1] * dilation;
        x.at(&own)
    })
}

fn rows() -> Vec<Row> {
    let table: &[(&str, Method, Naive, &[&[usize]])] = &[
        ("reshape([5, 3])", |x| x.reshape([5, 3]), |x| x.reshape(&[5, 3]), &[&[3, 5], &[15], &[1, 3, 5]]),
        (
            "reshape([-1])",
            |x| x.reshape([-1]),
            |x| x.reshape(&[x.numel()]),
            &[&[3, 5], &[], &[0, 2], &[40, 80]],
        ),
        (
            "reshape([2, -1, 2])",
            |x| x.reshape([2, -1, 2]),
            |x| x.reshape(&[2, x.numel() / 4, 2]),
            &[&[4, 6], &[8]],
        ),
        ("reshape([])", |x| x.reshape([0i32; 0]), |x| x.reshape(&[]), &[&[1, 1], &[1]]),
        ("reshape([0, 3])", |x| x.reshape([0, 3]), |x| x.reshape(&[0, 3]), &[&[2, 0], &[0]]),
        ("view_as", |x| x.view_as(&Tensor::zeros([3, 5])), |x| x.reshape(&[3, 5]), &[&[15], &[5, 3]]),
        ("permute([1, 0])", |x| x.permute([1, 0]), |x| x.permute(&[1, 0]), &[&[3, 5], &[0, 4], &[70, 130]]),
        (
            "permute([2, 0, 1])",
            |x| x.permute([2, 0, 1]),
            |x| x.permute(&[2, 0, 1]),
            &[&[2, 3, 4], &[9, 17, 33]],
        ),
        ("permute([-1, 1, 0])", |x| x.permute([-1, 1, 0]), |x| x.permute(&[2, 1, 0]), &[&[2, 3, 4]]),
        ("permute([])", |x| x.permute([0i32; 0]), |x| x.clone(), &[&[]]),
        ("transpose(0, -1)", |x| x.transpose(0, -1), |x| x.permute(&[2, 1, 0]), &[&[2, 3, 4]]),
        ("t", |x| x.t(), |x| x.t(), &[&[3, 5], &[2, 3, 4]]),
        ("t of a vector", |x| x.t(), |x| x.clone(), &[&[4], &[]]),
        (
            "expand([4, 3, 5])",
            |x| x.expand([4, 3, 5]),
            |x| x.broadcast_to(&[4, 3, 5]),
            &[&[3, 1], &[5], &[], &[4, 1, 1], &[1, 3, 5]],
        ),
        ("expand([2, -1])", |x| x.expand([2, -1]), |x| x.broadcast_to(&[2, x.shape[1]]), &[&[1, 3], &[1, 0]]),
        ("expand([0, 3])", |x| x.expand([0, 3]), |x| x.broadcast_to(&[0, 3]), &[&[1, 3], &[3], &[1]]),
        ("expand_as", |x| x.expand_as(&Tensor::zeros([2, 3])), |x| x.broadcast_to(&[2, 3]), &[&[2, 1], &[3]]),
        (
            "pad",
            |x| x.pad(&[(1, 2), (0, 3)], 0.5),
            |x| x.pad(&[(1, 2), (0, 3)], 0.5),
            &[&[3, 5], &[0, 2], &[33, 65]],
        ),
        (
            "pad with -inf",
            |x| x.pad(&[(2, 0)], f64::NEG_INFINITY).exp(),
            |x| x.pad(&[(2, 0)], f64::NEG_INFINITY).map(f64::exp),
            &[&[4]],
        ),
        ("pad of a number", |x| x.pad(&[], 1.0), |x| x.clone(), &[&[]]),
        ("flip([0])", |x| x.flip([0]), |x| x.flip(&[0]), &[&[5], &[3, 4], &[0, 2], &[700]]),
        ("flip([0, -1])", |x| x.flip([0, -1]), |x| x.flip(&[0, 2]), &[&[2, 3, 4]]),
        ("flip([])", |x| x.flip([0i32; 0]), |x| x.clone(), &[&[3], &[]]),
        ("narrow", |x| x.narrow(1, 1, 2), |x| x.slice(1, 1, 1, 2), &[&[3, 4], &[0, 3]]),
        ("narrow to nothing", |x| x.narrow(0, 1, 0), |x| x.slice(0, 0, 1, 0), &[&[3, 4]]),
        ("select(1, -1)", |x| x.select(1, -1), |x| x.select(1, x.shape[1] - 1), &[&[3, 4], &[2, 3, 2]]),
        (
            "slice",
            |x| x.slice([(1..3).into(), Range::by(.., 2)]),
            |x| x.slice(0, 1, 1, 2).slice(1, 0, 2, x.shape[1].div_ceil(2)),
            &[&[3, 5], &[4, 4, 2]],
        ),
        (
            "slice from the end",
            |x| x.slice([Range::from(-3..-1)]),
            |x| x.slice(0, x.shape[0] - 3, 1, 2),
            &[&[5], &[4, 3]],
        ),
        (
            "slice by 3 from 1",
            |x| x.slice([Range::by(1.., 3)]),
            |x| x.slice(0, 1, 3, (x.shape[0] - 1).div_ceil(3)),
            &[&[8], &[9, 2], &[10], &[1001]],
        ),
        ("slice up to and with", |x| x.slice([Range::from(1..=2)]), |x| x.slice(0, 1, 1, 2), &[&[4]]),
        (
            "slice with the last",
            |x| x.slice([Range::from(1..=-1)]),
            |x| x.slice(0, 1, 1, x.shape[0] - 1),
            &[&[4]],
        ),
        ("unfold(0, 3, 1)", |x| x.unfold(0, 3, 1), |x| windows(x, 0, 3, 1, 1), &[&[7], &[5, 2]]),
        ("unfold(-1, 2, 3)", |x| x.unfold(-1, 2, 3), |x| windows(x, x.rank() - 1, 2, 3, 1), &[&[2, 9], &[8]]),
        (
            "windows(1, 3, 2, 2)",
            |x| x.windows(1, 3, 2, 2),
            |x| windows(x, 1, 3, 2, 2),
            &[&[2, 9], &[2, 10, 3]],
        ),
        (
            "squeeze",
            |x| x.squeeze(1),
            |x| if x.shape[1] == 1 { x.select(1, 0) } else { x.clone() },
            &[&[3, 1, 2], &[3, 2], &[2, 1]],
        ),
        (
            "squeeze_all",
            |x| x.squeeze_all(),
            |x| x.reshape(&x.shape.iter().copied().filter(|&e| e != 1).collect::<Vec<_>>()),
            &[&[1, 3, 1, 2], &[1], &[]],
        ),
        (
            "unsqueeze(-1)",
            |x| x.unsqueeze(-1),
            |x| x.reshape(&[&x.shape[..], &[1]].concat()),
            &[&[3, 2], &[], &[0]],
        ),
        ("unsqueeze(0)", |x| x.unsqueeze(0), |x| x.reshape(&[&[1], &x.shape[..]].concat()), &[&[3, 2], &[]]),
        ("flatten(0, -1)", |x| x.flatten(0, -1), |x| x.reshape(&[x.numel()]), &[&[3, 5], &[], &[2, 0]]),
        (
            "flatten(1, 2)",
            |x| x.flatten(1, 2),
            |x| x.reshape(&[x.shape[0], x.shape[1] * x.shape[2], x.shape[3]]),
            &[&[2, 3, 4, 2]],
        ),
        (
            "unflatten(1, [2, -1])",
            |x| x.unflatten(1, [2, -1]),
            |x| x.reshape(&[x.shape[0], 2, x.shape[1] / 2]),
            &[&[3, 6]],
        ),
    ];
    let mut rows: Vec<Row> =
        table.iter().map(|&(name, call, naive, shapes)| moved(name, call, naive, shapes)).collect();
    rows.extend(chains());
    rows
}

fn moved(name: &str, call: Method, naive: Naive, shapes: &[&[usize]]) -> Row {
    let dtypes = if name == "pad with -inf" { FLOATS } else { ALL };
    let r = row(name, move |x| call(&x[0]), move |x| naive(&x[0])).dtypes(dtypes).exact();
    shapes.iter().fold(r, |r, shape| r.case(&[shape]))
}

/// Views of views: what a planner composes, or must copy for.
fn chains() -> Vec<Row> {
    let table: &[(&str, Method, Naive, &[&[usize]])] = &[
        (
            "permute, then reshape",
            |x| x.permute([1, 0]).reshape([-1]),
            |x| x.t().reshape(&[x.numel()]),
            &[&[3, 5], &[40, 33]],
        ),
        (
            "reshape, permute, reshape",
            |x| x.reshape([2, 3, -1]).permute([2, 0, 1]).reshape([-1, 6]),
            |x| x.reshape(&[2, 3, x.numel() / 6]).permute(&[2, 0, 1]).reshape(&[x.numel() / 6, 6]),
            &[&[6, 4], &[12]],
        ),
        (
            "flip of a slice by 2",
            |x| x.slice([Range::by(1.., 2)]).flip(0),
            |x| x.slice(0, 1, 2, x.shape[0] / 2).flip(&[0]),
            &[&[7], &[8, 3]],
        ),
        (
            "slice by 2 of a flip",
            |x| x.flip(0).slice([Range::by(.., 2)]),
            |x| x.flip(&[0]).slice(0, 0, 2, x.shape[0].div_ceil(2)),
            &[&[7], &[8, 3]],
        ),
        (
            "pad of a flip of a pad",
            |x| x.pad(&[(1, 0)], 2).flip(0).pad(&[(0, 2)], 5),
            |x| x.pad(&[(1, 0)], 2.0).flip(&[0]).pad(&[(0, 2)], 5.0),
            &[&[4]],
        ),
        (
            "narrow into the padding",
            |x| x.pad(&[(3, 3)], 4).narrow(0, 1, 4),
            |x| x.pad(&[(3, 3)], 4.0).slice(0, 1, 1, 4),
            &[&[3], &[1]],
        ),
        (
            "expand, then reshape",
            |x| x.unsqueeze(1).expand([-1, 3, -1]).reshape([-1, 4]),
            |x| {
                x.reshape(&[x.shape[0], 1, x.shape[1]])
                    .broadcast_to(&[x.shape[0], 3, x.shape[1]])
                    .reshape(&[3 * x.shape[0], x.shape[1]])
            },
            &[&[2, 4]],
        ),
        ("windows of a transpose", |x| x.t().unfold(0, 2, 2), |x| windows(&x.t(), 0, 2, 2, 1), &[&[3, 5]]),
        (
            "windows of windows",
            |x| x.unfold(0, 2, 1).unfold(1, 3, 2),
            |x| windows(&windows(x, 0, 2, 1, 1), 1, 3, 2, 1),
            &[&[5, 7]],
        ),
        (
            "windows of a pad",
            |x| x.pad(&[(1, 1)], 0).unfold(0, 3, 1),
            |x| windows(&x.pad(&[(1, 1)], 0.0), 0, 3, 1, 1),
            &[&[6]],
        ),
        (
            "sum of windows",
            |x| x.unfold(0, 3, 2).sum_dim(-1, false),
            |x| windows(x, 0, 3, 2, 1).sum_of(&[x.rank()], false),
            &[&[9], &[8, 2]],
        ),
        ("x plus its transpose", |x| x.add(x.t()), |x| x.add(&x.t()), &[&[4, 4], &[65, 65]]),
        ("x times its flip", |x| x.mul(x.flip(0)), |x| x.mul(&x.flip(&[0])), &[&[9]]),
    ];
    table
        .iter()
        .map(|&(name, call, naive, shapes)| {
            let mut r = moved(name, call, naive, shapes).dtypes(NUMBERS);
            if name == "sum of windows" {
                r = r.dtypes(FLOATS).slack(4.0);
                r.exact = false;
            }
            r
        })
        .collect()
}

checks!(rows());
