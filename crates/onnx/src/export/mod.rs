//! Networks of Volta as ONNX files.
//!
//! A forward pass is recorded, not run: `trace` lists its primitives, twice with batches of different size, so that it is known which
//! extents follow the batch; `emit` writes each primitive as operators of ONNX, `native` those that have kernels of their own, and
//! `graph` holds what is written so far. So everything can be exported that is computed by Volta's ops, whatever module it is in.

mod emit;
mod graph;
mod native;
mod trace;

use crate::element::ElementType;
use crate::protobuf::{Extent, ModelProto, ValueProto};
use crate::write;
use graph::GraphWriter;
use std::path::Path;
use trace::Trace;
use volta::{Module, Result, StateDict, Tensor};
use volta_ir::bail;
use volta_ir::call::Call;

/// The version of the operators that files are written in, and of the format.
const OPSET: i64 = 18;
const IR_VERSION: i64 = 8;

/// A network on its way to an ONNX file.
///
/// ```
/// use volta::{Linear, Module, ReLU, Sequential, Tensor};
/// use volta_onnx::{Export, Onnx};
///
/// let model = Sequential::new(vec![Box::new(Linear::new(4, 8, true)), Box::new(ReLU)]);
/// let bytes = Export::new(&model).input("x", &Tensor::zeros([1, 4])).to_bytes(|x| Ok(vec![("y", model.try_forward(&x[0])?)]))?;
/// let again = Onnx::from_bytes(bytes)?;
/// let x = Tensor::randn([3, 4]);
/// assert!(again.forward(&x).allclose(&model.forward(&x), 1e-5, 1e-6));
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Export {
    state: StateDict,
    inputs: Vec<(String, Tensor)>,
    fixed_batch: bool,
}

impl Export {
    /// The tensors of a module keep their names in the file.
    pub fn new(module: &(impl Module + ?Sized)) -> Export {
        Export { state: module.state_dict(), inputs: Vec::new(), fixed_batch: false }
    }

    /// With an input; the example tells its shape and type.
    pub fn input(mut self, name: &str, example: &Tensor) -> Export {
        self.inputs.push((name.to_string(), example.detach()));
        self
    }

    /// With inputs of no other size than the examples'. Otherwise the first axis of each input is the batch, which may be of any size.
    pub fn fixed_batch(mut self) -> Export {
        self.fixed_batch = true;
        self
    }

    /// The file's bytes. `forward` computes the outputs, with their names, from the inputs; it is called with zeros, and must not read values. Modules that behave differently while they train should be in evaluation ([`Module::eval`]).
    ///
    /// # Errors
    /// What ONNX has no operator for, by name; a computation that another batch would change.
    #[track_caller]
    pub fn to_bytes(
        &self,
        forward: impl Fn(&[Tensor]) -> Result<Vec<(&'static str, Tensor)>>,
    ) -> Result<Vec<u8>> {
        let _call = Call::enter("Export::to_bytes");
        if self.inputs.is_empty() {
            bail!(Argument, "there is no input: name one with `input`");
        }
        // Of a batch of one, ops leave out what they do for others.
        let first = Trace::new(self, usize::from(!self.fixed_batch), &forward)?;
        let other = if self.fixed_batch { None } else { Some(Trace::new(self, 2, &forward)?) };
        let mut graph = GraphWriter::new(&first, other.as_ref())?;
        emit::emit(&mut graph)?;
        let port = |name: &str, t: &Tensor, other: Option<volta::Shape>| {
            let extent = |(k, &extent): (usize, &usize)| match other {
                Some(other) if other[k] != extent => Extent::Named("batch".to_string()),
                _ => Extent::Known(extent as i64),
            };
            let shape = t.shape().iter().enumerate().map(extent).collect();
            ValueProto {
                name: name.to_string(),
                data_type: ElementType::of(t.dtype()).number(),
                shape: Some(shape),
            }
        };
        let of_other = |list: &[(String, Tensor)], k: usize| other.as_ref().map(|_| list[k].1.shape());
        let inputs = (0..first.inputs.len())
            .map(|k| {
                port(
                    &first.inputs[k].0,
                    &first.inputs[k].1,
                    other.as_ref().and_then(|o| of_other(&o.inputs, k)),
                )
            })
            .collect();
        let outputs = (0..first.outputs.len())
            .map(|k| {
                port(
                    &first.outputs[k].0,
                    &first.outputs[k].1,
                    other.as_ref().and_then(|o| of_other(&o.outputs, k)),
                )
            })
            .collect();
        let model = ModelProto {
            ir_version: IR_VERSION,
            producer: write::PRODUCER.to_string(),
            producer_version: env!("CARGO_PKG_VERSION").to_string(),
            graph: Some(graph.finish(inputs, outputs)?),
            opsets: vec![(String::new(), OPSET)],
            functions: Vec::new(),
        };
        Ok(model.write())
    }

    /// Writes [`to_bytes`](Self::to_bytes) to a file: whole, or not at all.
    #[track_caller]
    pub fn save(
        &self,
        path: impl AsRef<Path>,
        forward: impl Fn(&[Tensor]) -> Result<Vec<(&'static str, Tensor)>>,
    ) -> Result<()> {
        let _call = Call::enter("Export::save");
        write::file(path.as_ref(), &self.to_bytes(forward)?)
    }
}

/// Writes a module as an ONNX file with the input `input` and the output `output`, whose first axis is the batch. The module is put in
/// evaluation. [`Export`] has more to choose from.
///
/// ```no_run
/// use volta::{Linear, Tensor};
/// volta_onnx::export(&Linear::new(4, 2, true), &Tensor::zeros([1, 4]), "linear.onnx")?;
/// # Ok::<(), volta::Error>(())
/// ```
#[track_caller]
pub fn export(module: &(impl Module + ?Sized), example: &Tensor, path: impl AsRef<Path>) -> Result<()> {
    let _call = Call::enter("export");
    module.eval();
    Export::new(module)
        .input("input", example)
        .save(path, |x| Ok(vec![("output", module.try_forward(&x[0])?)]))
}
