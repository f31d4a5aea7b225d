//! What an optimizer saves: the options of its groups, and what it remembers of each parameter, by number.

use super::RuleOptimizer;
use super::rule::{Memory, Rule, Setting};
use super::step_count::{Clock, StepCounters};
use crate::call::Call;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::state::{State, Stateful};
use crate::tensor::Tensor;

impl<R: Rule> Stateful for RuleOptimizer<R> {
    /// `groups.0.learning_rate` and the other options, `groups.0.parameters` (how many), `0.exp_avg` and whatever else is
    /// remembered of parameter 0, and `0.step`: a number, or a tensor where the device counts.
    fn state(&self) -> State {
        let mut state = State::new().with("groups", self.groups.len() as i64);
        for (g, group) in self.groups.iter().enumerate() {
            let options = options_of(&group.options).with("parameters", group.parameters().len() as i64);
            state = state.with_part(&format!("groups.{g}"), &options);
        }
        for (k, memory) in self.memories.iter().enumerate() {
            for (name, tensor) in R::STATE.iter().zip(memory) {
                if let Some(tensor) = tensor {
                    state = state.with_tensor(&format!("{k}.{name}"), tensor.clone());
                }
            }
            state = match self.clocks.clock(k) {
                Clock::Host(count) => state.with(&format!("{k}.step"), *count),
                Clock::Device(count) => state.with_tensor(&format!("{k}.step"), count.clone()),
            };
        }
        state
    }

    #[track_caller]
    fn load_state(&mut self, state: &State) -> Result<()> {
        let _call = Call::enter("load_state");
        let options = self.saved_options(state)?;
        let memories = self.saved_memories(state)?;
        let clocks = saved_clocks(state, memories.len())?;
        self.groups.iter_mut().zip(options).for_each(|(group, options)| group.options = options);
        self.memories = memories;
        self.clocks = clocks;
        Ok(())
    }
}

fn options_of<R: Rule>(options: &R) -> State {
    options.clone().settings().into_iter().fold(State::new(), |state, (name, setting)| match setting {
        Setting::Number(x) => state.with(name, *x),
        Setting::Whole(n) => state.with(name, i64::from(*n)),
        Setting::Flag(yes) => state.with(name, i64::from(*yes)),
    })
}

impl<R: Rule> RuleOptimizer<R> {
    fn saved_options(&self, state: &State) -> Result<Vec<R>> {
        let groups = state.int("groups")?;
        if groups != self.groups.len() as i64 {
            bail!(
                Data,
                "the saved state has {groups} groups of parameters, and there are {}",
                self.groups.len()
            );
        }
        let load = |(g, group): (usize, &super::Group<R>)| -> Result<R> {
            let saved = state.part(&format!("groups.{g}"));
            let count = saved.int("parameters")?;
            if count != group.parameters().len() as i64 {
                bail!(
                    Data,
                    "group {g} of the saved state has {count} parameters, and there are {}",
                    group.parameters().len()
                );
            }
            let mut options = group.options.clone();
            for (name, setting) in options.settings() {
                match setting {
                    Setting::Number(x) => *x = saved.float(name)?,
                    Setting::Flag(yes) => *yes = saved.int(name)? != 0,
                    Setting::Whole(n) => match u32::try_from(saved.int(name)?) {
                        Ok(whole) => *n = whole,
                        Err(_) => bail!(Data, "{name:?} of the saved state is out of range"),
                    },
                }
            }
            options.check()?;
            Ok(options)
        };
        self.groups.iter().enumerate().map(load).collect()
    }

    fn saved_memories(&self, state: &State) -> Result<Vec<Memory>> {
        let parameters = self.parameters();
        let load = |k: usize, p: &Tensor, name: &str| -> Result<Option<Tensor>> {
            let Some(given) = state.tensors.get(&format!("{k}.{name}")) else { return Ok(None) };
            if given.shape() != p.shape() {
                bail!(
                    Data,
                    "{name} of parameter {k} was saved with shape {}, and the parameter has {}",
                    given.shape(),
                    p.shape()
                );
            }
            let here = given.detach().try_to_device(p.device())?.try_to_dtype(p.dtype())?;
            Ok(Some(here.variable()))
        };
        let memories = parameters
            .iter()
            .enumerate()
            .map(|(k, p)| R::STATE.iter().map(|name| load(k, p, name)).collect::<Result<Memory>>())
            .collect::<Result<Vec<_>>>()?;
        let known = |name: &str| {
            let (k, what) = name.split_once('.').unwrap_or((name, ""));
            k.parse().is_ok_and(|k: usize| k < parameters.len())
                && (what == "step" || R::STATE.contains(&what))
        };
        match state.tensors.names().find(|name| !known(name)) {
            Some(name) => bail!(Data, "the saved state has {name:?}, which {} does not know", R::NAME),
            None => Ok(memories),
        }
    }
}

/// Parameters that had made equally many steps share a clock again.
fn saved_clocks(state: &State, parameters: usize) -> Result<StepCounters> {
    let each = (0..parameters).map(|k| -> Result<((i64, bool), Clock)> {
        let name = format!("{k}.step");
        if let Some(count) = state.tensors.get(&name) {
            if count.numel() != 1 {
                bail!(Data, "{name:?} of the saved state is one number, and has shape {}", count.shape());
            }
            let own = count.detach().try_reshape(Shape::of(&[]))?.try_to_dtype(DType::I32)?.variable();
            return Ok(((count.try_item()?, true), Clock::Device(own)));
        }
        let count = state.int(&name)?;
        Ok(((count, false), Clock::Host(count)))
    });
    Ok(StepCounters::from_each(each.collect::<Result<Vec<_>>>()?))
}
