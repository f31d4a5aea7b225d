//! The state of the random numbers, as it is saved: both numbers by their bits.

use super::{State, Stateful};
use crate::error::Result;
use crate::tensor::RngState;

impl Stateful for RngState {
    fn state(&self) -> State {
        let (seed, drawn) = self.parts();
        State::new().with("seed", seed as i64).with("drawn", drawn as i64)
    }

    /// Only this copy changes; [`restore`](RngState::restore) makes the random numbers go on from it.
    fn load_state(&mut self, state: &State) -> Result<()> {
        *self = RngState::new(state.int("seed")? as u64, state.int("drawn")? as u64);
        Ok(())
    }
}
