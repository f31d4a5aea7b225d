//! Convolutions of all kinds, with stride, padding, dilation and groups.

use crate::reference::{Array, Window, conv_transpose2d, conv2d};
use crate::table::*;
use volta::{ConvOptions, Device, Tensor, with_device};
use volta_testing::test;

const PLAIN: Window = Window { stride: [1, 1], padding: [0, 0], dilation: [1, 1], groups: 1 };

fn options(w: Window, output_padding: [usize; 2]) -> ConvOptions {
    ConvOptions {
        stride: w.stride,
        padding: w.padding,
        dilation: w.dilation,
        groups: w.groups,
        output_padding,
    }
}

fn with_bias(y: Array, bias: &Array) -> Array {
    let mut shape = vec![1; y.rank()];
    shape[1] = bias.numel();
    y.add(&bias.reshape(&shape))
}

fn small(r: Row) -> Row {
    r.values(&[Between(-1.0, 1.0)]).slack(30.0)
}

/// Two-dimensional ones: the window, input and weight.
fn forward_rows() -> Vec<Row> {
    let table: &[(&str, Window, &[&[&[usize]]])] = &[
        (
            "plain",
            PLAIN,
            &[
                &[&[2, 3, 5, 4], &[4, 3, 3, 2]],
                &[&[1, 1, 1, 1], &[1, 1, 1, 1]],
                &[&[0, 3, 5, 4], &[4, 3, 3, 2]],
            ],
        ),
        ("1x1 kernel", PLAIN, &[&[&[2, 3, 4, 5], &[4, 3, 1, 1]], &[&[1, 24, 9, 11], &[17, 24, 1, 1]]]),
        ("kernel of the input's size", PLAIN, &[&[&[2, 3, 3, 2], &[4, 3, 3, 2]]]),
        (
            "stride",
            Window { stride: [2, 3], ..PLAIN },
            &[&[&[2, 2, 7, 8], &[3, 2, 3, 2]], &[&[1, 2, 8, 7], &[3, 2, 3, 2]]],
        ),
        ("stride beyond the kernel", Window { stride: [3, 4], ..PLAIN }, &[&[&[1, 2, 8, 10], &[2, 2, 2, 1]]]),
        ("padding", Window { padding: [1, 2], ..PLAIN }, &[&[&[2, 2, 4, 3], &[3, 2, 3, 3]]]),
        (
            "padding beyond the kernel",
            Window { padding: [3, 2], ..PLAIN },
            &[&[&[1, 1, 2, 2], &[1, 1, 2, 2]]],
        ),
        ("dilation", Window { dilation: [2, 1], ..PLAIN }, &[&[&[2, 2, 7, 4], &[3, 2, 3, 2]]]),
        ("groups", Window { groups: 2, ..PLAIN }, &[&[&[2, 4, 4, 4], &[6, 2, 2, 2]]]),
        (
            "depthwise",
            Window { groups: 3, padding: [1, 1], ..PLAIN },
            &[&[&[2, 3, 4, 4], &[3, 1, 3, 3]], &[&[1, 3, 5, 5], &[6, 1, 3, 3]]],
        ),
        (
            "everything",
            Window { stride: [2, 1], padding: [2, 1], dilation: [1, 2], groups: 2 },
            &[&[&[2, 4, 6, 7], &[4, 2, 3, 3]], &[&[1, 4, 5, 6], &[2, 2, 2, 3]]],
        ),
        ("large", Window { padding: [1, 1], ..PLAIN }, &[&[&[2, 9, 17, 13], &[18, 9, 3, 3]]]),
        (
            "large by 2",
            Window { stride: [2, 2], padding: [3, 3], ..PLAIN },
            &[&[&[1, 3, 25, 22], &[16, 3, 7, 7]]],
        ),
    ];
    let mut rows = Vec::new();
    for &(name, window, cases) in table {
        rows.push(small(
            row(
                format!("conv2d, {name}"),
                move |x| x[0].conv2d(&x[1], None, options(window, [0, 0])),
                move |x| conv2d(&x[0], &x[1], window),
            )
            .cases(cases),
        ));
    }
    rows.push(small(
        row(
            "conv2d with bias and relu",
            |x| x[0].conv2d(&x[1], Some(&x[2]), ConvOptions { padding: [1, 1], ..Default::default() }).relu(),
            |x| {
                let y = conv2d(&x[0], &x[1], Window { padding: [1, 1], ..PLAIN });
                with_bias(y, &x[2]).map(|v| v.max(0.0))
            },
        )
        .cases(&[&[&[2, 3, 5, 4], &[4, 3, 3, 3], &[4]]]),
    ));
    rows
}

fn one_axis_rows() -> Vec<Row> {
    let table: &[(&str, ConvOptions, &[&[&[usize]]])] = &[
        ("plain", ConvOptions::default(), &[&[&[2, 3, 7], &[4, 3, 3]]]),
        (
            "everything",
            ConvOptions {
                stride: [2, 9],
                padding: [2, 9],
                dilation: [3, 9],
                groups: 2,
                output_padding: [0, 0],
            },
            &[&[&[2, 4, 9], &[6, 2, 3]]],
        ),
    ];
    let mut rows = Vec::new();
    for &(name, o, cases) in table {
        rows.push(small(
            row(
                format!("conv1d, {name}"),
                move |x| x[0].conv1d(&x[1], None, o),
                move |x| {
                    let window = Window {
                        stride: [1, o.stride[0]],
                        padding: [0, o.padding[0]],
                        dilation: [1, o.dilation[0]],
                        groups: o.groups,
                    };
                    let tall = |a: &Array| a.reshape(&[a.shape[0], a.shape[1], 1, a.shape[2]]);
                    let y = conv2d(&tall(&x[0]), &tall(&x[1]), window);
                    y.reshape(&[y.shape[0], y.shape[1], y.shape[3]])
                },
            )
            .cases(cases),
        ));
    }
    rows
}

fn transposed_rows() -> Vec<Row> {
    let table: &[(&str, Window, [usize; 2], &[&[&[usize]]])] = &[
        ("plain", PLAIN, [0, 0], &[&[&[2, 3, 4, 3], &[3, 4, 3, 2]]]),
        (
            "1x1 and beyond it",
            Window { dilation: [2, 2], ..PLAIN },
            [1, 1],
            &[&[&[2, 3, 4, 3], &[3, 4, 1, 1]]],
        ),
        ("stride", Window { stride: [2, 3], ..PLAIN }, [0, 0], &[&[&[2, 3, 3, 2], &[3, 2, 3, 2]]]),
        ("output padding", Window { stride: [2, 3], ..PLAIN }, [1, 2], &[&[&[2, 3, 3, 2], &[3, 2, 3, 2]]]),
        ("padding", Window { padding: [1, 2], ..PLAIN }, [0, 0], &[&[&[1, 2, 4, 5], &[2, 3, 3, 3]]]),
        ("dilation", Window { dilation: [2, 3], ..PLAIN }, [0, 0], &[&[&[1, 2, 3, 3], &[2, 3, 2, 2]]]),
        ("groups", Window { groups: 2, ..PLAIN }, [0, 0], &[&[&[2, 4, 3, 3], &[4, 3, 2, 2]]]),
        (
            "everything",
            Window { stride: [2, 3], padding: [1, 2], dilation: [2, 1], groups: 2 },
            [1, 1],
            &[&[&[2, 4, 3, 4], &[4, 2, 3, 3]]],
        ),
    ];
    let mut rows = Vec::new();
    for &(name, window, extra, cases) in table {
        rows.push(small(
            row(
                format!("conv_transpose2d, {name}"),
                move |x| x[0].conv_transpose2d(&x[1], None, options(window, extra)),
                move |x| conv_transpose2d(&x[0], &x[1], window, extra),
            )
            .cases(cases),
        ));
    }
    rows.push(small(
        row(
            "conv_transpose2d with bias",
            |x| x[0].conv_transpose2d(&x[1], Some(&x[2]), ConvOptions::default()),
            |x| with_bias(conv_transpose2d(&x[0], &x[1], PLAIN, [0, 0]), &x[2]),
        )
        .cases(&[&[&[2, 3, 4, 3], &[3, 4, 3, 2], &[4]]]),
    ));
    rows
}

fn rows() -> Vec<Row> {
    forward_rows().into_iter().chain(one_axis_rows()).chain(transposed_rows()).collect()
}

checks!(rows());

/// As where a network goes on from one pixel to one with a stride.
#[test]
fn a_stride_onto_a_single_pixel_changes_nothing() {
    let run = || {
        let numbers =
            |n: usize| (0..n).map(|k| ((k * 7919) % 1013) as f32 * 1e-3 - 0.5).collect::<Vec<f32>>();
        let x = Tensor::from_vec(numbers(2 * 512), [2, 512, 1, 1]).realize().clone();
        let w = Tensor::from_vec(numbers(512 * 16), [512, 16, 1, 1]).realize().clone();
        x.conv_transpose2d(&w, None, ConvOptions { stride: [2, 2], ..ConvOptions::default() }).to_vec::<f32>()
    };
    for (a, b) in run().into_iter().zip(with_device(Device::Cpu, run)) {
        assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{a} is not {b}");
    }
}
