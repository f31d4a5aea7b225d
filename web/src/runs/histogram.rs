//! Numbers in short: how many lie where.

use crate::object::object;
use js_sys::Uint32Array;
use wasm_bindgen::JsValue;

/// Bins of equal width.
const BINS: usize = 40;

/// A histogram as an object; what is not finite is left out.
pub fn of(values: &[f32]) -> JsValue {
    let (mut min, mut max, mut sum, mut squares, mut count) =
        (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0.0f64);
    for x in values.iter().filter(|x| x.is_finite()).map(|&x| f64::from(x)) {
        (min, max) = (min.min(x), max.max(x));
        sum += x;
        squares += x * x;
        count += 1.0;
    }
    if count == 0.0 {
        (min, max) = (0.0, 0.0);
    }
    let width = (max - min).max(f64::MIN_POSITIVE) / BINS as f64;
    let mut bins = [0u32; BINS];
    for x in values.iter().filter(|x| x.is_finite()) {
        bins[(((f64::from(*x) - min) / width) as usize).min(BINS - 1)] += 1;
    }
    let mean = sum / count.max(1.0);
    let variance = (squares / count.max(1.0) - mean * mean).max(0.0);
    object([
        ("min", min.into()),
        ("max", max.into()),
        ("counts", Uint32Array::from(&bins[..]).into()),
        ("mean", mean.into()),
        ("std", variance.sqrt().into()),
    ])
}
