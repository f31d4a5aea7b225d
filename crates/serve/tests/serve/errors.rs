//! What is wrong, or not there, is an error in OpenAI's form that names the field.

use super::client::{Running, user};
use serde_json::{Value, json};
use volta_testing::test;

#[test]
fn what_is_not_supported_or_wrong_is_named() {
    let server = Running::of("llama");
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    let image = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]);
    let cases = [
        ("tools", tool),
        ("tool_choice", json!("required")),
        ("logit_bias", json!({"50256": -100})),
        ("functions", json!([{"name": "f"}])),
        ("audio", json!({"voice": "x"})),
        ("modalities", json!(["audio"])),
        ("store", json!(true)),
        ("temprature", json!(1)),
        ("temperature", json!(-1)),
        ("temperature", json!("hot")),
        ("top_p", json!(1.5)),
        ("top_k", json!(-3)),
        ("max_tokens", json!(-5)),
        ("max_tokens", json!(0)),
        ("max_completion_tokens", json!(1.5)),
        ("n", json!(0)),
        ("n", json!(1_000_000)),
        ("seed", json!(1.5)),
        ("seed", json!("x")),
        ("presence_penalty", json!(3)),
        ("stop", json!(["a", 1])),
        ("stop", json!("")),
        ("stop", json!(vec!["a"; 17])),
        ("top_logprobs", json!(3)),
        ("logprobs", json!(3)),
        ("stream", json!("yes")),
        ("stream_options", json!({"include_usage": true})),
        ("response_format", json!("json")),
        ("response_format.type", json!({"type": "xml"})),
        ("response_format.json_schema", json!({"type": "json_schema"})),
        ("messages", json!([])),
        ("messages", json!("Hi")),
        ("messages", Value::Null),
        ("messages[0].role", json!([{"role": "wizard", "content": "x"}])),
        ("messages[0].role", json!([{"role": "tool", "content": "x"}])),
        ("messages[0].content", json!([{"role": "user", "content": 3}])),
        ("messages[0].content", json!([{"role": "user"}])),
        ("messages[0].content[0].type", image),
        ("messages[0].tool_calls", json!([{"role": "assistant", "content": "x", "tool_calls": [{"id": 1}]}])),
        ("messages[0]", json!(["Hi"])),
    ];
    for (param, value) in cases {
        let mut body = json!({"messages": user("Hi"), "max_tokens": 2});
        let field = param.split(['.', '[']).next().unwrap();
        body[field] = value;
        let (status, answer) = server.post("/v1/chat/completions", &body);
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{body}\n{answer}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
        assert!(answer["error"]["message"].as_str().unwrap().len() > 10);
    }
    let (status, answer) = server.post("/v1/chat/completions", &json!({"messages": user(&"x ".repeat(200))}));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("context_length_exceeded")));
    let (status, answer) =
        server.post("/v1/chat/completions", &json!({"model": "gpt-4", "messages": user("x")}));
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
    for (param, value) in [
        ("prompt", json!([300])),
        ("prompt", json!([-1])),
        ("prompt", json!([])),
        ("prompt", json!([["a"]])),
        ("prompt", json!({})),
        ("echo", json!(true)),
        ("suffix", json!("x")),
        ("best_of", json!(3)),
        ("logprobs", json!(6)),
        ("messages", user("Hi")),
    ] {
        let mut body = json!({"prompt": "x", "max_tokens": 2});
        body[param] = value;
        let (status, answer) = server.post("/v1/completions", &body);
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{body}\n{answer}");
    }
}

#[test]
fn a_model_without_a_template_goes_on_and_does_not_chat() {
    let server = Running::of("qwen3");
    let (status, answer) = server.post("/v1/chat/completions", &json!({"messages": user("Hi")}));
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("/v1/completions"), "{answer}");
    server.ok("/v1/completions", &json!({"prompt": "Hi", "max_tokens": 2}));
    let (status, answer) = server.post("/v1/embeddings", &json!({"input": "x"}));
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("--embeddings"), "{answer}");
}

#[test]
fn paths_and_methods_that_are_not_there_are_errors() {
    let server = Running::of("llama");
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/tiny", 200),
        ("GET", "/v1/models/%74iny", 200),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/", 405),
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
    ] {
        let (found, _, body) = server.ask(method, path, "", b"");
        assert_eq!(found, status, "{method} {path}: {body}");
    }
    let (status, page) = server.get("/");
    assert_eq!(status, 200);
    // The page loads nothing from anywhere.
    assert!(page.contains("<title>Volta</title>") && !page.contains("http://") && !page.contains("https://"));
    server.metric("volta_http_requests_total{path=\"/health\",status=\"200\"}");
}
