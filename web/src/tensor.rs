//! Tensors: made of JavaScript's typed arrays or by rule, looked at, read, differentiated.

use crate::arguments::Arguments;
use crate::error::{Thrown, argument, js};
use crate::handles::{hold, hold_result, keep, operands, release_intermediates, tensor, tensors};
use crate::ops::{TYPES, dtype};
use js_sys::{BigInt64Array, Float32Array, Float64Array, Int32Array, Promise, Uint8Array, Uint32Array};
use volta::tab::promise;
use volta::{BackwardOptions, DType, Device, Scalar, Tensor, bf16, f16, with_device};
use wasm_bindgen::prelude::wasm_bindgen;

/// Tensors of typed arrays, a name and a type of elements each.
macro_rules! from_arrays {
    ($($name:ident($element:ty) $value:expr;)*) => {$(
        #[wasm_bindgen]
        pub fn $name(data: &[$element], shape: &[u32]) -> Thrown<u32> {
            let extents: Vec<usize> = shape.iter().map(|&e| e as usize).collect();
            let elements = $value;
            Tensor::try_from_vec(elements(data), &extents[..]).map(hold).map_err(js)
        }
    )*};
}

from_arrays! {
    tensor_from_f32(f32) |data: &[f32]| data.to_vec();
    tensor_from_f64(f64) |data: &[f64]| data.to_vec();
    tensor_from_i32(i32) |data: &[i32]| data.to_vec();
    tensor_from_i64(i64) |data: &[i64]| data.to_vec();
    tensor_from_u8(u8) |data: &[u8]| data.to_vec();
    tensor_from_u32(u32) |data: &[u32]| data.to_vec();
    tensor_from_bool(u8) |data: &[u8]| data.iter().map(|&x| x != 0).collect::<Vec<bool>>();
    tensor_from_f16(u16) |data: &[u16]| data.iter().map(|&x| f16::from_bits(x)).collect::<Vec<f16>>();
}

/// A tensor by rule, on the default device: the numbers of the rule, then its shape.
#[wasm_bindgen]
pub fn tensor_create(name: &str, numbers: &[f64], shape: &[u32], type_name: Option<String>) -> Thrown<u32> {
    let mut a = Arguments::new(name, &[], numbers);
    let shape: Vec<usize> = shape.iter().map(|&e| e as usize).collect();
    let shape = &shape[..];
    let wanted = type_name.as_deref().map(dtype).transpose()?;
    let made = match name {
        "full" => Tensor::try_full_of(shape, a.number()?, wanted.unwrap_or(DType::F32)),
        "arange" => {
            let (start, end, step) = (a.number()?, a.number()?, a.number()?);
            if [start, end, step].iter().all(|x| x.fract() == 0.0) && step == 1.0 {
                Tensor::try_arange(start as i64, end as i64)
            } else {
                Tensor::try_arange_step(start, end, step)
            }
        }
        "linspace" => {
            let (start, end) = (a.number()?, a.number()?);
            Tensor::try_linspace(start, end, a.count()?)
        }
        "eye" => Tensor::try_eye(a.count()?),
        "rand" => Tensor::try_rand(shape),
        "randn" => Tensor::try_randn(shape),
        "randint" => {
            let low = a.whole()? as i64;
            Tensor::try_randint(low, a.whole()? as i64, shape)
        }
        "bernoulli" => Tensor::try_bernoulli(a.number()?, shape),
        other => return Err(argument(&format!("no tensor is made by {other:?}"))),
    }
    .map_err(js)?;
    match wanted {
        Some(wanted) if wanted != made.dtype() => Ok(hold(made.try_to_dtype(wanted).map_err(js)?.variable())),
        _ => Ok(hold(made)),
    }
}

/// The extents.
#[wasm_bindgen]
pub fn tensor_shape(handle: u32) -> Thrown<Vec<u32>> {
    Ok(tensor(handle)?.shape().iter().map(|&e| e as u32).collect())
}

/// The place of its type among those that `tensor_types` lists.
#[wasm_bindgen]
pub fn tensor_type(handle: u32) -> Thrown<usize> {
    let wanted = tensor(handle)?.dtype();
    Ok(TYPES.iter().position(|(_, known)| *known == wanted).unwrap_or(0))
}

/// The names of all types.
#[wasm_bindgen]
pub fn tensor_types() -> Vec<String> {
    TYPES.iter().map(|(name, _)| name.to_string()).collect()
}

/// Whether it is on a GPU.
#[wasm_bindgen]
pub fn tensor_on_gpu(handle: u32) -> Thrown<bool> {
    Ok(tensor(handle)?.device().is_gpu())
}

/// Whether gradients flow into or through it, whether it collects its own, and whether its values are there.
#[wasm_bindgen]
pub fn tensor_state(handle: u32) -> Thrown<Vec<u8>> {
    let t = tensor(handle)?;
    Ok([t.is_tracked(), t.is_leaf(), t.is_realized()].map(u8::from).to_vec())
}

/// Its elements as a promise of a typed array; halves as 32-bit floats.
#[wasm_bindgen]
pub fn tensor_data(handle: u32) -> Thrown<Promise> {
    let t = tensor(handle)?;
    /// The promise of elements of a type.
    macro_rules! elements {
        ($element:ty, $array:ident) => {{
            let values = t.to_vec_async::<$element>();
            promise(async move { Ok($array::from(&values.await.map_err(js)?[..]).into()) })
        }};
    }
    Ok(match t.dtype() {
        DType::F64 => elements!(f64, Float64Array),
        DType::I32 => elements!(i32, Int32Array),
        DType::I64 => elements!(i64, BigInt64Array),
        DType::U32 => elements!(u32, Uint32Array),
        DType::U8 => elements!(u8, Uint8Array),
        DType::Bool => {
            let values = t.to_vec_async::<bool>();
            promise(async move {
                let values: Vec<u8> = values.await.map_err(js)?.into_iter().map(u8::from).collect();
                Ok(Uint8Array::from(&values[..]).into())
            })
        }
        _ => elements!(f32, Float32Array),
    })
}

/// The same values on another device, as a promise of a new tensor.
#[wasm_bindgen]
pub fn tensor_to(handle: u32, gpu: bool) -> Thrown<Promise> {
    let t = tensor(handle)?;
    let device = if gpu { Device::Gpu(0) } else { Device::Cpu };
    if t.device() == device {
        return Ok(promise(async move { Ok(hold(t).into()) }));
    }
    let shape = t.shape();
    /// The promise of a tensor of elements of a type.
    macro_rules! moved {
        ($element:ty) => {{
            let values = t.to_vec_async::<$element>();
            promise(async move {
                let values = values.await.map_err(js)?;
                let moved = with_device(device, || Tensor::try_from_vec(values, shape));
                Ok(hold(moved.map_err(js)?).into())
            })
        }};
    }
    Ok(match t.dtype() {
        DType::F64 => moved!(f64),
        DType::I32 => moved!(i32),
        DType::I64 => moved!(i64),
        DType::U32 => moved!(u32),
        DType::U8 => moved!(u8),
        DType::Bool => moved!(bool),
        DType::F16 => moved!(f16),
        DType::BF16 => moved!(bf16),
        _ => moved!(f32),
    })
}

/// Submits what its value takes, without waiting for it.
#[wasm_bindgen]
pub fn tensors_realize(handles: &[u32]) -> Thrown<()> {
    volta::try_realize_all(&tensors(handles)?).map_err(js)
}

/// Keeps it when a backward pass lets go of intermediate results.
#[wasm_bindgen]
pub fn tensor_keep(handle: u32) -> Thrown<()> {
    keep(handle)
}

/// Another handle of the same tensor.
#[wasm_bindgen]
pub fn tensor_alias(handle: u32) -> Thrown<u32> {
    Ok(hold(tensor(handle)?))
}

/// Makes it collect gradients from now on, or stop. The result of an op becomes a leaf of the same value.
#[wasm_bindgen]
pub fn tensor_requires_grad(handle: u32, yes: bool) -> Thrown<u32> {
    let t = tensor(handle)?;
    if t.is_assignable() {
        t.try_set_requires_grad(yes).map_err(js)?;
        return Ok(hold(t));
    }
    operands(&[handle])?;
    t.try_requires_grad(yes).map(hold).map_err(js)
}

/// Computes gradients, and lets go of the graph and of intermediate results unless they are asked to be kept.
#[wasm_bindgen]
pub fn tensor_backward(
    handle: u32,
    gradient: Option<u32>,
    retain_graph: bool,
    create_graph: bool,
) -> Thrown<()> {
    let output = tensor(handle)?;
    let gradient = gradient.map(tensor).transpose()?;
    let begins = output.is_tracked() && (output.numel() == 1 || gradient.is_some());
    if begins && !retain_graph && !create_graph {
        release_intermediates();
    }
    output.try_backward_with(gradient.as_ref(), BackwardOptions { retain_graph, create_graph }).map_err(js)
}

/// In the place of a handle where there is no tensor.
pub const NONE: u32 = u32::MAX;

/// Gradients of outputs with respect to inputs, as new tensors; `NONE` where an output does not depend on an input.
#[wasm_bindgen]
pub fn tensor_grad_of(outputs: &[u32], inputs: &[u32], create_graph: bool) -> Thrown<Vec<u32>> {
    let (outputs, inputs) = (tensors(outputs)?, tensors(inputs)?);
    let outputs: Vec<&Tensor> = outputs.iter().collect();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let options = BackwardOptions { retain_graph: true, create_graph };
    let gradients = volta::try_grad(&outputs, &inputs, None, options).map_err(js)?;
    Ok(gradients.into_iter().map(|g| g.map_or(NONE, hold_result)).collect())
}

/// The collected gradient, if there is one.
#[wasm_bindgen]
pub fn tensor_grad(handle: u32) -> Thrown<Option<u32>> {
    Ok(tensor(handle)?.grad().map(hold))
}

/// Another gradient in the place of the collected one.
#[wasm_bindgen]
pub fn tensor_set_grad(handle: u32, gradient: Option<u32>) -> Thrown<()> {
    let t = tensor(handle)?;
    let gradient = gradient.map(tensor).transpose()?;
    if gradient.is_some() && !(t.is_leaf() && t.is_tracked()) {
        return Err(argument("grad: this tensor does not collect gradients: make it with requiresGrad"));
    }
    if let Some(g) = &gradient
        && (g.shape(), g.dtype(), g.device()) != (t.shape(), t.dtype(), t.device())
    {
        return Err(argument("grad: a gradient has the shape, the type and the device of its tensor"));
    }
    t.set_grad(gradient);
    Ok(())
}

/// Gives tensors new values, and computes them together.
#[wasm_bindgen]
pub fn tensors_assign(targets: &[u32], values: &[u32]) -> Thrown<()> {
    let (targets, values) = (tensors(targets)?, tensors(values)?);
    for (target, value) in targets.iter().zip(&values) {
        let value = value.detach().try_to_dtype(target.dtype()).map_err(js)?;
        target.try_assign(&value).map_err(js)?;
    }
    Ok(())
}

/// Whether ops are recorded for differentiation from now on; gives what was set before.
#[wasm_bindgen]
pub fn set_grad_enabled(yes: bool) -> bool {
    volta::set_grad_enabled(yes)
}

/// Seeds random tensors and weights.
#[wasm_bindgen]
pub fn manual_seed(seed: f64) {
    volta::manual_seed(seed as u64);
}

/// A number without axes, on the default device.
#[wasm_bindgen]
pub fn tensor_scalar(value: f64) -> u32 {
    hold(Tensor::scalar(Scalar::from(value)))
}
