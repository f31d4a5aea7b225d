//! A training that is stopped after five steps and goes on in another process ends where one that was not stopped
//! ends, to the bit: parameters, optimizer, schedule, the scale of half precision, dropout's random numbers and the order
//! of the examples.

use crate::scratch::Scratch;
use std::process::Command;
use volta::io::Metadata;
use volta::optim::ExponentialLR;
use volta::{
    Adam, Checkpoint, DType, Dropout, GradScaler, Linear, Module, ReLU, Result, Scheduler, Sequential, State,
    Stateful, Tensor, Weights, autocast, manual_seed, mse_loss, save_safetensors,
};
use volta_testing::test;

/// Batches of four examples out of twelve, in another order every epoch.
struct Batches {
    seed: u64,
    order: Vec<i64>,
}

impl Batches {
    fn next(&mut self) -> Vec<usize> {
        if self.order.is_empty() {
            self.order = (0..12).collect();
            for k in (1..12).rev() {
                self.seed = self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                self.order.swap(k, (self.seed >> 33) as usize % (k + 1));
            }
        }
        self.order.drain(..4).map(|k| k as usize).collect()
    }
}

impl Stateful for Batches {
    fn state(&self) -> State {
        let order: Vec<String> = self.order.iter().map(i64::to_string).collect();
        State::new().with("seed", self.seed as i64).with("order", order.join(" ").as_str())
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let order = state.text("order")?;
        self.order = order.split_whitespace().map(|k| k.parse().expect("numbers were saved")).collect();
        self.seed = state.int("seed")? as u64;
        Ok(())
    }
}

struct Training {
    net: Sequential,
    adam: Adam,
    scheduler: Scheduler,
    scaler: GradScaler,
    batches: Batches,
    losses: Vec<f32>,
    scales: Vec<f32>,
}

impl Training {
    fn new(seed: u64) -> Training {
        manual_seed(seed);
        let net = Sequential::new(vec![])
            .with(Linear::new(3, 16, true))
            .with(ReLU)
            .with(Dropout::new(0.5))
            .with(Linear::new(16, 1, true));
        let mut adam = Adam::new(net.parameters(), 0.1, (0.9, 0.99), 1e-8, 0.0);
        let scheduler = Scheduler::new(ExponentialLR::new(0.9), &mut adam);
        // Too large for f16 at first, and again after two good steps: it halves and doubles all the time.
        let scaler = GradScaler::with(65536.0 * seed as f64, 2.0, 0.5, 2);
        let batches = Batches { seed, order: Vec::new() };
        Training { net, adam, scheduler, scaler, batches, losses: Vec::new(), scales: Vec::new() }
    }

    fn step(&mut self) {
        let rows = self.batches.next();
        let x: Vec<f32> =
            rows.iter().flat_map(|&k| [k as f32 / 12.0, (k % 3) as f32, (k % 5) as f32]).collect();
        let y: Vec<f32> = rows.iter().map(|&k| (k % 4) as f32).collect();
        let (x, y) = (Tensor::from_vec(x, [4, 3]), Tensor::from_vec(y, [4, 1]));
        self.adam.zero_grad();
        let loss = autocast(DType::F16, || mse_loss(&self.net.forward(&x).to_dtype(DType::F32), &y));
        self.scaler.scale(&loss).backward();
        self.scaler.step(&mut self.adam);
        self.scheduler.step(&mut self.adam);
        self.losses.push(loss.item());
        self.scales.push(self.scaler.current());
    }
}

const FOLDER: &str = "VOLTA_TEST_RESUME_FOLDER";
const ROLE: &str = "VOLTA_TEST_RESUME_ROLE";

/// Not a test of its own: one of the processes of the test below.
#[test(ignored = "run by a_resumed_training_ends_where_an_uninterrupted_one_does")]
fn trains_a_part() {
    let folder = std::path::PathBuf::from(std::env::var(FOLDER).expect("set by the test that runs this one"));
    let path = folder.join("checkpoint.safetensors");
    let finish = |training: Training, name: &str| {
        let mut state = training.net.state_dict();
        state.insert("losses", Tensor::vector(&training.losses));
        state.insert("scales", Tensor::vector(&training.scales));
        save_safetensors(folder.join(name), &state, &Metadata::new()).unwrap();
    };
    match std::env::var(ROLE).unwrap().as_str() {
        "whole" => {
            let mut training = Training::new(1);
            (0..10).for_each(|_| training.step());
            finish(training, "whole.safetensors");
        }
        "first half" => {
            let mut training = Training::new(1);
            (0..5).for_each(|_| training.step());
            Checkpoint::new()
                .with_module("model", &training.net)
                .with("optimizer", &training.adam)
                .with("scheduler", &training.scheduler)
                .with("scaler", &training.scaler)
                .with("batches", &training.batches)
                .with_rng()
                .save(&path)
                .unwrap();
        }
        _ => {
            // Everything begins otherwise than it did there.
            let mut training = Training::new(2);
            let saved = Checkpoint::load(&path).unwrap();
            saved.restore_module("model", &training.net).unwrap();
            saved.restore("optimizer", &mut training.adam).unwrap();
            saved.restore("scheduler", &mut training.scheduler).unwrap();
            saved.restore("scaler", &mut training.scaler).unwrap();
            saved.restore("batches", &mut training.batches).unwrap();
            saved.restore_rng().unwrap();
            (5..10).for_each(|_| training.step());
            finish(training, "resumed.safetensors");
        }
    }
}

#[test]
fn a_resumed_training_ends_where_an_uninterrupted_one_does() {
    let scratch = Scratch::new("resume");
    for role in ["whole", "first half", "second half"] {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::trains_a_part", "--ignored", "--nocapture"])
            .env(FOLDER, scratch.path())
            .env(ROLE, role)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && said.contains("1 passed"), "{role}: {said}");
    }
    let read = |name: &str| Weights::open(scratch.file(name)).unwrap();
    let (whole, resumed) = (read("whole.safetensors"), read("resumed.safetensors"));
    let bits = |weights: &Weights, name: &str| -> Vec<u32> {
        let numbers = weights.tensor(name, volta::Device::Cpu).unwrap().to_vec::<f32>();
        numbers.into_iter().map(f32::to_bits).collect()
    };
    for name in ["0.weight", "0.bias", "3.weight", "3.bias"] {
        assert_eq!(bits(&whole, name), bits(&resumed, name), "{name}");
    }
    for name in ["losses", "scales"] {
        assert_eq!(bits(&whole, name)[5..], bits(&resumed, name), "{name}");
    }
    let scales = whole.tensor("scales", volta::Device::Cpu).unwrap().to_vec::<f32>();
    assert!(scales.windows(2).any(|s| s[0] > s[1]) && scales.windows(2).any(|s| s[0] < s[1]), "{scales:?}");
}
