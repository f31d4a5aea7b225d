//! JSON as files here need it: objects keep their order, and a name that stands there twice is an error.

use serde::Deserializer;
use serde::de::{Deserialize, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// Gives the members of an object to `each`, one after the other, so that a long list of them is never there as a
    /// whole. Stops at the first error.
    pub fn parse_members(
        text: &str,
        mut each: impl FnMut(String, Json) -> Result<(), String>,
    ) -> Result<(), String> {
        // The parser would add a place to an error of `each`.
        let mut wrong = None;
        let members = Members(|name, value| match each(name, value) {
            Ok(()) => true,
            Err(what) => {
                wrong = Some(what);
                false
            }
        });
        let mut parser = serde_json::Deserializer::from_str(text);
        let read = parser.deserialize_map(members).and_then(|()| parser.end());
        match wrong {
            Some(what) => Err(what),
            None => read.map_err(|e| e.to_string()),
        }
    }

    /// The member of an object.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The member of an object that must be there and be of a kind.
    pub fn member<'a, T>(
        &'a self,
        name: &str,
        read: impl FnOnce(&'a Json) -> Option<T>,
    ) -> Result<T, String> {
        match self.get(name) {
            Some(value) => read(value).ok_or_else(|| format!("its {name:?} is {value}")),
            None => Err(format!("it has no {name:?}")),
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> Option<&[Json]> {
        match self {
            Json::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn object(&self) -> Option<&[(String, Json)]> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// A list of sizes.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        self.list()?
            .iter()
            .map(|n| match n {
                Json::Int(n) => usize::try_from(*n).ok(),
                _ => None,
            })
            .collect()
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl FromIterator<(String, Json)> for Json {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Json {
        Json::Object(members.into_iter().collect())
    }
}

/// Written without spaces; numbers that are not finite, which JSON does not have, as `null`.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(yes) => write!(f, "{yes}"),
            Json::Int(n) => write!(f, "{n}"),
            // With all digits that tell it from its neighbours, and never like a whole number.
            Json::Float(x) if x.is_finite() => write!(f, "{x:?}"),
            Json::Float(_) => f.write_str("null"),
            Json::Text(text) => quoted(f, text),
            Json::List(list) => {
                for (k, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if k == 0 { "[" } else { "," })?;
                }
                f.write_str(if list.is_empty() { "[]" } else { "]" })
            }
            Json::Object(members) => {
                for (k, (name, value)) in members.iter().enumerate() {
                    f.write_str(if k == 0 { "{" } else { "," })?;
                    quoted(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// In objects with more members, names that stand there twice are found by a set of all names.
const MAX_COMPARED_MEMBERS: usize = 8;

struct Reader;

/// Gives members away until it is told not to.
struct Members<F>(F);

impl<'de, F: FnMut(String, Json) -> bool> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if seen.contains(&name) {
                return Err(twice(&name));
            }
            seen.insert(name.clone());
            let value = map.next_value()?;
            if !(self.0)(name, value) {
                return Err(A::Error::custom("it is not read to its end"));
            }
        }
        Ok(())
    }
}

fn twice<E: serde::de::Error>(name: &str) -> E {
    E::custom(format!("{name:?} stands there twice"))
}

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Json, E> {
        Ok(Json::Bool(yes))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(i64::try_from(n).map_or(Json::Float(n as f64), Json::Int))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        Ok(Json::Float(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element()? {
            all.push(value);
        }
        Ok(Json::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        // A header has very many objects of three members each: so few are compared one by one.
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let is_twice = if members.len() < MAX_COMPARED_MEMBERS {
                members.iter().any(|(known, _)| *known == name)
            } else {
                if seen.is_empty() {
                    seen = members.iter().map(|(known, _)| known.clone()).collect();
                }
                !seen.insert(name.clone())
            };
            if is_twice {
                return Err(twice(&name));
            }
            let value = map.next_value()?;
            members.push((name, value));
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_in_the_same_order() {
        let text =
            r#"{"b":[1,-9223372036854775808,0.1,1e300,-0.0,true,null],"a":{"é\"\n":"\u0000"},"c":[],"d":{}}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(Json::parse(&json.to_string()).unwrap(), json);
        let names: Vec<&str> = json.object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c", "d"]);
        assert_eq!(json.get("b").unwrap().list().unwrap()[4].to_string(), "-0.0");
    }

    #[test]
    fn a_name_that_stands_there_twice_is_an_error_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"a":2}}]"#] {
            assert!(Json::parse(text).unwrap_err().contains("\"a\" stands there twice"));
        }
    }

    #[test]
    fn members_are_given_away_one_by_one() {
        let mut found = Vec::new();
        let mut read = |text: &str| {
            Json::parse_members(text, |name, value| {
                found.push(name);
                if value == Json::Null { Err("it is null".to_string()) } else { Ok(()) }
            })
        };
        assert_eq!(read(r#" {"b":1,"a":[{}]} "#), Ok(()));
        assert_eq!(read(r#"{"c":null,"d":1}"#), Err("it is null".to_string()));
        for (text, part) in
            [("[]", "a JSON object"), (r#"{"e":1,"e":1}"#, "\"e\" stands there twice"), ("{} x", "trailing")]
        {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(found, ["b", "a", "c", "e"]);
    }

    #[test]
    fn a_name_that_stands_twice_among_many_is_an_error() {
        let object = |names: &[usize]| {
            let members: Vec<String> = names.iter().map(|n| format!("\"{n}\":0")).collect();
            Json::parse(&format!("{{{}}}", members.join(",")))
        };
        let names: Vec<usize> = (0..20).collect();
        assert!(object(&names).is_ok());
        for (at, twice) in [(7, 0), (8, 7), (9, 8), (19, 0), (19, 18)] {
            let mut names = names.clone();
            names[at] = twice;
            assert!(object(&names).unwrap_err().contains("stands there twice"), "{at} {twice}");
        }
    }

    #[test]
    fn depth_is_limited() {
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
