//! Images of another size, and channels exchanged for pixels.

use crate::reference::Array;
use crate::table::*;
use volta::Interpolation::{self, Bilinear, Nearest};
use volta_testing::test;

/// The places along an axis a new pixel is made of, with their weights.
fn places(mode: Interpolation, i: usize, from: usize, to: usize, ratio: f64) -> Vec<(usize, f64)> {
    let last = (from - 1) as f64;
    match mode {
        Nearest => vec![(((i as f32 * ratio as f32).floor() as usize).min(from - 1), 1.0)],
        Bilinear { align_corners } => {
            let place = if align_corners {
                if to > 1 { i as f64 * last / (to - 1) as f64 } else { 0.0 }
            } else {
                (i as f64 + 0.5) * ratio - 0.5
            };
            let place = place.clamp(0.0, last);
            let below = place.floor() as usize;
            vec![(below, 1.0 - place.fract()), ((below + 1).min(from - 1), place.fract())]
        }
    }
}

fn resized(x: &Array, size: [usize; 2], ratio: [f64; 2], mode: Interpolation) -> Array {
    let s = &x.shape;
    Array::from_fn(&[s[0], s[1], size[0], size[1]], |at| {
        let mut sum = 0.0;
        for (row, p) in places(mode, at[2], s[2], size[0], ratio[0]) {
            for (column, q) in places(mode, at[3], s[3], size[1], ratio[1]) {
                sum += p * q * x.at(&[at[0], at[1], row, column]);
            }
        }
        sum
    })
}

fn shuffled(x: &Array, r: usize) -> Array {
    let n = x.rank();
    let mut shape = x.shape.clone();
    shape[n - 3] /= r * r;
    shape[n - 2] *= r;
    shape[n - 1] *= r;
    Array::from_fn(&shape, |at| {
        let mut own = at.to_vec();
        own[n - 3] = at[n - 3] * r * r + (at[n - 2] % r) * r + at[n - 1] % r;
        own[n - 2] = at[n - 2] / r;
        own[n - 1] = at[n - 1] / r;
        x.at(&own)
    })
}

fn unshuffled(x: &Array, r: usize) -> Array {
    let n = x.rank();
    let mut shape = x.shape.clone();
    shape[n - 3] *= r * r;
    shape[n - 2] /= r;
    shape[n - 1] /= r;
    Array::from_fn(&shape, |at| {
        let mut own = at.to_vec();
        let place = at[n - 3] % (r * r);
        own[n - 3] = at[n - 3] / (r * r);
        own[n - 2] = at[n - 2] * r + place / r;
        own[n - 1] = at[n - 1] * r + place % r;
        x.at(&own)
    })
}

fn rows() -> Vec<Row> {
    let mut rows = vec![];
    let modes = [Nearest, Bilinear { align_corners: false }, Bilinear { align_corners: true }];
    for mode in modes {
        for size in [[6, 8], [2, 2], [5, 3], [1, 1], [3, 4]] {
            rows.push(
                row(
                    format!("interpolate to {size:?}, {mode:?}"),
                    move |x| x[0].interpolate(size, mode),
                    move |x| {
                        let ratio = [0, 1].map(|k| x[0].shape[2 + k] as f64 / size[k] as f64);
                        resized(&x[0], size, ratio, mode)
                    },
                )
                .cases(&[&[&[2, 2, 3, 4]], &[&[1, 1, 1, 5]], &[&[1, 2, 7, 6]]])
                .slack(16.0),
            );
        }
        for scale in [[2.0, 2.0], [0.5, 1.7]] {
            rows.push(
                row(
                    format!("interpolate by {scale:?}, {mode:?}"),
                    move |x| x[0].interpolate_scale(scale, mode),
                    move |x| {
                        let size = [0, 1].map(|k| (x[0].shape[2 + k] as f64 * scale[k]).floor() as usize);
                        resized(&x[0], size, scale.map(|s| 1.0 / s), mode)
                    },
                )
                .cases(&[&[&[2, 2, 4, 5]]])
                .slack(16.0),
            );
        }
    }
    for r in [1, 2, 3] {
        let folded = vec![2, 2 * r * r, 2, 3];
        let open = vec![2, 2, 2 * r, 3 * r];
        rows.push(
            row(format!("pixel_shuffle({r})"), move |x| x[0].pixel_shuffle(r), move |x| shuffled(&x[0], r))
                .case(&[&folded])
                .case(&[&folded[1..]])
                .dtypes(ALL)
                .exact(),
        );
        rows.push(
            row(
                format!("pixel_unshuffle({r})"),
                move |x| x[0].pixel_unshuffle(r),
                move |x| unshuffled(&x[0], r),
            )
            .case(&[&open])
            .case(&[&open[1..]])
            .dtypes(ALL)
            .exact(),
        );
    }
    rows
}

checks!(rows());

#[test]
fn mixed_precision_does_not_round_what_is_interpolated() {
    use volta::{DType, Tensor, autocast};
    let x = Tensor::full([1, 1, 3, 3], 257.0);
    let y = autocast(DType::BF16, || x.interpolate([5, 4], Bilinear { align_corners: false }));
    assert_eq!((y.dtype(), y.to_vec::<f32>()), (DType::F32, vec![257.0; 20]));
}
