//! Summaries leave the model, its buffers, its modes and the random numbers as they were.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::nn::{Item, Mode, Visitor, summary};
use volta::{BatchNorm1d, Dropout, Linear, Module, RngState, Sequential, Tensor};
use volta_testing::test;

/// A layer that counts its calls in a buffer and draws random numbers, in evaluation too.
#[derive(Module)]
struct Noise {
    #[module(buffer)]
    calls: Tensor,
    mode: Mode,
}

impl Noise {
    fn forward(&self, x: &Tensor) -> Tensor {
        assert!(x.size(-1) == 4, "four numbers are needed");
        self.calls.assign(&(&self.calls + 1.0));
        x + Tensor::rand(x.shape())
    }
}

/// One test, because all tests of a program share its random numbers.
#[test]
fn a_summary_changes_nothing_whether_the_forward_pass_succeeds_fails_or_panics() {
    let model = Sequential::new(vec![
        Box::new(BatchNorm1d::new(4)),
        Box::new(Noise { calls: Tensor::zeros([1]).variable(), mode: Mode::default() }),
        Box::new(Dropout::new(0.5)),
        Box::new(Linear::new(4, 2, true)),
    ]);
    let dropout = |model: &Sequential| model.forward(&Tensor::ones([1, 64])).to_vec::<f32>();
    let evaluated = Sequential::new(vec![Box::new(Dropout::new(0.5)), Box::new(Dropout::new(0.5))]);
    evaluated.eval();
    let buffers = || model.buffers().iter().map(|t| t.to_vec::<f32>()).collect::<Vec<_>>();
    let (before, random) = (buffers(), RngState::save());
    let x = |width: usize| Tensor::ones([3, width]);

    assert!(summary(&model, Some(&x(4))).is_ok());
    assert!(summary(&model, Some(&x(5))).is_err(), "five channels do not fit");
    let narrow = Noise { calls: Tensor::zeros([1]).variable(), mode: Mode::default() };
    let failed = catch_unwind(AssertUnwindSafe(|| summary(&narrow, Some(&x(5))).is_ok()));
    assert!(failed.is_err() && narrow.mode.is_training());
    assert!(summary(&evaluated, Some(&x(4))).is_ok());

    assert_eq!(RngState::save(), random);
    assert_eq!(buffers(), before);
    // Dropout in evaluation passes ones on, and in training it does not.
    assert_eq!(dropout(&evaluated), [1.0; 64]);
    let mut training = Vec::new();
    model.visit(&mut Visitor::new(&mut |_, item| {
        if let Item::Mode(mode) = item {
            training.push(mode.is_training());
        }
    }));
    assert_eq!(training, [true; 3]);
}

volta_testing::main!();
