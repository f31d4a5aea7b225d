//! Second derivatives of attention against finite differences of the first.

use volta::{AttentionOptions, BackwardOptions, DType, Tensor, grad, manual_seed};
use volta_testing::test;

const TWICE: BackwardOptions = BackwardOptions { retain_graph: true, create_graph: true };

fn f64s(shape: &[usize]) -> Tensor {
    let t = Tensor::randn(shape).to_dtype(DType::F64);
    t.realize();
    t
}

/// A number made of the first gradients of attention, as a function of q, k, v and the mask.
fn first_gradients(inputs: &[Tensor], probe: &Tensor, tracked: &[usize]) -> Tensor {
    let mask = inputs.get(3);
    let options = AttentionOptions { causal: true, mask, ..Default::default() };
    let y = inputs[0].scaled_dot_product_attention(&inputs[1], &inputs[2], options);
    let loss = (y.sin() * probe).sum();
    let wanted: Vec<&Tensor> = tracked.iter().map(|&k| &inputs[k]).collect();
    let firsts = grad(&[&loss], &wanted, TWICE);
    let parts = firsts.into_iter().flatten().map(|d| (&d * &d * &d).sum());
    parts.reduce(|a, b| a + b).expect("something is tracked")
}

#[test]
fn second_derivatives_agree_with_finite_differences_whoever_is_tracked() {
    manual_seed(5);
    let shapes: [&[usize]; 4] = [&[1, 2, 3, 4], &[1, 2, 5, 4], &[1, 2, 5, 2], &[1, 2, 3, 5]];
    let probe = f64s(&[1, 2, 3, 2]);
    for tracked in [vec![0, 1, 2], vec![0], vec![1], vec![2], vec![0, 2], vec![0, 1, 2, 3], vec![3]] {
        let with_mask = tracked.contains(&3);
        let plain: Vec<Tensor> = shapes[..if with_mask { 4 } else { 3 }].iter().map(|s| f64s(s)).collect();
        let leaves: Vec<Tensor> = plain
            .iter()
            .enumerate()
            .map(|(k, t)| if tracked.contains(&k) { t.requires_grad(true) } else { t.clone() })
            .collect();
        first_gradients(&leaves, &probe, &tracked).backward();
        for &k in &tracked {
            let second = leaves[k].grad().expect("a tracked input").to_vec::<f64>();
            let at = k * 3 % second.len();
            let step = 1e-5;
            let moved = |by: f64| {
                let mut values = plain[k].to_vec::<f64>();
                values[at] += by;
                let mut inputs: Vec<Tensor> = leaves.clone();
                inputs[k] = Tensor::from_vec(values, plain[k].shape()).requires_grad(true);
                first_gradients(&inputs, &probe, &tracked).item::<f64>()
            };
            let difference = (moved(step) - moved(-step)) / (2.0 * step);
            let close = (difference - second[at]).abs() <= 1e-5 * (1.0 + difference.abs());
            assert!(close, "tracked {tracked:?}, input {k}: {difference} {}", second[at]);
        }
    }
}

/// Queries, keys and values made of one tensor, as in self-attention, and the gradient of the gradient recorded, too.
#[test]
fn third_derivatives_of_self_attention_agree_with_finite_differences() {
    manual_seed(6);
    let (x, probe) = (f64s(&[1, 1, 3, 4]), f64s(&[1, 1, 3, 4]));
    let second_gradients = |x: &Tensor, create_graph: bool| {
        let keys = x * 0.5;
        let y =
            x.scaled_dot_product_attention(&keys, x, AttentionOptions { causal: true, ..Default::default() });
        let of_x =
            |number: &Tensor, options| grad(&[number], &[x], options)[0].clone().expect("it depends on x");
        let first = of_x(&(y.sin() * &probe).sum(), TWICE);
        of_x(&first.square().sum(), BackwardOptions { retain_graph: true, create_graph }).square().sum()
    };
    let leaf = x.requires_grad(true);
    let recorded = second_gradients(&leaf, true);
    let apart = second_gradients(&leaf, false).item::<f64>();
    assert!((recorded.item::<f64>() - apart).abs() < 1e-9 * apart, "{} {apart}", recorded.item::<f64>());
    recorded.backward();
    let third = leaf.grad().expect("x is tracked").to_vec::<f64>();
    for at in [0, 5, 11] {
        let step = 1e-5;
        let moved = |by: f64| {
            let mut values = x.to_vec::<f64>();
            values[at] += by;
            second_gradients(&Tensor::from_vec(values, x.shape()).requires_grad(true), false).item::<f64>()
        };
        let difference = (moved(step) - moved(-step)) / (2.0 * step);
        let close = (difference - third[at]).abs() <= 1e-5 * (1.0 + difference.abs());
        assert!(close, "element {at}: {difference} {}", third[at]);
    }
}

volta_testing::main!();
