//! What is answered is what `generate` writes: whole, streamed, several at once.

use super::client::{Running, fixture, generated, llm, user};
use serde_json::{Value, json};
use volta::models::Embedder;
use volta::text::{ChatMessage, SamplerOptions};
use volta_testing::test;

const PROMPT: &str = "The river";

fn sampling(temperature: f32, seed: u64) -> SamplerOptions {
    SamplerOptions { temperature, seed, ..SamplerOptions::default() }
}

/// The text of a stream's choices.
fn joined(events: &[Value], choices: usize) -> Vec<String> {
    let mut texts = vec![String::new(); choices];
    for choice in events.iter().flat_map(|event| event["choices"].as_array().unwrap()) {
        let text = choice["text"].as_str().or(choice["delta"]["content"].as_str());
        texts[choice["index"].as_u64().unwrap() as usize] += text.unwrap_or("");
    }
    texts
}

#[test]
fn completions_are_what_generate_writes() {
    for name in ["llama", "gpt2"] {
        let (server, llm) = (Running::of(name), llm(name));
        let prompt = llm.prompt(PROMPT).unwrap();
        for (temperature, seed) in [(0.0, 0), (1.0, 1), (0.7, 2)] {
            let (text, tokens) = generated(&llm, &prompt, &sampling(temperature, seed), 20);
            let mut body = json!({
                "model": "tiny", "prompt": PROMPT, "max_tokens": 20, "temperature": temperature, "seed": seed,
            });
            let answer = server.ok("/v1/completions", &body);
            assert_eq!(answer["choices"][0]["text"], text, "{name}");
            assert_eq!(answer["object"], "text_completion");
            let end = if tokens == 20 { "length" } else { "stop" };
            assert_eq!(answer["choices"][0]["finish_reason"], end);
            let (given, all) = (prompt.len(), prompt.len() + tokens);
            let usage = json!({"prompt_tokens": given, "completion_tokens": tokens, "total_tokens": all});
            assert_eq!(answer["usage"], usage);
            body["stream"] = true.into();
            body["prompt"] = prompt.clone().into();
            let events = server.stream("/v1/completions", &body);
            assert_eq!(joined(&events, 1), [text]);
            assert_eq!(events.last().unwrap()["choices"][0]["finish_reason"], end);
        }
    }
}

#[test]
fn chats_are_in_the_models_template() {
    let (server, llm) = (Running::of("llama"), llm("llama"));
    let chat = [ChatMessage::new("system", "Be"), ChatMessage::new("user", "Hi")];
    let prompt = llm.tokenizer.try_encode(&llm.template().unwrap().render(&chat, true).unwrap()).unwrap();
    let (text, _) = generated(&llm, &prompt, &sampling(1.0, 5), 8);
    let parts = json!([{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]);
    let mut body = json!({
        "messages": [{"role": "developer", "content": "Be"}, {"role": "user", "content": parts}],
        "max_completion_tokens": 8, "seed": 5, "temperature": 1, "tools": [], "user": "me",
    });
    let answer = server.ok("/v1/chat/completions", &body);
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(
        answer["choices"][0]["message"],
        json!({"role": "assistant", "content": text, "refusal": null})
    );
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let events = server.stream("/v1/chat/completions", &body);
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(events[0]["object"], "chat.completion.chunk");
    assert_eq!(joined(&events, 1), [text]);
    let last = events.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &answer["usage"]));
    assert!(events[0]["usage"].is_null() && events[0].get("usage").is_some());
}

#[test]
fn several_texts_have_a_seed_each() {
    let (server, llm) = (Running::of("llama"), llm("llama"));
    let prompts = ["The river", "Stay!"];
    let body = json!({"prompt": prompts, "n": 3, "max_tokens": 6, "seed": 9, "temperature": 1});
    let expected: Vec<String> = (0..6)
        .map(|k| {
            let prompt = llm.prompt(prompts[k / 3]).unwrap();
            generated(&llm, &prompt, &sampling(1.0, 9 + k as u64 % 3), 6).0
        })
        .collect();
    let answer = server.ok("/v1/completions", &body);
    let texts: Vec<&str> =
        answer["choices"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap()).collect();
    assert_eq!(texts, expected);
    let mut body = body;
    body["stream"] = true.into();
    assert_eq!(joined(&server.stream("/v1/completions", &body), 6), expected);
}

#[test]
fn a_stop_ends_a_text_across_tokens_and_is_not_shown() {
    let (server, llm) = (Running::of("llama"), llm("llama"));
    let whole = generated(&llm, &llm.prompt(PROMPT).unwrap(), &sampling(1.0, 3), 20).0;
    let letters: Vec<char> = whole.chars().collect();
    assert!(letters.len() > 8, "{whole:?}");
    for (from, to) in [(3, 7), (5, 6), (0, 2)] {
        let stop: String = letters[from..to].iter().collect();
        let expected = whole.split(&stop).next().unwrap();
        let mut body = json!({
            "prompt": PROMPT, "max_tokens": 20, "seed": 3, "temperature": 1, "stop": ["never there", stop],
        });
        let answer = server.ok("/v1/completions", &body);
        assert_eq!(answer["choices"][0]["text"], expected, "{whole:?} {stop:?}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        body["stream"] = true.into();
        assert_eq!(joined(&server.stream("/v1/completions", &body), 1), [expected]);
    }
}

#[test]
fn tokens_come_with_their_probabilities() {
    let server = Running::of("llama");
    let body = json!({
        "messages": user("Hi"), "max_tokens": 5, "temperature": 0, "logprobs": true, "top_logprobs": 4,
    });
    let answer = server.ok("/v1/chat/completions", &body);
    let content = answer["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert_eq!(content.len() as u64, answer["usage"]["completion_tokens"].as_u64().unwrap());
    let mut bytes: Vec<u8> = Vec::new();
    for token in content {
        let top = token["top_logprobs"].as_array().unwrap();
        assert_eq!(top.len(), 4);
        // Greedy: the likeliest was taken.
        assert_eq!((&top[0]["bytes"], &top[0]["logprob"]), (&token["bytes"], &token["logprob"]));
        let chances: Vec<f64> = top.iter().map(|t| t["logprob"].as_f64().unwrap().exp()).collect();
        assert!(chances.is_sorted_by(|a, b| a >= b) && chances.iter().sum::<f64>() < 1.0 + 1e-6);
        bytes.extend(token["bytes"].as_array().unwrap().iter().map(|b| b.as_u64().unwrap() as u8));
    }
    assert_eq!(String::from_utf8_lossy(&bytes), answer["choices"][0]["message"]["content"].as_str().unwrap());
    let body = json!({"prompt": PROMPT, "max_tokens": 4, "temperature": 0, "logprobs": 2, "stream": true});
    for event in server.stream("/v1/completions", &body) {
        let notes = &event["choices"][0]["logprobs"];
        if !notes.is_null() {
            let token = notes["tokens"][0].as_str().unwrap();
            assert_eq!(notes["top_logprobs"][0][token], notes["token_logprobs"][0]);
        }
    }
}

#[test]
fn penalties_make_what_was_written_less_likely() {
    let server = Running::of("llama");
    let ask = |presence: f64, frequency: f64| {
        let body = json!({
            "prompt": PROMPT, "max_tokens": 40, "temperature": 0, "logprobs": 0,
            "presence_penalty": presence, "frequency_penalty": frequency,
        });
        let answer = server.ok("/v1/completions", &body);
        let tokens: Vec<String> = answer["choices"][0]["logprobs"]["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        let mut different = tokens.clone();
        different.sort();
        different.dedup();
        (tokens.len(), different.len())
    };
    let (all, plain) = ask(0.0, 0.0);
    let (_, penalised) = ask(2.0, 2.0);
    assert!(all == 40 && penalised > plain, "{plain} of {all} tokens, {penalised} with penalties");
}

#[test]
fn texts_become_vectors() {
    let server = Running::with_embeddings();
    let texts = ["The river runs.", "Stay!"];
    let expected = Embedder::load(fixture("bert")).unwrap().embed(&texts).unwrap();
    let answer = server.ok("/v1/embeddings", &json!({"model": "vectors", "input": texts}));
    for (k, vector) in expected.iter().enumerate() {
        let found: Vec<f32> = answer["data"][k]["embedding"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_f64().unwrap() as f32)
            .collect();
        assert_eq!(&found, vector);
    }
    assert!(answer["usage"]["prompt_tokens"].as_u64().unwrap() > 4);
    let body = json!({"model": "vectors", "input": texts[1], "encoding_format": "base64"});
    let letters = server.ok("/v1/embeddings", &body)["data"][0]["embedding"].as_str().unwrap().len();
    assert_eq!(letters, (expected[1].len() * 4).div_ceil(3) * 4);
    for wrong in [json!([]), json!([[1, 2]]), json!(3), Value::Null] {
        let (status, answer) = server.post("/v1/embeddings", &json!({"input": wrong}));
        assert_eq!((status, &answer["error"]["param"]), (400, &json!("input")), "{wrong}");
    }
    assert_eq!(server.post("/v1/embeddings", &json!({"input": "x", "dimensions": 3})).0, 400);
    let names: Value = serde_json::from_str(&server.get("/v1/models").1).unwrap();
    assert_eq!((&names["data"][0]["id"], &names["data"][1]["id"]), (&json!("tiny"), &json!("vectors")));
}
