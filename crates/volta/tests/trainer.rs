//! The training loop: it learns, validates, stops early, saves, and goes on to the same bits.

#[path = "trainer/accumulation.rs"]
mod accumulation;
#[path = "trainer/folder.rs"]
mod folder;
#[path = "trainer/local_steps.rs"]
mod local_steps;
#[path = "trainer/non_finite.rs"]
mod non_finite;
#[path = "trainer/parallel.rs"]
mod parallel;
#[path = "trainer/ranks.rs"]
mod ranks;
#[path = "trainer/sharding.rs"]
mod sharding;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::data::{DataLoader, TensorDataset};
use volta::optim::{
    ChainedLR, CosineAnnealingLR, ExponentialLR, LinearLR, PlateauOptions, ReduceLROnPlateau, Schedule,
    SequentialLR, WarmupLR,
};
use volta::train::{
    Event, History, Meter, Outcome, Trainer, TrainerOptions, accuracy, classified, read_csv, try_accuracy,
    try_classified,
};
use volta::{Adam, DType, Dropout, Linear, Module, ReLU, Sequential, Tensor, manual_seed};
use volta_testing::test;

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

/// Loss and accuracy of many rows are sums that workgroups leave to each other: these take bindings too.
#[test]
fn large_batches_are_classified_within_what_a_kernel_may_see() {
    let _alone = alone();
    manual_seed(3);
    let (rows, classes) = (1000, 10);
    let x: Vec<f32> = (0..rows * 4).map(|k| (k * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
    let y: Vec<u8> = (0..rows).map(|k| (k * 7919 % classes) as u8).collect();
    let loader = || {
        let (x, y) = (x.clone(), y.clone());
        let (x, y) = (volta::data::Array::new(x, &[rows, 4]), volta::data::Array::new(y, &[rows]));
        DataLoader::over(TensorDataset::new(x, y), 250)
    };
    let model = Linear::new(4, classes, true);
    let mut adam = Adam::new(model.parameters(), 1e-2, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { progress: false, ..TrainerOptions::default() };
    let history = Trainer::new(&model, &mut adam, options)
        .fit(&mut loader(), Some(&mut loader()), |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .expect("it fits");
    assert!(history.last("validation/accuracy").is_some_and(|share| (0.0..1.0).contains(&share)));
}

/// Trains a new network, and gives what was measured and what it became.
fn trained(options: TrainerOptions) -> (History, Vec<Vec<f32>>) {
    trained_by(options, 1.0)
}

/// [`trained`] by a loss that is so many times as large.
fn trained_by(options: TrainerOptions, factor: f64) -> (History, Vec<Vec<f32>>) {
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let (mut train, mut valid) = (points(320), points(64));
    let history = Trainer::new(&model, &mut adam, options)
        .with_schedule(CosineAnnealingLR::new(200, 0.0))
        .fit(&mut train, Some(&mut valid), |x, y| {
            let outcome = classified(&model.try_forward(x)?, y);
            Ok(Outcome { loss: outcome.loss * factor, ..outcome })
        })
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

/// A run in one go and one in three parts, both with this precision and a loss so many times as large.
fn goes_on_to_the_same_bits(precision: Option<DType>, factor: f64) {
    let _alone = alone();
    let whole = trained_by(TrainerOptions { precision, ..silent() }, factor);
    let folder = Folder::new(if precision.is_some() { "resume-half" } else { "resume" });
    let part = |steps, resume| TrainerOptions {
        steps,
        resume,
        precision,
        folder: Some(folder.0.clone()),
        checkpoint_every: Some(7),
        ..silent()
    };
    // In the middle of an epoch, twice.
    trained_by(part(Some(33), false), factor);
    trained_by(part(Some(71), true), factor);
    let (history, parameters) = trained_by(part(None, true), factor);
    assert_eq!(parameters, whole.1);
    let losses = |h: &History| h.series("validation/loss");
    assert_eq!(losses(&history), losses(&whole.0));
}

#[test]
fn a_run_that_was_stopped_goes_on_to_the_same_bits() {
    goes_on_to_the_same_bits(None, 1.0);
}

/// The loss is so large that gradients overflow at the first scale: a run that goes on with that scale, and not with the
/// one it had, skips steps.
#[test]
fn a_run_in_half_precision_goes_on_to_the_same_bits() {
    goes_on_to_the_same_bits(Some(DType::F16), 1000.0);
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

#[test(needs(more_than_webgpu))]
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

fn on_plateaus() -> ReduceLROnPlateau {
    ReduceLROnPlateau::new(PlateauOptions { factor: 0.5, patience: 1, ..Default::default() })
}

/// The rate at the beginning of each of six epochs of a training that gets no better: its validation loss is always the same.
fn rates_without_progress(schedule: impl Schedule + 'static) -> Vec<f64> {
    let model = Linear::new(2, 2, true);
    let mut adam = Adam::new(model.parameters(), 0.4, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions { epochs: 6, log_every: 1, ..silent() };
    let history = Trainer::new(&model, &mut adam, options)
        .with_schedule(schedule)
        .fit(&mut points(32), Some(&mut points(16)), |x, _| Ok((model.try_forward(x)?.mean() * 0.0).into()))
        .unwrap();
    // Two steps an epoch, of which this is the first.
    history.series("learning_rate").into_iter().filter(|(step, _)| step % 2 == 1).map(|r| r.1).collect()
}

#[test]
fn a_rate_falls_when_validations_get_no_better() {
    let _alone = alone();
    assert_eq!(rates_without_progress(on_plateaus()), [0.4, 0.4, 0.4, 0.2, 0.2, 0.1]);
    // Steps are counted as ever: the three of the warmup, and none more for a validation.
    let rates = rates_without_progress(WarmupLR::new(3, ExponentialLR::new(0.5)));
    for (rate, expected) in rates.iter().zip([0.1, 0.3, 0.2, 0.05]) {
        assert!((rate - expected).abs() < 1e-12, "{rates:?}");
    }
}

#[test]
fn a_schedule_that_waits_for_validations_needs_validation_data() {
    let _alone = alone();
    let model = Linear::new(2, 2, true);
    let mut adam = Adam::new(model.parameters(), 0.4, (0.9, 0.999), 1e-8, 0.0);
    let error = Trainer::new(&model, &mut adam, silent())
        .with_schedule(WarmupLR::new(3, on_plateaus()))
        .fit(&mut points(32), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap_err();
    assert!(error.message().contains("give validation data"), "{error}");
    assert!(error.to_string().contains("trainer.rs"), "{error}");
}

#[test]
fn a_schedule_that_hopes_for_a_larger_loss_is_refused_before_training() {
    let _alone = alone();
    let hopeful =
        || ReduceLROnPlateau::new(PlateauOptions { larger_is_better: true, ..PlateauOptions::default() });
    let schedules: [Box<dyn Schedule>; 4] = [
        Box::new(hopeful()),
        Box::new(WarmupLR::new(3, hopeful())),
        Box::new(SequentialLR::new(ExponentialLR::new(0.9)).then(5, hopeful())),
        Box::new(ChainedLR::new(ExponentialLR::new(0.9)).and(hopeful())),
    ];
    for schedule in schedules {
        let model = Linear::new(2, 2, true);
        let mut adam = Adam::new(model.parameters(), 0.4, (0.9, 0.999), 1e-8, 0.0);
        let error = Trainer::new(&model, &mut adam, silent())
            .with_schedule(schedule)
            .fit(&mut points(32), Some(&mut points(16)), |_, _| panic!("training has begun"))
            .unwrap_err();
        assert!(error.message().contains("leave larger_is_better"), "{error}");
        assert!(error.to_string().contains("trainer.rs"), "{error}");
    }
}

#[test]
fn steps_that_end_with_an_epoch_end_with_a_validation() {
    let _alone = alone();
    let validations = |options: TrainerOptions| -> Vec<u64> {
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
        let history = Trainer::new(&model, &mut adam, options)
            .fit(&mut points(64), Some(&mut points(16)), |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .unwrap();
        history.series("validation/loss").into_iter().map(|v| v.0).collect()
    };
    let ending = |steps| TrainerOptions { steps: Some(steps), ..silent() };
    assert_eq!(validations(ending(8)), [4, 8]);
    assert_eq!(validations(ending(7)), [4], "in the middle of an epoch there is none");
    assert_eq!(validations(TrainerOptions { validate_every: Some(2), ..ending(8) }), [2, 4, 6, 8]);
    // A run that goes on from there does not validate again what was validated.
    for checkpoint_every in [None, Some(2)] {
        let folder = Folder::new("end-of-epoch");
        let part = |steps| TrainerOptions {
            folder: Some(folder.0.clone()),
            resume: true,
            checkpoint_every,
            ..ending(steps)
        };
        assert_eq!(validations(part(8)), [4, 8]);
        assert_eq!(validations(part(12)), [4, 8, 12]);
    }
}

#[test]
fn the_classes_are_where_cross_entropy_has_them() {
    // Two samples of three places, over two classes: the first sample's places are 1, 0, 1, the second's 0, 0, 0.
    let logits = [0f32, 3., 0., 1., 2., 1., 5., 5., 5., 4., 4., 4.];
    let logits = Tensor::from_slice(&logits, [2, 2, 3]);
    let classes = Tensor::from_slice(&[1, 0, 0, 0, 0, 1], [2, 3]);
    let outcome = classified(&logits, &classes);
    assert!((outcome.metrics[0].1.item::<f32>() - 4.0 / 6.0).abs() < 1e-6);
    // As many classes as places: only the axis tells them apart.
    let square = Tensor::from_slice(&[0f32, 9., 1., 2.], [1, 2, 2]);
    let right = Tensor::from_slice(&[1, 0], [1, 2]);
    assert_eq!(accuracy(&square, &right).item::<f32>(), 1.0);
    let (alone, class) = (Tensor::from_slice(&[0f32, 2., 1.], [3]), Tensor::from_slice(&[1], [1]).squeeze(0));
    assert_eq!(accuracy(&alone, &class).item::<f32>(), 1.0);
}

#[test]
fn targets_that_losses_leave_out_do_not_count() {
    let logits = Tensor::from_slice(&[2f32, 0., 0., 1., 3., 0., 0., 5.], [4, 2]);
    let batch = |classes: [i32; 4]| classified(&logits, &Tensor::from_slice(&classes, [4]));
    assert_eq!(batch([0, -100, 1, -100]).metrics[0].1.item::<f32>(), 0.5);
    let small = Tensor::from_slice(&[0i32, -100, 1, -100], [4]);
    assert_eq!(accuracy(&logits, &small).item::<f32>(), 0.5);
    assert!(batch([-100; 4]).metrics[0].1.item::<f32>().is_nan());

    // Batches weigh what counted in them: 1 of 2, 3 of 4, and nothing of nothing.
    let mut meter = Meter::new();
    for classes in [[0, -100, 1, -100], [0, 1, 0, 0], [-100; 4]] {
        meter.add(&batch(classes), 4);
    }
    assert_eq!(meter.samples(), 12);
    let means = meter.read().unwrap();
    let all = Tensor::cat(&[&logits, &logits], 0);
    let whole = classified(&all, &Tensor::from_slice(&[0, -100, 1, -100, 0, 1, 0, 0], [8]));
    assert!((means[0].1 - f64::from(whole.loss.item::<f32>())).abs() < 1e-6, "{means:?}");
    assert!((means[1].1 - 4.0 / 6.0).abs() < 1e-6, "{means:?}");
}

#[test]
fn a_wrong_shape_names_the_line_that_gave_it() {
    let (logits, classes) = (Tensor::zeros([4, 3]), Tensor::zeros([3]).to_dtype(DType::I32));
    let line = line!() + 1;
    let error = try_accuracy(&logits, &classes).unwrap_err().to_string();
    assert!(error.contains("the logits [4, 3] need [4]"), "{error}");
    assert!(error.contains(&format!("trainer.rs:{line}")), "{error}");
    let line = line!() + 1;
    let error = try_classified(&logits, &classes).err().expect("the shapes differ").to_string();
    assert!(error.contains(&format!("trainer.rs:{line}")), "{error}");
}

/// Trains `model` on `data` without validation.
fn fit(model: &Sequential, data: &mut DataLoader, options: TrainerOptions) -> volta::Result<History> {
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    Trainer::new(model, &mut adam, options).fit(data, None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
}

#[test]
fn data_that_others_walked_through_is_walked_through_again() {
    let _alone = alone();
    let mut data = points(64);
    let mut steps = Vec::new();
    for _ in 0..2 {
        let history =
            fit(&network(), &mut data, TrainerOptions { epochs: 3, log_every: 1, ..silent() }).unwrap();
        let last = history.rows.last().unwrap();
        steps.push((last.step, last.epoch));
    }
    // By hand, without asking for what comes after the last batch.
    let _ = data.iter().take(4).count();
    let history = fit(&network(), &mut data, TrainerOptions { epochs: 1, log_every: 1, ..silent() }).unwrap();
    steps.push((history.rows.last().unwrap().step, history.rows.last().unwrap().epoch));
    assert_eq!(steps, [(12, 3), (12, 3), (4, 1)]);
}

#[test]
fn a_validation_that_is_not_a_number_is_not_the_best() {
    let _alone = alone();
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let (mut train, mut valid, mut validations) = (points(64), points(64), 0);
    let mut better = Vec::new();
    let options = TrainerOptions { epochs: 4, patience: Some(3), ..silent() };
    let trainer = Trainer::new(&model, &mut adam, options);
    trainer
        .with_observer(|event| {
            if let Event::Validated { better: is_better, .. } = event {
                better.push(*is_better);
            }
            Ok(())
        })
        .fit(&mut train, Some(&mut valid), |x, y| {
            let outcome = classified(&model.try_forward(x)?, y);
            let is_validation = !outcome.loss.is_tracked();
            validations += usize::from(is_validation);
            let factor = if is_validation && validations <= 4 { f64::NAN } else { 1.0 };
            Ok(Outcome { loss: outcome.loss * factor, ..outcome })
        })
        .unwrap();
    assert_eq!(better[..2], [false, true]);
}

#[test]
fn the_rate_that_is_logged_is_the_steps_own() {
    let _alone = alone();
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.08, (0.9, 0.999), 1e-8, 0.0);
    let history = Trainer::new(&model, &mut adam, TrainerOptions { epochs: 1, log_every: 2, ..silent() })
        .with_schedule(ExponentialLR::new(0.5))
        .fit(&mut points(64), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    let rates: Vec<f64> = history.series("learning_rate").iter().map(|&(_, rate)| rate).collect();
    assert_eq!(rates, [0.04, 0.01]);
}

#[test]
fn what_a_trainer_finds_wrong_names_the_line_that_called_it() {
    let _alone = alone();
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let mut data = points(64);
    let here = line!();
    let unreduced =
        Trainer::new(&model, &mut adam, silent()).fit(&mut data, None, |x, _| Ok(x.sum_dim(1, false).into()));
    let resumed = fit(&model, &mut data, TrainerOptions { resume: true, ..silent() }).unwrap_err();
    let called = line!() + 1;
    let inside = Trainer::new(&model, &mut adam, silent()).fit(&mut data, None, |x, _| {
        let wrong = x.try_matmul(x)?;
        Ok(wrong.into())
    });
    let line = |error: &volta::Error| -> u32 {
        let text = error.to_string();
        assert!(text.contains("tests/trainer.rs"), "{text}");
        text.rsplit(':').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(line(&unreduced.unwrap_err()), here + 2);
    assert!(resumed.message().contains("folder"), "{resumed}");
    assert_eq!(line(&inside.unwrap_err()), called + 1);
}

#[test]
fn runs_within_a_second_keep_their_event_files() {
    let _alone = alone();
    let folder = Folder::new("events");
    for epochs in 1..=3 {
        let options = TrainerOptions { epochs, folder: Some(folder.0.clone()), resume: true, ..silent() };
        fit(&network(), &mut points(64), options).unwrap();
    }
    let files = std::fs::read_dir(folder.0.join("tensorboard")).unwrap().count();
    assert_eq!(files, 3);
}

#[test]
fn a_training_that_validates_now_and_then_validates_what_it_ends_with() {
    let _alone = alone();
    let validated = |history: &History| -> Vec<u64> {
        history.series("validation/loss").into_iter().map(|v| v.0).collect()
    };
    let every = |n, steps| TrainerOptions { validate_every: Some(n), steps: Some(steps), ..silent() };
    assert_eq!(validated(&trained(every(3, 7)).0), [3, 6, 7]);
    assert_eq!(validated(&trained(every(3, 6)).0), [3, 6]);
    assert_eq!(validated(&trained(every(100, 7)).0), [7]);
    // What a run that was stopped measured at its end does not change the one that goes on.
    let folder = Folder::new("validated-last");
    let part = |steps, resume| TrainerOptions { folder: Some(folder.0.clone()), resume, ..every(10, steps) };
    trained(part(33, false));
    let (history, parameters) = trained(part(71, true));
    let (whole, expected) = trained(every(10, 71));
    assert_eq!(validated(&history), [10, 20, 30, 33, 40, 50, 60, 70, 71]);
    assert_eq!(validated(&whole), [10, 20, 30, 40, 50, 60, 70, 71]);
    assert_eq!(parameters, expected);
}

#[test]
fn a_run_that_goes_on_for_longer_has_the_rates_of_the_longer_run() {
    let _alone = alone();
    let folder = Folder::new("longer");
    let run = |steps| {
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.08, (0.9, 0.999), 1e-8, 0.0);
        let options = TrainerOptions {
            steps: Some(steps),
            log_every: 1,
            folder: Some(folder.0.clone()),
            resume: true,
            ..silent()
        };
        Trainer::new(&model, &mut adam, options)
            .with_schedule(LinearLR::new(1.0, 0.0, steps))
            .fit(&mut points(64), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .unwrap()
    };
    run(2);
    let rates: Vec<f64> = run(4).series("learning_rate").into_iter().map(|r| r.1).collect();
    assert_eq!(rates, [0.08, 0.04, 0.04, 0.02]);
}

#[test]
fn a_log_that_cannot_be_read_says_how_to_go_on_without_it() {
    let _alone = alone();
    let folder = Folder::new("bad-log");
    let options =
        |epochs| TrainerOptions { epochs, folder: Some(folder.0.clone()), resume: true, ..silent() };
    fit(&network(), &mut points(64), options(1)).unwrap();
    let log = folder.0.join("metrics.csv");
    std::fs::write(&log, "step,epoch,name,value\n1,1,train/loss,0.5\n\0\0\0\n2,1,train/loss,0.4\n").unwrap();
    let error = fit(&network(), &mut points(64), options(2)).unwrap_err();
    assert!(error.message().contains("line 3") && error.message().contains("move"), "{error}");
    std::fs::rename(&log, folder.0.join("old.csv")).unwrap();
    let history = fit(&network(), &mut points(64), options(2)).unwrap();
    assert_eq!(history.rows.last().unwrap().step, 8);
}

#[test]
fn a_metric_whose_name_no_log_can_hold_is_refused() {
    let _alone = alone();
    for name in ["precision, recall", "two\nlines"] {
        let folder = Folder::new("bad-name");
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
        let options = TrainerOptions { log_every: 1, folder: Some(folder.0.clone()), ..silent() };
        let error = Trainer::new(&model, &mut adam, options)
            .fit(&mut points(64), None, |x, y| {
                let outcome = classified(&model.try_forward(x)?, y);
                let metric = outcome.loss.clone();
                Ok(outcome.with(name, &metric))
            })
            .unwrap_err();
        assert!(error.message().contains(&format!("{name:?}")[1..4]), "{error}");
        assert!(error.message().contains("comma"), "{error}");
        assert!(read_csv(folder.0.join("metrics.csv")).unwrap().rows.is_empty());
    }
}

volta_testing::main!();
