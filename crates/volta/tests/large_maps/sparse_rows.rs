//! Gradients of tables of which few rows were picked: sums of the rows, and nothing in between.

use volta::optim::{AdamW, GradScaler};
use volta::{BackwardOptions, DType, SGD, Tensor, grad, last_plan};
use volta_testing::test;

const PLACES: usize = 33_000;
const WIDTH: usize = 128;

/// Rows that come once, often, first and last.
fn rows() -> Vec<i64> {
    let mut rows: Vec<i64> = (0..300).map(|k| k * k * 7 % 900 + 40).collect();
    rows.extend([0, PLACES as i64 - 1, 5, 5, 5, 0]);
    rows
}

/// Whole numbers from −8 to 8.
fn upstream(count: usize) -> Vec<f32> {
    (0..count * WIDTH).map(|i| (i * 7 % 17) as f32 - 8.0).collect()
}

fn expected(rows: &[i64], upstream: &[f32]) -> Vec<f32> {
    let mut sums = vec![0f32; PLACES * WIDTH];
    for (row, values) in rows.iter().zip(upstream.chunks(WIDTH)) {
        let sums = &mut sums[*row as usize * WIDTH..][..WIDTH];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn check(found: &[f32], expected: &[f32]) {
    let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
    assert_eq!(wrong, None, "an element of row {} differs", wrong.unwrap_or(0) / WIDTH);
}

#[test]
fn rows_that_were_picked_are_summed() {
    let rows = rows();
    let weights = upstream(rows.len());
    let weight = Tensor::from_vec(weights.clone(), [rows.len(), WIDTH]);
    let as_i32: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
    let index = Tensor::from_vec(as_i32, [rows.len()]);
    // Some adapters have no i64.
    for index in [Ok(index.clone()), index.try_to_dtype(DType::I64)].into_iter().flatten() {
        let table = Tensor::zeros([PLACES, WIDTH]).requires_grad(true);
        (table.embedding(&index) * &weight).sum().backward();
        check(&table.grad().expect("a gradient").to_vec::<f32>(), &expected(&rows, &weights));
    }
}

#[test]
fn bytes_name_the_first_rows() {
    let rows: Vec<u8> = (0..200).map(|k| k / 3 * 3).collect();
    let weights = upstream(rows.len());
    let index = Tensor::from_vec(rows.clone(), [rows.len()]);
    let table = Tensor::zeros([PLACES, WIDTH]).requires_grad(true);
    let weight = Tensor::from_vec(weights.clone(), [rows.len(), WIDTH]);
    (table.embedding(&index) * weight).sum().backward();
    let rows: Vec<i64> = rows.into_iter().map(i64::from).collect();
    check(&table.grad().expect("a gradient").to_vec::<f32>(), &expected(&rows, &weights));
}

/// Bytes that a step writes, with the gradient kept: on a GPU, no zeros.
fn check_written(tables: u64) {
    let written: u64 = last_plan().expect("a plan").kernels.iter().map(|k| k.bytes_written).sum();
    let table = (PLACES * WIDTH * 4) as u64;
    let tables = if volta::default_device().is_gpu() { tables } else { tables + 1 };
    assert!((tables * table..tables * table * 5 / 4).contains(&written), "{written} bytes were written");
}

#[test]
fn an_optimizer_reads_sums_of_rows_and_no_zeros() {
    let rows: Vec<i32> = (0..1000).map(|k| k * 31 % 700).collect();
    let weights = upstream(rows.len());
    let index = Tensor::from_vec(rows.clone(), [rows.len()]);
    let weight = Tensor::from_vec(weights.clone(), [rows.len(), WIDTH]);
    let rows: Vec<i64> = rows.into_iter().map(i64::from).collect();
    let gradient = expected(&rows, &weights);
    let table = Tensor::ones([PLACES, WIDTH]).requires_grad(true);
    table.realize();
    let mut optimizer = SGD::new(vec![table.clone()], 1.0, 0.0, 0.0);
    (table.embedding(&index) * &weight).sum().backward();
    optimizer.step();
    table.realize();
    check_written(1);
    let updated: Vec<f32> = gradient.iter().map(|sum| 1.0 - sum).collect();
    check(&table.to_vec::<f32>(), &updated);
    check(&table.grad().expect("a gradient").to_vec::<f32>(), &gradient);
}

#[test]
fn a_rule_with_a_memory_is_one_kernel() {
    let rows: Vec<i32> = (0..1000).map(|k| k * 31 % 700).collect();
    let weight = Tensor::from_vec(upstream(rows.len()), [rows.len(), WIDTH]);
    let index = Tensor::from_vec(rows.clone(), [rows.len()]);
    let [table, other] = [PLACES, 4].map(|rows| Tensor::ones([rows, WIDTH]).requires_grad(true));
    let mut optimizer = AdamW::new(vec![table.clone(), other.clone()], 0.125, (0.5, 0.75), 1e-8, 0.0);
    let mut scaler = GradScaler::new();
    for _ in 0..2 {
        optimizer.zero_grad();
        let loss = (table.embedding(&index) * &weight).sum() + other.sum();
        scaler.scale(&loss).backward();
        scaler.step(&mut optimizer);
        table.realize();
    }
    // Under the smallest limits no kernel sees all of it.
    if std::env::var("VOLTA_LIMITS").is_err() {
        check_written(3);
    }
    // With the same gradient twice, every step goes as far as the rate.
    let sums = expected(&rows.iter().map(|&row| i64::from(row)).collect::<Vec<_>>(), &upstream(rows.len()));
    let close = |(found, sum): (&f32, &f32)| {
        (found - (1.0 - 0.25 * sum.signum() * f32::from(*sum != 0.0))).abs() < 1e-5
    };
    assert!(table.to_vec::<f32>().iter().zip(&sums).all(close));
}

#[test]
fn the_gradient_has_a_gradient() {
    let rows = [3i32, 8, 3, PLACES as i32 - 1];
    let index = Tensor::from_vec(rows.to_vec(), [4]);
    let weight = Tensor::from_vec(upstream(4), [4, WIDTH]).requires_grad(true);
    let table = Tensor::ones([PLACES, WIDTH]).requires_grad(true);
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&(table.embedding(&index) * &weight).sum()], &[&table], options);
    // Row r counts r times.
    let factor = Tensor::arange(0, PLACES as i64).to_dtype(DType::F32).reshape([PLACES, 1]);
    (first[0].as_ref().expect("a gradient") * factor).sum().backward();
    let found = weight.grad().expect("a second gradient").to_vec::<f32>();
    let expected: Vec<f32> = rows.iter().flat_map(|&row| vec![row as f32; WIDTH]).collect();
    assert_eq!(found, expected);
}

/// The gradient of the sum of picked elements.
fn gradient_of_picked(index: &Tensor) -> Vec<f32> {
    let table = Tensor::zeros([PLACES, WIDTH]).requires_grad(true);
    table.gather(0, index).sum().backward();
    table.grad().expect("a gradient").to_vec::<f32>()
}

#[test]
fn nothing_picked_is_a_gradient_of_zeros() {
    let none = Tensor::from_vec(Vec::<i32>::new(), [0]);
    let table = Tensor::zeros([PLACES, WIDTH]).requires_grad(true);
    table.embedding(&none).sum().backward();
    assert!(table.grad().expect("a gradient").to_vec::<f32>().iter().all(|&x| x == 0.0));
    let row = Tensor::from_vec(vec![3i32], [1, 1]);
    assert!(gradient_of_picked(&row.expand([0, WIDTH])).iter().all(|&x| x == 0.0));
}

#[test]
fn a_row_that_is_picked_again_and_again_is_summed() {
    let row = Tensor::from_vec(vec![3i32], [1, 1]);
    let found = gradient_of_picked(&row.expand([50, WIDTH]));
    let expected = |k: usize| if k / WIDTH == 3 { 50.0 } else { 0.0 };
    assert!(found.iter().enumerate().all(|(k, &x)| x == expected(k)));
}

#[test]
fn gradients_in_half_precision_add_up_over_two_backward_passes() {
    let rows: Vec<u32> = vec![7, 9, 7, PLACES as u32 - 1];
    let index = Tensor::from_vec(rows.clone(), [4]);
    for dtype in [DType::F16, DType::BF16] {
        let table = Tensor::zeros([PLACES, WIDTH]).to_dtype(dtype).requires_grad(true);
        for _ in 0..2 {
            table.embedding(&index).sum().backward();
        }
        let found = table.grad().expect("a gradient").to_dtype(DType::F32).to_vec::<f32>();
        let times = |row: usize| 2.0 * rows.iter().filter(|&&r| r as usize == row).count() as f32;
        assert!(found.iter().enumerate().all(|(k, &x)| x == times(k / WIDTH)), "{dtype}");
    }
}
