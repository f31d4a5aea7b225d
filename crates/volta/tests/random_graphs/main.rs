//! Random graphs: fused against unfused against naive loops, in values and gradients.

mod maker;
mod program;
#[path = "../ops/random.rs"]
mod random;
#[path = "../ops/reference.rs"]
#[allow(dead_code, reason = "shared with the table of ops")]
mod reference;
mod tables;

use maker::{LARGE, Maker, SMALL, Sizes};
use program::Program;
use random::Random;
use reference::Array;
use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::{DType, Device, Tensor, default_device, realize_all, with_device, with_fusion};
use volta_testing::test;

/// When values are read: the plan is cut elsewhere each time, the values must not care.
#[derive(Clone, Copy, Debug)]
enum Reading {
    AfterBackward,
    BeforeBackward,
    OnTheWay,
    AllAtOnce,
}

const READINGS: [Reading; 4] =
    [Reading::AfterBackward, Reading::BeforeBackward, Reading::OnTheWay, Reading::AllAtOnce];

struct Evaluated {
    outputs: Vec<Array>,
    gradients: Vec<Option<Array>>,
}

fn array(t: &Tensor) -> Array {
    Array::new(&t.shape(), t.to_vec::<f64>())
}

/// f32 is made as such: a GPU, on which `VOLTA_DEVICE=gpu` runs these tests, has no f64.
fn tensor(data: Vec<f64>, shape: &[usize], dtype: DType) -> Tensor {
    match dtype {
        DType::F32 => Tensor::from_vec(data.into_iter().map(|x| x as f32).collect(), shape),
        _ => Tensor::from_vec(data, shape).to_dtype(dtype),
    }
}

/// The weight of an element of an output in the loss.
fn weight(output: usize, element: usize) -> f64 {
    ((output * 37 + element * 11) % 17) as f64 / 17.0 - 0.4
}

fn run(program: &Program, leaves: &[Array], dtype: DType, reading: Reading) -> Evaluated {
    let leaves: Vec<Tensor> =
        leaves.iter().map(|x| tensor(x.data.clone(), &x.shape, dtype).requires_grad(true)).collect();
    let mut values = leaves.clone();
    for (k, step) in program.steps.iter().enumerate() {
        let inputs: Vec<&Tensor> = step.inputs.iter().map(|&i| &values[i]).collect();
        let value = (step.tensor)(&inputs);
        if matches!(reading, Reading::OnTheWay) && k % 7 == 3 {
            value.realize();
        }
        values.push(value);
    }
    let outputs: Vec<Tensor> = program.outputs.iter().map(|&k| values[k].clone()).collect();
    drop(values);
    match reading {
        Reading::BeforeBackward => outputs.iter().rev().for_each(|t| {
            t.realize();
        }),
        Reading::AllAtOnce => realize_all(&outputs),
        Reading::AfterBackward | Reading::OnTheWay => {}
    }
    let parts = outputs.iter().enumerate().filter(|(_, t)| t.is_tracked()).map(|(n, t)| {
        let weights: Vec<f64> = (0..t.numel()).map(|k| weight(n, k)).collect();
        (t * tensor(weights, &t.shape(), dtype)).sum()
    });
    if let Some(loss) = parts.reduce(|a, b| a + b) {
        loss.backward();
    }
    Evaluated {
        gradients: leaves.iter().map(|leaf| leaf.grad().map(|g| array(&g))).collect(),
        outputs: outputs.iter().map(array).collect(),
    }
}

fn naive(program: &Program, leaves: &[Array]) -> Vec<Array> {
    let mut values = leaves.to_vec();
    for step in &program.steps {
        let inputs: Vec<&Array> = step.inputs.iter().map(|&i| &values[i]).collect();
        let value = (step.array)(&inputs);
        values.push(value);
    }
    program.outputs.iter().map(|&k| values[k].clone()).collect()
}

/// The loss of naive outputs.
fn loss(outputs: &[Array]) -> f64 {
    let of = |(n, x): (usize, &Array)| x.data.iter().enumerate().map(|(k, v)| weight(n, k) * v).sum::<f64>();
    outputs.iter().enumerate().map(of).sum()
}

/// Panics where arrays differ by more than `tolerance`, relative to the largest element of the expected one.
fn assert_close(what: &str, actual: &[Array], expected: &[Array], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (n, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert_eq!(a.shape, e.shape, "{what} {n}");
        let scale = e.data.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        for (k, (&x, &y)) in a.data.iter().zip(&e.data).enumerate() {
            assert!((x - y).abs() <= tolerance * scale, "{what} {n}: element {k} is {x:?}, expected {y:?}");
        }
    }
}

fn assert_same_gradients(what: &str, a: &Evaluated, b: &Evaluated, tolerance: f64) {
    for (n, (a, b)) in a.gradients.iter().zip(&b.gradients).enumerate() {
        assert_eq!(a.is_some(), b.is_some(), "{what} of leaf {n}");
        if let (Some(a), Some(b)) = (a, b) {
            assert_close(
                &format!("{what} of leaf {n}"),
                std::slice::from_ref(a),
                std::slice::from_ref(b),
                tolerance,
            );
        }
    }
}

fn leaves(program: &Program, random: &mut Random) -> Vec<Array> {
    program.leaves.iter().map(|shape| Array::from_fn(shape, |_| random.between(-1.5, 1.5))).collect()
}

/// The panic of a check, if it fails.
fn failure(
    check: &impl Fn(&Program, &[Array], Reading),
    p: &Program,
    x: &[Array],
    r: Reading,
) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| check(p, x, r))).err()?;
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    Some(panic.downcast_ref::<String>().cloned().or(text).unwrap_or_default())
}

/// Runs a check on many seeds; of a program that fails, the part is shown that still fails.
fn for_seeds(
    sizes: Sizes,
    seeds: std::ops::Range<u64>,
    kinks: bool,
    check: impl Fn(&Program, &[Array], Reading),
) {
    // GPUs, and most of all those in software, take long to compile shaders.
    let in_software = std::env::var("VOLTA_ADAPTER").is_ok_and(|v| v == "llvmpipe");
    let fewer = match (default_device().is_gpu(), in_software) {
        (false, _) => 1,
        (true, false) => 4,
        (true, true) => 12,
    };
    for seed in seeds.step_by(fewer) {
        let mut random = Random::new(seed);
        let length = 5 + random.below(56);
        let mut program = Maker::make(&mut random, sizes, length, kinks);
        let leaves = leaves(&program, &mut random);
        let reading = READINGS[random.below(READINGS.len())];
        let Some(mut message) = failure(&check, &program, &leaves, reading) else { continue };
        for outputs in program.smaller_outputs() {
            let before = std::mem::replace(&mut program.outputs, outputs);
            match failure(&check, &program, &leaves, reading) {
                Some(shorter) => {
                    message = shorter;
                    break;
                }
                None => program.outputs = before,
            }
        }
        program.forget_unused();
        if let Some(shorter) = failure(&check, &program, &leaves, reading) {
            message = shorter;
        }
        panic!("seed {seed}, read {reading:?}: {message}\n{program}");
    }
}

fn both(program: &Program, leaves: &[Array], dtype: DType, reading: Reading) -> (Evaluated, Evaluated) {
    let with = |fused| with_fusion(fused, || run(program, leaves, dtype, reading));
    (with(true), with(false))
}

#[test(needs(f64))]
fn values_and_gradients_in_f64_are_the_same_fused_unfused_and_naive() {
    for_seeds(SMALL, 0..150, true, |program, leaves, reading| {
        let (fused, unfused) = both(program, leaves, DType::F64, reading);
        assert_close("unfused against naive: output", &unfused.outputs, &naive(program, leaves), 1e-9);
        assert_close("fused against unfused: output", &fused.outputs, &unfused.outputs, 1e-9);
        assert_same_gradients("fused against unfused: gradient", &fused, &unfused, 1e-8);
    });
}

#[test(needs(f64))]
fn gradients_agree_with_the_slope_of_naive_losses() {
    for_seeds(SMALL, 1000..1120, true, |program, leaves, reading| {
        if program.detaches {
            return;
        }
        let found = run(program, leaves, DType::F64, reading);
        let mut random = Random::new(leaves.len() as u64);
        let direction: Vec<Array> = leaves.iter().map(|x| x.map(|_| random.between(-1.0, 1.0))).collect();
        let step = 1e-6;
        let at = |sign: f64| {
            let moved: Vec<Array> =
                leaves.iter().zip(&direction).map(|(x, d)| x.zip(d, |x, d| x + sign * step * d)).collect();
            loss(&naive(program, &moved))
        };
        let slope = (at(1.0) - at(-1.0)) / (2.0 * step);
        let dot = |(g, d): (&Option<Array>, &Array)| {
            g.as_ref().map_or(0.0, |g| g.data.iter().zip(&d.data).map(|(g, d)| g * d).sum::<f64>())
        };
        let along: f64 = found.gradients.iter().zip(&direction).map(dot).sum();
        let scale = slope.abs().max(loss(&naive(program, leaves)).abs()).max(1.0);
        assert!(
            (along - slope).abs() <= 1e-5 * scale,
            "the gradient's slope is {along}, by differences {slope}"
        );
    });
}

#[test]
fn values_in_f32_are_the_same_fused_unfused_and_naive() {
    for_seeds(SMALL, 2000..2120, true, |program, leaves, reading| {
        let (fused, unfused) = both(program, leaves, DType::F32, reading);
        assert_close("unfused against naive: output", &unfused.outputs, &naive(program, leaves), 2e-3);
        assert_close("fused against unfused: output", &fused.outputs, &unfused.outputs, 2e-3);
    });
}

#[test]
fn gradients_in_f32_are_the_same_fused_and_unfused() {
    for_seeds(SMALL, 3000..3120, false, |program, leaves, reading| {
        let (fused, unfused) = both(program, leaves, DType::F32, reading);
        assert_same_gradients("fused against unfused: gradient", &fused, &unfused, 1e-2);
        let exact = with_device(Device::Cpu, || run(program, leaves, DType::F64, reading));
        assert_same_gradients("f32 against f64: gradient", &fused, &exact, 1e-2);
    });
}

/// Seeds of large programs: those that `VOLTA_SEEDS` names (`100..500`), or a few, and hardly any on GPUs.
fn large_seeds() -> std::ops::Range<u64> {
    let given = std::env::var("VOLTA_SEEDS").ok();
    let parsed = given
        .as_deref()
        .and_then(|range| range.split_once(".."))
        .map(|(from, to)| from.parse().expect("a number before ..")..to.parse().expect("a number behind .."));
    parsed.unwrap_or(if default_device().is_gpu() { 5048..5066 } else { 5000..5100 })
}

#[test]
fn large_programs_are_the_same_fused_and_unfused() {
    for_seeds(LARGE, large_seeds(), false, |program, leaves, reading| {
        let exact = with_device(Device::Cpu, || both(program, leaves, DType::F64, reading));
        assert_close("fused against unfused: output", &exact.0.outputs, &exact.1.outputs, 1e-7);
        assert_same_gradients("fused against unfused: gradient", &exact.0, &exact.1, 1e-7);
        let narrow = run(program, leaves, DType::F32, reading);
        assert_close("f32 against f64: output", &narrow.outputs, &exact.1.outputs, 1e-2);
        assert_same_gradients("f32 against f64: gradient", &narrow, &exact.1, 1e-2);
    });
}

volta_testing::main!();
