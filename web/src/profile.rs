//! Where the time goes, and what a plan is, as JavaScript's objects.

use crate::error::{Thrown, argument};
use crate::handles::PROFILERS;
use crate::object::{list, object};
use volta::{PlanReport, Profile, Profiler};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A profile that is being taken.
pub struct Profiling(Profiler);

/// Begins to time kernels.
#[wasm_bindgen]
pub fn profile_begin() -> u32 {
    let profiling = Profiling(Profiler::begin());
    PROFILERS.with_borrow_mut(|all| all.insert(profiling))
}

/// Ends it.
#[wasm_bindgen]
pub fn profile_end(handle: u32) -> Thrown<JsValue> {
    match PROFILERS.with_borrow_mut(|all| all.remove(handle)) {
        Some(taken) => Ok(of(&taken.0.end())),
        None => Err(argument("this profile has ended already")),
    }
}

/// A profile as an object.
pub fn of(profile: &Profile) -> JsValue {
    let ms = |time: std::time::Duration| JsValue::from(time.as_secs_f64() * 1e3);
    let kernels = profile.kernels.iter().map(|k| {
        object([
            ("name", k.label.as_str().into()),
            ("kind", k.kind.into()),
            ("result", k.result.as_str().into()),
            ("count", (k.calls as f64).into()),
            ("ms", ms(k.time)),
            ("flops", (k.flops as f64).into()),
            ("bytes", (k.bytes as f64).into()),
        ])
    });
    let report = profile.by_op();
    let ops = report.ops.iter().map(|op| {
        object([("name", op.name.as_str().into()), ("calls", (op.calls as f64).into()), ("ms", ms(op.time))])
    });
    object([
        ("kernels", list(kernels)),
        ("ops", list(ops)),
        ("totalMs", ms(profile.total())),
        ("untimed", (profile.untimed as f64).into()),
        ("trace", profile.trace_json().into()),
    ])
}

/// A plan as an object.
pub fn plan(plan: &PlanReport) -> JsValue {
    let kernels = plan.kernels.iter().map(|k| {
        object([
            ("name", k.label.as_str().into()),
            ("kind", k.kind.into()),
            ("bytesRead", (k.bytes_read as f64).into()),
            ("bytesWritten", (k.bytes_written as f64).into()),
            ("flops", (k.flops as f64).into()),
        ])
    });
    object([
        ("kernels", list(kernels)),
        ("peakBytes", (plan.peak_bytes as f64).into()),
        ("text", plan.to_string().into()),
    ])
}
