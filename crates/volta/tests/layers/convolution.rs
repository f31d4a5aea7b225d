//! Convolutions and transposed ones.

use crate::array::Array;
use crate::driver::{Parameters, check_forward};
use volta::{Conv1d, Conv2d, ConvOptions, ConvTranspose2d};
use volta_testing::test;

fn convolved(p: &Parameters, x: &Array, o: &ConvOptions) -> Array {
    let (w, b) = (&p["weight"], p.get("bias"));
    let [outputs, channels, kh, kw] = w.shape[..] else { panic!() };
    let size = |k: usize, kernel: usize| {
        (x.shape[2 + k] + 2 * o.padding[k] - o.dilation[k] * (kernel - 1) - 1) / o.stride[k] + 1
    };
    Array::from_fn(&[x.shape[0], outputs, size(0, kh), size(1, kw)], |i| {
        let first = i[1] / (outputs / o.groups) * channels;
        let mut sum = b.map_or(0.0, |b| b.at(&[i[1]]));
        for c in 0..channels {
            for dy in 0..kh {
                for dx in 0..kw {
                    let y = (i[2] * o.stride[0] + dy * o.dilation[0]) as isize - o.padding[0] as isize;
                    let z = (i[3] * o.stride[1] + dx * o.dilation[1]) as isize - o.padding[1] as isize;
                    sum += w.at(&[i[1], c, dy, dx]) * x.padded(i[0], first + c, y, z);
                }
            }
        }
        sum
    })
}

fn transposed(p: &Parameters, x: &Array, o: &ConvOptions) -> Array {
    let (w, b) = (&p["weight"], p.get("bias"));
    let [inputs, each, kh, kw] = w.shape[..] else { panic!() };
    let size = |k: usize, kernel: usize| {
        (x.shape[2 + k] - 1) * o.stride[k] + o.dilation[k] * (kernel - 1) + 1 + o.output_padding[k]
            - 2 * o.padding[k]
    };
    let mut out = Array::from_fn(&[x.shape[0], each * o.groups, size(0, kh), size(1, kw)], |i| {
        b.map_or(0.0, |b| b.at(&[i[1]]))
    });
    for n in 0..x.shape[0] {
        for c in 0..inputs {
            for (y, z) in (0..x.shape[2]).flat_map(|y| (0..x.shape[3]).map(move |z| (y, z))) {
                for (k, dy, dx) in (0..each).flat_map(|k| (0..kh * kw).map(move |d| (k, d / kw, d % kw))) {
                    let to_y = (y * o.stride[0] + dy * o.dilation[0]) as isize - o.padding[0] as isize;
                    let to_x = (z * o.stride[1] + dx * o.dilation[1]) as isize - o.padding[1] as isize;
                    let inside = to_y >= 0
                        && to_x >= 0
                        && (to_y as usize) < out.shape[2]
                        && (to_x as usize) < out.shape[3];
                    if inside {
                        let channel = c / (inputs / o.groups) * each + k;
                        let part = x.at(&[n, c, y, z]) * w.at(&[c, k, dy, dx]);
                        out.add_at(&[n, channel, to_y as usize, to_x as usize], part);
                    }
                }
            }
        }
    }
    out
}

#[test]
fn conv2d_agrees_with_loops() {
    let layers = [
        ("3×3", Conv2d::new(2, 4, 3, 1, 1, true)),
        ("stride 2 without bias", Conv2d::new(2, 3, 2, 2, 0, false)),
        ("uneven", Conv2d::new(2, 3, [1, 3], [2, 1], (0, 1), true)),
        ("dilated", Conv2d::new(2, 3, 2, 1, 2, true).with_dilation([2, 1])),
        ("grouped", Conv2d::new(4, 6, 3, 1, 1, true).with_groups(2)),
        ("depthwise", Conv2d::new(4, 4, 3, 2, 1, false).with_groups(4)),
    ];
    for (what, layer) in layers {
        let channels = layer.weight.size(1) * layer.options.groups;
        let x = Array::waves(&[2, channels, 5, 6], 40);
        check_forward(what, &layer, &x, |p, x| convolved(p, x, &layer.options));
    }
}

#[test]
fn a_single_image_is_a_batch_of_one() {
    let layer = Conv2d::new(2, 3, 3, 1, 1, true);
    check_forward("no batch", &layer, &Array::waves(&[2, 4, 4], 40), |p, x| {
        convolved(p, &x.reshaped(&[1, 2, 4, 4]), &layer.options).reshaped(&[3, 4, 4])
    });
}

#[test]
fn conv1d_agrees_with_loops() {
    let layers = [
        ("plain", Conv1d::new(2, 4, 3, 1, 1, true)),
        ("stride 2", Conv1d::new(2, 3, 4, 2, 1, false)),
        ("grouped and dilated", Conv1d::new(4, 2, 2, 1, 0, true).with_groups(2).with_dilation(3)),
    ];
    for (what, layer) in layers {
        let channels = layer.weight.size(1) * layer.options.groups;
        let o = layer.options;
        let flat = ConvOptions {
            stride: [1, o.stride[0]],
            padding: [0, o.padding[0]],
            dilation: [1, o.dilation[0]],
            ..o
        };
        check_forward(what, &layer, &Array::waves(&[2, channels, 9], 41), |p, x| {
            let mut p = p.clone();
            let w = p["weight"].clone();
            p.insert("weight".into(), w.reshaped(&[w.shape[0], w.shape[1], 1, w.shape[2]]));
            let y = convolved(&p, &x.reshaped(&[2, channels, 1, 9]), &flat);
            y.reshaped(&[2, y.shape[1], y.shape[3]])
        });
    }
}

#[test]
fn conv_transpose2d_agrees_with_loops() {
    let layers = [
        ("plain", ConvTranspose2d::new(3, 2, 3, 1, 1, true)),
        ("stride 2", ConvTranspose2d::new(2, 3, 2, 2, 0, false)),
        ("output padding", ConvTranspose2d::new(2, 2, 3, 2, 1, true).with_output_padding(1)),
        ("uneven", ConvTranspose2d::new(2, 2, [2, 3], [1, 2], [0, 1], true).with_dilation([2, 1])),
        ("grouped", ConvTranspose2d::new(4, 6, 2, 2, 0, true).with_groups(2)),
    ];
    for (what, layer) in layers {
        let x = Array::waves(&[2, layer.weight.size(0), 3, 4], 42);
        check_forward(what, &layer, &x, |p, x| transposed(p, x, &layer.options));
    }
}
