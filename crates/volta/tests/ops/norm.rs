//! Normalization over axes, channels, groups and vectors.

use crate::reference::Array;
use crate::table::*;
use volta_testing::test;

const EPS: f64 = 1e-3;

/// (x − mean) / √(variance + eps) over axes.
fn standardized(x: &Array, axes: &[usize]) -> Array {
    let centred = x.sub(&x.mean_of(axes, true));
    let variance = centred.mul(&centred).mean_of(axes, true);
    centred.div(&variance.map(|v| (v + EPS).sqrt()))
}

/// One value a channel.
fn channels(x: &Array, rank: usize) -> Array {
    let mut shape = vec![1; rank];
    shape[1] = x.numel();
    x.reshape(&shape)
}

fn last(x: &Array, count: usize) -> Vec<usize> {
    (x.rank() - count..x.rank()).collect()
}

fn rest(x: &Array) -> Vec<usize> {
    (0..x.rank()).filter(|&k| k != 1).collect()
}

fn rows() -> Vec<Row> {
    let wide = |r: Row| r.slack(40.0);
    let layered: &[&[&[usize]]] =
        &[&[&[2, 3, 4], &[4], &[4]], &[&[5, 7], &[7], &[7]], &[&[9, 300], &[300], &[300]]];
    let deep: &[&[&[usize]]] = &[&[&[2, 3, 4], &[3, 4], &[3, 4]]];
    let by_channel: &[&[&[usize]]] = &[
        &[&[4, 3, 5], &[3], &[3]],
        &[&[5, 3], &[3], &[3]],
        &[&[2, 4, 3, 3], &[4], &[4]],
        &[&[6, 33, 9, 5], &[33], &[33]],
    ];
    vec![
        wide(
            row(
                "layer_norm",
                |x| x[0].layer_norm(x[1].shape(), Some(&x[1]), Some(&x[2]), EPS),
                |x| standardized(&x[0], &last(&x[0], x[1].rank())).mul(&x[1]).add(&x[2]),
            )
            .cases(layered)
            .cases(deep),
        ),
        wide(
            row(
                "layer_norm without parameters",
                |x| x[0].layer_norm([4], None, None, EPS),
                |x| standardized(&x[0], &last(&x[0], 1)),
            )
            .cases(&[&[&[2, 3, 4]], &[&[4]], &[&[0, 4]]]),
        ),
        wide(
            row(
                "layer_norm with a weight",
                |x| x[0].layer_norm([4], Some(&x[1]), None, EPS),
                |x| standardized(&x[0], &last(&x[0], 1)).mul(&x[1]),
            )
            .cases(&[&[&[2, 3, 4], &[4]]]),
        ),
        wide(
            row(
                "rms_norm",
                |x| x[0].rms_norm(x[1].shape(), Some(&x[1]), EPS),
                |x| {
                    let axes = last(&x[0], x[1].rank());
                    let mean = x[0].mul(&x[0]).mean_of(&axes, true);
                    x[0].div(&mean.map(|m| (m + EPS).sqrt())).mul(&x[1])
                },
            )
            .cases(&[&[&[2, 3, 4], &[4]], &[&[2, 3, 4], &[3, 4]], &[&[7, 257], &[257]]]),
        ),
        wide(
            row(
                "batch_norm_train",
                |x| x[0].batch_norm_train(Some(&x[1]), Some(&x[2]), EPS).0,
                |x| {
                    let r = x[0].rank();
                    standardized(&x[0], &rest(&x[0])).mul(&channels(&x[1], r)).add(&channels(&x[2], r))
                },
            )
            .cases(by_channel),
        ),
        wide(
            row(
                "the mean of batch_norm_train",
                |x| x[0].batch_norm_train(None, None, EPS).1,
                |x| x[0].mean_of(&rest(&x[0]), false),
            )
            .cases(&[&[&[4, 3, 5]], &[&[5, 2]]])
            .dtypes(WIDE_FLOATS),
        ),
        wide(
            row(
                "the variance of batch_norm_train",
                |x| x[0].batch_norm_train(None, None, EPS).2,
                |x| {
                    let centred = x[0].sub(&x[0].mean_of(&rest(&x[0]), true));
                    centred.mul(&centred).mean_of(&rest(&x[0]), false)
                },
            )
            .cases(&[&[&[4, 3, 5]], &[&[5, 2]]])
            .dtypes(WIDE_FLOATS),
        ),
        wide(
            row(
                "batch_norm_eval",
                |x| x[0].batch_norm_eval(&x[1], &x[2], Some(&x[3]), Some(&x[4]), EPS),
                |x| {
                    let r = x[0].rank();
                    let spread = channels(&x[2], r).map(|v| (v + EPS).sqrt());
                    let y = x[0].sub(&channels(&x[1], r)).div(&spread);
                    y.mul(&channels(&x[3], r)).add(&channels(&x[4], r))
                },
            )
            .cases(&[&[&[4, 3, 5], &[3], &[3], &[3], &[3]], &[&[4, 3], &[3], &[3], &[3], &[3]]])
            .values(&[
                Between(-2.0, 2.0),
                Between(-1.0, 1.0),
                Between(0.5, 2.0),
                Between(-2.0, 2.0),
            ]),
        ),
        wide(
            row(
                "group_norm(2)",
                |x| x[0].group_norm(2, Some(&x[1]), Some(&x[2]), EPS),
                |x| {
                    let s = &x[0].shape;
                    let blocks = x[0].reshape(&[s[0], 2, x[0].numel() / s[0] / 2]);
                    let y = standardized(&blocks, &[2]).reshape(s);
                    y.mul(&channels(&x[1], s.len())).add(&channels(&x[2], s.len()))
                },
            )
            .cases(&[
                &[&[2, 4, 3], &[4], &[4]],
                &[&[3, 4], &[4], &[4]],
                &[&[2, 6, 5, 5], &[6], &[6]],
            ]),
        ),
        wide(
            row(
                "normalize",
                |x| x[0].normalize(2.0, 1, 1e-12),
                |x| x[0].div(&x[0].fold(&[1], true, |g| g.iter().map(|v| v * v).sum::<f64>().sqrt())),
            )
            .cases(&[&[&[3, 5]], &[&[2, 4, 3]]]),
        ),
        wide(
            row(
                "cosine_similarity",
                |x| x[0].cosine_similarity(&x[1], 1, 1e-8),
                |x| {
                    let dot = |a: &Array, b: &Array| a.mul(b).sum_of(&[1], false);
                    let lengths = dot(&x[0], &x[0]).mul(&dot(&x[1], &x[1])).map(f64::sqrt);
                    dot(&x[0], &x[1]).div(&lengths)
                },
            )
            .cases(&[&[&[3, 5], &[3, 5]], &[&[2, 4, 3], &[2, 4, 3]]]),
        ),
    ]
}

checks!(rows());
