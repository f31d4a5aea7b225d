//! Data: datasets from memory and files, transforms, loaders, downloads.
//!
//! With `VOLTA_DATA` naming a folder that has `mnist/`, the real MNIST is read too.

mod cifar;
mod combine;
mod digits;
#[cfg(feature = "download")]
mod download;
#[cfg(feature = "download")]
mod hub;
mod idx;
mod images;
mod loader;
mod resume;
mod transforms;
mod windows;
mod workers;

use std::path::{Path, PathBuf};
use volta::Tensor;
use volta::data::{Array, Dataset, Elements, Sample};

/// Every sample is its index: as an f32 input of shape [2] and an i32 target.
#[derive(Debug)]
struct Numbers(usize);

impl Dataset for Numbers {
    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> volta::Result<Sample<'_>> {
        let x = index as f32;
        Ok(Sample { input: Array::new(vec![x, x + 0.5], &[2]), target: Array::scalar(index as i32) })
    }
}

/// The samples of a batch of [`Numbers`], after a look at its inputs.
fn numbers((x, y): (Tensor, Tensor)) -> Vec<i32> {
    let indices = y.to_vec::<i32>();
    let expected: Vec<f32> = indices.iter().flat_map(|&k| [k as f32, k as f32 + 0.5]).collect();
    assert_eq!((x.shape()[..].to_vec(), x.to_vec::<f32>()), (vec![indices.len(), 2], expected));
    indices
}

/// The bytes of an array of u8.
fn bytes(array: &Array<'_>) -> Vec<u8> {
    match array.elements() {
        Elements::U8(bytes) => bytes.to_vec(),
        other => panic!("{} where bytes were expected", other.dtype()),
    }
}

/// The numbers of an array of f32.
fn floats(array: &Array<'_>) -> Vec<f32> {
    match array.elements() {
        Elements::F32(numbers) => numbers.to_vec(),
        other => panic!("{} where f32 was expected", other.dtype()),
    }
}

/// The class of a target.
fn class(target: &Array<'_>) -> i32 {
    match target.elements() {
        Elements::I32(class) if target.shape().is_empty() => class[0],
        _ => panic!("{} {} is no class", target.dtype(), target.shape()),
    }
}

/// A folder of its own for a test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("volta-data-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("inside of the folder")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

volta_testing::main!();
