//! Fourier transforms, as products with their matrices, and windows.

use super::Rows;
use crate::call::{Call, Outputs, list_length, one, size};
use std::f64::consts::TAU;
use volta::{Device, Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("DFT", dft),
    ("STFT", stft),
    ("HannWindow", |c| window(c, &[0.5, -0.5])),
    ("HammingWindow", |c| window(c, &[25.0 / 46.0, -21.0 / 46.0])),
    ("BlackmanWindow", |c| window(c, &[0.42, -0.5, 0.08])),
    ("MelWeightMatrix", mel),
];

/// A matrix that the host makes, where the node is computed.
fn matrix(c: &Call, numbers: Vec<f64>, shape: [usize; 2], like: &Tensor) -> Result<Tensor> {
    volta::with_device(Device::Cpu, || Tensor::try_from_vec(numbers, shape))?
        .try_to_dtype(like.dtype())?
        .try_to_device(c.device)
}

/// Cosines and sines of a transform of `from` numbers, of which `to` are wanted.
fn turns(
    c: &Call,
    from: usize,
    length: usize,
    to: usize,
    inverse: bool,
    like: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let sign = if inverse { 1.0 } else { -1.0 };
    list_length(from.saturating_mul(to).min(1 << 40) as i64)?;
    // Exact for any product: whole turns are taken away first.
    let angle = |k: usize| TAU * ((k / to) * (k % to) % length) as f64 / length as f64;
    let table =
        |f: &dyn Fn(f64) -> f64| matrix(c, (0..from * to).map(|k| f(angle(k))).collect(), [from, to], like);
    Ok((table(&f64::cos)?, table(&|x| sign * x.sin())?))
}

/// Along the last axis, of (real, imaginary) parts.
fn transform(
    c: &Call,
    real: &Tensor,
    imaginary: Option<&Tensor>,
    length: usize,
    to: usize,
    inverse: bool,
) -> Result<(Tensor, Tensor)> {
    let (cos, sin) = turns(c, real.size(-1), length, to, inverse, real)?;
    let (mut re, mut im) = (real.try_matmul(&cos)?, real.try_matmul(&sin)?);
    if let Some(x) = imaginary {
        re = re.try_sub(&x.try_matmul(&sin)?)?;
        im = im.try_add(&x.try_matmul(&cos)?)?;
    }
    if inverse {
        (re, im) = (re.try_div(length as f64)?, im.try_div(length as f64)?);
    }
    Ok((re, im))
}

fn dft(c: &Call) -> Result<Outputs> {
    let x = c.x(0)?;
    let axis = if c.opset < 20 {
        c.int("axis", 1)?
    } else if c.has(2) {
        c.int_at(2)?
    } else {
        -2
    };
    let (inverse, half) = (c.flag("inverse", false)?, c.flag("onesided", false)?);
    let axis = x.shape().axis(axis as isize)? as isize;
    let length = match (c.has(1), inverse && half) {
        (true, _) => size(c.int_at(1)?)?,
        (false, true) => 2 * x.size(axis).saturating_sub(1),
        (false, false) => x.size(axis),
    };
    if x.rank() < 2 || length == 0 {
        bail!(Shape, "the input has shape {}, and {length} numbers are transformed", x.shape());
    }
    let last = x.rank() as isize - 2;
    let part = |k: isize| -> Result<Tensor> {
        let t = x.try_select(-1, k)?.try_transpose(axis, last)?;
        let more = length.saturating_sub(t.size(-1));
        let mut pads = vec![(0, 0); t.rank()];
        pads[last as usize].1 = more;
        t.try_pad(&pads, 0.0)?.try_narrow(-1, 0, length)
    };
    let (mut real, mut imaginary) = (part(0)?, (x.size(-1) == 2).then(|| part(1)).transpose()?);
    if inverse && half {
        // The other half of a real signal's spectrum is its conjugate.
        let given = x.size(axis).min(length);
        let mirror: Vec<i64> = (0..length).map(|k| if k < given { k } else { length - k } as i64).collect();
        let index = c.vector(mirror)?;
        let sign = (0..length).map(|k| if k < given { 1.0 } else { -1.0 }).collect();
        let sign = matrix(c, sign, [1, length], &x)?.try_squeeze(0)?;
        real = real.try_index_select(-1, &index)?;
        imaginary = imaginary.map(|t| t.try_index_select(-1, &index)?.try_mul(&sign)).transpose()?;
    }
    let to = if half && !inverse { length / 2 + 1 } else { length };
    let (re, im) = transform(c, &real, imaginary.as_ref(), length, to, inverse)?;
    let back = |t: Tensor| t.try_transpose(axis, last);
    if inverse && half {
        return one(back(re)?.try_unsqueeze(-1)?);
    }
    one(Tensor::try_stack(&[back(re)?, back(im)?], -1)?)
}

fn stft(c: &Call) -> Result<Outputs> {
    let (signal, step) = (c.x(0)?, size(c.int_at(1)?)?);
    let window = c.maybe(2)?;
    let length = if c.has(3) { size(c.int_at(3)?)? } else { window.as_ref().map_or(0, Tensor::numel) };
    let half = c.flag("onesided", true)?;
    if step == 0 || length == 0 || signal.rank() != 3 {
        bail!(Data, "frames of {length} that are {step} apart are no frames of shape {}", signal.shape());
    }
    let frames = |k: isize| -> Result<Tensor> {
        let t = signal.try_select(-1, k)?.try_windows(1, length, step, 1)?;
        match &window {
            Some(window) => t.try_mul(window),
            None => Ok(t),
        }
    };
    let imaginary = (signal.size(-1) == 2).then(|| frames(1)).transpose()?;
    let to = if half { length / 2 + 1 } else { length };
    let (re, im) = transform(c, &frames(0)?, imaginary.as_ref(), length, to, false)?;
    one(Tensor::try_stack(&[re, im], -1)?)
}

/// A sum of cosines.
fn window(c: &Call, terms: &[f64]) -> Result<Outputs> {
    let n = list_length(c.int_at(0)?)?;
    let kind = crate::element::ElementType::numbered(c.int("output_datatype", 1)?)?;
    let span = if c.flag("periodic", true)? { n as f64 } else { (n as f64 - 1.0).max(1.0) };
    let number =
        |k: usize| terms.iter().enumerate().map(|(j, a)| a * (TAU * (j * k) as f64 / span).cos()).sum();
    let numbers: Vec<f64> = (0..n).map(number).collect();
    let host = volta::with_device(Device::Cpu, || Tensor::try_from_vec(numbers, [n]))?;
    one(crate::value::to_device(&host.try_to_dtype(kind.held_as())?, c.device)?)
}

fn mel(c: &Call) -> Result<Outputs> {
    let (bins, length, rate) = (list_length(c.int_at(0)?)?, list_length(c.int_at(1)?)?, c.int_at(2)? as f64);
    let (low, high) = (c.float_at(3)?, c.float_at(4)?);
    let kind = crate::element::ElementType::numbered(c.int("output_datatype", 1)?)?;
    let mel = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
    let (first, last) = (mel(low), mel(high));
    let edge = |k: usize| {
        let place = first + (last - first) * k as f64 / (bins + 2) as f64;
        let hz = 700.0 * (10f64.powf(place / 2595.0) - 1.0);
        ((length + 1) as f64 * hz / rate).floor()
    };
    let rows = length / 2 + 1;
    list_length(rows.saturating_mul(bins) as i64)?;
    let mut numbers = vec![0.0; rows * bins];
    for bin in 0..bins {
        let (a, b, e) = (edge(bin), edge(bin + 1), edge(bin + 2));
        for row in 0..rows {
            let x = row as f64;
            numbers[row * bins + bin] = if x >= b && x < e {
                (e - x) / (e - b)
            } else if x == b && a == b {
                1.0
            } else if x >= a && x <= b {
                (x - a) / (b - a)
            } else {
                0.0
            };
        }
    }
    let host = volta::with_device(Device::Cpu, || Tensor::try_from_vec(numbers, [rows, bins]))?;
    one(crate::value::to_device(&host.try_to_dtype(kind.held_as())?, c.device)?)
}
