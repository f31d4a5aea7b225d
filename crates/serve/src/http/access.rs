//! Who may ask: clients with the key, and pages that the server itself has sent.

use super::Shared;
use crate::api::ApiError;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};

/// Refuses web sites. Without a key anybody on this machine may ask, a browser among them, in which a site of others must not: neither
/// from its own origin nor under a name of its own for the loopback.
pub fn check_site(headers: &HeaderMap, shared: &Shared) -> Result<(), ApiError> {
    if shared.options.api_key.is_some() {
        return Ok(());
    }
    let host = text(headers, &HOST);
    if shared.options.host.is_loopback() && !host.is_none_or(is_loopback) {
        return Err(ApiError::new(403, "this server answers on the loopback only, and not to other names"));
    }
    let own = |origin: &str| origin.split_once("://").map(|(_, authority)| authority) == host;
    match text(headers, &ORIGIN) {
        Some(origin) if !own(origin) => {
            Err(ApiError::new(403, "pages of other sites may not ask without a key"))
        }
        _ => Ok(()),
    }
}

/// Refuses who has not the key.
pub fn check_key(headers: &HeaderMap, shared: &Shared) -> Result<(), ApiError> {
    let Some(key) = &shared.options.api_key else { return Ok(()) };
    let given = text(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    match given {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") && is_equal(given.trim(), key) => {
            Ok(())
        }
        Some(_) => Err(ApiError::new(401, "Incorrect API key provided.").with_code("invalid_api_key")),
        None => {
            let message = "You didn't provide an API key: send it as `Authorization: Bearer KEY`.";
            Err(ApiError::new(401, message))
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// In a time that depends on what was given alone.
fn is_equal(given: &str, key: &str) -> bool {
    let (given, key) = (given.as_bytes(), key.as_bytes());
    let differing = given.iter().enumerate().fold(given.len() ^ key.len(), |differing, (k, byte)| {
        differing | usize::from(byte ^ key.get(k).copied().unwrap_or(!byte))
    });
    std::hint::black_box(differing) == 0
}

fn is_loopback(host: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::{is_equal, is_loopback};

    #[test]
    fn only_names_of_this_machine_are_the_loopback() {
        for host in ["localhost", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:8080", "", ":8080", "localhost:"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn keys_are_equal_or_not() {
        assert!(is_equal("key", "key"));
        for (given, key) in [("", "key"), ("ke", "key"), ("keys", "key"), ("Key", "key"), ("key", "")] {
            assert!(!is_equal(given, key), "{given} {key}");
        }
    }
}
