//! What answers a path.

use super::reply::{Reply, of_bytes, of_error, of_json, of_stream};
use super::{Shared, access, body};
use crate::api::{Answer, ApiError, chat, completions, embeddings, models};
use crate::engine::Engine;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY};
use hyper::{Method, Request, Response};
use std::convert::Infallible;
use std::sync::Arc;

/// The page that chats.
const PAGE: &str = include_str!("page.html");
/// It loads nothing from anywhere, and talks to this server alone.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Paths, and how they are asked.
const PATHS: [(&str, Method); 8] = [
    ("/", Method::GET),
    ("/health", Method::GET),
    ("/metrics", Method::GET),
    ("/v1/models", Method::GET),
    ("/v1/models/{id}", Method::GET),
    ("/v1/chat/completions", Method::POST),
    ("/v1/completions", Method::POST),
    ("/v1/embeddings", Method::POST),
];

type Way = fn(&[u8], &Engine, &str) -> Result<Answer, ApiError>;

/// Answers a request.
pub async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let path = request.uri().path();
    let known = match path.strip_prefix("/v1/models/") {
        Some(id) if !id.is_empty() => Some("/v1/models/{id}"),
        _ => PATHS.iter().map(|(known, _)| *known).find(|known| *known == path),
    };
    let response = match known {
        None => {
            let paths: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
            let message = format!("nothing answers {path}: there are {}", paths.join(", "));
            of_error(&ApiError::new(404, message))
        }
        Some(known) => found(known, &shared, request).await.unwrap_or_else(|error| of_error(&error)),
    };
    shared.metrics.answered(known.unwrap_or("other"), response.status().as_u16());
    Ok(response)
}

async fn found(
    path: &'static str,
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, ApiError> {
    let method =
        PATHS.iter().find(|(known, _)| *known == path).map_or(Method::GET, |(_, method)| method.clone());
    if request.method() != method && !(request.method() == Method::HEAD && method == Method::GET) {
        let mut response = of_error(&ApiError::new(405, format!("{path} is asked by {method}")));
        if let Ok(allowed) = HeaderValue::from_str(method.as_str()) {
            response.headers_mut().insert(ALLOW, allowed);
        }
        return Ok(response);
    }
    access::check_site(request.headers(), shared)?;
    // The page asks for the key, and whoever watches the server need not have it.
    if path != "/" && path != "/health" {
        access::check_key(request.headers(), shared)?;
    }
    match path {
        "/" => {
            let mut response = of_bytes("text/html; charset=utf-8", PAGE);
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            Ok(response)
        }
        "/health" => Ok(of_json(&serde_json::json!({"status": "ok"}))),
        "/metrics" => {
            let load = shared.engine.as_ref().map_or(0, |(_, engine)| engine.load());
            Ok(of_bytes("text/plain; version=0.0.4; charset=utf-8", shared.metrics.text(load)))
        }
        "/v1/models" => Ok(of_json(&models::list(names(shared), shared.since))),
        "/v1/models/{id}" => {
            let id = decoded(request.uri().path().trim_start_matches("/v1/models/"));
            match names(shared).find(|name| *name == id) {
                Some(name) => Ok(of_json(&models::describe(name, shared.since))),
                None => Err(models::missing(&id)),
            }
        }
        "/v1/embeddings" => {
            let Some((name, encoder)) = &shared.encoder else {
                return Err(ApiError::wrong(
                    "model",
                    "no encoder is loaded: start the server with --embeddings MODEL",
                ));
            };
            let bytes = body::read(request, &shared.options).await?;
            embeddings::answer(&bytes, encoder.clone(), name).await.map(|json| of_json(&json))
        }
        "/v1/chat/completions" => write(chat::answer, shared, request).await,
        _ => write(completions::answer, shared, request).await,
    }
}

fn names(shared: &Shared) -> impl Iterator<Item = &str> {
    let llm = shared.engine.as_ref().map(|(name, _)| name.as_str());
    llm.into_iter().chain(shared.encoder.as_ref().map(|(name, _)| name.as_str()))
}

/// Has the model write.
async fn write(
    way: Way,
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, ApiError> {
    let Some((name, engine)) = shared.engine.clone() else {
        return Err(ApiError::wrong("model", "no model that writes is loaded: start the server with one"));
    };
    let bytes = body::read(request, &shared.options).await?;
    // Long prompts take a while to cut into tokens, and others are answered meanwhile.
    let work = tokio::task::spawn_blocking(move || way(&bytes, &engine, &name));
    let answer = work.await.map_err(|_| ApiError::internal("reading the request has panicked"))??;
    match answer {
        Answer::Whole(whole) => whole.finish().await.map(|json| of_json(&json)),
        Answer::Stream(stream) => Ok(of_stream(stream)),
    }
}

/// A path's percent signs undone, as names of models may have slashes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| byte == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
