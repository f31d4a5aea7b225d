//! Texts of different lengths that go on together: one pass writes a token of each.
//!
//! A row of the cache is a text. Where each goes on is a tensor, so that one plan serves all lengths up to the cache's capacity.

use super::attention::Sight;
use super::{CausalLm, CausalLmCache, View};
use crate::autograd::no_grad;
use crate::default_device::with_device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::KvCache;
use crate::shape::Shape;
use crate::tensor::Tensor;

impl CausalLm {
    /// Takes in a token of each row, at the place that the row has come to; the logits of (rows, vocabulary) of what follows each.
    pub(in crate::models) fn next_of_each(
        &self,
        tokens: &[u32],
        places: &[usize],
        cache: &mut CausalLmCache,
    ) -> Result<Tensor> {
        let rows = tokens.len();
        let (tokens, places) = with_device(self.device(), || {
            let tokens = tokens.iter().map(|&t| t as i32).collect::<Vec<_>>();
            let places = places.iter().map(|&p| p as i32).collect::<Vec<_>>();
            Ok::<_, Error>((
                Tensor::try_from_vec(tokens, [rows, 1])?,
                Tensor::try_from_vec(places, [rows, 1, 1, 1])?,
            ))
        })?;
        let logits = no_grad(|| {
            let capacity = cache.capacity();
            let near = self.window_rotary.as_ref().map(|f| f.rotation_at(&places)).transpose()?;
            let view = View {
                full: self.rotary.rotation_at(&places)?,
                near,
                all: Sight::at(&places, capacity, None)?,
                window: Sight::at(&places, capacity, self.options.window)?,
                in_cache: true,
            };
            cache.0.iter_mut().for_each(|layer| layer.place(&places));
            let x = self.through(self.embedded(&tokens)?, &view, Some(&mut *cache))?;
            self.logits(&x.try_squeeze(1)?)?.try_to_dtype(DType::F32)
        })?;
        cache.realize_with(std::slice::from_ref(&logits))?;
        Ok(logits)
    }
}

impl CausalLmCache {
    /// How many texts it is for.
    pub(in crate::models) fn rows(&self) -> usize {
        self.0.first().map_or(0, |layer| layer.keys.size(0))
    }

    /// Puts a text's cache of no more capacity into a row.
    pub(in crate::models) fn put(&mut self, row: usize, text: &CausalLmCache) -> Result<()> {
        let capacity = self.capacity();
        for (all, one) in self.0.iter_mut().zip(&text.0) {
            let one = one.grown(capacity)?;
            let rows = all.keys.index_rule(0, Shape::of(&[all.keys.size(0), 1, 1, 1]), DType::I32);
            let here = rows.try_eq(row)?;
            for (all, one) in [(&all.keys, &one.keys), (&all.values, &one.values)] {
                all.try_assign(&here.try_where_(one, all)?)?;
            }
        }
        self.realize()
    }

    /// Some of its rows, in any order, with room for at least so many positions; a number may come again.
    pub(in crate::models) fn picked(&self, rows: &[usize], capacity: usize) -> Result<CausalLmCache> {
        let numbers: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let layer = |layer: &KvCache| {
            let numbers =
                with_device(layer.keys.device(), || Tensor::try_from_vec(numbers.clone(), [rows.len()]))?;
            let some = |t: &Tensor| Ok(t.detach().try_index_select(0, &numbers)?.variable());
            layer.mapped(some)?.grown(capacity)
        };
        let picked = CausalLmCache(self.0.iter().map(layer).collect::<Result<_>>()?);
        picked.realize()?;
        Ok(picked)
    }
}
