//! How quantised matrices lie in memory: rows of blocks of 32 weights, packed into words, and the scales of the blocks.
//!
//! A matrix of (rows, columns) is two tensors of u32. `words` has a row of packed weights for every row, in the order of
//! GGUF's blocks. `scales` has f16 numbers, two in a word, the first in its low half: one scale a block, or a scale and a
//! minimum where the format has minima. An odd number of blocks leaves the last half unused.

/// Weights of a block, in every format.
pub const BLOCK: usize = 32;

/// How weights are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockFormat {
    /// scale · q for signed bytes q, in order: GGUF's Q8_0.
    Int8,
    /// scale · (q - 8) for nibbles q. Byte k of a block has weight k in its low nibble, and weight k + 16 in its high one:
    /// GGUF's Q4_0.
    Int4,
    /// scale · q + minimum for nibbles in the same order: GGUF's Q4_1.
    Int4Min,
}

impl BlockFormat {
    /// All of them.
    pub const ALL: [BlockFormat; 3] = [BlockFormat::Int8, BlockFormat::Int4, BlockFormat::Int4Min];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            BlockFormat::Int8 => "int8",
            BlockFormat::Int4 => "int4",
            BlockFormat::Int4Min => "int4_min",
        }
    }

    /// Words of packed weights that a block has.
    pub const fn block_words(self) -> usize {
        match self {
            BlockFormat::Int8 => 8,
            BlockFormat::Int4 | BlockFormat::Int4Min => 4,
        }
    }

    /// Whether blocks have a minimum beside their scale.
    pub const fn has_minimum(self) -> bool {
        matches!(self, BlockFormat::Int4Min)
    }

    /// Words of packed weights of a row of so many.
    pub const fn row_words(self, columns: usize) -> usize {
        columns / BLOCK * self.block_words()
    }

    /// Words of scales of a row of so many.
    pub const fn row_scales(self, columns: usize) -> usize {
        let blocks = columns / BLOCK;
        if self.has_minimum() { blocks } else { blocks.div_ceil(2) }
    }

    /// Blocks that begin with a word of scales of their own.
    pub const fn blocks_per_scale_word(self) -> usize {
        if self.has_minimum() { 1 } else { 2 }
    }
}
