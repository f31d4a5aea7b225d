//! Gradients: what is kept, what is let go, what flows where, and gradients of gradients.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use volta::{
    BackwardOptions, DType, Function, Range, Tensor, apply, autocast, checkpoint, enable_grad, grad, no_grad,
    try_grad,
};
use volta_testing::test;

const KEEP: BackwardOptions = BackwardOptions { retain_graph: true, create_graph: false };
const CREATE: BackwardOptions = BackwardOptions { retain_graph: false, create_graph: true };

/// The random numbers are one state for the whole process.
static RANDOM: Mutex<()> = Mutex::new(());

fn leaf(x: &[f64]) -> Tensor {
    Tensor::from_slice(x, [x.len()]).requires_grad(true)
}

fn read(t: &Tensor) -> Vec<f64> {
    t.to_vec()
}

fn grad_of(t: &Tensor) -> Vec<f64> {
    read(&t.grad().expect("a gradient"))
}

fn one(outputs: &Tensor, input: &Tensor, options: BackwardOptions) -> Tensor {
    grad(&[outputs], &[input], options)[0].clone().expect("the output depends on the input")
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    let close = found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-12 * e.abs().max(1.0));
    assert!(close, "{found:?}, expected {expected:?}");
}

#[test]
fn gradients_add_up_over_uses_and_over_passes() {
    let x = leaf(&[2.0, 3.0]);
    (&x * &x + &x).sum().backward();
    assert_eq!(grad_of(&x), [5.0, 7.0]);
    x.sum().backward();
    assert_eq!(grad_of(&x), [6.0, 8.0]);
    x.set_grad(None);
    assert!(x.grad().is_none());
    x.set_grad(Some(Tensor::from_vec(vec![1.0, 1.0], [2])));
    x.sum().backward();
    assert_eq!(grad_of(&x), [2.0, 2.0]);
}

#[test]
fn a_graph_is_let_go_after_one_pass_unless_it_is_retained() {
    let x = leaf(&[2.0]);
    let y = (&x * &x).sum();
    y.backward();
    let error = y.try_backward().expect_err("the graph is gone");
    assert!(error.to_string().contains("retain_graph"), "{error}");
    let y = (&x * &x).sum();
    x.zero_grad();
    for _ in 0..3 {
        y.backward_with(None, KEEP);
    }
    assert_eq!(grad_of(&x), [12.0]);
    y.backward();
    assert_eq!(grad_of(&x), [16.0]);
    assert!(y.try_backward().is_err());
}

#[test]
fn a_trunk_that_two_losses_share_can_be_differentiated_once_only() {
    let x = leaf(&[2.0]);
    let trunk = (&x * &x).exp();
    let (a, b) = (trunk.sum(), (&trunk * 2.0).sum());
    a.backward();
    assert!(b.try_backward().is_err(), "the trunk was let go");
    assert!(b.item::<f64>() > 0.0, "its value was not");
}

#[test]
fn reading_before_backward_changes_no_gradient() {
    let run = |read_first: bool| {
        let (x, w) = (leaf(&[1.0, -2.0, 3.0]), leaf(&[0.5, 0.25, -1.0]));
        let h = (&x * &w).tanh();
        let loss = (&h * &h).sum() / 3.0;
        if read_first {
            h.realize();
            loss.item::<f64>();
        }
        loss.backward();
        (grad_of(&x), grad_of(&w), loss.item::<f64>())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn nothing_is_taped_without_gradients_and_detached_values_are_constants() {
    let x = leaf(&[3.0]);
    let y = no_grad(|| &x * &x);
    assert!(!y.is_tracked() && y.is_leaf());
    assert!(no_grad(|| enable_grad(|| &x * &x)).is_tracked());
    let z = (&x * x.detach()).sum();
    z.backward();
    assert_eq!(grad_of(&x), [3.0], "the detached factor is a constant");
    assert!(x.detach().try_requires_grad(true).is_ok());
    let error = y.sum().try_backward().expect_err("nothing to differentiate");
    assert!(error.to_string().contains("does not depend on anything that requires a gradient"), "{error}");
}

#[test]
fn no_grad_ends_where_its_closure_ends_even_by_a_panic() {
    let x = leaf(&[1.0]);
    let caught = std::panic::catch_unwind(|| no_grad(|| panic!("inside")));
    assert!(caught.is_err());
    assert!((&x * 2.0).is_tracked());
}

#[test]
fn a_vector_needs_a_gradient_to_start_from() {
    let x = leaf(&[1.0, 2.0]);
    let y = &x * &x;
    assert!(y.try_backward().is_err());
    y.backward_with(Some(&Tensor::from_vec(vec![10.0, 100.0], [2])), BackwardOptions::default());
    assert_eq!(grad_of(&x), [20.0, 400.0]);
    let y = &x * &x;
    let error = y.try_backward_with(Some(&Tensor::ones([2])), KEEP).expect_err("f32 for f64");
    assert!(error.to_string().contains("f32 [2]"), "{error}");
}

#[test]
fn gradients_of_tensors_in_the_middle_are_found_and_nothing_is_collected() {
    let x = leaf(&[2.0]);
    let a = &x * &x;
    let b = &a * 3.0;
    let c = (&b * &a).sum();
    let found = grad(&[&c], &[&a, &b, &x], KEEP);
    let found: Vec<Vec<f64>> = found.iter().map(|g| read(g.as_ref().expect("a gradient"))).collect();
    assert_eq!(found, [[24.0], [4.0], [96.0]]);
    assert!(x.grad().is_none() && a.grad().is_none());
    let stranger = leaf(&[1.0]);
    assert!(grad(&[&c], &[&stranger], KEEP)[0].is_none(), "no path, no gradient");
    let constant = Tensor::from_vec(vec![1.0f64], [1]);
    assert!(try_grad(&[&c], &[&constant], None, KEEP).is_err());
}

#[test]
fn several_outputs_are_differentiated_as_their_sum() {
    let x = leaf(&[2.0]);
    let (a, b) = ((&x * &x).sum(), (&x * 5.0).sum());
    let g = grad(&[&a, &b], &[&x], KEEP);
    assert_eq!(read(g[0].as_ref().expect("a gradient")), [9.0]);
    let seeds =
        [Tensor::scalar(2.0).to_dtype(volta::DType::F64), Tensor::scalar(-1.0).to_dtype(volta::DType::F64)];
    let g = try_grad(&[&a, &b], &[&x], Some(&[&seeds[0], &seeds[1]]), KEEP).expect("both fit");
    assert_eq!(read(g[0].as_ref().expect("a gradient")), [3.0]);
}

#[test]
fn the_third_derivative_of_the_sine_is_minus_the_cosine() {
    let x = leaf(&[0.3, 1.0, -2.0]);
    let mut y = x.sin();
    for _ in 0..3 {
        y = one(&y.sum(), &x, CREATE);
    }
    let expected: Vec<f64> = [0.3f64, 1.0, -2.0].iter().map(|v| -v.cos()).collect();
    assert_close(&read(&y), &expected);
}

#[test]
fn derivatives_of_a_power_fall_by_one_each_time() {
    let x = leaf(&[2.0]);
    let mut y = x.pow(4.0);
    for expected in [32.0, 48.0, 48.0, 24.0] {
        y = one(&y.sum(), &x, CREATE);
        assert_close(&read(&y), &[expected]);
    }
    assert!(y.is_tracked());
}

#[test]
fn a_hessian_times_a_vector_is_the_gradient_of_a_product() {
    // f = xᵀAx·sum(x), by hand: ∇f = (A + Aᵀ)x·s + xᵀAx, ∇²f·v = (A + Aᵀ)v·s + (A + Aᵀ)x·Σv + (A + Aᵀ)x·v.
    let a = [[2.0, -1.0], [0.5, 3.0]];
    let (xs, vs) = ([1.5, -0.5], [0.3, 2.0]);
    let matrix = Tensor::from_vec(vec![2.0f64, -1.0, 0.5, 3.0], [2, 2]);
    let x = leaf(&xs);
    let f = x.dot(&matrix.matmul(&x)) * x.sum();
    let g = one(&f, &x, CREATE);
    let hv = one(&g.dot(&Tensor::from_slice(&vs, [2])), &x, BackwardOptions::default());
    let symmetric = |u: [f64; 2]| [0, 1].map(|i| (0..2).map(|j| (a[i][j] + a[j][i]) * u[j]).sum::<f64>());
    let (s, sv) = (xs[0] + xs[1], vs[0] + vs[1]);
    let (bx, bv) = (symmetric(xs), symmetric(vs));
    let along = bx[0] * vs[0] + bx[1] * vs[1];
    assert_close(&read(&hv), &[bv[0] * s + bx[0] * sv + along, bv[1] * s + bx[1] * sv + along]);
}

#[test]
fn a_gradient_penalty_can_be_collected_in_leaves() {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, -1.0]));
    let y = (&x * &w).square().sum();
    let g = one(&y, &x, CREATE);
    (y + g.square().sum()).backward();
    // y = Σ x²w², ∂y/∂x = 2xw², penalty Σ 4x²w⁴.
    let expected: Vec<f64> = [(1.0f64, 3.0f64), (2.0, -1.0)]
        .iter()
        .map(|(x, w)| 2.0 * x * x * w + 16.0 * x * x * w.powi(3))
        .collect();
    assert_close(&grad_of(&w), &expected);
}

/// x², with a gradient that is deliberately ten times too large, so that it is seen to be used.
struct TenfoldSquare;

impl Function for TenfoldSquare {
    fn forward(&self, inputs: &[Tensor]) -> Tensor {
        assert!(!inputs[0].is_tracked(), "the forward pass is not taped");
        inputs[0].square()
    }

    fn backward(&self, inputs: &[Tensor], output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
        assert_eq!(output.shape(), inputs[0].shape());
        vec![Some(gradient * &inputs[0] * 20.0), None]
    }
}

#[test]
fn a_users_function_has_the_users_gradient() {
    let (x, unused) = (leaf(&[3.0, -1.0]), leaf(&[1.0]));
    let y = apply(TenfoldSquare, &[&(&x * 2.0), &unused]);
    assert_eq!(read(&y), [36.0, 4.0]);
    (&y * 0.5).sum().backward();
    assert_eq!(grad_of(&x), [120.0, -40.0]);
    assert!(unused.grad().is_none(), "None stops the gradient");
    let y = apply(TenfoldSquare, &[&x, &unused]).sum();
    let g = one(&y, &x, CREATE);
    assert_eq!(
        read(&one(&g.sum(), &x, BackwardOptions::default())),
        [20.0, 20.0],
        "and can be differentiated"
    );
    assert!(!no_grad(|| apply(TenfoldSquare, &[&x, &unused])).is_tracked());
}

struct Misfit(bool);

impl Function for Misfit {
    fn forward(&self, inputs: &[Tensor]) -> Tensor {
        inputs[0].clone()
    }

    fn backward(&self, _: &[Tensor], _: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
        if self.0 { vec![] } else { vec![Some(gradient.sum())] }
    }
}

#[test]
fn a_users_gradient_that_does_not_fit_is_an_error() {
    for (too_few, text) in
        [(true, "gave 0 gradients for 1 inputs"), (false, "gave f64 [] for input 0, which is f64 [2]")]
    {
        let x = leaf(&[1.0, 2.0]);
        let error = apply(Misfit(too_few), &[&x]).sum().try_backward().expect_err("it does not fit");
        assert!(error.to_string().contains(text), "{error}");
    }
}

fn block(x: &[Tensor]) -> Tensor {
    (&x[0] * &x[1]).tanh().exp().sum_dim(0, true) * &x[0]
}

#[test]
fn a_checkpoint_gives_the_same_value_and_gradients() {
    let run = |checkpointed: bool| {
        let (x, w) = (leaf(&[0.5, -1.0, 2.0]), leaf(&[1.0, 0.3, -0.2]));
        let mut h = &x * 1.5;
        for _ in 0..3 {
            h = if checkpointed { checkpoint(block, &[&h, &w]) } else { block(&[h, w.clone()]) };
        }
        let loss = h.square().sum();
        loss.backward();
        (loss.item::<f64>(), grad_of(&x), grad_of(&w))
    };
    let (plain, again) = (run(false), run(true));
    assert_close(&[plain.0], &[again.0]);
    assert_close(&plain.1, &again.1);
    assert_close(&plain.2, &again.2);
}

#[test]
fn a_checkpoint_can_be_differentiated_twice() {
    let run = |checkpointed: bool| {
        let x = leaf(&[0.5, -1.0]);
        let f = |x: &[Tensor]| x[0].sin() * &x[0];
        let y = if checkpointed { checkpoint(f, &[&x]) } else { f(std::slice::from_ref(&x)) };
        let g = one(&y.sum(), &x, CREATE);
        read(&one(&g.square().sum(), &x, BackwardOptions::default()))
    };
    assert_close(&run(true), &run(false));
}

/// Inputs that depend on each other, or are the same tensor: each has the gradient of its own place only.
#[test]
fn a_checkpoint_differentiated_twice_counts_every_path_once() {
    fn product(x: &[Tensor]) -> Tensor {
        (&x[0] * &x[1]).sin()
    }
    let run = |checkpointed: bool| {
        let a = leaf(&[2.0, -0.5]);
        let b = &a * &a;
        let mut found = Vec::new();
        for pair in [[&a, &b], [&b, &a], [&a, &a], [&b, &b]] {
            let y = if checkpointed { checkpoint(product, &pair) } else { product(&pair.map(Clone::clone)) };
            let first = one(&y.sum(), &a, CREATE);
            found.extend(read(&first));
            found.extend(read(&one(&first.square().sum(), &a, KEEP)));
        }
        found
    };
    assert_close(&run(true), &run(false));
}

/// What the second run meets is what the first one met, and afterwards everything is as it was, also behind a panic.
#[test]
fn a_checkpoint_runs_again_under_its_own_circumstances() {
    let _alone = RANDOM.lock().expect("no other test panics while drawing");
    let run = |checkpointed: bool| {
        let (x, w) = (Tensor::randn([3, 4]).requires_grad(true), Tensor::randn([4, 2]).requires_grad(true));
        let product = |t: &[Tensor]| t[0].matmul(&t[1]).dropout(0.25, true);
        let y = autocast(DType::BF16, || {
            if checkpointed { checkpoint(product, &[&x, &w]) } else { product(&[x.clone(), w.clone()]) }
        });
        assert_eq!(y.dtype(), DType::BF16);
        y.to_dtype(DType::F32).square().sum().backward();
        [&x, &w].map(|t| t.grad().expect("a gradient").to_vec::<f32>())
    };
    let [again, plain] = [true, false].map(|checkpointed| {
        volta::manual_seed(5);
        run(checkpointed)
    });
    assert_eq!(again, plain);

    let runs = Arc::new(AtomicUsize::new(0));
    let x = leaf(&[1.0]);
    let y = checkpoint(
        move |x| {
            assert_eq!(runs.fetch_add(1, Ordering::Relaxed), 0, "once is enough");
            autocast(DType::F16, || x[0].dropout(0.5, true))
        },
        &[&x],
    );
    let before = volta::RngState::save();
    std::panic::catch_unwind(AssertUnwindSafe(|| y.sum().backward())).expect_err("the second run panics");
    assert_eq!(volta::RngState::save(), before);
}

#[test]
fn dropout_inside_a_checkpoint_falls_the_same_way_again() {
    let _alone = RANDOM.lock().expect("no other test panics while drawing");
    volta::manual_seed(3);
    let x = leaf(&[1.0; 64]);
    let y = checkpoint(|x| x[0].dropout(0.5, true), &[&x]);
    let before = volta::RngState::save();
    y.sum().backward();
    assert_eq!(volta::RngState::save(), before, "the second run leaves the random numbers as they were");
    let (values, gradients) = (read(&y), grad_of(&x));
    assert_eq!(values, gradients, "what was kept gets a gradient, what was dropped none");
    assert!(values.contains(&0.0) && values.contains(&2.0));
}

#[test]
fn a_checkpoint_that_captures_a_tracked_tensor_is_an_error() {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let captured = w.clone();
    let y = checkpoint(move |x| &x[0] * &captured, &[&x]).sum();
    let error = y.try_backward().expect_err("the gradient of w would be lost");
    assert!(error.to_string().contains("pass it as an input"), "{error}");
    let middle = &w * 3.0;
    let y = checkpoint(move |x| &x[0] * &middle, &[&x]).sum();
    assert!(y.try_backward().is_err(), "nor one from the middle of a graph");
    let constant = Tensor::from_vec(vec![4.0f64], [1]);
    let captured = w.clone();
    let y = checkpoint(move |x| &x[0] * &captured, &[&x]).sum();
    assert!(try_grad(&[&y], &[&x], None, CREATE).is_err(), "nor when the pass is recorded");
    checkpoint(move |x| &x[0] * &constant, &[&x]).sum().backward();
    assert_eq!(grad_of(&x), [4.0], "constants may be captured");
}

#[test]
fn integers_carry_no_gradient_and_cannot_ask_for_one() {
    let x = leaf(&[1.5, 2.5]);
    assert!(!x.gt(2.0).is_tracked());
    assert!(!x.argmax().is_tracked());
    assert!(!x.to_dtype(volta::DType::I32).is_tracked());
    assert!(Tensor::arange(0, 3).try_requires_grad(true).is_err());
    let error = x.try_floor_divide(2.0).expect_err("no gradient");
    assert!(error.to_string().contains("has no gradient"), "{error}");
    assert_eq!(read(&no_grad(|| x.floor_divide(2.0))), [0.0, 1.0]);
}

#[test]
fn random_numbers_repeat_with_their_seed() {
    let _alone = RANDOM.lock().expect("no other test panics while drawing");
    let draw = || -> (Vec<f32>, Vec<f32>, Vec<i32>) {
        (Tensor::rand([50]).to_vec(), Tensor::randn([50]).to_vec(), Tensor::randint(-3, 4, [50]).to_vec())
    };
    volta::manual_seed(11);
    let (a, again) = (draw(), draw());
    assert_ne!(a, again);
    volta::manual_seed(11);
    assert_eq!(draw(), a);
    volta::manual_seed(12);
    assert_ne!(draw(), a);
    assert!(a.0.iter().all(|x| (0.0..1.0).contains(x)));
    assert!(a.2.iter().all(|x| (-3..4).contains(x)));
}

#[test]
fn what_was_permuted_without_a_tape_stays_without_one() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).requires_grad(true);
    let frozen = no_grad(|| x.t());
    assert!(!frozen.is_tracked());
    assert!(!frozen.t().is_tracked(), "permuted back");
    assert_eq!(frozen.t().to_vec::<f32>(), x.to_vec::<f32>());
    let y = autocast(DType::BF16, || frozen.matmul(&Tensor::ones([2, 2])));
    assert!(!y.is_tracked(), "in half precision");
    assert_eq!(y.to_vec::<f32>(), [5.0, 5.0, 7.0, 7.0, 9.0, 9.0]);
}

#[test]
fn ops_with_nothing_to_do_hand_out_no_tape_where_there_is_none() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0]).reshape([2, 2]);
    type Op = fn(&Tensor) -> Tensor;
    let idle: [(&str, Op); 5] = [
        ("t twice", |x| x.t().t()),
        ("reshape", |x| x.reshape([2, 2])),
        ("to_dtype", |x| x.to_dtype(DType::F64)),
        ("narrow", |x| x.narrow(0, 0, 2)),
        ("mul", |x| x * 1.0),
    ];
    for (name, op) in idle {
        let y = no_grad(|| op(&x));
        assert!(!y.is_tracked(), "{name}");
        assert_eq!(read(&y), read(&x), "{name}");
        assert!(op(&x).is_tracked(), "{name}");
    }
}

/// The operand of a product in half precision is converted as it lies in memory, and not as it was permuted.
#[test]
fn a_permuted_operand_in_half_precision_has_a_gradient() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).requires_grad(true);
    let w = Tensor::from_vec(vec![1.0f32, 2.0], [2, 1]);
    for source in [x.clone(), &x * 2.0] {
        let t = source.t();
        let product = || autocast(DType::BF16, || t.matmul(&w)).to_dtype(DType::F32).sum();
        let found = grad(&[&product()], &[&t, &source, &x], KEEP);
        let expected = [vec![1.0, 2.0, 1.0, 2.0, 1.0, 2.0], vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0]];
        for (found, expected) in found[..2].iter().zip(&expected) {
            assert_eq!(&read(found.as_ref().expect("the output depends on it")), expected);
        }
        assert_eq!(found[0].as_ref().map(Tensor::dtype), Some(DType::F32));
        let twice = product() + product() + t.sum() * 0.5;
        let found = grad(&[&twice], &[&t], Default::default()).remove(0).expect("the output depends on it");
        assert_eq!(read(&found), [2.5, 4.5, 2.5, 4.5, 2.5, 4.5], "both products and the sum");
    }
}

#[test]
fn a_variable_that_was_assigned_to_is_still_the_input_of_what_was_computed_before() {
    let x = leaf(&[2.0, 3.0]);
    let y = (&x * &x).sum();
    x.assign(&Tensor::from_vec(vec![5.0, 7.0], [2]));
    assert_eq!(read(&one(&y, &x, KEEP)), [4.0, 6.0], "at the value that it had");
    let z = &y + (&x * 3.0).sum();
    assert_eq!(read(&one(&z, &x, KEEP)), [7.0, 9.0], "at both values");
    z.backward();
    assert_eq!(grad_of(&x), [7.0, 9.0]);
}

/// What easily leaves the range of halves is f32 after products in half precision.
#[test]
fn mixed_precision_does_not_overflow_behind_products() {
    let x = Tensor::full([64, 8], 3.0).requires_grad(true);
    type Row = (&'static str, fn(&Tensor) -> Tensor, f32);
    let table: [Row; 11] = [
        ("sum", |h| (h * 30.0).sum(), 64.0 * 8.0 * 72.0 * 30.0),
        ("sum_dim", |h| (h * 100.0).sum_dim(0, false), 64.0 * 7200.0),
        ("pow", |h| h.pow(3.0), 72.0 * 72.0 * 72.0),
        ("tensor power", |h| h.pow(Tensor::full([8], 3.0).to_dtype(DType::F16)), 72.0 * 72.0 * 72.0),
        ("square", |h| (h * 10.0).square(), 720.0 * 720.0),
        ("exp", |h| h.exp(), 72f32.exp()),
        ("recip", |h| (h * 1e-6).recip(), 1e6 / 72.0),
        ("number over", |h| 1e7 / h, 1e7 / 72.0),
        ("norm", |h| (h * 100.0).norm(1.0), 64.0 * 8.0 * 7200.0),
        ("cumsum", |h| (h * 100.0).cumsum(0).select(0, 63), 64.0 * 7200.0),
        ("prod", |h| h.prod_dim(1, false), 72f32.powi(8)),
    ];
    for (name, op, expected) in table {
        x.zero_grad();
        // Also where the backward pass is asked for inside.
        let y = autocast(DType::F16, || {
            let h = x.matmul(&Tensor::full([8, 8], 3.0));
            assert_eq!(h.dtype(), DType::F16);
            let y = op(&h);
            y.to_dtype(DType::F32).mean().backward();
            y
        });
        assert_eq!(y.dtype(), DType::F32, "{name}");
        let off = y.to_vec::<f32>().iter().fold(0f32, |off, y| off.max((y / expected - 1.0).abs()));
        assert!(off < 0.02, "{name}: {:?}, not {expected}", &y.to_vec::<f32>()[..1]);
        assert_eq!(x.grad().expect("a gradient").dtype(), DType::F32, "{name}");
    }
    let x = Tensor::full([4], 300.0).to_dtype(DType::F16);
    assert_eq!(x.square().dtype(), DType::F16, "outside it is as asked for");
}

#[test]
fn slices_with_steps_have_gradients_in_eight_axes() {
    let x = Tensor::ones([2, 1, 3, 1, 5, 1, 2, 1]).requires_grad(true);
    x.slice([Range::by(.., 1), Range::by(.., 1), Range::by(.., 2), Range::by(.., 1), Range::by(1.., 3)])
        .sum()
        .backward();
    let g = x.grad().expect("a gradient");
    assert_eq!(g.shape(), x.shape());
    assert_eq!(g.sum().item::<f32>(), (2 * 2 * 2 * 2) as f32);
    let along = g.sum_dim([0, 2, 6], false).to_vec::<f32>();
    assert_eq!(along, [0.0, 8.0, 0.0, 0.0, 8.0]);
}

volta_testing::main!();
