//! Windows of a long row of tokens, each with the same window one token later: what a language model learns from.

use super::array::Array;
use super::dataset::{Dataset, Pass, Sample};
use super::sample_rng::{SampleRng, Stream};
use crate::call::Call;
use crate::error::{Result, bail};

/// Windows of token ids, and what comes after each token; both i32 of the same length.
///
/// ```
/// use volta::data::{Array, Dataset, TokenWindows};
/// let windows = TokenWindows::new((0..10).collect(), 4);
/// let sample = windows.get(1)?;
/// assert_eq!(sample.input, Array::new(vec![4, 5, 6, 7], &[4]));
/// assert_eq!(sample.target, Array::new(vec![5, 6, 7, 8], &[4]));
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenWindows {
    tokens: Vec<i32>,
    length: usize,
    starts: Starts,
}

#[derive(Clone, Copy, Debug)]
enum Starts {
    /// This far apart.
    Every(usize),
    /// So many an epoch, anywhere.
    Random(usize),
}

impl TokenWindows {
    /// Windows of `length` tokens one after the other; what is left at the end is too short for one.
    #[track_caller]
    pub fn new(tokens: Vec<i32>, length: usize) -> TokenWindows {
        TokenWindows::try_new(tokens, length).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(tokens: Vec<i32>, length: usize) -> Result<TokenWindows> {
        let _call = Call::enter("TokenWindows");
        if length == 0 || tokens.len() <= length {
            bail!(
                Argument,
                "{} tokens have no window of {length} and the token after it: give more tokens or a shorter window",
                tokens.len()
            );
        }
        Ok(TokenWindows { tokens, length, starts: Starts::Every(length) })
    }

    /// Windows that begin this far apart; 1 gives every window there is.
    #[must_use]
    pub fn with_stride(mut self, stride: usize) -> TokenWindows {
        self.starts = Starts::Every(stride.max(1));
        self
    }

    /// `count` windows an epoch that begin anywhere: others with every seed and epoch.
    #[must_use]
    pub fn at_random(mut self, count: usize) -> TokenWindows {
        self.starts = Starts::Random(count);
        self
    }
}

impl Dataset for TokenWindows {
    fn len(&self) -> usize {
        match self.starts {
            Starts::Every(stride) => (self.tokens.len() - self.length - 1) / stride + 1,
            Starts::Random(count) => count,
        }
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        self.get_in(index, Pass::default())
    }

    fn get_in(&self, index: usize, pass: Pass) -> Result<Sample<'_>> {
        let start = match self.starts {
            Starts::Every(stride) => index * stride,
            Starts::Random(_) => {
                SampleRng::new(pass, Stream::Window, index).below(self.tokens.len() - self.length)
            }
        };
        let window = |from: usize| Array::try_new(&self.tokens[from..from + self.length], &[self.length]);
        Ok(Sample { input: window(start)?, target: window(start + 1)? })
    }
}
