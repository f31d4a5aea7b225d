//! The training loop: it learns, validates, stops early, saves, and goes on to the same bits.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::data::{DataLoader, TensorDataset};
use volta::optim::CosineAnnealingLR;
use volta::train::{Event, History, Trainer, TrainerOptions, classified, read_csv};
use volta::{Adam, DType, Dropout, Linear, Module, ReLU, Sequential, Tensor, manual_seed};

/// The random numbers are the whole program's: a run that is compared must be alone.
static RANDOM: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    RANDOM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("volta-trainer-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Points left and right of a diagonal.
fn points(count: usize) -> DataLoader {
    let numbers =
        |k: usize| ((k * 7919 % 1000) as f32 / 500.0 - 1.0, (k * 104_729 % 1000) as f32 / 500.0 - 1.0);
    let x: Vec<f32> = (0..count).flat_map(|k| [numbers(k).0, numbers(k).1]).collect();
    let y: Vec<i32> = (0..count).map(|k| i32::from(numbers(k).0 > numbers(k).1)).collect();
    let dataset =
        TensorDataset::new(volta::data::Array::new(x, &[count, 2]), volta::data::Array::new(y, &[count]));
    DataLoader::over(dataset, 16).with_shuffle(true).with_seed(5)
}

fn network() -> Sequential {
    manual_seed(11);
    Sequential::new(vec![
        Box::new(Linear::new(2, 16, true)),
        Box::new(ReLU),
        Box::new(Dropout::new(0.1)),
        Box::new(Linear::new(16, 2, true)),
    ])
}

/// Trains a new network, and gives what was measured and what it became.
fn trained(options: TrainerOptions) -> (History, Vec<Vec<f32>>) {
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let (mut train, mut valid) = (points(320), points(64));
    let history = Trainer::new(&model, &mut adam, options)
        .with_schedule(CosineAnnealingLR::new(200, 0.0))
        .fit(&mut train, Some(&mut valid), |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    (history, model.parameters().iter().map(Tensor::to_vec::<f32>).collect())
}

fn silent() -> TrainerOptions {
    TrainerOptions { epochs: 8, log_every: 10, progress: false, ..TrainerOptions::default() }
}

#[test]
fn a_network_learns_and_its_metrics_are_kept() {
    let _alone = alone();
    let folder = Folder::new("learns");
    let (history, _) = trained(TrainerOptions { folder: Some(folder.0.clone()), ..silent() });
    assert!(history.last("validation/accuracy").unwrap() > 0.9, "{:?}", history.last("validation/accuracy"));
    assert_eq!(history.series("validation/loss").len(), 8);
    assert_eq!(history.rows.last().unwrap().step, 160);
    assert_eq!(read_csv(folder.0.join("metrics.csv")).unwrap().rows, history.rows);
    for file in ["best.safetensors", "curves.svg", "tensorboard", "checkpoints"] {
        assert!(folder.0.join(file).exists(), "{file}");
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_bits() {
    let _alone = alone();
    let whole = trained(silent());
    let folder = Folder::new("resume");
    let part = |steps, resume| TrainerOptions {
        steps,
        resume,
        folder: Some(folder.0.clone()),
        checkpoint_every: Some(7),
        ..silent()
    };
    // In the middle of an epoch, twice.
    trained(part(Some(33), false));
    trained(part(Some(71), true));
    let (history, parameters) = trained(part(None, true));
    assert_eq!(parameters, whole.1);
    let losses = |h: &History| h.series("validation/loss");
    assert_eq!(losses(&history), losses(&whole.0));
}

#[test]
fn a_folder_with_another_run_is_not_written_over() {
    let _alone = alone();
    let folder = Folder::new("twice");
    let options = || TrainerOptions { steps: Some(3), folder: Some(folder.0.clone()), ..silent() };
    trained(options());
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let error = Trainer::new(&model, &mut adam, options())
        .fit(&mut points(64), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap_err();
    assert!(error.message().contains("set resume"), "{error}");
}

#[test]
fn training_ends_when_validation_no_longer_gets_better() {
    let _alone = alone();
    let model = Linear::new(2, 2, true);
    // With a rate of zero nothing gets better.
    let mut adam = Adam::new(model.parameters(), 0.0, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { epochs: 50, patience: Some(3), ..silent() };
    let history = Trainer::new(&model, &mut adam, options)
        .fit(&mut points(64), Some(&mut points(32)), |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    assert_eq!(history.series("validation/loss").len(), 4);
}

#[test]
fn batches_whose_gradients_are_added_up_make_the_step_of_one_large_batch() {
    let _alone = alone();
    let run = |batch: usize, accumulate| {
        manual_seed(4);
        let model = Linear::new(2, 2, true);
        let mut sgd = volta::SGD::new(model.parameters(), 0.5, 0.0, 0.0);
        let x: Vec<f32> = (0..64).map(|k| (k as f32 * 0.37).sin()).collect();
        let y: Vec<i32> = (0..32).map(|k| k % 2).collect();
        let data =
            TensorDataset::new(volta::data::Array::new(x, &[32, 2]), volta::data::Array::new(y, &[32]));
        let options = TrainerOptions { accumulate, epochs: 3, ..silent() };
        Trainer::new(&model, &mut sgd, options)
            .fit(&mut DataLoader::over(data, batch), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .unwrap();
        model.weight.to_vec::<f32>()
    };
    for (a, b) in run(32, 1).iter().zip(run(8, 4)) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn half_precision_with_clipping_learns_too() {
    let _alone = alone();
    let options = TrainerOptions { precision: Some(DType::F16), clip: Some(1.0), ..silent() };
    let (history, _) = trained(options);
    assert!(history.last("validation/accuracy").unwrap() > 0.9);
}

#[test]
fn the_switch_ends_training_after_a_step_and_saves() {
    let _alone = alone();
    let folder = Folder::new("switch");
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { folder: Some(folder.0.clone()), ..silent() };
    let trainer = Trainer::new(&model, &mut adam, options);
    let stop = trainer.stop_switch();
    let mut saved = None;
    let mut trainer = trainer.with_observer(|event| {
        match event {
            Event::Step { step: 5 } => stop.store(true, Ordering::Relaxed),
            Event::Saved { step } => saved = Some(*step),
            _ => {}
        }
        Ok(())
    });
    trainer.fit(&mut points(320), None, |x, y| Ok(classified(&model.try_forward(x)?, y))).unwrap();
    drop(trainer);
    assert_eq!(saved, Some(5));
}

#[test]
fn profiles_come_as_often_as_they_were_asked_for() {
    let _alone = alone();
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { steps: Some(40), profile_every: Some(10), ..silent() };
    let mut steps = Vec::new();
    let mut trainer = Trainer::new(&model, &mut adam, options).with_observer(|event| {
        if let Event::Profiled { step, profile, .. } = event {
            assert!(!profile.kernels.is_empty());
            steps.push(*step);
        }
        Ok(())
    });
    trainer.fit(&mut points(320), None, |x, y| Ok(classified(&model.try_forward(x)?, y))).unwrap();
    assert_eq!(trainer.speed().0, 40);
    drop(trainer);
    assert_eq!(steps, [10, 20, 30, 40]);
}
