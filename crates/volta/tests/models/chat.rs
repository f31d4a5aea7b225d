//! Chats: templates as models bring them, and where an answer ends.

use super::files::{answers, fixture};
use volta::models::Llm;
use volta::text::{ChatMessage, ChatTemplate, SpecialTokens};
use volta_testing::test;

fn messages(value: &serde_json::Value) -> Vec<ChatMessage> {
    let text = |m: &serde_json::Value, name: &str| m[name].as_str().unwrap().to_string();
    value.as_array().unwrap().iter().map(|m| ChatMessage::new(text(m, "role"), text(m, "content"))).collect()
}

#[test]
fn templates_are_filled_in_as_transformers_does() {
    for file in ["llama", "mistral", "llama.gguf", "mistral.gguf"] {
        let chat = &answers(file.trim_end_matches(".gguf"))["chat"];
        let llm = Llm::load(fixture(file)).unwrap();
        let text = llm.template().unwrap().render(&messages(&chat["messages"]), true).unwrap();
        assert_eq!(text, chat["text"].as_str().unwrap(), "{file}");
    }
}

#[test]
fn a_chat_ends_at_the_tokens_that_the_model_names() {
    for file in ["llama", "llama.gguf"] {
        let llm = Llm::load(fixture(file)).unwrap();
        assert!(llm.ends(2) && !llm.ends(5), "{file}");
    }
}

#[test]
fn what_a_template_refuses_is_an_error() {
    let llm = Llm::load(fixture("mistral")).unwrap();
    let wrong = [ChatMessage::new("assistant", "I begin")];
    let error = llm.template().unwrap().render(&wrong, true).unwrap_err();
    assert!(error.message().contains("roles must alternate"), "{error}");
}

fn render(source: &str) -> Result<String, String> {
    let template =
        ChatTemplate::new(source, SpecialTokens::default()).map_err(|e| e.message().to_string())?;
    let said = [ChatMessage::new("user", "a\"b"), ChatMessage::new("assistant", "x")];
    template.render(&said, false).map_err(|e| e.message().to_string())
}

#[test]
fn templates_may_use_what_transformers_gives_them() {
    let cases = [
        (
            "{% for m in messages %}\n  {% if m.role == 'user' %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}",
            "a\"b\n",
        ),
        ("{% for m in messages %}{% if loop.index0 %}{% break %}{% endif %}{{ m.role }}{% endfor %}", "user"),
        (
            "{{ messages[0]['content'] | tojson }} {{ [1, {'k': none}] | tojson }}",
            "\"a\\\"b\" [1, {\"k\": null}]",
        ),
        ("{% generation %}{{ messages[-1].content.upper() }}{% endgeneration %}", "X"),
        ("{%- generation -%} y {%- endgeneration -%}", "y"),
        ("{{ 'a,b'.split(',')[1] }}{{ ' c '.strip() }}{% if 'abc'.startswith('a') %}d{% endif %}", "bcd"),
        ("{% if tools is not none %}tools{% endif %}{% if strftime_now is defined %}now{% endif %}", "now"),
        (
            "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
            "2",
        ),
        ("{{ '<b>' }}", "<b>"),
    ];
    for (source, expected) in cases {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
    assert_eq!(render("{{ strftime_now('%Y') }}").unwrap().len(), 4);
}

#[test]
fn templates_that_are_wrong_or_do_not_end_are_errors() {
    assert!(render("{% for m in messages %}").unwrap_err().contains("template"));
    let long = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    assert!(render(long).is_err());
    assert!(render("{{ nothing.is.here }}").is_err());
}
