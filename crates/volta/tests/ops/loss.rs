//! Losses, with every reduction and option.

use crate::reference::{Array, sigmoid};
use crate::table::*;
use volta::{
    BceOptions, CrossEntropyOptions, DType, KlDivOptions, NllOptions, Reduction, Tensor, bce_loss,
    bce_loss_with, bce_with_logits, bce_with_logits_with, cross_entropy, cross_entropy_with, huber_loss,
    huber_loss_with, kl_div, kl_div_with, l1_loss, l1_loss_with, mse_loss, mse_loss_with, nll_loss,
    nll_loss_with, smooth_l1_loss, smooth_l1_loss_with,
};
use volta_testing::test;

const REDUCTIONS: [Reduction; 4] = [Reduction::Mean, Reduction::Sum, Reduction::BatchMean, Reduction::None];

/// How many samples the losses are of.
fn batch(losses: &Array) -> f64 {
    losses.shape.first().map_or(1.0, |&n| n as f64)
}

fn reduced(x: Array, reduction: Reduction) -> Array {
    match reduction {
        Reduction::None => x,
        Reduction::Sum => Array::scalar(x.data.iter().sum()),
        Reduction::Mean => Array::scalar(x.data.iter().sum::<f64>() / x.numel() as f64),
        Reduction::BatchMean => Array::scalar(x.data.iter().sum::<f64>() / batch(&x)),
    }
}

const PAIR: &[&[&[usize]]] = &[&[&[3, 5], &[3, 5]], &[&[4], &[4]], &[&[], &[]], &[&[40, 33], &[40, 33]]];

fn smooth(d: f64, beta: f64) -> f64 {
    if d.abs() < beta { d * d / (2.0 * beta) } else { d.abs() - beta / 2.0 }
}

fn huber(d: f64, delta: f64) -> f64 {
    if d.abs() <= delta { d * d / 2.0 } else { delta * (d.abs() - delta / 2.0) }
}

fn cross(p: f64, t: f64) -> f64 {
    -t * p.ln().max(-100.0) - (1.0 - t) * (1.0 - p).ln().max(-100.0)
}

fn elementwise_rows() -> Vec<Row> {
    type Call = fn(&Tensor, &Tensor, Reduction) -> Tensor;
    const R: Values = Between(-2.0, 2.0);
    const FAR: Values = Between(2.5, 3.0);
    const P: Values = Between(0.1, 0.9);
    let table: &[(&str, Call, fn(f64, f64) -> f64, [Values; 2])] = &[
        ("mse_loss", mse_loss_with, |a, b| (a - b).powi(2), [R, R]),
        ("l1_loss", l1_loss_with, |a, b| (a - b).abs(), [R, FAR]),
        (
            "smooth_l1_loss, near",
            |a, b, r| smooth_l1_loss_with(a, b, 9.0, r),
            |a, b| smooth(a - b, 9.0),
            [R, R],
        ),
        (
            "smooth_l1_loss, far",
            |a, b, r| smooth_l1_loss_with(a, b, 0.3, r),
            |a, b| smooth(a - b, 0.3),
            [R, FAR],
        ),
        (
            "smooth_l1_loss, beta 0",
            |a, b, r| smooth_l1_loss_with(a, b, 0.0, r),
            |a, b| (a - b).abs(),
            [R, FAR],
        ),
        ("huber_loss, near", |a, b, r| huber_loss_with(a, b, 9.0, r), |a, b| huber(a - b, 9.0), [R, R]),
        ("huber_loss, far", |a, b, r| huber_loss_with(a, b, 0.4, r), |a, b| huber(a - b, 0.4), [R, FAR]),
        (
            "bce_loss",
            |a, b, reduction| bce_loss_with(a, b, BceOptions { reduction, ..Default::default() }),
            cross,
            [P, P],
        ),
        (
            "bce_with_logits",
            |a, b, reduction| bce_with_logits_with(a, b, BceOptions { reduction, ..Default::default() }),
            |x, t| cross(sigmoid(x), t),
            [R, P],
        ),
        (
            "kl_div",
            |a, b, reduction| kl_div_with(a, b, KlDivOptions { reduction, ..Default::default() }),
            |x, t| t * (t.ln() - x),
            [R, P],
        ),
        (
            "kl_div of logarithms",
            |a, b, reduction| kl_div_with(a, b, KlDivOptions { log_target: true, reduction }),
            |x, t| t.exp() * (t - x),
            [R, R],
        ),
    ];
    let mut rows = vec![];
    for &(name, call, reference, values) in table {
        for reduction in REDUCTIONS {
            rows.push(
                row(
                    format!("{name}, {reduction:?}"),
                    move |x| call(&x[0], &x[1], reduction),
                    move |x| reduced(x[0].zip(&x[1], reference), reduction),
                )
                .cases(PAIR)
                .values(&values)
                .slack(16.0),
            );
        }
    }
    type Plain = fn(&Tensor, &Tensor) -> Tensor;
    let defaults: &[(&str, Plain, fn(f64, f64) -> f64, [Values; 2])] = &[
        ("mse_loss by default", mse_loss, |a, b| (a - b).powi(2), [R, R]),
        ("l1_loss by default", l1_loss, |a, b| (a - b).abs(), [R, FAR]),
        ("smooth_l1_loss by default", |a, b| smooth_l1_loss(a, b, 9.0), |a, b| smooth(a - b, 9.0), [R, R]),
        ("huber_loss by default", |a, b| huber_loss(a, b, 9.0), |a, b| huber(a - b, 9.0), [R, R]),
        ("bce_loss by default", bce_loss, cross, [P, P]),
        ("bce_with_logits by default", bce_with_logits, |x, t| cross(sigmoid(x), t), [R, P]),
        ("kl_div by default", kl_div, |x, t| t * (t.ln() - x), [R, P]),
    ];
    rows.extend(defaults.iter().map(|&(name, call, reference, values)| {
        row(name, move |x| call(&x[0], &x[1]), move |x| reduced(x[0].zip(&x[1], reference), Reduction::Mean))
            .cases(&PAIR[..1])
            .values(&values)
            .slack(16.0)
    }));
    rows.push(
        row(
            "bce_with_logits, weighted",
            |x| {
                let options =
                    BceOptions { weight: Some(&x[2]), pos_weight: Some(&x[3]), ..Default::default() };
                bce_with_logits_with(&x[0], &x[1], options)
            },
            |x| {
                let log = |x: f64| sigmoid(x).ln();
                let yes = x[1].zip(&x[0], |t, v| t * log(v)).mul(&x[3]);
                let no = x[1].zip(&x[0], |t, v| (1.0 - t) * log(-v));
                reduced(yes.add(&no).mul(&x[2]).map(|v| -v), Reduction::Mean)
            },
        )
        .cases(&[&[&[3, 5], &[3, 5], &[5], &[5]]])
        .values(&[R, P, Between(0.5, 2.0)])
        .slack(16.0),
    );
    rows
}

/// Cross entropy by the definition: rows of log-probabilities, weights of classes, smoothing, one ignored index.
struct Classes {
    smoothing: f64,
    ignore: i64,
    reduction: Reduction,
}

impl Classes {
    fn loss(&self, x: &Array, target: &Array, weight: Option<&Array>, logits: bool) -> Array {
        let axis = usize::from(x.rank() > 1);
        let classes = x.shape[axis];
        let log = if logits { x.softmax(axis).map(f64::ln) } else { x.clone() };
        let weigh = |c: usize| weight.map_or(1.0, |w| w.data[c]);
        let mut total = 0.0;
        let losses = Array::from_fn(&target.shape, |at| {
            let class = target.at(at) as i64;
            if class == self.ignore {
                return 0.0;
            }
            let entry = |c: usize| {
                let mut own = at.to_vec();
                own.insert(axis, c);
                -log.at(&own) * weigh(c)
            };
            total += weigh(class as usize);
            let even = (0..classes).map(entry).sum::<f64>() / classes as f64;
            (1.0 - self.smoothing) * entry(class as usize) + self.smoothing * even
        });
        match self.reduction {
            Reduction::None => losses,
            Reduction::Sum => Array::scalar(losses.data.iter().sum()),
            Reduction::Mean => Array::scalar(losses.data.iter().sum::<f64>() / total),
            Reduction::BatchMean => Array::scalar(losses.data.iter().sum::<f64>() / batch(&losses)),
        }
    }
}

const CLASSES: &[&[&[usize]]] = &[
    &[&[4, 5], &[4], &[5]],
    &[&[5], &[], &[5]],
    &[&[2, 5, 3], &[2, 3], &[5]],
    &[&[2, 5, 2, 3], &[2, 2, 3], &[5]],
    &[&[70, 5], &[70], &[5]],
];

fn class_rows() -> Vec<Row> {
    let mut rows = vec![];
    for reduction in REDUCTIONS {
        for (smoothing, weighted, ignore) in [
            (0.0, false, -100),
            (0.0, true, -100),
            (0.2, false, -100),
            (0.2, true, -100),
            (0.0, true, 2),
            (0.2, false, 2),
        ] {
            let classes = move || Classes { smoothing, ignore, reduction };
            let what = format!("smoothing {smoothing}, weighted {weighted}, without {ignore}, {reduction:?}");
            rows.push(
                row(
                    format!("cross_entropy, {what}"),
                    move |x| {
                        let options = CrossEntropyOptions {
                            weight: weighted.then_some(&x[2]),
                            ignore_index: Some(ignore),
                            label_smoothing: smoothing,
                            reduction,
                        };
                        // The weight is an input of every row; where it is not used it must still be reached.
                        cross_entropy_with(&x[0], &x[1], options).add(x[2].sum().mul(0.0))
                    },
                    move |x| classes().loss(&x[0], &x[1], weighted.then_some(&x[2]), true),
                )
                .cases(CLASSES)
                .values(&[Between(-2.0, 2.0), IndexAs(5, DType::I64), Between(0.5, 1.5)])
                .slack(16.0),
            );
            if smoothing == 0.0 {
                rows.push(
                    row(
                        format!("nll_loss, {what}"),
                        move |x| {
                            let weight = weighted.then_some(&x[2]);
                            let options = NllOptions { weight, ignore_index: Some(ignore), reduction };
                            nll_loss_with(&x[0], &x[1], options).add(x[2].sum().mul(0.0))
                        },
                        move |x| classes().loss(&x[0], &x[1], weighted.then_some(&x[2]), false),
                    )
                    .cases(CLASSES)
                    .values(&[Between(-2.0, -0.1), Index(5), Between(0.5, 1.5)])
                    .slack(16.0),
                );
            }
        }
        for (smoothing, weighted) in [(0.0, false), (0.3, true)] {
            rows.push(
                row(
                    format!("cross_entropy of probabilities, {smoothing}, {weighted}, {reduction:?}"),
                    move |x| {
                        let options = CrossEntropyOptions {
                            weight: weighted.then_some(&x[2]),
                            label_smoothing: smoothing,
                            reduction,
                            ..Default::default()
                        };
                        cross_entropy_with(&x[0], &x[1], options).add(x[2].sum().mul(0.0))
                    },
                    move |x| {
                        let axis = usize::from(x[0].rank() > 1);
                        let classes = x[0].shape[axis] as f64;
                        let target = x[1].map(|t| t * (1.0 - smoothing) + smoothing / classes);
                        let mut shape = vec![1; x[0].rank()];
                        shape[axis] = x[0].shape[axis];
                        let weight = x[2].reshape(&shape).map(|w| if weighted { w } else { 1.0 });
                        let log = x[0].softmax(axis).map(f64::ln);
                        let losses = log.mul(&target).mul(&weight).sum_of(&[axis], false).map(|v| -v);
                        reduced(losses, reduction)
                    },
                )
                .cases(&[&[&[4, 5], &[4, 5], &[5]], &[&[5], &[5], &[5]], &[&[2, 5, 3], &[2, 5, 3], &[5]]])
                .values(&[Between(-2.0, 2.0), Between(0.1, 0.5), Between(0.5, 1.5)])
                .slack(16.0),
            );
        }
    }
    rows
}

fn rows() -> Vec<Row> {
    elementwise_rows().into_iter().chain(class_rows()).map(|row| row.shader_cost(4)).collect()
}

checks!(rows());

#[test(needs(f64))]
fn the_plain_forms_are_the_means() {
    let logits = Tensor::from_vec(vec![1.0f64, -1.0, 0.5, 2.0], [2, 2]);
    let target = Tensor::from_vec(vec![1i64, 0], [2]);
    let expected = [(1f64.exp() + (-1f64).exp()).ln() + 1.0, (0.5f64.exp() + 2f64.exp()).ln() - 0.5];
    let expected = (expected[0] + expected[1]) / 2.0;
    assert!((cross_entropy(&logits, &target).item::<f64>() - expected).abs() < 1e-12);
    assert!((nll_loss(&logits.log_softmax(1), &target).item::<f64>() - expected).abs() < 1e-12);
}

#[test]
fn a_batch_of_nothing_but_ignored_targets_is_nan_by_mean_and_zero_by_sum() {
    let logits = Tensor::zeros([2, 3]);
    let target = Tensor::from_vec(vec![-100i32, -100], [2]);
    assert!(cross_entropy(&logits, &target).item::<f32>().is_nan());
    let sum = CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() };
    assert_eq!(cross_entropy_with(&logits, &target, sum).item::<f32>(), 0.0);
}

#[test]
fn logits_too_large_for_an_exponential_give_finite_losses() {
    let logits = Tensor::from_vec(vec![1000.0f32, 0.0, -1000.0], [1, 3]).requires_grad(true);
    let loss = cross_entropy(&logits, &Tensor::from_vec(vec![1i32], [1]));
    loss.backward();
    assert_eq!(loss.item::<f32>(), 1000.0);
    assert_eq!(logits.grad().expect("a gradient").to_vec::<f32>(), [1.0, -1.0, 0.0]);
    let far = Tensor::vector(&[200.0, -200.0]);
    let losses = BceOptions { reduction: Reduction::None, ..Default::default() };
    assert_eq!(
        bce_with_logits_with(&far, &Tensor::vector(&[0.0, 1.0]), losses).to_vec::<f32>(),
        [200.0, 200.0]
    );
    assert_eq!(bce_with_logits_with(&far, &Tensor::vector(&[1.0, 0.0]), losses).to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn probabilities_of_zero_and_one_have_a_loss_of_at_most_a_hundred() {
    let p = Tensor::vector(&[0.0, 1.0, 0.0, 1.0]);
    let losses = BceOptions { reduction: Reduction::None, ..Default::default() };
    let target = Tensor::vector(&[1.0, 0.0, 0.0, 1.0]);
    assert_eq!(bce_loss_with(&p, &target, losses).to_vec::<f32>(), [100.0, 100.0, 0.0, 0.0]);
}
