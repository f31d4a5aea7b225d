//! Sums over rows that are made while something else walks over them: the gradients of a norm's weight and bias, and of what
//! was added before it, against those of the CPU. A file of its own, since its shapes are large enough for that.

use volta::*;
use volta_testing::test;

/// The gradients of a norm's weight and bias, of a bias before it, and of what it is added to.
fn gradients(device: Device, shape: [usize; 3], dtype: DType) -> Vec<Vec<f32>> {
    with_device(device, || {
        let width = shape[2];
        let wave = |shape: &[usize], pace: f32| {
            let count: usize = shape.iter().product();
            let values: Vec<f32> = (0..count).map(|k| (k as f32 * pace).sin() + 0.1).collect();
            Tensor::from_vec(values, shape)
        };
        let x = wave(&shape, 0.37).requires_grad(true);
        let [before, weight, bias] = [1.3, 0.7, 0.2].map(|pace| wave(&[width], pace).requires_grad(true));
        let y = (&x + &before).layer_norm([width], Some(&weight), Some(&bias), 1e-5).to_dtype(dtype);
        (y.to_dtype(DType::F32) * wave(&shape, 0.011)).sum().backward();
        let grads: Vec<Tensor> = [weight, bias, before, x].map(|t| t.grad().expect("a gradient")).to_vec();
        realize_all(&grads);
        grads.iter().map(|g| g.to_vec::<f32>()).collect()
    })
}

/// Whole fours of a team and not, whole turns of a workgroup and not, few and many rows.
const SHAPES: [[usize; 3]; 5] = [[16, 128, 64], [2, 1025, 100], [4, 1024, 384], [1, 2500, 8], [3, 700, 1024]];

#[test]
fn gradients_of_norms_are_those_of_the_cpu() {
    for shape in SHAPES {
        for dtype in [DType::F32, DType::F16] {
            let (here, there) =
                (gradients(default_device(), shape, dtype), gradients(Device::Cpu, shape, dtype));
            for (name, (a, b)) in ["weight", "bias", "before", "x"].iter().zip(here.iter().zip(&there)) {
                let largest = b.iter().fold(0f32, |m, x| m.max(x.abs()));
                for (k, (x, y)) in a.iter().zip(b).enumerate() {
                    let off = (x - y).abs();
                    assert!(off <= 2e-5 * largest + 1e-5, "{name} {k} of {shape:?} {dtype}: {x}, not {y}");
                }
            }
        }
    }
}

#[test]
fn the_same_bits_come_twice() {
    let twice = [(); 2].map(|()| gradients(default_device(), SHAPES[1], DType::F32));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn columns_are_folded_by_the_kernel_that_walks_over_the_rows() {
    gradients(default_device(), SHAPES[2], DType::F32);
    let plan = last_plan().expect("a plan");
    // What is summed is read by one kernel, where kernels see enough memory.
    let large = 4 * 1024 * 384 * 4;
    let readers = plan.kernels.iter().filter(|k| k.kind == "reduce" && k.bytes_read >= large).count();
    let sees_enough = std::env::var("VOLTA_LIMITS").is_err();
    if default_device().is_gpu() && sees_enough {
        assert_eq!(readers, 1, "{plan}");
    } else {
        assert!(readers >= 1, "{plan}");
    }
}

/// A number that is computed on the way is stored, too, whichever way the columns are walked.
#[test]
fn a_number_beside_sums_of_columns_is_stored() {
    for rows in [100, 1000, 5000] {
        let x = Tensor::from_vec(vec![1f32; rows * 128], [rows, 128]);
        let s = Tensor::scalar(0.5).requires_grad(true);
        let t = s.exp();
        let y = (&x * &t).sum_dim(0, false);
        y.realize();
        assert!((t.item::<f32>() - 0.5f32.exp()).abs() < 1e-5, "{rows} rows: {}", t.item::<f32>());
        let sum = y.to_vec::<f32>()[7];
        assert!((sum / rows as f32 - 0.5f32.exp()).abs() < 1e-4, "{rows} rows: {sum}");
        y.sum().backward();
        let slope = s.grad().expect("a gradient").item::<f32>();
        assert!((slope / (rows * 128) as f32 - 0.5f32.exp()).abs() < 1e-4, "{rows} rows: {slope}");
    }
}

/// Sums of columns of several kernels over the same rows, in one, two and three types.
#[test]
fn columns_of_all_types_are_folded_side_by_side() {
    for rows in [2500, 4096] {
        let fold = |device: Device| {
            with_device(device, || {
                let values: Vec<f32> = (0..rows * 64).map(|k| (k as f32 * 0.37).sin() * 9.0).collect();
                let x = Tensor::from_vec(values, [rows, 64]).realize().clone();
                let largest = x.max_dim(0, false);
                let whole = x.to_dtype(DType::I32).max_dim(0, false);
                let any = x.gt(8.9).any_dim(0, false);
                let y = x.softmax(1);
                let sums = y.sum_dim(0, false);
                let all = [largest, whole, any, sums, y];
                realize_all(&all);
                all.map(|t| t.to_dtype(DType::F32).to_vec::<f32>())
            })
        };
        let (here, there) = (fold(default_device()), fold(Device::Cpu));
        for (name, (a, b)) in
            ["largest", "whole", "any", "sums", "softmax"].iter().zip(here.iter().zip(&there))
        {
            for (k, (x, y)) in a.iter().zip(b).enumerate() {
                assert!((x - y).abs() <= 1e-5 * y.abs() + 1e-6, "{name} {k} of {rows} rows: {x}, not {y}");
            }
        }
    }
}

volta_testing::main!();
