//! The guards name the op, the shape and the line. They are switched for the whole process, so the tests take turns.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::{DType, ErrorKind, Tensor, cross_entropy, linear_cross_entropy, nll_loss, set_guards};
use volta_testing::test;

/// Here, for comparing with what an error says.
macro_rules! here {
    () => {
        format!("{}:{}:", file!(), line!())
    };
}

/// Turns guards on, for one test at a time: they are switched for the whole process, and a wrong index is an error of whoever
/// waits for the device next.
fn guarded() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_guards(true);
    turn
}

#[test]
fn the_op_that_makes_nan_is_named_with_its_shape_and_line() {
    let _turn = guarded();
    let x = Tensor::vector(&[1.0, -1.0, 4.0]);
    let (root, here) = (x.sqrt(), here!());
    let error = (root * 2.0 + 1.0).try_to_vec::<f32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NonFinite);
    let text = error.to_string();
    assert!(text.starts_with("sqrt: sqrt of shape [3] gave NaN or infinity in 1 of 3 elements"), "{text}");
    assert!(text.contains(&here), "{text} should name {here}");
}

#[test]
fn a_gradient_that_makes_infinity_is_named_as_a_gradient() {
    let _turn = guarded();
    let x = Tensor::vector(&[0.0, 1.0]).requires_grad(true);
    let y = x.sqrt().sum();
    y.backward();
    let text = x.grad().unwrap().try_to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("gradient of sqrt"), "{text}");
}

#[test]
fn what_came_in_as_nan_or_was_meant_as_infinity_is_no_fault() {
    let _turn = guarded();
    let nan = Tensor::vector(&[f32::NAN, 1.0]);
    assert!((nan + 1.0).try_to_vec::<f32>().is_ok());
    let masked =
        Tensor::vector(&[1.0, 2.0]).masked_fill(&Tensor::vector(&[1.0, 0.0]).gt(0.0), f64::NEG_INFINITY);
    assert_eq!(masked.softmax(0).to_vec::<f32>(), [0.0, 1.0]);
}

#[test]
fn an_index_out_of_bounds_is_named() {
    let _turn = guarded();
    let table = Tensor::randn([5, 2]);
    let index = Tensor::from_vec(vec![1i32, 7], [2]);
    let (rows, here) = (table.embedding(&index), here!());
    let error = rows.try_to_vec::<f32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    let text = error.to_string();
    assert!(text.starts_with("embedding: index 7 is out of bounds for an axis of 5"), "{text}");
    assert!(text.contains(&here), "{text} should name {here}");
    let scattered =
        Tensor::zeros([3]).scatter_add(0, &Tensor::from_vec(vec![-1i32], [1]), &Tensor::ones([1]));
    let text = scattered.try_to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("scatter_add: index -1 is out of bounds for an axis of 3"), "{text}");
}

#[test]
fn a_target_that_is_no_class_is_named() {
    let _turn = guarded();
    let (logits, x, weight) = (Tensor::zeros([4, 3]), Tensor::ones([4, 2]), Tensor::ones([3, 2]));
    // The third one is ignored.
    let target = Tensor::from_vec(vec![0i32, 2, -100, 3], [4]);
    for loss in [
        cross_entropy(&logits, &target),
        nll_loss(&logits, &target),
        linear_cross_entropy(&x, &weight, &target),
    ] {
        let error = loss.try_item::<f32>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index);
        assert!(error.to_string().contains("index 3 is out of bounds for an axis of 3"), "{error}");
    }
    let fine = Tensor::from_vec(vec![0i32, 2, -100, 1], [4]);
    assert!((cross_entropy(&logits, &fine).item::<f32>() - 3f32.ln()).abs() < 1e-6);
}

#[test]
fn a_guarded_network_trains_like_any_other() {
    let _turn = guarded();
    let w = Tensor::ones([3, 1]).requires_grad(true);
    let x = Tensor::from_vec(vec![1f32, 2., 3., 4., 5., 6.], [2, 3]);
    x.matmul(&w).tanh().sum().backward();
    assert!(w.grad().unwrap().to_vec::<f32>().iter().all(|g| g.is_finite()));
}

#[test]
fn every_bad_element_is_counted_in_every_float_type() {
    let _turn = guarded();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let x = Tensor::arange(0, 5001).to_dtype(DType::F32) - 7.0;
        let text = x.to_dtype(dtype).sqrt().try_realize().unwrap_err().to_string();
        assert!(text.contains("gave NaN or infinity in 7 of 5001 elements"), "{dtype}: {text}");
    }
}

#[test]
fn an_update_that_overwrites_its_parameter_is_checked_too() {
    let _turn = guarded();
    let w = Tensor::vector(&[4.0, -4.0, 9.0]);
    assert_eq!(w.to_vec::<f32>(), [4.0, -4.0, 9.0]);
    w.assign(&w.sqrt());
    let error = w.try_to_vec::<f32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NonFinite, "{error}");
}

#[test]
fn of_two_faults_the_first_is_named() {
    let _turn = guarded();
    let x = Tensor::vector(&[-1.0, 2.0]);
    let y = x.sqrt().relu().sum() + Tensor::vector(&[0.0]).log();
    let text = y.try_to_vec::<f32>().unwrap_err().to_string();
    assert!(text.starts_with("sqrt:"), "{text}");
}

#[test(needs(more_than_webgpu))]
fn indices_are_checked_along_every_axis_and_in_every_integer_type() {
    let _turn = guarded();
    let table = Tensor::ones([6, 4]);
    let inside = Tensor::from_vec(vec![0i32, 3, 3, 1], [2, 2]);
    assert_eq!(table.gather(1, &inside).to_vec::<f32>(), [1.0; 4]);
    for dtype in [DType::I32, DType::I64, DType::U8, DType::U32] {
        let outside = Tensor::from_vec(vec![0i32, 3, 4, 1], [2, 2]).to_dtype(dtype);
        let error = table.gather(1, &outside).try_to_vec::<f32>().unwrap_err();
        assert!(error.message().starts_with("index 4 is out of bounds for an axis of 4"), "{dtype}: {error}");
    }
}

/// With tensors in pieces of 4096 bytes no check sees all of these indices.
#[test]
fn of_many_indices_one_that_is_outside_is_named() {
    let _turn = guarded();
    let table = Tensor::ones([40, 3]);
    let indices: Vec<i32> = (0..12_000).map(|k| k % 40).collect();
    let picked = |indices: Vec<i32>| table.index_select(0, &Tensor::from_vec(indices, [12_000])).sum();
    assert_eq!(picked(indices.clone()).item::<f32>(), 36_000.0);
    for (at, index) in [(0, 40), (3000, 77_777), (11_999, -5)] {
        let mut outside = indices.clone();
        outside[at] = index;
        let error = picked(outside).try_item::<f32>().unwrap_err();
        let said = format!("index {index} is out of bounds for an axis of 40");
        assert!(error.message().starts_with(&said), "{error}");
    }
    // Sorting picks values by an order that is as long as they are.
    let numbers: Vec<f32> = (0..12_000).map(|k| ((k * 7919) % 12_000) as f32).collect();
    let (values, _) = Tensor::from_vec(numbers, [12_000]).sort(0, false);
    assert_eq!(values.to_vec::<f32>(), (0..12_000).map(|k| k as f32).collect::<Vec<_>>());
}

#[test]
fn an_unsigned_index_is_named_by_the_number_it_is() {
    let _turn = guarded();
    // As signed numbers they would be negative, one of them -100.
    for index in [1u32 << 31, u32::MAX, (-100i32) as u32] {
        let outside = Tensor::from_vec(vec![0, index], [2]);
        let said = format!("index {index} is out of bounds for an axis of 3");
        let (logits, x, weight) = (Tensor::zeros([2, 3]), Tensor::ones([2, 2]), Tensor::ones([3, 2]));
        for found in [
            Tensor::ones([3]).gather(0, &outside),
            Tensor::zeros([3]).scatter_add(0, &outside, &Tensor::ones([2])),
            Tensor::ones([3, 4]).embedding(&outside),
            cross_entropy(&logits, &outside),
            nll_loss(&logits, &outside),
            linear_cross_entropy(&x, &weight, &outside),
        ] {
            let error = found.try_to_vec::<f32>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Index);
            assert!(error.to_string().contains(&said), "{error}");
        }
    }
}

#[test]
fn a_large_table_of_which_few_rows_or_none_are_picked_is_no_fault() {
    let _turn = guarded();
    for rows in [vec![], vec![7i32, 32_999, 7]] {
        let index = Tensor::from_vec(rows.clone(), [rows.len()]);
        let table = Tensor::ones([33_000, 128]).requires_grad(true);
        table.embedding(&index).sum().backward();
        let sum: f32 = table.grad().unwrap().try_to_vec::<f32>().unwrap().iter().sum();
        assert_eq!(sum, (rows.len() * 128) as f32);
    }
}

/// What an error was found in is not what it was overwritten with.
#[test]
fn a_step_in_place_that_fails_fails_again() {
    let _turn = guarded();
    let w = Tensor::vector(&[4.0, -4.0, 9.0]);
    w.assign(&w.sqrt());
    for _ in 0..2 {
        assert_eq!(w.try_to_vec::<f32>().unwrap_err().kind(), ErrorKind::NonFinite);
    }
}

volta_testing::main!();
