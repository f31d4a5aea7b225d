//! When things happen: assigning, reading and dropping in every order change nothing that was computed before.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use volta::{DType, Tensor, default_device, no_grad, realize_all};
use volta_testing::test;

type Unary = fn(&Tensor) -> Tensor;

fn vector(x: &[f32]) -> Tensor {
    Tensor::vector(x)
}

fn read(t: &Tensor) -> Vec<f32> {
    t.to_vec()
}

#[test]
fn a_pending_value_keeps_what_it_was_computed_from() {
    let p = vector(&[1.0, 2.0]);
    let y = &p * 10.0;
    p.assign(&vector(&[5.0, 6.0]));
    assert_eq!(read(&y), [10.0, 20.0], "y was recorded before");
    assert_eq!(read(&p), [5.0, 6.0]);
    assert_eq!(read(&(&p * 10.0)), [50.0, 60.0]);
}

#[test]
fn a_value_that_was_read_keeps_itself() {
    let p = vector(&[1.0, 2.0]);
    let y = &p * 10.0;
    assert_eq!(read(&y), [10.0, 20.0]);
    p.assign(&vector(&[5.0, 6.0]));
    assert_eq!(read(&y), [10.0, 20.0]);
}

#[test]
fn clones_see_what_is_assigned_and_copies_do_not() {
    let p = vector(&[1.0]);
    let (clone, detached, variable) = (p.clone(), p.detach(), p.variable());
    p.assign(&vector(&[2.0]));
    assert_eq!(read(&clone), [2.0]);
    assert_eq!(read(&detached), [1.0]);
    assert_eq!(read(&variable), [1.0]);
    clone.assign(&vector(&[3.0]));
    assert_eq!(read(&p), [3.0]);
    variable.assign(&vector(&[4.0]));
    assert_eq!(read(&p), [3.0]);
}

#[test]
fn views_show_the_value_at_the_time_they_were_taken() {
    let views: &[(&str, Unary, &[f32])] = &[
        ("permute", |x| x.t(), &[1.0, 3.0, 2.0, 4.0]),
        ("reshape", |x| x.reshape([4]), &[1.0, 2.0, 3.0, 4.0]),
        ("narrow", |x| x.narrow(0, 1, 1), &[3.0, 4.0]),
        ("flip", |x| x.flip(1), &[2.0, 1.0, 4.0, 3.0]),
        ("expand", |x| x.narrow(0, 0, 1).expand([2, 2]), &[1.0, 2.0, 1.0, 2.0]),
    ];
    for (name, view, expected) in views {
        let p = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2]);
        let v = view(&p);
        p.assign(&Tensor::zeros([2, 2]));
        assert_eq!(read(&v), *expected, "{name}");
        assert_eq!(read(&p), [0.0; 4], "{name}");
    }
}

/// An op that has nothing to do gives a value all the same, not another name of the variable.
#[test]
fn ops_that_change_nothing_still_give_the_value_of_now() {
    let table: &[(&str, Unary)] = &[
        ("x * 1", |x| x * 1.0),
        ("1 * x", |x| 1.0 * x),
        ("x * ones", |x| x * Tensor::ones([2])),
        ("to_dtype", |x| x.to_dtype(DType::F32)),
        ("reshape", |x| x.reshape([2])),
        ("flatten", |x| x.flatten(0, -1)),
        ("permute", |x| x.permute([0])),
        ("t", Tensor::t),
        ("expand", |x| x.expand([2])),
        ("pad", |x| x.pad(&[(0, 0)], 0.0)),
        ("narrow", |x| x.narrow(0, 0, 2)),
        ("slice", |x| x.slice([(..).into()])),
        ("flip", |x| x.flip([0isize; 0])),
        ("squeeze", |x| x.squeeze(0)),
        ("squeeze_all", Tensor::squeeze_all),
        ("dropout without training", |x| x.dropout(0.5, false)),
        ("repeat", |x| x.repeat([1])),
        ("roll", |x| x.roll(2, 0)),
        ("diff 0 times", |x| x.diff(0, 0)),
        ("split", |x| x.split(5, 0)[0].clone()),
        ("cat of one", |x| Tensor::cat(&[x], 0)),
    ];
    let mut wrong = vec![];
    for (name, call) in table {
        let p = vector(&[1.0, 2.0]);
        let y = call(&p);
        p.assign(&vector(&[7.0, 8.0]));
        if read(&y) != [1.0, 2.0] {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "these follow the variable they were computed from: {wrong:?}");
}

#[test]
fn a_result_that_equals_a_leaf_is_not_that_leaf() {
    let p = vector(&[1.0, 2.0]).requires_grad(true);
    let y = p.reshape([2]);
    assert!(y.try_assign(&vector(&[0.0, 0.0])).is_err(), "results cannot be assigned to");
    y.sum().backward();
    assert!(y.grad().is_none(), "only leaves collect gradients");
    assert_eq!(read(&p.grad().expect("a gradient")), [1.0, 1.0]);
}

#[test]
fn a_variable_may_be_assigned_a_function_of_itself() {
    let p = vector(&[1.0, 2.0]);
    for _ in 0..10 {
        p.assign(&(&p * 2.0));
    }
    assert_eq!(read(&p), [1024.0, 2048.0]);
    let (a, b) = (vector(&[1.0]), vector(&[2.0]));
    let old = a.detach();
    a.assign(&b);
    b.assign(&old);
    assert_eq!((read(&a), read(&b)), (vec![2.0], vec![1.0]), "an exchange");
}

#[test]
fn a_leaf_that_was_assigned_collects_gradients_in_the_same_place() {
    let p = vector(&[2.0]).requires_grad(true);
    let before = (&p * &p).sum();
    no_grad(|| p.assign(&vector(&[5.0])));
    before.backward();
    assert_eq!(read(&p.grad().expect("a gradient")), [4.0], "at the value of then");
    (&p * &p).sum().backward();
    assert_eq!(read(&p.grad().expect("a gradient")), [14.0], "added at the value of now");
    assert!(p.is_leaf() && p.is_tracked());
    p.zero_grad();
    assert!(p.grad().is_none());
}

#[test]
fn what_is_assigned_may_be_pending_on_the_variable_and_on_others() {
    let (p, q) = (vector(&[1.0, 2.0]), vector(&[10.0, 20.0]));
    let y = &p + &q;
    p.assign(&y);
    let z = &p + &q;
    q.assign(&z);
    p.assign(&vector(&[0.0, 0.0]));
    assert_eq!(read(&q), [21.0, 42.0]);
    assert_eq!(read(&y), [11.0, 22.0]);
    assert_eq!(read(&z), [21.0, 42.0]);
}

/// Memory that a plan takes over must not be somebody else's view.
#[test]
fn computing_from_a_view_leaves_other_views_alone() {
    let views: &[(&str, Unary, Unary)] = &[
        ("permute", |x| x.t(), |x| x.t()),
        ("flip", |x| x.flip(0), |x| x.flip(0)),
        ("reshape", |x| x.reshape([6]), |x| x.reshape([3, 2])),
        ("detach", Tensor::detach, Tensor::detach),
        ("unsqueeze", |x| x.unsqueeze(0), |x| x.squeeze(0)),
        ("narrow of pad", |x| x.pad(&[(1, 0), (0, 0)], 0.0), |x| x.narrow(0, 1, 3)),
    ];
    for (name, there, back) in views {
        let kept = {
            let base = Tensor::arange(0, 6).reshape([3, 2]) * 2.0;
            base.realize();
            there(&base)
        };
        let plus = back(&kept) + 1.0;
        assert_eq!(read(&plus), [1.0, 3.0, 5.0, 7.0, 9.0, 11.0], "{name}: the result");
        assert_eq!(read(&back(&kept)), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0], "{name}: the view it came from");
    }
}

#[test]
fn what_the_tape_still_needs_is_not_overwritten_by_what_is_computed_from_it() {
    let x = vector(&[0.1, 0.2, 0.3]).requires_grad(true);
    let y = {
        let middle = &x * 2.0;
        middle.realize();
        middle.sin()
    };
    y.realize();
    y.sum().backward();
    let expected = [0.2f32, 0.4, 0.6].map(|v| 2.0 * v.cos());
    let found = read(&x.grad().expect("a gradient"));
    assert!(
        found.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-6),
        "{found:?}, expected {expected:?}"
    );
}

#[test]
fn values_are_the_same_whichever_is_read_first() {
    let build = || {
        let x = vector(&[0.5, -1.0, 2.0]);
        let a = x.sin();
        let b = (&a * &x).sum();
        let c = &a / (&b + 3.0);
        let d = c.max();
        [x, a, b, c, d]
    };
    let expected: Vec<Vec<f32>> = build().iter().map(read).collect();
    for first in 0..5 {
        for second in 0..5 {
            let values = build();
            read(&values[first]);
            read(&values[second]);
            let found: Vec<Vec<f32>> = values.iter().map(read).collect();
            assert_eq!(found, expected, "read {first}, then {second}");
        }
    }
    let values = build();
    realize_all(&values);
    assert!(values.iter().all(Tensor::is_realized));
    assert_eq!(values.iter().map(read).collect::<Vec<_>>(), expected, "all at once");
}

#[test]
fn tensors_may_be_dropped_in_any_order_before_the_rest_is_read() {
    let build = || {
        let x = vector(&[1.0, 2.0]);
        let a = &x + 1.0;
        let b = &a * &x;
        let c = b.sum();
        let d = &b / &c;
        vec![x, a, b, c, d]
    };
    let expected: Vec<Vec<f32>> = build().iter().map(read).collect();
    // Every subset dropped, from the front and from the back.
    for kept in 1u32..32 {
        for reverse in [false, true] {
            let mut values: Vec<Option<Tensor>> = build().into_iter().map(Some).collect();
            let mut order: Vec<usize> = (0..5).collect();
            if reverse {
                order.reverse();
            }
            for k in order {
                if kept >> k & 1 == 0 {
                    values[k] = None;
                }
            }
            for (k, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    assert_eq!(read(value), expected[k], "kept {kept:05b}, value {k}");
                }
            }
        }
    }
}

#[test]
fn gradients_outlive_everything_they_came_from() {
    let gradient = {
        let x = vector(&[3.0]).requires_grad(true);
        let y = (&x * &x).sum();
        y.backward();
        drop(y);
        x.grad().expect("a gradient")
    };
    assert_eq!(read(&gradient), [6.0]);
    let loss = {
        let x = vector(&[3.0]).requires_grad(true);
        (&x * &x).sum()
    };
    loss.backward();
    assert_eq!(loss.item::<f32>(), 9.0, "the leaf is gone, the value is not");
}

#[test]
fn a_chain_of_200_000_ops_is_dropped_without_recursion() {
    for tracked in [false, true] {
        let mut x = vector(&[1.0]).requires_grad(tracked);
        for _ in 0..200_000 {
            x = &x + 1.0;
        }
        drop(x);
    }
}

#[test]
fn a_chain_of_20_000_ops_is_computed() {
    let mut x = vector(&[1.0]);
    for _ in 0..20_000 {
        x = &x + 1.0;
    }
    assert_eq!(read(&x), [20_001.0]);
}

#[test]
fn a_chain_of_2_000_ops_is_differentiated() {
    let leaf = vector(&[1.0, 2.0]).requires_grad(true);
    let mut x = leaf.clone();
    for k in 0..2_000 {
        x = if k % 2 == 0 { &x * 2.0 } else { &x * 0.5 };
    }
    x.sum().backward();
    assert_eq!(read(&leaf.grad().expect("a gradient")), [1.0, 1.0]);
}

#[test]
fn a_wide_sum_of_many_tensors_is_computed() {
    let parts: Vec<Tensor> = (0..500).map(|k| vector(&[k as f32, 1.0])).collect();
    let mut sum = parts[0].clone();
    for part in &parts[1..] {
        sum = &sum + part;
    }
    assert_eq!(read(&sum), [124_750.0, 500.0]);
}

#[test]
fn a_value_used_by_many_is_computed_once_for_all_of_them() {
    let x = Tensor::arange(0, 100).to_dtype(DType::F32).sin();
    let many: Vec<Tensor> = (0..200).map(|k| (&x * f64::from(k)).sum()).collect();
    let all = Tensor::stack(&many, 0);
    let found = read(&all);
    let base: f32 = read(&x).iter().sum();
    for (k, &v) in found.iter().enumerate() {
        assert!((v - base * k as f32).abs() < 1e-3, "{k}: {v}");
    }
}

#[test(needs(f64))]
fn plans_with_the_same_structure_but_other_numbers_do_not_mix() {
    // Constants, shapes, axes, slices, pads, dtypes and keys: whatever a cached plan might forget to tell apart.
    let x = vector(&[1.0, 2.0, 3.0, 4.0]);
    for k in 0..6 {
        let c = f64::from(k);
        assert_eq!(read(&(&x * c)), [c as f32, 2.0 * c as f32, 3.0 * c as f32, 4.0 * c as f32]);
        assert_eq!(read(&x.pad(&[(1, 0)], c))[0], c as f32);
        assert_eq!(read(&x.pow(c))[1], 2f32.powi(k));
    }
    for start in 0..4usize {
        assert_eq!(read(&(x.narrow(0, start, 1) + 0.5)), [start as f32 + 1.5]);
        assert_eq!(read(&(x.roll(start as isize, 0) * 1.5))[start], 1.5);
    }
    let m = x.reshape([2, 2]);
    assert_eq!(read(&m.sum_dim(0, false)), [4.0, 6.0]);
    assert_eq!(read(&m.sum_dim(1, false)), [3.0, 7.0]);
    assert_eq!(read(&m.max_dim(0, false)), [3.0, 4.0]);
    assert_eq!(read(&m.min_dim(0, false)), [1.0, 2.0]);
    assert_eq!(m.argmax_dim(0, false).to_vec::<i32>(), [1, 1]);
    assert_eq!(m.argmin_dim(0, false).to_vec::<i32>(), [0, 0]);
    assert_eq!(read(&m.cumsum(0)), [1.0, 2.0, 4.0, 6.0]);
    assert_eq!(read(&m.cumsum(1)), [1.0, 3.0, 3.0, 7.0]);
    assert_eq!(m.argsort(1, false).to_vec::<i32>(), [0, 1, 0, 1]);
    assert_eq!(m.argsort(1, true).to_vec::<i32>(), [1, 0, 1, 0]);
    for dtype in
        [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::U32]
    {
        assert_eq!(x.to_dtype(dtype).add(1).to_vec::<f32>(), [2.0, 3.0, 4.0, 5.0], "{dtype}");
    }
    volta::manual_seed(7);
    let (a, b) = (Tensor::rand([8]), Tensor::rand([8]));
    assert_ne!(read(&a), read(&b), "each draw has its own key");
}

/// Wakes up the thread that waits, and counts how often.
struct Bell(Thread, AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Relaxed);
        self.0.unpark();
    }
}

/// What a future gives, of which this thread hears; and how often it was told to look again.
fn heard<F: Future>(future: F) -> (F::Output, usize) {
    let bell = Arc::new(Bell(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    let mut looks = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            assert!(looks == 0 || bell.1.load(Relaxed) > 0, "nobody was told");
            return (output, looks);
        }
        looks += 1;
        let since = Instant::now();
        while bell.1.load(Relaxed) < looks {
            assert!(since.elapsed() < Duration::from_secs(60), "it was not told for a minute");
            thread::park_timeout(Duration::from_secs(1));
        }
    }
}

#[test]
fn values_are_asked_for_together_and_come_one_by_one() {
    let ones = Tensor::ones([300, 300]);
    let much = ones.matmul(&ones).matmul(&ones);
    let little = Tensor::arange(0, 5).to_dtype(DType::F32) * 2.0;
    let (first, second) = (much.to_vec_async::<f32>(), little.to_vec_async::<f32>());
    // More to do, behind what was asked for.
    let more = (much / 90_000.0).sum();
    more.realize();
    assert_eq!(heard(second).0.unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0]);
    assert_eq!(heard(first).0.unwrap(), vec![90_000.0; 90_000]);
    assert_eq!(more.item::<f32>(), 90_000.0);
    // On a thread that has nothing else to do with a device.
    let third = (&little + 1.0).to_vec_async::<f32>();
    let found = thread::spawn(move || heard(third).0.unwrap()).join().unwrap();
    assert_eq!(found, [1.0, 3.0, 5.0, 7.0, 9.0]);
    // A future that nobody asks is no trouble.
    drop(little.exp().to_vec_async::<f32>());
    assert_eq!(little.to_vec::<f32>()[4], 8.0);
}

#[test]
fn whoever_asks_for_values_is_told_when_they_are_there() {
    let ones = Tensor::ones([400, 400]);
    ones.realize();
    let much = || (0..8).fold(ones.clone(), |x, _| x.matmul(&ones) / 400.0);
    // Compiled, the plan is submitted long before it is done.
    much().realize().to_vec::<f32>();
    let comes_later = |_| {
        let (found, looks) = heard(much().to_vec_async::<f32>());
        assert_eq!(found.unwrap(), vec![1.0; 160_000]);
        looks > 0
    };
    // Once at least: this thread may be late itself.
    assert_eq!((0..5).any(comes_later), default_device().is_gpu());
}

/// Where `VOLTA_DEVICE=gpu` picks a GPU, it begins with a long forward pass on the way, and with what a view is of: nothing
/// is copied to have the view itself.
#[test(needs(gpu))]
fn a_device_that_begins_on_the_way_leaves_views_what_they_are() {
    let weight = Tensor::full([8, 8], 0.5).requires_grad(true);
    let mut x = Tensor::ones([8, 8]) * &weight;
    for _ in 0..40 {
        x = x.tanh();
    }
    let (view, before) = (x.t(), x.is_realized());
    let product = view.matmul(&weight);
    assert_eq!(
        [before, x.is_realized(), view.is_realized(), product.is_realized()],
        [false, true, false, false]
    );
    let sum: f32 = product.sum().item();
    let right: f32 = read(&x).iter().sum::<f32>() * 0.5 * 8.0;
    assert!((sum - right).abs() <= 1e-3 * right.abs(), "{sum} for {right}");
}

#[test]
fn a_graph_that_only_grows_is_computed_in_between() {
    let ones = vector(&[1.0, 1.0]).realize().clone();
    let mut x = vector(&[0.0, 1.0]).realize().clone();
    let first = &x * 3.0;
    for _ in 0..70_000 {
        x = &x + &ones;
    }
    // What is held was computed with it.
    assert!(first.is_realized() && !x.is_realized());
    assert_eq!(read(&x), [70_000.0, 70_001.0]);
    assert_eq!(read(&first), [0.0, 3.0]);
}

volta_testing::main!();
