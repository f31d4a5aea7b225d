//! Ranks that make steps by themselves and agree now and then: they do what the formula of DiLoCo says, which is computed here by hand.

use super::ranks::{Bits, bits};
use super::{Folder, alone};
use std::path::Path;
use std::sync::Arc;
use volta::data::{Array, DataLoader, TensorDataset};
use volta::parallel::{ExchangeOptions, LocalSteps, Sharding, Single, ThreadWorld, World};
use volta::train::{Trainer, TrainerOptions};
use volta::{
    AdamW, Device, Linear, Module, ReLU, Result, Sequential, Tensor, manual_seed, mse_loss, no_grad,
    with_device,
};
use volta_testing::test;

fn network() -> Sequential {
    manual_seed(3);
    Sequential::new(vec![
        Box::new(Linear::new(3, 8, true)),
        Box::new(ReLU),
        Box::new(Linear::new(8, 1, true)),
    ])
}

/// Rows of some function; each so many times, one behind the other, half a batch apart.
fn rows(count: usize, batch: usize, twice: bool) -> DataLoader {
    let x = |k: usize| (0..3).map(move |c| ((k * 31 + c * 17) as f32 * 0.37).sin());
    let half = if twice { batch / 2 } else { batch };
    let order: Vec<usize> = (0..count).map(|k| if twice { k / batch * half + k % half } else { k }).collect();
    let inputs: Vec<f32> = order.iter().flat_map(|&k| x(k)).collect();
    let targets: Vec<f32> = order.iter().map(|&k| x(k).sum::<f32>() * 0.5 + 0.1).collect();
    let dataset = TensorDataset::new(Array::new(inputs, &[count, 3]), Array::new(targets, &[count, 1]));
    DataLoader::over(dataset, batch).with_shuffle(false)
}

fn optimizer(model: &dyn Module) -> AdamW {
    AdamW::new(model.parameters(), 0.01, (0.9, 0.99), 1e-8, 0.01)
}

const LOCAL: LocalSteps = LocalSteps { every: 5, learning_rate: 0.7, momentum: 0.9 };

fn exchange() -> ExchangeOptions {
    ExchangeOptions { local_steps: Some(LOCAL), ..ExchangeOptions::default() }
}

fn options(steps: u64) -> TrainerOptions {
    TrainerOptions {
        epochs: 100,
        steps: Some(steps),
        progress: false,
        log_every: 4,
        ..TrainerOptions::default()
    }
}

fn train(world: Arc<dyn World>, options: TrainerOptions, mut data: DataLoader) -> Result<Bits> {
    let model = network();
    let mut adam = optimizer(&model);
    Trainer::new(
        &model,
        &mut adam,
        TrainerOptions { checkpoint_every: Some(5), validate_every: Some(5), ..options },
    )
    .with_world(world, exchange())
    .fit(&mut data, None, |x, y| Ok(mse_loss(&model.try_forward(x)?, y).into()))?;
    Ok(bits(&model))
}

fn trained(size: usize, options: &TrainerOptions, data: impl Fn() -> DataLoader + Sync) -> Bits {
    let run = |world: Arc<dyn World>| with_device(Device::Cpu, || train(world, options.clone(), data()));
    let results = match size {
        1 => ThreadWorld::run(1, |_| run(Arc::new(Single))),
        _ => ThreadWorld::run(size, run),
    };
    let mut all: Vec<Bits> = results.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
    assert!(all.iter().all(|model| *model == all[0]), "ranks differ");
    all.remove(0)
}

fn values(model: &dyn Module) -> Vec<Vec<f32>> {
    model.parameters().iter().map(Tensor::to_vec).collect()
}

/// The formula of the paper, for so many ranks that share each batch, with as many models.
fn by_hand(ranks: usize, steps: usize, data: &DataLoader) -> Vec<f32> {
    let models: Vec<Sequential> = (0..ranks).map(|_| network()).collect();
    let mut inner: Vec<AdamW> = models.iter().map(|model| optimizer(model)).collect();
    let mut anchor = values(&models[0]);
    let mut velocity: Vec<Vec<f32>> = anchor.iter().map(|p| vec![0.0; p.len()]).collect();
    let batches: Vec<(Tensor, Tensor)> = data.iter().collect();
    for step in 1..=steps {
        let (x, y) = &batches[(step - 1) % batches.len()];
        let own = x.size(0) / ranks;
        for (rank, (model, adam)) in models.iter().zip(&mut inner).enumerate() {
            let (x, y) = (x.narrow(0, rank * own, own), y.narrow(0, rank * own, own));
            adam.zero_grad();
            mse_loss(&model.forward(&x), &y).backward();
            adam.step();
        }
        if !step.is_multiple_of(LOCAL.every as usize) && step < steps {
            continue;
        }
        let locals: Vec<Vec<Vec<f32>>> = models.iter().map(|model| values(model)).collect();
        for k in 0..anchor.len() {
            for n in 0..anchor[k].len() {
                let mean = locals.iter().map(|local| anchor[k][n] - local[k][n]).sum::<f32>() / ranks as f32;
                velocity[k][n] = 0.9 * velocity[k][n] + mean;
                anchor[k][n] -= 0.7 * (mean + 0.9 * velocity[k][n]);
            }
        }
        for model in &models {
            for (parameter, anchor) in model.parameters().iter().zip(&anchor) {
                no_grad(|| parameter.assign(&Tensor::from_vec(anchor.clone(), &parameter.shape()[..])));
            }
        }
    }
    anchor.concat()
}

#[test]
fn parameters_follow_the_formula_on_one_rank_and_on_several() {
    let _alone = alone();
    for (ranks, steps) in [(1, 10), (2, 12), (4, 7)] {
        let data = || rows(64, 16, false);
        let expected = with_device(Device::Cpu, || by_hand(ranks, steps as usize, &data()));
        let model = trained(ranks, &options(steps), data);
        let own: Vec<f32> = model.into_iter().flat_map(|(_, b)| b).map(f32::from_bits).collect();
        let far = own.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(own.len() == expected.len() && far < 1e-6, "{ranks} ranks, {steps} steps: {far}");
    }
}

#[test]
fn ranks_that_learn_from_the_same_rows_are_as_one() {
    let _alone = alone();
    let one = trained(1, &options(15), || rows(32, 8, false));
    let two = trained(2, &options(15), || rows(64, 16, true));
    assert!(one == two, "two ranks of the same rows differ from one");
}

#[test]
fn a_run_goes_on_to_the_same_bits() {
    let _alone = alone();
    for size in [1, 2] {
        let data = || rows(80, 16, false);
        let saving = |folder: &Path, steps| TrainerOptions {
            folder: Some(folder.to_path_buf()),
            accumulate: 2,
            ..options(steps)
        };
        let whole = Folder::new(&format!("local-whole-{size}"));
        let undisturbed = trained(size, &saving(&whole.0, 20), data);
        let folder = Folder::new(&format!("local-{size}"));
        trained(size, &saving(&folder.0, 10), data);
        let resumed = TrainerOptions { resume: true, ..saving(&folder.0, 20) };
        assert!(
            trained(size, &resumed, data) == undisturbed,
            "{size} ranks have not gone on to the same bits"
        );
        // Another number of ranks may go on, to others.
        let resumed = TrainerOptions { resume: true, ..saving(&folder.0, 25) };
        trained(3 - size, &resumed, data);
    }
}

#[test]
fn what_does_not_go_with_local_steps_is_said() {
    let _alone = alone();
    let said = |exchange: ExchangeOptions, options: TrainerOptions| {
        let model = network();
        let mut adam = optimizer(&model);
        let error = Trainer::new(&model, &mut adam, options)
            .with_world(Arc::new(Single), exchange)
            .fit(&mut rows(32, 8, false), None, |x, y| Ok(mse_loss(&model.try_forward(x)?, y).into()))
            .unwrap_err();
        error.message().to_string()
    };
    let sharing = ExchangeOptions { sharding: Sharding::Gradients, ..exchange() };
    assert!(said(sharing, options(5)).contains("share out nothing"));
    let parts = TrainerOptions { gradient_parts: Some(2), ..options(5) };
    assert!(said(exchange(), parts).contains("gradient_parts"));
    let between = TrainerOptions { validate_every: Some(7), ..options(5) };
    assert!(said(exchange(), between).contains("validate_every is 7"));
    for local in [
        LocalSteps { every: 0, ..LOCAL },
        LocalSteps { learning_rate: 0.0, ..LOCAL },
        LocalSteps { momentum: 1.0, ..LOCAL },
    ] {
        said(ExchangeOptions { local_steps: Some(local), ..exchange() }, options(5));
    }
}
