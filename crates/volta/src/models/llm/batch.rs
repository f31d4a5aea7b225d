//! Many texts that one model goes on with at once: texts join and leave between any two tokens.
//!
//! Texts whose caches have room for as many positions are rows of one group, and a step is one pass a group. The rooms are powers of
//! two, so that a long text does not make short ones slow; a text that fills its room moves to the next group. A group has a power of
//! two of rows, too: every step has one of few plans.

use super::{Cache, Llm, LlmCache, Network};
use crate::error::{Error, ErrorKind, Result};
use crate::models::{CausalLm, CausalLmCache, GptCache, LanguageModel};

/// The name of a text in an [`LlmBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(u64);

/// Texts that a model goes on with at once, each with a token a step.
///
/// ```no_run
/// use volta::models::{LanguageModel, Llm, LlmBatch};
/// let llm = Llm::load("SmolLM2-135M-Instruct")?;
/// let mut batch = LlmBatch::new(&llm, 16);
/// let mut steps = Vec::new();
/// for text in ["One", "Two and three"] {
///     let mut cache = llm.start();
///     let logits: Vec<f32> = llm.read(&llm.prompt(text)?, &mut cache)?.try_to_vec()?;
///     let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0);
///     steps.push((batch.join(&cache)?, best as u32));
/// }
/// let logits = batch.step(&steps)?; // of what follows each
/// # Ok::<(), volta::Error>(())
/// ```
pub struct LlmBatch<'m> {
    llm: &'m Llm,
    max_rows: usize,
    is_fixed: bool,
    texts: Texts<'m>,
    next: u64,
}

enum Texts<'m> {
    Llama(&'m CausalLm, Vec<Group>),
    /// One by one.
    Gpt(Vec<(TextId, GptCache)>),
}

/// Texts whose caches have the same room.
struct Group {
    cache: CausalLmCache,
    rows: Vec<Option<Row>>,
}

#[derive(Clone, Copy)]
struct Row {
    text: TextId,
    /// How many positions are filled.
    length: usize,
}

impl<'m> LlmBatch<'m> {
    /// For so many texts at once.
    pub fn new(llm: &'m Llm, max_texts: usize) -> LlmBatch<'m> {
        let texts = match &llm.network {
            Network::Llama(model) => Texts::Llama(model, Vec::new()),
            Network::Gpt(_) => Texts::Gpt(Vec::new()),
        };
        LlmBatch { llm, max_rows: max_texts.max(1), is_fixed: false, texts, next: 0 }
    }

    /// The same with groups that always have all their rows: a text's logits are the same to the bit whoever else is there, and a
    /// step costs the same for one text as for all.
    #[must_use]
    pub fn fixed(self) -> LlmBatch<'m> {
        LlmBatch { is_fixed: true, ..self }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        match &self.texts {
            Texts::Llama(_, groups) => groups.iter().map(Group::count).sum(),
            Texts::Gpt(texts) => texts.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A text that was read joins. Its cache is copied.
    ///
    /// # Errors
    /// As many texts as there may be, an empty cache, or one of another model.
    pub fn join(&mut self, cache: &LlmCache) -> Result<TextId> {
        if self.len() == self.max_rows {
            let message = format!("{} texts are in the batch already: one must leave", self.max_rows);
            return Err(Error::new(ErrorKind::Argument, message));
        }
        let text = TextId(self.next);
        match (&mut self.texts, &cache.0) {
            (Texts::Llama(model, groups), Cache::Llama(cache)) if !cache.is_empty() => {
                let rows = if self.is_fixed { self.max_rows } else { 1 };
                let row = Row { text, length: cache.len() };
                enter(model, groups, row, cache, (rows, self.max_rows))?;
            }
            (Texts::Gpt(texts), Cache::Gpt(cache)) if !cache.is_empty() => {
                texts.push((text, cache.copied()?))
            }
            _ => return Err(Error::new(ErrorKind::Argument, "the cache is empty, or of another model")),
        }
        self.next += 1;
        Ok(text)
    }

    /// A text leaves; nothing happens if it is not there.
    pub fn leave(&mut self, text: TextId) {
        match &mut self.texts {
            Texts::Llama(_, groups) => {
                for row in groups.iter_mut().flat_map(|group| &mut group.rows) {
                    *row = row.filter(|row| row.text != text);
                }
                groups.retain(|group| group.count() > 0);
            }
            Texts::Gpt(texts) => texts.retain(|(own, _)| *own != text),
        }
    }

    /// Takes in a token of each of these texts; the logits of what follows, in their order. Others wait.
    ///
    /// # Errors
    /// A text that is not there, or whose context is full.
    pub fn step(&mut self, tokens: &[(TextId, u32)]) -> Result<Vec<Vec<f32>>> {
        let context = self.llm.max_tokens();
        let is_fixed = self.is_fixed;
        let sizes = (if is_fixed { self.max_rows } else { 1 }, self.max_rows);
        match &mut self.texts {
            Texts::Llama(model, groups) => {
                make_room(model, groups, tokens, sizes)?;
                let mut found: Vec<Option<Vec<f32>>> = tokens.iter().map(|_| None).collect();
                for group in groups.iter_mut() {
                    if !is_fixed {
                        group.shrink()?;
                    }
                    group.step(model, tokens, &mut found)?;
                }
                found.into_iter().map(|logits| logits.ok_or_else(unknown)).collect()
            }
            Texts::Gpt(texts) => {
                let one = |&(text, token): &(TextId, u32)| {
                    let (_, cache) = texts.iter_mut().find(|(own, _)| *own == text).ok_or_else(unknown)?;
                    if cache.len() == context {
                        return Err(full(context));
                    }
                    let Network::Gpt(model) = &self.llm.network else { return Err(unknown()) };
                    model.read(&[token], cache)?.try_to_dtype(crate::DType::F32)?.try_to_vec()
                };
                tokens.iter().map(one).collect()
            }
        }
    }
}

fn unknown() -> Error {
    Error::new(ErrorKind::Argument, "a text is not in the batch")
}

fn full(context: usize) -> Error {
    Error::new(ErrorKind::Argument, format!("a text has all {context} tokens that the model sees"))
}

/// The room that a text of so many tokens needs for one more.
fn room_of(length: usize, at_least: usize, context: usize) -> usize {
    (length + 1).next_power_of_two().max(at_least).min(context)
}

/// Gives a text a row in the group of its room; a new group has the first number of rows, and none grows beyond the second.
fn enter(
    model: &CausalLm,
    groups: &mut Vec<Group>,
    row: Row,
    cache: &CausalLmCache,
    (rows, most): (usize, usize),
) -> Result<()> {
    let room = room_of(row.length, cache.capacity(), model.options.context);
    let place = match groups.iter().position(|group| group.cache.capacity() == room) {
        Some(place) => place,
        None => {
            let cache = model.cache(rows, room);
            groups.push(Group { cache, rows: vec![None; rows] });
            groups.len() - 1
        }
    };
    let group = &mut groups[place];
    if group.count() == group.rows.len() {
        group.resize((2 * group.rows.len()).min(most))?;
    }
    let free = group.rows.iter().position(Option::is_none).ok_or_else(unknown)?;
    group.cache.put(free, cache)?;
    group.rows[free] = Some(row);
    Ok(())
}

/// Moves texts that have filled their room to the next group.
fn make_room(
    model: &CausalLm,
    groups: &mut Vec<Group>,
    tokens: &[(TextId, u32)],
    sizes: (usize, usize),
) -> Result<()> {
    loop {
        let full_row = groups.iter().enumerate().find_map(|(k, group)| {
            let is_full = |row: &Row| {
                row.length == group.cache.capacity() && tokens.iter().any(|(text, _)| *text == row.text)
            };
            let place = group.rows.iter().position(|row| row.as_ref().is_some_and(is_full))?;
            Some((k, place))
        });
        let Some((k, place)) = full_row else { break };
        let Some(row) = groups[k].rows[place] else { break };
        if row.length == model.options.context {
            return Err(full(row.length));
        }
        let room = room_of(row.length, 0, model.options.context);
        let own = groups[k].cache.picked(&[place], room)?;
        groups[k].rows[place] = None;
        enter(model, groups, row, &own, sizes)?;
    }
    groups.retain(|group| group.count() > 0);
    Ok(())
}

impl Group {
    fn count(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// Halves a group that has at most a quarter of its rows in use.
    fn shrink(&mut self) -> Result<()> {
        while self.rows.len() > 1 && 4 * self.count() <= self.rows.len() {
            self.resize(self.rows.len().div_ceil(2))?;
        }
        Ok(())
    }

    /// So many rows, those in use first.
    fn resize(&mut self, rows: usize) -> Result<()> {
        let mut kept: Vec<usize> = (0..self.rows.len()).filter(|&k| self.rows[k].is_some()).collect();
        let texts: Vec<Option<Row>> = kept.iter().map(|&k| self.rows[k]).collect();
        // A free row may hold anything.
        kept.resize(rows, 0);
        self.cache = self.cache.picked(&kept, self.cache.capacity())?;
        self.rows = texts;
        self.rows.resize(rows, None);
        Ok(())
    }

    fn step(
        &mut self,
        model: &CausalLm,
        tokens: &[(TextId, u32)],
        found: &mut [Option<Vec<f32>>],
    ) -> Result<()> {
        let asked =
            |row: &Option<Row>| tokens.iter().position(|(text, _)| Some(*text) == row.map(|r| r.text));
        let asked: Vec<Option<usize>> = self.rows.iter().map(asked).collect();
        if asked.iter().all(Option::is_none) {
            return Ok(());
        }
        // What waits writes where its next token will, and nobody sees that before it.
        let given: Vec<u32> = asked.iter().map(|k| k.map_or(0, |k| tokens[k].1)).collect();
        let places: Vec<usize> = self.rows.iter().map(|row| row.map_or(0, |row| row.length)).collect();
        debug_assert_eq!(self.cache.rows(), places.len());
        let logits: Vec<f32> = model.next_of_each(&given, &places, &mut self.cache)?.try_to_vec()?;
        for ((row, asked), logits) in
            self.rows.iter_mut().zip(asked).zip(logits.chunks(model.options.vocabulary))
        {
            if let (Some(row), Some(k)) = (row, asked) {
                row.length += 1;
                found[k] = Some(logits.to_vec());
            }
        }
        Ok(())
    }
}
