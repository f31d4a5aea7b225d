//! Every way of multiplying against plain sums in f64, for every format, at sizes that leave rests everywhere.

use super::{Matrix, dequantize, multiply};
use crate::gemm::Mat;
use half::f16;
use std::sync::Mutex;
use volta_ir::op::quantized::{BLOCK, BlockFormat};

/// A matrix with numbers from a counter, and what it holds.
struct Sample {
    words: Vec<u32>,
    scales: Vec<u32>,
    format: BlockFormat,
    rows: usize,
    columns: usize,
    numbers: Vec<f64>,
}

fn bits(seed: &mut u64) -> u32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as u32
}

impl Sample {
    fn new(format: BlockFormat, rows: usize, columns: usize) -> Sample {
        let mut seed = (rows * 1000 + columns) as u64;
        let words: Vec<u32> =
            (0..rows * format.row_words(columns)).map(|_| bits(&mut seed) << 1 ^ bits(&mut seed)).collect();
        // Small numbers of both signs, a subnormal among them.
        let half = |seed: &mut u64| match bits(seed) % 5 {
            0 => 0x8003u16,
            k => f16::from_f32(k as f32 * 0.01 - 0.025).to_bits(),
        };
        let count = rows * format.row_scales(columns);
        let scales: Vec<u32> =
            (0..count).map(|_| u32::from(half(&mut seed)) | u32::from(half(&mut seed)) << 16).collect();
        let mut sample = Sample { words, scales, format, rows, columns, numbers: Vec::new() };
        sample.numbers = (0..rows * columns).map(|k| sample.number(k / columns, k % columns)).collect();
        sample
    }

    /// A weight, by the format's definition.
    fn number(&self, row: usize, column: usize) -> f64 {
        let (block, k) = (column / BLOCK, column % BLOCK);
        let half = |k: usize| {
            let word = self.scales[row * self.format.row_scales(self.columns) + k / 2];
            f16::from_bits((word >> (k % 2 * 16)) as u16).to_f64()
        };
        let byte = |k: usize| {
            let first = row * self.format.row_words(self.columns) + block * self.format.block_words();
            (self.words[first + k / 4] >> (k % 4 * 8)) as u8
        };
        let nibble = f64::from(byte(k % 16) >> (k / 16 * 4) & 15);
        match self.format {
            BlockFormat::Int8 => half(block) * f64::from(byte(k) as i8),
            BlockFormat::Int4 => half(block) * (nibble - 8.0),
            BlockFormat::Int4Min => half(2 * block) * nibble + half(2 * block + 1),
        }
    }

    fn matrix(&self) -> Matrix {
        Matrix {
            format: self.format,
            rows: self.rows,
            columns: self.columns,
            words: self.words.as_ptr(),
            scales: self.scales.as_ptr(),
            word_stride: self.format.row_words(self.columns) as isize,
            scale_stride: self.format.row_scales(self.columns) as isize,
        }
    }
}

#[test]
fn every_number_is_decoded() {
    for format in BlockFormat::ALL {
        let sample = Sample::new(format, 3, 96);
        let mut out = vec![0.0f32; 3 * 96];
        // SAFETY: it has as many numbers.
        unsafe { dequantize(&sample.matrix(), out.as_mut_ptr()) };
        for (a, b) in out.iter().zip(&sample.numbers) {
            assert!((f64::from(*a) - b).abs() <= 1e-6, "{format:?}: {a} is not {b}");
        }
    }
}

#[test]
fn products_are_sums_over_decoded_numbers() {
    let sizes = [(1, 32), (5, 64), (130, 96), (67, 352), (40, 1568)];
    for format in BlockFormat::ALL {
        for (rows, columns) in sizes {
            let sample = Sample::new(format, rows, columns);
            for m in [1, 2, 5, 8, 9, 33] {
                for by_rows in [false, true] {
                    check(&sample, m, by_rows);
                }
            }
        }
    }
}

fn check(sample: &Sample, m: usize, by_rows: bool) {
    let (rows, columns) = (sample.rows, sample.columns);
    let (k, n) = if by_rows { (rows, columns) } else { (columns, rows) };
    let mut seed = m as u64;
    let x: Vec<f32> = (0..m * k).map(|_| bits(&mut seed) as f32 / (1u64 << 31) as f32 - 0.5).collect();
    let mut c = vec![f32::NAN; m * n];
    let regions = Mutex::new(vec![0u8; m * n]);
    // Columns of x lie side by side, as a transposed operand's do.
    let turned: Vec<f32> = (0..m * k).map(|at| x[at % m * k + at / m]).collect();
    let x_at = Mat { data: turned.as_ptr(), row_stride: 1, col_stride: m as isize };
    let done = |rows: std::ops::Range<usize>, cols: std::ops::Range<usize>| {
        let mut regions = regions.lock().unwrap();
        rows.for_each(|i| cols.clone().for_each(|j| regions[i * n + j] += 1));
    };
    // SAFETY: all of these are as large as they are said to be.
    unsafe { multiply(&sample.matrix(), by_rows, m, x_at, c.as_mut_ptr(), &done) };
    assert!(regions.into_inner().unwrap().iter().all(|&count| count == 1), "every result is reported once");
    for i in 0..m {
        for j in 0..n {
            let weight = |p: usize| sample.numbers[if by_rows { p * columns + j } else { j * columns + p }];
            let (mut sum, mut size) = (0.0, 0.0);
            for p in 0..k {
                let term = f64::from(x[i * k + p]) * weight(p);
                (sum, size) = (sum + term, size + term.abs());
            }
            let off = (f64::from(c[i * n + j]) - sum).abs();
            let case = format!("{:?}, {rows} × {columns}, {m} rows, by rows: {by_rows}", sample.format);
            assert!(off <= 1e-5 * size + 1e-6, "{case}: ({i}, {j}) is off by {off} of {size}");
        }
    }
}
