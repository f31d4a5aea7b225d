//! Templates of chats as models bring them: Jinja, with what `transformers` adds to it.

use crate::call::Call;
use crate::error::{Error, ErrorKind, Result};
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, ErrorKind as JinjaKind, UndefinedBehavior, context};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Steps that a template may take: some thousand messages need a fraction of them.
const FUEL: u64 = 5_000_000;

/// One turn of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl ChatMessage {
    /// What somebody says.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> ChatMessage {
        ChatMessage { role: role.into(), content: content.into() }
    }
}

/// Tokens that templates name: `bos_token`, `eos_token` and others, as they are written.
pub type SpecialTokens = BTreeMap<String, String>;

/// The template that makes one text of a chat, as a model was trained with it.
///
/// ```
/// use volta::text::{ChatMessage, ChatTemplate, SpecialTokens};
/// let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
/// let template = ChatTemplate::new(source, SpecialTokens::new())?;
/// assert_eq!(template.render(&[ChatMessage::new("user", "Hello")], false)?, "<user>Hello");
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    source: String,
    special: SpecialTokens,
}

impl ChatTemplate {
    /// A template in Jinja.
    ///
    /// # Errors
    /// A template that is none, with the line.
    #[track_caller]
    pub fn new(source: &str, special: SpecialTokens) -> Result<ChatTemplate> {
        let _call = Call::enter("ChatTemplate::new");
        let template = ChatTemplate { source: plain(source), special };
        environment().template_from_str(&template.source).map_err(|e| wrong(&e))?;
        Ok(template)
    }

    /// The text of a chat; with `answer`, up to where an answer begins.
    ///
    /// # Errors
    /// What the template refuses, in its own words.
    #[track_caller]
    pub fn render(&self, messages: &[ChatMessage], answer: bool) -> Result<String> {
        let _call = Call::enter("ChatTemplate::render");
        let environment = environment();
        let template = environment.template_from_str(&self.source).map_err(|e| wrong(&e))?;
        let messages: Vec<Value> =
            messages.iter().map(|m| context! { role => m.role, content => m.content }).collect();
        let own = context! {
            messages, add_generation_prompt => answer, tools => Value::from(()), documents => Value::from(()),
        };
        let special = Value::from_serialize(&self.special);
        template.render(context! { ..own, ..special }).map_err(|e| wrong(&e))
    }
}

fn wrong(error: &minijinja::Error) -> Error {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), String::from);
    let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
    Error::new(ErrorKind::Data, format!("the chat template{line}: {detail}"))
}

/// What `transformers` sets up.
fn environment<'s>() -> Environment<'s> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<Value, minijinja::Error> {
        Err(minijinja::Error::new(JinjaKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", |format: String| date(&format));
    environment.add_filter("tojson", |value: Value, _options: minijinja::value::Kwargs| {
        let mut text = String::new();
        write_json(&value, &mut text);
        Value::from_safe_string(text)
    });
    environment
}

/// Without the marks that tell a trainer which parts an assistant wrote: they change no text.
fn plain(source: &str) -> String {
    let (mut out, mut left) = (String::new(), source);
    while let Some(start) = left.find("{%") {
        let Some(length) = left[start..].find("%}") else { break };
        let tag = &left[start..start + length];
        let changed = match tag.trim_start_matches(['{', '%', '-', '+']).trim_end_matches(['-', '+']).trim() {
            "generation" => tag.replacen("generation", "if true", 1),
            "endgeneration" => tag.replacen("endgeneration", "endif", 1),
            _ => tag.to_string(),
        };
        out.push_str(&left[..start]);
        out.push_str(&changed);
        left = &left[start + length..];
    }
    out + left
}

/// As Python writes it, with a space after commas and colons.
fn write_json(value: &Value, out: &mut String) {
    let items = || value.try_iter().into_iter().flatten();
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (k, item) in items().enumerate() {
                out.push_str(if k > 0 { ", " } else { "" });
                write_json(&item, out);
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (k, key) in items().enumerate() {
                out.push_str(if k > 0 { ", " } else { "" });
                out.push_str(&serde_json::Value::from(key.to_string()).to_string());
                out.push_str(": ");
                write_json(&value.get_item(&key).unwrap_or_default(), out);
            }
            out.push('}');
        }
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&value.to_string()),
        _ => out.push_str(&serde_json::Value::from(value.to_string()).to_string()),
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const SECONDS_A_DAY: u64 = 86_400;

/// Today in UTC, in the manner of `strftime`; what is not known stays as it is written.
fn date(format: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date_of(format, seconds)
}

fn date_of(format: &str, seconds: u64) -> String {
    let (days, time) = (seconds / SECONDS_A_DAY, seconds % SECONDS_A_DAY);
    let (year, month, day) = civil(days);
    let (name, weekday) = (MONTHS[month as usize - 1], DAYS[(days % 7) as usize]);
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(c) = letters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match letters.next() {
            Some('Y') => out += &year.to_string(),
            Some('m') => out += &format!("{month:02}"),
            Some('d') => out += &format!("{day:02}"),
            Some('B') => out += name,
            Some('b') => out += &name[..3],
            Some('A') => out += weekday,
            Some('a') => out += &weekday[..3],
            Some('H') => out += &format!("{:02}", time / 3600),
            Some('M') => out += &format!("{:02}", time / 60 % 60),
            Some('S') => out += &format!("{:02}", time % 60),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// Year, month and day of a number of days since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut left, mut year) = (days, 1970);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_of("%d %b %Y, %A %H:%M:%S %%", 0), "01 Jan 1970, Thursday 00:00:00 %");
        assert_eq!(date_of("%a %d %B %Y", 951_782_400), "Tue 29 February 2000");
        assert_eq!(date_of("%m/%d/%Y %H", 1_767_225_599), "12/31/2025 23");
    }
}
