//! The low-level face of the GPU. Runs where `VOLTA_ADAPTER` names an adapter (`llvmpipe` will do) or there
//! is a GPU; says so and passes where there is none.

use std::sync::{Arc, OnceLock};
use volta::gpu::{AdapterKind, GpuBuffer, GpuDevice, GpuTensor};
use volta::{Device, ErrorKind};
use volta_testing::test;

/// One device for all tests, if there is one.
fn device() -> Option<Arc<GpuDevice>> {
    static DEVICE: OnceLock<Option<Arc<GpuDevice>>> = OnceLock::new();
    DEVICE
        .get_or_init(|| match pollster::block_on(GpuDevice::new()) {
            Ok(device) => Some(Arc::new(device)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Device);
                assert!(error.to_string().contains("No suitable GPU adapter found"), "{error}");
                eprintln!("not tested: {error}");
                None
            }
        })
        .clone()
}

/// Runs a test that waits, if there is a device.
macro_rules! on_gpu {
    ($($name:ident($device:ident) $body:block)*) => {$(
        #[test]
        fn $name() {
            let Some($device) = device() else { return };
            pollster::block_on(async $body);
        }
    )*};
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1013) as f32 * 0.25 - 100.0).collect()
}

fn tensor(data: &[f32], shape: &[usize], device: &Arc<GpuDevice>) -> GpuTensor {
    GpuTensor::from_slice(data, shape, Arc::clone(device)).unwrap()
}

/// The example of the documentation, as it is written there.
async fn gpu_example() -> Result<(), Box<dyn std::error::Error>> {
    let device = Arc::new(GpuDevice::new().await?);
    println!("Using GPU: {}", device.info().name);

    let a_data = vec![1.0, 2.0, 3.0, 4.0];
    let b_data = vec![5.0, 6.0, 7.0, 8.0];

    let a = GpuTensor::from_slice(&a_data, &[4], Arc::clone(&device))?;
    let b = GpuTensor::from_slice(&b_data, &[4], Arc::clone(&device))?;

    let c = a.add(&b).await?;

    let result = c.to_vec().await;
    assert_eq!(result, [6.0, 8.0, 10.0, 12.0]);
    Ok(())
}

on_gpu! {
    the_example_runs_as_written(device) {
        assert!(!device.info().name.is_empty());
        gpu_example().await.unwrap();
        let a = tensor(&[1.0, 2.0], &[2], &device);
        let sum = pollster::block_on(async { a.add(&a).await }).unwrap();
        assert_eq!(sum.to_vec().await, [2.0, 4.0]);
    }

    buffers_hold_any_plain_type(device) {
        let data = numbers(1001);
        let gpu_buffer = GpuBuffer::from_slice(&device, &data);
        let result: Vec<f32> = gpu_buffer.read().await;
        assert_eq!(result, data);
        assert_eq!(gpu_buffer.read::<f32>().await, data);
        let bits: Vec<u32> = data.iter().map(|x| x.to_bits()).collect();
        assert_eq!(gpu_buffer.read::<u32>().await, bits);
        for n in 0..9u8 {
            let bytes: Vec<u8> = (1..=n).collect();
            let buffer = GpuBuffer::from_slice(&device, &bytes);
            assert_eq!(buffer.size(), n as usize);
            assert_eq!(buffer.read::<u8>().await, bytes);
        }
        let pairs = [[1i64, -2], [3, i64::MIN]];
        assert_eq!(GpuBuffer::from_slice(&device, &pairs).read::<[i64; 2]>().await, pairs);
    }

    buffers_are_overwritten_from_the_start(device) {
        let buffer = GpuBuffer::from_slice(&device, &[1u32, 2, 3]);
        buffer.write(&[7u32, 8]).unwrap();
        assert_eq!(buffer.read::<u32>().await, [7, 8, 3]);
        let odd = GpuBuffer::from_slice(&device, &[1u8, 2, 3, 4, 5, 6]);
        odd.write(&[9u8, 8, 7, 6, 5, 4]).unwrap();
        assert_eq!(odd.read::<u8>().await, [9, 8, 7, 6, 5, 4]);
        for wrong in [&[0u8; 7][..], &[0; 5]] {
            assert_eq!(odd.write(wrong).unwrap_err().kind(), ErrorKind::Argument);
        }
        assert_eq!(odd.try_read::<u32>().await.unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(GpuBuffer::zeros(&device, 5).unwrap().read::<u8>().await, [0; 5]);
        assert_eq!(GpuBuffer::zeros(&device, usize::MAX / 2).unwrap_err().kind(), ErrorKind::Memory);
    }

    elementwise_operations_of_odd_sizes(device) {
        for n in [0, 1, 3, 255, 256, 257, 1001] {
            let (x, y) = (numbers(n), numbers(n + 5)[5..].to_vec());
            let (a, b) = (tensor(&x, &[n], &device), tensor(&y, &[n], &device));
            let both = |f: fn(f32, f32) -> f32| x.iter().zip(&y).map(|(a, b)| f(*a, *b)).collect::<Vec<f32>>();
            assert_eq!(a.add(&b).await.unwrap().to_vec().await, both(|a, b| a + b));
            assert_eq!(a.sub(&b).await.unwrap().to_vec().await, both(|a, b| a - b));
            assert_eq!(a.mul(&b).await.unwrap().to_vec().await, both(|a, b| a * b));
            let quotients = a.div(&b).await.unwrap().to_vec().await;
            for (got, expected) in quotients.iter().zip(both(|a, b| a / b)) {
                assert!(got == &expected || (got - expected).abs() <= 1e-6 * expected.abs() || expected.is_nan());
            }
            let relu: Vec<f32> = x.iter().map(|x| x.max(0.0)).collect();
            assert_eq!(a.relu().await.unwrap().to_vec().await, relu);
            for (got, x) in a.sigmoid().await.unwrap().to_vec().await.iter().zip(&x) {
                assert!((got - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6);
            }
        }
    }

    activations_at_the_ends(device) {
        let x = tensor(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e30, -1e30], &[2, 3], &device);
        let relu = x.relu().await.unwrap().to_vec().await;
        assert!(relu[0].is_nan());
        assert_eq!(relu[1..], [f32::INFINITY, 0.0, 0.0, 1e30, 0.0]);
        let sigmoid = x.sigmoid().await.unwrap();
        assert_eq!(sigmoid.shape(), [2, 3]);
        let sigmoid = sigmoid.to_vec().await;
        assert!(sigmoid[0].is_nan());
        assert_eq!(sigmoid[1..], [1.0, 0.0, 0.5, 1.0, 0.0]);
    }

    more_workgroups_than_one_dimension_has(device) {
        let n = 65535 * 256 + 12345;
        let x: Vec<f32> = (0..n).map(|i| (i % 4099) as f32).collect();
        let a = tensor(&x, &[n], &device);
        let sum = a.add(&a).await.unwrap().to_vec().await;
        assert!(sum.iter().zip(&x).all(|(s, x)| *s == x + x));
        assert_eq!(sum.len(), n);
    }

    products_of_all_shapes(device) {
        for (m, k, n) in [
            (1, 1, 1), (2, 3, 2), (1, 100, 1), (64, 16, 64), (65, 17, 63), (5, 0, 7), (0, 4, 3), (130, 70, 3),
            (3, 1, 200), (100, 129, 77),
        ] {
            let (x, y) = (numbers(m * k), numbers(k * n));
            let (a, b) = (tensor(&x, &[m, k], &device), tensor(&y, &[k, n], &device));
            let c = a.matmul(&b).await.unwrap();
            assert_eq!(c.shape(), [m, n]);
            let c = c.to_vec().await;
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = (0..k).map(|l| f64::from(x[i * k + l]) * f64::from(y[l * n + j])).sum();
                    let size: f64 = (0..k).map(|l| f64::from((x[i * k + l] * y[l * n + j]).abs())).sum();
                    let got = f64::from(c[i * n + j]);
                    assert!((got - sum).abs() <= 1e-6 * size, "{m} {k} {n} at {i} {j}: {got} for {sum}");
                }
            }
        }
    }

    a_product_of_more_tiles_than_one_dimension_has(device) {
        // 64 columns a tile: 65540 tiles in a row of them.
        let n = 65540 * 64;
        let a = tensor(&[2.0], &[1, 1], &device);
        let y: Vec<f32> = (0..n).map(|i| (i % 8191) as f32).collect();
        let c = a.matmul(&tensor(&y, &[1, n], &device)).await.unwrap().to_vec().await;
        assert!(c.iter().zip(&y).all(|(c, y)| *c == 2.0 * y));
    }

    shapes_that_do_not_fit_are_errors(device) {
        let a = tensor(&[1.0; 6], &[2, 3], &device);
        let b = tensor(&[1.0; 6], &[3, 2], &device);
        let v = tensor(&[1.0; 3], &[3], &device);
        let at = line!() + 1;
        let error = a.add(&b).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert_eq!(error.op(), "GpuTensor::add");
        assert_eq!(error.location().line(), at);
        assert!(error.to_string().contains("[2, 3] and [3, 2]"), "{error}");
        for result in [a.sub(&v).await, a.mul(&b).await, a.div(&b).await, a.matmul(&a).await, a.matmul(&v).await] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Shape);
        }
        let made = GpuTensor::from_slice(&[1.0, 2.0], &[3], Arc::clone(&device));
        assert_eq!(made.unwrap_err().kind(), ErrorKind::Shape);
        let huge = GpuTensor::zeros(&[usize::MAX, 2], Arc::clone(&device));
        assert_eq!(huge.unwrap_err().kind(), ErrorKind::Shape);
        let large = GpuTensor::zeros(&[1 << 45], Arc::clone(&device));
        assert_eq!(large.unwrap_err().kind(), ErrorKind::Memory);
    }

    tensors_of_two_devices_do_not_meet(device) {
        let other = Arc::new(GpuDevice::new().await.unwrap());
        let error = tensor(&[1.0], &[1], &device).add(&tensor(&[1.0], &[1], &other)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    }

    zeros_and_scalars(device) {
        let z = GpuTensor::zeros(&[2, 3], Arc::clone(&device)).unwrap();
        assert_eq!(z.to_vec().await, [0.0; 6]);
        assert_eq!((z.shape(), z.numel()), (&[2, 3][..], 6));
        let s = tensor(&[3.0], &[], &device);
        assert_eq!(s.mul(&s).await.unwrap().to_vec().await, [9.0]);
        assert!(GpuTensor::zeros(&[0, 4], device).unwrap().to_vec().await.is_empty());
    }

    a_device_that_is_gone_is_an_error(_device) {
        let own = Arc::new(GpuDevice::new().await.unwrap());
        let a = tensor(&[1.0, 2.0], &[2], &own);
        own.device().destroy();
        for error in [
            GpuTensor::zeros(&[2], Arc::clone(&own)).unwrap_err(),
            a.add(&a).await.unwrap_err(),
            a.buffer().try_read::<f32>().await.unwrap_err(),
            GpuBuffer::zeros(&own, 8).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(error.message().contains("was lost"), "{error}");
        }
    }

    results_outlive_what_they_are_made_of(device) {
        let sum = {
            let a = tensor(&[1.0, 2.0], &[2], &device);
            let b = tensor(&[3.0, 4.0], &[2], &device);
            a.add(&b)
        };
        drop(device);
        assert_eq!(sum.await.unwrap().to_vec().await, [4.0, 6.0]);
    }
}

#[test]
fn adapters_are_listed_with_what_they_can_do() {
    let all = volta::gpu::adapters();
    let Some(first) = all.first() else {
        assert!(std::env::var("VOLTA_ADAPTER").is_err(), "the adapter that was asked for is not there");
        return eprintln!("not tested: there is no adapter");
    };
    assert!(!first.name.is_empty() && !first.backend.is_empty());
    // What WebGPU promises.
    assert!(first.max_binding_bytes >= 128 << 20 && first.max_buffers >= 8, "{first:?}");
    assert!(first.max_workgroup >= 256 && first.workgroup_bytes >= 16 << 10, "{first:?}");
    let numbers: Vec<usize> = all.iter().filter_map(|a| a.index).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
    let is_asked_for = std::env::var("VOLTA_ADAPTER").is_ok_and(|name| !name.is_empty());
    assert_eq!(Device::auto().is_gpu(), is_asked_for || !numbers.is_empty());
    if std::env::var("VOLTA_ADAPTER").is_ok_and(|name| name == "llvmpipe") {
        // What the tests on it rely on.
        assert_eq!((first.index, first.kind), (Some(0), AdapterKind::Software));
        assert!(first.f16 && first.subgroups, "{first:?}");
    }
}

volta_testing::main!();
