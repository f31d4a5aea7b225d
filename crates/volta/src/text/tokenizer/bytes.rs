//! The bytes of UTF-8 as tokens.

use super::{Decoder, Scheme, TokenizerKind};
use crate::error::Result;
use serde_json::Value;

pub(super) struct Bytes;

impl Scheme for Bytes {
    fn kind(&self) -> TokenizerKind {
        TokenizerKind::Bytes
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn size(&self) -> usize {
        256
    }

    fn token(&self, id: u32) -> Option<String> {
        let byte = u8::try_from(id).ok()?;
        Some(if byte.is_ascii() { char::from(byte).to_string() } else { format!("<0x{byte:02X}>") })
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        u8::try_from(id).ok().map(|byte| vec![byte])
    }

    fn id(&self, token: &str) -> Option<u32> {
        let hex = || token.strip_prefix("<0x")?.strip_suffix('>').filter(|digits| digits.len() == 2);
        match token.as_bytes() {
            [byte] => Some(u32::from(*byte)),
            _ => u32::from_str_radix(hex()?, 16).ok(),
        }
    }

    fn pad(&self) -> Option<u32> {
        None
    }

    fn unknown(&self) -> Option<u32> {
        None
    }

    fn content(&self) -> (&'static str, Value) {
        ("bytes", 256.into())
    }

    fn decoder(&self) -> Box<dyn Decoder + '_> {
        Box::new(ByteDecoder::default())
    }
}

/// Bytes that wait for the rest of their character: three at the most.
#[derive(Default)]
pub(super) struct ByteDecoder(Vec<u8>);

impl ByteDecoder {
    /// The text that these bytes complete.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> String {
        self.0.extend(bytes);
        let mut text = String::new();
        loop {
            let (valid, bad) = match std::str::from_utf8(&self.0) {
                Ok(all) => (all, None),
                Err(error) => {
                    // What precedes an error is valid.
                    let valid = std::str::from_utf8(&self.0[..error.valid_up_to()]).unwrap_or_default();
                    (valid, Some(error.error_len()))
                }
            };
            text.push_str(valid);
            let done = valid.len();
            match bad {
                None => self.0.clear(),
                // A character that is not complete yet.
                Some(None) => drop(self.0.drain(..done)),
                Some(Some(length)) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.0.drain(..done + length);
                    continue;
                }
            }
            return text;
        }
    }
}

impl Decoder for ByteDecoder {
    fn push(&mut self, id: u32) -> String {
        u8::try_from(id).map_or(String::new(), |byte| self.push_bytes(&[byte]))
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Scheme};

    #[test]
    fn broken_utf8_is_shown_as_the_standard_library_shows_it() {
        let cases: [&[u8]; 7] = [
            b"plain",
            b"\xE2\x82",
            b"\xE2\x82\xAC\xE2",
            b"a\xFFb\xC3",
            b"\xF0\x9F\x99A\xF0\x9F\x99\x82",
            b"\xC0\xAF\xED\xA0\x80",
            b"\x80\x80\x80",
        ];
        for bytes in cases {
            let mut decoder = Bytes.decoder();
            let mut text: String = bytes.iter().map(|&b| decoder.push(b.into())).collect();
            text += &decoder.finish();
            assert_eq!(text, String::from_utf8_lossy(bytes), "{bytes:x?}");
        }
    }
}
