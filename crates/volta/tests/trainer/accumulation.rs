//! Steps of several batches, also where an epoch leaves fewer of them.

use super::*;
use volta_testing::test;

/// Trains a linear model with plain steps, on 5 batches of 8, and gives its weights, its steps and the samples they had.
fn stepped(rate: f64, options: TrainerOptions) -> (Vec<f32>, u64, u64) {
    manual_seed(4);
    let model = Linear::new(2, 2, true);
    let mut sgd = volta::SGD::new(model.parameters(), rate, 0.0, 0.0);
    let x: Vec<f32> = (0..80).map(|k| (k as f32 * 0.37).sin()).collect();
    let y: Vec<i32> = (0..40).map(|k| k % 2).collect();
    let data = TensorDataset::new(volta::data::Array::new(x, &[40, 2]), volta::data::Array::new(y, &[40]));
    let mut trainer = Trainer::new(&model, &mut sgd, options);
    trainer
        .fit(&mut DataLoader::over(data, 8), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    (model.weight.to_vec::<f32>(), trainer.speed().0, trainer.units())
}

#[test]
fn the_batches_that_are_left_at_the_end_of_an_epoch_make_a_step_as_long_as_any() {
    let _alone = alone();
    // An epoch of five batches has a step of four, and one of the last; nine take all five at once.
    let (weights, steps, units) = stepped(0.5, TrainerOptions { accumulate: 9, epochs: 3, ..silent() });
    assert_eq!((steps, units), (3, 3 * 40));
    let (whole, ..) = stepped(0.5, TrainerOptions { accumulate: 5, epochs: 3, ..silent() });
    for (a, b) in weights.iter().zip(&whole) {
        assert!((a - b).abs() < 1e-6, "{weights:?} {whole:?}");
    }
    // The last batch alone moves the weights as far as a step of its own.
    let (start, ..) = stepped(0.0, silent());
    let moved = |accumulate| {
        let first = stepped(0.5, TrainerOptions { accumulate, steps: Some(1), ..silent() }).0;
        let both = stepped(0.5, TrainerOptions { accumulate, steps: Some(2), ..silent() });
        assert_eq!(both.1, 2);
        let length = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
        length(&first, &both.0) / length(&start, &first)
    };
    assert!(moved(4) > 0.5, "{}", moved(4));
}

#[test]
fn steps_that_batches_are_left_for_are_logged_validated_and_saved_as_any() {
    let _alone = alone();
    let folder = Folder::new("left-over");
    let model = network();
    let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions {
        accumulate: 3,
        epochs: 2,
        log_every: 1,
        validate_every: Some(1),
        folder: Some(folder.0.clone()),
        ..silent()
    };
    let history = Trainer::new(&model, &mut adam, options)
        .fit(&mut points(64), Some(&mut points(16)), |x, y| Ok(classified(&model.try_forward(x)?, y)))
        .unwrap();
    let epochs = |name: &str| -> Vec<(u64, u64)> {
        history.rows.iter().filter(|r| r.name == name).map(|r| (r.step, r.epoch)).collect()
    };
    assert_eq!(epochs("train/loss"), [(1, 1), (2, 1), (3, 2), (4, 2)]);
    assert_eq!(epochs("validation/loss"), [(1, 1), (2, 1), (3, 2), (4, 2)]);
}

#[test]
fn a_profile_of_a_step_has_all_its_batches() {
    let _alone = alone();
    let products = |accumulate: usize| -> Vec<u64> {
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
        let options = TrainerOptions { accumulate, epochs: 4, profile_every: Some(2), ..silent() };
        let mut calls = Vec::new();
        Trainer::new(&model, &mut adam, options)
            .with_observer(|event| {
                if let Event::Profiled { profile, .. } = event {
                    let products = profile.kernels.iter().filter(|k| k.kind.starts_with("matmul"));
                    calls.push(products.map(|k| k.calls).sum());
                }
                Ok(())
            })
            .fit(&mut points(80), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .unwrap();
        calls
    };
    let one = products(1)[0];
    // Five batches an epoch: every second step is that of the two that are left.
    assert_eq!(products(3), [2 * one; 4]);
    assert_eq!(products(5), [5 * one; 2]);
}
