//! Gradients, built as more nodes of the same graph.

mod attention;
mod checkpoint;
mod derivatives;
mod function;

pub use crate::graph::{enable_grad, is_grad_enabled, no_grad, set_grad_enabled};
pub use checkpoint::{checkpoint, try_checkpoint};
pub use function::{Function, apply, try_apply};

use crate::call::Call;
use crate::engine::{Reason, submit};
use crate::error::{Result, bail};
use crate::graph::Node;
use crate::tensor::leaf_gradient::add_gradient;
use crate::tensor::{AutocastTypes, Tensor, with_autocast};
use derivatives::GradientContext;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// How a backward pass treats the graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    /// Keep the tape, so that the same graph can be differentiated again.
    pub retain_graph: bool,
    /// Record the backward pass itself, for gradients of gradients; implies `retain_graph`.
    pub create_graph: bool,
}

/// Bytes of a gradient that keep a fast device busy for longer than it takes to give it more to do.
const LARGE_GRADIENT_BYTES: usize = 16 << 20;

/// Walks back from `outputs`, handing every finished gradient to `visit`, which says whether to go on. A device that has
/// begun with the forward pass goes on behind the first product, while the rest is recorded, if it `follows` and the gradient
/// there is a large one, as that of a language model's logits is.
fn walk(
    outputs: &[(Tensor, Tensor)],
    options: BackwardOptions,
    mut follows: bool,
    mut visit: impl FnMut(&Arc<Node>, &Tensor) -> Result<bool>,
) -> Result<()> {
    let keep = options.retain_graph || options.create_graph;
    // By age: the node that was made last comes first, so every user of a node comes before it.
    let mut waiting: BTreeMap<u64, (Arc<Node>, Tensor)> = BTreeMap::new();
    let mut used = Vec::new();
    let add = |waiting: &mut BTreeMap<u64, (Arc<Node>, Tensor)>, node: Arc<Node>, g: Tensor| {
        match waiting.entry(node.id) {
            Entry::Vacant(slot) => {
                slot.insert((node, g));
            }
            Entry::Occupied(mut slot) => {
                let (_, sum) = slot.get_mut();
                *sum = sum.try_add(&g)?;
            }
        }
        Ok::<(), crate::Error>(())
    };
    for (output, g) in outputs {
        add(&mut waiting, output.node(), g.clone())?;
    }
    while let Some((_, (node, g))) = waiting.pop_last() {
        if !visit(&node, &g)? || node.leaf.is_some() {
            continue;
        }
        if node.was_released() {
            bail!(
                Autograd,
                "the graph was already used by a backward pass and let go: pass retain_graph to the first one to \
                 differentiate it twice"
            );
        }
        let sources: Vec<Tensor> = node.sources().into_iter().map(Tensor::from_node).collect();
        let from_here = {
            let _call = Call::gradient_of(node.origin);
            let output = Tensor::from_node(node.clone());
            derivatives::of(&GradientContext { node: &node, sources: &sources, output, gradient: &g })?
        };
        for (source, g) in sources.iter().zip(from_here) {
            let node = source.node();
            if let Some(g) = g
                && node.tracked
            {
                debug_assert_eq!(g.shape(), node.shape, "gradient of {}", node.op.name());
                add(&mut waiting, node, g)?;
            }
        }
        if keep {
            continue;
        }
        let is_first_product = follows && node.op.is_product();
        follows &= !is_first_product;
        used.push(node);
        let is_large = g.numel() * g.dtype().size() >= LARGE_GRADIENT_BYTES;
        let mut on_the_way = sources.iter().map(Tensor::node).filter(|source| source.leaf.is_none());
        if is_first_product
            && is_large
            && let Some((_, next)) = on_the_way.find_map(|source| waiting.get(&source.id))
        {
            // What the rest of the walk does not ask for is neither kept nor computed.
            used.drain(..).for_each(|node| node.release_tape());
            // The gradients of all operands read `g`, so they are computed together, and it is let go. Until then it is held, and so
            // takes the place of the logits.
            let of_operands = sources.iter().filter_map(|source| waiting.get(&source.node().id));
            let others = of_operands.map(|(_, gradient)| gradient.node()).chain([g.node()]).collect();
            submit(Reason::LargeGradient { next: next.node(), siblings: others })?;
        }
    }
    used.iter().for_each(|node| node.release_tape());
    Ok(())
}

/// Gradients are computed in the types that the forward pass has chosen, whatever is asked for by now.
fn in_mode<R>(options: BackwardOptions, f: impl FnOnce() -> R) -> R {
    with_autocast(AutocastTypes::default(), || if options.create_graph { enable_grad(f) } else { no_grad(f) })
}

/// The gradient to start from, checked against the output it belongs to.
fn seed(output: &Tensor, gradient: Option<&Tensor>) -> Result<Tensor> {
    if !output.is_tracked() {
        bail!(Autograd, "the output does not depend on anything that requires a gradient");
    }
    match gradient {
        Some(g) => {
            let fits =
                (g.shape(), g.dtype(), g.device()) == (output.shape(), output.dtype(), output.device());
            if !fits {
                bail!(
                    Shape,
                    "the gradient is {} {} and the output {} {}",
                    g.dtype(),
                    g.shape(),
                    output.dtype(),
                    output.shape()
                );
            }
            Ok(g.clone())
        }
        None if output.numel() == 1 => Ok(output.constant_like(1.0)),
        None => bail!(
            Autograd,
            "the output has shape {}: without a gradient to start from it must be one number",
            output.shape()
        ),
    }
}

impl Tensor {
    /// Adds the gradient of this number to every leaf it was computed from. The graph is let go afterwards.
    #[track_caller]
    pub fn backward(&self) {
        self.try_backward_with(None, BackwardOptions::default()).unwrap_or_else(|e| e.raise());
    }

    /// [`backward`](Self::backward) that returns its error.
    #[track_caller]
    pub fn try_backward(&self) -> Result<()> {
        self.try_backward_with(None, BackwardOptions::default())
    }

    /// [`backward`](Self::backward) from a gradient of the same shape, with options.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, options: BackwardOptions) {
        self.try_backward_with(gradient, options).unwrap_or_else(|e| e.raise());
    }

    /// [`backward_with`](Self::backward_with) that returns its error.
    #[track_caller]
    pub fn try_backward_with(&self, gradient: Option<&Tensor>, options: BackwardOptions) -> Result<()> {
        let _call = Call::enter("backward");
        let start = seed(self, gradient)?;
        let begun = submit(Reason::Backward(&self.node()))?;
        in_mode(options, || {
            walk(&[(self.clone(), start)], options, begun, |node, g| {
                if let Some(leaf) = &node.leaf {
                    add_gradient(leaf, g)?;
                }
                Ok(true)
            })
        })
    }
}

/// The gradients of the sum of `outputs` with respect to `inputs`, which may stand anywhere in the graph;
/// `None` where an output does not depend on an input. Nothing is collected in `.grad()`.
#[track_caller]
pub fn grad(outputs: &[&Tensor], inputs: &[&Tensor], options: BackwardOptions) -> Vec<Option<Tensor>> {
    try_grad(outputs, inputs, None, options).unwrap_or_else(|e| e.raise())
}

/// [`grad`] that returns its error, with gradients of the outputs to start from if they are given.
#[track_caller]
pub fn try_grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    gradients: Option<&[&Tensor]>,
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let _call = Call::enter("grad");
    if let Some(given) = gradients
        && given.len() != outputs.len()
    {
        bail!(Argument, "{} gradients for {} outputs", given.len(), outputs.len());
    }
    if let Some(x) = inputs.iter().find(|x| !x.is_tracked()) {
        bail!(Autograd, "an input ({} {}) does not require a gradient", x.dtype(), x.shape());
    }
    let mut start = Vec::new();
    for (k, output) in outputs.iter().enumerate() {
        start.push(((*output).clone(), seed(output, gradients.map(|g| g[k]))?));
    }
    let wanted: Vec<Arc<Node>> = inputs.iter().map(|t| t.node()).collect();
    let first = wanted.iter().map(|node| node.first_id()).min().unwrap_or(0);
    let mut found: Vec<Option<Tensor>> = vec![None; inputs.len()];
    in_mode(options, || {
        walk(&start, options, false, |node, g| {
            for (slot, input) in
                found.iter_mut().zip(&wanted).filter(|(_, input)| node.is_same_variable(input))
            {
                let g = g.cast(input.dtype)?;
                *slot = Some(match slot.take() {
                    Some(sum) => sum.try_add(&g)?,
                    None => g,
                });
            }
            // What was made before every input cannot depend on one.
            Ok(node.id > first)
        })
    })?;
    Ok(found)
}
