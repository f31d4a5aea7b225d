//! Values of a saved state as JSON that gives them back to the bit.

use super::json::Json;
use crate::state::Value;

/// The member that holds the bits of a number that JSON does not have.
const BITS: &str = "f64";

pub(super) fn to_json(value: &Value) -> Json {
    match value {
        Value::Int(n) => Json::Int(*n),
        Value::Float(x) if x.is_finite() => Json::Float(*x),
        Value::Float(x) => {
            [(BITS.to_string(), Json::Text(format!("{:016x}", x.to_bits())))].into_iter().collect()
        }
        Value::Text(text) => Json::Text(text.clone()),
    }
}

pub(super) fn from_json(json: &Json) -> Option<Value> {
    match json {
        Json::Int(n) => Some(Value::Int(*n)),
        Json::Float(x) => Some(Value::Float(*x)),
        Json::Text(text) => Some(Value::Text(text.clone())),
        Json::Object(_) => {
            let bits = u64::from_str_radix(json.get(BITS)?.text()?, 16).ok()?;
            Some(Value::Float(f64::from_bits(bits)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_bit() {
        let floats = [
            0.1,
            -0.0,
            1.0,
            1e16,
            5e-324,
            f64::MAX,
            f64::MIN_POSITIVE,
            1.0 / 3.0,
            0.1 + 0.2,
            9007199254740993.0,
        ];
        let odd =
            [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
        // Numbers without any structure, from the bits of a counter.
        let mixed = (1..2000u64).map(|k| f64::from_bits(k.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        for x in floats.into_iter().chain(odd).chain(mixed) {
            let text = to_json(&Value::Float(x)).to_string();
            let Some(Value::Float(back)) = from_json(&Json::parse(&text).unwrap()) else { panic!("{text}") };
            assert_eq!(back.to_bits(), x.to_bits(), "{x:?} became {text}");
        }
        for n in [0, -1, i64::MIN, i64::MAX, (1 << 53) + 1] {
            let text = to_json(&Value::Int(n)).to_string();
            assert_eq!(from_json(&Json::parse(&text).unwrap()), Some(Value::Int(n)));
        }
    }
}
