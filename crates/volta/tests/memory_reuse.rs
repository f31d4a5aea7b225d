//! Memory changes hands only where nobody can ask for the old value again, and every held value is there.

use volta::*;
use volta_testing::test;

#[test]
fn a_new_shape_of_known_values_can_be_read() {
    let x = Tensor::vector(&[1.0, 2.0]);
    assert_eq!(x.reshape([1, 2]).to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!(x.reshape([1, 2]).reshape([2, 1]).to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!((&x * 2.0).reshape([1, 2]).reshape([2, 1]).to_vec::<f32>(), [2.0, 4.0]);
}

#[test]
fn a_number_used_by_a_reduction_is_kept_if_it_is_held() {
    let (x, three) = (Tensor::from_slice(&[1.0f32; 15], [5, 3]), Tensor::from_slice(&[3.0f32], [0usize; 0]));
    for axis in [0, 1] {
        let eighth = &three / 8.0;
        let sum = (&x * &eighth).sum_dim(axis, true);
        sum.realize();
        assert_eq!(eighth.item::<f32>(), 0.375);
    }
}

#[test]
fn a_view_keeps_the_values_it_looks_at() {
    for axis in [0, 1] {
        let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], [2, 3]);
        let view = if axis == 0 { x.t() } else { x.reshape([3, 2]) };
        let y = &x * -3.0;
        drop(x);
        realize_all(&[y]);
        let want = if axis == 0 { [0.0, 3.0, 1.0, 4.0, 2.0, 5.0] } else { [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] };
        assert_eq!(view.to_vec::<f32>(), want);
    }
}

/// One result takes the memory of what another one only copies.
#[test]
fn a_copy_is_of_what_was_there_before() {
    for shape in [[4, 1], [1, 4], [1, 1]] {
        let count = shape[0] * shape[1];
        let numbers: Vec<f32> = (1..=count).map(|k| k as f32).collect();
        let x = Tensor::from_vec(numbers.clone(), shape);
        let doubled = &x * 2.0;
        let copy = x.t();
        let sum = &doubled.t() + &copy;
        drop(x);
        realize_all(&[doubled.clone(), copy.clone(), sum.clone()]);
        let times = |factor: f32| numbers.iter().map(|x| x * factor).collect::<Vec<_>>();
        for (what, found, factor) in [("doubled", doubled, 2.0), ("copy", copy, 1.0), ("sum", sum, 3.0)] {
            assert_eq!(found.to_vec::<f32>(), times(factor), "{what} of {shape:?}");
        }
    }
}

#[test]
fn a_tape_keeps_the_values_it_needs() {
    let w = Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true);
    let x = Tensor::vector(&[1.0, 2.0, 3.0]);
    let y = &w * x.neg();
    drop(x);
    y.realize();
    y.sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [-1.0, -2.0, -3.0]);

    let z = &w * 2.0;
    z.realize();
    let y = z.square();
    drop(z);
    y.realize();
    w.zero_grad();
    y.sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [8.0, 16.0, 24.0]);
}

#[test]
fn a_step_moves_parameters_where_they_are() {
    const COUNT: usize = 1 << 16;
    let w = Tensor::ones([COUNT]).requires_grad(true);
    let x = Tensor::rand([COUNT]);
    x.realize();
    let mut adam = Adam::new(vec![w.clone()], 0.1, (0.9, 0.999), 1e-8, 0.0);
    for _ in 0..3 {
        adam.zero_grad();
        (&w * &x).sum().backward();
        adam.step();
    }
    let plan = last_plan().expect("the step was planned");
    // The parameter, its gradient, its two averages and the factor: no second copy of any.
    assert!(plan.peak_bytes < 11 * COUNT * 4 / 2, "{plan}");
}

/// The plans' largest peak over each of some steps of training.
fn peaks_of_steps(model: &dyn Fn(&Tensor) -> Tensor, parameters: Vec<Tensor>, x: &Tensor) -> Vec<usize> {
    let mut adam = AdamW::new(parameters, 1e-3, (0.9, 0.999), 1e-8, 0.01);
    let step = |_| {
        adam.zero_grad();
        model(x).square().mean().backward();
        adam.step();
        last_plan().expect("the step was planned").peak_bytes
    };
    (0..3).map(step).collect()
}

/// First values are made in the plan of the first step, and its averages begin with zeros: its gradients have less to wait
/// for than those of later steps, and more to be fused with.
#[test]
fn the_first_step_needs_little_more_memory_than_later_ones() {
    let (rows, width) = (512, 32);
    let layers: Vec<(LayerNorm, Linear, Linear)> = (0..6)
        .map(|_| {
            (
                LayerNorm::new([width]),
                Linear::new(width, 4 * width, true),
                Linear::new(4 * width, width, true),
            )
        })
        .collect();
    let model = |x: &Tensor| {
        layers.iter().fold(x.clone(), |x, (norm, up, down)| {
            &x + down.forward(&up.forward(&norm.forward(&x)).gelu_tanh())
        })
    };
    let parameters: Vec<Tensor> = layers
        .iter()
        .flat_map(|(norm, up, down)| [norm.parameters(), up.parameters(), down.parameters()].concat())
        .collect();
    let held: usize = parameters.iter().map(|p| p.numel() * 4).sum();
    let x = Tensor::rand([rows, width]);
    x.realize();
    let peaks = peaks_of_steps(&model, parameters, &x);
    // The first values of the parameters lie beside the new ones.
    assert!(peaks[0] <= peaks[2] + peaks[2] / 20 + held, "{peaks:?}");
    // A layer keeps what it adds to, what its norm gives, and what its activation takes and gives; a gradient of the widest
    // and one of the narrow ones are on their way. Parameters, their gradients and two averages are there besides.
    let unit = rows * width * 4;
    assert!(
        peaks[2] <= 4 * held + (6 * 10 + 14) * unit,
        "{peaks:?}, a unit is {unit}, parameters are {held}"
    );
}

#[test]
fn sums_over_a_batch_run_before_what_they_add_up_is_in_the_way() {
    // Gradients of scales and shifts are sums over all rows, which the updates ask for at the end.
    let (rows, width, depth) = (1024, 32, 12);
    let scales: Vec<Tensor> = (0..depth).map(|_| Tensor::ones([width]).requires_grad(true)).collect();
    let model = |x: &Tensor| {
        scales.iter().fold(x.clone(), |x, scale| (&x * scale).layer_norm([width], None, None, 1e-5))
    };
    let x = Tensor::rand([rows, width]);
    x.realize();
    let peaks = peaks_of_steps(&model, scales.clone(), &x);
    // Every layer keeps what its norm sees and what that subtracts from it, and not its gradient as well.
    assert!(peaks[2] < (2 * depth + 2) * rows * width * 4, "{peaks:?}");
}

volta_testing::main!();
