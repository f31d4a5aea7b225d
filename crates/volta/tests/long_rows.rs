//! Rows longer than a block of the interpreter, whose values share passes: against the same numbers computed
//! plainly in f64, with odd lengths, NaN and infinities.

use volta::{CrossEntropyOptions, DType, Reduction, Tensor, cross_entropy_with, default_device};
use volta_testing::test;

/// Just above one block, whole blocks, a short rest, more than is kept of a row, in fours and not, and rows shared out to
/// threads.
const SHAPES: [(usize, usize); 8] =
    [(3, 2049), (5, 4096), (4, 4097), (2, 5000), (3, 33_278), (2, 50_304), (4, 70_001), (2, 140_000)];

fn values(rows: usize, width: usize) -> Vec<f32> {
    (0..rows * width).map(|i| ((i * 7919 + 31) % 2003) as f32 * 0.004 - 3.0).collect()
}

/// `slack` is what a difference of numbers of the row's size may lose.
fn close(found: f32, expected: f64, slack: f64, what: &str) {
    let same = (found.is_nan() && expected.is_nan())
        || (f64::from(found) - expected).abs() <= 2e-5 * expected.abs() + slack
        || f64::from(found) == expected;
    assert!(same, "{what}: {found}, not {expected}");
}

/// The CPU loses next to nothing; a GPU takes differences of numbers as large as the row's in f32.
fn slack(row: &[f64]) -> f64 {
    let finite = row.iter().filter(|v| v.is_finite());
    match default_device().is_gpu() {
        true => finite.fold(1e-7, |most: f64, v| most.max(2e-7 * v.abs())),
        false => 1e-7,
    }
}

/// Compares what `op` makes of rows, some with special numbers in them, with `plain` of each row.
fn check(name: &str, op: impl Fn(&Tensor, usize) -> Tensor, plain: impl Fn(&[f64]) -> Vec<f64>) {
    for (rows, width) in SHAPES {
        for special in [None, Some(f32::NEG_INFINITY), Some(f32::INFINITY), Some(f32::NAN)] {
            let mut x = values(rows, width);
            if let Some(special) = special {
                x[width - 1] = special;
                x[width + width / 2] = special;
            }
            let y = op(&Tensor::from_vec(x.clone(), [rows, width]), width).to_vec::<f32>();
            for (k, (x, y)) in x.chunks(width).zip(y.chunks(width)).enumerate() {
                let row: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
                let plain = plain(&row);
                let slack = slack(&plain);
                for (found, expected) in y.iter().zip(plain) {
                    close(
                        *found,
                        expected,
                        slack,
                        &format!("{name} of {rows}x{width} with {special:?}, row {k}"),
                    );
                }
            }
        }
    }
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(f64::NEG_INFINITY, |m, &x| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(x) })
}

#[test]
fn softmax() {
    check(
        "softmax",
        |x, _| x.softmax(1),
        |x| {
            let m = largest(x);
            let e: Vec<f64> = x.iter().map(|x| (x - m).exp()).collect();
            let sum: f64 = e.iter().sum();
            e.iter().map(|e| e / sum).collect()
        },
    );
}

#[test]
fn log_softmax() {
    check(
        "log_softmax",
        |x, _| x.log_softmax(1),
        |x| {
            let m = largest(x);
            let sum: f64 = x.iter().map(|x| (x - m).exp()).sum();
            x.iter().map(|x| x - m - sum.ln()).collect()
        },
    );
}

fn logsumexp_of(x: &[f64]) -> f64 {
    let m = largest(x);
    if m.is_infinite() { m } else { m + x.iter().map(|x| (x - m).exp()).sum::<f64>().ln() }
}

#[test]
fn logsumexp() {
    check("logsumexp", |x, _| x.logsumexp(1, true), |x| vec![logsumexp_of(x)]);
}

/// Rows whose largest element comes late, early or never, and numbers whose exponentials are no numbers.
#[test]
fn sums_of_exponentials_follow_a_maximum_that_grows() {
    let width = 50_304;
    let rising: Vec<f32> = (0..width).map(|i| i as f32 * 0.01 - 300.0).collect();
    let falling: Vec<f32> = rising.iter().rev().copied().collect();
    let steps: Vec<f32> = (0..width).map(|i| ((i / 9000) * 50) as f32 - 1000.0).collect();
    let nothing = vec![f32::NEG_INFINITY; width];
    let mut one = nothing.clone();
    one[width - 3] = -700.0;
    let mut both = rising.clone();
    (both[5], both[40_000]) = (f32::INFINITY, f32::NEG_INFINITY);
    let mut unknown = both.clone();
    unknown[20_000] = f32::NAN;
    let lowest = vec![f32::MIN; width];
    let rows = [rising, falling, steps, nothing, one, both, unknown, lowest];
    let x = Tensor::from_vec(rows.concat(), [rows.len(), width]);
    let found = x.logsumexp(1, false).to_vec::<f32>();
    let softmax = x.softmax(1).to_vec::<f32>();
    for (k, row) in rows.iter().enumerate() {
        let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        close(found[k], logsumexp_of(&row), 1e-7, &format!("row {k}"));
        let m = largest(&row);
        let sum: f64 = row.iter().map(|x| (x - m).exp()).sum();
        for (i, x) in row.iter().enumerate() {
            let expected = (x - m).exp() / sum;
            close(softmax[k * width + i], expected, 1e-7, &format!("softmax, row {k}, element {i}"));
        }
    }
}

#[test(needs(more_than_webgpu))]
fn cross_entropy_picks_the_class_of_every_row() {
    for (rows, width, dtype) in [(5, 33_278, DType::I32), (5, 50_304, DType::I64)] {
        let x = values(rows, width);
        let targets = [0, width as i32 - 1, 12_345, -100, 77];
        let t = Tensor::from_vec(targets.to_vec(), [rows]);
        let options = CrossEntropyOptions { reduction: Reduction::None, ..Default::default() };
        let logits = Tensor::from_vec(x.clone(), [rows, width]);
        let found = cross_entropy_with(&logits, &t.to_dtype(dtype), options).to_vec::<f32>();
        for (k, row) in x.chunks(width).enumerate() {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            let expected = usize::try_from(targets[k]).map_or(0.0, |t| logsumexp_of(&row) - row[t]);
            close(found[k], expected, 1e-6, &format!("loss of row {k} of {width} with targets of {dtype}"));
        }
    }
}

#[test]
fn cross_entropy_picks_unsigned_classes_as_it_does_signed_ones() {
    let (rows, width) = (5, 33_278);
    let logits = Tensor::from_vec(values(rows, width), [rows, width]);
    let targets = Tensor::from_vec(vec![0u32, width as u32 - 1, 12_345, 20_000, 77], [rows]);
    let options = CrossEntropyOptions { reduction: Reduction::None, ..Default::default() };
    let [unsigned, signed] = [DType::U32, DType::I32]
        .map(|dtype| cross_entropy_with(&logits, &targets.to_dtype(dtype), options).to_vec::<f32>());
    assert_eq!(unsigned, signed);
}

#[test]
fn a_sum_with_one_place_apart_counts_the_others_too() {
    let (rows, width) = (4, 40_001);
    let x: Vec<f32> = (0..rows * width).map(|i| (i % 7) as f32).collect();
    let t = Tensor::from_vec(vec![3i32, 40_000, 40_001, -1], [rows, 1]);
    let hit = Tensor::arange(0, width as i64).to_dtype(DType::I32).eq(&t);
    let x_of = Tensor::from_vec(x.clone(), [rows, width]);
    let peak = x_of.max_dim(1, true);
    let found = hit.where_(&x_of - &peak, 0.5).sum_dim(1, false).to_vec::<f32>();
    for (k, place) in [Some(3), Some(40_000), None, None].into_iter().enumerate() {
        let apart = place.map_or(0.5, |p| x[k * width + p] - 6.0);
        assert_eq!(found[k], apart + 0.5 * (width - 1) as f32, "row {k}");
    }
}

#[test]
fn layer_norm() {
    check(
        "layer_norm",
        |x, n| x.layer_norm([n], None, None, 1e-5),
        |x| {
            let n = x.len() as f64;
            let mean = x.iter().sum::<f64>() / n;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            x.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt()).collect()
        },
    );
}

#[test]
fn sums_of_products() {
    check(
        "a sum of products",
        |x, _| x * (x * (x + 1.0)).sum_dim(1, true),
        |x| {
            let sum: f64 = x.iter().map(|x| x * (x + 1.0)).sum();
            x.iter().map(|x| x * sum).collect()
        },
    );
}

#[test]
fn exponentials_that_are_stored_and_scaled() {
    for (rows, width) in SHAPES {
        let x = values(rows, width);
        let t = Tensor::from_vec(x.clone(), [rows, width]);
        let e = (&t - t.max_dim(1, true)).exp();
        let y = &e * (e.sum_dim(1, true) + 1.0);
        let z = &e * 2.0 + &y;
        let (e, y, z) = (e.to_vec::<f32>(), y.to_vec::<f32>(), z.to_vec::<f32>());
        for k in 0..rows {
            let row = k * width..(k + 1) * width;
            let m = x[row.clone()].iter().fold(f32::MIN, |m, &x| m.max(x));
            let plain: Vec<f64> = x[row.clone()].iter().map(|x| f64::from(x - m).exp()).collect();
            let sum: f64 = plain.iter().sum();
            for (i, plain) in row.zip(plain) {
                close(e[i], plain, 1e-7, "e");
                close(y[i], plain * (sum + 1.0), 1e-7, "y");
                close(z[i], plain * (sum + 3.0), 1e-7, "z");
            }
        }
    }
}

/// What later passes over a row read again is what was gathered.
#[test]
fn gathered_rows_are_normalized() {
    for width in [100, 3000, 4096, 5000] {
        let table = Tensor::from_vec(values(6, width), [6, width]);
        let rows = Tensor::from_vec(vec![4i32, 1, 5], [3]);
        let columns = Tensor::arange(0, width as i64 - 7);
        let weight = Tensor::from_vec(values(1, width), [width]);
        for (name, lazy, whole) in [
            ("rms_norm", table.embedding(&rows), table.embedding(&rows)),
            ("softmax", table.index_select(1, &columns), table.index_select(1, &columns)),
        ] {
            let op = |x: &Tensor| match name {
                "softmax" => x.softmax(1),
                _ => x.rms_norm([width], Some(&weight), 1e-5) + x.layer_norm([width], None, None, 1e-5),
            };
            let expected = op(whole.realize()).to_vec::<f32>();
            for (found, expected) in op(&lazy).to_vec::<f32>().iter().zip(expected) {
                close(*found, f64::from(expected), 1e-6, &format!("{name} of {width}"));
            }
        }
    }
}

volta_testing::main!();
