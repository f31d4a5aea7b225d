//! Who may ask.

use super::client::{Running, llm};
use volta_serve::{ServeOptions, ServedModels};
use volta_testing::test;

#[test]
fn without_the_key_nothing_is_answered_but_the_page() {
    let options = ServeOptions { api_key: Some("secret-1".into()), ..ServeOptions::default() };
    let server = Running::new(ServedModels::new().with_llm("tiny", llm("llama")), options);
    for (path, headers, status) in [
        ("/v1/models", "", 401),
        ("/metrics", "", 401),
        ("/v1/models", "Authorization: Bearer secret-2\r\n", 401),
        ("/v1/models", "Authorization: Bearer secret-\r\n", 401),
        ("/v1/models", "Authorization: Basic secret-1\r\n", 401),
        ("/v1/models", "Authorization: secret-1\r\n", 401),
        ("/v1/models", "Authorization: Bearer secret-1\r\n", 200),
        ("/v1/models", "authorization: bearer secret-1\r\nOrigin: https://app.example\r\n", 200),
        ("/", "", 200),
        ("/health", "", 200),
    ] {
        let (found, _, body) = server.ask("GET", path, headers, b"");
        assert_eq!(found, status, "{path} {headers}: {body}");
        assert!(!body.contains("secret-1"), "{body}");
    }
    let (status, _, _) = server.ask("POST", "/v1/chat/completions", "", b"{}");
    assert_eq!(status, 401);
}

#[test]
fn pages_of_other_sites_may_not_ask() {
    let server = Running::of("llama");
    for (headers, status) in [
        ("Host: localhost:8080\r\n", 200),
        ("Host: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\n", 200),
        ("", 200),
        ("Host: evil.example\r\n", 403),
        ("Host: localhost:8080\r\nOrigin: https://evil.example\r\n", 403),
        ("Host: localhost:8080\r\nOrigin: null\r\n", 403),
        ("Host: localhost:8080\r\nOrigin: http://localhost:9090\r\n", 403),
    ] {
        let (found, _, body) = server.ask("GET", "/v1/models", headers, b"");
        assert_eq!(found, status, "{headers}: {body}");
    }
}
