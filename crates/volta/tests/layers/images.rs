//! Pooling, resizing and reshaping.

use crate::array::{Array, array, tensor};
use crate::driver::{assert_close, check_forward, value_tolerance};
use volta::{
    AdaptiveAvgPool2d, AvgPool2d, Flatten, Identity, Interpolation, MaxPool2d, Module, PixelShuffle,
    PoolOptions, Sequential, Unflatten, Upsample,
};
use volta_testing::test;

/// The elements of every window that lie inside, and how many places it has in all.
fn windows(x: &Array, kernel: [usize; 2], o: &PoolOptions, f: impl Fn(&[f64], usize) -> f64) -> Array {
    let stride = o.stride.unwrap_or(kernel);
    let size =
        |k: usize| (x.shape[2 + k] + 2 * o.padding[k] - o.dilation[k] * (kernel[k] - 1) - 1) / stride[k] + 1;
    Array::from_fn(&[x.shape[0], x.shape[1], size(0), size(1)], |i| {
        let mut inside = Vec::new();
        for (dy, dx) in (0..kernel[0]).flat_map(|dy| (0..kernel[1]).map(move |dx| (dy, dx))) {
            let y = (i[2] * stride[0] + dy * o.dilation[0]) as isize - o.padding[0] as isize;
            let z = (i[3] * stride[1] + dx * o.dilation[1]) as isize - o.padding[1] as isize;
            if y >= 0 && z >= 0 && (y as usize) < x.shape[2] && (z as usize) < x.shape[3] {
                inside.push(x.padded(i[0], i[1], y, z));
            }
        }
        f(&inside, kernel[0] * kernel[1])
    })
}

#[test]
fn max_pool2d_agrees_with_loops() {
    let dilated = PoolOptions { dilation: [2, 1], stride: Some([1, 2]), ..PoolOptions::default() };
    for layer in [
        MaxPool2d::new(2, 2, 0),
        MaxPool2d::new(3, 2, 1),
        MaxPool2d::new([1, 2], [2, 1], 0),
        MaxPool2d::with_options(2, dilated),
    ] {
        check_forward("max", &layer, &Array::waves(&[2, 2, 5, 6], 3), |_, x| {
            windows(x, layer.kernel, &layer.options, |w, _| {
                w.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            })
        });
    }
}

#[test]
fn avg_pool2d_agrees_with_loops() {
    let only_inside = PoolOptions {
        padding: [1, 1],
        stride: Some([2, 2]),
        count_include_pad: false,
        ..PoolOptions::default()
    };
    for layer in [AvgPool2d::new(2, 2, 0), AvgPool2d::new(3, 1, 1), AvgPool2d::with_options(3, only_inside)] {
        check_forward("mean", &layer, &Array::waves(&[2, 2, 5, 6], 3), |_, x| {
            windows(x, layer.kernel, &layer.options, |w, all| {
                let count = if layer.options.count_include_pad { all } else { w.len() };
                w.iter().sum::<f64>() / count as f64
            })
        });
    }
}

#[test]
fn adaptive_pooling_averages_parts_that_may_overlap() {
    for size in [[1, 1], [2, 3], [3, 4]] {
        let layer = AdaptiveAvgPool2d::new(size);
        check_forward("adaptive", &layer, &Array::waves(&[2, 3, 5, 6], 3), |_, x| {
            Array::from_fn(&[2, 3, size[0], size[1]], |i| {
                let part = |k: usize| {
                    let (at, from, to) = (i[2 + k], x.shape[2 + k], size[k]);
                    at * from / to..((at + 1) * from).div_ceil(to)
                };
                let (rows, columns) = (part(0), part(1));
                let count = rows.len() * columns.len();
                let all = rows.flat_map(|y| columns.clone().map(move |z| (y, z)));
                all.map(|(y, z)| x.at(&[i[0], i[1], y, z])).sum::<f64>() / count as f64
            })
        });
    }
}

#[test]
fn pixels_come_from_channels() {
    let layer = PixelShuffle::new(2);
    check_forward("shuffle", &layer, &Array::waves(&[2, 8, 2, 3], 5), |_, x| {
        Array::from_fn(&[2, 2, 4, 6], |i| {
            x.at(&[i[0], i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, i[2] / 2, i[3] / 2])
        })
    });
}

#[test]
fn upsampling_repeats_or_blends() {
    let x = Array::waves(&[1, 2, 3, 4], 6);
    let nearest = Upsample::new(2.0, Interpolation::Nearest);
    check_forward("nearest", &nearest, &x, |_, x| {
        Array::from_fn(&[1, 2, 6, 8], |i| x.at(&[i[0], i[1], i[2] / 2, i[3] / 2]))
    });
    for align_corners in [false, true] {
        let layer = Upsample::to_size([5, 7], Interpolation::Bilinear { align_corners });
        check_forward("bilinear", &layer, &x, |_, x| {
            Array::from_fn(&[1, 2, 5, 7], |i| {
                let place = |k: usize| {
                    let (at, from, to) = (i[2 + k] as f64, x.shape[2 + k] as f64, [5.0, 7.0][k]);
                    let place = if align_corners {
                        at * (from - 1.0) / (to - 1.0)
                    } else {
                        ((at + 0.5) * from / to - 0.5).max(0.0)
                    };
                    let low = place.floor().min(from - 1.0);
                    (low as usize, (low as usize + 1).min(x.shape[2 + k] - 1), place - low)
                };
                let ((y, y1, ty), (z, z1, tz)) = (place(0), place(1));
                let get = |y, z| x.at(&[i[0], i[1], y, z]);
                let row = |y| get(y, z) * (1.0 - tz) + get(y, z1) * tz;
                row(y) * (1.0 - ty) + row(y1) * ty
            })
        });
    }
}

#[test]
fn shapes_change_and_elements_stay() {
    let model = Sequential::new(vec![
        Box::new(Flatten::new()),
        Box::new(Identity),
        Box::new(Unflatten::new(1, [2, -1])),
        Box::new(Flatten::axes(0, 1)),
    ]);
    let x = Array::waves(&[3, 2, 4], 7);
    let y = model.forward(&tensor(&x));
    assert_close("reshaped", &array(&y), &x.reshaped(&[6, 4]), value_tolerance());
}
