//! Tensors shared by threads: built here and read there, read and assigned at once.

use std::process::Command;
use std::sync::Barrier;
use std::thread;
use volta::Tensor;
use volta_testing::test;

const THREADS: usize = 8;

/// Runs `f` on several threads that start together, and gives what each returns.
fn together<R: Send>(f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS)
            .map(|k| {
                let (start, f) = (&start, &f);
                scope.spawn(move || {
                    start.wait();
                    f(k)
                })
            })
            .collect();
        all.into_iter().map(|t| t.join().expect("no thread panics")).collect()
    })
}

#[test]
fn a_pending_value_read_by_many_threads_is_the_same_for_all() {
    for round in 0..20 {
        let x = Tensor::arange(0, 1000).to_dtype(volta::DType::F32);
        let y = (&x * f64::from(round)).sum_dim(0, true) + &x;
        let found = together(|_| y.to_vec::<f32>());
        let expected: Vec<f32> = (0..1000).map(|k| (499_500 * round) as f32 + k as f32).collect();
        assert!(found.iter().all(|v| *v == expected), "round {round}");
    }
}

#[test]
fn different_values_of_one_graph_can_be_read_at_once() {
    for _ in 0..20 {
        let x = Tensor::arange(0, 64).to_dtype(volta::DType::F32);
        let trunk = &x + 1.0;
        let branches: Vec<Tensor> = (0..THREADS).map(|k| (&trunk * k as f64).sum()).collect();
        let found = together(|k| branches[k].item::<f32>());
        let expected: Vec<f32> = (0..THREADS).map(|k| (2016 + 64) as f32 * k as f32).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_one_thread_built_another_reads_and_a_third_drops() {
    let built = thread::spawn(|| {
        let x = Tensor::ones([100]).requires_grad(true);
        let loss = (&x * 3.0).sum();
        (x, loss)
    });
    let (x, loss) = built.join().expect("built");
    let x = thread::spawn(move || {
        loss.backward();
        assert_eq!(loss.item::<f32>(), 300.0);
        x
    })
    .join()
    .expect("read");
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>(), [3.0; 100]);
    thread::spawn(move || drop(x)).join().expect("dropped");
}

#[test]
fn reads_beside_assigns_see_one_value_or_the_other_whole() {
    let p = Tensor::zeros([256]);
    let found = together(|k| {
        let mut seen = vec![];
        for round in 0..30 {
            if k % 2 == 0 {
                p.assign(&Tensor::full([256], (k * 100 + round) as f32));
            } else {
                seen.push((&p * 1.0).to_vec::<f32>());
                seen.push((&p + &p).to_vec::<f32>().iter().map(|v| v / 2.0).collect());
            }
        }
        seen
    });
    for value in found.into_iter().flatten() {
        assert!(value.iter().all(|v| *v == value[0]), "torn: {value:?}");
    }
}

#[test]
fn threads_that_train_models_of_their_own_do_not_disturb_each_other() {
    let train = |k: usize| -> Vec<f32> {
        let w = Tensor::full([4], 1.0 + k as f64).requires_grad(true);
        let x = Tensor::from_vec(vec![0.1f32, -0.2, 0.3, 0.4], [4]);
        for _ in 0..25 {
            w.zero_grad();
            (&w * &x).square().sum().backward();
            let g = w.grad().expect("a gradient");
            volta::no_grad(|| w.assign(&(&w - &g * 0.5)));
        }
        w.to_vec()
    };
    let alone: Vec<Vec<f32>> = (0..THREADS).map(train).collect();
    assert_eq!(together(train), alone);
}

#[test]
fn gradients_collected_by_many_threads_add_up() {
    for round in 0..50 {
        let w = Tensor::ones([16]).requires_grad(true);
        together(|k| (&w * (k as f64 + 1.0)).sum().backward());
        assert_eq!(w.grad().expect("a gradient").to_vec::<f32>(), [36.0; 16], "round {round}");
    }
}

#[test]
fn modes_belong_to_their_thread() {
    let x = Tensor::ones([1]).requires_grad(true);
    let found = together(|k| {
        if k % 2 == 0 { volta::no_grad(|| (&x * 2.0).is_tracked()) } else { (&x * 2.0).is_tracked() }
    });
    for (k, tracked) in found.iter().enumerate() {
        assert_eq!(*tracked, k % 2 == 1, "thread {k}");
    }
}

/// In a program of its own, since variables are read once.
#[test]
fn a_variable_that_cannot_be_is_an_error_of_the_first_call() {
    const HERE: &str = "VOLTA_TEST_VARIABLES";
    if std::env::var_os(HERE).is_none() {
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program.args(["a_variable_that_cannot_be", "--nocapture"]).env(HERE, "1").env("VOLTA_THREADS", "abc");
        let output = program.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let error = Tensor::try_zeros([2]).expect_err("VOLTA_THREADS is no number");
    let named = |text: &str| assert!(text.contains("VOLTA_THREADS") && text.contains("abc"), "{text}");
    named(error.message());
    named(volta::environment::check().expect_err("as before").message());
    let panic = std::panic::catch_unwind(|| Tensor::zeros([2])).expect_err("as before");
    named(panic.downcast_ref::<String>().expect("a message"));
}

volta_testing::main!();
