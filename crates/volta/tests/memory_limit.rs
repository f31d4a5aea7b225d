//! Steps under a memory limit: they compute the same to the bit, and take no more memory than they may. A program of its own, since limits
//! and the peak are those of the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::models::{Gpt, GptOptions};
use volta::*;
use volta_testing::test;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A limit that goes when the test ends.
struct Limited;

impl Limited {
    fn to(bytes: Option<u64>) -> Limited {
        set_memory_limit(default_device(), bytes).expect("the device is there");
        Limited
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        set_memory_limit(default_device(), None).expect("the device is there");
    }
}

/// A network, and the loss that it is trained with.
struct Training {
    parameters: Vec<Tensor>,
    loss: Box<dyn Fn() -> Result<Tensor>>,
}

fn given(tensor: Tensor) -> Tensor {
    tensor.realize();
    tensor
}

fn classes(batch: usize, count: i64) -> Tensor {
    given(Tensor::randint(0, count, [batch]))
}

/// Many layers of little width over a large batch: nearly all memory is that of activations.
fn mlp() -> Training {
    let layer = |from, to| Box::new(Linear::new(from, to, true)) as Box<dyn Module>;
    let mut layers = vec![layer(32, 48)];
    for k in 0..10 {
        layers.push(if k % 2 == 0 { Box::new(GELU) } else { Box::new(Tanh) });
        layers.push(Box::new(Dropout::new(0.1)));
        layers.push(layer(48, 48));
    }
    layers.push(layer(48, 10));
    let model = Sequential::new(layers);
    let (x, y) = (given(Tensor::randn([1024, 32])), classes(1024, 10));
    let parameters = model.parameters();
    Training { parameters, loss: Box::new(move || try_cross_entropy(&model.try_forward(&x)?, &y)) }
}

fn cnn() -> Training {
    let mut layers: Vec<Box<dyn Module>> = vec![Box::new(Conv2d::new(1, 8, 3, 1, 1, true))];
    for _ in 0..4 {
        layers.push(Box::new(BatchNorm2d::new(8)));
        layers.push(Box::new(ReLU));
        layers.push(Box::new(Conv2d::new(8, 8, 3, 1, 1, false)));
    }
    layers.push(Box::new(MaxPool2d::new(4, 4, 0)));
    layers.push(Box::new(Flatten::default()));
    layers.push(Box::new(Linear::new(8 * 16, 10, true)));
    let model = Sequential::new(layers);
    let (x, y) = (given(Tensor::randn([32, 1, 16, 16])), classes(32, 10));
    let parameters = model.parameters();
    Training { parameters, loss: Box::new(move || try_cross_entropy(&model.try_forward(&x)?, &y)) }
}

fn gpt() -> Training {
    let shape =
        GptOptions { vocabulary: 61, context: 32, layers: 4, heads: 2, width: 32, ..GptOptions::default() };
    let model = Gpt::new(GptOptions { dropout: 0.1, ..shape });
    let ids = || given(Tensor::randint(0, 61, [32, 32]));
    let (x, y) = (ids(), ids());
    Training { parameters: model.parameters(), loss: Box::new(move || model.try_loss(&x, &y)) }
}

/// What came of some steps.
struct Trained {
    losses: Vec<u32>,
    weights: Vec<Vec<u32>>,
    peak: u64,
    /// Kernels of the last plan that compute something again.
    recomputed: usize,
}

const STEPS: usize = 3;

/// The losses of some steps.
fn steps(loss: &dyn Fn() -> Result<Tensor>, adam: &mut Adam, half: bool) -> Result<Vec<Tensor>> {
    let mut scaler = GradScaler::new();
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        adam.zero_grad();
        let loss = if half { autocast(DType::F16, loss)? } else { loss()? };
        if half {
            scaler.try_scale(&loss)?.try_backward()?;
            scaler.try_step(adam)?;
        } else {
            loss.try_backward()?;
            adam.try_step()?;
        }
        losses.push(loss);
    }
    Ok(losses)
}

/// Trains from the same beginning under a limit.
fn trained(make: fn() -> Training, limit: Option<u64>, half: bool) -> Result<Trained> {
    let _limited = Limited::to(limit);
    manual_seed(5);
    let Training { parameters, loss } = make();
    realize_all(&parameters);
    let mut adam = Adam::new(parameters.clone(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
    reset_peak();
    // A gradient that was never computed holds on to the step, and is held by the parameters that the step is made of.
    let losses = steps(&*loss, &mut adam, half).inspect_err(|_| adam.zero_grad())?;
    let recomputed = last_plan().and_then(|plan| plan.fit).map_or(0, |fit| fit.recomputed_kernels);
    synchronize()?;
    let peak = counters().peak_bytes;
    let bits = |t: &Tensor| t.to_vec::<f32>().into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let losses: Vec<u32> = losses.iter().flat_map(|loss| bits(&loss.to_dtype(DType::F32))).collect();
    Ok(Trained { losses, weights: parameters.iter().map(bits).collect(), peak, recomputed })
}

/// More than anything takes: a step is one plan, of which nothing is computed again.
const PLENTY: u64 = 1 << 40;

fn check(make: fn() -> Training, half: bool, parts: &[u64]) {
    let _alone = alone();
    let wanted = trained(make, Some(PLENTY), half).expect("there is memory");
    assert_eq!(wanted.recomputed, 0);
    for part in parts {
        let limit = wanted.peak / part;
        let found =
            trained(make, Some(limit), half).unwrap_or_else(|e| panic!("1/{part} of {}: {e}", wanted.peak));
        assert!(found.recomputed > 0, "1/{part}");
        assert!(
            found.peak <= limit,
            "{} bytes in use, and the limit is {limit}, of {}",
            found.peak,
            wanted.peak
        );
        assert_eq!(found.losses, wanted.losses, "1/{part} of {}", wanted.peak);
        assert!(found.weights == wanted.weights, "1/{part} of {}", wanted.peak);
    }
}

#[test]
fn a_perceptron_learns_the_same_in_half_and_a_third_of_the_memory() {
    // On a GPU, products of one wave are not computed again, and the parts of the arena are rounded up one by one.
    let parts: &[u64] = if default_device().is_gpu() { &[2] } else { &[2, 3] };
    check(mlp, false, parts);
}

#[test]
fn a_convolutional_network_learns_the_same_in_half_of_the_memory() {
    // Less cannot be: the gradient of a normalised layer reads what the convolution and the activation were and the gradient that comes
    // back, and writes one as large: four tensors of 262,144 bytes of the twelve that the whole step takes.
    check(cnn, false, &[2]);
}

#[test]
fn a_transformer_learns_the_same_in_half_and_a_third_of_the_memory() {
    check(gpt, false, &[2, 3]);
}

#[test]
fn a_transformer_in_half_precision_learns_the_same_in_half_and_a_third_of_the_memory() {
    check(gpt, true, &[2, 3]);
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let _alone = alone();
    if default_device().is_gpu() {
        // Without a limit its steps are several plans.
        return;
    }
    let kernels = |limit| {
        let trained = trained(gpt, limit, false).expect("there is memory");
        let plan = last_plan().expect("it ran");
        (trained.losses, plan.kernels.len(), plan.peak_bytes)
    };
    assert_eq!(kernels(None), kernels(Some(PLENTY)));
}

/// The bytes that an error asks for.
fn asked_for(error: &Error) -> u64 {
    let (_, behind) = error.message().split_once("set a limit of ").expect("it says what would do");
    behind.split_once(" bytes").expect("in bytes").0.parse().expect("a number")
}

#[test]
fn what_cannot_fit_is_an_error_that_says_what_would() {
    let _alone = alone();
    let Err(error) = trained(mlp, Some(600_000), false) else { panic!("it cannot fit") };
    assert_eq!(error.kind(), ErrorKind::Memory);
    for part in ["needs at least", "limit is", "batch smaller", "linear_cross_entropy"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
    let least = asked_for(&error);
    // A later step may hold more: what the optimizer remembers.
    let mut limit = least;
    let enough = loop {
        match trained(mlp, Some(limit), false) {
            Ok(trained) => break trained,
            Err(error) => {
                let more = asked_for(&error);
                assert!(more > limit && more < 4 * least, "{error}");
                limit = more;
            }
        }
    };
    assert!(enough.peak <= limit, "{} of {limit}", enough.peak);
    assert_eq!(enough.losses, trained(mlp, Some(PLENTY), false).expect("there is memory").losses);
}

#[test]
fn other_tensors_count_and_a_plan_that_was_made_before_them_is_made_anew() {
    let _alone = alone();
    let _limited = Limited::to(Some(PLENTY));
    let device = default_device();
    let w = given(Tensor::randn([256, 256])).requires_grad(true);
    let step = || {
        // What is held stays: the chain is let go before it is computed.
        let slope = {
            let mut x = Tensor::ones([1024, 256]);
            for _ in 0..12 {
                x = x.matmul(&w).tanh();
            }
            try_grad(&[&x.square().sum()], &[&w], None, BackwardOptions::default())?
        };
        let slope = slope.into_iter().flatten().next().expect("a gradient");
        slope.try_realize()?;
        Ok::<_, Error>(slope.to_vec::<f32>())
    };
    reset_peak();
    let wanted = step().expect("there is memory");
    let peak = counters().peak_bytes;
    set_memory_limit(device, Some(peak + peak / 4)).expect("the device is there");
    assert_eq!(step().expect("there is memory"), wanted);
    assert_eq!(last_plan().and_then(|plan| plan.fit).map(|fit| fit.recomputed_kernels), Some(0));
    let other = given(Tensor::ones([peak as usize / 2 / 4]));
    reset_peak();
    assert_eq!(step().expect("there is memory"), wanted);
    assert!(last_plan().and_then(|plan| plan.fit).is_some_and(|fit| fit.recomputed_kernels > 0));
    assert!(counters().peak_bytes <= peak + peak / 4);
    assert_eq!(other.numel(), peak as usize / 2 / 4);
}

#[test]
fn limits_are_told() {
    let _alone = alone();
    let device = default_device();
    let told = memory_limit(device).expect("the device is there");
    {
        let _limited = Limited::to(Some(123_456_789));
        assert_eq!(memory_limit(device).expect("the device is there"), Some(123_456_789));
    }
    assert_eq!(memory_limit(device).expect("the device is there"), told);
    assert_eq!(memory_limit(Device::Cpu).expect("it is there"), None);
}

volta_testing::main!();

#[test]
fn ranks_that_share_out_what_they_have_take_less_memory_with_every_stage() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use volta::data::{Array, DataLoader, TensorDataset};
    use volta::parallel::{ExchangeOptions, Sharding, ThreadWorld, World};
    use volta::train::{Event, Trainer, TrainerOptions};
    let _alone = alone();
    const RANKS: usize = 4;
    const WIDTH: usize = 128;
    const LAYERS: usize = 8;
    // Bytes of all parameters.
    let model_bytes = (LAYERS * (WIDTH * WIDTH + WIDTH) * 4) as f64;
    let peak = |sharding: Sharding| {
        let layer_bytes = 4 * WIDTH * (WIDTH + 1);
        let exchange = ExchangeOptions { sharding, bucket_bytes: layer_bytes, ..ExchangeOptions::default() };
        let most = AtomicU64::new(0);
        let train = |world: Arc<dyn World>| {
            let layers = (0..LAYERS).map(|_| Box::new(Linear::new(WIDTH, WIDTH, true)) as Box<dyn Module>);
            let model = Sequential::new(layers.collect());
            let x = Array::new(vec![0.5f32; 8 * WIDTH], &[8, WIDTH]);
            let dataset = TensorDataset::new(x.clone(), x);
            let mut data = DataLoader::over(dataset, 4);
            let mut adam = Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0);
            let options =
                TrainerOptions { epochs: 100, steps: Some(8), progress: false, ..TrainerOptions::default() };
            let is_first = world.rank() == 0;
            Trainer::new(&model, &mut adam, options)
                .with_world(world.clone(), exchange)
                .with_observer(|event| {
                    // Before the first steps and behind the last one every rank has the whole model.
                    match event {
                        Event::Step { step: 4 } if is_first => reset_peak(),
                        Event::Step { step: 7 } if is_first => most.store(counters().peak_bytes, Relaxed),
                        _ => {}
                    }
                    Ok(())
                })
                .fit(&mut data, None, |x, y| Ok(mse_loss(&model.try_forward(x)?, y).into()))?;
            Ok(())
        };
        let results = ThreadWorld::run(RANKS, |world| with_device(Device::Cpu, || train(world)));
        results.into_iter().for_each(|result| result.unwrap_or_else(|e| panic!("{e}")));
        most.load(Relaxed) as f64 / model_bytes
    };
    let peaks =
        [Sharding::Nothing, Sharding::OptimizerState, Sharding::Gradients, Sharding::Parameters].map(peak);
    println!("in models, for {RANKS} ranks: {peaks:.2?}");
    // Of so many models, what the optimizer remembers are two, and gradients and parameters one each; a rank keeps a quarter.
    let saved = [0, 1, 2].map(|stage| (peaks[stage] - peaks[stage + 1]) / RANKS as f64);
    let expected = [2.0 * 0.75, 0.75, 0.75];
    // A step with parts has new values of them besides, and a pass some pieces of the model.
    assert!(saved.iter().zip(expected).all(|(saved, expected)| (saved - expected).abs() < 0.3), "{peaks:?}");
}
