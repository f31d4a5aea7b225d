//! Attention and rotary positions as operators.

use super::Rows;
use crate::call::{Call, Outputs, one, size};
use volta::{AttentionOptions, DType, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[("Attention", attention), ("RotaryEmbedding", rotary)];

/// (batch, heads, length, width) of what may have its heads side by side.
fn apart(x: &Tensor, heads: usize) -> Result<Tensor> {
    match x.rank() {
        4 => Ok(x.clone()),
        3 if heads > 0 => x.try_unflatten(-1, [heads, x.size(-1) / heads])?.try_transpose(1, 2),
        _ => bail!(Shape, "an operand has shape {}, of {heads} heads", x.shape()),
    }
}

fn attention(c: &Call) -> Result<Outputs> {
    let (query_heads, key_heads) = (size(c.int("q_num_heads", 0)?)?, size(c.int("kv_num_heads", 0)?)?);
    let (given, q) = (c.x(0)?, apart(&c.x(0)?, query_heads)?);
    let (mut k, mut v) = (apart(&c.x(1)?, key_heads)?, apart(&c.x(2)?, key_heads)?);
    if let (Some(past_k), Some(past_v)) = (c.maybe(4)?, c.maybe(5)?) {
        k = Tensor::try_cat(&[past_k, k], 2)?;
        v = Tensor::try_cat(&[past_v, v], 2)?;
    }
    let present = (k.clone(), v.clone());
    let groups = q.size(1).checked_div(k.size(1)).unwrap_or(0).max(1);
    let (k, v) = if groups > 1 {
        (k.try_repeat_interleave(groups, Some(1))?, v.try_repeat_interleave(groups, Some(1))?)
    } else {
        (k, v)
    };
    let (queries, keys) = (q.size(2), k.size(2));
    let scale = c.maybe_float("scale")?.unwrap_or(1.0 / (q.size(3).max(1) as f64).sqrt());
    let (cap, mode) = (c.float("softcap", 0.0)?, c.int("qk_matmul_output_mode", 0)?);
    let dtype = q.dtype();
    let mut mask = match c.maybe(3)? {
        Some(m) => {
            let m = if m.dtype() == DType::Bool {
                m.try_where_(0.0, f64::NEG_INFINITY)?.try_to_dtype(dtype)?
            } else {
                m
            };
            // A shorter mask hides the keys behind its end.
            let missing = keys.saturating_sub(m.size(-1));
            let mut pads = vec![(0, 0); m.rank()];
            pads[m.rank() - 1].1 = missing;
            Some(if missing > 0 && m.size(-1) > 1 { m.try_pad(&pads, f64::NEG_INFINITY)? } else { m })
        }
        None => None,
    };
    let mut hide = |seen: Tensor| -> Result<()> {
        let bias = seen.try_where_(0.0, f64::NEG_INFINITY)?.try_to_dtype(dtype)?;
        mask = Some(match &mask {
            Some(mask) => mask.try_add(&bias)?,
            None => bias,
        });
        Ok(())
    };
    let lengths = c.maybe_ints(6)?;
    if let Some(lengths) = &lengths {
        let length = c.vector(lengths.clone())?.try_reshape([lengths.len(), 1, 1, 1])?;
        let place = c.make(|| Tensor::try_arange(0, keys as i64))?.try_reshape([1, 1, 1, keys])?;
        hide(place.try_lt(&length)?)?;
    }
    // How far a query looks back and ahead; it stands behind what came before, or at the end of what is filled.
    let (back, ahead) = (c.int("left_window_size", -1)?, c.int("right_window_size", -1)?);
    let causal = c.flag("is_causal", false)?;
    if causal || back >= 0 || ahead >= 0 {
        let before = match &lengths {
            Some(lengths) => {
                let offsets = lengths.iter().map(|length| length - queries as i64).collect();
                c.vector(offsets)?.try_reshape([lengths.len(), 1, 1, 1])?
            }
            None => c
                .vector(vec![c.maybe(4)?.map_or(0, |past| past.size(2) as i64)])?
                .try_reshape([1, 1, 1, 1])?,
        };
        let row = c.make(|| Tensor::try_arange(0, queries as i64))?.try_reshape([1, 1, queries, 1])?;
        let column = c.make(|| Tensor::try_arange(0, keys as i64))?.try_reshape([1, 1, 1, keys])?;
        let distance = before.try_add(&row)?.try_sub(&column)?;
        if causal {
            hide(distance.try_ge(0)?)?;
        }
        if back >= 0 {
            hide(distance.try_le(back)?)?;
        }
        if ahead >= 0 {
            hide(distance.try_ge(-ahead)?)?;
        }
    }
    let wants_scores = c.node.outputs.get(3).is_some_and(|name| !name.is_empty());
    let mut scores = None;
    let y = if cap == 0.0 && !wants_scores {
        q.try_scaled_dot_product_attention(
            &k,
            &v,
            AttentionOptions { mask: mask.as_ref(), scale: Some(scale), ..AttentionOptions::default() },
        )?
    } else {
        let products = q.try_matmul(&k.try_transpose(-2, -1)?)?.try_mul(scale)?;
        let capped =
            if cap > 0.0 { products.try_div(cap)?.try_tanh()?.try_mul(cap)? } else { products.clone() };
        let masked = match &mask {
            Some(mask) => capped.try_add(mask)?,
            None => capped.clone(),
        };
        let weights = masked.try_softmax(-1)?;
        // A query that sees nothing gives zeros.
        let weights = weights.try_isnan()?.try_where_(weights.zeros_like(), &weights)?;
        let y = weights.try_matmul(&v)?;
        scores = Some(match mode {
            0 => products,
            1 => capped,
            2 => masked,
            _ => weights,
        });
        y
    };
    let y = if given.rank() == 3 { y.try_transpose(1, 2)?.try_flatten(-2, -1)? } else { y };
    let mut found = vec![y.into(), present.0.into(), present.1.into()];
    found.extend(scores.map(Into::into));
    Ok(found)
}

fn rotary(c: &Call) -> Result<Outputs> {
    let (x, cos, sin) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let given = x.rank();
    let x4 = apart(&x, size(c.int("num_heads", 0)?)?)?;
    let (cos, sin) = match c.maybe(3)? {
        Some(places) => {
            let pick = |t: &Tensor| t.try_embedding(&places);
            (pick(&cos)?, pick(&sin)?)
        }
        None => (cos, sin),
    };
    let (cos, sin) = (cos.try_unsqueeze(1)?, sin.try_unsqueeze(1)?);
    let width = x4.size(-1);
    let turned = match size(c.int("rotary_embedding_dim", 0)?)? {
        0 => width,
        part => part,
    };
    if turned > width {
        bail!(Shape, "{turned} of {width} elements are to be turned");
    }
    let (head, rest) = (x4.try_narrow(-1, 0, turned)?, x4.try_narrow(-1, turned, width - turned)?);
    let half = turned / 2;
    let (cos, sin) = (cos.try_narrow(-1, 0, half)?, sin.try_narrow(-1, 0, half)?);
    let interleaved = c.flag("interleaved", false)?;
    let (a, b) = if interleaved {
        let pairs = head.try_unflatten(-1, [half, 2])?;
        (pairs.try_select(-1, 0)?, pairs.try_select(-1, 1)?)
    } else {
        (head.try_narrow(-1, 0, half)?, head.try_narrow(-1, half, half)?)
    };
    let real = a.try_mul(&cos)?.try_sub(&b.try_mul(&sin)?)?;
    let imaginary = a.try_mul(&sin)?.try_add(&b.try_mul(&cos)?)?;
    let head = if interleaved {
        Tensor::try_stack(&[real, imaginary], -1)?.try_flatten(-2, -1)?
    } else {
        Tensor::try_cat(&[real, imaginary], -1)?
    };
    let y = if turned < width { Tensor::try_cat(&[head, rest], -1)? } else { head };
    one(if given == 3 { y.try_transpose(1, 2)?.try_flatten(-2, -1)? } else { y })
}
