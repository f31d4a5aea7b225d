//! Forty steps of every optimizer with every option, against its formula in f64.

use crate::support::*;
use volta::optim::*;
use volta::{DType, Tensor};
use volta_testing::test;

/// The formula for one parameter: its new values, from its values, its gradient and the number of the step.
type Formula = Box<dyn FnMut(&mut [f64], &[f64], i32)>;

const STEPS: usize = 40;

fn agrees<R: Rule + std::fmt::Debug>(options: R, formula: impl Fn(&[usize]) -> Formula, tolerance: f64) {
    let _together = together();
    let problem = Problem::new();
    let count = if R::NAME == "Muon" { 1 } else { 2 };
    let mut optimizer = RuleOptimizer::with(problem.parameters[..count].to_vec(), options.clone());
    problem.train(&mut optimizer, 0..STEPS);
    for (k, shape) in SHAPES.iter().enumerate().take(count) {
        let n = shape.iter().product();
        let (mut p, target) = (start(n, k), target(n, k));
        let mut formula = formula(shape);
        for step in 0..STEPS {
            let g: Vec<f64> = p.iter().zip(&target).map(|(p, t)| steepness(step) * (p - t)).collect();
            formula(&mut p, &g, step as i32 + 1);
        }
        assert_close(&problem.values()[k], &p, tolerance, &format!("{options:?}"));
    }
}

#[test]
fn sgd_follows_its_formula() {
    for (momentum, dampening, weight_decay, nesterov) in [
        (0.0, 0.0, 0.0, false),
        (0.0, 0.0, 0.1, false),
        (0.9, 0.0, 0.0, false),
        (0.9, 0.0, 0.1, true),
        (0.8, 0.4, 0.0, false),
        (0.8, 0.4, 0.1, false),
    ] {
        let options = SGDOptions { learning_rate: 0.05, momentum, dampening, weight_decay, nesterov };
        agrees(
            options,
            |shape| {
                let mut v = vec![0.0; shape.iter().product()];
                Box::new(move |p, g, t| {
                    for k in 0..p.len() {
                        let mut g = g[k] + weight_decay * p[k];
                        if momentum != 0.0 {
                            v[k] = if t == 1 { g } else { momentum * v[k] + (1.0 - dampening) * g };
                            g = if nesterov { g + momentum * v[k] } else { v[k] };
                        }
                        p[k] -= 0.05 * g;
                    }
                })
            },
            tolerance(),
        );
    }
}

fn adam_formula(
    rate: f64,
    betas: (f64, f64),
    decay: f64,
    amsgrad: bool,
    decoupled: bool,
) -> impl Fn(&[usize]) -> Formula {
    move |shape| {
        let n = shape.iter().product();
        let (mut m, mut v, mut largest) = (vec![0.0; n], vec![0.0; n], vec![0.0f64; n]);
        Box::new(move |p, g, t| {
            for k in 0..p.len() {
                let mut g = g[k];
                if decoupled {
                    p[k] *= 1.0 - rate * decay;
                } else {
                    g += decay * p[k];
                }
                m[k] = betas.0 * m[k] + (1.0 - betas.0) * g;
                v[k] = betas.1 * v[k] + (1.0 - betas.1) * g * g;
                largest[k] = largest[k].max(v[k]);
                let spread = if amsgrad { largest[k] } else { v[k] };
                let (first, second) = (m[k] / (1.0 - betas.0.powi(t)), spread / (1.0 - betas.1.powi(t)));
                p[k] -= rate * first / (second.sqrt() + 1e-8);
            }
        })
    }
}

#[test]
fn adam_and_adamw_follow_their_formulas() {
    for (betas, weight_decay, amsgrad) in [
        ((0.9, 0.999), 0.0, false),
        ((0.9, 0.999), 0.1, false),
        ((0.5, 0.9), 0.0, true),
        ((0.0, 0.9), 0.1, true),
    ] {
        let (learning_rate, epsilon) = (0.05, 1e-8);
        let options = AdamOptions { learning_rate, betas, epsilon, weight_decay, amsgrad };
        agrees(options, adam_formula(0.05, betas, weight_decay, amsgrad, false), tolerance());
        let options = AdamWOptions { learning_rate, betas, epsilon, weight_decay, amsgrad };
        agrees(options, adam_formula(0.05, betas, weight_decay, amsgrad, true), tolerance());
    }
}

#[test]
fn rmsprop_follows_its_formula() {
    for (momentum, centered, weight_decay) in
        [(0.0, false, 0.0), (0.9, false, 0.1), (0.0, true, 0.0), (0.9, true, 0.1)]
    {
        let options = RMSpropOptions { momentum, centered, weight_decay, alpha: 0.9, ..Default::default() };
        agrees(
            options,
            |shape| {
                let n = shape.iter().product();
                let (mut v, mut average, mut b) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
                Box::new(move |p, g, _| {
                    for k in 0..p.len() {
                        let g = g[k] + weight_decay * p[k];
                        v[k] = 0.9 * v[k] + 0.1 * g * g;
                        average[k] = 0.9 * average[k] + 0.1 * g;
                        let spread = if centered { v[k] - average[k] * average[k] } else { v[k] };
                        let step = g / (f64::sqrt(spread) + 1e-8);
                        b[k] = if momentum != 0.0 { momentum * b[k] + step } else { step };
                        p[k] -= 0.01 * b[k];
                    }
                })
            },
            10.0 * tolerance(),
        );
    }
}

#[test]
fn adagrad_follows_its_formula() {
    for (rate_decay, weight_decay, initial_sum) in [(0.0, 0.0, 0.0), (0.05, 0.1, 0.5)] {
        let options = AdagradOptions {
            learning_rate: 0.1,
            rate_decay,
            weight_decay,
            initial_sum,
            ..Default::default()
        };
        agrees(
            options,
            |shape| {
                let mut s = vec![initial_sum; shape.iter().product()];
                Box::new(move |p, g, t| {
                    for k in 0..p.len() {
                        let g = g[k] + weight_decay * p[k];
                        s[k] += g * g;
                        p[k] -= 0.1 / (1.0 + f64::from(t - 1) * rate_decay) * g / (s[k].sqrt() + 1e-10);
                    }
                })
            },
            tolerance(),
        );
    }
}

#[test]
fn lion_follows_its_formula() {
    for weight_decay in [0.0, 0.5] {
        agrees(
            LionOptions { learning_rate: 0.013, betas: (0.9, 0.95), weight_decay },
            |shape| {
                let mut m = vec![0.0f64; shape.iter().product()];
                Box::new(move |p, g, _| {
                    for k in 0..p.len() {
                        let direction = 0.9 * m[k] + 0.1 * g[k];
                        let sign = if direction == 0.0 { 0.0 } else { direction.signum() };
                        p[k] -= 0.013 * (sign + weight_decay * p[k]);
                        m[k] = 0.95 * m[k] + 0.05 * g[k];
                    }
                })
            },
            tolerance(),
        );
    }
}

/// a·b of row-major matrices.
fn product(a: &[f64], b: &[f64], rows: usize, inner: usize, columns: usize) -> Vec<f64> {
    let element =
        |i: usize| (0..inner).map(|j| a[i / columns * inner + j] * b[j * columns + i % columns]).sum();
    (0..rows * columns).map(element).collect()
}

fn transposed(a: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|i| a[i % rows * columns + i / rows]).collect()
}

/// Newton and Schulz's iteration on a wide matrix.
fn orthogonal(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut x: Vec<f64> = x.iter().map(|x| x / norm.max(1e-7)).collect();
    for _ in 0..5 {
        let gram = product(&x, &transposed(&x, rows, columns), rows, columns, rows);
        let squared = product(&gram, &gram, rows, rows, rows);
        let mix: Vec<f64> = gram.iter().zip(&squared).map(|(g, s)| -4.7750 * g + 2.0315 * s).collect();
        let more = product(&mix, &x, rows, rows, columns);
        x = x.iter().zip(&more).map(|(x, m)| 3.4445 * x + m).collect();
    }
    x
}

#[test]
fn muon_follows_its_formula_for_wide_matrices() {
    for (nesterov, weight_decay) in [(true, 0.1), (false, 0.0)] {
        agrees(
            MuonOptions { learning_rate: 0.02, momentum: 0.9, nesterov, weight_decay, iterations: 5 },
            |shape| {
                let (rows, columns) = (shape[0], shape[1]);
                let mut m = vec![0.0; rows * columns];
                Box::new(move |p, g, _| {
                    for k in 0..p.len() {
                        m[k] = 0.9 * m[k] + 0.1 * g[k];
                    }
                    let ahead: Vec<f64> = if nesterov {
                        m.iter().zip(g).map(|(m, g)| 0.9 * m + 0.1 * g).collect()
                    } else {
                        m.clone()
                    };
                    let step = orthogonal(&ahead, rows, columns);
                    for k in 0..p.len() {
                        p[k] -= 0.02 * (weight_decay * p[k] + step[k]);
                    }
                })
            },
            100.0 * tolerance(),
        );
    }
}

#[test]
fn muon_brings_the_singular_values_of_a_tall_matrix_near_one_and_scales_the_step() {
    let _together = together();
    let (rows, columns) = (12, 3);
    let p = tensor(&vec![0.0; rows * columns], &[rows, columns]).requires_grad(true);
    let g = tensor(&start(rows * columns, 0), &[rows, columns]);
    let mut muon = Muon::with(
        vec![p.clone()],
        MuonOptions { learning_rate: 1.0, momentum: 0.0, nesterov: false, ..Default::default() },
    );
    (&p * &g).sum().backward();
    volta::Optimizer::step(&mut muon);
    let step = p.to_vec::<f64>();
    let gradient = transposed(&g.to_vec::<f64>(), rows, columns);
    let expected = transposed(&orthogonal(&gradient, columns, rows), columns, rows);
    let scaled: Vec<f64> = expected.iter().map(|x| -2.0 * x).collect();
    assert_close(&step, &scaled, 100.0 * tolerance(), "a tall step is √(12/3) times as long");
    let gram = product(&transposed(&step, rows, columns), &step, columns, rows, columns);
    let trace: f64 = (0..columns).map(|k| gram[k * columns + k] / 4.0).sum();
    assert!((0.5 * 3.0..1.5 * 3.0).contains(&trace), "squares of three singular values: {trace}");
}

#[test]
fn a_learning_rate_of_zero_moves_nothing() {
    let _together = together();
    let still = |optimizer: &mut dyn volta::Optimizer, p: &Tensor| {
        optimizer.set_learning_rate(0.0);
        for _ in 0..2 {
            p.zero_grad();
            // The second element has no gradient at all: nothing may be divided by nothing.
            (p * &Tensor::vector(&[1.0, 0.0])).sum().backward();
            optimizer.step();
        }
        assert_eq!(p.to_vec::<f32>(), [1.0, 2.0]);
    };
    let new = || Tensor::vector(&[1.0, 2.0]).requires_grad(true);
    let p = new();
    still(&mut Adam::with(vec![p.clone()], AdamOptions::default()), &p);
    let p = new();
    still(&mut AdamW::with(vec![p.clone()], AdamWOptions::default()), &p);
    let p = new();
    still(&mut RMSprop::with(vec![p.clone()], RMSpropOptions { centered: true, ..Default::default() }), &p);
    let p = new();
    still(&mut Adagrad::with(vec![p.clone()], AdagradOptions::default()), &p);
}

#[test]
fn half_precision_parameters_move() {
    let _together = together();
    let p = Tensor::vector(&[1.0, -2.0]).to_dtype(DType::BF16).requires_grad(true);
    let mut adam = AdamW::new(vec![p.clone()], 0.125, (0.5, 0.5), 1e-6, 0.0);
    p.square().sum().backward();
    volta::Optimizer::step(&mut adam);
    assert_eq!(p.dtype(), DType::BF16);
    let moved = p.to_vec::<f32>();
    assert!((moved[0] - 0.875).abs() < 0.01 && (moved[1] + 1.875).abs() < 0.02, "{moved:?}");
}

/// A small rate makes large divisors, which f16 does not hold.
#[test]
fn parameters_in_half_precision_move_as_those_in_f32_do() {
    let _together = together();
    type Make = fn(Vec<Tensor>) -> Box<dyn volta::Optimizer>;
    let rows: [(&str, Make); 5] = [
        ("Adam", |p| Box::new(Adam::new(p, 1e-5, (0.9, 0.999), 1e-8, 0.0))),
        ("AdamW", |p| Box::new(AdamW::new(p, 1e-5, (0.9, 0.999), 1e-8, 0.01))),
        ("RMSprop", |p| Box::new(RMSprop::new(p, 1e-6, 0.99, 0.0))),
        ("Adagrad", |p| Box::new(Adagrad::new(p, 1e-5, 0.0))),
        ("SGD", |p| Box::new(SGD::new(p, 1e-6, 0.0, 0.0))),
    ];
    for (name, make) in rows {
        for dtype in [DType::F16, DType::BF16] {
            let run = |dtype: DType| {
                let p = Tensor::full([4], 0.0015).to_dtype(dtype).requires_grad(true);
                let mut optimizer = make(vec![p.clone()]);
                let start: f32 = p.to_vec()[0];
                (0..3).for_each(|_| {
                    p.set_grad(Some(Tensor::full([4], 10.0).to_dtype(dtype)));
                    optimizer.step();
                });
                assert_eq!(p.dtype(), dtype);
                p.to_vec::<f32>()[0] - start
            };
            let (half, single) = (run(dtype), run(DType::F32));
            assert!(single < -2e-5, "{name}: {single}");
            // Every step is rounded to a multiple of 2⁻²⁰, or of 2⁻¹⁷.
            let step = if dtype == DType::F16 { 2f32.powi(-20) } else { 2f32.powi(-17) };
            assert!((half - single).abs() <= 1.6 * step, "{name} in {dtype}: {half}, not {single}");
        }
    }
}

/// Squares of such gradients are no halves, neither the large nor the small ones.
#[test]
fn muon_moves_halves_by_what_it_moves_floats_by() {
    let _together = together();
    let moved = |dtype: DType, size: f64| {
        let p = Tensor::zeros([2, 2]).to_dtype(dtype).requires_grad(true);
        let slope = Tensor::from_vec(vec![1.0f32, 2.0, -1.0, 0.5], [2, 2]).mul(size);
        p.set_grad(Some(slope.to_dtype(dtype)));
        let mut muon =
            Muon::with(vec![p.clone()], MuonOptions { learning_rate: 0.125, ..Default::default() });
        muon.step();
        p.to_dtype(DType::F32).to_vec::<f32>()
    };
    for size in [1.0, 2048.0, 2f64.powi(-14)] {
        let (float, half) = (moved(DType::F32, size), moved(DType::F16, size));
        let near = float.iter().zip(&half).all(|(f, h)| (f - h).abs() < 0.002);
        assert!(near && float.iter().any(|f| f.abs() > 0.05), "{size}: {half:?}, not {float:?}");
    }
}
