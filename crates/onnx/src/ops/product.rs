//! Products of matrices.

use super::Rows;
use crate::call::{Call, Outputs, one};
use volta::{DType, Device, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("MatMul", |c| one(matmul(&c.x(0)?, &c.x(1)?)?)),
    ("Gemm", gemm),
    ("Einsum", |c| {
        let equation = c.text("equation", "")?.replace(' ', "");
        let all = c.all()?;
        let floats = all.iter().all(|t| t.dtype().is_float());
        if !floats {
            bail!(DType, "products of integers are MatMulInteger's");
        }
        one(Tensor::try_einsum(&equation, &all)?)
    }),
    ("Det", |c| {
        let x = c.x(0)?;
        let n = x.size(-1);
        if x.rank() < 2 || x.size(-2) != n || n == 0 {
            bail!(Shape, "the input has shape {}: square matrices are needed", x.shape());
        }
        let numbers = super::select::host(&x)?;
        let found: Vec<f64> = numbers.chunks(n * n).map(|m| determinant(m.to_vec(), n)).collect();
        let host =
            volta::with_device(Device::Cpu, || Tensor::try_from_vec(found, &x.shape()[..x.rank() - 2]))?;
        one(crate::value::to_device(&host.try_to_dtype(x.dtype())?, c.device)?)
    }),
];

/// A product; integers, which Volta's own has not, are multiplied and summed one by one.
pub(super) fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype().is_float() {
        return a.try_matmul(b);
    }
    let dtype = a.dtype();
    let left = if a.rank() == 1 { a.try_unsqueeze(0)? } else { a.clone() };
    let right = if b.rank() == 1 { b.try_unsqueeze(1)? } else { b.clone() };
    let mut y = left
        .try_unsqueeze(-1)?
        .try_mul(&right.try_unsqueeze(-3)?)?
        .try_sum_dim(-2, false)?
        .try_to_dtype(dtype)?;
    if b.rank() == 1 {
        y = y.try_squeeze(-1)?;
    }
    if a.rank() == 1 {
        y = y.try_squeeze(if b.rank() == 1 { -1 } else { -2 })?;
    }
    Ok(y)
}

fn gemm(c: &Call) -> Result<Outputs> {
    let turned = |x: Tensor, name: &str| if c.flag(name, false)? { x.try_transpose(0, 1) } else { Ok(x) };
    let (a, b) = (turned(c.x(0)?, "transA")?, turned(c.x(1)?, "transB")?);
    let dtype = a.dtype();
    let scaled = |x: Tensor, name: &str| match c.float(name, 1.0)? {
        1.0 => Ok(x),
        factor => x.try_mul(factor)?.try_to_dtype(dtype),
    };
    let product = scaled(matmul(&a, &b)?, "alpha")?;
    one(match c.maybe(2)? {
        Some(bias) => product.try_add(&scaled(bias, "beta")?)?,
        None => product,
    })
}

/// By elimination with pivots.
fn determinant(mut m: Vec<f64>, n: usize) -> f64 {
    let mut result = 1.0;
    for k in 0..n {
        let best = (k..n).max_by(|&a, &b| m[a * n + k].abs().total_cmp(&m[b * n + k].abs())).unwrap_or(k);
        if m[best * n + k] == 0.0 {
            return 0.0;
        }
        if best != k {
            (0..n).for_each(|j| m.swap(best * n + j, k * n + j));
            result = -result;
        }
        result *= m[k * n + k];
        for row in k + 1..n {
            let factor = m[row * n + k] / m[k * n + k];
            (k..n).for_each(|j| m[row * n + j] -= factor * m[k * n + j]);
        }
    }
    result
}

/// Floats in the type that sums of bytes are exact in.
pub(super) fn exact(x: &Tensor) -> Result<Tensor> {
    x.try_to_dtype(DType::F64).or_else(|_| x.try_to_dtype(DType::F32))
}
