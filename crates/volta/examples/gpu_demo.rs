//! The low-level face of the GPU: what adapter there is, each operation with its result checked, and
//! throughput.
//!
//! `cargo run --release --example gpu_demo`. `VOLTA_ADAPTER=llvmpipe` takes a software adapter.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use volta::gpu::{GpuBuffer, GpuDevice, GpuTensor};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("🚀 volta GPU demo\n");
    let device = match pollster::block_on(GpuDevice::new()) {
        Ok(device) => Arc::new(device),
        Err(error) => {
            println!("❌ Failed to initialize GPU device: {error}\n");
            println!("📋 GPU Requirements:");
            println!("   - This demo requires a GPU with WebGPU support (Vulkan, Metal, or DX12)");
            println!("   - In headless/CI environments, GPU hardware may not be available.");
            println!("   - In browser environments (via WASM), WebGPU will be available.");
            return Ok(());
        }
    };
    describe(&device);
    pollster::block_on(async {
        transfers(&device).await?;
        operations(&device).await?;
        throughput(&device).await
    })?;
    println!("\n✅ Every result was right");
    Ok(())
}

fn describe(device: &GpuDevice) {
    let (info, limits) = (device.info(), device.device().limits());
    println!("Using GPU: {}", info.name);
    println!("   backend      {:?}", info.backend);
    println!("   type         {:?}", info.device_type);
    println!("   driver       {} {}", info.driver, info.driver_info);
    println!("   one buffer   {} MiB at most", limits.max_storage_buffer_binding_size >> 20);
    println!("   workgroup    {} invocations at most\n", limits.max_compute_invocations_per_workgroup);
}

/// Bytes to the GPU and back.
async fn transfers(device: &GpuDevice) -> Result<(), Failure> {
    let data: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let gpu_buffer = GpuBuffer::from_slice(device, &data);
    let result: Vec<f32> = gpu_buffer.read().await;
    if result != data {
        return Err("the buffer came back changed".into());
    }
    println!("buffer     {} elements there and back", result.len());
    Ok(())
}

/// Says what an operation gave, and fails where it is not what it should be.
fn check(name: &str, result: &[f32], expected: &[f32]) -> Result<(), Failure> {
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    if result.len() != expected.len() || !result.iter().zip(expected).all(near) {
        return Err(format!("{name} gave {result:?}, and {expected:?} is right").into());
    }
    println!("{name:<10} {result:?}");
    Ok(())
}

async fn operations(device: &Arc<GpuDevice>) -> Result<(), Failure> {
    let tensor = |data: &[f32], shape: &[usize]| GpuTensor::from_slice(data, shape, Arc::clone(device));
    let a = tensor(&[1.0, 2.0, 3.0, 4.0], &[4])?;
    let b = tensor(&[5.0, 6.0, 7.0, 8.0], &[4])?;
    check("add", &a.add(&b).await?.to_vec().await, &[6.0, 8.0, 10.0, 12.0])?;
    check("sub", &a.sub(&b).await?.to_vec().await, &[-4.0; 4])?;
    check("mul", &a.mul(&b).await?.to_vec().await, &[5.0, 12.0, 21.0, 32.0])?;
    check("div", &b.div(&a).await?.to_vec().await, &[5.0, 3.0, 7.0 / 3.0, 2.0])?;

    let x = tensor(&[-2.0, -0.5, 0.0, 3.0], &[4])?;
    check("relu", &x.relu().await?.to_vec().await, &[0.0, 0.0, 0.0, 3.0])?;
    let sigmoid = [-2.0f32, -0.5, 0.0, 3.0].map(|x| 1.0 / (1.0 + (-x).exp()));
    check("sigmoid", &x.sigmoid().await?.to_vec().await, &sigmoid)?;

    let m = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let n = tensor(&[7.0, 8.0, 9.0, 10.0, 11.0, 12.0], &[3, 2])?;
    check("matmul", &m.matmul(&n).await?.to_vec().await, &[58.0, 64.0, 139.0, 154.0])?;
    check("zeros", &GpuTensor::zeros(&[2, 2], Arc::clone(device))?.to_vec().await, &[0.0; 4])
}

/// Seconds a call: many in a row after the first, which compiles. The queue keeps their order, so that one
/// element read behind the last of them waits for all.
async fn seconds<F>(device: &GpuDevice, repeats: u32, operation: impl Fn() -> F) -> Result<f64, Failure>
where
    F: Future<Output = volta::Result<GpuTensor>>,
{
    let last = GpuBuffer::from_slice(device, &[0.0f32]);
    operation().await?;
    last.read::<f32>().await;
    let start = Instant::now();
    for _ in 0..repeats {
        operation().await?;
    }
    last.read::<f32>().await;
    Ok(start.elapsed().as_secs_f64() / f64::from(repeats))
}

async fn throughput(device: &Arc<GpuDevice>) -> Result<(), Failure> {
    println!("\nThroughput:");
    // A software adapter, which VOLTA_ADAPTER must have asked for, is hundreds of times slower.
    let software = device.info().device_type == wgpu::DeviceType::Cpu;
    let (repeats, elements, side) = if software { (3, 1 << 20, 256) } else { (50, 1 << 24, 2048) };

    let data: Vec<f32> = (0..elements).map(|i| (i % 1000) as f32).collect();
    let a = GpuTensor::from_slice(&data, &[elements], Arc::clone(device))?;
    let time = seconds(device, repeats, || a.add(&a)).await?;
    let bytes = 3.0 * 4.0 * elements as f64;
    println!("   add    {elements} elements: {:.3} ms, {:.1} GB/s", time * 1e3, bytes / time / 1e9);
    if !a.add(&a).await?.to_vec().await.iter().zip(&data).all(|(sum, x)| *sum == x + x) {
        return Err("a large sum is wrong".into());
    }

    let ones = GpuTensor::from_slice(&vec![1.0; side * side], &[side, side], Arc::clone(device))?;
    let time = seconds(device, repeats, || ones.matmul(&ones)).await?;
    let flops = 2.0 * (side as f64).powi(3);
    println!("   matmul {side} × {side}: {:.3} ms, {:.1} GFLOP/s", time * 1e3, flops / time / 1e9);
    if !ones.matmul(&ones).await?.to_vec().await.iter().all(|&x| x == side as f32) {
        return Err("a large product is wrong".into());
    }
    Ok(())
}
