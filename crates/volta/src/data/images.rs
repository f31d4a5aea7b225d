//! Small images with classes, all in memory.

use super::array::Array;
use super::dataset::{Dataset, Sample};
use super::file::damaged;
use crate::error::Result;
use std::path::Path;

/// Images of bytes, `[channels, height, width]`, each with its class as an i32 without axes.
#[derive(Clone, Debug)]
pub struct LabeledImages {
    pixels: Vec<u8>,
    classes: Vec<i32>,
    shape: [usize; 3],
}

impl LabeledImages {
    /// As many images as classes; `file` is named if a class is none of `known`.
    pub(super) fn new(
        pixels: Vec<u8>,
        classes: Vec<u8>,
        shape: [usize; 3],
        known: usize,
        file: &Path,
    ) -> Result<LabeledImages> {
        debug_assert_eq!(pixels.len(), classes.len() * shape.iter().product::<usize>());
        if let Some((k, class)) = classes.iter().enumerate().find(|(_, c)| usize::from(**c) >= known) {
            return Err(damaged(file, &format!("sample {k} is of class {class}, and there are {known}")));
        }
        Ok(LabeledImages { pixels, classes: classes.into_iter().map(i32::from).collect(), shape })
    }

    /// The pixels of all images, one image after the other.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The classes of all images.
    pub fn classes(&self) -> &[i32] {
        &self.classes
    }

    /// Channels, height and width of an image.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }
}

impl Dataset for LabeledImages {
    fn len(&self) -> usize {
        self.classes.len()
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let size: usize = self.shape.iter().product();
        let pixels = &self.pixels[index * size..(index + 1) * size];
        Ok(Sample {
            input: Array::try_new(pixels, &self.shape)?,
            target: Array::try_new(&self.classes[index..=index], &[])?,
        })
    }
}
