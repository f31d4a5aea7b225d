//! Losses of texts that share a row, and likelihoods of answers.

use super::CausalLm;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::functional::Reduction;
use crate::tensor::Tensor;

/// The token that stands where nothing is to be learnt.
pub const IGNORED: i32 = -100;

impl CausalLm {
    /// The mean cross-entropy of the next tokens that are not [`IGNORED`], where several texts share a row: a token sees those of its own
    /// segment alone. All are integers of (batch, length).
    ///
    /// ```
    /// use volta::models::{CausalLm, CausalLmOptions, IGNORED};
    /// use volta::Tensor;
    /// let model = CausalLm::new(CausalLmOptions { vocabulary: 40, ..CausalLmOptions::default() });
    /// let tokens = Tensor::from_vec(vec![5, 6, 7, 8, 9], [1, 5]);
    /// let segments = Tensor::from_vec(vec![0, 0, 1, 1, 1], [1, 5]);
    /// let next = Tensor::from_vec(vec![6, IGNORED, 8, 9, IGNORED], [1, 5]);
    /// assert!(model.packed_loss(&tokens, &segments, &next).item::<f32>() > 0.0);
    /// ```
    #[track_caller]
    pub fn packed_loss(&self, tokens: &Tensor, segments: &Tensor, next: &Tensor) -> Tensor {
        self.try_packed_loss(tokens, segments, next).unwrap_or_else(|e| e.raise())
    }

    /// [`packed_loss`](Self::packed_loss) that returns its error.
    #[track_caller]
    pub fn try_packed_loss(&self, tokens: &Tensor, segments: &Tensor, next: &Tensor) -> Result<Tensor> {
        if segments.shape() != tokens.shape() || next.shape() != tokens.shape() {
            let _call = Call::enter("CausalLm::packed_loss");
            let (t, s, n) = (tokens.shape(), segments.shape(), next.shape());
            bail!(Shape, "tokens of {t}, segments of {s} and next tokens of {n}: one shape is needed");
        }
        let x = self.hidden(tokens, None, Some(segments))?;
        self.loss_of(&x, next, Reduction::Mean)
    }

    /// The logarithm of how likely the model takes the next tokens of each row to be, all but [`IGNORED`] ones together: (batch) numbers
    /// for integers of (batch, length).
    #[track_caller]
    pub fn try_log_likelihood(&self, tokens: &Tensor, next: &Tensor) -> Result<Tensor> {
        let x = self.hidden(tokens, None, None)?;
        self.loss_of(&x, next, Reduction::None)?.try_sum_dim(1, false)?.try_neg()
    }
}
