//! Plain arrays in f64, which the references compute with.

use volta::{DType, Tensor, default_device};

#[derive(Clone, Debug)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

/// The number `k` of a row of numbers that anybody can make again: PyTorch's constants were made from the same.
pub fn wave(k: usize, seed: usize) -> f64 {
    0.5 * (0.7 * k as f64 + 1.3 * seed as f64).sin()
}

impl Array {
    pub fn waves(shape: &[usize], seed: usize) -> Array {
        let count = shape.iter().product();
        Array { shape: shape.to_vec(), data: (0..count).map(|k| wave(k, seed)).collect() }
    }

    pub fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Array {
        let count = shape.iter().product();
        let mut place = vec![0; shape.len()];
        let mut data = Vec::with_capacity(count);
        for k in 0..count {
            let mut rest = k;
            for axis in (0..shape.len()).rev() {
                place[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            data.push(f(&place));
        }
        Array { shape: shape.to_vec(), data }
    }

    pub fn zeros(shape: &[usize]) -> Array {
        Array::from_fn(shape, |_| 0.0)
    }

    fn place(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.shape.len());
        index.iter().zip(&self.shape).fold(0, |place, (&i, &extent)| {
            assert!(i < extent, "{index:?} in {:?}", self.shape);
            place * extent + i
        })
    }

    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[self.place(index)]
    }

    pub fn add_at(&mut self, index: &[usize], value: f64) {
        let place = self.place(index);
        self.data[place] += value;
    }

    /// An element of an image with zeros around it.
    pub fn padded(&self, n: usize, c: usize, y: isize, x: isize) -> f64 {
        let inside = y >= 0 && x >= 0 && (y as usize) < self.shape[2] && (x as usize) < self.shape[3];
        if inside { self.at(&[n, c, y as usize, x as usize]) } else { 0.0 }
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Array {
        Array { shape: self.shape.clone(), data: self.data.iter().map(|&x| f(x)).collect() }
    }

    pub fn plus(&self, other: &Array) -> Array {
        assert_eq!(self.shape, other.shape);
        let data = self.data.iter().zip(&other.data).map(|(a, b)| a + b).collect();
        Array { shape: self.shape.clone(), data }
    }

    pub fn reshaped(&self, shape: &[usize]) -> Array {
        assert_eq!(self.data.len(), shape.iter().product::<usize>());
        Array { shape: shape.to_vec(), data: self.data.clone() }
    }

    /// x·Wᵀ + b over the last axis.
    pub fn linear(&self, weight: &Array, bias: Option<&Array>) -> Array {
        let [outputs, inputs] = [weight.shape[0], weight.shape[1]];
        let mut shape = self.shape.clone();
        assert_eq!(shape.pop(), Some(inputs));
        shape.push(outputs);
        Array::from_fn(&shape, |place| {
            let (o, row) = (place[place.len() - 1], &place[..place.len() - 1]);
            let sum: f64 = (0..inputs).map(|i| self.at(&[row, &[i]].concat()) * weight.at(&[o, i])).sum();
            sum + bias.map_or(0.0, |b| b.at(&[o]))
        })
    }

    /// Σ element · cos(its place): one number that every element is in.
    pub fn checksum(&self) -> f64 {
        self.data.iter().enumerate().map(|(k, x)| x * (k as f64).cos()).sum()
    }
}

/// The widest floats that the device under test has: `VOLTA_DEVICE=gpu` runs these tests on a GPU.
pub fn real() -> DType {
    if default_device().is_gpu() { DType::F32 } else { DType::F64 }
}

pub fn tensor(x: &Array) -> Tensor {
    if real() == DType::F64 {
        return Tensor::from_slice(&x.data, &x.shape);
    }
    let data: Vec<f32> = x.data.iter().map(|&v| v as f32).collect();
    Tensor::from_slice(&data, &x.shape)
}

pub fn array(x: &Tensor) -> Array {
    Array { shape: x.shape().to_vec(), data: x.to_vec::<f64>() }
}
