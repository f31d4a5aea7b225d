//! Sums of products as one node each: layers and whole networks without a node for every product.

use super::arena::{Arena, ListId, NodeId, Operand};
use super::op::{Fault, Op, relu};

/// The parameters of a neuron: weights, then the bias.
#[derive(Clone, Copy, Debug)]
pub struct Neuron {
    pub parameters: ListId,
    /// Whether negative sums become zero.
    pub nonlin: bool,
}

impl Arena {
    /// Applies layers one after the other; every layer's neurons have as many weights as the one before has neurons.
    /// The caller holds the results.
    pub fn layers<'a>(
        &mut self,
        layers: impl IntoIterator<Item = &'a [Neuron]>,
        inputs: impl IntoIterator<Item = Operand>,
    ) -> Result<Vec<NodeId>, Fault> {
        let mut inputs = self.list(inputs)?;
        let mut outputs = Vec::new();
        for (k, layer) in layers.into_iter().enumerate() {
            if k > 0 {
                let next = self.list(outputs.iter().map(|&id| Operand::Node(id)));
                outputs.drain(..).for_each(|id| self.release(id));
                self.release_list(inputs);
                inputs = next?;
            }
            if let Err(fault) = self.layer(layer, inputs, &mut outputs) {
                outputs.drain(..).for_each(|id| self.release(id));
                self.release_list(inputs);
                return Err(fault);
            }
        }
        self.release_list(inputs);
        Ok(outputs)
    }

    fn layer(&mut self, layer: &[Neuron], inputs: ListId, outputs: &mut Vec<NodeId>) -> Result<(), Fault> {
        let mut x = std::mem::take(&mut self.inputs);
        x.clear();
        x.extend(self.members(inputs).map(|id| self.data(id)));
        let result = layer.iter().try_for_each(|neuron| {
            outputs.push(self.neuron(neuron, inputs, &x)?);
            Ok(())
        });
        self.inputs = x;
        result
    }

    fn neuron(&mut self, neuron: &Neuron, inputs: ListId, x: &[f64]) -> Result<NodeId, Fault> {
        let parameters = &self.lists[neuron.parameters.0 as usize].members;
        let (bias, weights) = parameters.split_last().expect("a neuron has a bias");
        // In the order of Python's sum, which begins with the bias: the same roundings.
        let start = self.data[*bias as usize];
        let sum = weights.iter().zip(x).fold(start, |sum, (&w, x)| sum + self.data[w as usize] * x);
        let (op, value) = if neuron.nonlin { (Op::LinearRelu, relu(sum)) } else { (Op::Linear, sum) };
        let id = self.node(op, neuron.parameters.0, inputs.0, value)?;
        self.hold_list(neuron.parameters);
        self.hold_list(inputs);
        self.hold(id);
        Ok(id)
    }

    /// Adds what the gradient `g` of a neuron's sum means for its parameters and inputs.
    pub(super) fn neuron_backward(&mut self, parameters: u32, inputs: u32, g: f64) {
        let parameters = &self.lists[parameters as usize].members;
        let inputs = &self.lists[inputs as usize].members;
        let (bias, weights) = parameters.split_last().expect("a neuron has a bias");
        self.grad[*bias as usize] += g;
        for (&w, &x) in weights.iter().zip(inputs) {
            let (w, x) = (w as usize, x as usize);
            self.grad[w] += self.data[x] * g;
            self.grad[x] += self.data[w] * g;
        }
    }
}
