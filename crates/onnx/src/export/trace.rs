//! A forward pass as a list of primitives.

use super::Export;
use volta::{Recorded, recorded};
use volta::{Result, Shape, Tensor, no_grad, try_realize_all};
use volta_ir::bail;

/// What one forward pass recorded.
pub(super) struct Trace {
    pub inputs: Vec<(String, Tensor)>,
    pub outputs: Vec<(String, Tensor)>,
    pub nodes: Vec<Recorded>,
    /// Where the outputs are among the nodes.
    pub places: Vec<usize>,
    /// Names of what the module holds; inputs come first among what is given.
    pub names: Vec<String>,
    pub batch: usize,
}

impl Trace {
    /// Records `forward` for a batch that is `more` larger than the examples'.
    pub fn new(
        export: &Export,
        more: usize,
        forward: impl Fn(&[Tensor]) -> Result<Vec<(&'static str, Tensor)>>,
    ) -> Result<Trace> {
        let state: Vec<(String, Tensor)> =
            export.state.iter().map(|(name, t)| (name.to_string(), t.clone())).collect();
        let held: Vec<Tensor> = state.iter().map(|(_, t)| t.clone()).collect();
        try_realize_all(&held)?;
        let mut inputs = Vec::new();
        for (name, example) in &export.inputs {
            let mut extents = example.shape().to_vec();
            match extents.first_mut() {
                Some(batch) => *batch += more,
                None if more > 0 => bail!(Shape, "the input {name} has no batch: say `fixed_batch`"),
                None => {}
            }
            let shape = Shape::new(&extents)?;
            // Not a constant: ops would see through that.
            let zeros = volta::with_device(example.device(), || {
                Tensor::try_from_vec(vec![0f32; shape.numel()], shape)?.try_to_dtype(example.dtype())
            })?;
            zeros.try_realize()?;
            inputs.push((name.clone(), zeros));
        }
        let given: Vec<Tensor> = inputs.iter().map(|(_, t)| t.clone()).collect();
        let outputs = no_grad(|| forward(&given))?;
        let outputs: Vec<(String, Tensor)> =
            outputs.into_iter().map(|(name, t)| (name.to_string(), t)).collect();
        let batch = given.first().and_then(|t| t.shape().first().copied()).unwrap_or(0);
        let all: Vec<Tensor> = given.into_iter().chain(held).collect();
        let tensors: Vec<Tensor> = outputs.iter().map(|(_, t)| t.clone()).collect();
        let (nodes, places) = recorded(&tensors, &all);
        let names = inputs
            .iter()
            .map(|(name, _)| name.clone())
            .chain(state.into_iter().map(|(name, _)| name))
            .collect();
        Ok(Trace { inputs, outputs, nodes, places, names, batch })
    }
}
