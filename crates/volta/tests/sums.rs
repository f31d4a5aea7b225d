//! Sums down the columns of a matrix, as gradients of biases are: against the same numbers added in f64, for shapes that
//! are split among workgroups and shapes that are not, read four columns at a time or one. And sums of many tensors, as
//! norms of gradients are.

use volta::{DType, Tensor, last_plan, realize_all};
use volta_testing::test;

/// Tall and narrow, wide, one workgroup's, columns that are no multiple of four, rows that fill no turn, and many
/// elements.
const SHAPES: [(usize, usize); 9] =
    [(3000, 12), (4096, 96), (700, 260), (33, 8), (1000, 30), (5, 64), (129, 1028), (2500, 9), (8200, 132)];

fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 31) % 2003) as f32 * 0.0009765625 - 0.75).collect()
}

fn check(what: &str, found: &[f32], expected: &[f64], rows: usize) {
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let slack = 1e-6 * rows as f64;
        assert!((f64::from(*found) - expected).abs() < slack, "{what}, column {k}: {found}, not {expected}");
    }
}

#[test]
fn columns_of_f32_and_f16_are_summed() {
    for (rows, columns) in SHAPES {
        for dtype in [DType::F32, DType::F16] {
            let x = Tensor::from_vec(values(rows * columns), [rows, columns]).to_dtype(dtype);
            x.realize();
            let kept: Vec<f32> = x.to_dtype(DType::F32).to_vec();
            let sums = (x.to_dtype(DType::F32).square() + 0.5).sum_dim([0], false).to_vec::<f32>();
            let mut expected = vec![0.0; columns];
            for (i, x) in kept.iter().enumerate() {
                expected[i % columns] += f64::from(*x).powi(2) + 0.5;
            }
            check(&format!("{rows}x{columns} of {dtype:?}"), &sums, &expected, rows);
        }
    }
}

/// Both sums end in one kernel that folds four columns at once; of the second, all of a row's four are the same number.
#[test]
fn a_total_of_what_is_the_same_along_rows_counts_all_of_it() {
    let x = Tensor::from_vec(vec![0.5f32; 512 * 16 * 64], [512, 16, 64]).realize().clone();
    let w = Tensor::from_vec((0..16).map(|k| k as f32).collect(), [16, 1]).realize().clone();
    let both = (x.sum_dim([0], false) - 256.0).square().sum() + w.expand([16, 64]).sum();
    assert_eq!(both.item::<f32>(), 120.0 * 64.0);
}

#[test]
fn columns_with_a_number_for_each_row_and_each_column_are_summed_together_with_their_total() {
    for (rows, columns) in SHAPES {
        let x = Tensor::from_vec(values(rows * columns), [rows, columns]);
        let (each_row, each_column) =
            (Tensor::from_vec(values(rows), [rows, 1]), Tensor::from_vec(values(columns), [columns]));
        realize_all(&[x.clone(), each_row.clone(), each_column.clone()]);
        let sums = (&x * &each_row + &each_column).sum_dim([0], false);
        let total = sums.sum();
        let (total, sums) = (total.item::<f32>(), sums.to_vec::<f32>());
        let (x, a, b) = (values(rows * columns), values(rows), values(columns));
        let mut expected = vec![0.0; columns];
        for (i, x) in x.iter().enumerate() {
            expected[i % columns] += f64::from(*x) * f64::from(a[i / columns]) + f64::from(b[i % columns]);
        }
        check(&format!("{rows}x{columns}"), &sums, &expected, rows);
        check("the total", &[total], &[expected.iter().sum()], rows * columns);
    }
}

#[test]
fn the_largest_and_smallest_of_columns_and_a_nan_are_found() {
    for (rows, columns) in SHAPES {
        let mut x = values(rows * columns);
        x[(rows - 1) * columns + 2] = f32::NAN;
        let t = Tensor::from_vec(x.clone(), [rows, columns]);
        t.realize();
        let (most, least) = (t.max_dim([0], false).to_vec::<f32>(), t.min_dim([0], false).to_vec::<f32>());
        for column in (0..columns).filter(|c| *c != 2) {
            let all = || (0..rows).map(|r| x[r * columns + column]);
            assert_eq!(most[column], all().fold(f32::MIN, f32::max), "{rows}x{columns}, column {column}");
            assert_eq!(least[column], all().fold(f32::MAX, f32::min), "{rows}x{columns}, column {column}");
        }
        assert!(most[2].is_nan() && least[2].is_nan(), "{rows}x{columns}: NaN stays");
    }
}

#[test]
fn sums_of_many_tensors_are_one_kernel() {
    for sizes in [[5000, 4, 70_001, 9000, 1 << 15, 6000], [768, 4, 3072, 9001, 1 << 14, 6000]] {
        let tensors: Vec<Tensor> = sizes.iter().map(|&n| Tensor::from_vec(values(n), [n])).collect();
        let sums: Vec<Tensor> = tensors.iter().map(|t| (t * 2.0).sum()).collect();
        realize_all(&sums);
        let plan = last_plan().expect("a plan ran");
        assert_eq!(plan.kernels.len(), 1, "{plan}");
        assert_eq!(plan.kernels[0].instances, sizes.len(), "{plan}");
        for (n, sum) in sizes.into_iter().zip(sums) {
            let expected = values(n).iter().map(|x| 2.0 * f64::from(*x)).sum();
            check(&format!("{n} elements"), &[sum.item::<f32>()], &[expected], n);
        }
    }
}

#[test]
fn sums_between_products_stay_where_they_are() {
    let w = Tensor::from_vec(values(64 * 64), [64, 64]);
    let (mut x, mut sums) = (w.clone(), Vec::new());
    for _ in 0..3 {
        x = x.matmul(&w);
        sums.push(x.sum());
    }
    realize_all(&sums);
    let plan = last_plan().expect("a plan ran");
    assert!(plan.kernels.iter().all(|k| k.instances == 1), "what a sum reads is let go of at once:\n{plan}");
}

volta_testing::main!();
