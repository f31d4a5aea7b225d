//! What a GPU's executor does between the runs of a plan, seen from tensors: on the GPU that `VOLTA_DEVICE=gpu` picks.

use crate::default_device::default_device;
use crate::device::Device;
use crate::tensor::Tensor;

/// On the GPU that `VOLTA_DEVICE=gpu` picks: commands that were encoded for one step run with the memory of the next.
#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn steps_that_are_encoded_ahead_read_and_write_their_own_memory() {
    let Device::Gpu(index) = default_device() else { panic!("VOLTA_DEVICE=gpu picks one") };
    let inputs = [1.0f32, 2.0, 4.0].map(|x| Tensor::full([300], x).realize().clone());
    let state = Tensor::full([300], 0.0f32).realize().assignable();
    let mut wanted = 0.0;
    // The same input often enough for its commands to be used, then others, and by turns.
    let numbers = [0, 0, 0, 0, 1, 1, 1, 0, 2, 1, 2, 2, 2, 2, 0, 1, 0, 1, 0, 1, 2, 0, 1, 2];
    for (step, number) in numbers.into_iter().enumerate() {
        state.assign(&(&state * 0.5 + &inputs[number]));
        wanted = wanted * 0.5 + [1.0, 2.0, 4.0][number];
        let twice = &state * 2.0;
        assert_eq!(twice.to_vec::<f32>(), [2.0 * wanted; 300], "step {step}");
        while volta_gpu::encode_ahead(index).expect("the GPU is there") {}
    }
}

/// The sum of so many numbers, each `2 * x`, computed; tests that run side by side have plans of their own.
fn sum(count: usize, x: f32) -> Tensor {
    let input = Tensor::from_vec(vec![x; count], [count]);
    (&input * 2.0).sum().realize().clone()
}

fn has_copy(tensor: &Tensor) -> bool {
    let storage = tensor.node().storage().expect("it was computed");
    volta_gpu::has_prefetched_copy(&*storage)
}

#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn what_was_read_comes_along_the_next_time() {
    assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
    let mut kept = Vec::new();
    for step in 0..40 {
        let (x, result) = (step as f32, sum(300, step as f32));
        assert!(has_copy(&result) || step == 0 || (step - 1) % 4 == 3, "step {step}");
        match step % 4 {
            0 | 1 => assert_eq!(result.item::<f32>(), 600.0 * x),
            // Asked for, and not waited for.
            2 => drop(result.to_vec_async::<f32>()),
            _ => {}
        }
        if step % 5 == 0 {
            kept.push((result, 600.0 * x));
        }
    }
    // Results may lie in several pieces of memory by turns, and copies are made for each, also for those that other tests
    // give back meanwhile: in the end there are none.
    let mut without = 0;
    for _ in 0..64 * volta_gpu::MAX_UNREAD_RUNS {
        without = if has_copy(&sum(300, 1.0)) { 0 } else { without + 1 };
        if without == volta_gpu::MAX_UNREAD_RUNS {
            break;
        }
    }
    assert_eq!(without, volta_gpu::MAX_UNREAD_RUNS, "copies that nobody reads");
    for (result, wanted) in kept {
        assert_eq!(result.item::<f32>(), wanted);
        assert_eq!(result.item::<f32>(), wanted, "read once more");
    }
}

#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn what_is_written_later_is_read_as_it_is() {
    assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
    for step in 0..8 {
        let result = sum(200, step as f32).assignable();
        assert_eq!(has_copy(&result), step > 0, "step {step}");
        result.assign(&(&result + 1.0));
        assert_eq!(result.item::<f32>(), 400.0 * step as f32 + 1.0);
        // Reads the memory of a sum that nobody has written to.
        assert_eq!(sum(200, 7.0).item::<f32>(), 2800.0);
    }
}

#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn waiting_for_a_device_is_for_what_asserts_nothing_too() {
    let Device::Gpu(number) = default_device() else { panic!("VOLTA_DEVICE=gpu picks one") };
    let table = Tensor::rand([64, 8]).realize().clone();
    let positions = Tensor::from_vec(vec![3i32, 1, 63], [3]).realize().clone();
    let square = Tensor::rand([512, 512]).realize().clone();
    for step in 0..3 {
        // Positions are asserted to be in bounds; whoever waited before finds out with a copy at the end of this.
        table.index_select(0, &positions).realize();
        let mut product = square.clone();
        for _ in 0..12 {
            product = product.matmul(&square) * 1e-3;
        }
        product.realize();
        let is_done = volta_gpu::watch_work(number).expect("the GPU is there");
        default_device().synchronize().expect("all positions are in bounds");
        assert!(is_done.load(std::sync::atomic::Ordering::Relaxed), "step {step}");
    }
}
