//! Tokens of examples, and which of them are learnt.

use super::examples::{Example, Said};
use volta::models::Llm;
use volta::text::{ChatMessage, ChatTemplate};
use volta::{Error, ErrorKind, Result};

/// A text as tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tokens {
    /// Their numbers.
    pub ids: Vec<i32>,
    /// Whether each is learnt.
    pub learnt: Vec<bool>,
}

impl Tokens {
    fn push(&mut self, ids: &[u32], learnt: bool) {
        self.ids.extend(ids.iter().map(|&id| id as i32));
        self.learnt.resize(self.ids.len(), learnt);
    }

    /// Whether anything is learnt: the first token is not, since nothing stands before it.
    pub fn has_learnt(&self) -> bool {
        self.learnt.iter().skip(1).any(|&learnt| learnt)
    }

    fn cut(&mut self, length: usize) {
        self.ids.truncate(length);
        self.learnt.truncate(length);
    }
}

/// What became of the data.
#[derive(Clone, Debug, Default)]
pub struct Tokenized {
    /// Texts to learn from.
    pub texts: Vec<Tokens>,
    /// Prompts with an answer that is preferred, and with one that is not.
    pub pairs: Vec<[Tokens; 2]>,
    /// What the model may be asked to show what it has learnt: the first prompt, with the line's tokens up to its answer.
    pub prompt: Vec<u32>,
    /// How many examples were cut at the length.
    pub cut: usize,
    /// How many of these were left out, since nothing of what is learnt was left.
    pub left_out: usize,
}

impl Tokenized {
    /// All tokens.
    pub fn tokens(&self) -> usize {
        let of_pairs = self.pairs.iter().flatten();
        self.texts.iter().chain(of_pairs).map(|text| text.ids.len()).sum()
    }

    /// The tokens of the longest.
    pub fn longest(&self) -> usize {
        let of_pairs = self.pairs.iter().flatten();
        self.texts.iter().chain(of_pairs).map(|text| text.ids.len()).max().unwrap_or(0)
    }
}

/// How texts are put to a model.
struct Writer<'a> {
    llm: &'a Llm,
    template: Option<ChatTemplate>,
    /// Tokens of a text at most.
    length: usize,
}

/// Makes tokens of examples, of which none is longer than `length`. Prompts and answers become turns of the model's template of chats, if it
/// has one, unless they are `plain`. `label` is what errors call the file.
///
/// # Errors
/// An example that the template refuses, with its line; data of which nothing is left.
pub fn tokenize(
    llm: &Llm,
    label: &str,
    examples: &[(usize, Example)],
    length: usize,
    plain: bool,
) -> Result<Tokenized> {
    let template = if llm.chats() && !plain { Some(llm.template()?) } else { None };
    let writer = Writer { llm, template, length };
    let mut out = Tokenized::default();
    for (number, example) in examples {
        let at_line =
            |e: Error| Error::new(ErrorKind::Data, format!("{label}, line {number}: {}", e.message()));
        writer.write(example, &mut out).map_err(at_line)?;
    }
    if out.texts.is_empty() && out.pairs.is_empty() {
        let message =
            format!("{label}: nothing of what is learnt fits into {length} tokens: make the length larger");
        return Err(Error::new(ErrorKind::Data, message));
    }
    if !out.texts.is_empty() && !out.pairs.is_empty() {
        let message =
            format!("{label}: some lines are pairs of answers, and others are not: DPO wants pairs alone");
        return Err(Error::new(ErrorKind::Data, message));
    }
    Ok(out)
}

impl Writer<'_> {
    fn write(&self, example: &Example, out: &mut Tokenized) -> Result<()> {
        match example {
            Example::Text(text) => self.text(text, out),
            Example::Chat(turns) => {
                let tokens = self.chat(turns, 0)?;
                self.keep(tokens, out);
                Ok(())
            }
            Example::Completion { prompt, completion } => {
                let tokens = self.pair(prompt, completion)?;
                self.keep(tokens, out);
                Ok(())
            }
            Example::Preference { prompt, chosen, rejected } => {
                let mut pair = [self.pair(prompt, chosen)?, self.pair(prompt, rejected)?];
                self.remember_prompt(&pair[0], out);
                out.cut += usize::from(pair.iter().any(|text| text.ids.len() > self.length));
                pair.iter_mut().for_each(|text| text.cut(self.length));
                match pair.iter().all(Tokens::has_learnt) {
                    true => out.pairs.push(pair),
                    false => out.left_out += 1,
                }
                Ok(())
            }
        }
    }

    fn keep(&self, mut tokens: Tokens, out: &mut Tokenized) {
        self.remember_prompt(&tokens, out);
        if tokens.ids.len() > self.length {
            out.cut += 1;
            tokens.cut(self.length);
        }
        match tokens.has_learnt() {
            true => out.texts.push(tokens),
            false => out.left_out += 1,
        }
    }

    fn remember_prompt(&self, tokens: &Tokens, out: &mut Tokenized) {
        let first = tokens.learnt.iter().position(|&learnt| learnt).unwrap_or(0);
        if out.prompt.is_empty() && first > 0 && first < self.length {
            out.prompt = tokens.ids[..first].iter().map(|&id| id as u32).collect();
        }
    }

    /// A text, in pieces if it is long.
    fn text(&self, text: &str, out: &mut Tokenized) -> Result<()> {
        let mut ids = self.llm.prompt(text)?;
        ids.extend(self.llm.end_token());
        // Pieces share a token, so that every token but the first is learnt once.
        let mut from = 0;
        while from + 1 < ids.len() {
            let to = (from + self.length).min(ids.len());
            let mut tokens = Tokens::default();
            tokens.push(&ids[from..to], true);
            out.texts.push(tokens);
            from = to - 1;
        }
        Ok(())
    }

    /// A prompt and its answer.
    fn pair(&self, prompt: &Said, answer: &Said) -> Result<Tokens> {
        if let (None, Said::Text(prompt), Said::Text(answer)) = (&self.template, prompt, answer) {
            let mut tokens = Tokens::default();
            let before = self.llm.prompt(prompt)?;
            tokens.push(&before, false);
            tokens.push(&self.behind(&before, |whole| self.llm.prompt(whole), prompt, answer)?, true);
            tokens.push(&self.llm.end_token().into_iter().collect::<Vec<_>>(), true);
            return Ok(tokens);
        }
        let mut turns = match prompt {
            Said::Text(text) => vec![ChatMessage::new("user", text)],
            Said::Turns(turns) => turns.clone(),
        };
        let first = turns.len();
        match answer {
            Said::Text(text) => turns.push(ChatMessage::new("assistant", text)),
            Said::Turns(answer) => turns.extend(answer.iter().cloned()),
        }
        self.chat(&turns, first)
    }

    /// A chat, of which the assistant's turns from one on are learnt.
    fn chat(&self, turns: &[ChatMessage], first: usize) -> Result<Tokens> {
        let Some(template) = &self.template else {
            self.llm.template()?;
            return Err(Error::new(ErrorKind::Data, "this is a chat, and texts are to be plain"));
        };
        let whole = template.render(turns, false)?;
        let answers = || (first..turns.len()).filter(|&k| turns[k].role == "assistant");
        let (mut tokens, mut done) = (Tokens::default(), 0);
        for k in answers() {
            let (before, behind) =
                (template.render(&turns[..k], true)?, template.render(&turns[..=k], false)?);
            if !behind.starts_with(&before) || !whole.starts_with(&behind) || before.len() < done {
                return Err(Error::new(
                    ErrorKind::Data,
                    format!(
                        "the chat template writes turn {} otherwise once others follow, so that what is learnt would not be what is \
                         written: give every answer a line of its own",
                        k + 1
                    ),
                ));
            }
            let encode = |text: &str| self.llm.tokenizer.try_encode(text);
            let up_to = self.behind_tokens(&tokens, &whole[done..before.len()], &before)?;
            tokens.push(&up_to, false);
            let seen: Vec<u32> = tokens.ids.iter().map(|&id| id as u32).collect();
            let answer = self.behind(&seen, encode, &before, &behind[before.len()..])?;
            // What the template writes behind the end of a turn is not the model's to write.
            let end = answer.iter().position(|&id| self.llm.ends(id)).map_or(answer.len(), |k| k + 1);
            tokens.push(&answer[..end], true);
            tokens.push(&answer[end..], false);
            done = behind.len();
        }
        Ok(tokens)
    }

    /// The tokens of a piece that follows others, as they are where all is one text.
    fn behind_tokens(&self, tokens: &Tokens, piece: &str, whole: &str) -> Result<Vec<u32>> {
        let seen: Vec<u32> = tokens.ids.iter().map(|&id| id as u32).collect();
        let all = self.llm.tokenizer.try_encode(whole)?;
        match all.starts_with(&seen) {
            true => Ok(all[seen.len()..].to_vec()),
            false => self.llm.tokenizer.try_encode(piece),
        }
    }

    /// The tokens of an answer behind those of its prompt, as the model would write them: those of the whole text, unless there a token
    /// reaches over the border.
    fn behind(
        &self,
        before: &[u32],
        encode: impl Fn(&str) -> Result<Vec<u32>>,
        prompt: &str,
        answer: &str,
    ) -> Result<Vec<u32>> {
        let whole = encode(&format!("{prompt}{answer}"))?;
        match whole.starts_with(before) {
            true => Ok(whole[before.len()..].to_vec()),
            false => self.llm.tokenizer.try_encode(answer),
        }
    }
}
