//! Maps and folds so large that an invocation of a GPU takes several elements, and so many that a dispatch takes
//! hundreds: numbers small enough to be exact, against plain loops.

mod sparse_rows;

use volta::optim::clip_grad_norm;
use volta::{AttentionOptions, DType, SGD, Tensor, realize_all};
use volta_testing::test;

/// Whole numbers from −8 to 8.
fn values(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| (i * step % 17) as f32 - 8.0).collect()
}

#[test]
fn a_map_over_long_rows_reads_what_belongs_to_each_row() {
    for (rows, width) in [(300, 1001), (40, 33_001), (70, 16_400)] {
        let (x, r) = (values(rows * width, 7), values(rows, 5));
        let t = Tensor::from_vec(x.clone(), [rows, width]) * Tensor::from_vec(r.clone(), [rows, 1]) + 3.0;
        let found = t.to_vec::<f32>();
        for (k, (found, x)) in found.iter().zip(&x).enumerate() {
            assert_eq!(*found, x * r[k / width] + 3.0, "element {k} of {rows}x{width}");
        }
    }
}

#[test]
fn a_large_tensor_is_updated_in_place_with_a_number_computed_on_the_way() {
    for count in [4 * ((1 << 18) + 3), 4 * (1 << 18) + 1] {
        let p = Tensor::from_vec(values(count, 11), [count]).variable();
        p.realize();
        let s = Tensor::from_vec(vec![1f32, 2., 3.], [3]);
        s.realize();
        for _ in 0..2 {
            let factor = s.sum() / 2.0;
            p.assign(&(&p * &factor - 1.0));
            p.realize();
        }
        for (k, (found, start)) in p.to_vec::<f32>().iter().zip(values(count, 11)).enumerate() {
            assert_eq!(*found, (start * 3.0 - 1.0) * 3.0 - 1.0, "element {k} of {count}");
        }
    }
}

#[test]
fn columns_of_joined_tensors_are_summed() {
    for (rows, width) in [(5000, 32), (4999, 33), (70, 20)] {
        let parts: Vec<Vec<f32>> = (0..3).map(|k| values(rows * width, 3 + 2 * k)).collect();
        let tensors: Vec<Tensor> = parts.iter().map(|p| Tensor::from_vec(p.clone(), [rows, width])).collect();
        let found = Tensor::cat(&tensors, 1).sum_dim([0], false).to_vec::<f32>();
        for (column, found) in found.iter().enumerate() {
            let (part, inside) = (&parts[column / width], column % width);
            let sum: f32 = (0..rows).map(|row| part[row * width + inside]).sum();
            assert_eq!(*found, sum, "column {column} of {rows}x{width}");
        }
    }
}

/// Sizes of many small tensors, with a large one and single numbers among them.
fn sizes() -> Vec<usize> {
    (0..300)
        .map(|k| [1 + k * 37 % 1500, 1, 70_003 - k][usize::from(k % 20 == 7) + usize::from(k == 27)])
        .collect()
}

#[test]
fn hundreds_of_tensors_of_different_sizes_step_at_once() {
    let parameters: Vec<Tensor> = sizes()
        .iter()
        .enumerate()
        .map(|(k, &n)| Tensor::from_vec(values(n, 3 + k), [n]).requires_grad(true))
        .collect();
    let mut sgd = SGD::new(parameters.clone(), 0.5, 0.5, 0.0);
    for _ in 0..2 {
        for (k, p) in parameters.iter().enumerate() {
            p.set_grad(Some(Tensor::from_vec(values(p.numel(), 5 + k), [p.numel()])));
        }
        sgd.step();
    }
    for (k, p) in parameters.iter().enumerate() {
        let (start, slope) = (values(p.numel(), 3 + k), values(p.numel(), 5 + k));
        // The second step's velocity is one and a half times the gradient.
        let wanted: Vec<f32> = start.iter().zip(&slope).map(|(p, g)| p - 1.25 * g).collect();
        assert_eq!(p.to_vec::<f32>(), wanted, "tensor {k}");
    }
}

#[test]
fn hundreds_of_tensors_change_by_numbers_of_their_own() {
    let tensors: Vec<Tensor> =
        sizes().iter().map(|&n| Tensor::from_vec(values(n, 7), [n]).variable()).collect();
    tensors.iter().for_each(|t| {
        t.realize();
    });
    for (k, t) in tensors.iter().enumerate() {
        t.assign(&(t * (k as f64) + 1.0));
    }
    realize_all(&tensors);
    for (k, t) in tensors.iter().enumerate() {
        let wanted: Vec<f32> = values(t.numel(), 7).iter().map(|x| x * k as f32 + 1.0).collect();
        assert_eq!(t.to_vec::<f32>(), wanted, "tensor {k}");
    }
}

#[test]
fn the_norm_of_hundreds_of_gradients_is_that_of_all_their_elements() {
    let of = |n: usize, k: usize| values(n, 1 + k).iter().map(|x| x % 2.0).collect::<Vec<f32>>();
    let parameters: Vec<Tensor> = (0..100)
        .map(|k| if k % 3 == 0 { 5000 + k } else { 4100 + 4 * k })
        .map(|n| Tensor::zeros([n]).requires_grad(true))
        .collect();
    let mut squares = 0.0;
    for (k, p) in parameters.iter().enumerate() {
        let g = of(p.numel(), k);
        squares += g.iter().map(|x| x * x).sum::<f32>();
        p.set_grad(Some(Tensor::from_vec(g, [p.numel()])));
    }
    let norm: f32 = clip_grad_norm(&parameters, 1e9).item();
    assert!((norm - squares.sqrt()).abs() <= 1e-6 * norm, "{norm} and {}", squares.sqrt());
}

#[test]
fn many_rows_are_added_to_few() {
    // Few enough places for one a workgroup, and more; fours of columns, and single ones; a place that most rows go to.
    // Rows that are sorted, and those that are looked at one by one.
    for (places, rows, columns) in [
        (65, 5000, 12),
        (7, 4096, 5),
        (300, 2000, 8),
        (1, 700, 8),
        (40, 300, 16),
        (1024, 1024, 8),
        (50, 33, 300),
        (9, 1000, 261),
        (30_000, 200, 8),
    ] {
        let x = values(rows * columns, 7);
        let place = |row: usize| if row % 3 == 1 { row * row % places } else { 3 % places };
        let index: Vec<i32> = (0..rows).flat_map(|row| vec![place(row) as i32; columns]).collect();
        let mut wanted = vec![0.0; places * columns];
        for (k, x) in x.iter().enumerate() {
            wanted[place(k / columns) * columns + k % columns] += x;
        }
        let single: Vec<i32> = (0..rows).map(|row| place(row) as i32).collect();
        let shared = Tensor::from_vec(single, [rows, 1]).expand([rows, columns]);
        for index in [shared, Tensor::from_vec(index, [rows, columns])] {
            let values = Tensor::from_vec(x.clone(), [rows, columns]);
            let found = Tensor::zeros([places, columns]).scatter_add(0, &index, &values);
            assert_eq!(found.to_vec::<f32>(), wanted, "{rows} rows of {columns} to {places}");
        }
    }
}

#[test]
fn a_tensor_that_is_larger_than_a_buffer_is_read() {
    // A GPU has a word for every byte; with WebGPU's limits, its buffers end at 256 MiB.
    let count = 70_000_000;
    let bytes = Tensor::arange(0, count).to_dtype(DType::U8).to_vec::<u8>();
    assert_eq!(bytes.len(), count as usize);
    assert_eq!(bytes.iter().enumerate().filter(|&(k, &byte)| byte != k as u8).count(), 0);
}

#[test]
fn rows_of_whole_numbers_are_added_and_wrap() {
    let (places, rows, columns) = (40, 300, 16);
    let place = |row: usize| row * row % places;
    let number = |k: usize| k * 37 % 256;
    let index: Vec<i32> = (0..rows).map(|row| place(row) as i32).collect();
    let index = Tensor::from_vec(index, [rows, 1]).expand([rows, columns]);
    let mut wanted = vec![0usize; places * columns];
    for k in 0..rows * columns {
        wanted[place(k / columns) * columns + k % columns] += number(k);
    }
    let numbers: Vec<i32> = (0..rows * columns).map(|k| number(k) as i32).collect();
    for dtype in [DType::I32, DType::U32, DType::U8] {
        let values = Tensor::from_vec(numbers.clone(), [rows, columns]).to_dtype(dtype);
        let found = Tensor::zeros([places, columns]).to_dtype(dtype).scatter_add(0, &index, &values);
        let wraps = if dtype == DType::U8 { 256 } else { usize::MAX };
        let wanted: Vec<f32> = wanted.iter().map(|sum| (sum % wraps) as f32).collect();
        assert_eq!(found.to_dtype(DType::F32).to_vec::<f32>(), wanted, "{dtype}");
    }
}

#[test]
fn many_rows_are_added_to_few_of_every_slab() {
    for rows in [1000, 1100] {
        add_to_slabs(3, 20, rows, 8);
    }
}

fn add_to_slabs(slabs: usize, places: usize, rows: usize, columns: usize) {
    let x = values(slabs * rows * columns, 5);
    let place = |slab: usize, row: usize| (row * (slab + 2) + row / 7) % places;
    let index: Vec<i32> = (0..slabs * rows).map(|k| place(k / rows, k % rows) as i32).collect();
    let mut wanted = vec![0.0; slabs * places * columns];
    for (k, x) in x.iter().enumerate() {
        let (slab, row) = (k / columns / rows, k / columns % rows);
        wanted[(slab * places + place(slab, row)) * columns + k % columns] += x;
    }
    let index = Tensor::from_vec(index, [slabs, rows, 1]).expand([slabs, rows, columns]);
    let found = Tensor::zeros([slabs, places, columns]).scatter_add(
        1,
        &index,
        &Tensor::from_vec(x, [slabs, rows, columns]),
    );
    assert_eq!(found.to_vec::<f32>(), wanted);
}

#[test]
fn two_matrices_of_one_kernel_are_multiplied() {
    let (rows, columns, width) = (1100, 4098, 256);
    let x = Tensor::randn([rows, columns]).realize().clone();
    let (level, a, b) =
        (Tensor::randn([rows, 1]), Tensor::randn([columns, width]), Tensor::randn([columns, width]));
    realize_all(&[level.clone(), a.clone(), b.clone()]);
    let first = &x - &level;
    let second = &first * 1e-6;
    let products = [first.matmul(&a), second.matmul(&b)];
    realize_all(&[first.clone(), second.clone(), products[0].clone(), products[1].clone()]);
    let rows = [0, 7, rows - 1];
    for ((matrix, other), product) in [(first, a), (second, b)].into_iter().zip(products) {
        let [matrix, other, product] = [matrix, other, product].map(|t| t.to_vec::<f32>());
        let error = worst_error(&product, &rows, |r, k| matrix[r * columns + k], &other, width);
        assert!(error < 3e-6, "{error:e}");
    }
}

/// `rows` of a product with `other`, from numbers that are as they are in memory: the worst error, as a share of the sum of
/// magnitudes.
fn worst_error(
    found: &[f32],
    rows: &[usize],
    element: impl Fn(usize, usize) -> f32,
    other: &[f32],
    width: usize,
) -> f64 {
    let mut worst = 0f64;
    for &row in rows {
        for column in 0..width {
            let terms = (0..other.len() / width)
                .map(|k| f64::from(element(row, k)) * f64::from(other[k * width + column]));
            let (sum, size) = terms.fold((0f64, 0f64), |(sum, size), term| (sum + term, size + term.abs()));
            let error = (f64::from(found[row * width + column]) - sum).abs() / size;
            // What is not a number is the worst of all.
            worst = if error <= worst { worst } else { error };
        }
    }
    worst
}

#[test]
fn a_matrix_is_multiplied_from_both_sides_by_whoever_reads_what_was_just_written() {
    const WIDTH: usize = 256;
    for (rows, columns) in [(1030, 4098), (1024, 4096)] {
        // Rows and columns whose sizes are 2⁴⁰ apart.
        let scales = |count: usize| {
            let all = (0..count).map(|i| 2f32.powi((i * 7 % 41) as i32 - 20)).collect();
            Tensor::from_vec(all, [count]).realize().clone()
        };
        let (tall, broad) = (scales(rows).reshape([rows, 1]), scales(columns).reshape([1, columns]));
        let x = Tensor::randn([rows, columns]).realize().clone();
        let (a, b) = (Tensor::randn([columns, WIDTH]), Tensor::randn([rows, WIDTH]));
        realize_all(&[a.clone(), b.clone()]);
        let matrix = &x * &tall * &broad;
        // The matrix may take its place.
        drop(x);
        let (right, left) = (matrix.matmul(&a), matrix.t().matmul(&b));
        realize_all(&[matrix.clone(), right.clone(), left.clone()]);
        let [matrix, a, b, right, left] = [matrix, a, b, right, left].map(|t| t.to_vec::<f32>());
        let some = |count: usize| [0, 1, 6, 13, count / 2, count - 5, count - 2, count - 1];
        let of_rows = worst_error(&right, &some(rows), |r, k| matrix[r * columns + k], &a, WIDTH);
        let of_columns = worst_error(&left, &some(columns), |c, k| matrix[k * columns + c], &b, WIDTH);
        assert!(of_rows < 3e-6 && of_columns < 3e-6, "{of_rows:e} and {of_columns:e} for {rows}x{columns}");
    }
}

#[test]
fn more_workgroups_than_a_dispatch_has_in_a_row() {
    // A workgroup for every head, of which a device starts 65,535 in a row.
    const HEADS: usize = 70_001;
    let v = values(HEADS * 8, 5);
    let [q, k, v_] = [values(HEADS * 8, 3), values(HEADS * 8, 7), v.clone()]
        .map(|values| Tensor::from_vec(values, [1, HEADS, 1, 8]));
    let options = AttentionOptions::default();
    // Of one key, whatever the scores are.
    assert_eq!(q.scaled_dot_product_attention(&k, &v_, options).to_vec::<f32>(), v);
}

volta_testing::main!();
