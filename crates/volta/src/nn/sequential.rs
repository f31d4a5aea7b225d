//! Layers one after another.

use super::call::{forward, layer, misuse};
use super::{Module, Visitor};
use crate::error::{ErrorKind, Result};
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

    /// Layers with names of their own: values are saved under them. No two are alike, none is empty, and none has a
    /// dot, which stands between the name of a layer and those of the layers in it.
    #[track_caller]
    pub fn named<N: Into<String>>(layers: Vec<(N, Box<dyn Module>)>) -> Sequential {
        Sequential::try_named(layers).unwrap_or_else(|e| e.raise())
    }

    /// [`named`](Self::named) that returns its error.
    #[track_caller]
    pub fn try_named<N: Into<String>>(layers: Vec<(N, Box<dyn Module>)>) -> Result<Sequential> {
        let mut all = Sequential { layers: Vec::with_capacity(layers.len()) };
        for (name, l) in layers {
            all.push(name.into(), l)?;
        }
        Ok(all)
    }

    /// With one more layer at the end, named by its place.
    #[track_caller]
    pub fn with(self, layer: impl Module + 'static) -> Sequential {
        self.try_with(layer).unwrap_or_else(|e| e.raise())
    }

    /// [`with`](Self::with) that returns its error: a layer [named](Self::named) so may be there already.
    #[track_caller]
    pub fn try_with(mut self, layer: impl Module + 'static) -> Result<Sequential> {
        self.push(self.layers.len().to_string(), Box::new(layer))?;
        Ok(self)
    }

    /// Names must not meet in what is saved: one value would take the other's place.
    #[track_caller]
    fn push(&mut self, name: String, layer: Box<dyn Module>) -> Result<()> {
        let problem = if name.is_empty() {
            Some(format!("a {} has an empty name", layer.kind()))
        } else if name.contains('.') {
            let kind = layer.kind();
            Some(format!("a {kind} is named {name:?}: a dot would make it a part of a layer before the dot"))
        } else {
            let first = self.layers.iter().find(|(n, _)| *n == name).map(|(_, first)| first.kind());
            first.map(|first| format!("two layers are named {name:?}: {first} and {}", layer.kind()))
        };
        if let Some(message) = problem {
            return Err(misuse("Sequential", ErrorKind::Argument, message));
        }
        self.layers.push((name, layer));
        Ok(())
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
            // The box itself: its place is what tells layers without fields apart.
            visitor.child(name, l);
        }
    }
}
