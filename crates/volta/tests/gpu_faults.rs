//! What a GPU may do to a program: refuse memory or a shader, or vanish. Each is an error that names the ops, the
//! process lives on, other devices keep their tensors, and the GPU can be used again. Runs where `VOLTA_ADAPTER`
//! names an adapter (`llvmpipe` will do) or there is a GPU; says so and passes where there is none.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::gpu::{
    device_bytes, fail_next_map, fail_next_run, limit_memory, lose_device, report_out_of_memory,
    spoil_next_shader,
};
use volta::{DType, Device, Element, Error, ErrorKind, SGD, Tensor, mse_loss, with_device};
use volta_testing::test;

/// The device, for one test at a time.
fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match Device::gpu() {
        Ok(device) => Some((device, guard)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Device);
            eprintln!("not tested: {error}");
            None
        }
    }
}

/// A test with the device as the place of new tensors, if there is one.
macro_rules! on_gpu {
    ($($name:ident() $body:block)*) => {$(
        #[test]
        fn $name() {
            let Some((device, _guard)) = gpu() else { return };
            with_device(device, || $body);
        }
    )*};
}

fn assert_names(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing: {error}");
    }
}

/// What is read once it was reported that an index was out of bounds.
fn after_its_error<T: Element + std::fmt::Debug>(t: &Tensor) -> Vec<T> {
    assert_eq!(t.try_to_vec::<T>().expect_err("an index is out of bounds").kind(), ErrorKind::Index);
    t.to_vec()
}

fn works_again() {
    let x = Tensor::vector(&[1.0, 2.0, 3.0]);
    assert_eq!((&x * 2.0 + 1.0).to_vec::<f32>(), [3.0, 5.0, 7.0]);
}

on_gpu! {
    a_tensor_larger_than_any_device_is_an_error_with_its_shape() {
        let huge = Tensor::zeros([1usize << 38]) + Tensor::ones([1]);
        let error = huge.try_realize().unwrap_err();
        assert_names(&error, ErrorKind::Memory, &["274877906944", "add"]);
        works_again();
    }

    a_device_out_of_memory_names_the_ops_and_keeps_what_it_has() {
        let x = Tensor::vector(&[1.0, 2.0, 3.0]);
        x.realize();
        limit_memory(0, 1 << 20).unwrap();
        let wide = x.unsqueeze(1).expand([3, 1 << 20]).exp();
        assert_names(&wide.try_realize().unwrap_err(), ErrorKind::Memory, &["out of memory", "exp", "[3, 1048576]"]);
        // Inside of a plan, too: nothing of this is kept.
        let sorted = wide.cumsum(1).max_dim(1, false);
        assert_names(&sorted.try_to_vec::<f32>().unwrap_err(), ErrorKind::Memory, &["cumsum"]);
        let error = Tensor::try_from_vec(vec![0f32; 1 << 20], [1 << 20]).unwrap_err();
        assert_names(&error, ErrorKind::Memory, &["allocating"]);
        assert_eq!((&x + 1.0).to_vec::<f32>(), [2.0, 3.0, 4.0]);
        limit_memory(0, u64::MAX).unwrap();
        assert_eq!(wide.sum_dim(1, false).to_vec::<f32>().len(), 3);
    }

    idle_memory_is_given_back_before_memory_is_missing() {
        // A device of its own: what other tests left does not count.
        lose_device(0).unwrap();
        let megabytes = |n: usize| Tensor::try_from_vec(vec![2f32; n << 18], [n << 18]);
        limit_memory(0, (6 << 20) + (1 << 16)).unwrap();
        let four = megabytes(4).unwrap();
        assert_names(&megabytes(6).unwrap_err(), ErrorKind::Memory, &["allocating 6291456 bytes"]);
        drop(four);
        assert_eq!(megabytes(6).unwrap().sum().item::<f32>(), (3 << 20) as f32);
        limit_memory(0, u64::MAX).unwrap();
    }

    memory_that_is_given_back_is_free_though_plans_were_bound_to_it() {
        lose_device(0).unwrap();
        let megabytes = |n: usize| Tensor::rand([n << 18]).realize().clone();
        let x = megabytes(64);
        for _ in 0..3 {
            (&x * 2.0).realize();
        }
        drop(x);
        let before = device_bytes(0).unwrap();
        limit_memory(0, 160 << 20).unwrap();
        // It takes the place of both.
        let y = megabytes(96);
        assert!(y.sum().item::<f32>() > 0.0);
        limit_memory(0, u64::MAX).unwrap();
        if let (Some(before), Some(after)) = (before, device_bytes(0).unwrap()) {
            assert!(before >= 128 << 20 && after < 128 << 20, "{before} bytes, then {after}");
        }
    }

    a_shader_that_the_driver_refuses_is_an_error_with_its_op() {
        let x = Tensor::vector(&[1.0, 4.0, 9.0]).realize().clone();
        spoil_next_shader(0).unwrap();
        let error = x.sqrt().try_to_vec::<f32>().unwrap_err();
        assert_names(&error, ErrorKind::Device, &["compiling sqrt", "[3]"]);
        assert_eq!(x.sqrt().to_vec::<f32>(), [1.0, 2.0, 3.0]);
    }

    // What the driver says while a plan runs: its memory is at an end, or commands are not valid.
    a_run_that_the_driver_refuses_is_an_error_with_its_ops() {
        let x = Tensor::vector(&[1.0, 4.0, 9.0]).realize().clone();
        x.abs().realize();
        report_out_of_memory(0).unwrap();
        let error = x.abs().try_to_vec::<f32>().unwrap_err();
        assert_names(&error, ErrorKind::Memory, &["gpu:0", "out of memory", "abs", "[3]"]);
        works_again();
        fail_next_run(0).unwrap();
        let error = x.abs().try_to_vec::<f32>().unwrap_err();
        assert_names(&error, ErrorKind::Device, &["gpu:0", "running a plan", "abs", "[3]"]);
        assert_eq!(x.abs().to_vec::<f32>(), [1.0, 4.0, 9.0]);
        works_again();
    }

    what_a_failed_run_has_overwritten_is_not_computed_from() {
        let s = Tensor::full([16], 0.0f32).realize().clone().assignable();
        let step = || s.assign(&(&s + 1.0));
        step();
        assert_eq!(s.to_vec::<f32>(), [1.0; 16]);
        // A fault from before is told before anything is written.
        step();
        report_out_of_memory(0).unwrap();
        assert_names(&s.try_to_vec::<f32>().unwrap_err(), ErrorKind::Memory, &["out of memory"]);
        assert_eq!(s.to_vec::<f32>(), [2.0; 16]);
        // A run that fails may have added already.
        step();
        fail_next_run(0).unwrap();
        assert_names(&s.try_to_vec::<f32>().unwrap_err(), ErrorKind::Device, &["running a plan"]);
        assert_names(&s.try_to_vec::<f32>().unwrap_err(), ErrorKind::Memory, &["overwritten", "make it anew"]);
        works_again();
        s.assign(&Tensor::full([16], 5.0));
        step();
        assert_eq!(s.to_vec::<f32>(), [6.0; 16]);
    }

    a_read_that_cannot_be_mapped_is_an_error_with_its_shape() {
        let x = Tensor::from_vec(vec![1f32, 4.0, 9.0, 16.0], [2, 2]).sqrt();
        fail_next_map(0).unwrap();
        let error = x.try_to_vec::<f32>().unwrap_err();
        assert_names(&error, ErrorKind::Device, &["gpu:0", "could not be read", "reading f32 [2, 2]"]);
        assert_eq!(error.op(), "to_vec");
        assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    }

    a_lost_device_is_an_error_and_opens_again() {
        let here = with_device(Device::Cpu, || Tensor::vector(&[1.0, 2.0]));
        let there = Tensor::vector(&[3.0, 4.0]);
        let pending = there.exp();
        there.realize();
        lose_device(0).unwrap();
        assert_names(&there.try_to_vec::<f32>().unwrap_err(), ErrorKind::Device, &["was lost", "gpu:0"]);
        assert_names(&pending.try_to_vec::<f32>().unwrap_err(), ErrorKind::Device, &["gone", "exp", "[2]"]);
        let moved = there.try_to_device(Device::Cpu);
        assert_names(&moved.unwrap_err(), ErrorKind::Device, &["was lost"]);
        // Whatever is elsewhere is as it was, and the device opens again.
        assert_eq!((&here + 1.0).to_vec::<f32>(), [2.0, 3.0]);
        assert!(Device::gpu().is_ok());
        assert_eq!(here.to_device(Device::Gpu(0)).exp().to_vec::<f32>().len(), 2);
        works_again();
    }

    a_read_that_is_under_way_fails_when_the_device_is_lost() {
        let x = Tensor::vector(&[1.0, 2.0]).realize().clone();
        let before = x.to_vec_async::<f32>();
        lose_device(0).unwrap();
        // The copy may have been made in time; if not, it says why.
        match pollster::block_on(before) {
            Ok(values) => assert_eq!(values, [1.0, 2.0]),
            Err(error) => assert_names(&error, ErrorKind::Device, &["gpu:0"]),
        }
        let after = x.to_vec_async::<f32>();
        assert_names(&pollster::block_on(after).unwrap_err(), ErrorKind::Device, &["was lost"]);
        works_again();
    }

    training_goes_on_with_new_tensors_while_old_ones_are_still_held() {
        let data = |n: usize| Tensor::from_vec(vec![0.5f32; n], [n / 2, 2]);
        let model = || Tensor::ones([2, 1]).requires_grad(true);
        let step = |w: &Tensor| {
            let mut sgd = SGD::new(vec![w.clone()], 0.1, 0.0, 0.0);
            mse_loss(&data(8).matmul(w), &Tensor::zeros([4, 1])).backward();
            sgd.try_step()
        };
        let old = model();
        step(&old).unwrap();
        // Pending, and held beyond the loss.
        let held = old.exp();
        lose_device(0).unwrap();
        assert_names(&step(&old).unwrap_err(), ErrorKind::Device, &["gone"]);
        let new = model();
        let held_too = (&held * 2.0).sum();
        step(&new).unwrap();
        assert!(new.to_vec::<f32>().iter().all(|w| *w < 1.0));
        assert!(held_too.try_item::<f32>().is_err());
    }

    an_index_out_of_range_reads_and_writes_nothing_else() {
        let wild32 = [-1, 4, i32::MIN, i32::MAX, 1 << 30, -(1 << 20)];
        let wild64 = [-1i64, 4, 1 << 32, (1 << 32) + 1, i64::MIN, i64::MAX];
        let mut indices = vec![
            Tensor::from_vec(wild32.to_vec(), [6]),
            Tensor::from_vec(vec![4u8, 5, 100, 128, 254, 255], [6]),
        ];
        // WebGPU has no integers of 64 bits.
        indices.extend(Tensor::try_from_vec(wild64.to_vec(), [6]).ok());
        for index in &indices {
            // Neighbours in the pool, before and behind.
            let before = Tensor::from_vec(vec![7f32; 32], [4, 8]).realize().clone();
            let table = (Tensor::zeros([4, 8]) + 3.0).realize().clone();
            let behind = Tensor::from_vec(vec![9f32; 32], [4, 8]).realize().clone();
            let rows: Vec<f32> = after_its_error(&table.embedding(index));
            assert!(rows.iter().all(|x| x.is_nan()), "{}: {rows:?}", index.dtype());
            let picked: Vec<f32> = after_its_error(&table.gather(0, &index.unsqueeze(1)));
            assert!(picked.iter().all(|x| x.is_nan()), "{}: {picked:?}", index.dtype());
            let whole: Vec<i32> = after_its_error(&table.to_dtype(DType::I32).index_select(0, index));
            assert!(whole.iter().all(|x| *x == 0), "{}: {whole:?}", index.dtype());
            let spread = index.unsqueeze(1).expand([6, 8]);
            let added = table.scatter_add(0, &spread, &Tensor::full([6, 8], 100.0));
            assert_eq!(after_its_error::<f32>(&added), [3.0; 32], "{}", index.dtype());
            // With one place inside, so many values as are looked at one by one, and enough for the lists that large tables sort.
            let expected: Vec<f32> = (0..32).map(|k| if k / 8 == 2 { 1.0 } else { 0.0 }).collect();
            for times in [100, 200] {
                let inside = Tensor::from_vec(vec![2i32], [1]).to_dtype(index.dtype());
                let many = Tensor::cat(&[&index.repeat([times]), &inside], 0);
                let all = [6 * times + 1, 8];
                let spread = many.unsqueeze(1).expand(all);
                let added = Tensor::zeros([4, 8]).scatter_add(0, &spread, &Tensor::ones(all));
                assert_eq!(after_its_error::<f32>(&added), expected, "{}", index.dtype());
            }
            assert_eq!(before.to_vec::<f32>(), [7.0; 32]);
            assert_eq!(table.to_vec::<f32>(), [3.0; 32]);
            assert_eq!(behind.to_vec::<f32>(), [9.0; 32]);
        }
    }
}

volta_testing::main!();
