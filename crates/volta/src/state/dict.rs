//! Tensors by name.

use crate::tensor::Tensor;
use std::collections::HashMap;

/// Tensors by name, in the order in which the module shows them.
#[derive(Clone, Default)]
pub struct StateDict {
    entries: Vec<(String, Tensor)>,
    places: HashMap<String, usize>,
}

impl StateDict {
    /// Nothing yet.
    pub fn new() -> StateDict {
        StateDict::default()
    }

    /// The tensor of a name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|&k| &self.entries[k].1)
    }

    /// Puts a tensor under a name; the one that was there before, if any.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) -> Option<Tensor> {
        let name = name.into();
        if let Some(&k) = self.places.get(&name) {
            return Some(std::mem::replace(&mut self.entries[k].1, tensor));
        }
        self.places.insert(name.clone(), self.entries.len());
        self.entries.push((name, tensor));
        None
    }

    /// All names and tensors, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(name, t)| (name.as_str(), t))
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// How many tensors there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The same tensors under other names; those for which `rename` gives `None` are left out.
    pub fn renamed(&self, mut rename: impl FnMut(&str) -> Option<String>) -> StateDict {
        self.iter().filter_map(|(name, t)| Some((rename(name)?, t.clone()))).collect()
    }
}

impl FromIterator<(String, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(entries: I) -> StateDict {
        let mut state = StateDict::new();
        for (name, t) in entries {
            state.insert(name, t);
        }
        state
    }
}
