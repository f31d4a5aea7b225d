//! `/v1/chat/completions`.

use super::fields::Fields;
use super::form::Form;
use super::{Answer, ApiError, Plan, models, settings};
use crate::engine::Engine;
use crate::json::Json;
use volta::text::ChatMessage;

/// Answers a chat.
pub fn answer(body: &[u8], engine: &Engine, model: &str) -> Result<Answer, ApiError> {
    let mut fields = Fields::of_body(body)?;
    models::check(&mut fields, model)?;
    let plan = plan(fields, engine)?;
    let form = Form::chat(model, &plan);
    let stream = plan.stream;
    Ok(Answer::new(plan.submit(engine)?, form, stream))
}

fn plan(mut fields: Fields, engine: &Engine) -> Result<Plan, ApiError> {
    fields.refuse(&settings::REFUSED)?;
    fields.ignore(&settings::IGNORED);
    if fields.take("modalities").is_some_and(|m| m != Json::List(vec![Json::Text("text".into())])) {
        return Err(ApiError::unsupported(
            "modalities",
            "`modalities` is not supported: this server answers with text alone",
        ));
    }
    let mut settings = settings::take(&mut fields, engine)?;
    let every = u64::from(u32::MAX);
    let length = (fields.count("max_tokens", 1, every)?, fields.count("max_completion_tokens", 1, every)?);
    settings.length = length.1.or(length.0).unwrap_or(usize::MAX);
    let with_notes = fields.switch("logprobs")?;
    let top = fields.count("top_logprobs", 0, 20)?;
    if top.is_some() && !with_notes {
        return Err(ApiError::wrong("top_logprobs", "`top_logprobs` is for `logprobs`: true"));
    }
    settings.notes = with_notes.then_some(top.unwrap_or(0));
    let (stream, include_usage) = settings::streaming(&mut fields)?;
    let messages = messages(fields.need("messages")?)?;
    fields.finish()?;
    let llm = engine.llm();
    let template = llm
        .template()
        .map_err(|e| ApiError::wrong("messages", format!("{}: use /v1/completions", e.message())))?;
    let text = template.render(&messages, true).map_err(|e| ApiError::wrong("messages", e.message()))?;
    let prompt = llm.tokenizer.try_encode(&text).map_err(|e| ApiError::wrong("messages", e.message()))?;
    Ok(Plan { prompts: vec![prompt], settings, stream, include_usage })
}

fn messages(json: Json) -> Result<Vec<ChatMessage>, ApiError> {
    let Json::List(list) = json else {
        return Err(ApiError::wrong("messages", format!("`messages` must be an array, not {}", json.kind())));
    };
    if list.is_empty() {
        return Err(ApiError::wrong("messages", "`messages` must have one message at least"));
    }
    list.into_iter().enumerate().map(|(k, message)| one(message, &format!("messages[{k}]"))).collect()
}

fn one(json: Json, path: &str) -> Result<ChatMessage, ApiError> {
    let mut fields = Fields::of(json, path)?;
    let role = match fields.text("role")?.as_deref() {
        Some("system" | "developer") => "system",
        Some("user") => "user",
        Some("assistant") => "assistant",
        Some("tool" | "function") => {
            let role = fields.name("role");
            return Err(ApiError::unsupported(&role, format!("`{role}`: there are no tools")));
        }
        _ => return Err(fields.wrong("role", "system, developer, user or assistant")),
    };
    let content = match fields.need("content")? {
        Json::Text(text) => text,
        Json::List(parts) => joined(parts, &fields.name("content"))?,
        _ => return Err(fields.wrong("content", "a string or an array of parts")),
    };
    fields.refuse(&[
        ("tool_calls", &[], "there are no tools"),
        ("function_call", &[], "there are no functions"),
        ("audio", &[], "messages are text"),
        ("refusal", &[""], "put it into the message's content"),
        ("name", &[""], "put the name into the message's content"),
    ])?;
    fields.finish()?;
    Ok(ChatMessage::new(role, content))
}

fn joined(parts: Vec<Json>, path: &str) -> Result<String, ApiError> {
    let mut text = String::new();
    for (k, part) in parts.into_iter().enumerate() {
        let mut fields = Fields::of(part, &format!("{path}[{k}]"))?;
        match fields.text("type")?.as_deref() {
            Some("text") => {}
            other => {
                let name = fields.name("type");
                let message = format!("`{name}` is {}: messages are text", other.unwrap_or("missing"));
                return Err(ApiError::unsupported(&name, message));
            }
        }
        let part = fields.text("text")?;
        text += &part.ok_or_else(|| fields.wrong("text", "there"))?;
        fields.finish()?;
    }
    Ok(text)
}
