//! Tensors in several pieces of memory, as on GPUs that let a kernel see little at once: `VOLTA_LIMITS=webgpu` and
//! `VOLTA_BLOCK_BYTES=4096` make every tensor of more than a few kilobytes one. Results are the CPU's.

use volta::{Adam, Device, Optimizer, Tensor, default_device, with_device};

/// Numbers that differ everywhere, on the default device.
fn ramp(n: usize, shape: impl Into<volta::Dims>) -> Tensor {
    let data: Vec<f32> = (0..n).map(|k| ((k * 7919) % 1013) as f32 * 0.01 - 5.0).collect();
    let dims: volta::Dims = shape.into();
    Tensor::from_vec(data, [n]).reshape(dims).realize().clone()
}

/// The same computation here and on the CPU.
fn agree(name: &str, f: impl Fn() -> Tensor) {
    let here = f().to_vec::<f32>();
    let there = with_device(Device::Cpu, || f().to_vec::<f32>());
    assert_eq!(here.len(), there.len());
    for (k, (a, b)) in here.iter().zip(&there).enumerate() {
        assert!(
            (a - b).abs() <= 1e-5 * b.abs().max(1.0),
            "{name} on {}: {a} is not {b} at {k}",
            default_device()
        );
    }
}

#[test]
fn elementwise_programs_of_many_large_tensors_run_in_parts() {
    agree("five tensors", || {
        let all: Vec<Tensor> = (1..5).map(|k| ramp(3000, [3000]) * f64::from(k)).collect();
        volta::realize_all(&all);
        &all[0] * &all[1] + &all[2] * &all[3] - ramp(3000, [3000])
    });
    agree("rows and columns", || {
        ramp(4200, [60, 70]) * ramp(70, [70]) + ramp(60, [60, 1]) + ramp(4200, [60, 70]).exp()
    });
    agree("shifted", || {
        let (x, y) = (ramp(4001, [4001]), ramp(4001, [4001]));
        x.narrow(0, 1, 4000) * y.narrow(0, 0, 4000) + x.narrow(0, 0, 4000)
    });
    agree("padded", || ramp(4000, [40, 100]).pad(&[(1, 2), (3, 4)], 0.5) + ramp(4601, [43, 107]));
}

#[test]
fn rows_are_folded_in_parts() {
    agree("softmax", || (ramp(4000, [200, 20]) + ramp(4000, [200, 20]).relu()).softmax(-1));
    agree("layer norm", || {
        ramp(4000, [40, 100]).layer_norm([100], Some(&ramp(100, [100])), None, 1e-5) * ramp(4000, [40, 100])
    });
    agree("sums of rows", || (ramp(4000, [40, 100]) * ramp(4000, [40, 100])).sum_dim(1, false));
}

#[test]
fn optimizers_update_large_parameters_in_parts() {
    agree("adam", || {
        let w = ramp(7003, [7003]).requires_grad(true);
        let b = ramp(3001, [3001]).requires_grad(true);
        let mut adam = Adam::new(vec![w.clone(), b.clone()], 0.1, (0.9, 0.999), 1e-8, 0.01);
        for _ in 0..3 {
            adam.zero_grad();
            (w.square().sum() + b.sin().sum()).backward();
            adam.step();
        }
        Tensor::cat(&[&w, &b], 0)
    });
}

#[test]
fn tables_are_gathered_from_in_parts() {
    agree("embedding", || {
        let index = Tensor::from_vec((0..300).map(|k| k * 7 % 50).collect::<Vec<i32>>(), [300]);
        ramp(4000, [50, 80]).embedding(&index).narrow(0, 3, 280) * 2.0
    });
}
