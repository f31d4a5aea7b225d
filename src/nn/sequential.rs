//! Layers one after another.

use super::call::{forward, layer};
use super::{Module, Visitor};
use crate::error::Result;
use crate::tensor::Tensor;

/// Layers that run one after another.
///
/// ```
/// use volta::{Linear, Module, ReLU, Sequential, Tensor};
/// let model = Sequential::new(vec![
///     Box::new(Linear::new(4, 8, true)),
///     Box::new(ReLU),
///     Box::new(Linear::new(8, 2, true)),
/// ]);
/// assert_eq!(model.forward(&Tensor::zeros([3, 4])).shape()[..], [3, 2]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// ```
pub struct Sequential {
    layers: Vec<(String, Box<dyn Module>)>,
}

impl Sequential {
    /// Layers named by their place: `0`, `1`, …
    pub fn new(layers: Vec<Box<dyn Module>>) -> Sequential {
        Sequential { layers: layers.into_iter().enumerate().map(|(k, l)| (k.to_string(), l)).collect() }
    }

    /// Layers with names of their own.
    pub fn named<N: Into<String>>(layers: Vec<(N, Box<dyn Module>)>) -> Sequential {
        Sequential { layers: layers.into_iter().map(|(name, l)| (name.into(), l)).collect() }
    }

    /// With one more layer at the end, named by its place.
    pub fn with(mut self, layer: impl Module + 'static) -> Sequential {
        self.layers.push((self.layers.len().to_string(), Box::new(layer)));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// One of the layers.
    pub fn get(&self, index: usize) -> Option<&dyn Module> {
        self.layers.get(index).map(|(_, l)| &**l)
    }
}

impl Module for Sequential {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            self.layers.iter().try_fold(x.clone(), |x, (name, l)| {
                l.try_forward(&x).map_err(|e| e.with_context(&format!("in layer {name}, {}", l.kind())))
            })
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (name, l) in &self.layers {
            visitor.child(name, &**l);
        }
    }
}
