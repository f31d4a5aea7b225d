//! Ranks that have only their share of what the optimizer remembers, of gradients and of parameters.
//!
//! A parameter is cut into equally long parts. While the optimizer steps, each parameter of a rank is the part that this rank has, with
//! the part's gradient: so any optimizer that moves elements by themselves remembers no more than that. Behind the step the parts are
//! gathered; where parameters are shared out, too, only for the plans that read them (`engine/absent.rs`).

use super::Trainer;
use super::ranks::Ranks;
use crate::autograd::no_grad;
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine::absent::{self, Absent, Provided};
use crate::error::{Result, bail};
use crate::graph::{Leaf, Node, Storage};
use crate::optim::shorten;
use crate::parallel::{ExactSum, Gatherer, Gathering, ShardLayout, Sharding};
use crate::shape::Shape;
use crate::state::State;
use crate::tensor::{Tensor, compute_only};
use crate::train::health;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a rank has its share of.
pub(super) struct Shards {
    pub sharding: Sharding,
    pub layout: ShardLayout,
    rank: usize,
    gatherer: Gatherer,
    bucket_bytes: usize,
    /// Parameters that collect gradients, by number.
    shared: Vec<usize>,
    /// This rank's parts of parameters, where nobody has all of them.
    parts: Arc<Mutex<Vec<Option<Tensor>>>>,
    /// The parts of the sums of gradients, while a step is made.
    gradients: Vec<Option<Vec<f32>>>,
    /// The length of all gradients together: its square so far, and what all ranks have.
    squares: ExactSum,
    /// The nodes of parameters that are parts now.
    whole: Vec<(usize, Arc<Node>)>,
}

/// Gathered at once, unless a parameter is larger.
fn in_groups(parameters: &[usize], bytes: impl Fn(usize) -> usize, most: usize) -> Vec<Vec<usize>> {
    let (mut all, mut size): (Vec<Vec<usize>>, usize) = (Vec::new(), 0);
    for &k in parameters {
        match all.last_mut() {
            Some(last) if size + bytes(k) <= most => last.push(k),
            _ => {
                all.push(vec![k]);
                size = 0;
            }
        }
        size += bytes(k);
    }
    all
}

impl Shards {
    /// Nothing unless something is shared out; an error if these parameters and this optimizer do not suit that.
    pub fn new(
        trainer: &Trainer<'_>,
        ranks: &Ranks,
        sharding: Sharding,
        gatherer: Gatherer,
    ) -> Result<Option<Shards>> {
        if sharding == Sharding::Nothing {
            return Ok(None);
        }
        let (stage, optimizer) = (sharding.stage(), &trainer.optimizer);
        if !optimizer.is_elementwise() {
            bail!(
                Argument,
                "stage {stage} of sharding gives each rank a part of the elements of a parameter, and this optimizer moves whole \
                 matrices: choose another one, such as AdamW, or share out nothing"
            );
        }
        let parameters = optimizer.parameters();
        let is_leaf = |k: &usize| parameters[*k].node().leaf.is_some();
        let shared: Vec<usize> = (0..parameters.len()).filter(is_leaf).collect();
        if let Some(&k) = shared.iter().find(|&&k| parameters[k].dtype() != DType::F32) {
            bail!(
                Argument,
                "parameter {k} is {}, and ranks share out f32: keep the parameters in it, and compute in another type by \
                 TrainerOptions::precision",
                parameters[k].dtype()
            );
        }
        let sizes = parameters.iter().map(Tensor::numel).collect();
        let layout = ShardLayout::new(sizes, ranks.world.size());
        let count = parameters.len();
        Ok(Some(Shards {
            sharding,
            layout,
            rank: ranks.world.rank(),
            gatherer,
            bucket_bytes: ranks.options.bucket_bytes,
            shared,
            parts: Arc::new(Mutex::new(vec![None; count])),
            gradients: vec![None; count],
            squares: ExactSum::default(),
            whole: Vec::new(),
        }))
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Option<Tensor>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether sums of gradients are shared out.
    pub fn scatters(&self) -> bool {
        self.sharding >= Sharding::Gradients
    }

    /// Takes this rank's part of the sums of gradients of some parameters.
    pub fn take(&mut self, parameters: &[usize], sums: Vec<f32>) {
        self.squares.add_squares(&sums);
        let mut rest = &sums[..];
        for &k in parameters {
            let (own, behind) = rest.split_at(self.layout.length(k));
            rest = behind;
            self.gradients[k] = Some(own.to_vec());
        }
    }

    /// This rank's part of a tensor that is whole; it may be yet to be computed.
    fn part_of(&self, k: usize, whole: &Tensor) -> Result<Tensor> {
        let (range, length) = (self.layout.range(k, self.rank), self.layout.length(k));
        no_grad(|| {
            let own = whole.detach().try_reshape([whole.numel()])?.try_narrow(0, range.start, range.len())?;
            if range.len() == length {
                return Ok(own);
            }
            let zeros = with_device(whole.device(), || Tensor::try_zeros([length - range.len()]))?;
            Tensor::try_cat(&[own, zeros], 0)
        })
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        let bytes = |k: usize| 4 * self.layout.length(k);
        in_groups(&self.shared, bytes, self.bucket_bytes)
    }

    /// Gathers parts and hands over each whole.
    fn gather(
        &self,
        parts: impl Fn(usize) -> Result<Vec<f32>>,
        mut whole: impl FnMut(usize, Vec<f32>) -> Result<()>,
    ) -> Result<()> {
        let mut under_way = VecDeque::new();
        let mut finish = |(group, gathering): (Vec<usize>, Gathering)| -> Result<()> {
            let all = self.layout.by_parameter(&group, &gathering.wait()?);
            group.into_iter().zip(all).try_for_each(|(k, numbers)| whole(k, numbers))
        };
        for group in self.groups() {
            let mut mine = Vec::new();
            for &k in &group {
                mine.extend(parts(k)?);
            }
            let gathering = self.gatherer.begin(mine)?;
            under_way.push_back((group, gathering));
            // One is sent while the next is read.
            if under_way.len() > 1
                && let Some(first) = under_way.pop_front()
            {
                finish(first)?;
            }
        }
        under_way.into_iter().try_for_each(finish)
    }
}

/// A leaf with these values.
fn leaf_of(like: &Node, shape: Shape, storage: Storage, leaf: Arc<Leaf>) -> Arc<Node> {
    Node::leaf(Node::realized(shape, like.dtype, like.device, storage), leaf)
}

/// The numbers as a tensor like another one, but for its shape.
fn tensor_of(numbers: Vec<f32>, shape: Shape, like: &Tensor) -> Result<Tensor> {
    with_device(like.device(), || Tensor::try_from_vec(numbers, &shape[..]))
}

fn storage_of(tensor: &Tensor) -> Result<Storage> {
    compute_only([tensor])?;
    match tensor.node().storage() {
        Some(storage) => Ok(storage),
        None => bail!(Memory, "a part of a parameter was not computed"),
    }
}

impl Trainer<'_> {
    fn shards(&self) -> Option<&Shards> {
        self.ranks.as_ref()?.shards.as_ref()
    }

    /// Has parameters be absent between plans, where ranks share them out: each keeps its part.
    pub(super) fn share_out_parameters(&self) -> Result<()> {
        let Some(shards) = self.shards() else { return Ok(()) };
        if shards.sharding < Sharding::Parameters {
            return Ok(());
        }
        for &k in &shards.shared {
            let part = shards.part_of(k, &self.optimizer.parameters()[k])?;
            compute_only([&part])?;
            shards.parts()[k] = Some(part);
            self.make_absent(k);
        }
        Ok(())
    }

    fn make_absent(&self, k: usize) {
        let parameter = &self.optimizer.parameters()[k];
        let node = parameter.node();
        let Some(leaf) = node.leaf.clone() else { return };
        leaf.forget_half();
        let absent = Absent { number: k, bytes: 4 * node.shape.numel() };
        parameter.restore_node(leaf_of(&node, node.shape, Arc::new(absent), leaf));
    }

    /// Has all ranks have all parameters.
    pub(super) fn make_whole(&self) -> Result<()> {
        let Some(shards) = self.shards().filter(|shards| shards.sharding == Sharding::Parameters) else {
            return Ok(());
        };
        let parameters = self.optimizer.parameters();
        let part = |k: usize| match &shards.parts()[k] {
            Some(part) => part.try_to_vec::<f32>(),
            None => bail!(Argument, "parameter {k} is not shared out"),
        };
        shards.gather(part, |k, numbers| {
            let node = parameters[k].node();
            let Some(leaf) = node.leaf.clone() else { return Ok(()) };
            let storage = storage_of(&tensor_of(numbers, node.shape, &parameters[k])?)?;
            parameters[k].restore_node(leaf_of(&node, node.shape, storage, leaf));
            Ok(())
        })
    }

    /// The other way round, once nothing has changed.
    pub(super) fn make_absent_again(&self) {
        if let Some(shards) = self.shards().filter(|shards| shards.sharding == Sharding::Parameters) {
            shards.shared.iter().for_each(|&k| self.make_absent(k));
        }
    }

    /// Has plans be brought the parameters that they read, until what it returns is dropped.
    pub(super) fn bring_parameters(&self) -> Option<Provided> {
        let shards = self.shards().filter(|shards| shards.sharding == Sharding::Parameters)?;
        let (parts, layout, gatherer) =
            (shards.parts.clone(), shards.layout.clone(), shards.gatherer.clone());
        let parameters = self.optimizer.parameters().to_vec();
        let shapes: Vec<Shape> = parameters.iter().map(Tensor::shape).collect();
        let bring = move |numbers: &[usize]| -> Result<Vec<Storage>> {
            let mut mine = Vec::new();
            for &k in numbers {
                let part = parts.lock().unwrap_or_else(PoisonError::into_inner)[k].clone();
                let Some(part) = part else { bail!(Argument, "parameter {k} is not shared out") };
                mine.extend(part.try_to_vec::<f32>()?);
            }
            let all = layout.by_parameter(numbers, &gatherer.gather(mine)?);
            let each = numbers.iter().zip(all);
            each.map(|(&k, numbers)| storage_of(&tensor_of(numbers, shapes[k], &parameters[k])?)).collect()
        };
        Some(absent::provide(Rc::new(bring), shards.bucket_bytes))
    }

    /// Has parameters be the parts that this rank moves, with their gradients.
    pub(super) fn enter_parts(&mut self) -> Result<()> {
        let Some(shards) = self.shards() else { return Ok(()) };
        let mut parts = Vec::new();
        for &k in &shards.shared {
            let known = shards.parts()[k].clone();
            let part = match known {
                Some(part) if shards.sharding == Sharding::Parameters => part,
                _ => shards.part_of(k, &self.optimizer.parameters()[k])?,
            };
            parts.push(part);
        }
        compute_only(&parts)?;
        let parameters = self.optimizer.parameters();
        let mut gradients = Vec::new();
        for &k in &shards.shared {
            gradients.push(match &shards.gradients[k] {
                Some(numbers) => {
                    let shape = Shape::of(&[numbers.len()]);
                    Some(tensor_of(numbers.clone(), shape, &parameters[k])?)
                }
                None if shards.scatters() => None,
                None => parameters[k].grad().map(|gradient| shards.part_of(k, &gradient)).transpose()?,
            });
        }
        let mut whole = Vec::new();
        for ((&k, part), gradient) in shards.shared.iter().zip(&parts).zip(gradients) {
            let (parameter, node) = (&parameters[k], parameters[k].node());
            let length = Shape::of(&[shards.layout.length(k)]);
            let Some(storage) = part.node().storage() else {
                bail!(Memory, "a part of a parameter was not computed")
            };
            parameter.restore_node(leaf_of(&node, length, storage, Arc::new(Leaf::new())));
            parameter.set_grad(gradient);
            if shards.sharding < Sharding::Gradients
                && let Some(leaf) = &node.leaf
            {
                // Its part is all that is read of it from here on.
                crate::tensor::leaf_gradient::set_gradient(leaf, None);
            }
            whole.push((k, node));
        }
        if let Some(shards) = self.ranks.as_mut().and_then(|ranks| ranks.shards.as_mut()) {
            shards.whole = whole;
            shards.gradients.iter_mut().for_each(|gradient| *gradient = None);
        }
        Ok(())
    }

    /// Has parameters be whole again, with what all ranks have made of them; behind a step that has failed, as they were.
    pub(super) fn leave_parts(&mut self, is_made: bool) -> Result<()> {
        let Some(shards) = self.ranks.as_mut().and_then(|ranks| ranks.shards.as_mut()) else { return Ok(()) };
        let whole = std::mem::take(&mut shards.whole);
        let parameters = self.optimizer.parameters();
        let mut parts: Vec<Option<Tensor>> = vec![None; parameters.len()];
        for (k, node) in whole {
            parts[k] = Some(parameters[k].detach());
            parameters[k].restore_node(node);
        }
        if !is_made || parts.iter().all(Option::is_none) {
            return Ok(());
        }
        let Some(shards) = self.shards() else { return Ok(()) };
        if shards.sharding == Sharding::Parameters {
            for &k in &shards.shared {
                let part = parts[k].take();
                shards.parts()[k] = part;
                self.make_absent(k);
            }
            return Ok(());
        }
        let part = |k: usize| match &parts[k] {
            Some(part) => part.try_to_vec::<f32>(),
            None => bail!(Argument, "parameter {k} has no part"),
        };
        no_grad(|| {
            shards.gather(part, |k, numbers| {
                parameters[k].try_assign(&tensor_of(numbers, parameters[k].shape(), &parameters[k])?)
            })
        })
    }

    /// What all ranks know of the sums of gradients, of which each has its part: how long they are together. If some number is not finite,
    /// no rank has finite ones.
    pub(super) fn agree_on_gradients(&mut self) -> Result<Option<f64>> {
        let Some(ranks) = &mut self.ranks else { return Ok(None) };
        let Some(shards) = ranks.shards.as_mut().filter(|shards| shards.scatters()) else { return Ok(None) };
        let mine = std::mem::take(&mut shards.squares).to_bytes();
        let mut all = vec![0; mine.len() * ranks.world.size()];
        ranks.world.all_gather(&mine, &mut all)?;
        let squares = ExactSum::of_all(&all);
        if !squares.is_finite()
            && let Some(first) = shards.gradients.iter_mut().flatten().find_map(|part| part.first_mut())
        {
            *first = f32::NAN;
        }
        Ok(Some(squares.value().sqrt()))
    }

    /// Makes gradients shorter that are together longer than `most`, whoever has them; how long they were. `length` is that of the sums
    /// that ranks share out, if they do.
    pub(super) fn shorten_parts(&self, length: f64, most: f64) -> Result<Tensor> {
        let parameters = self.optimizer.parameters();
        no_grad(|| {
            let device = parameters.first().map_or(Device::Cpu, Tensor::device);
            let mut norm = with_device(device, || Tensor::scalar(length as f32));
            if let Some(scaler) = &self.scaler {
                norm = norm.try_mul(&scaler.scale_of_step().try_to_device(device)?.try_recip()?)?;
            }
            shorten(parameters, &norm, most)?;
            Ok(norm)
        })
    }

    /// Whether all parameters are finite, of which ranks may have parts.
    pub(super) async fn are_parameters_finite(&self) -> Result<bool> {
        let parameters = self.optimizer.parameters();
        let parts = match self.shards().filter(|shards| shards.sharding == Sharding::Parameters) {
            Some(shards) => {
                let parts: Vec<Tensor> = shards.parts().iter().flatten().cloned().collect();
                parts
            }
            None => return health::are_finite(parameters).await,
        };
        let mine = health::are_finite(&parts).await?;
        let Some(ranks) = &self.ranks else { return Ok(mine) };
        let mut all = vec![0; ranks.world.size()];
        ranks.world.all_gather(&[u8::from(mine)], &mut all)?;
        Ok(all.iter().all(|&is_finite| is_finite == 1))
    }

    /// What this rank remembers of what the whole optimizer remembered; the parameters, which are whole, are parts meanwhile.
    pub(super) fn load_optimizer(&mut self, saved: &State) -> Result<()> {
        let Some(shards) = self.shards() else { return self.optimizer.load_state(saved) };
        let mut own = saved.clone();
        let parameters = self.optimizer.parameters();
        for (name, tensor) in saved.tensors.iter() {
            let Some(k) = self.optimizer.parameter_of_state(name) else { continue };
            if !shards.shared.contains(&k) {
                continue;
            }
            if tensor.shape() != parameters[k].shape() {
                bail!(
                    Data,
                    "{name} was saved with shape {}, and the parameter has {}",
                    tensor.shape(),
                    parameters[k].shape()
                );
            }
            let part = shards.layout.part(k, shards.rank, &tensor.try_to_vec::<f32>()?);
            own.tensors.insert(
                name,
                with_device(Device::Cpu, || Tensor::try_from_vec(part, [shards.layout.length(k)]))?,
            );
        }
        let mut whole = Vec::new();
        for &k in &shards.shared {
            let node = parameters[k].node();
            let absent = Absent { number: k, bytes: 0 };
            let length = Shape::of(&[shards.layout.length(k)]);
            parameters[k].restore_node(leaf_of(&node, length, Arc::new(absent), Arc::new(Leaf::new())));
            whole.push((k, node));
        }
        let loaded = self.optimizer.load_state(&own);
        let parameters = self.optimizer.parameters();
        whole.into_iter().for_each(|(k, node)| parameters[k].restore_node(node));
        loaded
    }

    /// Puts tensors without values, and of the parameters' shapes, in the place of parts.
    pub(super) fn give_shapes(
        &self,
        state: &mut State,
        parameter: impl Fn(&str) -> Option<usize>,
    ) -> Result<()> {
        let Some(shards) = self.shards() else { return Ok(()) };
        for name in state.tensors.names().map(String::from).collect::<Vec<_>>() {
            if let Some(k) = parameter(&name).filter(|k| shards.shared.contains(k)) {
                let shape = self.optimizer.parameters()[k].shape();
                state.tensors.insert(name, with_device(Device::Cpu, || shape_only(shape))?);
            }
        }
        Ok(())
    }

    /// Puts whole tensors in the place of parts: those that `is_own` for this rank, by the names of their part of the checkpoint and their
    /// own, and others without values.
    pub(super) fn whole_state(
        &self,
        part: &str,
        state: &mut State,
        parameter: impl Fn(&str) -> Option<usize>,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(shards) = self.shards() else { return Ok(()) };
        let parameters = self.optimizer.parameters();
        let names: Vec<String> = state.tensors.names().map(String::from).collect();
        for name in names {
            let Some(k) = parameter(&name).filter(|k| shards.shared.contains(k)) else { continue };
            let own = state.tensors.get(&name).cloned();
            let own = match (part, own) {
                (super::saving::MODEL, _) => shards.parts()[k].clone(),
                (_, own) => own,
            };
            let Some(own) = own else { continue };
            let all = shards.gatherer.gather(own.try_to_vec::<f32>()?)?;
            let shape = parameters[k].shape();
            let whole = with_device(Device::Cpu, || match is_own(&format!("{part}.{name}")) {
                true => {
                    let numbers = shards.layout.by_parameter(&[k], &all).pop().unwrap_or_default();
                    Tensor::try_from_vec(numbers, &shape[..])
                }
                false => shape_only(shape),
            })?;
            state.tensors.insert(name, whole);
        }
        Ok(())
    }
}

/// Tensors without values, and everything else.
pub(super) fn shapes_of(state: &State) -> Result<State> {
    let mut shapes = state.clone();
    for (name, tensor) in state.tensors.iter() {
        let of_type = || {
            Tensor::try_zeros(&tensor.shape()[..])?.try_to_dtype(tensor.dtype())?.try_reshape(tensor.shape())
        };
        let shape = with_device(Device::Cpu, of_type)?;
        crate::tensor::assume_computed(std::slice::from_ref(&shape));
        shapes.tensors.insert(name, shape);
    }
    Ok(shapes)
}

/// A tensor without values.
fn shape_only(shape: Shape) -> Result<Tensor> {
    let tensor = Tensor::try_zeros(&shape[..])?.try_add(0.0)?;
    crate::tensor::assume_computed(std::slice::from_ref(&tensor));
    Ok(tensor)
}
