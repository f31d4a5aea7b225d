//! What plans are made of: how many kernels, what they fuse, how much memory they need.

use volta::models::{Gpt, GptOptions};
use volta::{
    Adam, AttentionOptions, BatchNorm2d, Conv2d, DType, Device, GRUCell, LSTMCell, Module, PlanReport, ReLU,
    SGD, Sequential, Tensor, autocast, cross_entropy, default_device, last_plan, mse_loss, no_grad,
    plan_only, realize_all, try_realize_all, with_device, with_fusion,
};
use volta_testing::test;

fn ready(t: Tensor) -> Tensor {
    t.realize();
    t
}

fn randn(shape: &[usize]) -> Tensor {
    ready(Tensor::randn(shape))
}

/// The plan that computes `t`.
fn plan_of(t: &Tensor) -> PlanReport {
    t.realize();
    last_plan().expect("a plan ran")
}

#[test]
fn softmax_layer_norm_and_cross_entropy_are_one_kernel_each() {
    let x = randn(&[8, 37]);
    let (weight, bias) = (randn(&[37]), randn(&[37]));
    let target = ready(Tensor::randint(0, 37, [8]));
    type Row<'a> = (&'a str, Box<dyn Fn() -> Tensor + 'a>);
    let rows: Vec<Row> = vec![
        ("softmax", Box::new(|| x.softmax(-1))),
        ("softmax of the first axis", Box::new(|| x.softmax(0))),
        ("log_softmax", Box::new(|| x.log_softmax(-1))),
        ("logsumexp", Box::new(|| x.logsumexp(-1, false))),
        ("layer_norm", Box::new(|| x.layer_norm([37], Some(&weight), Some(&bias), 1e-5))),
        ("rms_norm", Box::new(|| x.rms_norm([37], Some(&weight), 1e-5))),
        ("cross_entropy", Box::new(|| cross_entropy(&x, &target))),
        ("mse_loss", Box::new(|| mse_loss(&x, &(&x * 2.0)))),
        ("variance", Box::new(|| x.var_dim([1], 1, false))),
        ("gelu", Box::new(|| (&x * &x + &x).gelu_tanh())),
    ];
    for (name, make) in rows {
        let plan = plan_of(&make());
        assert_eq!(plan.kernels.len(), 1, "{name}:\n{plan}");
    }
}

#[test]
fn heads_that_are_split_off_and_joined_again_are_not_copied() {
    let (x, weight) = (randn(&[2, 6, 8]).requires_grad(true), randn(&[8, 8]));
    let heads = x.exp().reshape([2, 6, 2, 4]).transpose(1, 2);
    let plan = plan_of(&heads.transpose(1, 2).reshape([12, 8]).matmul(&weight));
    assert_eq!(plan.kernels.len(), 2, "{plan}");
}

#[test]
fn what_flows_back_into_attention_is_read_where_it_is() {
    let [q, k, v] = [(); 3].map(|()| randn(&[2, 3, 8, 4]).requires_grad(true));
    let out = q.scaled_dot_product_attention(&k, &v, AttentionOptions::default());
    let loss = out.transpose(1, 2).reshape([16, 12]).matmul(&randn(&[12, 5])).sum();
    loss.realize();
    loss.backward();
    let plan = plan_of(&q.grad().expect("a gradient"));
    let copies = plan.kernels.iter().filter(|k| k.kind == "map" && k.bytes_written >= 4 * 2 * 3 * 8 * 4);
    // The gradient of the queries is taken out of all three; nothing is copied on the way to it.
    assert!(copies.count() <= 1, "{plan}");
}

type Cut = fn(&Tensor) -> Vec<Tensor>;

/// Ways to take queries, keys and values of (batch 2, heads 3, length 8, width 4) out of (2, 8, 36).
const CUTS: [(&str, Cut); 4] = [
    ("chunks", |y| y.chunk(3, -1).iter().map(|t| t.reshape([2, 8, 3, 4]).transpose(1, 2)).collect()),
    ("heads", |y| y.reshape([2, 8, 9, 4]).transpose(1, 2).chunk(3, 1)),
    ("slices", |y| y.reshape([2, 8, 3, 3, 4]).unbind(2).iter().map(|t| t.transpose(1, 2)).collect()),
    ("slices in front", |y| y.reshape([2, 8, 3, 3, 4]).permute([2, 0, 3, 1, 4]).unbind(0)),
];

#[test]
fn gradients_of_queries_keys_and_values_are_read_where_attention_leaves_them() {
    // On a CPU attention takes halves as f32.
    let dtypes = if default_device().is_gpu() { vec![DType::F32, DType::F16] } else { vec![DType::F32] };
    for (dtype, (name, cut)) in dtypes.iter().flat_map(|d| CUTS.map(|cut| (*d, cut))) {
        let [x, w, b] = [&[2, 8, 12][..], &[36, 12], &[36]].map(|s| ready(randn(s).to_dtype(dtype)));
        let gradients = |fuse: bool| {
            with_fusion(fuse, || {
                let [x, w, b] = [&x, &w, &b].map(|t| t.requires_grad(true));
                let [q, k, v] = &cut(&x.linear(&w, Some(&b)))[..] else { panic!("three parts") };
                let loss = q.scaled_dot_product_attention(k, v, AttentionOptions::default()).sin().sum();
                loss.realize();
                loss.backward();
                let gradients = [x, w, b].map(|t| t.grad().expect("a gradient"));
                realize_all(&gradients);
                (last_plan().expect("a plan ran"), gradients.map(|g| g.to_dtype(DType::F32).to_vec::<f32>()))
            })
        };
        let (plan, found) = gradients(true);
        let whole = (dtype.size() * 2 * 8 * 36) as u64;
        let copies: Vec<_> =
            plan.kernels.iter().filter(|k| k.kind == "map" && k.bytes_written >= whole).collect();
        assert!(copies.is_empty(), "{dtype} {name}:\n{plan}");
        let most = if dtype == DType::F32 { 1e-4 } else { 1e-2 };
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= most * (1.0 + a.abs());
        assert!(found.iter().flatten().zip(gradients(false).1.iter().flatten()).all(close), "{dtype} {name}");
    }
}

#[test]
fn parts_that_are_joined_as_they_were_are_not_copied() {
    let (x, w) = (randn(&[6, 8]), randn(&[8, 5]));
    type Join = fn(&Tensor) -> Tensor;
    let rows: [(&str, Join, usize); 6] = [
        ("rows", |x| Tensor::cat(&x.chunk(3, 0), 0), 1),
        ("columns", |x| Tensor::cat(&x.chunk(2, 1), 1), 1),
        ("single columns", |x| Tensor::stack(&x.unbind(1), 1), 1),
        ("through a transposed tensor", |x| Tensor::cat(&x.t().split_sizes(&[1, 3, 4], 0), 0).t(), 1),
        ("in another order", |x| Tensor::cat(&[x.narrow(0, 3, 3), x.narrow(0, 0, 3)], 0), 2),
        ("twice the same", |x| Tensor::cat(&[x.narrow(0, 0, 3), x.narrow(0, 0, 3)], 0), 2),
    ];
    for (name, join, kernels) in rows {
        let product = join(&x).matmul(&w);
        let plan = plan_of(&product);
        assert_eq!(plan.kernels.len(), kernels, "{name}:\n{plan}");
        let plain = with_fusion(false, || ready(join(&x).matmul(&w)));
        assert_eq!(product.to_vec::<f32>(), plain.to_vec::<f32>(), "{name}");
    }
}

#[test]
fn backward_passes_of_the_same_are_two_kernels_at_most() {
    let target = ready(Tensor::randint(0, 37, [8]));
    let g = randn(&[8, 37]);
    type Row<'a> = (&'a str, Box<dyn Fn(&Tensor) -> Tensor + 'a>);
    let rows: Vec<Row> = vec![
        ("softmax", Box::new(|x| (x.softmax(-1) * &g).sum())),
        ("log_softmax", Box::new(|x| (x.log_softmax(-1) * &g).sum())),
        ("layer_norm", Box::new(|x| (x.layer_norm([37], None, None, 1e-5) * &g).sum())),
        ("cross_entropy", Box::new(|x| cross_entropy(x, &target))),
    ];
    for (name, loss) in rows {
        let x = randn(&[8, 37]).requires_grad(true);
        let loss = loss(&x);
        loss.realize();
        loss.backward();
        let plan = plan_of(&x.grad().unwrap());
        assert!(plan.kernels.len() <= 2, "{name}:\n{plan}");
    }
}

/// A multi-layer perceptron of four layers and its loss.
fn mlp() -> (Vec<Tensor>, impl Fn() -> Tensor) {
    let sizes = [12, 16, 16, 8, 4];
    let layers: Vec<[Tensor; 2]> = sizes
        .windows(2)
        .map(|w| [randn(&[w[1], w[0]]).requires_grad(true), randn(&[w[1]]).requires_grad(true)])
        .collect();
    let parameters = layers.iter().flatten().cloned().collect();
    let (x, y) = (randn(&[6, 12]), ready(Tensor::randint(0, 4, [6])));
    let loss = move || {
        let mut h = x.clone();
        for [w, b] in &layers {
            h = (h.matmul(&w.t()) + b).relu();
        }
        cross_entropy(&h, &y)
    };
    (parameters, loss)
}

#[test]
fn an_adam_step_over_a_whole_network_is_a_few_kernels() {
    let (parameters, loss) = mlp();
    let mut adam = Adam::new(parameters.clone(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    for _ in 0..3 {
        adam.zero_grad();
        loss().backward();
        // Gradients first, so that the step alone is the last plan.
        volta::realize_all(&parameters.iter().map(|p| p.grad().unwrap()).collect::<Vec<_>>());
        adam.step();
    }
    let plan = last_plan().unwrap();
    assert!(plan.kernels.len() <= 2, "{plan}");
    assert_eq!(
        plan.kernels.iter().map(|k| k.instances).sum::<usize>(),
        8,
        "one instance a parameter:\n{plan}"
    );
}

#[test]
fn a_bias_and_an_activation_follow_the_product_in_its_kernel() {
    let (x, w, b) = (randn(&[5, 7]), randn(&[7, 6]), randn(&[6]));
    let plan = plan_of(&(x.matmul(&w) + &b).relu());
    assert_eq!(plan.kernels.len(), 1, "{plan}");
    assert_eq!(plan.kernels[0].kind, "matmul");
}

/// Products of operands that are computed as they are read: they give what they give from memory.
#[test]
fn what_one_product_reads_is_computed_in_its_kernel() {
    let f16 = |t: &Tensor| t.to_dtype(DType::F16);
    let [tall, deep, broad] = [[70, 33], [33, 64], [40, 64]].map(|shape| randn(&shape));
    let (row, batch, mask) = (randn(&[1, 256]), randn(&[3, 33, 20]), ready(randn(&[70, 33]).gt(0.0)));
    let (weight, large, scale) = (randn(&[512, 256]), randn(&[200, 300]), randn(&[]));
    let (other, halves, half_row) = (randn(&[70, 33]), ready(f16(&weight)), ready(f16(&row)));
    type Row<'a> = (&'a str, Box<dyn Fn() -> Tensor + 'a>);
    let rows: Vec<Row> = vec![
        ("relu", Box::new(|| tall.relu().matmul(&deep))),
        ("both", Box::new(|| (&tall / 255.0).matmul(&deep.abs()))),
        ("itself", Box::new(|| -&tall.relu().matmul(&tall.relu().t()))),
        ("a difference", Box::new(|| (&tall - &other).matmul(&deep))),
        ("chosen", Box::new(|| tall.masked_fill(&mask, 0.5).matmul(&deep))),
        ("a number in memory", Box::new(|| (&tall * &scale).matmul(&deep))),
        ("turned", Box::new(|| deep.relu().matmul(&broad.abs().t()))),
        ("a part", Box::new(|| large.relu().narrow(0, 4, 70).narrow(1, 8, 33).matmul(&deep))),
        ("batches", Box::new(|| tall.abs().matmul(&(&batch + 1.0)))),
        ("halves of a weight", Box::new(|| half_row.matmul(&f16(&weight).t()))),
        ("halves", Box::new(|| f16(&broad).matmul(&f16(&broad).t()))),
        ("wider", Box::new(|| halves.to_dtype(DType::F32).matmul(&row.t()))),
        ("more rows", Box::new(|| large.relu().matmul(&large.t()))),
    ];
    for (name, make) in rows {
        let result = make();
        let plan = plan_of(&result);
        if default_device().is_gpu() {
            assert_eq!(plan.kernels.len(), 1, "{name}:\n{plan}");
        }
        let apart = with_fusion(false, || ready(make()));
        let halves_in = result.dtype() == DType::F16;
        let [result, apart] = [result, apart].map(|t| t.to_dtype(DType::F32).to_vec::<f32>());
        let most = apart.iter().fold(1.0f32, |m, x| m.max(x.abs()));
        let error = result.iter().zip(&apart).fold(0.0f32, |e, (a, b)| e.max((a - b).abs()));
        let allowed = if halves_in { 2e-3 } else { 1e-5 };
        assert!(error <= allowed * most && result.len() == apart.len(), "{name}: off by {error} of {most}");
    }
}

/// What is read once more, or kept, or made along with something else, is in memory anyway.
#[test]
fn what_others_read_too_is_not_computed_by_a_product() {
    let (x, weight) = (randn(&[40, 30]), randn(&[30, 20]));
    let y = x.relu();
    let sum = y.matmul(&weight).sum() + y.sum();
    sum.realize();
    let products = |plan: &PlanReport| {
        let reads = |k: &&volta::KernelReport| k.kind == "matmul" && k.label.contains("relu");
        plan.kernels.iter().filter(reads).count()
    };
    assert_eq!(products(&last_plan().unwrap()), 0);
    // The product's own epilogue reads it, and what it is made of.
    let square = randn(&[30, 30]);
    for gate in [|h: &Tensor, p: Tensor| p + h, |h: &Tensor, p: Tensor| h * p.tanh()] {
        let make = || {
            let h = x.relu();
            gate(&h, h.matmul(&square))
        };
        let (fused, apart) = (make().to_vec::<f32>(), with_fusion(false, || make().to_vec::<f32>()));
        assert!(fused.iter().zip(&apart).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0)));
    }
    let twice = || {
        let y = x.abs();
        y.relu().matmul(&y.t())
    };
    let (fused, apart) = (twice().to_vec::<f32>(), with_fusion(false, || twice().to_vec::<f32>()));
    assert!(fused.iter().zip(&apart).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0)));
    let kept = x.relu();
    let product = kept.matmul(&weight);
    realize_all(&[kept, product]);
    assert_eq!(products(&last_plan().unwrap()), 0);
    // Its gradient reads what the product did not leave in memory.
    let x = randn(&[40, 30]).requires_grad(true);
    x.relu().matmul(&weight).sum().backward();
    let gradient = x.grad().unwrap().to_vec::<f32>();
    let rows = weight.sum_dim(1, false).to_vec::<f32>();
    for (k, (g, x)) in gradient.iter().zip(x.to_vec::<f32>()).enumerate() {
        let expected = if x > 0.0 { rows[k % 30] } else { 0.0 };
        assert!((g - expected).abs() < 1e-4, "{k}: {g} for {expected}");
    }
}

#[test]
fn views_are_read_in_place() {
    let x = randn(&[6, 8]);
    let views = x.t().slice([(1..7).into(), volta::Range::by(.., 2)]).flip(0).unsqueeze(1) + 1.0;
    let plan = plan_of(&views);
    assert_eq!(plan.kernels.len(), 1, "{plan}");
    // Matrix products take transposed operands as they are.
    let plan = plan_of(&x.t().matmul(&x));
    assert_eq!(plan.kernels.len(), 1, "{plan}");
}

#[test]
fn reading_a_loss_first_does_not_run_products_twice() {
    let products = |plan: &PlanReport| plan.kernels.iter().filter(|k| k.kind == "matmul").count();
    let (parameters, loss) = mlp();
    let mut sgd = SGD::new(parameters, 0.01, 0.0, 0.0);
    let value = loss();
    value.item::<f32>();
    let forward = products(&last_plan().unwrap());
    value.backward();
    sgd.step();
    let backward = products(&last_plan().unwrap());
    // Of every product two gradients, but for that of the data.
    assert_eq!((forward, backward), (4, 7));
}

#[test]
fn a_report_counts_arithmetic_and_traffic() {
    let (a, b) = (randn(&[10, 20]), randn(&[20, 30]));
    let plan = plan_of(&a.matmul(&b));
    assert_eq!(plan.flops(), 2 * 10 * 20 * 30);
    assert_eq!(plan.kernels[0].bytes_read, 4 * (10 * 20 + 20 * 30));
    assert_eq!(plan.kernels[0].bytes_written, 4 * 10 * 30);
    assert_eq!(plan.peak_bytes, 4 * (10 * 20 + 20 * 30 + 10 * 30));
    let text = plan.to_string();
    assert!(text.contains("matmul") && text.contains("12.0 kFLOP"), "{text}");
}

#[test]
fn intermediate_values_share_memory() {
    // A chain of products needs room for two results at a time, not for all.
    no_grad(|| {
        let (mut x, w) = (randn(&[64, 64]), randn(&[64, 64]));
        for _ in 0..10 {
            x = x.matmul(&w).tanh().t();
        }
        let plan = plan_of(&x.sum());
        assert!(plan.arena_bytes <= 3 * 64 * 64 * 4, "{plan}");
    });
}

#[test]
fn a_forward_pass_that_was_read_keeps_what_its_gradient_needs_and_no_more() {
    let (x, w) = (randn(&[64, 32]), randn(&[32, 32]));
    let run = |early: bool| {
        let w = w.requires_grad(true);
        let hidden = x.matmul(&w);
        // A sum needs none of its terms for its gradient, and a logistic function its result alone.
        let loss = ((hidden + &x).sigmoid().matmul(&w) + &x).square().sum();
        let kept = early.then(|| plan_of(&loss));
        loss.backward();
        let plan = plan_of(&w.grad().expect("the gradient was collected"));
        (w.grad().expect("the gradient was collected").to_vec::<f32>(), plan, kept)
    };
    let ((whole, single, _), (apart, second, first)) = (run(false), run(true));
    assert!(whole.iter().zip(&apart).all(|(a, b)| (a - b).abs() <= 1e-4 * a.abs().max(1.0)));
    let products = |plan: &PlanReport| plan.kernels.iter().filter(|k| k.kind == "matmul").count();
    let first = first.expect("a plan of the forward pass");
    assert_eq!((products(&first), products(&second), products(&single)), (2, 3, 5), "{first}\n{second}");
    // The activation and the last sum; no product is kept beside them.
    assert!(second.peak_bytes <= single.peak_bytes + single.peak_bytes / 4, "{single}\n{second}");
}

#[test]
fn a_copy_in_another_order_is_made_once_for_all_its_shapes() {
    let (x, w, v) = (randn(&[4, 8, 6, 16]), randn(&[16, 16]), randn(&[128, 10]));
    no_grad(|| {
        let turned = x.matmul(&w).permute([0, 2, 1, 3]);
        // A product reads it as a matrix, as the gradient of a weight does, and a sum of rows as a bias's does.
        let (product, sum) =
            (turned.reshape([24, 128]).matmul(&v), turned.reshape([4, 6, 128]).sum_dim([0, 1], false));
        volta::realize_all(&[product, sum]);
    });
    let plan = last_plan().expect("a plan ran");
    let written: u64 = plan.kernels.iter().map(|k| k.bytes_written).sum();
    assert_eq!(written, 4 * (2 * 4 * 8 * 6 * 16 + 24 * 10 + 128), "{plan}");
}

#[test]
fn without_fusion_every_op_is_a_kernel() {
    let x = randn(&[4, 9]);
    let y = with_fusion(false, || {
        let y = (&x * 2.0 + 1.0).exp().sum_dim(1, false);
        y.realize();
        y
    });
    assert_eq!(last_plan().unwrap().kernels.len(), 4);
    let fused = (&x * 2.0 + 1.0).exp().sum_dim(1, false);
    assert_eq!(plan_of(&fused).kernels.len(), 1);
    let (a, b) = (y.to_vec::<f32>(), fused.to_vec::<f32>());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-6 * a.abs()));
}

#[test]
fn a_learning_rate_is_an_argument_and_not_a_new_plan() {
    let p = randn(&[10]).requires_grad(true);
    let mut sgd = SGD::new(vec![p.clone()], 0.1, 0.9, 0.0);
    let mut plans = Vec::new();
    for step in 0..6 {
        sgd.set_learning_rate(0.1 / (step + 1) as f64);
        sgd.zero_grad();
        p.square().sum().backward();
        sgd.step();
        plans.push(last_plan().unwrap().to_string());
    }
    assert_eq!(plans[3], plans[5]);
}

#[test]
fn half_precision_products_are_accumulated_in_f32() {
    let ones = Tensor::ones([1, 4096]).to_dtype(DType::F16);
    assert_eq!(ones.matmul(&ones.t()).to_vec::<f32>(), [4096.0]);
}

#[test]
fn kernels_that_wait_for_each_other_stay_apart_however_alike_they_are() {
    let mut x = ready(Tensor::vector(&[1.0]));
    for _ in 0..1000 {
        x = &x + 1.0;
    }
    // A program of 1000 ops would be too long, and its parts cannot run side by side.
    let kernels = plan_of(&x).kernels.len();
    assert!(kernels > 4, "{kernels} kernels");
    assert_eq!(x.to_vec::<f32>(), [1001.0]);
}

#[test]
fn a_sum_of_many_numbers_is_one_kernel() {
    let numbers: Vec<Tensor> = (0..64).map(|k| ready(Tensor::scalar(f64::from(k)))).collect();
    let mut sums = numbers;
    while sums.len() > 1 {
        sums = sums.chunks(2).map(|pair| &pair[0] + &pair[1]).collect();
    }
    let plan = plan_of(&sums[0]);
    if !sums[0].device().is_gpu() {
        assert_eq!(plan.kernels.len(), 1, "{plan}");
    }
    assert_eq!(sums[0].item::<f32>(), 2016.0);
}

#[test]
fn numbers_that_are_kept_on_the_way_to_a_sum_stay_apart() {
    let number = |x: f32| Tensor::from_slice(&[x], [1]);
    let leaves = [1.0, 2.0, 3.0, 4.0].map(number);
    realize_all(&leaves);
    let [a, b, c, d] = &leaves;
    let (left, right) = (a * 0.5, b * 0.25);
    let sums = [(&left * c).sum_dim(0, false), (&right * d).sum_dim(0, false)];
    realize_all(&sums);
    assert_eq!([&left, &right, &sums[0], &sums[1]].map(|t| t.item::<f32>()), [0.5, 0.5, 1.5, 2.0]);
    let (left, right) = (a * 0.5, b * 3.0);
    let sums = [(&left * c).sum_dim(0, false), (&right * d).sum_dim(0, false)];
    realize_all(&sums);
    assert_eq!([&left, &right, &sums[0], &sums[1]].map(|t| t.item::<f32>()), [0.5, 6.0, 1.5, 24.0]);
}

/// What the plan of a graph is, on the CPU: how many kernels, and the most bytes in use.
fn size_of_plan(record: impl FnOnce() -> volta::Result<()>) -> (usize, usize) {
    let plan = plan_only(record).expect("it can be planned").expect("it is new");
    (plan.kernels.len(), plan.peak_bytes)
}

/// A step of a language model, and of a convolutional network.
fn sizes_of_networks() -> Vec<(usize, usize)> {
    let mut sizes = Vec::new();
    for half in [false, true] {
        let options =
            GptOptions { vocabulary: 65, context: 32, layers: 4, heads: 2, width: 32, ..Default::default() };
        let gpt = Gpt::try_new(options).unwrap();
        let [tokens, next] = [(); 2].map(|()| ready(Tensor::randint(0, 65, [4, 32])));
        realize_all(&gpt.parameters());
        let mut adam = Adam::new(gpt.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
        sizes.push(size_of_plan(|| {
            let loss = || gpt.try_loss(&tokens, &next);
            (if half { autocast(DType::F16, loss)? } else { loss()? }).try_backward()?;
            adam.try_step()
        }));
    }
    let model = Sequential::new(vec![
        Box::new(Conv2d::new(3, 8, 3, 1, 1, true)),
        Box::new(BatchNorm2d::new(8)),
        Box::new(ReLU),
        Box::new(Conv2d::new(8, 10, 16, 1, 0, true)),
    ]);
    let (x, classes) = (randn(&[16, 3, 16, 16]), ready(Tensor::randint(0, 10, [16])));
    realize_all(&model.parameters());
    let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    sizes.push(size_of_plan(|| {
        cross_entropy(&model.try_forward(&x)?.try_flatten(1, -1)?, &classes).try_backward()?;
        adam.try_step()
    }));
    sizes
}

/// Forty steps of a cell with their backward pass, and an update of forty tensors.
fn sizes_of_loops() -> Vec<(usize, usize)> {
    let (gru, lstm) = (GRUCell::new(4, 8, true), LSTMCell::new(4, 8, true));
    let x = randn(&[40, 2, 4]);
    realize_all(&[gru.parameters(), lstm.parameters()].concat());
    let backward = |loss: Tensor, model: &dyn Module| {
        loss.try_backward()?;
        try_realize_all(&model.parameters().iter().filter_map(Tensor::grad).collect::<Vec<_>>())
    };
    let mut sizes = vec![size_of_plan(|| {
        let next = |h: Option<Tensor>, k| Some(gru.run(&x.select(0, k), h.as_ref()));
        backward((0..40).fold(None, next).expect("a state").sum(), &gru)
    })];
    sizes.push(size_of_plan(|| {
        let (mut state, mut outputs) = (None, Vec::new());
        for k in 0..40 {
            let (h, c) = lstm.run(&x.select(0, k), state.as_ref().map(|(h, c)| (h, c)));
            outputs.push(h.clone());
            state = Some((h, c));
        }
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        backward(Tensor::stack(&outputs, 0).square().mean(), &lstm)
    }));
    let all: Vec<Tensor> = (0..40).map(|k| randn(&[k % 7 + 1, 4]).requires_grad(true)).collect();
    all.iter().for_each(|x| x.set_grad(Some(ready(Tensor::ones(x.shape())))));
    let mut adam = Adam::new(all, 1e-3, (0.9, 0.999), 1e-8, 0.0);
    sizes.push(size_of_plan(|| adam.try_step()));
    sizes
}

/// Planning may become quicker, but not by fusing less or by taking more memory. Whoever makes plans better writes the new
/// numbers here.
#[test]
fn networks_and_loops_have_as_few_kernels_and_take_as_little_memory_as_before() {
    let (networks, loops) = with_device(Device::Cpu, || (sizes_of_networks(), sizes_of_loops()));
    assert_eq!(networks, [(108, 2085120), (134, 1945728), (12, 906156)]);
    assert_eq!(loops, [(362, 34116), (328, 43332), (1, 9920)]);
}

volta_testing::main!();
