//! `/v1/completions`: texts that go on.

use super::fields::Fields;
use super::form::Form;
use super::{Answer, ApiError, Plan, models, settings};
use crate::engine::Engine;
use crate::json::Json;

/// The tokens of an answer, unless told otherwise: OpenAI's number.
const LENGTH: usize = 16;

/// Goes on with a text, or with several.
pub fn answer(body: &[u8], engine: &Engine, model: &str) -> Result<Answer, ApiError> {
    let mut fields = Fields::of_body(body)?;
    models::check(&mut fields, model)?;
    let plan = plan(fields, engine)?;
    let form = Form::completion(model, &plan);
    let stream = plan.stream;
    Ok(Answer::new(plan.submit(engine)?, form, stream))
}

fn plan(mut fields: Fields, engine: &Engine) -> Result<Plan, ApiError> {
    fields.refuse(&settings::REFUSED)?;
    fields.ignore(&settings::IGNORED);
    let mut settings = settings::take(&mut fields, engine)?;
    settings.length = fields.count("max_tokens", 1, u64::from(u32::MAX))?.unwrap_or(LENGTH);
    settings.notes = fields.count("logprobs", 0, 5)?;
    let (stream, include_usage) = settings::streaming(&mut fields)?;
    let prompts = prompts(fields.need("prompt")?, engine)?;
    fields.finish()?;
    Ok(Plan { prompts, settings, stream, include_usage })
}

/// A text, tokens, or several of either.
fn prompts(json: Json, engine: &Engine) -> Result<Vec<Vec<u32>>, ApiError> {
    match json {
        Json::List(list) if list.iter().any(|item| !matches!(item, Json::Number(_))) => {
            list.iter().map(|one| prompt(one, engine)).collect()
        }
        one => Ok(vec![prompt(&one, engine)?]),
    }
}

fn prompt(json: &Json, engine: &Engine) -> Result<Vec<u32>, ApiError> {
    let llm = engine.llm();
    match json {
        Json::Text(text) => llm.prompt(text).map_err(|e| ApiError::wrong("prompt", e.message())),
        Json::List(list) if !list.is_empty() => {
            let known = |id: u64| u32::try_from(id).ok().filter(|id| (*id as usize) < llm.vocabulary());
            let tokens: Option<Vec<u32>> = list.iter().map(|token| known(token.count()?)).collect();
            tokens.ok_or_else(|| {
                let most = llm.vocabulary() - 1;
                ApiError::wrong(
                    "prompt",
                    format!("tokens of `prompt` must be whole numbers from 0 to {most}"),
                )
            })
        }
        _ => Err(ApiError::wrong(
            "prompt",
            "`prompt` must be a string, tokens, or an array of either, and not empty",
        )),
    }
}
