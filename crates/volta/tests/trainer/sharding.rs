//! Ranks that share out the optimizer's state, gradients and parameters: they learn what ranks learn that have everything, and what they
//! save goes on with any number of them and any stage.

use super::ranks::{Bits, bits, measured, network, options, trained_on};
use super::{Folder, alone, points};
use std::path::Path;
use std::sync::Arc;
use volta::parallel::{ExchangeOptions, Sharding, ThreadWorld, World};
use volta::train::{Event, History, OnNonFinite, Outcome, Trainer, TrainerOptions, classified};
use volta::{Adam, DType, Device, Module, Muon, Result, Weights, default_device, with_device};
use volta_testing::test;

/// Small buckets, so that there are several of them, and that not all parameters are gathered at once.
fn sharing(sharding: Sharding) -> ExchangeOptions {
    ExchangeOptions { sharding, bucket_bytes: 100, ..ExchangeOptions::default() }
}

/// Ranks of threads share a processor; what is the same on any device is looked at there.
fn trained(size: usize, options: &TrainerOptions, exchange: ExchangeOptions) -> (History, Bits) {
    trained_on(Device::Cpu, size, options, exchange)
}

/// Two ranks.
fn on_cpu<T: Send>(work: impl Fn(Arc<dyn World>) -> Result<T> + Sync) -> Vec<Result<T>> {
    ThreadWorld::run(2, |world| with_device(Device::Cpu, || work(world)))
}

const STAGES: [Sharding; 3] = [Sharding::OptimizerState, Sharding::Gradients, Sharding::Parameters];

fn furthest(one: &Bits, other: &Bits) -> f32 {
    let numbers = |bits: &Bits| -> Vec<f32> {
        bits.iter().flat_map(|(_, b)| b.iter().map(|&b| f32::from_bits(b))).collect()
    };
    numbers(one).iter().zip(numbers(other)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn all_stages_give_the_bits_of_one_process_for_one_two_and_four_ranks() {
    let _alone = alone();
    for (accumulate, steps, sizes) in [(1, 12, &[1, 2, 4][..]), (3, 6, &[2])] {
        let options =
            TrainerOptions { accumulate, steps: Some(steps), validate_every: None, ..options(Some(4)) };
        let (_, alone) = trained(1, &options, ExchangeOptions::default());
        for sharding in STAGES {
            for &size in sizes {
                let (_, model) = trained(size, &options, sharing(sharding));
                assert!(model == alone, "{sharding:?} on {size} ranks, {accumulate} batches a step");
            }
        }
    }
}

#[test]
fn clipped_steps_have_the_same_bits_for_any_number_of_ranks_of_a_stage() {
    let _alone = alone();
    let options = TrainerOptions { clip: Some(0.05), steps: Some(12), ..options(Some(4)) };
    let (before, alone) = trained(1, &options, ExchangeOptions::default());
    let loss = |history: &History| history.last("validation/loss").unwrap();
    for sharding in STAGES {
        let (history, one) = trained(2, &options, sharing(sharding));
        for size in [1, 4] {
            let (others, model) = trained(size, &options, sharing(sharding));
            assert!(model == one, "{sharding:?} on {size} ranks");
            assert_eq!(measured(&others), measured(&history));
        }
        // A norm is a sum, which one process adds up in another order.
        assert!((loss(&history) - loss(&before)).abs() < 1e-3, "{sharding:?}: {history:?}");
        assert!(sharding > Sharding::OptimizerState || one == alone, "{sharding:?}");
    }
}

#[test]
fn without_gradient_parts_and_with_halves_ranks_learn_what_they_learn_otherwise() {
    let _alone = alone();
    for half in [false, true] {
        let exchange = |sharding| ExchangeOptions { half, ..sharing(sharding) };
        let (_, expected) = trained(2, &options(None), exchange(Sharding::Nothing));
        for sharding in STAGES {
            let (_, model) = trained(2, &options(None), exchange(sharding));
            let far = furthest(&model, &expected);
            // Halves are added in a fixed tree, and so to the same bits.
            assert!(far < if half { f32::MIN_POSITIVE } else { 1e-3 }, "{sharding:?}, halves {half}: {far}");
        }
    }
}

#[test]
fn a_scaler_and_skipped_steps_are_the_same_on_all_ranks() {
    let _alone = alone();
    let options = TrainerOptions { precision: Some(DType::F16), clip: Some(0.5), ..options(Some(2)) };
    let (_, expected) = trained(2, &options, ExchangeOptions::default());
    for sharding in STAGES {
        let (_, model) = trained(2, &options, sharing(sharding));
        let far = furthest(&model, &expected);
        assert!(far < 1e-3, "{sharding:?}: {far}");
    }
    for sharding in STAGES {
        let results = on_cpu(|world| {
            let model = network();
            let mut adam = Adam::new(model.parameters(), 0.02, (0.9, 0.999), 1e-8, 0.0);
            let options =
                TrainerOptions { on_non_finite: OnNonFinite::SkipStep, ..super::ranks::options(None) };
            let mut calls = 0;
            let history = Trainer::new(&model, &mut adam, options)
                .with_world(world.clone(), sharing(sharding))
                .fit(&mut points(320), None, |x, y| {
                    calls += 1;
                    let outcome = classified(&model.try_forward(x)?, y);
                    let factor = if world.rank() == 1 && calls == 5 { f64::NAN } else { 1.0 };
                    Ok(Outcome { loss: outcome.loss * factor, ..outcome })
                })?;
            Ok((history.series("skipped_steps").iter().map(|row| row.1).sum::<f64>(), bits(&model)))
        });
        let results: Vec<_> = results.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
        assert!(results[0].0 == 1.0 && results[0] == results[1], "{sharding:?}: {} skipped", results[0].0);
    }
}

#[test]
fn what_any_stage_saves_goes_on_with_any_other_and_any_number_of_ranks() {
    let _alone = alone();
    let saving = |folder: &Path, steps| TrainerOptions {
        steps: Some(steps),
        checkpoint_every: Some(8),
        folder: Some(folder.to_path_buf()),
        ..options(Some(4))
    };
    let whole = Folder::new("sharing-whole");
    let (_, undisturbed) = trained(1, &saving(&whole.0, 25), ExchangeOptions::default());
    let all = Weights::open(whole.0.join("checkpoints/step-00000025.safetensors")).unwrap().load().unwrap();
    for (k, (first, then)) in [
        ((4, Sharding::Parameters), (2, Sharding::Gradients)),
        ((2, Sharding::Gradients), (1, Sharding::Nothing)),
        ((1, Sharding::Nothing), (4, Sharding::Parameters)),
        ((4, Sharding::OptimizerState), (2, Sharding::Parameters)),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("sharing-{k}"));
        trained(first.0, &saving(&folder.0, 16), sharing(first.1));
        let resumed = TrainerOptions { resume: true, ..saving(&folder.0, 25) };
        let (_, model) = trained(then.0, &resumed, sharing(then.1));
        assert!(model == undisturbed, "{first:?} and then {then:?}");
        let saved =
            Weights::open(folder.0.join("checkpoints/step-00000025.safetensors")).unwrap().load().unwrap();
        for (name, tensor) in
            all.iter().filter(|(name, _)| name.starts_with("optimizer.") || name.starts_with("model."))
        {
            let own = saved.get(name).unwrap_or_else(|| panic!("{name} is missing"));
            assert!(own.shape() == tensor.shape() && own.to_vec::<f32>() == tensor.to_vec::<f32>(), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_shared_out_is_said() {
    let _alone = alone();
    let results = on_cpu(|world| {
        let model = network();
        let matrices = model.parameters().into_iter().filter(|p| p.rank() == 2).collect();
        let mut muon = Muon::new(matrices, 0.02, 0.95, 0.0);
        Trainer::new(&model, &mut muon, options(None))
            .with_world(world, sharing(Sharding::OptimizerState))
            .fit(&mut points(320), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))
            .map(drop)
    });
    assert!(results.into_iter().all(|result| result.unwrap_err().message().contains("moves whole matrices")));
    let results = on_cpu(|world| {
        let model = network();
        let mut adam = Adam::new(model.parameters(), 0.02, (0.9, 0.999), 1e-8, 0.0);
        let (first, mut said) = (model.parameters()[0].clone(), String::new());
        Trainer::new(&model, &mut adam, options(None))
            .with_world(world, sharing(Sharding::Parameters))
            .with_observer(|event| {
                if let Event::Step { step: 3 } = event {
                    said = first.try_to_vec::<f32>().unwrap_err().message().to_string();
                }
                Ok(())
            })
            .fit(&mut points(320), None, |x, y| Ok(classified(&model.try_forward(x)?, y)))?;
        // At the end it is whole.
        Ok((said, first.try_to_vec::<f32>()?.len()))
    });
    for result in results {
        let (said, count) = result.unwrap_or_else(|e| panic!("{e}"));
        assert!(said.contains("no rank has all of it between steps") && count == 32, "{said}");
    }
}

#[test(needs(gpu))]
fn parameters_are_gathered_to_a_gpu_for_the_plans_that_read_them() {
    let _alone = alone();
    let options = TrainerOptions { steps: Some(4), validate_every: None, ..options(Some(2)) };
    let loss = |history: &History| history.last("train/loss").unwrap();
    let (expected, _) = trained_on(default_device(), 2, &options, ExchangeOptions::default());
    let (history, _) = trained_on(default_device(), 2, &options, sharing(Sharding::Parameters));
    // Smaller plans may round otherwise.
    assert!((loss(&history) - loss(&expected)).abs() < 1e-3, "{history:?} {expected:?}");
}
