//! Writing: the header first, then every tensor's elements, read from where they are one after the other.

use super::{METADATA, Metadata};
use crate::error::{Result, bail};
use crate::io::json::Json;
use crate::io::types::FileType;
use crate::state::StateDict;
use crate::tensor::{Tensor, readings};
#[cfg(not(target_arch = "wasm32"))]
use crate::wait::wait_for;
use std::cmp::Reverse;
use std::future::Future;

/// A file that is about to be written.
pub(in crate::io) struct SafetensorsFile<'a> {
    header: Vec<u8>,
    /// In the order in which they lie in the file.
    tensors: Vec<&'a Tensor>,
    bytes: usize,
}

impl<'a> SafetensorsFile<'a> {
    /// Plans the file. Names keep the order of `state`; elements lie in the order of their size, the largest first,
    /// so that every tensor begins at a multiple of its element's size.
    pub fn new(state: &'a StateDict, metadata: &Metadata) -> Result<SafetensorsFile<'a>> {
        if state.get(METADATA).is_some() {
            bail!(
                Argument,
                "a tensor called {METADATA:?} cannot be saved: safetensors keeps this name for itself"
            );
        }
        let all: Vec<(&str, &Tensor)> = state.iter().collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&k| Reverse(all[k].1.dtype().size()));
        let mut places = vec![(0, 0); all.len()];
        let mut end = 0;
        for &k in &order {
            let start = end;
            end += all[k].1.numel() * all[k].1.dtype().size();
            places[k] = (start, end);
        }
        let mut members = Vec::new();
        if !metadata.is_empty() {
            let texts = metadata.iter().map(|(key, text)| (key.clone(), Json::Text(text.clone())));
            members.push((METADATA.to_string(), texts.collect()));
        }
        let sizes = |sizes: &[usize]| Json::List(sizes.iter().map(|&n| Json::Int(n as i64)).collect());
        for (&(name, t), &(start, end)) in all.iter().zip(&places) {
            let about = [
                ("dtype", FileType::of(t.dtype()).name.into()),
                ("shape", sizes(&t.shape())),
                ("data_offsets", sizes(&[start, end])),
            ];
            let about = about.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
            members.push((name.to_string(), about));
        }
        let mut header = Json::Object(members).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(SafetensorsFile { header, tensors: order.into_iter().map(|k| all[k].1).collect(), bytes: end })
    }

    /// Gives the file to `sink`, piece by piece.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn write(&self, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let elements = readings(&self.tensors)?;
        sink(&(self.header.len() as u64).to_le_bytes())?;
        sink(&self.header)?;
        for reading in elements {
            sink(&wait_for(reading?.as_mut())?)?;
        }
        Ok(())
    }

    /// The file in memory, as soon as every device has answered.
    pub fn to_bytes(&self) -> impl Future<Output = Result<Vec<u8>>> + use<> {
        let elements = readings(&self.tensors);
        let mut all = Vec::with_capacity(8 + self.header.len() + self.bytes);
        all.extend_from_slice(&(self.header.len() as u64).to_le_bytes());
        all.extend_from_slice(&self.header);
        async move {
            for reading in elements? {
                all.extend_from_slice(&reading?.await?);
            }
            Ok(all)
        }
    }
}
