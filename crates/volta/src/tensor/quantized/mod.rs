//! Matrices of quantised weights: 4 or 8 bits a weight and a scale for each block of 32, decoded inside of the products that read
//! them. `encode` makes blocks of f32, `pack` lays blocks out as words and scales.

mod encode;
mod pack;

pub(crate) use encode::{q4_0, q4_1, q8_0};

use super::Tensor;
use super::record::{record, run_op};
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::quantized::{BLOCK, BlockFormat};
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use pack::GgufBlocks;
use volta_derive::op;

/// The largest number that f16 has: scales and minima are f16.
const LARGEST: f32 = 65504.0;

/// A matrix of weights as blocks of 32 that share a scale in f16, and a minimum where the format has one. It takes 4.5, 5 or 8.5
/// bits a weight, on every device. Products ([`Tensor::quantized_linear`]) decode it as they read, so there is never a copy in f32
/// beside it; gradients flow to what it is multiplied by, not to the weights themselves.
///
/// ```
/// use volta::{BlockFormat, QuantizedMatrix, Tensor};
///
/// let weight = Tensor::randn([8, 64]);
/// let small = QuantizedMatrix::quantize(&weight, BlockFormat::Int8)?;
/// let x = Tensor::randn([3, 64]);
/// let (near, exact) = (x.quantized_linear(&small, None), x.linear(&weight, None));
/// assert!((near - exact).abs().max().item::<f32>() < 0.5);
/// assert_eq!(small.bytes(), 8 * 64 + 8 * 2 * 2); // bytes of weights, f16 scales
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuantizedMatrix {
    words: Tensor,
    scales: Tensor,
    format: BlockFormat,
    columns: usize,
}

/// Shapes of words and of scales.
fn shapes(format: BlockFormat, rows: usize, columns: usize) -> Result<[Shape; 2]> {
    if columns == 0 || !columns.is_multiple_of(BLOCK) {
        bail!(Shape, "a row of {columns} weights is not made of blocks of {BLOCK}");
    }
    Ok([Shape::new(&[rows, format.row_words(columns)])?, Shape::new(&[rows, format.row_scales(columns)])?])
}

/// Runs the body of a call that gives no tensor.
#[track_caller]
fn named<R>(name: &'static str, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let _call = Call::enter(name);
    volta_ir::environment::check()?;
    body()
}

impl QuantizedMatrix {
    /// Rounds a matrix of floats, on its device. Rows must be whole blocks of 32.
    #[track_caller]
    pub fn quantize(weight: &Tensor, format: BlockFormat) -> Result<QuantizedMatrix> {
        named("QuantizedMatrix::quantize", || {
            let shape = weight.shape();
            if shape.rank() != 2 || !weight.dtype().is_float() {
                bail!(Shape, "{} {shape} cannot be quantised: a matrix of floats can", weight.dtype());
            }
            shapes(format, shape[0], shape[1])?;
            let numbers = weight.detach().try_to_dtype(DType::F32)?.try_to_vec::<f32>()?;
            if let Some(x) = numbers.iter().find(|x| !x.is_finite() || x.abs() > LARGEST) {
                bail!(Argument, "blocks hold numbers up to {LARGEST}, and one of the weights is {x}");
            }
            let mut blocks = Vec::new();
            format.encode(&numbers, &mut blocks);
            QuantizedMatrix::of_blocks(format, shape[0], shape[1], &blocks, weight.device())
        })
    }

    /// A matrix of blocks as GGUF has them: Q8_0 is int8, Q4_0 int4, Q4_1 int4 with minima. Nothing is rounded.
    #[track_caller]
    pub fn from_blocks(
        format: BlockFormat,
        rows: usize,
        columns: usize,
        blocks: &[u8],
        device: Device,
    ) -> Result<QuantizedMatrix> {
        let of_blocks = || QuantizedMatrix::of_blocks(format, rows, columns, blocks, device);
        named("QuantizedMatrix::from_blocks", of_blocks)
    }

    fn of_blocks(
        format: BlockFormat,
        rows: usize,
        columns: usize,
        blocks: &[u8],
        device: Device,
    ) -> Result<QuantizedMatrix> {
        let [words, scales] = shapes(format, rows, columns)?;
        let needed = (rows * (columns / BLOCK)).saturating_mul(format.block_bytes());
        if blocks.len() != needed {
            bail!(
                Argument,
                "{} {rows} × {columns} is {needed} bytes of blocks, not {}",
                format.name(),
                blocks.len()
            );
        }
        let (packed, packed_scales) = format.pack(columns, blocks);
        let upload = |bytes: &[u8], shape| {
            Tensor::from_bytes(DType::U32, bytes, shape, device).map(|t| Tensor::variable_of(t.node()))
        };
        Ok(QuantizedMatrix {
            words: upload(&packed, words)?,
            scales: upload(&packed_scales, scales)?,
            format,
            columns,
        })
    }

    /// A matrix of its two tensors of u32, as [`words`](Self::words) and [`scales`](Self::scales) gave them.
    #[track_caller]
    pub fn from_parts(
        words: &Tensor,
        scales: &Tensor,
        format: BlockFormat,
        columns: usize,
    ) -> Result<QuantizedMatrix> {
        named("QuantizedMatrix::from_parts", || {
            let rows = if words.rank() == 2 { words.shape()[0] } else { 0 };
            let expected = shapes(format, rows, columns)?;
            for (t, expected) in [words, scales].into_iter().zip(expected) {
                if t.dtype() != DType::U32 || t.shape() != expected {
                    bail!(
                        Shape,
                        "{} {} are not u32 {expected}, as {} needs",
                        t.dtype(),
                        t.shape(),
                        format.name()
                    );
                }
            }
            if words.device() != scales.device() {
                bail!(Device, "words are on {} and scales on {}", words.device(), scales.device());
            }
            Ok(QuantizedMatrix { words: words.clone(), scales: scales.clone(), format, columns })
        })
    }

    /// Packed weights: u32, a row for each row.
    pub fn words(&self) -> &Tensor {
        &self.words
    }

    /// Scales and minima as f16, two in a u32, a row for each row.
    pub fn scales(&self) -> &Tensor {
        &self.scales
    }

    /// How weights are packed.
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// How many rows: outputs of a linear map.
    pub fn rows(&self) -> usize {
        self.words.shape()[0]
    }

    /// How many columns: inputs of a linear map.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Where it is.
    pub fn device(&self) -> Device {
        self.words.device()
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> usize {
        (self.words.shape().numel() + self.scales.shape().numel()) * 4
    }

    /// The same matrix on a device.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> QuantizedMatrix {
        self.try_to_device(device).unwrap_or_else(|e| e.raise())
    }

    /// [`to_device`](Self::to_device) that returns its error.
    #[track_caller]
    pub fn try_to_device(&self, device: Device) -> Result<QuantizedMatrix> {
        let (words, scales) = (self.words.try_to_device(device)?, self.scales.try_to_device(device)?);
        Ok(QuantizedMatrix { words, scales, ..self.clone() })
    }

    /// The weights as f32.
    #[track_caller]
    pub fn dequantize(&self) -> Tensor {
        self.try_dequantize().unwrap_or_else(|e| e.raise())
    }

    /// [`dequantize`](Self::dequantize) that returns its error.
    #[track_caller]
    pub fn try_dequantize(&self) -> Result<Tensor> {
        run_op("dequantize", || self.numbers(&self.words, &self.scales))
    }

    fn numbers(&self, words: &Tensor, scales: &Tensor) -> Result<Tensor> {
        let shape = Shape::new(&[words.shape()[0], self.columns])?;
        record(Op::Native(NativeOp::Dequantize(self.format)), &[words, scales], shape, DType::F32)
    }

    /// The rows of a table that integers name, as f32: only these are decoded.
    #[track_caller]
    pub fn embedding(&self, index: &Tensor) -> Tensor {
        self.try_embedding(index).unwrap_or_else(|e| e.raise())
    }

    /// [`embedding`](Self::embedding) that returns its error.
    #[track_caller]
    pub fn try_embedding(&self, index: &Tensor) -> Result<Tensor> {
        run_op("embedding", || {
            let rows = [Shape::of(&[index.shape().numel()])];
            let flat = index.reshape_to(rows[0])?;
            let numbers =
                self.numbers(&self.words.try_embedding(&flat)?, &self.scales.try_embedding(&flat)?)?;
            numbers.reshape_to(Shape::new(&[&index.shape()[..], &[self.columns]].concat())?)
        })
    }

    /// The blocks as GGUF has them, from wherever they are.
    #[track_caller]
    pub fn to_blocks(&self) -> Result<Vec<u8>> {
        named("QuantizedMatrix::to_blocks", || {
            let (words, scales) = (self.words.try_to_vec::<u32>()?, self.scales.try_to_vec::<u32>()?);
            Ok(self.format.unpack(self.columns, &words, &scales))
        })
    }
}

impl Tensor {
    /// x · Wᵀ, or x · W if `by_rows`, for the two tensors of a quantised matrix and x of two axes.
    pub(crate) fn quantized_primitive(
        &self,
        words: &Tensor,
        scales: &Tensor,
        format: BlockFormat,
        by_rows: bool,
        results: usize,
    ) -> Result<Tensor> {
        let shape = Shape::new(&[self.shape()[0], results])?;
        let op = Op::Native(NativeOp::QuantizedMatmul { format, by_rows });
        record(op, &[self, words, scales], shape, self.dtype())
    }

    /// `x·weightᵀ + bias` over the last axis, for a weight (outputs, inputs) that is decoded as it is read. Sums are f32 (f64 for f64); the result
    /// has the operand's type.
    #[op]
    pub fn try_quantized_linear(&self, weight: &QuantizedMatrix, bias: Option<&Tensor>) -> Result<Tensor> {
        let y = product(self, weight, false)?;
        match bias {
            Some(bias) if bias.shape()[..] != [weight.rows()] => {
                bail!(Shape, "the bias has shape {}, and there are {} outputs", bias.shape(), weight.rows())
            }
            Some(bias) => y.try_add(bias),
            None => Ok(y),
        }
    }

    /// `x·weight` over the last axis, for a weight (inputs, outputs) whose rows are blocks.
    #[op]
    pub fn try_quantized_matmul(&self, weight: &QuantizedMatrix) -> Result<Tensor> {
        product(self, weight, true)
    }
}

fn product(x: &Tensor, weight: &QuantizedMatrix, by_rows: bool) -> Result<Tensor> {
    let (shape, dtype) = (x.shape(), x.dtype());
    if !dtype.is_float() {
        bail!(DType, "{dtype} is not multiplied by quantised weights: convert it with to_dtype");
    }
    let summed = if dtype == DType::F64 { dtype } else { DType::F32 };
    let (rows, columns) = (weight.rows(), weight.columns());
    let (inputs, outputs) = if by_rows { (rows, columns) } else { (columns, rows) };
    if shape.rank() == 0 || shape[shape.rank() - 1] != inputs {
        let turned = if by_rows { "" } else { ", transposed" };
        bail!(
            Shape,
            "shape {shape} and quantised weights of shape [{rows}, {columns}]{turned}: the inner extents differ"
        );
    }
    let items: usize = shape[..shape.rank() - 1].iter().product();
    let flat = x.try_to_dtype(summed)?.reshape_to(Shape::of(&[items, inputs]))?;
    let y = flat.quantized_primitive(&weight.words, &weight.scales, weight.format, by_rows, outputs)?;
    let mut extents = shape.to_vec();
    extents[shape.rank() - 1] = outputs;
    y.reshape_to(Shape::new(&extents)?)?.try_to_dtype(dtype)
}
