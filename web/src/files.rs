//! Tensors to and from safetensors; checkpoints of models, optimizers and schedules.

use crate::error::{Thrown, argument, js};
use crate::handles::{SCHEDULERS, hold, tensors};
use crate::object::{list, object};
use crate::optim::with_optimizer;
use js_sys::{Promise, Uint8Array};
use std::collections::BTreeMap;
use volta::tab::promise;
use volta::{Checkpoint, State, StateDict, Stateful, Weights, default_device};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// What is known beside the tensors, as pairs of texts one after the other.
fn metadata(pairs: Vec<String>) -> BTreeMap<String, String> {
    pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// Named tensors. Two of one name are an error.
fn named(names: Vec<String>, handles: &[u32]) -> Thrown<StateDict> {
    let mut all = StateDict::new();
    for (name, t) in names.into_iter().zip(tensors(handles)?) {
        if all.insert(name.clone(), t.detach()).is_some() {
            return Err(argument(&format!("two tensors are called {name:?}")));
        }
    }
    Ok(all)
}

/// A safetensors file of tensors, as a promise of its bytes.
#[wasm_bindgen]
pub fn safetensors_save(names: Vec<String>, handles: &[u32], about: Vec<String>) -> Thrown<Promise> {
    let bytes = volta::io::to_safetensors_async(&named(names, handles)?, &metadata(about));
    Ok(promise(async move { Ok(Uint8Array::from(&bytes.await.map_err(js)?[..]).into()) }))
}

/// The tensors of a safetensors file, and what is written beside them.
#[wasm_bindgen]
pub fn weights_load(bytes: Vec<u8>) -> Thrown<JsValue> {
    let weights = Weights::from_bytes(bytes).map_err(js)?;
    let mut found = Vec::new();
    for entry in weights.entries() {
        let t = weights.tensor(entry.name(), default_device()).map_err(js)?;
        found.push(object([("name", entry.name().into()), ("handle", hold(t).into())]));
    }
    let about = weights.metadata().iter().map(|(name, text)| list([name.into(), text.into()]));
    Ok(object([("tensors", list(found)), ("metadata", list(about))]))
}

/// Whatever has a state, by its part's name: an optimizer or a scheduler by its handle, a module by its tensors.
#[wasm_bindgen]
#[derive(Default)]
pub struct CheckpointParts {
    checkpoint: Checkpoint,
}

/// A state of tensors alone.
struct Tensors(StateDict);

impl Stateful for Tensors {
    fn state(&self) -> State {
        self.0.iter().fold(State::new(), |state, (name, t)| state.with_tensor(name, t.clone()))
    }

    fn load_state(&mut self, state: &State) -> volta::Result<()> {
        self.0 = state.tensors.clone();
        Ok(())
    }
}

#[wasm_bindgen]
impl CheckpointParts {
    /// Of nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> CheckpointParts {
        CheckpointParts { checkpoint: Checkpoint::new() }
    }

    /// Of a file.
    pub fn open(bytes: Vec<u8>) -> Thrown<CheckpointParts> {
        Checkpoint::from_bytes(bytes).map(|checkpoint| CheckpointParts { checkpoint }).map_err(js)
    }

    /// With tensors under a part's name.
    pub fn add_tensors(&mut self, part: &str, names: Vec<String>, handles: &[u32]) -> Thrown<()> {
        let tensors = Tensors(named(names, handles)?);
        self.checkpoint = std::mem::take(&mut self.checkpoint).with(part, &tensors);
        Ok(())
    }

    /// With an optimizer's state.
    pub fn add_optimizer(&mut self, part: &str, optimizer: u32) -> Thrown<()> {
        with_optimizer(optimizer, |o| {
            self.checkpoint = std::mem::take(&mut self.checkpoint).with(part, o);
            Ok(())
        })
    }

    /// With a scheduler's state.
    pub fn add_scheduler(&mut self, part: &str, scheduler: u32) -> Thrown<()> {
        SCHEDULERS.with_borrow_mut(|all| {
            self.checkpoint = std::mem::take(&mut self.checkpoint).with(part, all.get(scheduler)?);
            Ok(())
        })
    }

    /// With a number.
    pub fn add_number(&mut self, name: &str, value: f64) {
        self.checkpoint = std::mem::take(&mut self.checkpoint).with_value(name, value);
    }

    /// With the state of the random numbers.
    pub fn add_rng(&mut self) {
        self.checkpoint = std::mem::take(&mut self.checkpoint).with_rng();
    }

    /// The file, as a promise of its bytes.
    pub fn bytes(&self) -> Promise {
        let bytes = self.checkpoint.to_bytes_async();
        promise(async move { Ok(Uint8Array::from(&bytes.await.map_err(js)?[..]).into()) })
    }

    /// The names of the parts.
    pub fn parts(&self) -> Vec<String> {
        self.checkpoint.parts().map(String::from).collect()
    }

    /// The tensors of a part.
    pub fn tensors(&self, part: &str) -> Thrown<JsValue> {
        let state = self.checkpoint.state(part).map_err(js)?;
        let mut found = Vec::new();
        for (name, t) in state.tensors.iter() {
            let t = t.try_to_device(default_device()).map_err(js)?;
            found.push(object([("name", name.into()), ("handle", hold(t).into())]));
        }
        Ok(list(found))
    }

    /// Gives an optimizer the state that a part has.
    pub fn restore_optimizer(&self, part: &str, optimizer: u32) -> Thrown<()> {
        let state = self.checkpoint.state(part).map_err(js)?;
        with_optimizer(optimizer, |o| o.load_state(state).map_err(js))
    }

    /// Gives a scheduler the state that a part has.
    pub fn restore_scheduler(&self, part: &str, scheduler: u32) -> Thrown<()> {
        let state = self.checkpoint.state(part).map_err(js)?;
        SCHEDULERS.with_borrow_mut(|all| all.get(scheduler)?.load_state(state).map_err(js))
    }

    /// Goes on with the random numbers where the file has them.
    pub fn restore_rng(&self) -> Thrown<()> {
        self.checkpoint.restore_rng().map_err(js)
    }

    /// A number.
    pub fn number(&self, name: &str) -> Thrown<f64> {
        self.checkpoint.float(name).map_err(js)
    }
}
