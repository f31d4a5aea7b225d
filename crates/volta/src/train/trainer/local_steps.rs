//! Ranks that each make steps of their own, and agree on parameters now and then: DiLoCo (Douillard and others, 2023).
//!
//! After so many steps, what a rank has moved its parameters by since they were last the same everywhere is a gradient, turned round. The
//! mean over all ranks goes into an outer optimizer, SGD with Nesterov's momentum, from whose parameters all ranks go on:
//!
//! ```text
//! g = mean over ranks of (anchor − own)
//! v ← momentum·v + g
//! anchor ← anchor − rate·(g + momentum·v)
//! ```

use super::ranks::Ranks;
use super::{Run, Trainer};
use crate::autograd::no_grad;
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::io::Checkpoint;
use crate::parallel::{LocalSteps, Summation};
use crate::state::State;
use crate::telemetry::span;
use crate::tensor::{Tensor, compute_only};
use std::sync::atomic::Ordering;

/// The part of a checkpoint with the outer optimizer's state.
const OUTER: &str = "outer";

/// What a rank knows of the outer optimizer.
pub(super) struct Outer {
    options: LocalSteps,
    /// The parameters when they were last the same on all ranks, and what the outer optimizer remembers.
    anchors: Vec<Vec<f32>>,
    velocities: Vec<Vec<f32>>,
    /// The step behind which that was.
    synced: u64,
}

impl Outer {
    pub fn new(options: LocalSteps, parameters: &[Tensor]) -> Result<Outer> {
        if let Some(parameter) = parameters.iter().find(|p| p.dtype() != DType::F32) {
            bail!(
                Argument,
                "ranks agree on parameters of f32, and there is one of {}: keep them in f32, and compute in another type by \
                 TrainerOptions::precision",
                parameter.dtype()
            );
        }
        let velocities = parameters.iter().map(|p| vec![0.0; p.numel()]).collect();
        Ok(Outer { options, anchors: Vec::new(), velocities, synced: 0 })
    }

    /// A step of the outer optimizer for one parameter, given the sum of what ranks have moved it by, turned round.
    fn step(&mut self, parameter: usize, sum: &[f32], ranks: usize) -> Vec<f32> {
        let (rate, momentum) = (self.options.learning_rate as f32, self.options.momentum as f32);
        let each = self.anchors[parameter].iter_mut().zip(&mut self.velocities[parameter]).zip(sum);
        for ((anchor, velocity), sum) in each {
            let gradient = sum / ranks as f32;
            *velocity = momentum * *velocity + gradient;
            *anchor -= rate * (gradient + momentum * *velocity);
        }
        self.anchors[parameter].clone()
    }
}

/// The name of a part that each rank has of its own; that of the first one is everybody's.
fn part_of_rank(part: &str, rank: usize) -> String {
    if rank == 0 { part.to_string() } else { format!("rank-{rank}.{part}") }
}

impl Trainer<'_> {
    /// An error if these options do not go with steps that ranks make by themselves.
    pub(super) fn check_local_steps(&self, ranks: &Ranks) -> Result<()> {
        let Some(local) = ranks.options.local_steps else { return Ok(()) };
        local.check()?;
        if ranks.options.sharding != crate::parallel::Sharding::Nothing {
            bail!(
                Argument,
                "ranks that make steps by themselves have everything they need: share out nothing (--zero 0), or exchange gradients in \
                 every step (no --sync-every)"
            );
        }
        if self.options.gradient_parts.is_some() {
            bail!(
                Argument,
                "ranks that make steps by themselves exchange no gradients, so that what they learn depends on their number: leave out \
                 gradient_parts (--gradient-parts), or the local steps (--sync-every)"
            );
        }
        let every = local.every;
        for (name, interval) in [
            ("validate_every", self.options.validate_every),
            ("checkpoint_every", self.options.checkpoint_every),
        ] {
            // The largest number is never.
            if interval.is_some_and(|n| n != u64::MAX && !n.is_multiple_of(every)) {
                bail!(
                    Argument,
                    "{name} is {}, and ranks have the same parameters every {every} steps only: make it a multiple of that",
                    interval.unwrap_or_default()
                );
            }
        }
        Ok(())
    }

    /// All ranks begin from the parameters that they have now.
    pub(super) fn anchor(&mut self, run: &Run) -> Result<()> {
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        let Some(outer) = &mut ranks.outer else { return Ok(()) };
        let parameters = self.optimizer.parameters().iter();
        outer.anchors = parameters.map(|p| p.detach().try_to_vec::<f32>()).collect::<Result<_>>()?;
        outer.synced = run.step;
        Ok(())
    }

    /// Has all ranks have the same parameters, if this step is one behind which they do.
    pub(super) fn synchronize_when_due(&mut self, run: &mut Run) -> Result<()> {
        let local = self.ranks.as_ref().and_then(|ranks| ranks.options.local_steps);
        match local {
            Some(local) if run.is_due(local.every) => self.synchronize(run),
            _ => Ok(()),
        }
    }

    /// Has all ranks have the same parameters, unless they have: behind this step, too.
    pub(super) fn synchronize(&mut self, run: &mut Run) -> Result<()> {
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        let Some(mut outer) = ranks.outer.take() else { return Ok(()) };
        let synchronized = if outer.synced == run.step { Ok(()) } else { self.meet(&mut outer) };
        outer.synced = run.step;
        if let Some(ranks) = &mut self.ranks {
            ranks.outer = Some(outer);
        }
        synchronized
    }

    fn meet(&mut self, outer: &mut Outer) -> Result<()> {
        let _span = span("exchange");
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        let size = ranks.world.size();
        // In a fixed order, so that all ranks have the same bits.
        let summation = if ranks.options.half { Summation::Half } else { Summation::Tree };
        let Some(exchange) = &mut ranks.exchange else { return Ok(()) };
        let parameters = self.optimizer.parameters();
        for (parameter, anchor) in parameters.iter().zip(&outer.anchors) {
            let mut moved = parameter.detach().try_to_vec::<f32>()?;
            moved.iter_mut().zip(anchor).for_each(|(own, anchor)| *own = anchor - *own);
            exchange.send(moved, summation)?;
        }
        let buffers: Vec<Tensor> =
            self.model.buffers().into_iter().filter(|b| b.dtype().is_float()).collect();
        let mut rest = Vec::new();
        for buffer in &buffers {
            rest.extend(no_grad(|| buffer.try_to_dtype(DType::F32))?.try_to_vec::<f32>()?);
        }
        rest.push(f32::from(u8::from(self.stop.load(Ordering::Relaxed))));
        exchange.send(rest, Summation::Tree)?;
        for (k, parameter) in parameters.iter().enumerate() {
            let anchor = outer.step(k, &exchange.receive()?, size);
            let value =
                with_device(parameter.device(), || Tensor::try_from_vec(anchor, &parameter.shape()[..]))?;
            no_grad(|| parameter.try_assign(&value))?;
        }
        compute_only(parameters)?;
        let mut rest = exchange.receive()?;
        ranks.is_stopped |= rest.pop().is_some_and(|stops| stops > 0.0);
        let mut rest = &rest[..];
        for buffer in &buffers {
            let (own, others) = rest.split_at(buffer.numel());
            rest = others;
            let mean = own.iter().map(|sum| sum / size as f32).collect();
            let mean = with_device(buffer.device(), || Tensor::try_from_vec(mean, &buffer.shape()[..]))?;
            no_grad(|| buffer.try_assign(&mean.try_to_dtype(buffer.dtype())?))?;
        }
        Ok(())
    }

    /// A checkpoint with what each rank has of its own besides: what its optimizer and its scaler remember.
    pub(super) fn with_local_steps(&self, mut checkpoint: Checkpoint) -> Result<Checkpoint> {
        let Some(ranks) = &self.ranks else { return Ok(checkpoint) };
        let Some(outer) = &ranks.outer else { return Ok(checkpoint) };
        let mut state = State::new();
        for (k, (velocity, parameter)) in outer.velocities.iter().zip(self.optimizer.parameters()).enumerate()
        {
            let shape = parameter.shape();
            let velocity = with_device(Device::Cpu, || Tensor::try_from_vec(velocity.clone(), &shape[..]))?;
            state = state.with_tensor(&format!("{k}.velocity"), velocity);
        }
        checkpoint = checkpoint.with_state(OUTER, state);
        let mut own = vec![("optimizer", self.optimizer.state())];
        own.extend(self.scaler.as_ref().map(|scaler| ("scaler", crate::state::Stateful::state(scaler))));
        for (part, mine) in own {
            for rank in 0..ranks.world.size() {
                // Whose it is not has the names and the shapes of it, for the list of all.
                let state = if rank == ranks.world.rank() {
                    mine.clone()
                } else {
                    super::sharding::shapes_of(&mine)?
                };
                checkpoint = checkpoint.with_state_of_shard(&part_of_rank(part, rank), state, rank);
            }
        }
        Ok(checkpoint)
    }

    /// What this rank has of its own in a checkpoint, by the name that it has for the first one. Where there were fewer ranks, the first
    /// one's is taken.
    pub(super) fn own_part(&self, saved: &Checkpoint, part: &str) -> String {
        let rank = match &self.ranks {
            Some(ranks) if ranks.outer.is_some() => ranks.world.rank(),
            _ => 0,
        };
        let own = part_of_rank(part, rank);
        if saved.parts().any(|name| name == own) { own } else { part.to_string() }
    }

    /// Goes on with what the outer optimizer remembered, if it did.
    pub(super) fn load_outer(&mut self, saved: &Checkpoint) -> Result<()> {
        let Some(outer) = self.ranks.as_mut().and_then(|ranks| ranks.outer.as_mut()) else { return Ok(()) };
        if !saved.parts().any(|part| part == OUTER) {
            return Ok(());
        }
        let state = saved.state(OUTER)?;
        for (k, velocity) in outer.velocities.iter_mut().enumerate() {
            let given = state.tensor(&format!("{k}.velocity"))?.try_to_vec::<f32>()?;
            if given.len() != velocity.len() {
                bail!(
                    Data,
                    "the outer velocity of parameter {k} has {} elements, and the parameter {}",
                    given.len(),
                    velocity.len()
                );
            }
            *velocity = given;
        }
        Ok(())
    }
}
