//! JavaScript's objects, made of names and values and read by name.

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::JsValue;

/// An object of these properties.
pub fn object<const N: usize>(properties: [(&str, JsValue); N]) -> JsValue {
    let made = Object::new();
    for (name, value) in properties {
        // Setting a property of a new object does not fail.
        let _ = Reflect::set(&made, &name.into(), &value);
    }
    made.into()
}

/// An array of what an iterator gives.
pub fn list(values: impl IntoIterator<Item = JsValue>) -> JsValue {
    values.into_iter().collect::<Array>().into()
}

/// A property, if it is there.
fn property(of: &JsValue, name: &str) -> Option<JsValue> {
    let value = Reflect::get(of, &name.into()).ok()?;
    (!value.is_undefined() && !value.is_null()).then_some(value)
}

/// A number by name.
pub fn number(of: &JsValue, name: &str) -> Option<f64> {
    property(of, name)?.as_f64()
}

/// A text by name.
pub fn text(of: &JsValue, name: &str) -> Option<String> {
    property(of, name)?.as_string()
}

/// Whether a property is true.
pub fn flag(of: &JsValue, name: &str) -> bool {
    property(of, name).is_some_and(|value| value.is_truthy())
}

/// The numbers of an array by name.
pub fn numbers(of: &JsValue, name: &str) -> Option<Vec<f64>> {
    property(of, name).map(|value| Array::from(&value).iter().filter_map(|n| n.as_f64()).collect())
}
