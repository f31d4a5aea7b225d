//! Going on where another run stopped.

use crate::{Numbers, numbers};
use volta::data::{DataLoader, Dataset, RandomHorizontalFlip, SyntheticDigits};
use volta::{ErrorKind, Stateful};
use volta_testing::test;

fn loader(workers: usize) -> DataLoader {
    DataLoader::over(Numbers(23), 4).with_shuffle(true).with_workers(workers)
}

#[test]
fn a_resumed_loader_goes_on_with_the_very_next_batch() {
    for workers in [0, 3] {
        let whole = loader(workers).with_seed(77);
        let mut expected = Vec::new();
        for _ in 0..3 {
            expected.extend(whole.iter().map(numbers));
        }
        // In the middle, before the first batch, and after the last one but before the epoch's end was seen.
        for stop in [8, 0, 6, 12] {
            let first = loader(workers).with_seed(77);
            let mut seen = Vec::new();
            while seen.len() < stop {
                let missing = stop - seen.len();
                seen.extend(first.iter().take(missing).map(numbers));
            }
            let state = first.state();
            drop(first);
            let mut second = loader(workers);
            second.load_state(&state).expect("a state of the same loader");
            let epoch = second.epoch();
            while second.epoch() < 3 {
                seen.extend(second.iter().map(numbers));
            }
            assert_eq!(seen, expected, "stopped after {stop} batches, in epoch {epoch}");
        }
    }
}

#[test]
fn a_loop_that_was_left_goes_on_and_a_restart_does_not() {
    let mut loader = loader(2);
    let first: Vec<_> = loader.iter().take(2).map(numbers).collect();
    assert_eq!(loader.position(), 2);
    let rest: Vec<_> = loader.iter().map(numbers).collect();
    assert_eq!((rest.len(), loader.epoch(), loader.position()), (4, 1, 0));
    loader.restart(0);
    let all: Vec<_> = loader.iter().map(numbers).collect();
    assert_eq!(all, [first, rest].concat());
}

#[test]
fn random_transforms_resume_too() {
    let make = || {
        let data = SyntheticDigits::new(12, 0).map(RandomHorizontalFlip::new(0.5));
        DataLoader::over(data, 4)
    };
    let first = make();
    let _ = first.iter().count();
    let _ = first.iter().take(1).count();
    let mut second = make();
    second.load_state(&first.state()).expect("a state of the same loader");
    let pixels = |loader: &DataLoader| loader.iter().map(|(x, _)| x.to_vec::<u8>()).collect::<Vec<_>>();
    assert_eq!(pixels(&first), pixels(&second));
}

#[test]
fn a_state_of_another_loader_is_refused_and_changes_nothing() {
    let mut here = loader(0).with_seed(1);
    let _ = here.iter().take(3).count();
    let before = here.state();
    let other = DataLoader::over(Numbers(24), 4);
    let broken = here.state().with("position", 100);
    for (state, text) in [
        (other.state(), "24 samples in batches of 4"),
        (broken, "batch 100"),
        (Default::default(), "\"epoch\""),
    ] {
        let error = here.load_state(&state).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().contains(text), "{error}");
        assert_eq!(here.state().values, before.values);
    }
}

#[test]
fn a_state_of_another_order_is_refused() {
    let state = loader(0).state();
    let mut others = [DataLoader::over(Numbers(23), 4), loader(0).with_drop_last(true)];
    for (other, name) in others.iter_mut().zip(["shuffle", "drop_last"]) {
        let error = other.load_state(&state).unwrap_err();
        assert!(error.message().contains(name), "{error}");
    }
}
