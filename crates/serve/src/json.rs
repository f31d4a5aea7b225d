//! JSON whose objects keep their order: a schema's properties are written in it.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use std::fmt;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text.
    pub fn read(text: &[u8]) -> Result<Json, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// What it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::Text(_) => "a string",
            Json::List(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub fn list(&self) -> Option<&[Json]> {
        if let Json::List(list) = self { Some(list) } else { None }
    }

    pub fn object(&self) -> Option<&[(String, Json)]> {
        if let Json::Object(fields) = self { Some(fields) } else { None }
    }

    /// A whole number that is not negative.
    pub fn count(&self) -> Option<u64> {
        if let Json::Number(number) = self { number.as_u64() } else { None }
    }

    /// A field of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The same for `serde_json`.
    pub fn value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => (*value).into(),
            Json::Number(number) => number.clone().into(),
            Json::Text(text) => text.as_str().into(),
            Json::List(list) => list.iter().map(Json::value).collect(),
            Json::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value.value())).collect(),
        }
    }

    /// The shortest text, in its own order.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::List(list) => {
                out.push('[');
                for (k, item) in list.iter().enumerate() {
                    out.push_str(if k > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (k, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if k > 0 { "," } else { "" });
                    out.push_str(&Value::from(name.as_str()).to_string());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
            plain => out.push_str(&plain.value().to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Number::from_f64(value).map(Json::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_string()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(field) = items.next_entry()? {
            fields.push(field);
        }
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(A::Error::custom(format!("the field {:?} is there twice", pair[0]))),
            None => Ok(Json::Object(fields)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn objects_keep_their_order_and_have_each_field_once() {
        let text = r#"{"b":[1,-2,0.5,null],"a":{"x":"\n"},"c":true}"#;
        let mut written = String::new();
        Json::read(text.as_bytes()).unwrap().write(&mut written);
        assert_eq!(written, text);
        assert!(Json::read(br#"{"a":1,"b":2,"a":3}"#).unwrap_err().to_string().contains("twice"));
        assert!(Json::read("[".repeat(100_000).as_bytes()).is_err());
        assert!(Json::read(b"{\"a\":1e999}").is_err());
    }
}
