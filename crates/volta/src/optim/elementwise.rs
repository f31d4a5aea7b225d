//! Rules that do the same to every element: the formula is written once for all parameters, and a step costs a few
//! nodes for each of them, whatever the formula is made of.

use super::expression::{ExprGraph, ExprNode, Expression, Inputs};
use super::partition::{ExprPartition, ExprSource};
use super::rule::{Options, Rule, Update};
use super::step_count::{Factor, Steps};
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::graph::{Node, NodeSpec, Sources};
use crate::op::Op;
use crate::op::formula::FusedElementwise;
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A formula that gives a parameter a new value, element by element.
///
/// ```
/// use volta::optim::{Elementwise, Expression, Options, RuleOptimizer, Setting, Steps, Terms};
/// use volta::{Result, Tensor};
///
/// /// Moves every parameter by the sign of its gradient.
/// #[derive(Clone)]
/// struct SignDescent {
///     learning_rate: f64,
/// }
///
/// impl Options for SignDescent {
///     const NAME: &'static str = "SignDescent";
///     const STATE: &'static [&'static str] = &[];
///
///     fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
///         vec![("learning_rate", Setting::Number(&mut self.learning_rate))]
///     }
/// }
///
/// impl Elementwise for SignDescent {
///     fn formula<'a>(&self, _steps: &Steps, of: &Terms<'a>) -> Result<Expression<'a>> {
///         Ok(of.parameter() - of.gradient().sign() * self.learning_rate)
///     }
/// }
///
/// let w = Tensor::vector(&[1.0, -2.0]).requires_grad(true);
/// let mut optimizer = RuleOptimizer::with(vec![w.clone()], SignDescent { learning_rate: 0.5 });
/// w.square().sum().backward();
/// optimizer.step();
/// assert_eq!(w.to_vec::<f32>(), [0.5, -1.5]);
/// ```
pub trait Elementwise: Options {
    /// The parameter's new value; what is remembered gets new values by [`Inputs::set_state`].
    fn formula<'a>(&self, steps: &Steps, of: &Inputs<'a>) -> Result<Expression<'a>>;
}

impl<E: Elementwise> Rule for E {
    const IS_ELEMENTWISE: bool = true;

    fn update(&self, steps: &Steps, updates: &mut [Update<'_>]) -> Result<()> {
        let Some(first) = updates.first() else { return Ok(()) };
        let (like, conditional) = (first.parameter(), first.condition.is_some());
        let graph = RefCell::default();
        let new = self.formula(steps, &Inputs::on(&graph, E::STATE.len()))?.node();
        let graph = graph.into_inner();
        // Halves hold neither all the numbers nor what comes in between: each result is rounded once.
        let dtype = like.dtype().wide();
        let formulas = Formulas::of(&graph, new, conditional, dtype);
        let number = |factor: &Factor| -> Result<Arc<Node>> {
            Ok(match factor {
                Factor::Number(x) => like.constant(*x, Shape::of(&[]), dtype).node(),
                Factor::Tensor(t) => t.try_to_dtype(dtype)?.reshape_to(Shape::of(&[]))?.node(),
            })
        };
        let numbers = graph.numbers.iter().map(number).collect::<Result<SmallVec<[_; 8]>>>()?;
        updates.iter_mut().try_for_each(|update| formulas.apply(update, &graph.initial, &numbers))
    }
}

/// What gets a new value.
enum Target {
    Parameter,
    State(usize),
}

/// An expression graph as it is applied: one formula for everything that gets a new value, and one for every value that several of
/// these use.
struct Formulas {
    /// What is computed in, whatever the type of parameters and states is.
    dtype: DType,
    /// In an order in which everyone finds what it uses.
    values: Vec<(Arc<FusedElementwise>, Vec<ExprSource>)>,
    targets: Vec<(Target, ExprSource)>,
}

impl Formulas {
    /// Those of an expression graph whose node `new` is the parameter's new value; equal graphs are looked at once.
    fn of(graph: &ExprGraph, new: usize, conditional: bool, dtype: DType) -> Arc<Formulas> {
        type Key = (Vec<ExprNode>, SmallVec<[(usize, usize); 3]>, (usize, bool, DType));
        static KNOWN: Mutex<Option<HashMap<Key, Arc<Formulas>>>> = Mutex::new(None);
        let key = (graph.nodes.clone(), graph.states.clone(), (new, conditional, dtype));
        // Whoever panicked while holding it left whole formulas, or none.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        known.entry(key).or_insert_with(|| Arc::new(Formulas::cut(graph, new, conditional, dtype))).clone()
    }

    fn cut(graph: &ExprGraph, new: usize, conditional: bool, dtype: DType) -> Formulas {
        let mut nodes = graph.nodes.clone();
        let mut write = |node: ExprNode| {
            nodes.push(node);
            nodes.len() - 1
        };
        let mut targets = vec![(Target::Parameter, ExprNode::Parameter, new)];
        targets.extend(graph.states.iter().map(|&(k, at)| (Target::State(k), ExprNode::State(k), at)));
        if conditional {
            for (_, old, at) in &mut targets {
                let (condition, old) = (write(ExprNode::Condition), write(old.clone()));
                *at = write(ExprNode::Where(condition, *at, old));
            }
        }
        let nodes = ExprPartition::cut(nodes, &targets.iter().map(|(_, _, at)| *at).collect::<Vec<_>>());
        let values = nodes.values(dtype);
        let targets = targets.into_iter().map(|(target, _, at)| (target, nodes.source(at))).collect();
        Formulas { dtype, values, targets }
    }

    /// Gives a parameter and its states their new values.
    fn apply(&self, update: &mut Update<'_>, initial: &[Option<f64>], numbers: &[Arc<Node>]) -> Result<()> {
        let (parameter, gradient) = (update.parameter(), update.gradient());
        let (shape, device, dtype) = (parameter.shape(), parameter.device(), self.dtype);
        if gradient.shape() != shape {
            bail!(Shape, "a parameter of shape {shape} has a gradient of shape {}", gradient.shape());
        }
        if gradient.device() != device {
            bail!(Device, "a parameter on {device} has a gradient on {}", gradient.device());
        }
        let mut states: SmallVec<[Option<Tensor>; 3]> = SmallVec::new();
        let mut remembered: SmallVec<[Option<Arc<Node>>; 3]> = SmallVec::new();
        for (k, initial) in initial.iter().enumerate() {
            let state = initial.map(|initial| update.state_or(k, initial)).transpose()?;
            remembered.push(state.as_ref().map(|state| state.cast(dtype)).transpose()?.map(|t| t.node()));
            states.push(state);
        }
        let (old, slope) = (parameter.cast(dtype)?.node(), gradient.cast(dtype)?.node());
        let mut values: SmallVec<[Arc<Node>; 6]> = SmallVec::new();
        let find = |source: &ExprSource, values: &[Arc<Node>]| match source {
            ExprSource::Parameter => old.clone(),
            ExprSource::Gradient => slope.clone(),
            ExprSource::State(k) => remembered[*k].clone().expect("the formula asked for it"),
            ExprSource::Condition => update.condition.expect("the formula was cut for one").node(),
            ExprSource::Number(k) => numbers[*k].clone(),
            ExprSource::Value(k) => values[*k].clone(),
        };
        for (formula, sources) in &self.values {
            let sources: Sources = sources.iter().map(|source| find(source, &values)).collect();
            let op = Op::FusedElementwise(formula.clone());
            values.push(Node::record(NodeSpec { op, sources, shape, dtype, device, tracked: false }));
        }
        for (target, source) in &self.targets {
            let target = match target {
                Target::Parameter => parameter,
                Target::State(k) => states[*k].as_ref().expect("the formula asked for it"),
            };
            let new = Tensor::from_node(find(source, &values)).cast(target.dtype())?;
            target.try_assign(&new)?;
        }
        Ok(())
    }
}
