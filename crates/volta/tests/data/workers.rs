//! Threads that work ahead: the same batches, in order, whatever happens inside them.

use crate::numbers;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use volta::data::{
    Array, DataLoader, Dataset, Normalize, RandomCrop, RandomHorizontalFlip, Sample, SyntheticDigits, ToFloat,
};
use volta::{ErrorKind, default_device};
use volta_testing::test;

const COUNTS: [usize; 3] = [0, 1, 4];

#[test]
fn any_number_of_workers_makes_the_same_batches() {
    let runs = COUNTS.map(|workers| {
        let data = SyntheticDigits::new(40, 5).map((
            RandomCrop::new(24, 24).with_padding(2),
            RandomHorizontalFlip::new(0.5),
            ToFloat,
            Normalize::new(&[0.1], &[0.3]),
        ));
        let loader = DataLoader::over(data, 7).with_shuffle(true).with_seed(9).with_workers(workers);
        let mut all = Vec::new();
        for _ in 0..2 {
            for (x, y) in &loader {
                assert_eq!(x.device(), default_device());
                all.push((x.to_vec::<f32>(), y.to_vec::<i32>()));
            }
        }
        all
    });
    assert_eq!(runs[0].len(), 12);
    assert!(runs[0] == runs[1] && runs[0] == runs[2]);
    assert_ne!(runs[0][0].0, runs[0][6].0, "another epoch, other batches");
}

/// Which threads read samples, how many of them still live, and how many samples were read.
#[derive(Clone, Default)]
struct Watch {
    threads: Arc<Mutex<HashSet<ThreadId>>>,
    alive: Arc<AtomicUsize>,
    read: Arc<AtomicUsize>,
}

/// Lives as long as the thread it was made on.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

thread_local! {
    static ALIVE: RefCell<Vec<Alive>> = const { RefCell::new(Vec::new()) };
}

impl Dataset for Watch {
    fn len(&self) -> usize {
        1000
    }

    fn get(&self, index: usize) -> volta::Result<Sample<'_>> {
        if self.threads.lock().expect("no panic").insert(thread::current().id()) {
            self.alive.fetch_add(1, SeqCst);
            ALIVE.with_borrow_mut(|all| all.push(Alive(self.alive.clone())));
        }
        self.read.fetch_add(1, SeqCst);
        let x = index as f32;
        Ok(Sample { input: Array::new(vec![x, x + 0.5], &[2]), target: Array::scalar(index as i32) })
    }
}

#[test]
fn workers_run_ahead_no_further_than_they_may_and_are_joined_when_the_loop_is_left() {
    let watch = Watch::default();
    let loader = DataLoader::over(watch.clone(), 10).with_workers(2).with_prefetch(3);
    let mut batches = loader.iter();
    for taken in 1..=5 {
        assert_eq!(numbers(batches.next().expect("a batch"))[0], 10 * (taken - 1));
        assert!(watch.read.load(SeqCst) <= 10 * (taken as usize + 3));
    }
    assert!(watch.alive.load(SeqCst) > 0);
    drop(batches);
    assert_eq!(watch.alive.load(SeqCst), 0, "no thread is left");
    assert!(!watch.threads.lock().expect("no panic").contains(&thread::current().id()));
}

#[test]
fn without_workers_a_batch_is_made_in_place_when_it_is_asked_for() {
    let watch = Watch::default();
    assert_eq!(DataLoader::over(watch.clone(), 10).with_workers(0).iter().take(2).count(), 2);
    assert_eq!(watch.read.load(SeqCst), 20);
    assert_eq!(*watch.threads.lock().expect("no panic"), HashSet::from([thread::current().id()]));
}

/// Fails or panics at one sample.
struct Rotten {
    panics: bool,
}

impl Dataset for Rotten {
    fn len(&self) -> usize {
        20
    }

    fn get(&self, index: usize) -> volta::Result<Sample<'_>> {
        if index == 13 {
            assert!(!self.panics, "rotten to the core");
            volta::data::read_image("no/such/image.png")?;
        }
        Ok(Sample { input: Array::scalar(0f32), target: Array::scalar(index as i32) })
    }
}

#[test]
fn a_sample_that_fails_is_an_error_with_its_index_and_file_and_nothing_hangs() {
    for workers in COUNTS {
        let loader = DataLoader::over(Rotten { panics: false }, 3).with_workers(workers);
        let (line, results) = (line!(), loader.try_iter().collect::<Vec<_>>());
        assert_eq!(results.len(), 5, "four batches and the error");
        assert!(results[..4].iter().all(Result::is_ok));
        let error = results[4].as_ref().expect_err("the fifth fails");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().starts_with("sample 13: "), "{error}");
        assert!(error.message().contains("image.png"), "{error}");
        assert_eq!((error.op(), error.location().line()), ("DataLoader", line), "{error}");
        assert_eq!((loader.epoch(), loader.position()), (0, 4), "it stands before what failed");
        assert!(loader.try_iter().next().expect("a result").is_err(), "and tries it again");
    }
}

#[test]
fn a_sample_that_panics_is_an_error_too() {
    for workers in COUNTS {
        let loader = DataLoader::over(Rotten { panics: true }, 4).with_workers(workers);
        let error = loader.try_iter().find_map(Result::err).expect("one fails");
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().starts_with("sample 13: the dataset panicked: rotten"), "{error}");
    }
}

// The CPU has all types.
#[test(needs(gpu))]
fn a_type_that_the_device_does_not_have_is_an_error_and_not_a_hang() {
    let data =
        volta::data::TensorDataset::new(Array::new(vec![0f64; 4], &[4]), Array::new(vec![0i32; 4], &[4]));
    let error = DataLoader::over(data, 2).with_workers(1).try_iter().next().expect("a result").unwrap_err();
    assert!(error.message().starts_with("batch 0: "), "{error}");
}
