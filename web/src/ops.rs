//! The table of ops: a name, and the method that it stands for. JavaScript calls them by name with tensors and numbers.

use crate::arguments::Arguments;
use crate::error::{Thrown, argument, js};
use crate::handles::{hold_result, operands};
use volta::{
    AttentionOptions, AutocastTypes, ConvOptions, DType, Interpolation, PoolOptions, Range, Tensor,
    try_set_autocast,
};
use wasm_bindgen::prelude::wasm_bindgen;

/// The types of elements, by the names that JavaScript has for them.
pub const TYPES: [(&str, DType); 9] = [
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint32", DType::U32),
    ("bool", DType::Bool),
];

/// The type of a name.
pub fn dtype(name: &str) -> Thrown<DType> {
    match TYPES.iter().find(|(known, _)| *known == name) {
        Some((_, dtype)) => Ok(*dtype),
        None => {
            let all: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
            Err(argument(&format!("no type is called {name:?}; there are {}", all.join(", "))))
        }
    }
}

/// Ops without arguments of their own, a name and a method each.
macro_rules! plain {
    ($name:expr, $x:expr; $($op:literal $method:ident)*) => {
        match $name {
            $($op => Some($x.$method()),)*
            _ => None,
        }
    };
}

/// Ops of two operands, the second of which may be a number.
macro_rules! binary {
    ($a:expr; $($op:literal $method:ident)*) => {
        match $a.name {
            $($op => {
                let x = $a.tensor(0)?;
                Some(x.$method($a.operand(1)?))
            })*
            _ => None,
        }
    };
}

/// Reductions: of everything, or of some axes.
macro_rules! reductions {
    ($a:expr; $($op:literal $all:ident $some:ident)*) => {
        match $a.name {
            $($op => {
                let (x, keepdim) = ($a.tensor(0)?, $a.flag()?);
                let axes = $a.rest()?;
                Some(if axes.is_empty() { x.$all() } else { x.$some(&axes, keepdim) })
            })*
            _ => None,
        }
    };
}

/// The rows of `volta_ir::unary_ops` by their methods' names.
macro_rules! unary {
    ($($(#[$doc:meta])* $variant:ident: $name:ident $try_name:ident, $domain:ident, $halves:ident, $saved:ident;)*) => {
        fn unary(name: &str, x: &Tensor) -> Option<volta::Result<Tensor>> {
            match name {
                $(stringify!($name) => Some(x.$try_name()),)*
                _ => None,
            }
        }
    };
}
volta_ir::unary_ops!(unary);

/// The result of an op that has one.
fn compute(mut a: Arguments<'_>) -> Thrown<Tensor> {
    if let Some(x) = a.optional(0) {
        if let Some(result) = unary(a.name, x) {
            return result.map_err(js);
        }
        let result = plain!(a.name, x;
            "square" try_square "tan" try_tan "logical_not" try_logical_not "isnan" try_isnan "gelu" try_gelu
            "gelu_tanh" try_gelu_tanh "silu" try_silu "relu6" try_relu6 "hardsigmoid" try_hardsigmoid
            "hardswish" try_hardswish "mish" try_mish "softsign" try_softsign "log_sigmoid" try_log_sigmoid
            "t" try_t "squeeze_all" try_squeeze_all "median" try_median);
        if let Some(result) = result {
            return result.map_err(js);
        }
    }
    let result = binary!(a;
        "add" try_add "sub" try_sub "mul" try_mul "div" try_div "pow" try_pow "maximum" try_maximum
        "minimum" try_minimum "remainder" try_remainder "floor_divide" try_floor_divide "lt" try_lt "le" try_le
        "gt" try_gt "ge" try_ge "eq" try_eq "ne" try_ne "logical_and" try_logical_and "logical_or" try_logical_or
        "logical_xor" try_logical_xor);
    if let Some(result) = result {
        return result.map_err(js);
    }
    let result = reductions!(a;
        "sum" try_sum try_sum_dim "mean" try_mean try_mean_dim "prod" try_prod try_prod_dim "max" try_max try_max_dim
        "min" try_min try_min_dim "any" try_any try_any_dim "all" try_all try_all_dim);
    if let Some(result) = result {
        return result.map_err(js);
    }
    shaped(&mut a)
}

/// Ops with arguments of their own.
fn shaped(a: &mut Arguments<'_>) -> Thrown<Tensor> {
    let x = a.tensor(0)?;
    let result = match a.name {
        "matmul" => x.try_matmul(a.tensor(1)?),
        "dot" => x.try_dot(a.tensor(1)?),
        "outer" => x.try_outer(a.tensor(1)?),
        "linear" => x.try_linear(a.tensor(1)?, a.optional(2)),
        "var" | "std" => {
            let (correction, keepdim, axes) = (a.number()?, a.flag()?, a.rest()?);
            match (a.name == "std", axes.is_empty()) {
                (false, true) => x.try_var(correction),
                (false, false) => x.try_var_dim(&axes, correction, keepdim),
                (true, true) => x.try_std(correction),
                (true, false) => x.try_std_dim(&axes, correction, keepdim),
            }
        }
        "norm" => {
            let (p, keepdim, axes) = (a.number()?, a.flag()?, a.rest()?);
            if axes.is_empty() { x.try_norm(p) } else { x.try_norm_dim(p, &axes, keepdim) }
        }
        "logsumexp" => {
            let keepdim = a.flag()?;
            x.try_logsumexp(&a.rest()?, keepdim)
        }
        "argmax" | "argmin" => {
            let keepdim = a.flag()?;
            match (a.name, a.rest()?.first()) {
                ("argmax", Some(&axis)) => x.try_argmax_dim(axis, keepdim),
                ("argmax", None) => x.try_argmax(),
                (_, Some(&axis)) => x.try_argmin_dim(axis, keepdim),
                (_, None) => x.try_argmin(),
            }
        }
        "softmax" => x.try_softmax(a.whole()?),
        "log_softmax" => x.try_log_softmax(a.whole()?),
        "cumsum" => x.try_cumsum(a.whole()?),
        "cumprod" => x.try_cumprod(a.whole()?),
        "diff" => {
            let n = a.count()?;
            x.try_diff(n, a.whole()?)
        }
        "argsort" => {
            let axis = a.whole()?;
            x.try_argsort(axis, a.flag()?)
        }
        "softplus" => {
            let beta = a.number()?;
            x.try_softplus(beta, a.number()?)
        }
        "elu" => x.try_elu(a.number()?),
        "leaky_relu" => x.try_leaky_relu(a.number()?),
        "prelu" => x.try_prelu(a.tensor(1)?),
        "hardtanh" => {
            let min = a.number()?;
            x.try_hardtanh(min, a.number()?)
        }
        "clamp" => {
            let min = a.maybe()?;
            x.try_clamp(min, a.maybe()?)
        }
        "where" => {
            let yes = a.tensor(1)?;
            x.try_where_(yes, a.operand(2)?)
        }
        // The condition and what stands where it does not hold.
        "where_number" => {
            let yes = a.number()?;
            x.try_where_(crate::arguments::scalar(yes), a.operand(1)?)
        }
        "masked_fill" => {
            let mask = a.tensor(1)?;
            x.try_masked_fill(mask, a.operand(2)?)
        }
        "tril" => x.try_tril(a.whole()? as i64),
        "triu" => x.try_triu(a.whole()? as i64),
        "one_hot" => x.try_one_hot(a.count()?),
        "reshape" => x.try_reshape(&a.rest()?),
        "permute" => x.try_permute(&a.rest()?),
        "transpose" => {
            let first = a.whole()?;
            x.try_transpose(first, a.whole()?)
        }
        "expand" => x.try_expand(&a.rest()?),
        "pad" => {
            let value = a.number()?;
            let pads: Vec<(usize, usize)> =
                a.counts()?.chunks(2).map(|p| (p[0], p.get(1).copied().unwrap_or(0))).collect();
            x.try_pad(&pads, value)
        }
        // For every axis a start, an end, both NaN for none, and a step.
        "slice" => {
            let mut ranges = Vec::new();
            for _ in 0..a.count()? {
                let (start, end, step) = (a.maybe()?, a.maybe()?, a.count()?);
                let bound = |x: Option<f64>| x.map(|x| x as isize);
                ranges.push(match (bound(start), bound(end)) {
                    (Some(start), Some(end)) => Range::by(start..end, step),
                    (Some(start), None) => Range::by(start.., step),
                    (None, Some(end)) => Range::by(..end, step),
                    (None, None) => Range::by(.., step),
                });
            }
            x.try_slice(ranges)
        }
        "narrow" => {
            let (axis, start) = (a.whole()?, a.count()?);
            x.try_narrow(axis, start, a.count()?)
        }
        "select" => {
            let axis = a.whole()?;
            x.try_select(axis, a.whole()?)
        }
        "flip" => x.try_flip(&a.rest()?),
        "roll" => {
            let shifts = a.whole()?;
            x.try_roll([shifts], [a.whole()?])
        }
        "squeeze" => x.try_squeeze(a.whole()?),
        "unsqueeze" => x.try_unsqueeze(a.whole()?),
        "flatten" => {
            let first = a.whole()?;
            x.try_flatten(first, a.whole()?)
        }
        "unflatten" => {
            let axis = a.whole()?;
            x.try_unflatten(axis, &a.rest()?)
        }
        "unfold" => {
            let (axis, size) = (a.whole()?, a.count()?);
            x.try_unfold(axis, size, a.count()?)
        }
        "repeat" => x.try_repeat(&a.rest()?),
        "repeat_interleave" => {
            let times = a.count()?;
            x.try_repeat_interleave(times, a.rest()?.first().copied())
        }
        "gather" => x.try_gather(a.whole()?, a.tensor(1)?),
        "scatter_add" => x.try_scatter_add(a.whole()?, a.tensor(1)?, a.tensor(2)?),
        "index_add" => x.try_index_add(a.whole()?, a.tensor(1)?, a.tensor(2)?),
        "index_select" => x.try_index_select(a.whole()?, a.tensor(1)?),
        "embedding" => x.try_embedding(a.tensor(1)?),
        "dropout" => x.try_dropout(a.number()?, true),
        "dropout2d" => x.try_dropout2d(a.number()?, true),
        "normalize" => {
            let (p, dim) = (a.number()?, a.whole()?);
            x.try_normalize(p, dim, a.number()?)
        }
        "cosine_similarity" => {
            let dim = a.whole()?;
            x.try_cosine_similarity(a.tensor(1)?, dim, a.number()?)
        }
        "layer_norm" => {
            let eps = a.number()?;
            x.try_layer_norm(&a.rest()?, a.optional(1), a.optional(2), eps)
        }
        "rms_norm" => {
            let eps = a.maybe()?;
            let eps = eps.unwrap_or(f64::from(f32::EPSILON));
            x.try_rms_norm(&a.rest()?, a.optional(1), eps)
        }
        "group_norm" => {
            let groups = a.count()?;
            x.try_group_norm(groups, a.optional(1), a.optional(2), a.number()?)
        }
        "conv2d" | "conv1d" | "conv_transpose2d" => {
            let (weight, bias) = (a.tensor(1)?, a.optional(2));
            let (stride, padding, dilation) = (a.pair()?, a.pair()?, a.pair()?);
            let (groups, output_padding) = (a.count()?, a.pair()?);
            let options = ConvOptions { stride, padding, dilation, groups, output_padding };
            match a.name {
                "conv2d" => x.try_conv2d(weight, bias, options),
                "conv1d" => x.try_conv1d(weight, bias, options),
                _ => x.try_conv_transpose2d(weight, bias, options),
            }
        }
        "max_pool2d" | "avg_pool2d" => {
            let (kernel, stride, padding) = (a.pair()?, a.pair()?, a.pair()?);
            let options = PoolOptions { stride: Some(stride), padding, ..PoolOptions::default() };
            if a.name == "max_pool2d" {
                x.try_max_pool2d(kernel, options)
            } else {
                x.try_avg_pool2d(kernel, options)
            }
        }
        "adaptive_avg_pool2d" => x.try_adaptive_avg_pool2d(a.pair()?),
        "interpolate" => {
            let (size, bilinear) = (a.pair()?, a.flag()?);
            let align_corners = a.flag()?;
            x.try_interpolate(
                size,
                if bilinear { Interpolation::Bilinear { align_corners } } else { Interpolation::Nearest },
            )
        }
        "pixel_shuffle" => x.try_pixel_shuffle(a.count()?),
        "scaled_dot_product_attention" => {
            let (causal, dropout, scale) = (a.flag()?, a.number()?, a.maybe()?);
            x.try_scaled_dot_product_attention(
                a.tensor(1)?,
                a.tensor(2)?,
                AttentionOptions { causal, mask: a.optional(3), dropout, scale },
            )
        }
        "cat" => Tensor::try_cat(a.tensors, a.whole()?),
        "stack" => Tensor::try_stack(a.tensors, a.whole()?),
        "isclose" => {
            let rtol = a.number()?;
            x.try_isclose(a.tensor(1)?, rtol, a.number()?)
        }
        "detach" => Ok(x.detach()),
        "clone" => x.try_mul(1).and_then(|same| same.try_to_dtype(x.dtype())),
        other => return Err(argument(&format!("no op is called {other:?}"))),
    };
    result.map_err(js)
}

/// The results of an op that has several.
fn compute_several(mut a: Arguments<'_>) -> Thrown<Vec<Tensor>> {
    let x = a.tensor(0)?;
    let pair = |(values, indices): (Tensor, Tensor)| vec![values, indices];
    let result = match a.name {
        "split" => {
            let dim = a.whole()?;
            x.try_split(a.count()?, dim)
        }
        "split_sizes" => {
            let dim = a.whole()?;
            x.try_split_sizes(&a.counts()?, dim)
        }
        "chunk" => {
            let dim = a.whole()?;
            x.try_chunk(a.count()?, dim)
        }
        "unbind" => x.try_unbind(a.whole()?),
        "sort" => {
            let dim = a.whole()?;
            x.try_sort(dim, a.flag()?).map(pair)
        }
        "topk" => {
            let (k, dim) = (a.count()?, a.whole()?);
            x.try_topk(k, dim, a.flag()?).map(pair)
        }
        "max" => {
            let dim = a.whole()?;
            x.try_max_with_index(dim, a.flag()?).map(pair)
        }
        "min" => {
            let dim = a.whole()?;
            x.try_min_with_index(dim, a.flag()?).map(pair)
        }
        other => return Err(argument(&format!("no op is called {other:?}"))),
    };
    result.map_err(js)
}

/// The result of an op, by its name.
#[wasm_bindgen]
pub fn op(name: &str, handles: &[u32], numbers: &[f64]) -> Thrown<u32> {
    let tensors = operands(handles)?;
    compute(Arguments::new(name, &tensors, numbers)).map(hold_result)
}

/// The results of an op that has several, by its name.
#[wasm_bindgen]
pub fn op_several(name: &str, handles: &[u32], numbers: &[f64]) -> Thrown<Vec<u32>> {
    let tensors = operands(handles)?;
    let results = compute_several(Arguments::new(name, &tensors, numbers))?;
    Ok(results.into_iter().map(hold_result).collect())
}

/// The same values as another type.
#[wasm_bindgen]
pub fn op_cast(handle: u32, name: &str) -> Thrown<u32> {
    let x = operands(&[handle])?.remove(0);
    x.try_to_dtype(dtype(name)?).map(hold_result).map_err(js)
}

/// Sums of products by Einstein's convention.
#[wasm_bindgen]
pub fn op_einsum(equation: &str, handles: &[u32]) -> Thrown<u32> {
    Tensor::try_einsum(equation, &operands(handles)?).map(hold_result).map_err(js)
}

/// Products and what is like them compute in this type from now on; gives what was set before, or nothing.
#[wasm_bindgen]
pub fn set_autocast(name: Option<String>) -> Thrown<Option<String>> {
    let wanted = name.as_deref().map(dtype).transpose()?;
    let before = try_set_autocast(AutocastTypes::everywhere(wanted)).map_err(js)?;
    Ok(before
        .gpu
        .and_then(|before| TYPES.iter().find(|(_, t)| *t == before))
        .map(|(name, _)| name.to_string()))
}
