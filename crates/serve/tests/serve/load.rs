//! Many clients at once, and clients that go.

use super::client::{Running, generated, llm, long_llm, receive, send, user};
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use volta::text::SamplerOptions;
use volta_serve::{ServeOptions, ServedModels};
use volta_testing::test;

/// What takes hundreds of tokens, whatever the model would like.
fn endless() -> Value {
    let schema = json!({"type": "string", "minLength": 1024});
    json!({
        "messages": user("Hi"), "temperature": 1, "seed": 1, "stream": true,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    })
}

/// Waits for what comes soon.
fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn sixteen_clients_each_get_what_they_would_alone() {
    let llm = llm("llama");
    for fixed_batch in [false, true] {
        let options = ServeOptions { fixed_batch, max_batch: 16, ..ServeOptions::default() };
        let server = Running::new(ServedModels::new().with_llm("tiny", super::client::llm("llama")), options);
        let found: Vec<(u64, String)> = std::thread::scope(|scope| {
            let ask = |k: u64| {
                let text = "The river runs. ".repeat(1 + k as usize % 3);
                let body = json!({"prompt": text, "max_tokens": 8 + k, "seed": k, "temperature": 1});
                let answer = server.ok("/v1/completions", &body);
                (k, answer["choices"][0]["text"].as_str().unwrap().to_string())
            };
            let clients: Vec<_> = (0..16).map(|k| scope.spawn(move || ask(k))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for (k, text) in found {
            let prompt = llm.prompt(&"The river runs. ".repeat(1 + k as usize % 3)).unwrap();
            let options = SamplerOptions { seed: k, ..SamplerOptions::default() };
            assert_eq!(text, generated(&llm, &prompt, &options, 8 + k as usize).0, "client {k}");
        }
        wait("texts are left", || server.metric("volta_texts_running") == 0);
    }
}

#[test]
fn a_client_that_goes_frees_its_place_and_a_full_queue_is_told() {
    let options = ServeOptions { max_batch: 1, max_queue: 1, ..ServeOptions::default() };
    let server = Running::new(ServedModels::new().with_llm("tiny", long_llm()), options);
    let mut first = server.connect();
    send(&mut first, "POST", "/v1/chat/completions", "", endless().to_string().as_bytes());
    wait("it is never written", || server.metric("volta_texts_running") == 1);
    let mut second = server.connect();
    send(
        &mut second,
        "POST",
        "/v1/chat/completions",
        "",
        br#"{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2}"#,
    );
    wait("nobody waits", || server.metric("volta_texts_waiting") == 1);
    let (status, head, body) = server.ask("POST", "/v1/completions", "", br#"{"prompt":"x","max_tokens":1}"#);
    assert_eq!(status, 429, "{body}");
    assert!(head.to_lowercase().contains("retry-after: 1") && body.contains("queue_full"), "{head}\n{body}");
    drop(first);
    // Whoever waited gets the place.
    assert_eq!(receive(second).0, 200);
    assert_eq!(server.metric("volta_texts_cancelled_total"), 1);
    server.ok("/v1/completions", &json!({"prompt": "x", "max_tokens": 1}));
}

#[test]
fn a_plain_request_that_is_given_up_is_cancelled_too() {
    let options = ServeOptions { max_batch: 1, max_queue: 0, ..ServeOptions::default() };
    let server = Running::new(ServedModels::new().with_llm("tiny", long_llm()), options);
    let mut body = endless();
    body["stream"] = false.into();
    let mut first = server.connect();
    send(&mut first, "POST", "/v1/chat/completions", "", body.to_string().as_bytes());
    wait("it was never written", || server.metric("volta_texts_running") == 1);
    drop(first);
    wait("it was never cancelled", || server.metric("volta_texts_cancelled_total") == 1);
    server.ok("/v1/completions", &json!({"prompt": "x", "max_tokens": 1}));
}

#[test]
fn a_server_that_is_stopped_ends_though_clients_stay() {
    let server = Running::new(ServedModels::new().with_llm("tiny", long_llm()), ServeOptions::default());
    let idle = server.connect();
    let mut busy = server.connect();
    send(&mut busy, "POST", "/v1/chat/completions", "", endless().to_string().as_bytes());
    busy.read_exact(&mut [0; 300]).unwrap();
    // It waits for its threads.
    drop(server);
    drop((idle, busy));
}
