//! Tensors in several pieces of memory, as on GPUs that let a kernel see little at once: `VOLTA_LIMITS=webgpu` and
//! `VOLTA_BLOCK_BYTES=4096` make every tensor of more than a few kilobytes one. Results are the CPU's.

use volta::{
    Adam, AttentionOptions, ConvOptions, DType, Device, ErrorKind, PoolOptions, Tensor, default_device,
    with_device,
};
use volta_testing::test;

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
    agree("rows that are no multiple of four", || {
        ramp(10_004, [2, 5002]) * ramp(5002, [5002]) + ramp(5002, [5002]).exp() - small(5002, [5002])
    });
    agree("the same in place", || {
        let x = ramp(20_008, [4, 5002]).variable();
        x.assign(&(&x * &small(5002, [5002])));
        x
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
fn rows_that_lie_in_many_pieces_are_folded_in_chunks() {
    agree("the sum of all", || small(12000, [12000]).sum());
    agree("sums of columns", || small(12000, [60, 200]).sum_dim(0, false) * ramp(200, [200]));
    agree("sums of planes", || small(12000, [60, 2, 100]).sum_dim([0, 2], true));
    agree("products", || (small(12000, [60, 200]) + 1.0).prod_dim(0, false));
    agree("one row, normalised", || ramp(12000, [12000]).softmax(0) * 1000.0);
    agree("columns, normalised", || ramp(12000, [60, 200]).softmax(0) + ramp(12000, [60, 200]));
    agree("variances of columns", || small(12000, [60, 200]).var_dim(0, 1, true));
    agree("a loss", || small(12000, [120, 100]).exp().sum_dim(1, false).log().sum());
    agree("integers", || ramp(12000, [12000]).to_dtype(DType::I32).sum().to_dtype(DType::F32));
    agree("extremes of unsigned integers", || {
        let x = (ramp(12000, [12000]) * 8e8 + 2e9).to_dtype(DType::U32);
        Tensor::stack(&[x.max(), x.min()], 0).to_dtype(DType::F32)
    });
    agree("halves", || {
        let x = Tensor::ones([12000]).to_dtype(DType::F16).realize().clone();
        x.sum().to_dtype(DType::F32)
    });
}

#[test]
fn extremes_of_many_pieces_and_their_places_are_found() {
    agree("extremes of columns", || {
        let x = ramp(12000, [60, 200]);
        x.max_dim(0, false) - x.min_dim(0, false)
    });
    agree("their places", || {
        let x = ramp(12000, [60, 200]);
        let [low, high] = [x.argmin_dim(0, false), x.argmax_dim(0, false)].map(|t| t.to_dtype(DType::F32));
        low * 100.0 + high
    });
    // Equal ones lie in several chunks, and the first counts.
    agree("the first of all", || ramp(12000, [12000]).argmax().to_dtype(DType::F32));
}

#[test]
fn layers_train_on_many_pieces() {
    agree("bias", || {
        let b = small(200, [200]).requires_grad(true);
        ((small(12000, [60, 200]) + &b).tanh() * small(12000, [60, 200])).sum().backward();
        b.grad().expect("it has one")
    });
    agree("batch norm", || {
        let x = small(12288, [12, 4, 256]).requires_grad(true);
        let y = x.batch_norm_train(None, None, 1e-5).0;
        (y.square() * small(12288, [12, 4, 256])).sum().backward();
        x.grad().expect("it has one")
    });
    agree("layer norm", || {
        let w = small(100, [100]).requires_grad(true);
        let x = small(12000, [120, 100]).requires_grad(true);
        (x.layer_norm([100], Some(&w), None, 1e-5) * small(12000, [120, 100])).sum().backward();
        let [w, x] = [&w, &x].map(|t| t.grad().expect("it has one").flatten(0, -1));
        Tensor::cat(&[&w, &x], 0)
    });
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
    agree("a table of many pieces, by bytes", || {
        let index = Tensor::from_vec((0..100).map(|k| (k * 7) as u8).collect::<Vec<u8>>(), [100]);
        ramp(12000, [300, 40]).embedding(&index)
    });
    agree("a table of many pieces, by unsigned numbers", || {
        let index = Tensor::from_vec((0..200).map(|k| k * 7 % 300).collect::<Vec<u32>>(), [200]);
        let table = (ramp(12000, [300, 40]) * 1e8).to_dtype(DType::U32).realize().clone();
        table.embedding(&index).to_dtype(DType::F32)
    });
    agree("a table of many pieces", || {
        let index = Tensor::from_vec((0..300).map(|k| k * 7 % 150).collect::<Vec<i32>>(), [300]);
        ramp(12000, [150, 80]).embedding(&index).sum_dim(1, false) + ramp(300, [300])
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
    for dtype in [DType::U8, DType::U32] {
        agree(&format!("{dtype}, wrapping around"), || {
            let x = (ramp(2500, [50, 50]) * 1e8).to_dtype(dtype);
            x.matmul(&ramp(2500, [50, 50]).relu().t().to_dtype(dtype)).to_dtype(DType::F32)
        });
    }
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

/// Attention of heads that begin anywhere in the pieces, the gradients of what goes into it, and its result.
fn attention_and_gradients(queries: usize, keys: usize, masked: bool) -> Tensor {
    let operand = |rows: usize, width: usize, plus: f64| {
        let numel = 5 * 3 * rows * width;
        (small(numel, [5, 3, rows, width]) + plus).realize().clone().requires_grad(true)
    };
    let (q, k, v) = (operand(queries, 20, 0.0), operand(keys, 20, 0.1), operand(keys, 24, 0.2));
    let mask = small(3 * queries * keys, [1, 3, queries, keys]).requires_grad(true);
    let options =
        AttentionOptions { causal: !masked, mask: masked.then_some(&mask), ..AttentionOptions::default() };
    let y = q.scaled_dot_product_attention(&k, &v, options);
    let grad = small(5 * 3 * queries * 24, [5, 3, queries, 24]);
    (&y * grad).sum().backward();
    let gradients = [&q, &k, &v].into_iter().chain(masked.then_some(&mask));
    let mut all: Vec<Tensor> = gradients.map(|t| t.grad().expect("it has one").flatten(0, -1)).collect();
    all.push(y.detach().flatten(0, -1));
    Tensor::cat(&all.iter().collect::<Vec<_>>(), 0)
}

#[test]
fn attention_and_its_gradients_run_in_parts() {
    for causal in [false, true] {
        agree(&format!("attention, causal {causal}"), || {
            let [q, k, v] = [0, 1, 2].map(|k| small(8192, [2, 4, 32, 32]) + 0.1 * f64::from(k));
            volta::realize_all(&[q.clone(), k.clone(), v.clone()]);
            let options = AttentionOptions { causal, ..AttentionOptions::default() };
            q.scaled_dot_product_attention(&k, &v, options)
        });
    }
    for (queries, keys, masked) in [(16, 16, false), (9, 14, true), (17, 15, false), (12, 12, true)] {
        agree(&format!("attention of {queries} queries and {keys} keys, masked {masked}"), || {
            attention_and_gradients(queries, keys, masked)
        });
    }
    // The last rows end beside what an earlier part has written: log-sum-exps, and the gradients of keys.
    for keys in [15, 13] {
        agree(&format!("attention of rows that end between fours, {keys} keys"), || {
            let [q, k, v] =
                [15, keys, keys].map(|rows| small(9 * rows * 33, [9, 1, rows, 33]).requires_grad(true));
            q.scaled_dot_product_attention(&k, &v, AttentionOptions::default()).square().sum().backward();
            let all = [q, k, v].map(|t| t.grad().expect("it has one").flatten(0, -1));
            Tensor::cat(&all.iter().collect::<Vec<_>>(), 0)
        });
    }
    agree("queries, keys and values side by side", || {
        let x = small(4 * 15 * 3 * 4 * 20, [4, 15, 3, 4, 20]).requires_grad(true);
        let [q, k, v] = [0, 1, 2].map(|n| x.select(2, n).transpose(1, 2));
        let options = AttentionOptions { causal: true, ..AttentionOptions::default() };
        q.scaled_dot_product_attention(&k, &v, options).square().sum().backward();
        x.grad().expect("it has one")
    });
}

#[test]
fn lines_through_all_pieces_are_computed_aside() {
    agree("running sums", || small(12000, [60, 200]).cumsum(0));
    agree("running sums of a line that nobody sees as a whole", || small(12000, [12000]).cumsum(0));
    agree("the same of a few lines and of whole numbers", || {
        let numbers: Vec<i32> = (0..12_000).map(|k| k % 11 - 4).collect();
        let lines = Tensor::from_vec(numbers, [2, 3000, 2]).cumsum(1);
        lines.to_dtype(DType::F32) + small(12_000, [2, 3000, 2]).cumsum(1)
    });
    // Halves are summed up in f32, and rounded in the end; on the way they may leave the range of halves.
    agree("running sums of halves", || {
        let numbers: Vec<f32> =
            (0..12_000).map(|k| if k < 4000 { -24.0 } else { 24.0 + (k % 7) as f32 }).collect();
        let sums = Tensor::from_vec(numbers, [12_000]).to_dtype(DType::F16).cumsum(0).to_dtype(DType::F32);
        sums.clamp(Some(-60_000.0), Some(60_000.0))
    });
    agree("running sums of sums", || small(24000, [2, 60, 200]).cumsum(1).tanh().cumsum(0));
    agree("sorted columns", || {
        let (values, places) = ramp(12000, [60, 200]).sort(0, false);
        values + places.to_dtype(DType::F32)
    });
}

/// Both results of a sort: the values, and behind them their positions.
fn both((values, places): (Tensor, Tensor)) -> Tensor {
    let [values, places] = [values, places].map(|t| t.to_dtype(DType::F32).flatten(0, -1));
    Tensor::cat(&[&values, &places], 0)
}

#[test]
fn lines_that_nobody_sees_as_a_whole_are_sorted() {
    // Every number is there several times, and equal ones keep their order.
    for descending in [false, true] {
        agree(&format!("a line, descending {descending}"), || both(ramp(6000, [6000]).sort(0, descending)));
        agree(&format!("few different numbers, descending {descending}"), || {
            both(ramp(3000, [3000]).round().sort(0, descending))
        });
    }
    agree("a line that is in order but backwards", || {
        Tensor::arange(0, 4001).neg().argsort(0, false).to_dtype(DType::F32)
    });
    for dtype in [DType::F16, DType::BF16, DType::I32, DType::U32, DType::U8, DType::Bool] {
        agree(&format!("a line of {dtype}"), || {
            both((ramp(2503, [2503]) * 30.0).relu().to_dtype(dtype).realize().sort(0, false))
        });
    }
    agree("numbers far apart", || {
        let numbers: Vec<i32> = (0..2500).map(|k: i32| k.wrapping_mul(1_640_531_527)).collect();
        Tensor::from_vec(numbers, [2500]).argsort(0, true).to_dtype(DType::F32)
    });
    for descending in [false, true] {
        agree(&format!("what is no number, and both zeros, descending {descending}"), || {
            let odd = [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, 1e-40, -1.0];
            let numbers: Vec<f32> = (0..2500).map(|k| odd[k * k % 11 % 8]).collect();
            Tensor::from_vec(numbers, [2500]).argsort(0, descending).to_dtype(DType::F32)
        });
    }
}

#[test]
fn long_lines_are_sorted_wherever_they_lie() {
    agree("columns", || both(ramp(6000, [3000, 2]).sort(0, false)));
    agree("lines between others", || both(ramp(10_000, [2, 2500, 2]).sort(1, true)));
    agree("rows of a transposed tensor", || both(ramp(6000, [3000, 2]).t().sort(1, true)));
    agree("a part of a line, backwards", || {
        both(ramp(5000, [5000]).narrow(0, 1001, 3000).flip([0]).sort(0, false))
    });
    agree("lines that are the same", || {
        let x = ramp(2500, [1, 2500]).expand([2, 2500]);
        x.argsort(1, false).to_dtype(DType::F32)
    });
    agree("one number, all along", || {
        ramp(2, [2, 1]).expand([2, 2500]).argsort(1, true).to_dtype(DType::F32)
    });
}

#[test]
fn what_is_made_of_sorted_long_lines_is_there_as_well() {
    agree("the largest", || both(ramp(3000, [3000]).topk(50, 0, true)));
    agree("the smallest of columns", || both(ramp(6000, [3000, 2]).topk(5, 0, false)));
    agree("gradients", || {
        let x = small(3000, [3000]).requires_grad(true);
        (x.sort(0, true).0 * small(3000, [3000])).sum().backward();
        x.grad().expect("it has one")
    });
}

#[test]
fn a_long_line_is_sorted_again_and_again() {
    // The plan stays the same, and the memory aside is what the run before left.
    for n in 0..4 {
        agree(&format!("run {n}"), || {
            let numbers: Vec<i32> = (0..2500).map(|k| (k * 7919 + n * 31) % 1013).collect();
            both(Tensor::from_vec(numbers, [2500]).sort(0, false))
        });
    }
}

#[test(needs(pieces))]
fn what_cannot_be_cut_is_an_error_that_says_so() {
    // A single plane is larger than what a kernel may see.
    let x = small(16_384, [1, 1, 128, 128]);
    let error =
        x.max_pool2d([2, 2], PoolOptions::default()).try_to_vec::<f32>().expect_err("it is one plane");
    assert_eq!(error.kind(), ErrorKind::Memory);
    for part in ["max_pool_index", "[1, 1, 64, 64]", "pieces of memory", "even a small part"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
}

volta_testing::main!();
