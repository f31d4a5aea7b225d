//! Pooling: maxima and means of windows.

use crate::reference::Array;
use crate::table::*;
use volta::{PoolOptions, Tensor};
use volta_testing::test;

/// Every window of an image: `f` gets the elements inside the image and how many places, padding included, the
/// window covers.
fn pooled(x: &Array, kernel: [usize; 2], o: PoolOptions, f: impl Fn(&[f64], usize) -> f64) -> Array {
    let rank = x.rank();
    let stride = o.stride.unwrap_or(kernel);
    let mut shape = x.shape.clone();
    let mut extents = [0; 2];
    for k in 0..2 {
        let extent = x.shape[rank - 2 + k];
        extents[k] = extent;
        // As PyTorch has it; a window may begin before the image ends and reach beyond it.
        let more = if o.ceil_mode { stride[k] - 1 } else { 0 };
        let mut out = (extent + 2 * o.padding[k] + more + stride[k] - (o.dilation[k] * (kernel[k] - 1) + 1))
            / stride[k];
        // No window begins in the padding at the far end.
        if (out - 1) * stride[k] >= extent + o.padding[k] {
            out -= 1;
        }
        shape[rank - 2 + k] = out;
    }
    Array::from_fn(&shape, |at| {
        let mut inside = vec![];
        let mut covered = 0;
        for i in 0..kernel[0] {
            for j in 0..kernel[1] {
                let row = at[rank - 2] * stride[0] + i * o.dilation[0];
                let column = at[rank - 1] * stride[1] + j * o.dilation[1];
                if row >= extents[0] + 2 * o.padding[0] || column >= extents[1] + 2 * o.padding[1] {
                    continue;
                }
                covered += 1;
                let (Some(row), Some(column)) =
                    (row.checked_sub(o.padding[0]), column.checked_sub(o.padding[1]))
                else {
                    continue;
                };
                if row < extents[0] && column < extents[1] {
                    let mut own = at.to_vec();
                    own[rank - 2] = row;
                    own[rank - 1] = column;
                    inside.push(x.at(&own));
                }
            }
        }
        f(&inside, covered)
    })
}

fn largest(x: &Array, kernel: [usize; 2], o: PoolOptions) -> Array {
    pooled(x, kernel, o, |inside, _| inside.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn mean(x: &Array, kernel: [usize; 2], o: PoolOptions) -> Array {
    pooled(x, kernel, o, |inside, covered| {
        let count = if o.count_include_pad { covered } else { inside.len() };
        inside.iter().sum::<f64>() / count as f64
    })
}

fn tall(x: &Array) -> Array {
    let mut shape = x.shape.clone();
    shape.insert(x.rank() - 1, 1);
    x.reshape(&shape)
}

fn low(x: Array) -> Array {
    let mut shape = x.shape.clone();
    shape.remove(x.rank() - 2);
    x.reshape(&shape)
}

fn window_rows() -> Vec<Row> {
    let plain = PoolOptions::default();
    let over = PoolOptions { stride: Some([1, 2]), ..plain };
    let padded = PoolOptions { stride: Some([2, 1]), padding: [1, 1], ..plain };
    let without = PoolOptions { count_include_pad: false, ..padded };
    let ceil = PoolOptions { stride: Some([2, 2]), ceil_mode: true, ..plain };
    let ceil_padded = PoolOptions { stride: Some([3, 2]), padding: [1, 1], ceil_mode: true, ..plain };
    let ceil_without = PoolOptions { count_include_pad: false, ..ceil_padded };
    let dilated = PoolOptions { stride: Some([1, 1]), dilation: [2, 1], ..plain };
    let table: &[(&str, [usize; 2], PoolOptions, &[&[usize]])] = &[
        ("2x2", [2, 2], plain, &[&[2, 3, 4, 6], &[3, 5, 5], &[2, 1, 2, 2], &[1, 8, 16, 18]]),
        ("2x3, overlapping", [2, 3], over, &[&[2, 2, 4, 7]]),
        ("3x3, padded", [3, 3], padded, &[&[2, 2, 5, 4], &[2, 4, 3]]),
        ("3x3, padded, of what is inside", [3, 3], without, &[&[2, 2, 5, 4]]),
        ("2x2 up to the edge", [2, 2], ceil, &[&[1, 2, 5, 7], &[1, 1, 4, 4]]),
        ("3x3 over less than that", [3, 3], ceil, &[&[1, 2, 2, 2], &[1, 1, 2, 5], &[2, 4, 2]]),
        ("3x2 up to the padded edge", [3, 2], ceil_padded, &[&[1, 2, 5, 6], &[1, 1, 4, 7], &[1, 1, 6, 5]]),
        ("3x2 up to the edge, of what is inside", [3, 2], ceil_without, &[&[1, 2, 5, 6], &[1, 1, 4, 7]]),
        ("2x2, dilated", [2, 2], dilated, &[&[1, 2, 5, 4]]),
    ];
    let mut rows = vec![];
    for &(name, kernel, o, shapes) in table {
        let mut kinds = vec![
            row(
                format!("max_pool2d, {name}"),
                move |x| x[0].max_pool2d(kernel, o),
                move |x| largest(&x[0], kernel, o),
            )
            .values(&[Apart])
            .exact(),
        ];
        if o.dilation == [1, 1] {
            kinds.push(
                row(
                    format!("avg_pool2d, {name}"),
                    move |x| x[0].avg_pool2d(kernel, o),
                    move |x| mean(&x[0], kernel, o),
                )
                .slack(4.0),
            );
        }
        rows.extend(kinds.into_iter().map(|r| shapes.iter().fold(r, |r, shape| r.case(&[shape]))));
    }
    // One axis: the second of each pair must not matter.
    let flat = PoolOptions { stride: Some([2, 9]), padding: [1, 9], ..plain };
    let wide = PoolOptions { stride: Some([1, 2]), padding: [0, 1], ..plain };
    rows.push(
        row(
            "max_pool1d",
            move |x| x[0].max_pool1d(3, flat),
            move |x| low(largest(&tall(&x[0]), [1, 3], wide)),
        )
        .cases(&[&[&[2, 3, 8]], &[&[2, 7]]])
        .values(&[Apart])
        .exact(),
    );
    rows.push(
        row("avg_pool1d", move |x| x[0].avg_pool1d(3, flat), move |x| low(mean(&tall(&x[0]), [1, 3], wide)))
            .cases(&[&[&[2, 3, 8]], &[&[2, 7]]])
            .slack(4.0),
    );
    rows
}

fn adaptive_rows() -> Vec<Row> {
    let adaptive = |x: &Array, size: [usize; 2]| {
        let rank = x.rank();
        let mut shape = x.shape.clone();
        shape.splice(rank - 2.., size);
        Array::from_fn(&shape, |at| {
            let part = |k: usize| {
                let (from, to, i) = (x.shape[rank - 2 + k], size[k], at[rank - 2 + k]);
                i * from / to..((i + 1) * from).div_ceil(to)
            };
            let mut inside = vec![];
            for row in part(0) {
                for column in part(1) {
                    let mut own = at.to_vec();
                    own[rank - 2] = row;
                    own[rank - 1] = column;
                    inside.push(x.at(&own));
                }
            }
            inside.iter().sum::<f64>() / inside.len() as f64
        })
    };
    [[1, 1], [2, 3], [3, 2], [7, 5]]
        .map(|size| {
            row(
                format!("adaptive_avg_pool2d({size:?})"),
                move |x| x[0].adaptive_avg_pool2d(size),
                move |x| adaptive(&x[0], size),
            )
            .cases(&[&[&[2, 2, 4, 6]], &[&[2, 5, 7]], &[&[1, 2, 5, 4]]])
            .slack(8.0)
        })
        .into()
}

fn rows() -> Vec<Row> {
    window_rows().into_iter().chain(adaptive_rows()).collect()
}

checks!(rows());

#[test]
fn the_first_of_equal_maxima_in_a_window_gets_the_gradient() {
    let x = Tensor::ones([1, 1, 2, 4]).requires_grad(true);
    x.max_pool2d([2, 2], PoolOptions::default()).sum().backward();
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_nan_wins_its_window() {
    let x = Tensor::from_vec(vec![1.0f32, f32::NAN, 3.0, 4.0], [1, 1, 1, 4]);
    let y = x.max_pool2d([1, 2], PoolOptions::default()).to_vec::<f32>();
    assert!(y[0].is_nan() && y[1] == 4.0, "{y:?}");
}

#[test]
fn mixed_precision_does_not_round_what_is_averaged() {
    use volta::{DType, autocast};
    let x = Tensor::full([1, 1, 4, 6], 257.0);
    let y = autocast(DType::BF16, || x.adaptive_avg_pool2d([3, 4]));
    assert_eq!(y.dtype(), DType::F32);
    y.to_vec::<f32>().iter().for_each(|y| assert!((y - 257.0).abs() < 1e-3, "{y}"));
}

/// There is room for the whole image between the places of such a window.
#[test]
fn windows_that_see_nothing_but_padding_are_the_least_there_is() {
    let x = Tensor::vector(&[3.0, 5.0]).reshape([1, 2]).requires_grad(true);
    let options =
        PoolOptions { stride: Some([1, 1]), padding: [2, 2], dilation: [3, 3], ..Default::default() };
    let y = x.max_pool1d(2, options);
    assert_eq!(y.to_vec::<f32>(), [5.0, f32::NEG_INFINITY, 3.0]);
    (y * Tensor::vector(&[10.0, 100.0, 1000.0])).sum().backward();
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [1000.0, 10.0]);
    let image = Tensor::vector(&[10.0, 20.0, 30.0]).reshape([1, 1, 3, 1]);
    let options =
        PoolOptions { stride: Some([1, 1]), padding: [0, 1], dilation: [1, 2], ..Default::default() };
    assert_eq!(image.max_pool2d([1, 2], options).to_vec::<f32>(), [f32::NEG_INFINITY; 3]);
}
