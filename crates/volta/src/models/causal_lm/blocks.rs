//! Matrices in blocks on their way into a model that is read.

use super::CausalLm;
use super::weight::Weight;
use crate::error::{Result, bail};
use crate::nn::{LoadReport, Module};
use crate::state::StateDict;
use crate::tensor::{QuantizedMatrix, Tensor};
use std::collections::BTreeMap;

impl CausalLm {
    /// Every matrix with the name of its tensor.
    fn matrices(&mut self) -> Vec<(String, &mut Weight)> {
        let mut all = vec![("model.embed_tokens.weight".to_string(), &mut self.body.embed_tokens.weight)];
        all.extend(self.head.as_mut().map(|head| ("lm_head.weight".to_string(), &mut head.weight)));
        let layers = self.body.layers.iter_mut().enumerate();
        for (k, block) in layers {
            all.extend(
                block.projections(k).into_iter().map(|(name, p)| (format!("{name}.weight"), &mut p.weight)),
            );
        }
        all
    }

    /// Puts matrices of the model's own shapes into it in place of its floats; others are left in the map.
    fn put_blocks(&mut self, blocks: &mut BTreeMap<String, QuantizedMatrix>) -> Result<()> {
        for (name, weight) in self.matrices() {
            let fits = |m: &QuantizedMatrix| (m.rows(), m.columns()) == (weight.rows(), weight.columns());
            if blocks.get(&name).is_some_and(fits)
                && let Some(matrix) = blocks.remove(&name)
            {
                *weight = Weight::Blocks(matrix.try_to_device(weight.device())?);
            }
        }
        Ok(())
    }

    /// Fills a new model: matrices in blocks, and everything else, which must be all there is.
    pub(in crate::models) fn fill(
        &mut self,
        mut state: StateDict,
        mut blocks: BTreeMap<String, QuantizedMatrix>,
    ) -> Result<()> {
        self.put_blocks(&mut blocks)?;
        // What is of another shape, or no matrix here, is named by the module.
        for (name, matrix) in blocks {
            state.insert(name, Tensor::try_zeros([matrix.rows(), matrix.columns()])?);
        }
        let mut report = self.load_state_dict(&state, false)?;
        let in_blocks = |name: &str| name.ends_with(".weight.words") || name.ends_with(".weight.scales");
        report.missing.retain(|name| !in_blocks(name));
        if report != LoadReport::default() {
            bail!(Argument, "the state does not fit the module: {report}");
        }
        Ok(())
    }
}
