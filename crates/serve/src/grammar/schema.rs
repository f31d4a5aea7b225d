//! The grammar of a JSON Schema.
//!
//! What is written satisfies the schema, though not all that satisfies it can be written: properties come in the schema's order, and
//! none that it does not name. A keyword that is not known is an error that names it.

use super::build::Builder;
use super::json::{Parts, member_of, sequence};
use super::{Edge, Grammar};
use crate::json::Json;
use std::collections::HashMap;

/// Keywords that ask for nothing.
const NOTES: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// The keywords that are understood.
const KNOWN: [&str; 13] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "enum",
    "const",
    "anyOf",
    "$ref",
];
/// The most that `minItems`, `maxLength` and their like may ask for.
const MAX_COUNT: u64 = 1024;
/// The most states of all options that an `anyOf` or `enum` has.
const MAX_OPTIONS: usize = 1024;

/// Any object.
pub fn any_object() -> Grammar {
    let mut b = Builder::default();
    let parts = Parts::new(&mut b);
    b.finish(parts.object)
}

/// What satisfies a schema.
///
/// # Errors
/// What is not understood, with where it stands.
pub fn of_schema(schema: &Json) -> Result<Grammar, String> {
    let mut b = Builder::default();
    let parts = Parts::new(&mut b);
    let mut compiler = Compiler { b, parts, root: schema, references: HashMap::new() };
    let start = compiler.rule(schema, "")?;
    Ok(compiler.b.finish(start))
}

struct Compiler<'s> {
    b: Builder,
    parts: Parts,
    root: &'s Json,
    /// Where what `$ref`s name begins.
    references: HashMap<String, u32>,
}

/// What is wrong, and where.
fn wrong<T>(place: &str, message: impl std::fmt::Display) -> Result<T, String> {
    let place =
        if place.is_empty() { "the schema".to_string() } else { format!("the schema's {}", &place[1..]) };
    Err(format!("{place}: {message}"))
}

impl<'s> Compiler<'s> {
    /// A state from which a schema can be called.
    fn rule(&mut self, schema: &'s Json, place: &str) -> Result<u32, String> {
        let start = self.b.state();
        self.fill(start, schema, place)?;
        Ok(start)
    }

    /// Lets what satisfies a schema begin at a state.
    fn fill(&mut self, start: u32, schema: &'s Json, place: &str) -> Result<(), String> {
        if self.b.is_too_large() {
            return wrong(place, "the schema is too large");
        }
        let fields = match schema {
            Json::Bool(true) => {
                self.b.empty(start, self.parts.value);
                return Ok(());
            }
            Json::Object(fields) => fields,
            other => return wrong(place, format_args!("a schema is an object, not {}", other.kind())),
        };
        let unknown = |name: &&String| !NOTES.contains(&name.as_str()) && !KNOWN.contains(&name.as_str());
        if let Some(name) = fields.iter().map(|(name, _)| name).find(unknown) {
            let known = KNOWN.join(", ");
            return wrong(place, format_args!("the keyword `{name}` is not supported; there are {known}"));
        }
        for name in ["$ref", "const", "enum", "anyOf"] {
            if let Some(value) = schema.get(name) {
                self.alone(fields, name, place)?;
                return match name {
                    "$ref" => self.reference(start, value, place),
                    "const" => self.literals(start, std::slice::from_ref(value), place),
                    "enum" => match value.list() {
                        Some(list) if !list.is_empty() => self.literals(start, list, place),
                        _ => wrong(place, "`enum` must be an array of at least one value"),
                    },
                    _ => self.options(start, value, place),
                };
            }
        }
        let types = match schema.get("type") {
            None if fields.iter().all(|(name, _)| NOTES.contains(&name.as_str())) => vec!["any"],
            None if schema.get("properties").is_some() => vec!["object"],
            None => return wrong(place, "`type` is missing"),
            Some(Json::Text(one)) => vec![one.as_str()],
            Some(Json::List(list)) if !list.is_empty() => {
                list.iter().map(|name| name.text().unwrap_or("?")).collect()
            }
            Some(_) => return wrong(place, "`type` must be a name or an array of names"),
        };
        self.fit(fields, &types, place)?;
        for name in types {
            match name {
                "any" => self.b.empty(start, self.parts.value),
                "object" => self.object(start, schema, place)?,
                "array" => self.array(start, schema, place)?,
                "string" => self.string(start, schema, place)?,
                "number" => self.b.empty(start, self.parts.number),
                "integer" => self.b.empty(start, self.parts.integer),
                "boolean" => self.words(start, &["true", "false"]),
                "null" => self.words(start, &["null"]),
                other => return wrong(place, format_args!("there is no type `{other}`")),
            }
        }
        Ok(())
    }

    /// That keywords belong to the types: one that would be left out is an error.
    fn fit(&self, fields: &[(String, Json)], types: &[&str], place: &str) -> Result<(), String> {
        for (name, _) in fields {
            let kind = match name.as_str() {
                "properties" | "required" | "additionalProperties" => "object",
                "items" | "minItems" | "maxItems" => "array",
                "minLength" | "maxLength" => "string",
                _ => continue,
            };
            if !types.contains(&kind) {
                return wrong(place, format_args!("`{name}` is for the type `{kind}`"));
            }
        }
        Ok(())
    }

    /// A keyword that says all: beside it, `type` may stand, which adds nothing to values that are named.
    fn alone(&self, fields: &[(String, Json)], name: &str, place: &str) -> Result<(), String> {
        let typed = ["enum", "const"].contains(&name);
        let other = fields
            .iter()
            .map(|(other, _)| other.as_str())
            .find(|other| *other != name && !NOTES.contains(other) && !(typed && *other == "type"));
        match other {
            Some(other) => wrong(place, format_args!("`{other}` beside `{name}` is not supported")),
            None => Ok(()),
        }
    }

    fn words(&mut self, start: u32, words: &[&str]) {
        for word in words {
            let end = self.b.literal(start, word);
            self.b.end(end);
        }
    }

    fn literals(&mut self, start: u32, values: &[Json], place: &str) -> Result<(), String> {
        if values.len() > MAX_OPTIONS {
            return wrong(place, format_args!("{} values: {MAX_OPTIONS} are supported", values.len()));
        }
        for value in values {
            let mut text = String::new();
            value.write(&mut text);
            self.words(start, &[&text]);
        }
        Ok(())
    }

    fn options(&mut self, start: u32, value: &'s Json, place: &str) -> Result<(), String> {
        let Some(options) = value.list().filter(|list| (1..=MAX_OPTIONS).contains(&list.len())) else {
            return wrong(place, "`anyOf` must be an array of schemas");
        };
        for (k, option) in options.iter().enumerate() {
            let rule = self.rule(option, &format!("{place}.anyOf[{k}]"))?;
            self.b.empty(start, rule);
        }
        Ok(())
    }

    /// `#`, or a path from it.
    fn reference(&mut self, start: u32, value: &Json, place: &str) -> Result<(), String> {
        let Some(name) = value.text() else { return wrong(place, "`$ref` must be a string") };
        if let Some(&rule) = self.references.get(name) {
            self.b.edge(start, Edge::Empty(rule));
            return Ok(());
        }
        let Some(path) = name.strip_prefix('#').filter(|path| path.is_empty() || path.starts_with('/'))
        else {
            return wrong(place, format_args!("`$ref` to {name:?} is not supported: it must begin with #/"));
        };
        let mut found = self.root;
        for part in path.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match found.list() {
                Some(list) => part.parse::<usize>().ok().and_then(|k| list.get(k)),
                None => found.get(&part),
            };
            let Some(next) = next else {
                return wrong(place, format_args!("`$ref` to {name:?} finds nothing"));
            };
            found = next;
        }
        // Known before it is filled: it may name itself.
        let rule = self.b.state();
        self.references.insert(name.to_string(), rule);
        self.fill(rule, found, &format!(".{name}"))?;
        self.b.empty(start, rule);
        Ok(())
    }

    fn object(&mut self, start: u32, schema: &'s Json, place: &str) -> Result<(), String> {
        let Parts { blank, string, value, object, .. } = self.parts;
        let properties: &'s [(String, Json)] = match schema.get("properties") {
            None => &[],
            Some(Json::Object(fields)) => fields,
            Some(other) => {
                return wrong(place, format_args!("`properties` must be an object, not {}", other.kind()));
            }
        };
        let mut required = Vec::new();
        match schema.get("required") {
            None => {}
            Some(Json::List(list)) if list.iter().all(|name| name.text().is_some()) => {
                required.extend(list.iter().filter_map(Json::text));
            }
            Some(_) => return wrong(place, "`required` must be an array of names"),
        }
        if let Some(name) = required.iter().find(|name| !properties.iter().any(|(own, _)| own == *name)) {
            return wrong(place, format_args!("`required` names {name:?}, which `properties` does not have"));
        }
        let additional = schema.get("additionalProperties");
        if let Some(other @ (Json::Null | Json::Number(_) | Json::Text(_) | Json::List(_))) = additional {
            return wrong(
                place,
                format_args!("`additionalProperties` must be a schema, not {}", other.kind()),
            );
        }
        if properties.is_empty() {
            match additional {
                None | Some(Json::Bool(true)) => self.b.empty(start, object),
                Some(Json::Bool(false)) => self.words(start, &["{}"]),
                Some(other) => {
                    let own = self.rule(other, &format!("{place}.additionalProperties"))?;
                    let member = self.b.state();
                    let end = member_of(&mut self.b, member, string, own, blank);
                    self.b.end(end);
                    sequence(&mut self.b, start, member, blank, *b"{}");
                }
            }
            return Ok(());
        }
        let opened = self.b.literal(start, "{");
        let inside = self.b.call(opened, blank);
        // Before each property: where none was written yet, and behind one.
        let (mut first, mut later) = (Some(inside), None);
        for (name, property) in properties {
            let rule = if *property == Json::Bool(true) {
                value
            } else {
                self.rule(property, &format!("{place}.properties.{name}"))?
            };
            let key = self.b.state();
            let end = self.b.literal(key, &serde_json::Value::from(name.as_str()).to_string());
            self.b.end(end);
            let begin = self.b.state();
            let behind = member_of(&mut self.b, begin, key, rule, blank);
            if let Some(first) = first {
                self.b.empty(first, begin);
            }
            if let Some(later) = later {
                let comma = self.b.literal(later, ",");
                let ready = self.b.call(comma, blank);
                self.b.empty(ready, begin);
            }
            if required.contains(&name.as_str()) {
                (first, later) = (None, Some(behind));
            } else {
                let skipped = self.b.state();
                self.b.empty(behind, skipped);
                if let Some(later) = later {
                    self.b.empty(later, skipped);
                }
                later = Some(skipped);
            }
        }
        let end = self.b.state();
        for last in [first, later].into_iter().flatten() {
            let ready = self.b.call(last, blank);
            self.b.any_of(ready, b"}", end);
        }
        self.b.end(end);
        Ok(())
    }

    fn array(&mut self, start: u32, schema: &'s Json, place: &str) -> Result<(), String> {
        let Parts { blank, value, .. } = self.parts;
        let item = match schema.get("items") {
            None => value,
            Some(items) => self.rule(items, &format!("{place}.items"))?,
        };
        let (least, most) = self.bounds(schema, ["minItems", "maxItems"], place)?;
        if least == 0 && most.is_none() {
            sequence(&mut self.b, start, item, blank, *b"[]");
            return Ok(());
        }
        let (opened, end) = (self.b.literal(start, "["), self.b.state());
        self.b.end(end);
        let close = |b: &mut Builder, state: u32| {
            let ready = b.call(state, blank);
            b.any_of(ready, b"]", end);
        };
        if least == 0 {
            close(&mut self.b, opened);
        }
        let mut place = self.b.call(opened, blank);
        for count in 1..=most.unwrap_or(least.max(1)) {
            place = self.b.call(place, item);
            if count >= least {
                close(&mut self.b, place);
            }
            if most == Some(count) {
                break;
            }
            let comma = self.b.literal(place, ",");
            let next = self.b.call(comma, blank);
            if most.is_none() && count >= least.max(1) {
                // As many more as are wanted.
                self.b.edge(next, Edge::Call { start: item, next: place });
            }
            place = next;
        }
        Ok(())
    }

    fn string(&mut self, start: u32, schema: &Json, place: &str) -> Result<(), String> {
        let (least, most) = self.bounds(schema, ["minLength", "maxLength"], place)?;
        if least == 0 && most.is_none() {
            self.b.empty(start, self.parts.string);
            return Ok(());
        }
        let (mut inside, end) = (self.b.literal(start, "\""), self.b.state());
        self.b.end(end);
        let character = self.parts.character;
        for count in 0..=most.unwrap_or(least) {
            if count >= least {
                self.b.any_of(inside, b"\"", end);
            }
            if most == Some(count) {
                break;
            }
            if most.is_none() && count == least {
                self.b.edge(inside, Edge::Call { start: character, next: inside });
                break;
            }
            inside = self.b.call(inside, character);
        }
        Ok(())
    }

    fn bounds(&self, schema: &Json, names: [&str; 2], place: &str) -> Result<(u64, Option<u64>), String> {
        let bound = |name: &str| match schema.get(name).map(Json::count) {
            None => Ok(None),
            Some(Some(count)) if count <= MAX_COUNT => Ok(Some(count)),
            Some(_) => wrong(place, format_args!("`{name}` must be a whole number from 0 to {MAX_COUNT}")),
        };
        let (least, most) = (bound(names[0])?.unwrap_or(0), bound(names[1])?);
        match most.filter(|most| *most < least) {
            Some(most) => {
                wrong(place, format_args!("`{}` is {least}, and `{}` is {most}", names[0], names[1]))
            }
            None => Ok((least, most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matcher;
    use super::*;

    /// Whether a text satisfies a schema; nothing if it could be the beginning of one that does.
    fn takes(schema: &str, text: &str) -> Option<bool> {
        let schema = Json::read(schema.as_bytes()).unwrap();
        let mut matcher = Matcher::new(of_schema(&schema).unwrap().into());
        if !matcher.push(text.as_bytes()) {
            return Some(false);
        }
        matcher.may_end().then_some(true)
    }

    #[test]
    fn texts_satisfy_schemas_or_not() {
        let person = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"mail":{"type":["string","null"]}},"required":["name","mail"],"additionalProperties":false}"#;
        let tree = r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"number"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}}"##;
        let list = r#"{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3}"#;
        let cases: &[(&str, &str, Option<bool>)] = &[
            (person, r#"{"name":"a","age":3,"mail":null}"#, Some(true)),
            (person, "{\n  \"name\": \"é\\u00e9\",\n  \"mail\": \"x\"\n}", Some(true)),
            (person, r#"{"name":"a""#, None),
            (person, r#"{"age":3"#, Some(false)),
            (person, r#"{"name":"a","age":3.5"#, Some(false)),
            (person, r#"{"name":"a","age":3}"#, Some(false)),
            (person, r#"{"name":"a","mail":null,"#, Some(false)),
            (person, r#"{"mail"#, Some(false)),
            (tree, r#"{"v":-1.5e3,"next":{"v":0,"next":null}}"#, Some(true)),
            (tree, r#"{"v":01"#, Some(false)),
            (tree, r#"{"v":1,"next":[]"#, Some(false)),
            (list, "[]", Some(false)),
            (list, "[true, false]", Some(true)),
            (list, "[true,true,true,", Some(false)),
            (r#"{"type":"array","items":{"type":"null"},"minItems":2}"#, "[null]", Some(false)),
            (r#"{"type":"array","items":{"type":"null"},"minItems":2}"#, "[null,null,null]", Some(true)),
            (r#"{"type":"array","maxItems":0}"#, "[]", Some(true)),
            (r#"{"type":"array","maxItems":0}"#, "[1", Some(false)),
            (r#"{"type":"string","minLength":2,"maxLength":3}"#, "\"é中\"", Some(true)),
            (r#"{"type":"string","minLength":2,"maxLength":3}"#, "\"a\"", Some(false)),
            (r#"{"type":"string","minLength":2,"maxLength":3}"#, "\"abcd", Some(false)),
            (r#"{"type":"string","minLength":1}"#, "\"abcd\"", Some(true)),
            (r#"{"type":"string","minLength":1}"#, "\"\"", Some(false)),
            (r#"{"enum":["red","green",3,{"b":1,"a":2}]}"#, r#"{"b":1,"a":2}"#, Some(true)),
            (r#"{"enum":["red","green",3]}"#, "\"blue", Some(false)),
            (r#"{"const":"x\ny"}"#, r#""x\ny""#, Some(true)),
            (
                r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
                r#"{"a":1, "b":-2}"#,
                Some(true),
            ),
            (r#"{"type":"object","additionalProperties":{"type":"integer"}}"#, r#"{"a":""#, Some(false)),
            (r#"{"type":"object","properties":{"a":true}}"#, "{}", Some(true)),
            (r#"{"type":"object","properties":{"a":true,"b":true}}"#, r#"{"b":[1,{}]}"#, Some(true)),
            (r#"{"type":"object","properties":{"a":true,"b":true}}"#, r#"{,"#, Some(false)),
            ("{}", r#"[{"a":"\ud83d"#, Some(false)),
            ("{}", "\"\u{1F642}\"", Some(true)),
            ("{}", "\"a\nb", Some(false)),
        ];
        for (schema, text, expected) in cases {
            assert_eq!(takes(schema, text), *expected, "{schema}\n{text}");
        }
        let mut matcher = Matcher::new(any_object().into());
        assert!(!matcher.push(b"\"\xc3(") && matcher.push(b"{}") && matcher.is_complete());
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let cases = [
            (
                r#"{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}"#,
                "properties.a: the keyword `pattern`",
            ),
            (r#"{"type":"integer","minimum":3}"#, "`minimum`"),
            (r#"{"type":"string","maxLength":100000}"#, "`maxLength`"),
            (r#"{"type":"string","items":{}}"#, "`items` is for the type `array`"),
            (r#"{"type":"object","required":["x"]}"#, "\"x\""),
            (r#"{"$ref":"http://x/y"}"#, "must begin with #/"),
            (r##"{"$ref":"#/nothing"}"##, "finds nothing"),
            (r#"{"type":"date"}"#, "no type `date`"),
            (r#"{"anyOf":[{"type":"null"}],"type":"null"}"#, "`type` beside `anyOf`"),
            (r#"{"properties":3}"#, "`properties`"),
            ("3", "not a number"),
        ];
        for (schema, expected) in cases {
            let error = of_schema(&Json::read(schema.as_bytes()).unwrap()).err().unwrap();
            assert!(error.contains(expected), "{schema}: {error}");
        }
    }

    #[test]
    fn a_schema_that_goes_round_in_circles_ends() {
        let schema = Json::read(br##"{"anyOf":[{"$ref":"#"}]}"##).unwrap();
        let matcher = Matcher::new(of_schema(&schema).unwrap().into());
        assert!(!matcher.may_end() && !matcher.is_complete());
        let deep = format!("{}1", "[".repeat(5000));
        assert_eq!(takes("{}", &deep), Some(false));
    }
}
