//! The values of a model's tensors on several devices. There is one model, which has the values of one device at a time: so whatever
//! computes with it computes there, and nothing has to know how a model of its kind is made.

use crate::device::Device;
use crate::error::{Result, bail};
use crate::graph::{Leaf, Node};
use crate::nn::Module;
use crate::tensor::{Tensor, broadcast, compute_only};
use std::collections::HashSet;
use std::sync::Arc;

/// A model's tensors, and what they are on other devices than its own.
pub(super) struct Replicas {
    pub parameters: Vec<Tensor>,
    pub buffers: Vec<Tensor>,
    /// The model's own is the first.
    pub devices: Vec<Device>,
    /// For each tensor, parameters first: the node that was brought to the other devices last, and what it is there.
    known: Vec<Option<(u64, Vec<Arc<Node>>)>>,
}

impl Replicas {
    pub fn new(model: &(impl Module + ?Sized), devices: &[Device]) -> Replicas {
        let mut found = HashSet::new();
        let mut buffers = model.buffers();
        buffers.retain(|buffer| found.insert(buffer.address()));
        Replicas::of(model.parameters(), buffers, devices)
    }

    /// Of tensors, each of which is there once.
    pub fn of(parameters: Vec<Tensor>, buffers: Vec<Tensor>, devices: &[Device]) -> Replicas {
        let known = vec![None; parameters.len() + buffers.len()];
        Replicas { parameters, buffers, devices: devices.to_vec(), known }
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.parameters.iter().chain(&self.buffers)
    }

    /// An error if the model is not where its first replica is to be.
    pub fn check(&self) -> Result<()> {
        let own = self.devices[0];
        if let Some(tensor) = self.tensors().find(|t| t.device() != own) {
            bail!(
                Device,
                "the model has a tensor on {}, and the first of the devices is {own}: move the model there with to_device",
                tensor.device()
            );
        }
        Ok(())
    }

    /// Brings what has changed since the last time to the other devices.
    pub fn update(&mut self) -> Result<()> {
        compute_only(self.tensors())?;
        let changed = |(k, tensor): (usize, &Tensor)| {
            let node = tensor.node();
            // Others may write memory that they share.
            let is_exported = node.storage().is_some_and(|storage| storage.is_exported());
            let is_known = self.known[k].as_ref().is_some_and(|(id, _)| *id == node.id) && !is_exported;
            (!is_known).then(|| (k, node.id, tensor.clone()))
        };
        let changed: Vec<(usize, u64, Tensor)> = self.tensors().enumerate().filter_map(changed).collect();
        // Their memory goes before what takes its place comes.
        changed.iter().for_each(|(k, ..)| self.known[*k] = None);
        let tensors: Vec<Tensor> = changed.iter().map(|(.., tensor)| tensor.clone()).collect();
        let there = broadcast(&tensors, &self.devices[1..])?;
        for ((k, id, _), nodes) in changed.into_iter().zip(there) {
            self.known[k] = Some((id, nodes));
        }
        Ok(())
    }

    /// The values that the tensors have on device `k`, once they are [updated](Self::update): nodes that nobody computes with elsewhere.
    fn values(&self, k: usize) -> Vec<Arc<Node>> {
        let value = |(t, tensor): (usize, &Tensor)| match &self.known[t] {
            Some((_, others)) if k > 0 => others[k - 1].clone(),
            _ => {
                let node = tensor.node();
                let storage = node.storage().expect("it was computed when the replicas were updated");
                Node::realized(node.shape, node.dtype, node.device, storage)
            }
        };
        self.tensors().enumerate().map(value).collect()
    }

    /// Gives the model the values of device `k`, until what it returns is dropped. Parameters go on with what they have `collected`;
    /// buffers are as they are there, or as their own nodes say.
    pub fn enter(
        &self,
        k: usize,
        collected: &[Option<Tensor>],
        buffers: &[Option<Arc<Node>>],
    ) -> Swapped<'_> {
        let mut values = self.values(k).into_iter();
        let mut before = Vec::with_capacity(self.known.len());
        for (p, parameter) in self.parameters.iter().enumerate() {
            let (own, value) = (parameter.node(), values.next().expect("one for each"));
            let node = match own.leaf.is_some() {
                // Gradients are collected here, and no product asks for halves that only some devices would know.
                true => {
                    let leaf = Arc::new(Leaf::new());
                    let gradient = collected.get(p).and_then(Option::clone);
                    crate::autograd::set_gradient(&leaf, gradient);
                    Node::leaf(value, leaf)
                }
                false => value,
            };
            parameter.restore_node(node);
            before.push((parameter, own));
        }
        for (b, buffer) in self.buffers.iter().enumerate() {
            let value = values.next().expect("one for each");
            let node = buffers.get(b).and_then(Option::clone).unwrap_or(value);
            before.push((buffer, buffer.node()));
            buffer.restore_node(node);
        }
        let entered = self.buffers.iter().map(|buffer| buffer.node().id).collect();
        Swapped { replicas: self, before, entered }
    }
}

/// While it lives, the model has the values of one of its replicas; then it has its own again, also after an error or a panic.
pub(super) struct Swapped<'r> {
    replicas: &'r Replicas,
    before: Vec<(&'r Tensor, Arc<Node>)>,
    /// The nodes that buffers began with.
    entered: Vec<u64>,
}

impl Swapped<'_> {
    /// The gradients that the parameters have collected.
    pub fn gradients(&self) -> Vec<Option<Tensor>> {
        self.replicas.parameters.iter().map(Tensor::grad).collect()
    }

    /// The buffers that were given new values.
    pub fn buffers(&self) -> Vec<Option<Arc<Node>>> {
        let changed = |(buffer, id): (&Tensor, &u64)| Some(buffer.node()).filter(|node| node.id != *id);
        self.replicas.buffers.iter().zip(&self.entered).map(changed).collect()
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        self.before.drain(..).for_each(|(tensor, node)| tensor.restore_node(node));
    }
}
