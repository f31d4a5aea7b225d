//! GGUF's blocks as words and scales, and back: the same bits, the scales apart.

use super::{q4_0, q4_1, q8_0};
use crate::op::quantized::{BLOCK, BlockFormat};

/// A format as GGUF's blocks.
pub(super) trait GgufBlocks {
    /// Bytes of scales that a block begins with.
    fn scale_bytes(self) -> usize;
    /// Bytes of a block.
    fn block_bytes(self) -> usize;
    fn encode(self, values: &[f32], out: &mut Vec<u8>);
    /// Bytes of words and of scales.
    fn pack(self, columns: usize, blocks: &[u8]) -> (Vec<u8>, Vec<u8>);
    fn unpack(self, columns: usize, words: &[u32], scales: &[u32]) -> Vec<u8>;
}

impl GgufBlocks for BlockFormat {
    fn scale_bytes(self) -> usize {
        if self.has_minimum() { 4 } else { 2 }
    }

    fn block_bytes(self) -> usize {
        self.scale_bytes() + self.block_words() * 4
    }

    fn encode(self, values: &[f32], out: &mut Vec<u8>) {
        match self {
            BlockFormat::Int8 => q8_0(values, out),
            BlockFormat::Int4 => q4_0(values, out),
            BlockFormat::Int4Min => q4_1(values, out),
        }
    }

    fn pack(self, columns: usize, blocks: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let row = columns / BLOCK * self.block_bytes();
        let rows = blocks.len() / row;
        let mut words = Vec::with_capacity(rows * self.row_words(columns) * 4);
        let mut scales = Vec::with_capacity(rows * self.row_scales(columns) * 4);
        for row in blocks.chunks_exact(row) {
            for block in row.chunks_exact(self.block_bytes()) {
                let (scale, packed) = block.split_at(self.scale_bytes());
                scales.extend_from_slice(scale);
                words.extend_from_slice(packed);
            }
            // A row of an odd number of blocks ends with half a word of nobody.
            scales.resize(scales.len().next_multiple_of(4), 0);
        }
        (words, scales)
    }

    fn unpack(self, columns: usize, words: &[u32], scales: &[u32]) -> Vec<u8> {
        let mut out = Vec::with_capacity(words.len() * 4 + scales.len() * 4);
        let rows =
            words.chunks_exact(self.row_words(columns)).zip(scales.chunks_exact(self.row_scales(columns)));
        for (words, scales) in rows {
            for (block, words) in words.chunks_exact(self.block_words()).enumerate() {
                if self.has_minimum() {
                    out.extend(scales[block].to_le_bytes());
                } else {
                    let scale = (scales[block / 2] >> (block % 2 * 16)) as u16;
                    out.extend(scale.to_le_bytes());
                }
                out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
        }
        out
    }
}
