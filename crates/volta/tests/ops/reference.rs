//! What every op should give, by the plainest loops: an array is a shape and its elements as f64.

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

/// The shape two operands broadcast to.
pub fn common_shape(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let extent = |s: &[usize], back: usize| if back < s.len() { s[s.len() - 1 - back] } else { 1 };
    (0..rank)
        .rev()
        .map(|back| match (extent(a, back), extent(b, back)) {
            (1, y) => y,
            (x, 1) => x,
            (x, y) => {
                assert_eq!(x, y, "shapes {a:?} and {b:?} do not broadcast");
                x
            }
        })
        .collect()
}

/// The Gauss error function by a series without cancellation.
pub fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..400 {
        term *= 2.0 * x * x / (2 * n + 1) as f64;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// 1 - erf x, by a continued fraction where that is small.
pub fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        return 1.0 - erf(x);
    }
    let fraction = (1..=300).rev().fold(x, |below, k| x + 0.5 * f64::from(k) / below);
    0.5 * std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() / fraction
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Array {
    pub fn new(shape: &[usize], data: Vec<f64>) -> Array {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "shape {shape:?}");
        Array { shape: shape.to_vec(), data }
    }

    pub fn scalar(value: f64) -> Array {
        Array::new(&[], vec![value])
    }

    pub fn full(shape: &[usize], value: f64) -> Array {
        Array::from_fn(shape, |_| value)
    }

    /// Every element from its index.
    pub fn from_fn(shape: &[usize], mut element: impl FnMut(&[usize]) -> f64) -> Array {
        let count: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut data = Vec::with_capacity(count);
        for _ in 0..count {
            data.push(element(&index));
            for k in (0..shape.len()).rev() {
                index[k] += 1;
                if index[k] < shape[k] {
                    break;
                }
                index[k] = 0;
            }
        }
        Array::new(shape, data)
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub fn numel(&self) -> usize {
        self.data.len()
    }

    fn place(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.rank());
        index.iter().zip(&self.shape).fold(0, |at, (&i, &e)| {
            assert!(i < e, "index {index:?} outside {:?}", self.shape);
            at * e + i
        })
    }

    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[self.place(index)]
    }

    pub fn at_mut(&mut self, index: &[usize]) -> &mut f64 {
        let place = self.place(index);
        &mut self.data[place]
    }

    pub fn map(&self, f: impl FnMut(f64) -> f64) -> Array {
        Array::new(&self.shape, self.data.iter().copied().map(f).collect())
    }

    /// Elementwise over two operands that broadcast.
    pub fn zip(&self, other: &Array, mut f: impl FnMut(f64, f64) -> f64) -> Array {
        let shape = common_shape(&self.shape, &other.shape);
        let (a, b) = (self.broadcast_to(&shape), other.broadcast_to(&shape));
        Array::new(&shape, a.data.iter().zip(&b.data).map(|(&x, &y)| f(x, y)).collect())
    }

    pub fn add(&self, other: &Array) -> Array {
        self.zip(other, |x, y| x + y)
    }

    pub fn sub(&self, other: &Array) -> Array {
        self.zip(other, |x, y| x - y)
    }

    pub fn mul(&self, other: &Array) -> Array {
        self.zip(other, |x, y| x * y)
    }

    pub fn div(&self, other: &Array) -> Array {
        self.zip(other, |x, y| x / y)
    }

    pub fn broadcast_to(&self, shape: &[usize]) -> Array {
        let added = shape.len() - self.rank();
        Array::from_fn(shape, |index| {
            let own: Vec<usize> =
                index[added..].iter().zip(&self.shape).map(|(&i, &e)| if e == 1 { 0 } else { i }).collect();
            self.at(&own)
        })
    }

    pub fn reshape(&self, shape: &[usize]) -> Array {
        Array::new(shape, self.data.clone())
    }

    pub fn permute(&self, order: &[usize]) -> Array {
        let shape: Vec<usize> = order.iter().map(|&o| self.shape[o]).collect();
        Array::from_fn(&shape, |index| {
            let mut own = vec![0; self.rank()];
            for (&o, &i) in order.iter().zip(index) {
                own[o] = i;
            }
            self.at(&own)
        })
    }

    /// The last two axes exchanged.
    pub fn t(&self) -> Array {
        let rank = self.rank();
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        self.permute(&order)
    }

    /// `extent` elements of an axis from `start`, `step` apart.
    pub fn slice(&self, axis: usize, start: usize, step: usize, extent: usize) -> Array {
        let mut shape = self.shape.clone();
        shape[axis] = extent;
        Array::from_fn(&shape, |index| {
            let mut own = index.to_vec();
            own[axis] = start + step * index[axis];
            self.at(&own)
        })
    }

    /// One element of an axis, which goes.
    pub fn select(&self, axis: usize, index: usize) -> Array {
        let mut shape = self.shape.clone();
        shape.remove(axis);
        self.slice(axis, index, 1, 1).reshape(&shape)
    }

    pub fn flip(&self, axes: &[usize]) -> Array {
        Array::from_fn(&self.shape, |index| {
            let mut own = index.to_vec();
            for &a in axes {
                own[a] = self.shape[a] - 1 - index[a];
            }
            self.at(&own)
        })
    }

    pub fn pad(&self, pads: &[(usize, usize)], fill: f64) -> Array {
        let shape: Vec<usize> = self.shape.iter().zip(pads).map(|(e, p)| e + p.0 + p.1).collect();
        Array::from_fn(&shape, |index| {
            let inside = (0..self.rank()).all(|k| (pads[k].0..pads[k].0 + self.shape[k]).contains(&index[k]));
            if inside {
                self.at(&index.iter().zip(pads).map(|(i, p)| i - p.0).collect::<Vec<_>>())
            } else {
                fill
            }
        })
    }

    /// Every group of elements that `axes` fold together, in order, made one number; the axes stay with
    /// extent 1 or go.
    pub fn fold(&self, axes: &[usize], keepdim: bool, mut f: impl FnMut(&[f64]) -> f64) -> Array {
        let kept: Vec<usize> =
            (0..self.rank()).map(|k| if axes.contains(&k) { 1 } else { self.shape[k] }).collect();
        let folded: Vec<usize> = axes.iter().map(|&a| self.shape[a]).collect();
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, axes, "the axes to fold are given in order");
        let out = Array::from_fn(&kept, |outer| {
            let group = Array::from_fn(&folded, |inner| {
                let mut own = outer.to_vec();
                for (&a, &i) in axes.iter().zip(inner) {
                    own[a] = i;
                }
                self.at(&own)
            });
            f(&group.data)
        });
        if keepdim {
            return out;
        }
        let left: Vec<usize> =
            (0..self.rank()).filter(|k| !axes.contains(k)).map(|k| self.shape[k]).collect();
        out.reshape(&left)
    }

    pub fn sum_of(&self, axes: &[usize], keepdim: bool) -> Array {
        self.fold(axes, keepdim, |group| group.iter().sum())
    }

    pub fn mean_of(&self, axes: &[usize], keepdim: bool) -> Array {
        self.fold(axes, keepdim, |group| group.iter().sum::<f64>() / group.len() as f64)
    }

    /// Every line of elements along an axis, made another line (of another length, perhaps).
    pub fn along(&self, axis: usize, mut f: impl FnMut(&[f64]) -> Vec<f64>) -> Array {
        let mut outer = self.shape.clone();
        outer[axis] = 1;
        let mut lines = Vec::new();
        Array::from_fn(&outer, |index| {
            let mut own = index.to_vec();
            let line: Vec<f64> = (0..self.shape[axis])
                .map(|i| {
                    own[axis] = i;
                    self.at(&own)
                })
                .collect();
            lines.push(f(&line));
            0.0
        });
        let mut shape = self.shape.clone();
        shape[axis] = lines.first().map_or(self.shape[axis], Vec::len);
        let mut stacked = vec![lines.len(), shape[axis]];
        if lines.is_empty() {
            return Array::new(&shape, vec![]);
        }
        let flat = Array::new(&stacked, lines.concat());
        // The lines were visited in the order of the outer index.
        stacked = outer;
        Array::from_fn(&shape, |index| {
            let mut line = 0;
            for k in 0..index.len() {
                line = line * stacked[k] + if k == axis { 0 } else { index[k] };
            }
            flat.at(&[line, index[axis]])
        })
    }

    /// The matrix product with vectors as rows and columns, batch axes broadcast.
    pub fn matmul(&self, other: &Array) -> Array {
        let a = if self.rank() == 1 { self.reshape(&[1, self.shape[0]]) } else { self.clone() };
        let b = if other.rank() == 1 { other.reshape(&[other.shape[0], 1]) } else { other.clone() };
        let (ra, rb) = (a.rank(), b.rank());
        let (rows, inner, columns) = (a.shape[ra - 2], a.shape[ra - 1], b.shape[rb - 1]);
        let batch = common_shape(&a.shape[..ra - 2], &b.shape[..rb - 2]);
        let a = a.broadcast_to(&[&batch[..], &[rows, inner]].concat());
        let b = b.broadcast_to(&[&batch[..], &[inner, columns]].concat());
        let many: usize = batch.iter().product();
        let mut out = vec![0.0; many * rows * columns];
        for n in 0..many {
            for i in 0..rows {
                for j in 0..columns {
                    for k in 0..inner {
                        out[(n * rows + i) * columns + j] +=
                            a.data[(n * rows + i) * inner + k] * b.data[(n * inner + k) * columns + j];
                    }
                }
            }
        }
        let mut shape = batch;
        if self.rank() > 1 {
            shape.push(rows);
        }
        if other.rank() > 1 {
            shape.push(columns);
        }
        Array::new(&shape, out)
    }

    /// e to the elements, each line along an axis divided by its sum.
    pub fn softmax(&self, axis: usize) -> Array {
        self.along(axis, |line| {
            let peak = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = line.iter().map(|x| (x - peak).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.iter().map(|p| p / sum).collect()
        })
    }
}

/// How a convolution's window moves.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
    pub groups: usize,
}

/// (batch, channels, height, width) with (out, channels / groups, height, width).
pub fn conv2d(x: &Array, w: &Array, window: Window) -> Array {
    let Window { stride, padding, dilation, groups } = window;
    let extent =
        |k: usize| (x.shape[2 + k] + 2 * padding[k] - dilation[k] * (w.shape[2 + k] - 1) - 1) / stride[k] + 1;
    let (inputs, outputs) = (x.shape[1] / groups, w.shape[0] / groups);
    Array::from_fn(&[x.shape[0], w.shape[0], extent(0), extent(1)], |at| {
        let group = at[1] / outputs;
        let mut sum = 0.0;
        for c in 0..inputs {
            for i in 0..w.shape[2] {
                for j in 0..w.shape[3] {
                    let (row, column) =
                        (at[2] * stride[0] + i * dilation[0], at[3] * stride[1] + j * dilation[1]);
                    if row < padding[0] || column < padding[1] {
                        continue;
                    }
                    let (row, column) = (row - padding[0], column - padding[1]);
                    if row < x.shape[2] && column < x.shape[3] {
                        sum += x.at(&[at[0], group * inputs + c, row, column]) * w.at(&[at[1], c, i, j]);
                    }
                }
            }
        }
        sum
    })
}

/// (batch, channels, height, width) with (channels, out / groups, height, width): every input element adds its
/// multiple of the kernel to the output.
pub fn conv_transpose2d(x: &Array, w: &Array, window: Window, output_padding: [usize; 2]) -> Array {
    let Window { stride, padding, dilation, groups } = window;
    let extent = |k: usize| {
        (x.shape[2 + k] - 1) * stride[k] + dilation[k] * (w.shape[2 + k] - 1) + 1 + output_padding[k]
            - 2 * padding[k]
    };
    let (inputs, outputs) = (x.shape[1] / groups, w.shape[1]);
    let mut out = Array::full(&[x.shape[0], outputs * groups, extent(0), extent(1)], 0.0);
    Array::from_fn(&x.shape, |at| {
        let group = at[1] / inputs;
        Array::from_fn(&w.shape[1..], |tap| {
            let (row, column) =
                (at[2] * stride[0] + tap[1] * dilation[0], at[3] * stride[1] + tap[2] * dilation[1]);
            if row >= padding[0] && column >= padding[1] {
                let place = [at[0], group * outputs + tap[0], row - padding[0], column - padding[1]];
                if place[2] < out.shape[2] && place[3] < out.shape[3] {
                    *out.at_mut(&place) += x.at(at) * w.at(&[at[1], tap[0], tap[1], tap[2]]);
                }
            }
            0.0
        });
        0.0
    });
    out
}
