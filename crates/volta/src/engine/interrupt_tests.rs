//! What is interrupted loses nothing.

use crate::error::{ErrorKind, Result};
use crate::interrupt::{ask_at_every_chance, interruptible};
use crate::{Device, Linear, Module, SGD, Tensor, with_device};
use std::cell::Cell;
use std::rc::Rc;

/// Runs `f`, and stops it when it has been asked so often.
fn stopped_after<R>(asks: usize, f: impl FnOnce() -> R) -> R {
    let asked = Cell::new(0);
    ask_at_every_chance();
    interruptible(move || asked.replace(asked.get() + 1) >= asks, f)
}

fn is_interrupted<T>(result: &Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted)
}

/// A value that takes several kernels.
fn products(x: &Tensor) -> Tensor {
    (0..6).fold(x.clone(), |y, _| y.matmul(x) * 0.1)
}

#[test]
fn what_is_interrupted_is_computed_when_it_is_asked_for_again() {
    let x = Tensor::rand([16, 16]).realize().clone();
    let wanted = products(&x).to_vec::<f32>();
    let y = products(&x);
    assert!(is_interrupted(&stopped_after(0, || y.try_to_vec::<f32>())));
    assert!(!y.is_realized());
    with_device(Device::Cpu, || {
        let x = x.to_device(Device::Cpu);
        let y = products(&x);
        let mut asks = 0;
        while is_interrupted(&stopped_after(asks, || y.try_to_vec::<f32>())) {
            assert!(!y.is_realized());
            asks += 1;
        }
        assert!(asks >= 6, "{asks} asks");
    });
    assert_eq!(y.to_vec::<f32>(), wanted);
}

/// Two steps of training, the first of which is stopped after so many asks; and whether it was.
fn train(asks: usize, reads_loss: bool) -> (Vec<f32>, bool) {
    crate::manual_seed(1);
    let model = Linear::new(8, 8, true);
    let x = Tensor::rand([4, 8]).realize().clone();
    let mut sgd = SGD::new(model.parameters(), 0.1, 0.9, 0.0);
    let mut stopped = false;
    for step in 0..2 {
        sgd.zero_grad();
        let loss = model.forward(&model.forward(&x).tanh()).tanh().square().mean();
        if reads_loss {
            loss.item::<f32>();
        }
        loss.backward();
        if step == 0 {
            stopped = is_interrupted(&stopped_after(asks, || sgd.try_step()));
        } else {
            sgd.step();
        }
    }
    (model.parameters().iter().flat_map(|p| p.to_vec::<f32>()).collect(), stopped)
}

#[test]
fn a_step_that_is_interrupted_is_taken_whole_or_when_its_values_are_asked_for() {
    let train = |asks, reads_loss| with_device(Device::Cpu, || train(asks, reads_loss));
    for reads_loss in [false, true] {
        let (wanted, stopped) = train(usize::MAX, reads_loss);
        assert!(!stopped);
        let mut asks = 0;
        while {
            let (found, stopped) = train(asks, reads_loss);
            assert_eq!(found, wanted, "stopped after {asks} asks: {stopped}");
            stopped
        } {
            asks += 1;
        }
        assert!(asks > 0);
    }
}

#[test]
fn a_check_that_asks_for_values_is_told_that_it_cannot() {
    let (x, other) = (Tensor::rand([8, 8]).realize().clone(), Tensor::vector(&[1.0, 2.0]));
    let seen = Rc::new(Cell::new(None));
    let told = seen.clone();
    let y = interruptible(
        move || {
            let answer = other.exp().try_to_vec::<f32>();
            told.set(Some(answer.map_err(|error| error.kind())));
            false
        },
        || x.matmul(&x).try_to_vec::<f32>(),
    );
    assert!(y.is_ok());
    assert_eq!(seen.take(), Some(Err(ErrorKind::Interrupted)));
}
