//! Steps along a sequence, in one or two directions, layer on layer. The input's part of all steps is one product.

use super::step::Kind;
use super::{RecurrentOptions, RecurrentWeights};
use crate::error::{ErrorKind, Result};
use crate::nn::call::misuse;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// As many parts a sequence is cut into at a time. The gradient of a cut is a sum over its parts, so that cutting a
/// sequence of n steps at once would take n² of them.
const PARTS: usize = 12;

/// A network that is about to run.
pub(super) struct Stack<'a> {
    pub name: &'static str,
    pub kind: Kind,
    /// Layer by layer, the forward direction first.
    pub weights: &'a [RecurrentWeights],
    pub options: &'a RecurrentOptions,
    pub hidden: usize,
    pub training: bool,
}

impl Stack<'_> {
    /// The output and the last states of `x`, from `states`, of which there are none or as many as the kind has.
    pub fn run(&self, x: &Tensor, states: &[&Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        let alone = x.rank() == 2;
        let batch_axis = if self.options.batch_first && !alone { 0 } else { 1 };
        let inputs = self.weights[0].weight_ih.size(1);
        if !(2..=3).contains(&x.rank()) || x.size(-1) != inputs || x.numel() == 0 {
            let order = if self.options.batch_first { "(batch, length" } else { "(length, batch" };
            let none = if x.numel() == 0 { ", none of them 0," } else { "" };
            let message =
                format!("the input has shape {}, and {order}, {inputs}){none} is needed", x.shape());
            return Err(misuse(self.name, ErrorKind::Shape, message));
        }
        let x = if alone { x.try_unsqueeze(1)? } else { x.clone() };
        let x = if batch_axis == 0 { x.try_transpose(0, 1)? } else { x };
        let states: Vec<Tensor> = if states.is_empty() {
            let shape = Shape::new(&[self.weights.len(), x.size(1), self.hidden])?;
            vec![x.constant(0.0, shape, x.dtype()); self.kind.states()]
        } else {
            states.iter().map(|s| self.checked(s, x.size(1), alone)).collect::<Result<_>>()?
        };
        let (y, last) = self.layers(&x, &states)?;
        let y = if batch_axis == 0 { y.try_transpose(0, 1)? } else { y };
        if !alone {
            return Ok((y, last));
        }
        Ok((y.try_squeeze(1)?, last.iter().map(|s| s.try_squeeze(1)).collect::<Result<_>>()?))
    }

    fn checked(&self, state: &Tensor, batch: usize, alone: bool) -> Result<Tensor> {
        let whole = [self.weights.len(), batch, self.hidden];
        let fits = if alone { state.shape()[..] == [whole[0], whole[2]] } else { state.shape()[..] == whole };
        if !fits {
            let message = format!("the state has shape {}, and {whole:?} is needed", state.shape());
            return Err(misuse(self.name, ErrorKind::Shape, message));
        }
        if alone { state.try_unsqueeze(1) } else { Ok(state.clone()) }
    }

    /// `x` is (length, batch, inputs), states (layers · directions, batch, hidden).
    fn layers(&self, x: &Tensor, states: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        let directions = self.options.directions();
        let mut x = x.clone();
        let mut last: Vec<Vec<Tensor>> = vec![Vec::new(); states.len()];
        for (k, both) in self.weights.chunks(directions).enumerate() {
            if k > 0 {
                x = x.try_dropout(self.options.dropout, self.training)?;
            }
            let mut outputs = Vec::new();
            for (d, weights) in both.iter().enumerate() {
                let place = (k * directions + d) as isize;
                let first: Vec<Tensor> =
                    states.iter().map(|s| s.try_select(0, place)).collect::<Result<_>>()?;
                let (y, ends) = self.one_way(&x, weights, first, d == 1)?;
                outputs.push(y);
                last.iter_mut().zip(ends).for_each(|(all, end)| all.push(end));
            }
            x = if directions == 1 { outputs.remove(0) } else { Tensor::try_cat(&outputs, -1)? };
        }
        Ok((x, last.iter().map(|all| Tensor::try_stack(all, 0)).collect::<Result<_>>()?))
    }

    fn one_way(
        &self,
        x: &Tensor,
        weights: &RecurrentWeights,
        mut state: Vec<Tensor>,
        backwards: bool,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let mut from_input = Vec::new();
        cut(&x.try_linear(&weights.weight_ih, weights.bias_ih.as_ref())?, &mut from_input)?;
        if backwards {
            from_input.reverse();
        }
        let mut outputs = Vec::new();
        for step in &from_input {
            state = self.kind.step(step, weights, &state)?;
            outputs.push(state[0].clone());
        }
        if backwards {
            outputs.reverse();
        }
        Ok((Tensor::try_stack(&outputs, 0)?, state))
    }
}

/// The slices of the first axis, cut out in groups.
fn cut(x: &Tensor, steps: &mut Vec<Tensor>) -> Result<()> {
    if x.size(0) <= PARTS {
        steps.extend(x.try_unbind(0)?);
        return Ok(());
    }
    x.try_chunk(PARTS, 0)?.iter().try_for_each(|part| cut(part, steps))
}
