//! Several short texts in one row of tokens, none of which sees another.

use super::tokenized::Tokens;
use volta::Result;
use volta::data::{Array, Dataset, Sample};
use volta::models::IGNORED;

/// Rows of one length. An input is (2, length): tokens, and the number of the text that each belongs to; a target the tokens that
/// follow, where they are learnt.
#[derive(Clone, Debug)]
pub struct PackedRows {
    length: usize,
    inputs: Vec<i32>,
    targets: Vec<i32>,
    /// How many of all places have a text.
    filled: usize,
}

impl PackedRows {
    /// Puts each text into the first row that has room for it, the longest first; alone if it is not to be packed. Texts have one token more
    /// than `length` at most.
    ///
    /// ```
    /// use volta::data::Dataset;
    /// use volta_lm::finetune::{PackedRows, Tokens};
    /// let text = |ids: &[i32]| Tokens { ids: ids.to_vec(), learnt: vec![true; ids.len()] };
    /// let rows = PackedRows::new(&[text(&[1, 2, 3]), text(&[4, 5, 6])], 4, true);
    /// assert_eq!((rows.len(), rows.filled()), (1, 1.0));
    /// ```
    pub fn new(texts: &[Tokens], length: usize, packed: bool) -> PackedRows {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        if packed {
            order.sort_by_key(|&k| std::cmp::Reverse(texts[k].ids.len()));
        }
        let (mut rows, mut room): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
        for k in order {
            let places = texts[k].ids.len() - 1;
            let fits = room.iter().position(|&left| packed && left >= places);
            let row = fits.unwrap_or_else(|| {
                rows.push(Vec::new());
                room.push(length);
                rows.len() - 1
            });
            rows[row].push(k);
            room[row] -= places;
        }
        let mut out = PackedRows { length, inputs: Vec::new(), targets: Vec::new(), filled: 0 };
        rows.iter().for_each(|row| out.push(row.iter().map(|&k| &texts[k])));
        out
    }

    fn push<'t>(&mut self, texts: impl Iterator<Item = &'t Tokens>) {
        let (mut tokens, mut segments) = (Vec::new(), Vec::new());
        let start = self.targets.len();
        let mut segment = 0;
        for text in texts {
            let places = text.ids.len() - 1;
            tokens.extend(&text.ids[..places]);
            segments.resize(tokens.len(), segment);
            let next = text.ids.iter().zip(&text.learnt).skip(1);
            self.targets.extend(next.map(|(&id, &learnt)| if learnt { id } else { IGNORED }));
            segment += 1;
        }
        self.filled += tokens.len();
        tokens.resize(self.length, 0);
        segments.resize(self.length, segment);
        self.targets.resize(start + self.length, IGNORED);
        self.inputs.extend(tokens);
        self.inputs.extend(segments);
    }

    /// Which share of the rows is text.
    pub fn filled(&self) -> f64 {
        self.filled as f64 / self.targets.len().max(1) as f64
    }
}

impl Dataset for PackedRows {
    fn len(&self) -> usize {
        self.targets.len() / self.length
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let (from, length) = (index * self.length, self.length);
        let input = Array::try_new(&self.inputs[2 * from..2 * (from + length)], &[2, length])?;
        Ok(Sample { input, target: Array::try_new(&self.targets[from..from + length], &[length])? })
    }
}
