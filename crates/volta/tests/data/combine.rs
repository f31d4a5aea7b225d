//! Parts of datasets, and datasets in a row.

use crate::{Numbers, bytes, class};
use std::sync::Arc;
use volta::ErrorKind;
use volta::data::{Dataset, Pass, RandomCrop, RandomHorizontalFlip, Subset, SyntheticDigits};
use volta_testing::test;

fn classes(data: &dyn Dataset) -> Vec<i32> {
    (0..data.len()).map(|k| class(&data.get(k).expect("a number").target)).collect()
}

#[test]
fn a_subset_has_the_samples_of_its_indices_in_their_order() {
    let part = Numbers(10).subset(vec![7, 2, 2]);
    assert_eq!(classes(&part), [7, 2, 2]);
    let error = Subset::try_new(Arc::new(Numbers(10)), vec![3, 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.message().contains("no sample 10 in a dataset of 10"), "{error}");
}

#[test]
fn a_split_deals_every_sample_to_one_side_and_depends_on_the_seed_alone() {
    let (train, validation) = Numbers(100).split(0.25, 3);
    assert_eq!((train.len(), validation.len()), (75, 25));
    let mut all = [classes(&train), classes(&validation)].concat();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    assert_eq!(Numbers(100).split(0.25, 3).1.indices(), validation.indices());
    assert_ne!(Numbers(100).split(0.25, 4).1.indices(), validation.indices());
    assert_ne!(classes(&validation), (75..100).collect::<Vec<_>>());
    let (all, none) = Numbers(3).split(0.0, 0);
    assert_eq!((all.len(), none.len()), (3, 0));
    assert_eq!(Numbers(3).try_split(1.5, 0).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn a_concatenation_walks_through_one_after_the_other() {
    let all = Numbers(2).concat(Numbers(0)).concat(Numbers(3));
    assert_eq!(classes(&all), [0, 1, 0, 1, 2]);
}

#[test]
fn two_maps_draw_numbers_of_their_own_and_the_pass_reaches_them_through_everything() {
    let images = || SyntheticDigits::new(64, 1);
    let flip = || RandomHorizontalFlip::new(0.5);
    // If both drew the same number, each image would be flipped twice or never.
    let twice = images().map(flip()).map(flip());
    let changed =
        (0..64).filter(|&k| bytes(&twice.get(k).unwrap().input) != bytes(&images().get(k).unwrap().input));
    let changed = changed.count();
    assert!((16..48).contains(&changed), "{changed} of 64");

    let cropped = || images().map(RandomCrop::new(20, 20));
    let (part, _) = cropped().split(0.5, 0);
    let deep = Arc::new(part).concat(cropped());
    let at = |epoch: u64| bytes(&deep.get_in(5, Pass { seed: 1, epoch }).unwrap().input);
    assert_eq!(at(0), at(0));
    assert_ne!(at(0), at(1));
}
