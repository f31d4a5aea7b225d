//! Windows of tokens.

use volta::ErrorKind;
use volta::data::{Array, DataLoader, Dataset, Elements, Pass, TokenWindows};
use volta_testing::test;

fn tokens(array: &Array<'_>) -> Vec<i32> {
    match array.elements() {
        Elements::I32(tokens) => tokens.to_vec(),
        other => panic!("{} where i32 was expected", other.dtype()),
    }
}

#[test]
fn windows_follow_each_other_with_their_targets_one_token_later() {
    // 13 tokens: the window that would begin at 12 has nothing after it, and that at 9 ends at 11.
    for (count, stride, starts) in [
        (13, 4, vec![0, 4, 8]),
        (12, 4, vec![0, 4]),
        (13, 3, vec![0, 3, 6]),
        (6, 1, vec![0, 1]),
        (5, 7, vec![0]),
    ] {
        let windows = TokenWindows::new((0..count).collect(), 4).with_stride(stride);
        let found: Vec<i32> = (0..windows.len())
            .map(|k| {
                let sample = windows.get(k).expect("a window");
                let (x, y) = (tokens(&sample.input), tokens(&sample.target));
                assert_eq!(x, (x[0]..x[0] + 4).collect::<Vec<_>>());
                assert_eq!(y, (x[0] + 1..x[0] + 5).collect::<Vec<_>>());
                x[0]
            })
            .collect();
        assert_eq!(found, starts, "{count} tokens by {stride}");
    }
}

#[test]
fn random_windows_reach_both_ends_and_change_with_the_epoch() {
    let windows = TokenWindows::new((0..8).collect(), 4).at_random(200);
    let starts = |epoch: u64| -> Vec<i32> {
        let pass = Pass { seed: 2, epoch };
        (0..windows.len()).map(|k| tokens(&windows.get_in(k, pass).expect("a window").input)[0]).collect()
    };
    let first = starts(0);
    assert_eq!(first, starts(0));
    assert_ne!(first, starts(1));
    for start in 0..4 {
        assert!((30..70).contains(&first.iter().filter(|&&s| s == start).count()), "{first:?}");
    }
    assert!(first.iter().all(|s| (0..4).contains(s)));
}

#[test]
fn a_loader_makes_batches_of_windows() {
    let loader = DataLoader::over(TokenWindows::new((0..9).collect(), 4), 2);
    let (x, y) = loader.iter().next().expect("a batch");
    assert_eq!(x.to_vec::<i32>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(y.to_vec::<i32>(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn too_few_tokens_are_refused() {
    let error = TokenWindows::try_new(vec![1, 2, 3, 4], 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.message().contains("4 tokens have no window of 4"), "{error}");
}
