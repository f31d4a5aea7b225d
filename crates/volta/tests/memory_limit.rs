//! Steps under a memory limit: they compute the same to the bit, and take no more memory than they may. A program of its own, since limits
//! and the peak are those of the whole process.

#[path = "random_graphs/maker.rs"]
#[allow(dead_code, reason = "shared with the tests of random graphs")]
mod maker;
#[path = "random_graphs/program.rs"]
#[allow(dead_code, reason = "shared with the tests of random graphs")]
mod program;
#[path = "ops/random.rs"]
#[allow(dead_code, reason = "shared with the table of ops")]
mod random;
#[path = "ops/reference.rs"]
#[allow(dead_code, reason = "shared with the table of ops")]
mod reference;
#[path = "random_graphs/tables.rs"]
mod tables;

use maker::{LARGE, Maker};
use program::Program;
use random::Random;
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

/// What random programs are made of.
fn tensor(data: Vec<f64>, shape: &[usize], dtype: DType) -> Tensor {
    Tensor::from_vec(data.into_iter().map(|x| x as f32).collect(), shape).to_dtype(dtype)
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

fn deep_cnn() -> Training {
    cnn(8, 16)
}

/// Few layers do not come to a third of their memory: the gradient of a normalised layer needs five tensors of the layer's size at once.
fn shallow_cnn() -> Training {
    cnn(4, 32)
}

fn cnn(normalised: usize, batch: usize) -> Training {
    let mut layers: Vec<Box<dyn Module>> = vec![Box::new(Conv2d::new(1, 8, 3, 1, 1, true))];
    for _ in 0..normalised {
        layers.push(Box::new(BatchNorm2d::new(8)));
        layers.push(Box::new(ReLU));
        layers.push(Box::new(Conv2d::new(8, 8, 3, 1, 1, false)));
    }
    layers.push(Box::new(MaxPool2d::new(4, 4, 0)));
    layers.push(Box::new(Flatten::default()));
    layers.push(Box::new(Linear::new(8 * 16, 10, true)));
    let model = Sequential::new(layers);
    let (x, y) = (given(Tensor::randn([batch, 1, 16, 16])), classes(batch, 10));
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
    /// Kernels of the last plan that compute something again, and that move something to the host's memory or back.
    recomputed: usize,
    moves: usize,
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
    let fit = last_plan().and_then(|plan| plan.fit);
    let (recomputed, moves) = fit.map_or((0, 0), |fit| (fit.recomputed_kernels, fit.moves));
    synchronize()?;
    let peak = counters().peak_bytes;
    let bits = |t: &Tensor| t.to_vec::<f32>().into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let losses: Vec<u32> = losses.iter().flat_map(|loss| bits(&loss.to_dtype(DType::F32))).collect();
    Ok(Trained { losses, weights: parameters.iter().map(bits).collect(), peak, recomputed, moves })
}

/// More than anything takes: a step is one plan, of which nothing is computed again.
const PLENTY: u64 = 1 << 40;

/// Whether this is the GPU in software that stands in for cards in tests, with all that it offers.
fn is_software() -> bool {
    let is = |name, value| std::env::var(name).is_ok_and(|v| v == value);
    default_device().is_gpu() && is("VOLTA_ADAPTER", "llvmpipe") && !is("VOLTA_LIMITS", "webgpu")
}

/// Half and a third of the memory, say, give the same bits, and are not exceeded. Tells how many moves there were.
fn check(make: fn() -> Training, half: bool, parts: &[u64]) -> usize {
    let _alone = alone();
    let wanted = trained(make, Some(PLENTY), half).expect("there is memory");
    assert_eq!((wanted.recomputed, wanted.moves), (0, 0));
    let mut moves = 0;
    for part in parts {
        let limit = wanted.peak / part;
        let found =
            trained(make, Some(limit), half).unwrap_or_else(|e| panic!("1/{part} of {}: {e}", wanted.peak));
        assert!(found.recomputed + found.moves > 0, "1/{part}");
        assert!(
            found.peak <= limit,
            "{} bytes in use, and the limit is {limit}, of {}",
            found.peak,
            wanted.peak
        );
        assert_eq!(found.losses, wanted.losses, "1/{part} of {}", wanted.peak);
        assert!(found.weights == wanted.weights, "1/{part} of {}", wanted.peak);
        moves += found.moves;
    }
    moves
}

#[test]
fn a_perceptron_learns_the_same_in_half_and_a_third_of_the_memory() {
    check(mlp, false, &[2, 3]);
}

#[test]
fn a_convolutional_network_learns_the_same_in_half_and_a_third_of_the_memory() {
    check(deep_cnn, false, &[2, 3]);
}

#[test]
fn a_convolutional_network_of_few_layers_learns_the_same_in_half_of_the_memory() {
    check(shallow_cnn, false, &[2]);
}

#[test]
fn a_transformer_learns_the_same_in_half_and_a_third_of_the_memory() {
    let moves = check(gpt, false, &[2, 3]);
    // What is the host's memory anyway does not move there, and a card does not tell who it is.
    assert!(moves > 0 || !is_software());
    assert!(moves == 0 || default_device().is_gpu());
}

#[test]
fn a_transformer_in_half_precision_learns_the_same_in_half_and_a_third_of_the_memory() {
    check(gpt, true, &[2, 3]);
}

/// What came of a program of random ops in one plan.
struct Evaluated {
    /// Outputs and gradients.
    bits: Vec<Vec<u32>>,
    peak: u64,
    /// Whether the limit has changed the plan.
    is_changed: bool,
}

fn evaluated(program: &Program, leaves: &[Tensor], limit: u64) -> Result<Evaluated> {
    let _limited = Limited::to(Some(limit));
    leaves.iter().for_each(|leaf| leaf.set_grad(None));
    reset_peak();
    let mut values = leaves.to_vec();
    for step in &program.steps {
        let inputs: Vec<&Tensor> = step.inputs.iter().map(|&i| &values[i]).collect();
        values.push((step.tensor)(&inputs));
    }
    let mut wanted: Vec<Tensor> = program.outputs.iter().map(|&k| values[k].clone()).collect();
    drop(values);
    let parts = wanted.iter().filter(|t| t.is_tracked()).map(|t| (t * 0.75).sum());
    if let Some(loss) = parts.reduce(|a, b| a + b) {
        loss.try_backward()?;
    }
    wanted.extend(leaves.iter().filter_map(Tensor::grad));
    try_realize_all(&wanted)?;
    let is_changed = last_plan().and_then(|plan| plan.fit).is_some_and(|fit| fit.is_changed());
    synchronize()?;
    let peak = counters().peak_bytes;
    // There is more than one NaN.
    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    let bits = wanted.iter().map(|t| t.to_vec::<f32>().into_iter().map(bits).collect()).collect();
    Ok(Evaluated { bits, peak, is_changed })
}

#[test]
fn random_graphs_compute_the_same_under_random_limits() {
    let _alone = alone();
    // Shaders take long to compile.
    let seeds = if default_device().is_gpu() { 7000..7004 } else { 7000..7030 };
    let mut changed = 0;
    for seed in seeds {
        let mut random = Random::new(seed);
        let length = 12 + random.below(30);
        let program = Maker::make(&mut random, LARGE, length, true);
        let mut leaf = |shape: &Vec<usize>| {
            let data = (0..shape.iter().product()).map(|_| random.between(-1.5, 1.5)).collect();
            given(tensor(data, shape, DType::F32)).requires_grad(true)
        };
        let leaves: Vec<Tensor> = program.leaves.iter().map(&mut leaf).collect();
        let Evaluated { bits: wanted, peak, .. } =
            evaluated(&program, &leaves, PLENTY).expect("there is memory");
        for _ in 0..3 {
            let mut limit = (peak as f64 * random.between(0.3, 0.95)) as u64;
            let found = loop {
                match evaluated(&program, &leaves, limit) {
                    Ok(found) => break found,
                    Err(error) => {
                        let more = asked_for(&error);
                        assert!(
                            more > limit && more <= peak + peak / 8 + 65_536,
                            "seed {seed}: {error}\n{program}"
                        );
                        limit = more;
                    }
                }
            };
            changed += usize::from(found.is_changed);
            assert!(found.peak <= limit, "seed {seed}: {} bytes in use of {limit}\n{program}", found.peak);
            assert!(found.bits == wanted, "seed {seed} under {limit} of {peak} bytes\n{program}");
        }
    }
    assert!(changed > 0, "no limit has changed a plan");
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
    // A step with parts has new values of them besides, and a pass some pieces of the model; ranks do not reach their peaks together.
    let is_as_said = |(saved, expected): (&f64, f64)| (expected - 0.3..expected / 0.75 + 0.3).contains(saved);
    assert!(saved.iter().zip(expected).all(is_as_said), "{peaks:?}");
}

volta_testing::main!();
