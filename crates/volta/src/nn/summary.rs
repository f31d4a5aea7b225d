//! A printed overview of a network: its layers, the shapes they give and how much they train.

use super::call::{CallRecord, layer_at, layer_of, watch};
use super::module::walk;
use super::state_guard::Untouched;
use super::{Item, Module, num_parameters};
use crate::autograd::no_grad;
use crate::call::{Layer, LayerScope};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::collections::{HashMap, VecDeque};
use std::fmt;

/// A network's layers, one a line; it prints itself.
#[derive(Clone, Debug)]
pub struct Summary {
    kind: &'static str,
    rows: Vec<Row>,
    /// How many numbers are trained in all.
    pub parameters: usize,
    /// How many numbers are kept but not trained.
    pub buffers: usize,
}

#[derive(Clone, Debug)]
struct Row {
    name: String,
    what: String,
    /// The shape of its last output, if it ran.
    output: Option<Shape>,
    parameters: usize,
}

/// The layers of `module`, and the shapes they give for `input`. Nothing is computed: shapes are known when ops are
/// called. Without an input there are no shapes. The module runs as in evaluation, and is left as it was: its modes, its
/// buffers and the program's random numbers.
///
/// A layer that runs several times shows its last output. Layers without fields, such as [`ReLU`](super::ReLU), that are
/// fields of one struct are taken to run in the order of the fields; in a [`Sequential`](super::Sequential) or a box of
/// their own they are known for sure.
///
/// ```
/// use volta::{Linear, ReLU, Sequential, Tensor, nn::summary};
/// let model = Sequential::new(vec![Box::new(Linear::new(784, 10, true)), Box::new(ReLU)]);
/// let summary = summary(&model, Some(&Tensor::zeros([32, 784])))?;
/// assert_eq!(summary.parameters, 7850);
/// println!("{summary}");
/// # Ok::<(), volta::Error>(())
/// ```
#[track_caller]
pub fn summary<M: Module + ?Sized>(module: &M, input: Option<&Tensor>) -> Result<Summary> {
    // What the layers find wrong names the caller's line.
    let _scope = LayerScope::enter(None);
    let mut outputs = Outputs::default();
    if let Some(x) = input {
        let (result, seen) = {
            let _untouched = Untouched::enter(module);
            watch(|| no_grad(|| module.try_forward(x)))
        };
        result?;
        outputs = Outputs::new(module, seen);
    }
    let mut rows = Vec::new();
    walk(module, &mut |name, item| {
        if let Item::Child(child) = item {
            let describe = child.describe();
            let what = if describe.is_empty() {
                child.kind().to_string()
            } else {
                format!("{}({describe})", child.kind())
            };
            let output = outputs.of(child);
            rows.push(Row { name: name.to_string(), what, output, parameters: num_parameters(child) });
        }
    });
    let buffers = module.buffers().iter().map(Tensor::numel).sum();
    Ok(Summary { kind: module.kind(), rows, parameters: num_parameters(module), buffers })
}

/// What layers gave, by where they stand. Layers without fields may share a place, as two activations in one struct
/// do. They are told apart by their order, if they may have run equally often.
#[derive(Default)]
struct Outputs(HashMap<Layer, VecDeque<Shape>>);

impl Outputs {
    fn new<M: Module + ?Sized>(module: &M, seen: Vec<CallRecord>) -> Outputs {
        let mut outputs: HashMap<Layer, VecDeque<Shape>> = HashMap::new();
        for CallRecord { layer, shape } in seen {
            outputs.entry(layer).or_default().push_back(shape);
        }
        let mut sharing: HashMap<Layer, usize> = HashMap::new();
        walk(module, &mut |_, item| {
            if let Item::Child(child) = item
                && layer_of(child).is_none()
            {
                *sharing.entry(layer_at(child)).or_default() += 1;
            }
        });
        for (layer, modules) in sharing {
            if let Some(shapes) = outputs.get_mut(&layer) {
                // Their last outputs, or none: a wrong shape would be worse.
                let known = if shapes.len().is_multiple_of(modules) { modules } else { 0 };
                shapes.drain(..shapes.len() - known);
            }
        }
        Outputs(outputs)
    }

    /// The last output of the module that the walk has come to.
    fn of(&mut self, module: &dyn Module) -> Option<Shape> {
        let shapes = self.0.get_mut(&layer_at(module))?;
        if layer_of(module).is_some() { shapes.back().copied() } else { shapes.pop_front() }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["name", "layer", "output", "parameters"].map(String::from);
        let lines: Vec<[String; 4]> = std::iter::once(header)
            .chain(self.rows.iter().map(|r| {
                let output = r.output.map_or(String::from("-"), |s| s.to_string());
                [r.name.clone(), r.what.clone(), output, grouped(r.parameters)]
            }))
            .collect();
        let width = |k: usize| lines.iter().map(|l| l[k].chars().count()).max().unwrap_or(0);
        let [a, b, c, d] = [width(0), width(1), width(2), width(3)];
        writeln!(f, "{}", self.kind)?;
        for [name, what, output, parameters] in &lines {
            writeln!(f, "  {name:<a$}  {what:<b$}  {output:<c$}  {parameters:>d$}")?;
        }
        write!(f, "{} parameters", grouped(self.parameters))?;
        if self.buffers > 0 {
            write!(f, ", {} numbers in buffers", grouped(self.buffers))?;
        }
        Ok(())
    }
}

/// `1234567` as `1,234,567`.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap_or("")).collect();
    groups.join(",")
}
