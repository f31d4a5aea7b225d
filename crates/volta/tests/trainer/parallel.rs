//! Training on several devices: the same bits on any number of them, and what is wrong to ask for.

use super::{Folder, alone, points};
use volta::data::DataLoader;
use volta::parallel::{DataParallel, GradientParts, TreeSum};
use volta::train::{History, Outcome, Trainer, TrainerOptions, classified};
use volta::{
    Adam, BatchNorm1d, DType, Device, Dropout, ErrorKind, Linear, Module, ReLU, SGD, Sequential, Tensor,
    cross_entropy, default_device, manual_seed, realize_all, with_device,
};
use volta_testing::test;

/// A network with everything that must not depend on who computes a part: random numbers and running statistics.
fn network(device: Device) -> Sequential {
    manual_seed(3);
    with_device(device, || {
        let net = Sequential::new(vec![
            Box::new(Linear::new(2, 16, true)),
            Box::new(BatchNorm1d::new(16)),
            Box::new(ReLU),
            Box::new(Dropout::new(0.2)),
            Box::new(Linear::new(16, 2, true)),
        ]);
        realize_all(&net.parameters());
        net
    })
}

/// A network of two layers, whose parts together give what the whole batch gives.
fn plain(width: usize) -> Sequential {
    manual_seed(4);
    let layers = Sequential::new(vec![
        Box::new(Linear::new(2, width, true)),
        Box::new(ReLU),
        Box::new(Linear::new(width, 2, true)),
    ]);
    realize_all(&layers.parameters());
    layers
}

/// The bits of every tensor of a model.
fn bits(model: &dyn Module) -> Vec<(String, Vec<u32>)> {
    let bits = |t: &Tensor| t.to_vec::<f32>().into_iter().map(f32::to_bits).collect();
    model.state_dict().iter().map(|(name, t)| (name.to_string(), bits(t))).collect()
}

fn batch(rows: usize) -> (Tensor, Tensor) {
    points(rows).with_device(Device::Cpu).peek().expect("a batch").expect("there is one")
}

/// The model and the losses after so many steps of batches of 16 rows.
fn trained(devices: &[Device], parts: usize, steps: usize) -> (Vec<(String, Vec<u32>)>, Vec<u32>) {
    let net = network(devices[0]);
    let mut adam = Adam::new(net.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    let mut parallel = DataParallel::new(&net, devices).unwrap().with_gradient_parts(parts).unwrap();
    let data = points(96).with_device(Device::Cpu);
    let mut losses = Vec::new();
    for (x, y) in std::iter::repeat_with(|| data.iter()).flatten().take(steps) {
        adam.zero_grad();
        let loss = parallel.try_backward(&x, &y, |x, y| Ok(cross_entropy(&net.try_forward(x)?, y))).unwrap();
        adam.step();
        losses.push(loss.item::<f32>().to_bits());
    }
    (bits(&net), losses)
}

fn gpus(count: usize) -> Vec<Device> {
    (0..count).map(Device::Gpu).collect()
}

#[test(needs(four_gpus))]
fn one_two_and_four_devices_give_the_same_bits() {
    let _alone = alone();
    let one = trained(&gpus(1), 4, 8);
    assert!(one.0 != bits(&network(Device::Gpu(0))), "it learns");
    assert!(one.1.iter().all(|&loss| f32::from_bits(loss).is_finite()));
    for count in [2, 3, 4] {
        assert!(trained(&gpus(count), 4, 8) == one, "{count} devices");
    }
}

/// A part's gradients of a model on the CPU, as plain numbers, computed by themselves.
fn gradients_of_part(net: &Sequential, x: &Tensor, y: &Tensor, weight: f64) -> Vec<Vec<f32>> {
    net.zero_grad();
    let loss = cross_entropy(&net.forward(x), y);
    loss.mul(weight).backward();
    let all: Vec<Vec<f32>> =
        net.parameters().iter().map(|p| p.grad().expect("a gradient").to_vec()).collect();
    net.zero_grad();
    all
}

#[test]
fn fifty_steps_have_the_bits_of_parts_that_others_computed_and_added_up() {
    let _alone = alone();
    let (device, parts) = (default_device(), GradientParts::new(4).unwrap());
    let (ours, theirs) = (plain(32), plain(32));
    let mut sgd = SGD::new(ours.parameters(), 0.2, 0.9, 0.0);
    let mut other = SGD::new(theirs.parameters(), 0.2, 0.9, 0.0);
    let mut parallel = DataParallel::new(&ours, &[device]).unwrap().with_gradient_parts(4).unwrap();
    let data = points(160).with_device(Device::Cpu);
    let steps = if device.is_gpu() { 5 } else { 50 };
    for (x, y) in std::iter::repeat_with(|| data.iter()).flatten().take(steps) {
        sgd.zero_grad();
        parallel.try_backward(&x, &y, |x, y| Ok(cross_entropy(&ours.try_forward(x)?, y))).unwrap();
        sgd.step();
        // As processes would: each part by itself, in any order, and the sums on the host.
        let mut sum = TreeSum::new(parts);
        for part in [2, 0, 3, 1] {
            let rows = parts.rows(x.size(0), part);
            let own = |t: &Tensor| t.narrow(0, rows.start, rows.len()).to_device(device).realize().clone();
            let gradients = gradients_of_part(&theirs, &own(&x), &own(&y), parts.weight(x.size(0), part));
            let add = |left: Vec<Vec<f32>>, right: Vec<Vec<f32>>| {
                let add = |(l, r): (Vec<f32>, Vec<f32>)| l.iter().zip(&r).map(|(l, r)| l + r).collect();
                Ok(left.into_iter().zip(right).map(add).collect())
            };
            sum.add(part..part + 1, gradients, add).unwrap();
        }
        for (parameter, gradient) in theirs.parameters().iter().zip(sum.total().unwrap()) {
            parameter.set_grad(Some(Tensor::from_vec(gradient, parameter.shape())));
        }
        other.step();
    }
    assert_eq!(bits(&ours), bits(&theirs));
}

#[test]
fn parts_have_the_gradient_of_the_whole_batch() {
    let _alone = alone();
    let device = default_device();
    let devices = if device.is_gpu() { gpus(Device::gpus().unwrap().len().min(2)) } else { vec![device] };
    let net = plain(8);
    let (x, y) = batch(16);
    // Ten rows are three, three, and four.
    let (x, y) = (x.narrow(0, 0, 10), y.narrow(0, 0, 10));
    let mut parallel = DataParallel::new(&net, &devices).unwrap().with_gradient_parts(3).unwrap();
    let in_parts = parallel.try_backward(&x, &y, |x, y| Ok(cross_entropy(&net.try_forward(x)?, y))).unwrap();
    let gradients: Vec<Vec<f32>> = net.parameters().iter().map(|p| p.grad().unwrap().to_vec()).collect();
    net.zero_grad();
    let whole = cross_entropy(&net.forward(&x.to_device(device)), &y.to_device(device));
    whole.backward();
    assert!((in_parts.item::<f32>() - whole.item::<f32>()).abs() < 1e-6);
    for (parameter, gradient) in net.parameters().iter().zip(gradients) {
        let expected = parameter.grad().unwrap().to_vec::<f32>();
        assert!(
            gradient.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6),
            "{gradient:?} {expected:?}"
        );
    }
}

#[test]
fn running_statistics_are_the_mean_of_those_of_the_parts() {
    let _alone = alone();
    let net = network(default_device());
    let (x, y) = batch(16);
    let mut parallel = DataParallel::new(&net, &[default_device()]).unwrap().with_gradient_parts(2).unwrap();
    let mut means = Vec::new();
    parallel
        .try_backward(&x, &y, |x, y| {
            let linear = net.state_dict();
            let (w, b) = (linear.get("0.weight").unwrap(), linear.get("0.bias").unwrap());
            means.push(x.linear(w, Some(b)).mean_dim(0, false).to_vec::<f32>());
            Ok(cross_entropy(&net.try_forward(x)?, y))
        })
        .unwrap();
    let state = net.state_dict();
    assert_eq!(state.get("1.num_batches_tracked").unwrap().to_vec::<i32>(), [1]);
    let running = state.get("1.running_mean").unwrap().to_vec::<f32>();
    for (k, mean) in running.iter().enumerate() {
        let expected = 0.1 * (means[0][k] + means[1][k]) / 2.0;
        assert!((mean - expected).abs() < 1e-6, "{mean} {expected}");
    }
}

/// A training in a folder, in half precision or not, of a few steps of two batches each.
fn fitted(
    folder: &Folder,
    devices: &[Device],
    precision: Option<DType>,
    steps: u64,
) -> (Sequential, History) {
    let net = network(devices[0]);
    let mut adam = Adam::new(net.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    let options = TrainerOptions {
        epochs: 8,
        steps: Some(steps),
        accumulate: 2,
        devices: devices.to_vec(),
        gradient_parts: Some(4),
        precision,
        clip: Some(1.0),
        log_every: 1,
        folder: Some(folder.0.clone()),
        resume: true,
        progress: false,
        ..TrainerOptions::default()
    };
    let mut data = points(96).with_device(Device::Cpu);
    let history = Trainer::new(&net, &mut adam, options)
        .fit(&mut data, None, |x, y| Ok(classified(&net.try_forward(x)?, y)))
        .unwrap();
    (net, history)
}

#[test(needs(four_gpus))]
fn a_checkpoint_goes_on_with_any_number_of_devices_to_the_same_bits() {
    let _alone = alone();
    for precision in [None, Some(DType::F16)] {
        let whole = Folder::new("devices-1");
        let (net, history) = fitted(&whole, &gpus(1), precision, 6);
        let losses = history.series("train/loss");
        for (first, then) in [(4, 2), (2, 1)] {
            let folder = Folder::new(&format!("devices-{first}-{then}"));
            fitted(&folder, &gpus(first), precision, 3);
            let (moved, history) = fitted(&folder, &gpus(then), precision, 6);
            assert_eq!(bits(&moved), bits(&net), "{first} devices, then {then}, {precision:?}");
            assert_eq!(history.series("train/loss"), losses);
        }
    }
}

#[test]
fn metrics_of_parts_are_those_of_the_whole_batch() {
    let _alone = alone();
    let run = |parts: Option<usize>| {
        let net = plain(8);
        let mut sgd = SGD::new(net.parameters(), 0.1, 0.0, 0.0);
        let options = TrainerOptions {
            steps: Some(4),
            gradient_parts: parts,
            log_every: 2,
            progress: false,
            ..TrainerOptions::default()
        };
        let mut trainer = Trainer::new(&net, &mut sgd, options);
        let step = |x: &Tensor, y: &Tensor| {
            Ok(classified(&net.try_forward(x)?, y).with_units("points", 3 * x.size(0)))
        };
        let history = trainer.fit(&mut points(96), None, step).unwrap();
        assert_eq!(trainer.units(), 4 * 16 * 3);
        history
    };
    let (whole, parts) = (run(None), run(Some(4)));
    for name in ["train/loss", "train/accuracy"] {
        let (whole, parts) = (whole.series(name), parts.series(name));
        assert_eq!(whole.len(), 2);
        assert!(
            whole.iter().zip(&parts).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-5),
            "{whole:?} {parts:?}"
        );
    }
}

#[test(needs(four_gpus))]
fn devices_of_different_kinds_share_a_batch_and_speed_changes_no_bits() {
    let _alone = alone();
    let net = plain(8);
    let (x, y) = batch(16);
    let gradient = |parallel: DataParallel| {
        let mut parallel = parallel;
        let step = |x: &Tensor, y: &Tensor| Ok(cross_entropy(&net.try_forward(x)?, y));
        let all = |_: usize| {
            net.zero_grad();
            parallel.try_backward(&x, &y, step).unwrap();
            net.parameters().iter().flat_map(|p| p.grad().unwrap().to_vec::<f32>()).collect::<Vec<f32>>()
        };
        let all: Vec<Vec<f32>> = (0..5).map(all).collect();
        assert_eq!(parallel.shares().unwrap().len(), parallel.devices().len());
        all
    };
    let on = |devices: &[Device]| DataParallel::new(&net, devices).unwrap();
    let one = gradient(on(&gpus(1)).with_gradient_parts(8).unwrap());
    let shared = gradient(on(&gpus(3)).with_gradient_parts(8).unwrap().with_shares_by_speed());
    assert_eq!(shared, one, "whatever shares were measured");
    for mixed in
        [on(&[Device::Gpu(0), Device::Cpu]), on(&[Device::Gpu(0), Device::Cpu]).with_shares_by_speed()]
    {
        for gradient in gradient(mixed) {
            assert!(gradient.iter().zip(&one[0]).all(|(a, b)| (a - b).abs() < 1e-5));
        }
    }
}

#[test(needs(four_gpus))]
fn tensors_and_modules_move_between_any_two_devices() {
    let _alone = alone();
    let places = [Device::Cpu, Device::Gpu(0), Device::Gpu(1), Device::Gpu(3)];
    // Several pieces, of which the last does not end with a word.
    let numbers: Vec<f32> = (0..(5 << 20) / 2 + 3).map(|k| k as f32).collect();
    let long = with_device(Device::Cpu, || Tensor::from_vec(numbers.clone(), [numbers.len()]));
    for dtype in [DType::F32, DType::F16, DType::Bool, DType::I32, DType::U8] {
        let long = if dtype == DType::U8 { long.remainder(200.0) } else { long.remainder(2048.0) };
        let (long, mut moved) = (long.to_dtype(dtype), long.to_dtype(dtype));
        for k in [1, 2, 3, 0] {
            moved = moved.to_device(places[k]);
            assert_eq!(moved.device(), places[k]);
        }
        assert!(moved.to_vec::<f32>() == long.to_vec::<f32>(), "{dtype}");
    }
    let x = with_device(Device::Gpu(2), || Tensor::vector(&[1.0, 2.0])).requires_grad(true);
    let there = x.to_device(Device::Gpu(1)).square();
    (there.to_device(Device::Cpu).sum() * 3.0).backward();
    assert_eq!(x.grad().unwrap().device(), Device::Gpu(2));
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [6.0, 12.0]);
    let net = network(Device::Gpu(1));
    let before = bits(&net);
    net.to_device(Device::Gpu(0));
    assert!(net.parameters().iter().all(|p| p.device() == Device::Gpu(0)));
    assert_eq!(bits(&net), before);
    let mixed = there.try_add(&x).unwrap_err();
    assert!(mixed.message().contains("gpu:1") && mixed.message().contains("gpu:2"), "{mixed}");
}

#[test]
fn what_cannot_be_shared_out_is_an_error_that_says_why() {
    let _alone = alone();
    let device = default_device();
    let net = network(device);
    let said = |error: volta::Error, words: &[&str]| {
        assert!(words.iter().all(|word| error.message().contains(word)), "{words:?}: {error}");
    };
    let new = |devices: &[Device]| DataParallel::new(&net, devices).map(drop).unwrap_err();
    said(new(&[]), &["no device"]);
    said(new(&[device, device]), &[&device.to_string(), "twice", "VOLTA_VIRTUAL_DEVICES"]);
    let missing = new(&[device, Device::Gpu(14)]);
    assert_eq!(missing.kind(), ErrorKind::Device);
    said(missing, &["gpu:14"]);
    let mut parallel = DataParallel::new(&net, &[device]).unwrap().with_gradient_parts(4).unwrap();
    assert!(DataParallel::new(&net, &[device]).unwrap().with_gradient_parts(0).is_err());
    let step = |x: &Tensor, y: &Tensor| Ok(cross_entropy(&net.try_forward(x)?, y));
    let (x, y) = batch(16);
    said(
        parallel.try_backward(&x.narrow(0, 0, 3), &y.narrow(0, 0, 3), step).unwrap_err(),
        &["3 rows", "4 parts"],
    );
    said(parallel.try_backward(&x, &y.narrow(0, 0, 3), step).unwrap_err(), &["16", "3", "first axis"]);
    // Before anything is trained: the last batch of an epoch has 4 rows.
    let mut sgd = SGD::new(net.parameters(), 0.1, 0.0, 0.0);
    let options = TrainerOptions { gradient_parts: Some(5), progress: false, ..TrainerOptions::default() };
    let mut fit = |data: &mut DataLoader| {
        let step = |x: &Tensor, y: &Tensor| Ok(Outcome::from(cross_entropy(&net.try_forward(x)?, y)));
        Trainer::new(&net, &mut sgd, options.clone()).fit(data, None, step)
    };
    said(fit(&mut points(100)).unwrap_err(), &["4 rows", "5 parts", "drop_last"]);
    assert!(fit(&mut points(100).with_drop_last(true)).is_ok());
}

#[test]
fn a_step_that_fails_leaves_the_model_as_it_was() {
    let _alone = alone();
    let net = network(default_device());
    let before = bits(&net);
    let mut parallel = DataParallel::new(&net, &[default_device()]).unwrap().with_gradient_parts(4).unwrap();
    let (x, y) = batch(16);
    let mut calls = 0;
    let failed = parallel.try_backward(&x, &y, |x, y| {
        calls += 1;
        let loss = cross_entropy(&net.try_forward(x)?, y);
        if calls == 3 { net.try_forward(&Tensor::zeros([1, 7])) } else { Ok(loss) }
    });
    assert!(failed.is_err());
    assert_eq!(bits(&net), before);
    assert!(net.parameters().iter().all(|p| p.grad().is_none() && p.is_leaf() && p.is_tracked()));
    parallel.try_backward(&x, &y, |x, y| Ok(cross_entropy(&net.try_forward(x)?, y))).unwrap();
}
