//! Memory changes hands only where nobody can ask for the old value again, and every held value is there.

use volta::*;

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
