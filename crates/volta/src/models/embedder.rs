//! Vectors of sentences: an encoder, its tokenizer, and how a text's vectors become one.

use super::config_json::Fields;
use super::llm::Texts;
use super::{Bert, BertOptions};
use crate::autograd::no_grad;
use crate::call::Call;
use crate::default_device::with_device;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::io::{NameMap, Weights};
use crate::nn::Module;
use crate::tensor::Tensor;
use crate::text::Tokenizer;

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token.
    First,
    /// The largest of each element.
    Max,
}

/// Makes vectors of sentences, which lie near each other if they mean alike.
///
/// ```no_run
/// use volta::models::Embedder;
/// let embedder = Embedder::load("all-MiniLM-L6-v2")?; // a folder of Hugging Face
/// let vectors = embedder.embed(&["A man eats.", "Somebody has lunch."])?;
/// let likeness: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Embedder {
    /// The encoder.
    pub model: Bert,
    /// What makes tokens of text.
    pub tokenizer: Tokenizer,
    /// How the vectors of a text's tokens become one.
    pub pooling: Pooling,
    /// Whether vectors get the length 1.
    pub normalized: bool,
    /// The most tokens of a text; the rest is left out.
    pub max_tokens: usize,
}

/// Tokens of one pass.
const MAX_PASS: usize = 4096;
/// Lengths are filled up to multiples of this, so that there are few different plans.
const LENGTHS: usize = 16;

impl Embedder {
    /// Reads a folder as Hugging Face has it: `config.json`, weights and `tokenizer.json`, and what sentence-transformers puts beside
    /// them. The mean is taken where nothing says how.
    ///
    /// # Errors
    /// What cannot be read, is missing, or is not understood; the message names the file and the field.
    #[track_caller]
    pub fn load(folder: impl AsRef<std::path::Path>) -> Result<Embedder> {
        let _call = Call::enter("Embedder::load");
        let folder = folder.as_ref();
        let texts = |name: &str| super::llm::read_text(&folder.join(name));
        let weights = || Weights::open(folder);
        assemble(&Texts(&texts), weights).map_err(|e| e.with_context(&folder.display().to_string()))
    }

    /// The tokens of a text, with those around it, and no more than the encoder sees.
    #[track_caller]
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>> {
        let mut tokens = self.tokenizer.try_encode_with_special_tokens(text)?;
        if tokens.len() > self.max_tokens
            && let Some(last) = tokens.pop()
        {
            // The mark of the end stays.
            tokens.truncate(self.max_tokens - 1);
            tokens.push(last);
        }
        Ok(tokens)
    }

    /// One vector a text.
    #[track_caller]
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let _call = Call::enter("Embedder::embed");
        self.model.eval();
        let all: Vec<Vec<u32>> = texts.iter().map(|text| self.tokens(text)).collect::<Result<_>>()?;
        if let Some(k) = all.iter().position(Vec::is_empty) {
            bail!(Data, "text {k} has no token, and the tokenizer adds none");
        }
        // Those of about one length go together.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&k| all[k].len());
        let mut vectors = vec![Vec::new(); all.len()];
        let mut left = &order[..];
        while let Some(first) = left.first() {
            let length = |k: usize| all[k].len().next_multiple_of(LENGTHS).min(self.model.options.context);
            let mut count = 1;
            while count < left.len() && (count + 1) * length(left[count]) <= MAX_PASS {
                count += 1;
            }
            let (now, rest) = left.split_at(count);
            let longest = length(*now.last().unwrap_or(first));
            let rows: Vec<&[u32]> = now.iter().map(|&k| &all[k][..]).collect();
            for (&k, vector) in now.iter().zip(self.pass(&rows, longest)?) {
                vectors[k] = vector;
            }
            left = rest;
        }
        Ok(vectors)
    }

    fn pass(&self, rows: &[&[u32]], length: usize) -> Result<Vec<Vec<f32>>> {
        let shape = [rows.len(), length];
        let filling = self.tokenizer.pad().unwrap_or(0);
        let (mut ids, mut seen) = (Vec::new(), Vec::new());
        for row in rows {
            let more = length - row.len();
            ids.extend(row.iter().map(|&id| id as i32).chain(std::iter::repeat_n(filling as i32, more)));
            seen.extend(std::iter::repeat_n(true, row.len()).chain(std::iter::repeat_n(false, more)));
        }
        no_grad(|| {
            let (ids, seen) = with_device(self.model.device(), || {
                Ok::<_, Error>((Tensor::try_from_vec(ids, shape)?, Tensor::try_from_vec(seen, shape)?))
            })?;
            let x = self.model.try_encode(&ids, &seen)?;
            let here = seen.try_unsqueeze(-1)?;
            let mut pooled = match self.pooling {
                Pooling::First => x.try_select(1, 0)?,
                Pooling::Max => here.try_where_(&x, f64::NEG_INFINITY)?.try_max_dim(1, false)?,
                Pooling::Mean => {
                    let sum = here.try_where_(&x, 0.0)?.try_sum_dim(1, false)?;
                    sum.try_div(&here.try_to_dtype(DType::F32)?.try_sum_dim(1, false)?)?
                }
            };
            if self.normalized {
                pooled = pooled.try_normalize(2.0, -1, 1e-12)?;
            }
            let width = pooled.size(1);
            let flat: Vec<f32> = pooled.try_to_dtype(DType::F32)?.try_to_vec()?;
            Ok(flat.chunks(width).map(<[f32]>::to_vec).collect())
        })
    }
}

fn assemble(texts: &Texts<'_>, weights: impl FnOnce() -> Result<Weights>) -> Result<Embedder> {
    let options = BertOptions::from_json(&texts.needed("config.json")?)?;
    let model = Bert::try_new(options)?;
    let names =
        NameMap::new().strip("bert").drop("pooler.{..}").drop("cls.{..}").drop("embeddings.position_ids");
    weights()?.renamed(&names)?.load_into(&model, true)?;
    let tokenizer = texts.tokenizer()?;
    if tokenizer.vocabulary_size() > options.vocabulary {
        let (size, known) = (tokenizer.vocabulary_size(), options.vocabulary);
        bail!(
            Data,
            "the tokenizer has {size} tokens, and the model knows {known}: they do not belong together"
        );
    }
    let about = texts.json("sentence_bert_config.json")?.unwrap_or_default();
    let most = about["max_seq_length"].as_u64().map_or(options.context, |n| n as usize);
    Ok(Embedder {
        model,
        tokenizer,
        pooling: pooling(texts)?,
        normalized: is_normalized(texts)?,
        max_tokens: most.clamp(2, options.context.max(2)),
    })
}

fn pooling(texts: &Texts<'_>) -> Result<Pooling> {
    const FILE: &str = "1_Pooling/config.json";
    let Some(config) = texts.json(FILE)? else { return Ok(Pooling::Mean) };
    let f = Fields::of(FILE, &config)?;
    let modes = [
        ("pooling_mode_mean_tokens", Pooling::Mean),
        ("pooling_mode_cls_token", Pooling::First),
        ("pooling_mode_max_tokens", Pooling::Max),
    ];
    let mut chosen = Vec::new();
    for (name, pooling) in modes {
        if f.switch(name)? {
            chosen.push(pooling);
        }
    }
    f.get("word_embedding_dimension");
    f.get("embedding_dimension");
    f.get("include_prompt");
    if let Some(mode) = f.text_if("pooling_mode")? {
        chosen.push(match mode {
            "mean" => Pooling::Mean,
            "cls" => Pooling::First,
            "max" => Pooling::Max,
            _ => return Err(f.wrong("pooling_mode", "Volta knows mean, cls and max")),
        });
    }
    f.finish()?;
    match chosen[..] {
        [one] => Ok(one),
        _ => Err(Error::new(
            ErrorKind::Data,
            format!("{FILE}: one way of pooling is needed, not {}", chosen.len()),
        )),
    }
}

/// Whether the last module of sentence-transformers normalizes.
fn is_normalized(texts: &Texts<'_>) -> Result<bool> {
    const FILE: &str = "modules.json";
    let Some(modules) = texts.json(FILE)? else { return Ok(false) };
    let mut normalized = false;
    for module in modules.as_array().into_iter().flatten() {
        let kind = module["type"].as_str().unwrap_or_default();
        match kind.rsplit('.').next() {
            Some("Transformer" | "Pooling") => {}
            Some("Normalize") => normalized = true,
            _ => {
                let message = format!(
                    "{FILE} has a module of type {kind:?}: Volta knows Transformer, Pooling and Normalize"
                );
                return Err(Error::new(ErrorKind::Data, message));
            }
        }
    }
    Ok(normalized)
}
