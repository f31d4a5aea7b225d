//! A GPU without the engine: the device, its buffers, and tensors of f32 whose every op is one dispatch.

use crate::error::{Thrown, argument, js};
use crate::handles::{RAW_BUFFERS, RAW_DEVICES, RAW_TENSORS};
use crate::object::object;
use js_sys::{Float32Array, Promise, Uint8Array};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use volta::gpu::{GpuBuffer, GpuDevice, GpuTensor};
use volta::tab::promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

fn device(handle: u32) -> Thrown<Arc<GpuDevice>> {
    RAW_DEVICES.with_borrow_mut(|all| all.get(handle).map(|device| device.clone()))
}

fn buffer(handle: u32) -> Thrown<Rc<GpuBuffer>> {
    RAW_BUFFERS.with_borrow_mut(|all| all.get(handle).map(|buffer| buffer.clone()))
}

fn tensor(handle: u32) -> Thrown<Rc<GpuTensor>> {
    RAW_TENSORS.with_borrow_mut(|all| all.get(handle).map(|tensor| tensor.clone()))
}

fn hold(tensor: GpuTensor) -> u32 {
    RAW_TENSORS.with_borrow_mut(|all| all.insert(Rc::new(tensor)))
}

/// A device of its own, as a promise of a handle.
#[wasm_bindgen]
pub fn raw_device() -> Promise {
    promise(async {
        let opened = Arc::new(GpuDevice::new().await.map_err(js)?);
        Ok(RAW_DEVICES.with_borrow_mut(|all| all.insert(opened)).into())
    })
}

/// The name of its adapter.
#[wasm_bindgen]
pub fn raw_device_info(handle: u32) -> Thrown<JsValue> {
    let device = device(handle)?;
    let info = device.info();
    Ok(object([("name", info.name.as_str().into()), ("driver", info.driver.as_str().into())]))
}

/// A buffer of zeros.
#[wasm_bindgen]
pub fn raw_buffer_zeros(on: u32, bytes: usize) -> Thrown<u32> {
    let made = GpuBuffer::zeros(&*device(on)?, bytes).map_err(js)?;
    Ok(RAW_BUFFERS.with_borrow_mut(|all| all.insert(Rc::new(made))))
}

/// Overwrites a buffer from its start.
#[wasm_bindgen]
pub fn raw_buffer_write(handle: u32, bytes: &[u8]) -> Thrown<()> {
    buffer(handle)?.write(bytes).map_err(js)
}

/// The bytes of a buffer.
#[wasm_bindgen]
pub fn raw_buffer_read(handle: u32) -> Thrown<Promise> {
    let buffer = buffer(handle)?;
    Ok(promise(async move {
        let bytes = buffer.try_read::<u8>().await.map_err(js)?;
        Ok(Uint8Array::from(&bytes[..]).into())
    }))
}

/// Bytes of a buffer.
#[wasm_bindgen]
pub fn raw_buffer_size(handle: u32) -> Thrown<usize> {
    Ok(buffer(handle)?.size())
}

/// A tensor of a slice, or of zeros where there is none.
#[wasm_bindgen]
pub fn raw_tensor(on: u32, data: Option<Vec<f32>>, shape: &[u32]) -> Thrown<u32> {
    let (device, shape) = (device(on)?, shape.iter().map(|&e| e as usize).collect::<Vec<_>>());
    let made = match data {
        Some(data) => GpuTensor::from_slice(&data, &shape, device),
        None => GpuTensor::zeros(&shape, device),
    };
    made.map(hold).map_err(js)
}

/// The extents.
#[wasm_bindgen]
pub fn raw_tensor_shape(handle: u32) -> Thrown<Vec<u32>> {
    Ok(tensor(handle)?.shape().iter().map(|&e| e as u32).collect())
}

/// The elements.
#[wasm_bindgen]
pub fn raw_tensor_data(handle: u32) -> Thrown<Promise> {
    let tensor = tensor(handle)?;
    Ok(promise(async move {
        let elements = tensor.buffer().try_read::<f32>().await.map_err(js)?;
        Ok(Float32Array::from(&elements[..]).into())
    }))
}

/// The result of an op, as a promise of a handle.
#[wasm_bindgen]
pub fn raw_tensor_op(name: &str, a: u32, b: Option<u32>) -> Thrown<Promise> {
    let (a, b) = (tensor(a)?, b.map(tensor).transpose()?);
    let other = || b.clone().ok_or_else(|| argument(&format!("{name}: it takes two tensors")));
    Ok(match name {
        "add" => held(a.add(&*other()?)),
        "sub" => held(a.sub(&*other()?)),
        "mul" => held(a.mul(&*other()?)),
        "div" => held(a.div(&*other()?)),
        "matmul" => held(a.matmul(&*other()?)),
        "relu" => held(a.relu()),
        "sigmoid" => held(a.sigmoid()),
        other => return Err(argument(&format!("no op is called {other:?}"))),
    })
}

fn held(result: impl Future<Output = volta::Result<GpuTensor>> + 'static) -> Promise {
    promise(async move { result.await.map(|tensor| hold(tensor).into()).map_err(js) })
}

/// Frees devices, buffers or tensors.
#[wasm_bindgen]
pub fn raw_free(kind: &str, handles: &[u32]) {
    for &handle in handles {
        match kind {
            "device" => drop(RAW_DEVICES.with_borrow_mut(|all| all.remove(handle))),
            "buffer" => drop(RAW_BUFFERS.with_borrow_mut(|all| all.remove(handle))),
            _ => drop(RAW_TENSORS.with_borrow_mut(|all| all.remove(handle))),
        }
    }
}
