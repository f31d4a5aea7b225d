//! Products against plain loops, for every kernel this CPU runs.

use super::*;
use half::{bf16, f16};
use std::sync::Mutex;

/// Shapes (m, n, k) around the sizes of tiles, blocks and tasks.
const SHAPES: &[(usize, usize, usize)] = &[
    (1, 1, 1),
    (4, 2, 8),
    (1, 7, 3),
    (7, 1, 3),
    (1, 130, 70),
    (130, 1, 70),
    (3, 5, 16),
    (13, 31, 15),
    (14, 32, 16),
    (15, 33, 17),
    (28, 64, 384),
    (29, 65, 385),
    (6, 16, 33),
    (64, 64, 64),
    (100, 10, 500),
    (10, 100, 130),
    (128, 128, 40),
    (60, 70, 800),
    (17, 19, 2500),
    (150, 40, 30),
    (33, 550, 9),
];

/// A source of varied numbers that are the same every time.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(next).collect()
}

trait TestElement: Element {
    fn narrow(value: f64) -> Self;
    fn exact(acc: Self::Acc) -> f64;
    fn acc(value: f64) -> Self::Acc;
    /// Rounding error of the accumulator.
    const EPSILON: f64;
}
macro_rules! test_elements {
    ($($t:ty, $acc:ty, $narrow:expr);*) => {$(
        impl TestElement for $t {
            fn narrow(value: f64) -> $t {
                $narrow(value)
            }
            fn exact(acc: $acc) -> f64 {
                f64::from(acc)
            }
            fn acc(value: f64) -> $acc {
                value as $acc
            }
            const EPSILON: f64 = <$acc>::EPSILON as f64;
        }
    )*};
}
test_elements!(f32, f32, |v| v as f32; f64, f64, |v| v; f16, f32, f16::from_f64; bf16, f32, bf16::from_f64);

#[derive(Clone, Copy, Debug)]
enum Layout {
    RowMajor,
    Transposed,
    Padded,
    Spread,
    Reversed,
    RepeatedRow,
    RepeatedColumn,
}
use Layout::*;

/// A matrix of the given layout over a buffer, and the offset of its first element.
fn strides(layout: Layout, rows: usize, cols: usize) -> (usize, isize, isize, usize) {
    let (r, c) = (rows as isize, cols as isize);
    match layout {
        RowMajor => (rows * cols, c, 1, 0),
        Transposed => (rows * cols, 1, r, 0),
        Padded => (rows * (cols + 5), c + 5, 1, 0),
        Spread => (rows * cols * 6, 3 * c * 2, 3, 0),
        Reversed => (rows * cols, -c, -1, rows * cols - 1),
        RepeatedRow => (cols, 0, 1, 0),
        RepeatedColumn => (rows, 1, 0, 0),
    }
}

/// Checks one product with every kernel; also that 1 and more threads agree to the bit, and that the
/// reported regions are disjoint and cover C.
fn check<E: TestElement>((m, n, k): (usize, usize, usize), of_a: Layout, of_b: Layout, accumulate: bool) {
    let (len_a, a_row, a_col, a_first) = strides(of_a, m, k);
    let (len_b, b_row, b_col, b_first) = strides(of_b, k, n);
    let a: Vec<E> = numbers(len_a, 1).into_iter().map(E::narrow).collect();
    let b: Vec<E> = numbers(len_b, 2).into_iter().map(E::narrow).collect();
    let ldc = n + 3;
    let before: Vec<E::Acc> = numbers(m * ldc, 3).into_iter().map(E::acc).collect();
    let at =
        |data: &[E], first: usize, offset: isize| E::exact(data[(first as isize + offset) as usize].widen());
    let mut expected = Vec::new();
    let mut scale = Vec::new();
    for i in 0..m as isize {
        for j in 0..n as isize {
            let start = if accumulate { E::exact(before[i as usize * ldc + j as usize]) } else { 0.0 };
            let (mut sum, mut size) = (start, start.abs());
            for p in 0..k as isize {
                let product = at(&a, a_first, i * a_row + p * a_col) * at(&b, b_first, p * b_row + j * b_col);
                sum += product;
                size += product.abs();
            }
            expected.push(sum);
            scale.push(size);
        }
    }
    for kernel in E::Acc::kernels() {
        let mut results = Vec::new();
        for threads in [1, 2, 7] {
            let mut c = before.clone();
            let product = Product {
                m,
                n,
                k,
                a: Mat { data: a[a_first..].as_ptr(), row_stride: a_row, col_stride: a_col },
                b: Mat { data: b[b_first..].as_ptr(), row_stride: b_row, col_stride: b_col },
                c: c.as_mut_ptr(),
                ldc,
                accumulate,
            };
            let seen = Mutex::new(vec![0; m * n]);
            let done = |rows: Range<usize>, cols: Range<usize>| {
                let mut seen = seen.lock().unwrap();
                for i in rows {
                    cols.clone().for_each(|j| seen[i * n + j] += 1);
                }
            };
            // SAFETY: the buffers hold the matrices.
            unsafe { multiply(kernel, threads, &product, &done) };
            let case = format!(
                "{} {m}x{n}x{k} {of_a:?} {of_b:?} {} threads {threads}",
                std::any::type_name::<E>(),
                kernel.name
            );
            assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "regions: {case}");
            for (index, c) in c.iter().enumerate() {
                let (i, j) = (index / ldc, index % ldc);
                if j >= n {
                    assert!(*c == before[index], "wrote outside C: {case}");
                    continue;
                }
                let error = (E::exact(*c) - expected[i * n + j]).abs();
                let allowed = E::EPSILON * (k as f64 + 4.0) * scale[i * n + j];
                assert!(error <= allowed, "({i}, {j}) is off by {error}: {case}");
            }
            results.push(c);
        }
        assert!(results.iter().all(|c| *c == results[0]), "threads disagree: {m}x{n}x{k}");
    }
}

#[test]
fn shapes() {
    for &shape in SHAPES {
        for (a, b) in [(RowMajor, RowMajor), (RowMajor, Transposed), (Transposed, RowMajor)] {
            check::<f32>(shape, a, b, false);
            check::<f64>(shape, a, b, false);
        }
        check::<f32>(shape, Transposed, Transposed, true);
        check::<bf16>(shape, RowMajor, Transposed, true);
        check::<f16>(shape, Transposed, RowMajor, false);
    }
}

#[test]
fn layouts() {
    let all = [RowMajor, Transposed, Padded, Spread, Reversed, RepeatedRow, RepeatedColumn];
    for a in all {
        for b in all {
            for shape in [(5, 9, 7), (37, 70, 50), (1, 40, 64), (40, 1, 64)] {
                check::<f32>(shape, a, b, false);
                check::<f64>(shape, a, b, true);
                check::<f16>(shape, a, b, true);
                check::<bf16>(shape, a, b, false);
            }
        }
    }
}

#[test]
fn tasks_and_chunks() {
    for (a, b) in [(RowMajor, RowMajor), (RowMajor, Transposed), (Transposed, RowMajor)] {
        check::<f32>((130, 300, 410), a, b, true);
        check::<f32>((200, 90, 600), a, b, false);
        check::<f32>((50, 70, 2600), a, b, false);
        check::<bf16>((200, 90, 130), a, b, false);
    }
}

#[test]
fn power_of_two_strides() {
    check::<f32>((40, 20, 1024), RowMajor, Transposed, false);
    check::<f32>((40, 1024, 24), RowMajor, RowMajor, false);
}

#[test]
fn empty() {
    for accumulate in [false, true] {
        for shape in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)] {
            check::<f32>(shape, RowMajor, RowMajor, accumulate);
        }
    }
}

#[test]
fn batches() {
    for (items, m, n, k) in [(0, 2, 2, 2), (5, 3, 4, 5), (100, 16, 16, 16), (3, 200, 200, 200)] {
        let a: Vec<f32> = numbers(items * m * k, 4).iter().map(|&v| v as f32).collect();
        let b: Vec<f32> = numbers(k * n, 5).iter().map(|&v| v as f32).collect();
        let mut expected = vec![0f32; items * m * n];
        let mut c = vec![0f32; items * m * n];
        let product = |c: *mut f32, item: usize| Product {
            m,
            n,
            k,
            a: Mat { data: a[item * m * k..].as_ptr(), row_stride: k as isize, col_stride: 1 },
            // One B for all items.
            b: Mat { data: b.as_ptr(), row_stride: n as isize, col_stride: 1 },
            c: c.wrapping_add(item * m * n),
            ldc: n,
            accumulate: false,
        };
        for item in 0..items {
            // SAFETY: the buffers hold the matrices.
            unsafe { gemm(&product(expected.as_mut_ptr(), item), &|_, _| ()) };
        }
        let out = share::Shared(c.as_mut_ptr());
        let seen = Mutex::new(0);
        // SAFETY: as above, and the items write apart.
        unsafe {
            gemm_batched(items, &|item| product(out.at(0), item), &|_, rows, cols| {
                *seen.lock().unwrap() += rows.len() * cols.len();
            });
        }
        assert_eq!(c, expected);
        assert_eq!(seen.into_inner().unwrap(), items * m * n);
    }
}

#[test]
fn half_precision_widens_exactly() {
    for bits in 0..=u16::MAX {
        let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(Element::widen(h) == h.to_f32() || h.is_nan() && Element::widen(h).is_nan());
        assert!(Element::widen(b) == b.to_f32() || b.is_nan() && Element::widen(b).is_nan());
    }
}
