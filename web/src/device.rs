//! Opening a device, what it is, and memory.

use crate::error::{Thrown, js};
use crate::object::object;
use js_sys::{Object, Promise, Reflect};
use volta::gpu::{AdapterKind, adapters_async, lose_device};
use volta::tab::promise;
use volta::{Device, counters, reset_peak, set_default_device};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// Takes the CPU for new tensors.
#[wasm_bindgen]
pub fn use_cpu() {
    set_default_device(Device::Cpu);
}

/// Opens the browser's adapter, as a promise of what it is, and takes it for new tensors.
#[wasm_bindgen]
pub fn use_gpu() -> Promise {
    promise(async {
        let adapters = adapters_async().await;
        let device = volta::gpu::open(0).await.map_err(js)?;
        set_default_device(device);
        let Some(adapter) = adapters.into_iter().find(|adapter| adapter.index == Some(0)) else {
            return Ok(JsValue::NULL);
        };
        let limits = Object::new();
        for (name, limit) in [
            ("maxStorageBufferBindingSize", adapter.max_binding_bytes as f64),
            ("maxStorageBuffersPerShaderStage", f64::from(adapter.max_buffers)),
            ("maxComputeInvocationsPerWorkgroup", f64::from(adapter.max_workgroup)),
            ("maxComputeWorkgroupStorageSize", f64::from(adapter.workgroup_bytes)),
        ] {
            // Setting a property of a new object does not fail.
            let _ = Reflect::set(&limits, &name.into(), &limit.into());
        }
        Ok(object([
            ("name", adapter.name.as_str().into()),
            ("software", (adapter.kind == AdapterKind::Software).into()),
            ("f16", adapter.f16.into()),
            ("timestamps", adapter.timestamps.into()),
            ("limits", limits.into()),
        ]))
    })
}

/// Destroys the GPU's device, as its driver might.
#[wasm_bindgen]
pub fn lose_gpu() -> Thrown<()> {
    lose_device(0).map_err(js)
}

/// What the engine has done and holds.
#[wasm_bindgen]
pub fn engine_counters() -> JsValue {
    let counted = counters();
    let number = |x: u64| JsValue::from(x as f64);
    object([
        ("plansCompiled", number(counted.plans_compiled)),
        ("plansReplayed", number(counted.plans_replayed)),
        ("kernelsRun", number(counted.kernels_run)),
        ("submissions", number(counted.submissions)),
        ("shadersCompiled", number(counted.shaders_compiled)),
        ("uploads", number(counted.uploads)),
        ("reads", number(counted.reads)),
        ("poolBytes", number(counted.pool_bytes)),
        ("usedBytes", number(counted.used_bytes)),
        ("peakBytes", number(counted.peak_bytes)),
    ])
}

/// Counts the peak anew.
#[wasm_bindgen]
pub fn engine_reset_peak() {
    reset_peak();
}

/// The plan that ran last: its kernels, memory, and a table for people.
#[wasm_bindgen]
pub fn engine_last_plan() -> JsValue {
    match volta::last_plan() {
        Some(plan) => crate::profile::plan(&plan),
        None => JsValue::NULL,
    }
}
