//! Rows longer than a block of the interpreter, whose values share passes: against the same numbers computed
//! plainly in f64, with odd lengths, NaN and infinities.

use volta::{Tensor, default_device};

/// Just above one block, whole blocks, a short rest, more than is kept of a row, and rows shared out to threads.
const SHAPES: [(usize, usize); 6] = [(3, 2049), (5, 4096), (4, 4097), (2, 5000), (4, 70_001), (2, 140_000)];

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
