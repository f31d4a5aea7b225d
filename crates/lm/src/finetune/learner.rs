//! What of a model is trained: the adapters, or all of it.

use volta::models::Llm;
use volta::nn::{Item, Visitor};
use volta::{Module, Result, Tensor};

/// A model of which only what is trained is shown: a trainer's checkpoints hold no more than that.
pub struct Learner<'m>(pub &'m Llm);

impl Module for Learner<'_> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.0.forward(x)
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.try_forward(x)
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        let mut see = |name: &str, item: Item<'_>| match item {
            Item::Parameter(t) if t.is_tracked() => visitor.parameter(name, t),
            Item::Mode(mode) => visitor.mode(name, mode),
            _ => {}
        };
        self.0.visit(&mut Visitor::new(&mut see));
    }
}
