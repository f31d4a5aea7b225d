//! Training as several ranks, which are threads here: the same bits for any number of them, checkpoints in shards, and what ends all.

use super::{Folder, alone, points};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volta::parallel::{ExchangeOptions, Single, ThreadWorld, World};
use volta::train::{Event, History, OnNonFinite, Outcome, Trainer, TrainerOptions, classified};
use volta::{
    Adam, BatchNorm1d, CheckpointFolder, Device, Dropout, Linear, Module, ReLU, Result, Sequential, Tensor,
    Weights, default_device, manual_seed, with_device,
};
use volta_testing::test;

/// A network with everything that must not depend on who computes a part: random numbers and running statistics.
pub(super) fn network() -> Sequential {
    manual_seed(7);
    Sequential::new(vec![
        Box::new(Linear::new(2, 16, true)),
        Box::new(BatchNorm1d::new(16)),
        Box::new(ReLU),
        Box::new(Dropout::new(0.2)),
        Box::new(Linear::new(16, 2, true)),
    ])
}

pub(super) type Bits = Vec<(String, Vec<u32>)>;

pub(super) fn bits(model: &dyn Module) -> Bits {
    let bits = |t: &Tensor| t.to_vec::<f32>().into_iter().map(f32::to_bits).collect();
    model.state_dict().iter().map(|(name, t)| (name.to_string(), bits(t))).collect()
}

pub(super) fn options(parts: Option<usize>) -> TrainerOptions {
    TrainerOptions {
        epochs: 100,
        steps: Some(25),
        gradient_parts: parts,
        log_every: 3,
        validate_every: Some(10),
        progress: false,
        ..TrainerOptions::default()
    }
}

/// Trains as one rank: what was measured, and what the network has become.
fn train(
    world: &Arc<dyn World>,
    options: TrainerOptions,
    exchange: ExchangeOptions,
) -> Result<(History, Bits)> {
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.02, (0.9, 0.999), 1e-8, 0.0);
    let history = Trainer::new(&model, &mut adam, options).with_world(world.clone(), exchange).fit(
        &mut points(320),
        Some(&mut points(96)),
        |x, y| Ok(classified(&model.try_forward(x)?, y)),
    )?;
    Ok((history, bits(&model)))
}

/// What `size` ranks come to, which must be the same on all of them.
pub(super) fn trained(size: usize, options: &TrainerOptions, exchange: ExchangeOptions) -> (History, Bits) {
    trained_on(default_device(), size, options, exchange)
}

pub(super) fn trained_on(
    device: Device,
    size: usize,
    options: &TrainerOptions,
    exchange: ExchangeOptions,
) -> (History, Bits) {
    let run = |world: Arc<dyn World>| with_device(device, || train(&world, options.clone(), exchange));
    let mut all: Vec<(History, Bits)> = match size {
        1 => ThreadWorld::run(1, |_| run(Arc::new(Single))),
        _ => ThreadWorld::run(size, run),
    }
    .into_iter()
    .map(|result| result.unwrap_or_else(|e| panic!("{e}")))
    .collect();
    let first = all.remove(0);
    for (history, model) in all {
        assert!(model == first.1, "ranks differ");
        assert_eq!(measured(&history), measured(&first.0));
    }
    first
}

/// What was measured, but for how fast it was.
pub(super) fn measured(history: &History) -> Vec<(u64, &str, u64)> {
    let rows = history.rows.iter().filter(|row| row.name != "per_second");
    rows.map(|row| (row.step, row.name.as_str(), row.value.to_bits())).collect()
}

#[test]
fn gradient_parts_give_the_same_bits_for_one_two_and_four_ranks() {
    let _alone = alone();
    for accumulate in [1, 3] {
        let options = TrainerOptions { accumulate, ..options(Some(4)) };
        let (_, alone) = trained(1, &options, ExchangeOptions::default());
        let (history, two) = trained(2, &options, ExchangeOptions::default());
        let (others, four) = trained(4, &options, ExchangeOptions::default());
        assert!(two == alone, "two ranks differ from one process, with {accumulate} batches a step");
        assert!(four == alone, "four ranks differ from one process, with {accumulate} batches a step");
        assert_eq!(measured(&others), measured(&history));
    }
}

#[test]
fn ranks_learn_what_one_process_learns_however_gradients_are_sent() {
    let _alone = alone();
    let plain =
        |model: Bits| -> Vec<f32> { model.into_iter().flat_map(|(_, b)| b).map(f32::from_bits).collect() };
    let in_buckets = ExchangeOptions { bucket_bytes: 64, ..ExchangeOptions::default() };
    let half = ExchangeOptions { half: true, ..ExchangeOptions::default() };
    let one_part = TrainerOptions { gradient_parts: Some(2), ..options(None) };
    let (before, expected) = trained(1, &one_part, ExchangeOptions::default());
    let expected = plain(expected);
    for exchange in [ExchangeOptions::default(), in_buckets, half] {
        let (history, model) = trained(2, &options(None), exchange);
        let loss = |history: &History| history.last("validation/loss").unwrap();
        assert!((loss(&history) - loss(&before)).abs() < 0.02, "{exchange:?}: {history:?}");
        let furthest = plain(model).iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // What has no gradient but roundings, as a bias in front of batch norm, goes anywhere where these are large.
        assert!(exchange.half || furthest < 1e-3, "{exchange:?}: {furthest}");
    }
}

#[test]
fn checkpoints_of_four_ranks_go_on_with_two_and_with_one_to_the_same_bits() {
    let _alone = alone();
    let saving = |folder: &Path, steps| TrainerOptions {
        steps: Some(steps),
        checkpoint_every: Some(8),
        folder: Some(folder.to_path_buf()),
        ..options(Some(4))
    };
    let exchange = ExchangeOptions::default();
    let whole = Folder::new("ranks-whole");
    let (_, undisturbed) = trained(4, &saving(&whole.0, 25), exchange);
    let last = Weights::open(whole.0.join("checkpoints/step-00000025.safetensors")).unwrap();
    assert!(last.entry("model.0.weight").is_some(), "a checkpoint in shards is a model like others");
    for size in [1, 2, 4] {
        let folder = Folder::new(&format!("ranks-resumed-{size}"));
        trained(4, &saving(&folder.0, 16), exchange);
        let checkpoints = folder.0.join("checkpoints");
        let shards = std::fs::read_dir(&checkpoints).unwrap().flatten();
        assert_eq!(shards.filter(|file| file.file_name().to_string_lossy().contains("-of-4")).count(), 8);
        if size == 2 {
            // A shard that was cut off: the checkpoint before it counts, and is gone on from.
            std::fs::write(checkpoints.join("step-00000016.3-of-4.safetensors"), "cut off").unwrap();
        }
        let resumed = TrainerOptions { resume: true, ..saving(&folder.0, 25) };
        let (history, model) = trained(size, &resumed, exchange);
        assert!(model == undisturbed, "{size} ranks have not gone on to the same bits");
        assert_eq!(history.rows.last().unwrap().step, 25);
        assert_eq!(CheckpointFolder::open(&checkpoints).unwrap().steps().unwrap().last(), Some(&25));
    }
}

#[test]
fn a_stop_on_one_rank_stops_all_behind_the_same_step() {
    let _alone = alone();
    let steps = ThreadWorld::run(3, |world| {
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.02, (0.9, 0.999), 1e-8, 0.0);
        let mut last = 0;
        let trainer = Trainer::new(&model, &mut adam, options(None))
            .with_world(world.clone(), ExchangeOptions::default());
        let stop = trainer.stop_switch();
        trainer
            .with_observer(|event| {
                if let Event::Step { step } = event {
                    last = *step;
                    stop.fetch_or(world.rank() == 1 && *step == 4, Ordering::Relaxed);
                }
                Ok(())
            })
            .fit(&mut points(320), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))?;
        Ok(last)
    });
    assert_eq!(steps.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [5, 5, 5]);
}

#[test]
fn ranks_that_want_different_things_are_told_before_the_first_step() {
    let _alone = alone();
    let results = ThreadWorld::run(2, |world| {
        let steps = if world.rank() == 0 { 25 } else { 26 };
        train(&world, TrainerOptions { steps: Some(steps), ..options(None) }, ExchangeOptions::default())
            .map(drop)
    });
    for result in results {
        let error = result.unwrap_err();
        assert!(error.message().contains("rank 1 on a thread: steps is Some(26)"), "{error}");
    }
    let parts =
        ThreadWorld::run(2, |world| train(&world, options(Some(6)), ExchangeOptions::default()).map(drop));
    assert!(parts.into_iter().all(|result| result.unwrap_err().message().contains("6 gradient parts")));
}

#[test]
fn a_loss_that_is_not_finite_on_one_rank_is_dealt_with_by_all() {
    let _alone = alone();
    let run = |on_non_finite| {
        ThreadWorld::run(2, |world| {
            let model = network();
            let mut adam = Adam::new(model.parameters(), 0.02, (0.9, 0.999), 1e-8, 0.0);
            let mut calls = 0;
            let options = TrainerOptions { on_non_finite, ..options(None) };
            let history = Trainer::new(&model, &mut adam, options)
                .with_world(world.clone(), ExchangeOptions::default())
                .fit(&mut points(320), None, |x, y| {
                    calls += 1;
                    let outcome = classified(&model.try_forward(x)?, y);
                    let factor = if world.rank() == 1 && calls == 5 { f64::NAN } else { 1.0 };
                    Ok(Outcome { loss: outcome.loss * factor, ..outcome })
                })?;
            Ok((history.series("skipped_steps").iter().map(|row| row.1).sum::<f64>(), bits(&model)))
        })
    };
    let skipped: Vec<_> = run(OnNonFinite::SkipStep).into_iter().map(Result::unwrap).collect();
    assert!(skipped[0].0 == 1.0 && skipped[0] == skipped[1]);
    for result in run(OnNonFinite::Stop) {
        let message = result.unwrap_err().message().to_string();
        assert!(message.contains("in step 5"), "{message}");
    }
}

#[test]
fn a_disk_that_takes_nothing_from_one_rank_ends_all() {
    let _alone = alone();
    let folder = Folder::new("ranks-full");
    std::fs::create_dir_all(folder.0.join("checkpoints")).unwrap();
    // The name of a shard is taken by a folder, so that nothing can be put there.
    std::fs::create_dir_all(folder.0.join("checkpoints/step-00000004.1-of-2.safetensors")).unwrap();
    let results = ThreadWorld::run(2, |world| {
        let options =
            TrainerOptions { checkpoint_every: Some(4), folder: Some(folder.0.clone()), ..options(None) };
        train(&world, options, ExchangeOptions::default()).map(drop)
    });
    let messages: Vec<String> = results.into_iter().map(|r| r.unwrap_err().message().to_string()).collect();
    assert!(
        messages[0].contains("rank 1 on a thread") && messages[1].contains("step-00000004.1-of-2"),
        "{messages:?}"
    );
    assert!(CheckpointFolder::open(folder.0.join("checkpoints")).unwrap().steps().unwrap().is_empty());
}
