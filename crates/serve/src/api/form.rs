//! Answers in OpenAI's forms, whole and in parts.

use super::{Plan, new_id, now};
use crate::engine::{End, TokenNote};
use serde_json::{Map, Value, json};

/// How an answer looks.
pub struct Form {
    is_chat: bool,
    id: String,
    created: u64,
    model: String,
    prompt_tokens: usize,
    pub choices: usize,
    /// Whether a stream ends with its usage.
    include_usage: bool,
    /// Whether tokens come with their probabilities.
    with_notes: bool,
    /// How much text each choice has, in characters.
    offsets: Vec<usize>,
}

/// A choice that is whole.
#[derive(Clone, Default)]
pub struct Choice {
    pub text: String,
    pub notes: Vec<TokenNote>,
    pub end: Option<End>,
    pub tokens: usize,
}

impl Form {
    pub(super) fn chat(model: &str, plan: &Plan) -> Form {
        Form::new(true, "chatcmpl", model, plan)
    }

    pub(super) fn completion(model: &str, plan: &Plan) -> Form {
        Form::new(false, "cmpl", model, plan)
    }

    fn new(is_chat: bool, prefix: &str, model: &str, plan: &Plan) -> Form {
        let choices = plan.prompts.len() * plan.settings.choices;
        Form {
            is_chat,
            id: new_id(prefix),
            created: now(),
            model: model.to_string(),
            prompt_tokens: plan.prompts.iter().map(Vec::len).sum(),
            choices,
            include_usage: plan.include_usage,
            with_notes: plan.settings.notes.is_some(),
            offsets: vec![0; choices],
        }
    }

    fn envelope(&self, is_part: bool, choices: Vec<Value>) -> Map<String, Value> {
        let object = match (self.is_chat, is_part) {
            (true, true) => "chat.completion.chunk",
            (true, false) => "chat.completion",
            (false, _) => "text_completion",
        };
        let mut all = Map::new();
        all.insert("id".into(), self.id.as_str().into());
        all.insert("object".into(), object.into());
        all.insert("created".into(), self.created.into());
        all.insert("model".into(), self.model.as_str().into());
        all.insert("choices".into(), choices.into());
        if is_part && self.include_usage {
            all.insert("usage".into(), Value::Null);
        }
        all
    }

    fn usage(&self, tokens: usize) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens, "completion_tokens": tokens,
            "total_tokens": self.prompt_tokens + tokens,
        })
    }

    /// All choices.
    pub fn whole(&mut self, choices: &[Choice]) -> Value {
        let all = choices.iter().enumerate().map(|(index, choice)| {
            let notes = self.notes(index, &choice.notes);
            let end = choice.end.map(End::name);
            if self.is_chat {
                let message = json!({"role": "assistant", "content": choice.text, "refusal": null});
                json!({"index": index, "message": message, "logprobs": notes, "finish_reason": end})
            } else {
                json!({"index": index, "text": choice.text, "logprobs": notes, "finish_reason": end})
            }
        });
        let all = all.collect();
        let mut answer = self.envelope(false, all);
        answer.insert("usage".into(), self.usage(choices.iter().map(|choice| choice.tokens).sum()));
        answer.into()
    }

    /// What a stream begins with.
    pub fn first(&self) -> Vec<Value> {
        if !self.is_chat {
            return Vec::new();
        }
        let delta = json!({"role": "assistant", "content": ""});
        let first = |index| json!({"index": index, "delta": delta, "logprobs": null, "finish_reason": null});
        (0..self.choices).map(|index| self.envelope(true, vec![first(index)]).into()).collect()
    }

    /// More text of a choice.
    pub fn part(&mut self, index: usize, text: &str, note: Option<&TokenNote>) -> Value {
        let notes = self.notes(index, note.map_or(&[], std::slice::from_ref));
        let choice = if self.is_chat {
            json!({"index": index, "delta": {"content": text}, "logprobs": notes, "finish_reason": null})
        } else {
            json!({"index": index, "text": text, "logprobs": notes, "finish_reason": null})
        };
        self.envelope(true, vec![choice]).into()
    }

    /// The end of a choice.
    pub fn end(&self, index: usize, end: End) -> Value {
        let choice = if self.is_chat {
            json!({"index": index, "delta": {}, "logprobs": null, "finish_reason": end.name()})
        } else {
            json!({"index": index, "text": "", "logprobs": null, "finish_reason": end.name()})
        };
        self.envelope(true, vec![choice]).into()
    }

    /// What a stream ends with, if it was asked for.
    pub fn last(&self, tokens: usize) -> Option<Value> {
        let mut last = self.include_usage.then(|| self.envelope(true, Vec::new()))?;
        last.insert("usage".into(), self.usage(tokens));
        Some(last.into())
    }

    fn notes(&mut self, index: usize, notes: &[TokenNote]) -> Value {
        if !self.with_notes || notes.is_empty() {
            return Value::Null;
        }
        if self.is_chat {
            let content: Vec<Value> = notes
                .iter()
                .map(|note| {
                    let top: Vec<Value> = note
                        .top
                        .iter()
                        .map(|t| json!({"token": t.text, "logprob": t.logprob, "bytes": t.bytes}))
                        .collect();
                    let t = &note.token;
                    json!({"token": t.text, "logprob": t.logprob, "bytes": t.bytes, "top_logprobs": top})
                })
                .collect();
            return json!({"content": content, "refusal": null});
        }
        let mut offsets = Vec::new();
        for note in notes {
            offsets.push(self.offsets[index]);
            self.offsets[index] += note.token.text.chars().count();
        }
        let tops = notes.iter().map(|note| {
            let mut top: Map<String, Value> =
                note.top.iter().map(|t| (t.text.clone(), t.logprob.into())).collect();
            top.insert(note.token.text.clone(), note.token.logprob.into());
            Value::from(top)
        });
        json!({
            "tokens": notes.iter().map(|note| note.token.text.as_str()).collect::<Vec<_>>(),
            "token_logprobs": notes.iter().map(|note| note.token.logprob).collect::<Vec<_>>(),
            "top_logprobs": tops.collect::<Vec<_>>(),
            "text_offset": offsets,
        })
    }
}
