//! Batches: their order, their sizes, where they arrive.

use crate::{Numbers, numbers};
use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::data::{Array, DataLoader, Dataset, Sample, TensorDataset};
use volta::{Device, ErrorKind, Tensor, default_device};
use volta_testing::test;

fn epoch(loader: &DataLoader) -> Vec<Vec<i32>> {
    loader.iter().map(numbers).collect()
}

#[test]
fn without_shuffling_samples_come_in_order_and_the_last_batch_is_smaller() {
    let loader = DataLoader::over(Numbers(7), 3);
    assert_eq!(loader.len(), 3);
    for _ in 0..2 {
        assert_eq!(epoch(&loader), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    }
    assert_eq!(loader.epoch(), 2);
}

#[test]
fn who_leaves_after_the_last_batch_begins_the_next_epoch() {
    let loader = DataLoader::over(Numbers(7), 3);
    for epoch in 0..3 {
        assert_eq!(loader.iter().take(3).map(numbers).collect::<Vec<_>>().len(), 3, "{epoch}");
        assert_eq!((loader.epoch(), loader.position()), (epoch, 3));
    }
}

#[test]
fn drop_last_leaves_out_what_is_too_few_and_only_that() {
    let loader = DataLoader::over(Numbers(7), 3).with_drop_last(true);
    assert_eq!((loader.len(), epoch(&loader)), (2, vec![vec![0, 1, 2], vec![3, 4, 5]]));
    let even = DataLoader::over(Numbers(6), 3).with_drop_last(true);
    assert_eq!(epoch(&even).len(), 2);
    assert!(DataLoader::over(Numbers(2), 3).with_drop_last(true).iter().next().is_none());
}

#[test]
fn shuffling_meets_every_sample_once_in_another_order_every_epoch_and_seed() {
    let flat = |loader: &DataLoader| epoch(loader).concat();
    let loader = DataLoader::over(Numbers(50), 8).with_shuffle(true).with_seed(3);
    let (first, second) = (flat(&loader), flat(&loader));
    let again = DataLoader::over(Numbers(50), 8).with_shuffle(true).with_seed(3);
    let other = DataLoader::over(Numbers(50), 8).with_shuffle(true).with_seed(4);
    assert_eq!(flat(&again), first);
    assert_ne!(second, first);
    assert_ne!(flat(&other), first);
    for mut order in [first, second] {
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn loaders_without_a_seed_do_not_share_their_order() {
    let order = || epoch(&DataLoader::over(Numbers(50), 50).with_shuffle(true)).concat();
    assert_ne!(order(), order());
}

#[test]
fn flat_vectors_make_batches_of_plain_tensors_on_the_device() {
    let device = default_device();
    let data: Vec<f32> = (0..10 * 4).map(|k| k as f32).collect();
    let targets: Vec<f32> = (0..10 * 3).map(|k| k as f32).collect();
    let dataloader = DataLoader::new(data, targets, &[2, 2], &[3], 4, false).with_device(device);
    let mut sizes = Vec::new();
    for (x, y) in dataloader {
        let first = 4 * sizes.len();
        assert_eq!((x.device(), y.device()), (device, device));
        let count = x.size(0);
        assert_eq!((x.shape()[..].to_vec(), y.shape()[..].to_vec()), (vec![count, 2, 2], vec![count, 3]));
        assert_eq!(x.to_vec::<f32>()[0], (4 * first) as f32);
        assert_eq!(y.to_vec::<f32>()[0], (3 * first) as f32);
        sizes.push(count);
    }
    assert_eq!(sizes, [4, 4, 2]);
}

#[test]
fn elements_that_are_no_whole_samples_are_refused() {
    let refused = |data: usize, targets: usize, shape: &[usize], batch: usize| {
        DataLoader::try_new(vec![0.0; data], vec![0.0; targets], shape, &[1], batch, true)
            .err()
            .expect("it does not fit")
    };
    assert_eq!(refused(11, 3, &[2, 2], 1).kind(), ErrorKind::Shape);
    assert!(refused(11, 3, &[2, 2], 1).message().contains("11 elements"));
    assert!(refused(12, 4, &[2, 2], 1).message().contains("[3, 2, 2] and targets [4, 1]"));
    assert_eq!(refused(12, 3, &[usize::MAX, 2], 1).kind(), ErrorKind::Shape);
    assert_eq!(refused(12, 3, &[2, 2], 0).kind(), ErrorKind::Argument);
}

#[test]
fn batches_arrive_on_the_default_device_of_the_thread_that_loops() {
    for workers in [0, 2] {
        let loader = DataLoader::over(Numbers(4), 2).with_workers(workers);
        let device = volta::with_device(Device::Cpu, || loader.iter().next().expect("a batch").0.device());
        assert_eq!(device, Device::Cpu);
        assert_eq!(loader.iter().next().expect("a batch").0.device(), default_device());
    }
}

#[test]
fn tensors_become_samples_and_batches_of_the_same_types() {
    let x = Tensor::arange(0, 12).reshape([6, 2]).to_dtype(volta::DType::U8);
    let y = Tensor::arange(0, 6);
    let loader = DataLoader::over(TensorDataset::from_tensors(&x, &y).expect("both have six rows"), 6);
    let (bx, by) = loader.iter().next().expect("a batch");
    assert_eq!((bx.dtype(), by.dtype()), (x.dtype(), y.dtype()));
    assert_eq!(bx.to_vec::<u8>(), (0..12).collect::<Vec<u8>>());
    assert_eq!(by.to_vec::<i32>(), (0..6).collect::<Vec<i32>>());
    let error = TensorDataset::from_tensors(&x, &Tensor::zeros([5])).unwrap_err();
    assert!(error.message().contains("[6, 2] and targets [5]"), "{error}");
}

#[test]
fn peeking_takes_nothing() {
    let loader = DataLoader::over(Numbers(4), 2);
    assert_eq!(numbers(loader.peek().expect("a batch").expect("a batch")), [0, 1]);
    assert_eq!(loader.position(), 0);
    assert_eq!(epoch(&loader).len(), 2);
}

#[test]
fn samples_of_different_shapes_are_an_error_that_names_both() {
    struct Growing;
    impl Dataset for Growing {
        fn len(&self) -> usize {
            3
        }
        fn get(&self, index: usize) -> volta::Result<Sample<'_>> {
            let size = if index < 2 { 4 } else { 5 };
            Ok(Sample { input: Array::new(vec![0u8; size], &[size]), target: Array::scalar(0) })
        }
    }
    let loader = DataLoader::over(Growing, 3);
    let error = loader.try_iter().next().expect("a result").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().starts_with("sample 2: its input is u8 [5]"), "{error}");
    assert!(error.message().contains("sample 0 in the same batch is u8 [4]"), "{error}");
    let panic = catch_unwind(AssertUnwindSafe(|| loader.iter().count())).unwrap_err();
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("sample 2: its input is u8 [5]"), "{text}");
}

#[test]
fn waiting_is_counted() {
    let loader = DataLoader::over(Numbers(4), 2);
    assert!(loader.waited().is_zero());
    assert_eq!(epoch(&loader).len(), 2);
    let once = loader.waited();
    assert!(!once.is_zero());
    assert_eq!(epoch(&loader).len(), 2);
    assert!(loader.waited() > once);
}

#[test]
fn an_empty_dataset_has_epochs_without_batches() {
    for workers in [0, 2] {
        let loader = DataLoader::over(Numbers(0), 2).with_shuffle(true).with_workers(workers);
        assert!(loader.is_empty());
        assert!(epoch(&loader).is_empty());
        assert_eq!(loader.epoch(), 1);
    }
}
