//! Answers that are JSON, of a schema or of none.

use super::client::{Running, long_llm, user};
use serde_json::{Value, json};
use volta_serve::{ServeOptions, ServedModels};
use volta_testing::test;

fn content(answer: &Value) -> (&str, &str) {
    let choice = &answer["choices"][0];
    (choice["message"]["content"].as_str().unwrap(), choice["finish_reason"].as_str().unwrap())
}

#[test]
fn a_model_of_random_weights_writes_what_a_schema_asks_for() {
    let server = Running::new(ServedModels::new().with_llm("tiny", long_llm()), ServeOptions::default());
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["kind", "flags", "name"],
        "properties": {
            "kind": {"enum": ["bird", "fish"]},
            "flags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
            "name": {"type": "string", "maxLength": 12},
            "more": {"anyOf": [{"type": "null"}, {"const": 7}]},
        },
    });
    for seed in 0..4 {
        let format =
            json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
        let body = json!({
            "messages": user("Hi"), "temperature": 1, "seed": seed, "response_format": format,
            "max_tokens": 1000,
        });
        let answer = server.ok("/v1/chat/completions", &body);
        let (text, end) = content(&answer);
        assert_eq!(end, "stop", "{text}");
        let value: Value = serde_json::from_str(text).unwrap();
        let flags = value["flags"].as_array().unwrap();
        assert!(["bird", "fish"].contains(&value["kind"].as_str().unwrap()));
        assert!((2..=3).contains(&flags.len()) && flags.iter().all(Value::is_boolean));
        assert!(value["name"].as_str().unwrap().chars().count() <= 12);
        assert!(value.as_object().unwrap().len() <= 4);
    }
}

#[test]
fn any_object_is_valid_json_as_far_as_it_came() {
    let server = Running::of("llama");
    for seed in 0..6 {
        let body = json!({
            "prompt": "The", "temperature": 1, "seed": seed, "response_format": {"type": "json_object"},
            "max_tokens": 40,
        });
        let answer = server.ok("/v1/completions", &body);
        let text = answer["choices"][0]["text"].as_str().unwrap();
        match serde_json::from_str::<Value>(text) {
            Ok(value) => assert!(value.is_object(), "{text}"),
            // It was cut off, and not wrong.
            Err(error) => {
                assert!(text.ends_with(char::REPLACEMENT_CHARACTER) || error.is_eof(), "{text}: {error}");
                assert_eq!(answer["choices"][0]["finish_reason"], "length");
            }
        }
    }
}

#[test]
fn a_keyword_that_is_not_supported_is_named() {
    let server = Running::of("llama");
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let (status, answer) =
        server.post("/v1/chat/completions", &json!({"messages": user("Hi"), "response_format": format}));
    assert_eq!(status, 400);
    assert_eq!(answer["error"]["param"], "response_format.json_schema.schema");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("properties.a") && message.contains("`pattern`"), "{message}");
}
