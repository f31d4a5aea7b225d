//! Losses and gradients that are NaN or infinite: a training stops, leaves the step out, or goes back.

use super::*;
use volta::train::OnNonFinite;
use volta::{BatchNorm1d, CheckpointFolder, ErrorKind, SGD, counters};
use volta_testing::test;

/// Trains on batches of 16, with a loss that is multiplied by what `factor` says about the nth batch; the parameters and buffers
/// at the end.
fn run(
    options: TrainerOptions,
    mut factor: impl FnMut(u64) -> f64,
    mut see: impl FnMut(&Event<'_>),
) -> (volta::Result<History>, Vec<Vec<f32>>) {
    manual_seed(11);
    let model = Sequential::new(vec![])
        .with(Linear::new(2, 8, true))
        .with(BatchNorm1d::new(8))
        .with(ReLU)
        .with(Linear::new(8, 2, true));
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let mut batch = 0;
    let trainer = Trainer::new(&model, &mut adam, options).with_schedule(LinearLR::new(1.0, 0.5, 20));
    let result = trainer
        .with_observer(|event| {
            see(event);
            Ok(())
        })
        .fit(&mut points(320), None, |x, y| {
            batch += 1;
            // Also what the forward pass leaves in the buffers is spoilt.
            let factor = factor(batch);
            let x = if factor.is_finite() { x.clone() } else { x * factor };
            let outcome = classified(&model.try_forward(&x)?, y);
            Ok(Outcome { loss: outcome.loss * factor, ..outcome })
        });
    let state = model.parameters().into_iter().chain(model.buffers());
    (result, state.map(|t| t.to_vec::<f32>()).collect())
}

fn logged(every: u64) -> TrainerOptions {
    TrainerOptions { epochs: 1, log_every: every, ..silent() }
}

/// NaN in these batches.
fn bad(batches: &[u64]) -> impl FnMut(u64) -> f64 {
    move |batch| if batches.contains(&batch) { f64::NAN } else { 1.0 }
}

fn all_finite(parameters: &[Vec<f32>]) -> bool {
    parameters.iter().flatten().all(|x| x.is_finite())
}

#[test]
fn a_training_stops_at_the_first_loss_that_is_not_finite_and_names_its_step() {
    let _alone = alone();
    for (log_every, clip, accumulate) in
        [(1, None, 1), (5, None, 1), (50, None, 1), (5, Some(1.0), 1), (4, None, 3)]
    {
        let folder = Folder::new("stops");
        let options = TrainerOptions {
            folder: Some(folder.0.clone()),
            checkpoint_every: Some(3),
            clip,
            accumulate,
            ..logged(log_every)
        };
        // Step 5, in the middle of what is logged together.
        let batch = if accumulate == 1 { 5 } else { 14 };
        let mut told = None;
        let (result, _) = run(options, bad(&[batch]), |event| {
            if let Event::NonFinite { step, checkpoint, .. } = event {
                told = Some((*step, checkpoint.map(|path| path.to_path_buf())));
            }
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NonFinite);
        let (step, checkpoint) = told.expect("an event");
        assert_eq!(step, 5, "{error}");
        let checkpoint = checkpoint.expect("a checkpoint was there");
        for part in ["step 5", "learning rate", checkpoint.to_str().unwrap()] {
            assert!(error.message().contains(part), "{part} in {error}");
        }
        // Steps between the bad one and the reading were made, but no checkpoint holds them.
        let checkpoints = CheckpointFolder::open(folder.0.join("checkpoints")).unwrap();
        assert_eq!(checkpoints.steps().unwrap(), [3]);
        assert!(read_csv(folder.0.join("metrics.csv")).is_ok() && folder.0.join("curves.svg").exists());
    }
}

/// The gradient of a square root at zero is infinite, and the loss is not.
#[test]
fn gradients_that_are_not_finite_are_found_where_the_loss_is() {
    let _alone = alone();
    let spoilt = |clip, steps| {
        let w = Linear::new(2, 1, false);
        let mut sgd = SGD::new(w.parameters(), 0.1, 0.0, 0.0);
        let options = TrainerOptions { clip, steps: Some(steps), ..logged(10) };
        let mut batch = 0;
        Trainer::new(&w, &mut sgd, options)
            .fit(&mut points(320), None, |_, _| {
                batch += 1;
                let root = w.weight.mul(if batch == 4 { 0.0 } else { 1.0 }).abs().sqrt();
                Ok(root.sum().into())
            })
            .unwrap_err()
    };
    let error = spoilt(Some(1.0), 20);
    assert!(error.message().contains("in step 4, the loss or the gradient's norm"), "{error}");
    // Without the norm it is the loss of the next step that tells, or, behind the last one, the parameters.
    assert!(spoilt(None, 20).message().contains("in step 5, the loss"), "{error}");
    assert!(spoilt(None, 4).message().contains("in step 4, a parameter"), "{error}");
}

#[test]
fn steps_can_be_left_out_and_nothing_of_them_stays() {
    let _alone = alone();
    for clip in [None, Some(1.0)] {
        let options = TrainerOptions { on_non_finite: OnNonFinite::SkipStep, clip, ..logged(5) };
        let (history, state) = run(options.clone(), bad(&[3, 4, 17]), |_| {});
        let history = history.unwrap();
        assert!(all_finite(&state), "{state:?}");
        let skipped: Vec<f64> = history.series("skipped_steps").iter().map(|row| row.1).collect();
        assert_eq!(skipped, [2.0, 0.0, 0.0, 1.0]);
        assert!(history.series("train/loss").iter().all(|row| row.1.is_finite()));
        // All but the last step skipped is that step alone.
        let (_, one) = run(options, bad(&(2..=20).collect::<Vec<_>>()), |_| {});
        let (_, first) = run(TrainerOptions { steps: Some(1), ..logged(1) }, bad(&[]), |_| {});
        for (a, b) in one.iter().flatten().zip(first.iter().flatten()) {
            assert!((a - b).abs() < 1e-6, "{one:?} {first:?}");
        }
    }
}

#[test]
fn skipping_without_end_is_an_error() {
    let _alone = alone();
    let options = TrainerOptions { epochs: 10, ..logged(5) };
    let skipping = TrainerOptions { on_non_finite: OnNonFinite::SkipStep, ..options.clone() };
    let halves = TrainerOptions { precision: Some(DType::F16), ..options };
    // No scale makes these gradients fit.
    for (options, factor) in [(skipping, f64::NAN), (halves, 1e30)] {
        let (result, state) = run(options, |_| factor, |_| {});
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NonFinite);
        assert!(error.message().contains("skipped steps in a row"), "{error}");
        assert!(all_finite(&state[..6]), "{state:?}");
    }
}

#[test]
fn steps_that_the_scaler_skips_are_counted_also_by_a_run_that_goes_on() {
    let _alone = alone();
    let counted = |history: &History| history.series("skipped_steps");
    let total = |history: &History| counted(history).iter().map(|row| row.1).sum::<f64>();
    let options = |steps| TrainerOptions {
        precision: Some(DType::F16),
        steps: Some(steps),
        checkpoint_every: Some(3),
        ..logged(5)
    };
    let whole = run(options(10), |_| 1e3, |_| {}).0.unwrap();
    assert!(counted(&whole)[0].1 > 0.0, "the first scale is too large: {:?}", counted(&whole));
    let folder = Folder::new("skips-resumed");
    let part = |steps| TrainerOptions { folder: Some(folder.0.clone()), resume: true, ..options(steps) };
    run(part(3), |_| 1e3, |_| {}).0.unwrap();
    let rest = run(part(10), |_| 1e3, |_| {}).0.unwrap();
    let steps = |history: &History| counted(history).iter().map(|row| row.0).collect::<Vec<_>>();
    assert_eq!((steps(&whole), steps(&rest)), (vec![5, 10], vec![3, 5, 10]));
    assert_eq!(total(&rest), total(&whole), "each is counted once: {:?}", counted(&rest));
}

#[test]
fn a_training_can_go_back_to_its_last_checkpoint_with_lower_rates() {
    let _alone = alone();
    let folder = Folder::new("goes-back");
    let options = |at_most| TrainerOptions {
        on_non_finite: OnNonFinite::GoBack { factor: 0.5, at_most },
        folder: Some(folder.0.clone()),
        checkpoint_every: Some(4),
        ..logged(2)
    };
    let mut went = Vec::new();
    let see = |event: &Event<'_>| {
        if let Event::WentBack { step, factor } = event {
            went.push((*step, *factor));
        }
    };
    // Batch 2 is before any checkpoint; 12 and 19 are steps 10 and 9, each after the checkpoint of step 8.
    let (history, state) = run(options(3), bad(&[2, 12, 14]), see);
    let history = history.unwrap();
    assert!(all_finite(&state));
    assert_eq!(went, [(0, 0.5), (8, 0.5), (8, 0.25)]);
    // What was measured after the checkpoint is measured again, once.
    let steps: Vec<u64> = history.series("train/loss").iter().map(|row| row.0).collect();
    assert_eq!(steps, (1..=10).map(|k| 2 * k).collect::<Vec<_>>());
    assert_eq!(read_csv(folder.0.join("metrics.csv")).unwrap().rows, history.rows);
    let rate = |step: u64, factor: f64| 0.01 * (1.0 - 0.5 * (step - 1) as f64 / 20.0) * factor;
    for (step, value) in history.series("learning_rate") {
        let factor = if step <= 8 { 0.5 } else { 0.125 };
        assert!((value - rate(step, factor)).abs() < 1e-9, "{step}: {value}");
    }
    // A run that goes on has the lowered rates.
    let resumed = TrainerOptions { epochs: 2, steps: Some(22), resume: true, ..options(0) };
    let (history, _) = run(resumed, bad(&[]), |_| {});
    let last = history.unwrap().last("learning_rate").unwrap();
    assert!((last - 0.01 * 0.5 * 0.125).abs() < 1e-9, "{last}");
}

#[test]
fn going_back_has_an_end_and_needs_a_folder() {
    let _alone = alone();
    let folder = Folder::new("goes-back-too-often");
    let options = |folder| TrainerOptions {
        on_non_finite: OnNonFinite::GoBack { factor: 0.5, at_most: 2 },
        folder,
        ..logged(2)
    };
    let (result, _) =
        run(options(Some(folder.0.clone())), |batch| if batch > 5 { f64::NAN } else { 1.0 }, |_| {});
    let error = result.unwrap_err();
    assert!(error.message().contains("went back to a checkpoint 2 times"), "{error}");
    let error = run(options(None), bad(&[]), |_| {}).0.unwrap_err();
    assert!(error.message().contains("set TrainerOptions::folder"), "{error}");
}

#[test]
fn what_is_logged_comes_from_the_device_in_one_reading() {
    let _alone = alone();
    // Others read meanwhile, now and then.
    let reads = |log_every| {
        let count = |_| {
            let before = counters().reads;
            let options = TrainerOptions { clip: Some(1.0), ..logged(log_every) };
            run(options, bad(&[]), |_| {}).0.unwrap();
            counters().reads - before
        };
        (0..5).map(count).min().unwrap()
    };
    // Twenty steps: every step or every tenth.
    assert_eq!(reads(1) - reads(10), 18);
}
