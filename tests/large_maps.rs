//! Maps and folds so large that an invocation of a GPU takes several elements: numbers small enough to be exact, against
//! plain loops.

use volta::Tensor;

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
