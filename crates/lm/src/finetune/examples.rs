//! JSON lines of chats, of prompts and their completions, of plain texts, or of answers of which one is preferred.

use serde_json::{Map, Value};
use volta::text::ChatMessage;
use volta::{Error, ErrorKind, Result};

/// One line of data. What it is, its fields say.
#[derive(Clone, Debug, PartialEq)]
pub enum Example {
    /// `messages`: a chat, of which the assistant's turns are learnt.
    Chat(Vec<ChatMessage>),
    /// `prompt` and `completion`, of which the completion is learnt.
    Completion {
        /// What is given.
        prompt: Said,
        /// What is learnt.
        completion: Said,
    },
    /// `text`, of which all is learnt.
    Text(String),
    /// `prompt`, `chosen` and `rejected`.
    Preference {
        /// What is given.
        prompt: Said,
        /// The answer that is preferred.
        chosen: Said,
        /// The other one.
        rejected: Said,
    },
}

/// What somebody says: a text, or turns of a chat.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A text.
    Text(String),
    /// Turns.
    Turns(Vec<ChatMessage>),
}

/// The fields of each kind of line.
const KINDS: [&[&str]; 4] =
    [&["messages"], &["prompt", "completion"], &["text"], &["prompt", "chosen", "rejected"]];

/// Reads JSON lines; `label` is what errors call the file. Empty lines are passed over, fields that are not known are not looked at.
///
/// ```
/// use volta_lm::finetune::{Example, read_examples};
/// let lines = "{\"text\": \"The river runs.\"}\n{\"prompt\": \"1 + 1 =\", \"completion\": \" 2\"}\n";
/// assert_eq!(read_examples("data", lines)?[0], (1, Example::Text("The river runs.".into())));
/// assert!(read_examples("data", "{\"text\": 1}").unwrap_err().message().contains("line 1"));
/// # Ok::<(), volta::Error>(())
/// ```
///
/// # Errors
/// A line that is no JSON, or none of these; the message has its number.
pub fn read_examples(label: &str, lines: &str) -> Result<Vec<(usize, Example)>> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |what: String| Error::new(ErrorKind::Data, format!("{label}, line {number}: {what}"));
        let value: Value = serde_json::from_str(line).map_err(|e| wrong(format!("it is no JSON: {e}")))?;
        found.push((number, example(&value).map_err(wrong)?));
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::Data, format!("{label}: there is nothing in it to learn from")));
    }
    Ok(found)
}

fn example(value: &Value) -> Result<Example, String> {
    let Some(map) = value.as_object() else { return Err("a JSON object is needed".into()) };
    let mut fits = KINDS.iter().filter(|fields| fields.iter().all(|&field| map.contains_key(field)));
    let (Some(fields), None) = (fits.next(), fits.next()) else {
        let known: Vec<String> = KINDS.iter().map(|fields| fields.join(" and ")).collect();
        let has: Vec<&str> = map.keys().map(String::as_str).collect();
        return Err(format!(
            "it has {}: the fields of one kind are needed, which are {}",
            if has.is_empty() { "no fields".to_string() } else { has.join(", ") },
            known.join("; ")
        ));
    };
    Ok(match **fields {
        ["messages"] => {
            let turns = turns("messages", &map["messages"])?;
            if !turns.iter().any(|turn| turn.role == "assistant") {
                return Err("messages has no turn of the assistant, so that there is nothing to learn".into());
            }
            Example::Chat(turns)
        }
        ["text"] => match map["text"].as_str() {
            Some(text) if !text.is_empty() => Example::Text(text.to_string()),
            _ => return Err("text must be a text that is not empty".into()),
        },
        ["prompt", "completion"] => {
            Example::Completion { prompt: said(map, "prompt")?, completion: answer(map, "completion")? }
        }
        _ => Example::Preference {
            prompt: said(map, "prompt")?,
            chosen: answer(map, "chosen")?,
            rejected: answer(map, "rejected")?,
        },
    })
}

fn said(map: &Map<String, Value>, field: &str) -> Result<Said, String> {
    match &map[field] {
        Value::String(text) => Ok(Said::Text(text.clone())),
        value @ Value::Array(_) => turns(field, value).map(Said::Turns),
        _ => Err(format!("{field} must be a text, or a list of turns of a chat")),
    }
}

fn answer(map: &Map<String, Value>, field: &str) -> Result<Said, String> {
    match said(map, field)? {
        Said::Text(text) if text.is_empty() => {
            Err(format!("{field} is empty, so that there is nothing to learn"))
        }
        said => Ok(said),
    }
}

fn turns(field: &str, value: &Value) -> Result<Vec<ChatMessage>, String> {
    let turn = |(k, turn): (usize, &Value)| match (turn["role"].as_str(), turn["content"].as_str()) {
        (Some(role), Some(content)) => Ok(ChatMessage::new(role, content)),
        _ => Err(format!("turn {} of {field} must have a role and a content, both texts", k + 1)),
    };
    match value.as_array().filter(|all| !all.is_empty()) {
        Some(all) => all.iter().enumerate().map(turn).collect(),
        None => Err(format!("{field} must be a list of turns, each with role and content")),
    }
}
