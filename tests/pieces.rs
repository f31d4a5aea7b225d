//! Tensors in several pieces of memory, as on GPUs that let a kernel see little at once: `VOLTA_LIMITS=webgpu` and
//! `VOLTA_BLOCK_BYTES=4096` make every tensor of more than a few kilobytes one. Results are the CPU's.

use volta::{
    Adam, AttentionOptions, ConvOptions, DType, Device, ErrorKind, Optimizer, PoolOptions, Tensor,
    default_device, with_device,
};

/// Numbers that differ everywhere, on the default device.
fn ramp(n: usize, shape: impl Into<volta::Dims>) -> Tensor {
    let data: Vec<f32> = (0..n).map(|k| ((k * 7919) % 1013) as f32 * 0.01 - 5.0).collect();
    let dims: volta::Dims = shape.into();
    Tensor::from_vec(data, [n]).reshape(dims).realize().clone()
}

/// The same, near zero, so that long sums of products stay exact.
fn small(n: usize, shape: impl Into<volta::Dims>) -> Tensor {
    (ramp(n, shape) * 0.1).realize().clone()
}

/// The same computation here and on the CPU.
fn agree(name: &str, f: impl Fn() -> Tensor) {
    let here = f().to_vec::<f32>();
    let there = with_device(Device::Cpu, || f().to_vec::<f32>());
    assert_eq!(here.len(), there.len());
    for (k, (a, b)) in here.iter().zip(&there).enumerate() {
        assert!(
            (a - b).abs() <= 2e-5 * b.abs().max(1.0),
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

#[test]
fn products_run_in_parts() {
    agree("with an epilogue", || {
        let (a, b, c) = (small(2400, [60, 40]), small(2000, [40, 50]), small(3000, [60, 50]));
        (a.matmul(&b) + small(50, [50])).tanh() * c
    });
    // What every result sums up lies in too many pieces.
    agree("long sums", || small(6000, [3, 2000]).matmul(&small(12000, [2000, 6])) + 1.0);
    agree("long sums of few lanes", || small(6000, [1, 6000]).matmul(&small(6000, [6000, 1])));
    for (a, b) in [(false, true), (true, false), (true, true)] {
        agree(&format!("transposed {a} {b}"), || {
            let x = if a { small(3000, [60, 50]).t() } else { small(3000, [50, 60]) };
            let y = if b { small(3000, [50, 60]).t() } else { small(3000, [60, 50]) };
            x.matmul(&y)
        });
    }
    agree("many matrices", || {
        let y = small(3000, [6, 20, 25]).matmul(&small(3000, [6, 25, 20]));
        y.transpose(1, 2) + small(2400, [6, 20, 20])
    });
    agree("small matrices", || small(3600, [150, 4, 6]).matmul(&small(4500, [150, 6, 5])));
    agree("a matrix with itself", || {
        let x = small(4800, [60, 80]);
        x.matmul(&x.t())
    });
    agree("integers", || {
        let x = ramp(2500, [50, 50]).to_dtype(DType::I32);
        x.matmul(&ramp(2500, [50, 50]).t().to_dtype(DType::I32)).to_dtype(DType::F32)
    });
    agree("gradients of a layer", || {
        let (x, w) = (small(3000, [60, 50]), small(3000, [50, 60]).requires_grad(true));
        x.matmul(&w).tanh().sum().backward();
        w.grad().expect("it has one")
    });
}

#[test]
fn convolutions_and_their_gradients_run_in_parts() {
    // Many small images; one large one; windows of one pixel; groups and a stride; a depthwise one.
    for (x, w, stride, groups) in [
        ([6, 4, 16, 16], [5, 4, 3, 3], 1, 1),
        ([1, 20, 16, 16], [16, 20, 3, 3], 1, 1),
        ([1, 40, 12, 12], [12, 40, 1, 1], 1, 1),
        ([2, 20, 16, 16], [24, 5, 3, 3], 2, 4),
        ([1, 20, 16, 16], [20, 1, 3, 3], 1, 20),
    ] {
        let options = ConvOptions { stride: [stride; 2], padding: [1, 1], groups, ..ConvOptions::default() };
        let numel = |shape: [usize; 4]| shape.iter().product::<usize>();
        agree(&format!("convolution of {x:?} with {w:?} and its gradients"), || {
            let x = small(numel(x), x).requires_grad(true);
            let w = small(numel(w), w).requires_grad(true);
            let y = x.conv2d(&w, None, options).tanh();
            y.sum().backward();
            let all = [Some(y.detach()), x.grad(), w.grad()].map(|t| t.expect("it has one").flatten(0, -1));
            Tensor::cat(&[&all[0], &all[1], &all[2]], 0)
        });
    }
}

#[test]
fn index_kernels_run_in_parts() {
    agree("running sums", || small(6000, [30, 200]).cumsum(1));
    agree("sorted rows", || ramp(6000, [30, 200]).sort(1, true).0);
    agree("windows' maxima", || ramp(8192, [4, 8, 16, 16]).max_pool2d([2, 2], PoolOptions::default()));
    agree("gradient of windows' maxima", || {
        let x = ramp(8192, [4, 8, 16, 16]).requires_grad(true);
        (x.max_pool2d([2, 2], PoolOptions::default()) * 2.0).sum().backward();
        x.grad().expect("it has one")
    });
    // A table larger than what is looked up, and the other way round.
    for (rows, width, looked_up) in [(200, 40, 60), (50, 40, 200)] {
        agree(&format!("gradient of a table of {rows}"), || {
            let table = ramp(rows * width, [rows, width]).requires_grad(true);
            let index: Vec<i32> = (0..looked_up).map(|k| (k * k * 7 % rows) as i32).collect();
            let found = table.embedding(&Tensor::from_vec(index, [looked_up]));
            (found * ramp(looked_up * width, [looked_up, width])).sum().backward();
            table.grad().expect("it has one")
        });
    }
}

#[test]
fn attention_runs_in_parts() {
    for causal in [false, true] {
        agree(&format!("attention, causal {causal}"), || {
            let [q, k, v] = [0, 1, 2].map(|k| small(8192, [2, 4, 32, 32]) + 0.1 * f64::from(k));
            volta::realize_all(&[q.clone(), k.clone(), v.clone()]);
            let options = AttentionOptions { causal, ..AttentionOptions::default() };
            q.scaled_dot_product_attention(&k, &v, options)
        });
    }
}

#[test]
fn what_cannot_be_cut_is_an_error_that_says_so() {
    if !default_device().is_gpu() || std::env::var("VOLTA_BLOCK_BYTES").is_err() {
        return;
    }
    // Every line runs through all pieces.
    let error = small(12000, [60, 200]).cumsum(0).try_to_vec::<f32>().expect_err("it cannot be computed");
    assert_eq!(error.kind(), ErrorKind::Memory);
    for part in ["cumsum", "[60, 200]", "pieces of memory", "even a small part"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
}
