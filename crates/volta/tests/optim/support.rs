//! A problem that every optimizer is tried on, and turns for the tests that look at counters.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use volta::{Counters, DType, Optimizer, Tensor, counters, default_device};

static TURN: RwLock<()> = RwLock::new(());

/// For tests that do not mind others at the same time.
pub fn together() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
}

/// For tests that look at the counters, which are those of the whole process.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

/// What the counters count while `f` runs.
pub fn counted<T>(f: impl FnOnce() -> T) -> (T, Counters) {
    let before = counters();
    let value = f();
    let after = counters();
    let spent = Counters {
        plans_compiled: after.plans_compiled - before.plans_compiled,
        plans_replayed: after.plans_replayed - before.plans_replayed,
        kernels_run: after.kernels_run - before.kernels_run,
        uploads: after.uploads - before.uploads,
        reads: after.reads - before.reads,
        submissions: after.submissions - before.submissions,
        bind_groups: after.bind_groups - before.bind_groups,
        shaders_compiled: after.shaders_compiled - before.shaders_compiled,
        ..after
    };
    (value, spent)
}

/// How many tensors were copied between the host and a device.
pub fn copies(spent: &Counters) -> u64 {
    spent.uploads + spent.reads
}

/// f64 where the device has it.
pub fn real() -> DType {
    if default_device().is_gpu() { DType::F32 } else { DType::F64 }
}

/// How far a result may be from one in f64, relative to 1.
pub fn tolerance() -> f64 {
    if default_device().is_gpu() { 2e-5 } else { 1e-11 }
}

pub fn assert_close(ours: &[f64], theirs: &[f64], tolerance: f64, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what}: {ours:?} and {theirs:?}");
    }
}

pub fn start(n: usize, which: usize) -> Vec<f64> {
    (0..n).map(|i| (1.7 * i as f64 + which as f64).cos()).collect()
}

pub fn target(n: usize, which: usize) -> Vec<f64> {
    (0..n).map(|i| 0.5 * (0.9 * i as f64 + 2.0 * which as f64).sin()).collect()
}

/// How steep the problem is at a step.
pub fn steepness(step: usize) -> f64 {
    1.0 + 0.5 * (step as f64).sin()
}

/// A tensor of some numbers, in the type that the tests compute in.
pub fn tensor(values: &[f64], shape: &[usize]) -> Tensor {
    let narrow: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    match real() {
        DType::F64 => Tensor::from_slice(values, shape),
        _ => Tensor::from_slice(&narrow, shape),
    }
}

/// A matrix and a vector that are drawn to their targets.
pub struct Problem {
    pub parameters: Vec<Tensor>,
    targets: Vec<Tensor>,
}

pub const SHAPES: [&[usize]; 2] = [&[2, 3], &[3]];

impl Problem {
    pub fn new() -> Problem {
        let each = |make: fn(usize, usize) -> Vec<f64>| -> Vec<Tensor> {
            SHAPES.iter().zip(0..).map(|(s, k)| tensor(&make(s.iter().product(), k), s)).collect()
        };
        Problem {
            parameters: each(start).iter().map(|p| p.requires_grad(true)).collect(),
            targets: each(target),
        }
    }

    pub fn loss(&self, step: usize) -> Tensor {
        let distance = |(p, t): (&Tensor, &Tensor)| (p - t).square().sum();
        let parts = self.parameters.iter().zip(&self.targets).map(distance);
        parts.reduce(|a, b| a + b).expect("two parameters") * (0.5 * steepness(step))
    }

    /// Steps `from..to` of training.
    pub fn train(&self, optimizer: &mut dyn Optimizer, steps: std::ops::Range<usize>) {
        for step in steps {
            self.parameters.iter().for_each(Tensor::zero_grad);
            self.loss(step).backward();
            optimizer.step();
        }
    }

    pub fn values(&self) -> Vec<Vec<f64>> {
        self.parameters.iter().map(Tensor::to_vec).collect()
    }
}

/// The bits of tensors.
pub fn bits(tensors: &[Tensor]) -> Vec<u64> {
    tensors.iter().flat_map(|t| t.to_vec::<f64>()).map(f64::to_bits).collect()
}
