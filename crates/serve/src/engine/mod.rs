//! The thread on which the model runs: requests join and leave the batch between any two tokens.
//!
//! A prompt is read a pass at a time, and between two passes every text that is being written gets its next token: a long prompt stops
//! nobody. `work` is what a request asks for and what it hears, `writer` a text that is being written, `stops` what it ends with.

mod stops;
mod work;
mod writer;

pub use work::{End, Event, Settings, TokenNote, Work};

use crate::grammar::Vocabulary;
use crate::metrics::Metrics;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use volta::DType;
use volta::models::{LanguageModel, Llm, LlmBatch, LlmCache, TextId};
use work::Place;
use writer::Writer;

/// Tokens of a prompt that are read before others get their next: what one pass of the model takes.
const PASS: usize = 512;

/// How the model is used.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Texts that are written at once.
    pub batch: usize,
    /// Texts that wait for a place.
    pub queue: usize,
    /// Tokens of a text.
    pub context: usize,
    /// Whether a text's numbers are the same to the bit whoever else is there.
    pub fixed: bool,
}

/// Where work is handed in.
pub struct Engine {
    sender: Sender<Work>,
    places: Arc<AtomicUsize>,
    limits: Limits,
    vocabulary: OnceLock<Arc<Vocabulary>>,
    llm: Arc<Llm>,
}

impl Engine {
    /// Starts the thread, which ends when nobody can hand in work any more.
    pub fn start(
        llm: Arc<Llm>,
        limits: Limits,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<(Engine, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let own = llm.clone();
        let run = move || Loop::new(&own, limits, &metrics).run(&receiver);
        let thread = std::thread::Builder::new().name("volta-engine".into()).spawn(run)?;
        let engine = Engine { sender, places: Arc::default(), limits, vocabulary: OnceLock::new(), llm };
        Ok((engine, thread))
    }

    pub fn llm(&self) -> &Llm {
        &self.llm
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The tokens as bytes, made when they are first asked for.
    pub fn vocabulary(&self) -> Arc<Vocabulary> {
        self.vocabulary.get_or_init(|| Arc::new(Vocabulary::new(&self.llm.tokenizer))).clone()
    }

    /// A place for so many texts, among those that are written or wait; nothing if all are taken.
    pub fn place(&self, texts: usize) -> Option<Place> {
        let most = self.limits.batch + self.limits.queue;
        Place::take(&self.places, texts, most)
    }

    /// Texts that are written or wait.
    pub fn load(&self) -> usize {
        self.places.load(Ordering::Relaxed)
    }

    /// Hands in work; false if the thread has ended.
    pub fn submit(&self, work: Work) -> bool {
        self.sender.send(work).is_ok()
    }
}

/// A prompt that is being read.
struct Reading {
    work: Work,
    cache: LlmCache,
    done: usize,
}

struct Loop<'m> {
    llm: &'m Llm,
    limits: Limits,
    metrics: &'m Metrics,
    batch: LlmBatch<'m>,
    waiting: VecDeque<Work>,
    reading: Option<Reading>,
    writing: Vec<(TextId, u32, Writer<'m>)>,
}

impl<'m> Loop<'m> {
    fn new(llm: &'m Llm, limits: Limits, metrics: &'m Metrics) -> Loop<'m> {
        let batch = new_batch(llm, limits);
        Loop { llm, limits, metrics, batch, waiting: VecDeque::new(), reading: None, writing: Vec::new() }
    }

    fn run(&mut self, receiver: &Receiver<Work>) {
        volta::Module::eval(self.llm);
        loop {
            let is_idle = self.waiting.is_empty() && self.reading.is_none() && self.writing.is_empty();
            if is_idle {
                match receiver.recv() {
                    Ok(work) => self.waiting.push_back(work),
                    Err(_) => return,
                }
            }
            self.waiting.extend(receiver.try_iter());
            self.leave();
            self.admit();
            self.read();
            if let Err(error) = self.write() {
                self.fail(error.message());
            }
            self.metrics.batch.set(self.writing.len());
        }
    }

    /// Lets go of what nobody listens to any more.
    fn leave(&mut self) {
        self.waiting.retain(|work| !work.is_cancelled());
        self.reading.take_if(|reading| reading.work.is_cancelled());
        let gone = self.writing.extract_if(.., |(_, _, writer)| writer.is_cancelled());
        for (text, _, writer) in gone {
            self.batch.leave(text);
            // Its place is free before it is counted.
            drop(writer);
            self.metrics.cancelled.add(1);
        }
    }

    /// Begins with the next prompt, if there are places for what it asks for.
    fn admit(&mut self) {
        let free = self.limits.batch - self.writing.len();
        if self.reading.is_none()
            && self.waiting.front().is_some_and(|work| work.settings.choices <= free)
            && let Some(work) = self.waiting.pop_front()
        {
            self.reading = Some(Reading { work, cache: self.llm.start(), done: 0 });
        }
    }

    /// Reads the next part of a prompt; behind the last, its texts join the batch. What goes wrong concerns nobody else.
    fn read(&mut self) {
        let Some(mut reading) = self.reading.take() else { return };
        match self.read_part(&mut reading) {
            Err(error) => reading.work.fail(error.message()),
            Ok(None) => self.reading = Some(reading),
            Ok(Some(logits)) => self.begin(reading, &logits),
        }
    }

    /// The logits of what follows, behind the last part.
    fn read_part(&self, reading: &mut Reading) -> volta::Result<Option<Vec<f32>>> {
        let prompt = &reading.work.prompt;
        let part = &prompt[reading.done..prompt.len().min(reading.done + PASS)];
        let logits = self.llm.read(part, &mut reading.cache)?;
        reading.done += part.len();
        self.metrics.prompt_tokens.add(part.len());
        if reading.done < prompt.len() {
            logits.try_realize()?;
            return Ok(None);
        }
        logits.try_to_dtype(DType::F32)?.try_to_vec().map(Some)
    }

    fn begin(&mut self, reading: Reading, logits: &[f32]) {
        let Reading { work, cache, .. } = reading;
        self.metrics.first_token(work.submitted.elapsed());
        let writers: Vec<Writer<'m>> =
            (0..work.settings.choices).map(|choice| Writer::new(self.llm, &work, choice)).collect();
        // A text gives its place back before its end is heard.
        drop(work);
        for mut writer in writers {
            let Some(token) = writer.take(self.llm, logits.to_vec(), self.metrics) else { continue };
            match self.batch.join(&cache) {
                Ok(text) => self.writing.push((text, token, writer)),
                Err(error) => writer.fail(error.message()),
            }
        }
    }

    /// The next token of every text.
    fn write(&mut self) -> volta::Result<()> {
        if self.writing.is_empty() {
            return Ok(());
        }
        let tokens: Vec<(TextId, u32)> =
            self.writing.iter().map(|(text, token, _)| (*text, *token)).collect();
        let logits = self.batch.step(&tokens)?;
        let writing = std::mem::take(&mut self.writing);
        for ((text, _, mut writer), logits) in writing.into_iter().zip(logits) {
            match writer.take(self.llm, logits, self.metrics) {
                Some(token) => self.writing.push((text, token, writer)),
                None => self.batch.leave(text),
            }
        }
        Ok(())
    }

    /// Tells all that are being written what went wrong, and begins anew.
    fn fail(&mut self, message: &str) {
        for (_, _, writer) in self.writing.drain(..) {
            writer.fail(message);
        }
        self.batch = new_batch(self.llm, self.limits);
    }
}

fn new_batch(llm: &Llm, limits: Limits) -> LlmBatch<'_> {
    let batch = LlmBatch::new(llm, limits.batch);
    if limits.fixed { batch.fixed() } else { batch }
}
