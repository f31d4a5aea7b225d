//! A training that is stopped after five steps and goes on in another process ends where one that was not stopped
//! ends, to the bit: parameters, optimizer, dropout's random numbers and the order of the examples.

use crate::scratch::Scratch;
use std::process::Command;
use volta::io::Metadata;
use volta::{
    Checkpoint, Linear, Module, Result, Sequential, State, Stateful, Tensor, Weights, manual_seed, mse_loss,
    no_grad, realize_all, save_safetensors,
};

/// Adam, written by hand.
struct ByHand {
    parameters: Vec<Tensor>,
    moments: Vec<[Tensor; 2]>,
    steps: i64,
    rate: f64,
}

impl ByHand {
    fn new(parameters: Vec<Tensor>) -> ByHand {
        let moments = parameters.iter().map(|p| [p.zeros_like(), p.zeros_like()]).collect();
        ByHand { parameters, moments, steps: 0, rate: 0.1 }
    }

    fn step(&mut self) {
        self.steps += 1;
        self.rate *= 0.9;
        no_grad(|| {
            for (p, [m, v]) in self.parameters.iter().zip(&self.moments) {
                let g = p.grad().unwrap();
                m.assign(&(m * 0.9 + &g * 0.1));
                v.assign(&(v * 0.99 + &g * &g * 0.01));
                p.assign(&(p - m * self.rate / (v.sqrt() + 1e-6)));
                p.zero_grad();
            }
        });
        realize_all(&self.parameters);
    }
}

impl Stateful for ByHand {
    fn state(&self) -> State {
        let mut state = State::new().with("steps", self.steps).with("rate", self.rate);
        for (k, [m, v]) in self.moments.iter().enumerate() {
            state = state.with_tensor(&format!("{k}.exp_avg"), m.clone());
            state = state.with_tensor(&format!("{k}.exp_avg_sq"), v.clone());
        }
        state
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        let (steps, rate) = (state.int("steps")?, state.float("rate")?);
        let mut moments = Vec::new();
        for (k, p) in self.parameters.iter().enumerate() {
            let find = |name: &str| state.tensor(&format!("{k}.{name}"))?.try_to_device(p.device());
            moments.push([find("exp_avg")?.variable(), find("exp_avg_sq")?.variable()]);
        }
        (self.steps, self.rate, self.moments) = (steps, rate, moments);
        Ok(())
    }
}

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
    optimizer: ByHand,
    batches: Batches,
    losses: Vec<f32>,
}

impl Training {
    fn new(seed: u64) -> Training {
        manual_seed(seed);
        let net = Sequential::new(vec![]).with(Linear::new(3, 16, true)).with(Linear::new(16, 1, true));
        let optimizer = ByHand::new(net.parameters());
        Training { net, optimizer, batches: Batches { seed, order: Vec::new() }, losses: Vec::new() }
    }

    fn step(&mut self) {
        let rows = self.batches.next();
        let x: Vec<f32> =
            rows.iter().flat_map(|&k| [k as f32 / 12.0, (k % 3) as f32, (k % 5) as f32]).collect();
        let y: Vec<f32> = rows.iter().map(|&k| (k % 4) as f32).collect();
        let (x, y) = (Tensor::from_vec(x, [4, 3]), Tensor::from_vec(y, [4, 1]));
        let layer = |k: usize| self.net.get(k).unwrap();
        let hidden = layer(0).forward(&x).relu().dropout(0.5, true);
        let loss = mse_loss(&layer(1).forward(&hidden), &y);
        loss.backward();
        self.optimizer.step();
        self.losses.push(loss.item());
    }
}

const FOLDER: &str = "VOLTA_TEST_RESUME_FOLDER";
const ROLE: &str = "VOLTA_TEST_RESUME_ROLE";

/// Not a test of its own: one of the processes of the test below.
#[test]
#[ignore = "run by a_resumed_training_ends_where_an_uninterrupted_one_does"]
fn trains_a_part() {
    let folder = std::path::PathBuf::from(std::env::var(FOLDER).expect("set by the test that runs this one"));
    let path = folder.join("checkpoint.safetensors");
    let finish = |training: Training, name: &str| {
        let mut state = training.net.state_dict();
        state.insert("losses", Tensor::vector(&training.losses));
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
                .with("optimizer", &training.optimizer)
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
            saved.restore("optimizer", &mut training.optimizer).unwrap();
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
    for name in ["0.weight", "0.bias", "1.weight", "1.bias"] {
        assert_eq!(bits(&whole, name), bits(&resumed, name), "{name}");
    }
    assert_eq!(bits(&whole, "losses")[5..], bits(&resumed, "losses"));
}
