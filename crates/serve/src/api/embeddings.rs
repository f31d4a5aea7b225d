//! `/v1/embeddings`: vectors of texts, made on a thread of the encoder's own.

use super::fields::Fields;
use super::{ApiError, base64, models, settings};
use crate::json::Json;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use volta::models::Embedder;

/// The most texts of a request.
const MAX_TEXTS: usize = 2048;

type Vectors = Result<(Vec<Vec<f32>>, usize), String>;

/// Where texts are handed in.
pub struct Encoder {
    sender: SyncSender<(Vec<String>, oneshot::Sender<Vectors>)>,
}

impl Encoder {
    /// Starts the thread, which ends when nobody can hand in texts any more.
    pub fn start(embedder: Embedder, queue: usize) -> std::io::Result<(Encoder, JoinHandle<()>)> {
        let (sender, receiver) = sync_channel::<(Vec<String>, oneshot::Sender<Vectors>)>(queue.max(1));
        let run = move || {
            for (texts, answer) in receiver {
                if !answer.is_closed() {
                    // Who is gone needs no answer.
                    let _ = answer.send(vectors(&embedder, &texts));
                }
            }
        };
        let thread = std::thread::Builder::new().name("volta-encoder".into()).spawn(run)?;
        Ok((Encoder { sender }, thread))
    }
}

fn vectors(embedder: &Embedder, texts: &[String]) -> Vectors {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let count = || {
        let lengths = texts.iter().map(|text| Ok(embedder.tokens(text)?.len()));
        Ok::<usize, volta::Error>(lengths.collect::<volta::Result<Vec<_>>>()?.iter().sum())
    };
    let all = embedder.embed(&texts).and_then(|vectors| Ok((vectors, count()?)));
    all.map_err(|error| error.message().to_string())
}

/// Makes vectors.
pub async fn answer(body: &[u8], encoder: Arc<Encoder>, model: &str) -> Result<Value, ApiError> {
    let mut fields = Fields::of_body(body)?;
    models::check(&mut fields, model)?;
    fields.ignore(&settings::IGNORED);
    fields.refuse(&[("dimensions", &[], "vectors are as wide as the model makes them")])?;
    let as_letters = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => return Err(fields.wrong("encoding_format", "float or base64")),
    };
    let texts = texts(fields.need("input")?)?;
    fields.finish()?;
    let (sender, receiver) = oneshot::channel();
    encoder.sender.try_send((texts, sender)).map_err(|error| match error {
        TrySendError::Full(_) => ApiError::busy(),
        TrySendError::Disconnected(_) => {
            ApiError::internal("the encoder's thread has ended: restart the server")
        }
    })?;
    let ended = |_| ApiError::internal("the encoder's thread has ended: restart the server");
    let (vectors, tokens) = receiver.await.map_err(ended)?.map_err(|e| ApiError::wrong("input", e))?;
    let vector = |vector: &Vec<f32>| match as_letters {
        true => base64::encode(&vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).into(),
        false => Value::from(vector.clone()),
    };
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(k, v)| json!({"object": "embedding", "index": k, "embedding": vector(v)}))
        .collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

fn texts(input: Json) -> Result<Vec<String>, ApiError> {
    let must = || {
        ApiError::wrong("input", format!("`input` must be a string, or an array of 1 to {MAX_TEXTS} strings"))
    };
    match input {
        Json::Text(text) => Ok(vec![text]),
        Json::List(list) if (1..=MAX_TEXTS).contains(&list.len()) => {
            list.iter().map(|text| text.text().map(String::from).ok_or_else(must)).collect()
        }
        _ => Err(must()),
    }
}
