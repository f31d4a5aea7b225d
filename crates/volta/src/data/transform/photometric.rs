//! Numbers changed in their places: scaled, normalised, spread out.

use super::Transform;
use crate::call::Call;
use crate::data::array::{Array, Elements};
use crate::data::sample_rng::SampleRng;
use crate::error::{Result, bail};

/// Bytes from 0 to 255 as f32 from 0 to 1; other numbers as f32 without a change of scale.
#[derive(Clone, Copy, Debug)]
pub struct ToFloat;

impl Transform for ToFloat {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let shape = array.shape();
        let numbers: Vec<f32> = match array.elements() {
            Elements::F32(_) => return Ok(array),
            Elements::U8(bytes) => bytes.iter().map(|&b| f32::from(b) / 255.0).collect(),
            Elements::F64(numbers) => numbers.iter().map(|&x| x as f32).collect(),
            Elements::F16(numbers) => numbers.iter().map(|x| x.to_f32()).collect(),
            Elements::BF16(numbers) => numbers.iter().map(|x| x.to_f32()).collect(),
            Elements::I32(numbers) => numbers.iter().map(|&x| x as f32).collect(),
            Elements::U32(numbers) => numbers.iter().map(|&x| x as f32).collect(),
            Elements::I64(numbers) => numbers.iter().map(|&x| x as f32).collect(),
            Elements::Bool(truths) => truths.iter().map(|&b| f32::from(u8::from(b))).collect(),
        };
        Array::try_new(numbers, &shape)
    }
}

/// Takes the mean away and divides by the deviation, channel by channel; channels are the first axis.
#[derive(Clone, Debug)]
pub struct Normalize {
    mean: Vec<f32>,
    deviation: Vec<f32>,
}

impl Normalize {
    /// One mean and deviation a channel, or one for all.
    #[track_caller]
    pub fn new(mean: &[f32], deviation: &[f32]) -> Normalize {
        Normalize::try_new(mean, deviation).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(mean: &[f32], deviation: &[f32]) -> Result<Normalize> {
        let _call = Call::enter("Normalize");
        if mean.is_empty() || mean.len() != deviation.len() {
            bail!(Argument, "{} means and {} deviations: one of each a channel", mean.len(), deviation.len());
        }
        if let Some(d) = deviation.iter().find(|d| !(d.is_finite() && **d != 0.0)) {
            bail!(Argument, "nothing can be divided by a deviation of {d}");
        }
        Ok(Normalize { mean: mean.to_vec(), deviation: deviation.to_vec() })
    }
}

impl Transform for Normalize {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let shape = array.shape();
        let channels = self.mean.len();
        if channels > 1 && shape.first() != Some(&channels) {
            bail!(Data, "means of {channels} channels do not fit shape {shape}");
        }
        let dtype = array.dtype();
        let Elements::F32(numbers) = array.into_elements() else {
            bail!(Data, "only f32 can be normalised, and this is {dtype}: put ToFloat before");
        };
        let mut numbers = numbers.into_owned();
        let size = numbers.len() / channels;
        if size > 0 {
            for (k, channel) in numbers.chunks_exact_mut(size).enumerate() {
                let (mean, deviation) = (self.mean[k], self.deviation[k]);
                channel.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
            }
        }
        Array::try_new(numbers, &shape)
    }
}

/// A class as zeros with a one in its place, f32; for targets.
#[derive(Clone, Copy, Debug)]
pub struct OneHot {
    classes: usize,
}

impl OneHot {
    /// For this many classes.
    pub fn new(classes: usize) -> OneHot {
        OneHot { classes }
    }
}

impl Transform for OneHot {
    fn apply<'a>(&self, array: Array<'a>, _: &mut SampleRng) -> Result<Array<'a>> {
        let class = match array.elements() {
            Elements::I32(classes) if classes.len() == 1 => i64::from(classes[0]),
            Elements::I64(classes) if classes.len() == 1 => classes[0],
            Elements::U32(classes) if classes.len() == 1 => i64::from(classes[0]),
            Elements::U8(classes) if classes.len() == 1 => i64::from(classes[0]),
            _ => bail!(Data, "{} {} is not one class", array.dtype(), array.shape()),
        };
        let mut hot = vec![0f32; self.classes];
        match usize::try_from(class).ok().and_then(|class| hot.get_mut(class)) {
            Some(place) => *place = 1.0,
            None => bail!(Data, "there is no class {class} among {}", self.classes),
        }
        Array::try_new(hot, &[self.classes])
    }
}
