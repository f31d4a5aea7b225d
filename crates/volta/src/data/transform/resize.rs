//! Images of another size: each new pixel is a weighted mean of those it covers, so that shrinking does not alias.

use super::super::array::{Array, Elements};
use super::{Transform, image_size, resized};
use crate::data::sample_rng::SampleRng;
use crate::error::{Result, bail};

/// Resizes an image of bytes or f32, bilinearly.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    size: [usize; 2],
}

impl Resize {
    /// To this size, whatever the proportions were.
    pub fn new(height: usize, width: usize) -> Resize {
        Resize { size: [height, width] }
    }
}

/// Which old pixels a new one is made of, and how much of each.
struct Blend {
    first: usize,
    weights: Vec<f32>,
}

/// A triangle around every new pixel's centre, as wide as two pixels, new or old, whichever are larger.
fn blends(from: usize, to: usize) -> Vec<Blend> {
    let step = from as f32 / to as f32;
    let reach = step.max(1.0);
    (0..to)
        .map(|k| {
            let centre = (k as f32 + 0.5) * step;
            let first = ((centre - reach + 0.5).floor().max(0.0) as usize).min(from - 1);
            let last = ((centre + reach + 0.5).floor() as usize).clamp(first + 1, from);
            let weight = |x: usize| (1.0 - ((x as f32 + 0.5 - centre) / reach).abs()).max(0.0);
            let mut weights: Vec<f32> = (first..last).map(weight).collect();
            let sum: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
            Blend { first, weights }
        })
        .collect()
}

/// Every plane of `pixels` resized: along the rows first, then along the columns.
fn resize(pixels: &[f32], from: [usize; 2], to: [usize; 2]) -> Vec<f32> {
    let wide: Vec<f32> = {
        let blends = blends(from[1], to[1]);
        let line = |line: &[f32], b: &Blend| -> f32 {
            b.weights.iter().zip(&line[b.first..]).map(|(w, x)| w * x).sum()
        };
        pixels.chunks_exact(from[1]).flat_map(|row| blends.iter().map(move |b| line(row, b))).collect()
    };
    let blends = blends(from[0], to[0]);
    let mut out = Vec::with_capacity(wide.len() / from[0] * to[0]);
    for plane in wide.chunks_exact(from[0] * to[1]) {
        for b in &blends {
            let start = out.len();
            out.resize(start + to[1], 0.0);
            for (k, w) in b.weights.iter().enumerate() {
                let row = &plane[(b.first + k) * to[1]..][..to[1]];
                out[start..].iter_mut().zip(row).for_each(|(sum, x)| *sum += w * x);
            }
        }
    }
    out
}

impl Transform for Resize {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let (from, to) = (image_size(&array, "resizing")?, self.size);
        if from.contains(&0) || to.contains(&0) {
            bail!(Data, "an image of {from:?} cannot become one of {to:?}");
        }
        if from == to {
            return Ok(array);
        }
        let shape = resized(&array, to);
        match array.elements() {
            Elements::F32(pixels) => Array::try_new(resize(pixels, from, to), &shape),
            Elements::U8(pixels) => {
                let pixels: Vec<f32> = pixels.iter().map(|&p| f32::from(p)).collect();
                let bytes: Vec<u8> = resize(&pixels, from, to).iter().map(|x| x.round() as u8).collect();
                Array::try_new(bytes, &shape)
            }
            _ => bail!(Data, "only images of u8 and f32 can be resized, and this is {}", array.dtype()),
        }
    }
}
