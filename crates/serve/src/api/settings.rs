//! How to write: the fields that chats and completions share.

use super::ApiError;
use super::fields::Fields;
use crate::engine::{Engine, Settings};
use crate::grammar::{Grammar, any_object, of_schema};
use crate::json::Json;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use volta::text::SamplerOptions;

/// The most texts that may end one.
const MAX_STOPS: usize = 16;
/// The longest of them, in bytes.
const MAX_STOP_BYTES: usize = 1024;

/// Fields that say who asks, for whoever sends the bill.
pub const IGNORED: [&str; 5] =
    ["user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"];

/// What is not there, with words that ask for nothing of it.
pub const REFUSED: [(&str, &[&str], &str); 16] = [
    ("tools", &[], "this server answers with text alone"),
    ("tool_choice", &["none", "auto"], "there are no tools"),
    ("parallel_tool_calls", &[], "there are no tools"),
    ("functions", &[], "this server answers with text alone"),
    ("function_call", &["none", "auto"], "there are no functions"),
    ("logit_bias", &[], "tokens cannot be made likelier by number"),
    ("audio", &[], "this server answers with text alone"),
    ("prediction", &[], "nothing is predicted"),
    ("reasoning_effort", &["none"], "models think as much as they do"),
    ("verbosity", &["medium"], "models say as much as they do"),
    ("web_search_options", &[], "this server looks nothing up"),
    ("service_tier", &["auto", "default"], "there is one tier"),
    ("store", &[], "nothing is stored"),
    ("echo", &[], "the prompt is not repeated"),
    ("suffix", &[""], "texts go on, and are not filled in"),
    ("best_of", &["1"], "ask for `n` texts and choose"),
];

/// Takes the fields of sampling and ending.
pub fn take(fields: &mut Fields, engine: &Engine) -> Result<Settings, ApiError> {
    let own = &engine.llm().sampling;
    let every = u64::from(u32::MAX);
    let top_p = fields.number("top_p", 0.0, 1.0)?;
    let sampling = SamplerOptions {
        temperature: fields.number("temperature", 0.0, 2.0)?.unwrap_or(own.temperature),
        // None of the mass is that of the likeliest.
        top_p: top_p.unwrap_or(own.top_p).max(f32::MIN_POSITIVE),
        top_k: fields.count("top_k", 0, every)?.unwrap_or(own.top_k),
        repetition_penalty: fields
            .number("repetition_penalty", 0.01, 10.0)?
            .unwrap_or(own.repetition_penalty),
        seed: fields.seed("seed")?.unwrap_or_else(random_seed),
    };
    Ok(Settings {
        sampling,
        presence_penalty: fields.number("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        frequency_penalty: fields.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        length: usize::MAX,
        stops: stops(fields)?,
        notes: None,
        choices: fields.count("n", 1, every)?.unwrap_or(1),
        grammar: format(fields, engine)?.map(|grammar| (Arc::new(grammar), engine.vocabulary())),
    })
}

/// Whether the answer is streamed, and whether with its usage.
pub fn streaming(fields: &mut Fields) -> Result<(bool, bool), ApiError> {
    let stream = fields.switch("stream")?;
    let Some(options) = fields.take("stream_options") else { return Ok((stream, false)) };
    if !stream {
        return Err(ApiError::wrong("stream_options", "`stream_options` is for `stream`: true"));
    }
    let mut options = Fields::of(options, "stream_options")?;
    let include_usage = options.switch("include_usage")?;
    options.ignore(&["include_obfuscation"]);
    options.finish()?;
    Ok((stream, include_usage))
}

fn random_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn stops(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let must = "a string, or an array of up to 16 strings, of up to 1024 bytes each and none empty";
    let stops = match fields.take("stop") {
        None => Vec::new(),
        Some(Json::Text(one)) => vec![one],
        Some(Json::List(list)) if list.len() <= MAX_STOPS => {
            let texts: Option<Vec<String>> = list.iter().map(|stop| stop.text().map(String::from)).collect();
            texts.ok_or_else(|| fields.wrong("stop", must))?
        }
        Some(_) => return Err(fields.wrong("stop", must)),
    };
    match stops.iter().all(|stop| (1..=MAX_STOP_BYTES).contains(&stop.len())) {
        true => Ok(stops),
        false => Err(fields.wrong("stop", must)),
    }
}

/// What `response_format` asks for.
fn format(fields: &mut Fields, engine: &Engine) -> Result<Option<Grammar>, ApiError> {
    const NAME: &str = "response_format";
    let Some(format) = fields.take(NAME) else { return Ok(None) };
    let mut format = Fields::of(format, NAME)?;
    let kind = format.text("type")?.unwrap_or_default();
    let grammar = match kind.as_str() {
        "text" => None,
        "json_object" => Some(any_object()),
        "json_schema" => {
            const NAME: &str = "response_format.json_schema";
            let mut about = Fields::of(format.need("json_schema")?, NAME)?;
            about.ignore(&["name", "description", "strict"]);
            let schema = about.need("schema")?;
            about.finish()?;
            let wrong = |message| ApiError::wrong(&format!("{NAME}.schema"), message);
            Some(of_schema(&schema).map_err(wrong)?)
        }
        _ => return Err(format.wrong("type", "text, json_object or json_schema")),
    };
    format.finish()?;
    if grammar.is_some() && engine.vocabulary().is_empty() {
        let message = "this model's tokenizer does not say which bytes its tokens stand for: `response_format` needs that";
        return Err(ApiError::unsupported(NAME, message));
    }
    Ok(grammar)
}
