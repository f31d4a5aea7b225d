//! Convolutions against plain loops, for every kernel this CPU runs.

use super::*;
use std::sync::Mutex;

fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(next).collect()
}

/// A shape from input, kernel and the rest; the output size follows, less what `spare` says the
/// windows leave out (as a transposed convolution's output padding does).
struct Case {
    batch: usize,
    groups: usize,
    channels: [usize; 2],
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Case {
    fn shape(&self) -> ConvShape {
        let output = [0, 1].map(|a| {
            let window = (self.kernel[a] - 1) * self.dilation[a] + 1;
            (self.input[a] + 2 * self.padding[a] - window) / self.stride[a] + 1
        });
        ConvShape {
            batch: self.batch,
            groups: self.groups,
            in_channels: self.channels[0],
            out_channels: self.channels[1],
            input: self.input,
            kernel: self.kernel,
            output,
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
        }
    }
}

const PLAIN: Case = Case {
    batch: 2,
    groups: 1,
    channels: [3, 5],
    input: [7, 9],
    kernel: [3, 3],
    stride: [1, 1],
    padding: [0, 0],
    dilation: [1, 1],
};

fn cases() -> Vec<ConvShape> {
    let mut shapes: Vec<ConvShape> = [
        PLAIN,
        Case { padding: [1, 1], ..PLAIN },
        Case { padding: [2, 1], kernel: [2, 4], ..PLAIN },
        Case { stride: [2, 3], padding: [1, 2], ..PLAIN },
        Case { stride: [3, 1], padding: [0, 1], kernel: [1, 3], ..PLAIN },
        Case { dilation: [2, 3], padding: [2, 3], ..PLAIN },
        Case { dilation: [2, 3], stride: [2, 2], padding: [4, 3], ..PLAIN },
        Case { kernel: [1, 1], ..PLAIN },
        Case { kernel: [1, 1], stride: [2, 2], ..PLAIN },
        Case { kernel: [1, 1], padding: [1, 2], ..PLAIN },
        Case { kernel: [7, 9], ..PLAIN },
        Case { groups: 2, channels: [6, 4], padding: [1, 1], ..PLAIN },
        Case { groups: 3, channels: [6, 9], stride: [2, 2], padding: [1, 0], ..PLAIN },
        Case { groups: 4, channels: [4, 4], padding: [1, 1], ..PLAIN },
        Case { groups: 4, channels: [4, 8], stride: [2, 2], padding: [1, 1], ..PLAIN },
        Case { groups: 3, channels: [3, 9], dilation: [2, 1], ..PLAIN },
        Case { groups: 4, channels: [4, 4], dilation: [2, 2], padding: [3, 2], ..PLAIN },
        Case { channels: [1, 32], input: [28, 28], batch: 3, ..PLAIN },
        Case { channels: [32, 24], input: [10, 12], batch: 3, ..PLAIN },
        Case { channels: [64, 40], input: [9, 8], padding: [1, 1], batch: 1, ..PLAIN },
        Case { channels: [70, 33], input: [8, 7], stride: [2, 2], padding: [1, 1], ..PLAIN },
        Case { channels: [80, 17], kernel: [1, 1], input: [12, 40], stride: [2, 2], ..PLAIN },
        Case { channels: [4, 610], kernel: [1, 1], input: [9, 4], ..PLAIN },
        Case { channels: [5, 610], input: [4, 4], padding: [1, 1], ..PLAIN },
        Case { padding: [4, 5], ..PLAIN },
        Case { batch: 0, ..PLAIN },
        Case { channels: [0, 5], ..PLAIN },
        Case { channels: [2, 16], input: [40, 30], batch: 1, padding: [1, 1], ..PLAIN },
        Case { channels: [2, 6], input: [50, 40], batch: 1, stride: [2, 2], ..PLAIN },
    ]
    .iter()
    .map(Case::shape)
    .collect();
    // Windows that stop short of the input's far side.
    for stride in [[2, 2], [1, 1], [3, 2]] {
        let mut s = Case { stride, padding: [1, 1], ..PLAIN }.shape();
        s.output = s.output.map(|n| n - 1);
        shapes.push(s);
    }
    let mut pointwise = Case { kernel: [1, 1], ..PLAIN }.shape();
    pointwise.output = pointwise.output.map(|n| n - 1);
    shapes.push(pointwise);
    shapes
}

/// Calls `f(x index, w index, y index)` for every multiplication.
fn each_product(s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let (inputs, outputs) = (s.in_channels / s.groups, s.out_channels / s.groups);
    for n in 0..s.batch {
        for o in 0..s.out_channels {
            for (i, kh, kw) in (0..inputs)
                .flat_map(|i| (0..s.kernel[0]).flat_map(move |h| (0..s.kernel[1]).map(move |w| (i, h, w))))
            {
                let channel = o / outputs * inputs + i;
                let w = ((o * inputs + i) * s.kernel[0] + kh) * s.kernel[1] + kw;
                for oh in 0..s.output[0] {
                    let Some(ih) = (oh * s.stride[0] + kh * s.dilation[0]).checked_sub(s.padding[0]) else {
                        continue;
                    };
                    for ow in 0..s.output[1] {
                        let Some(iw) = (ow * s.stride[1] + kw * s.dilation[1]).checked_sub(s.padding[1])
                        else {
                            continue;
                        };
                        if ih < s.input[0] && iw < s.input[1] {
                            let x = ((n * s.in_channels + channel) * s.input[0] + ih) * s.input[1] + iw;
                            let y = ((n * s.out_channels + o) * s.output[0] + oh) * s.output[1] + ow;
                            f(x, w, y);
                        }
                    }
                }
            }
        }
    }
}

trait Float: Accumulator {
    fn narrow(v: f64) -> Self;
    fn exact(self) -> f64;
    const TOLERANCE: f64;
}
impl Float for f32 {
    fn narrow(v: f64) -> f32 {
        v as f32
    }
    fn exact(self) -> f64 {
        f64::from(self)
    }
    const TOLERANCE: f64 = 1e-5;
}
impl Float for f64 {
    fn narrow(v: f64) -> f64 {
        v
    }
    fn exact(self) -> f64 {
        self
    }
    const TOLERANCE: f64 = 1e-13;
}

/// Compares results of all kernels and numbers of threads with expected sums, and among themselves.
fn compare<T: Float>(name: &str, s: &ConvShape, expected: &[f64], compute: impl Fn(Means<T>, *mut T)) {
    let size = expected.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    for kernel in T::kernels() {
        let mut first: Option<Vec<T>> = None;
        for threads in [1, 2, 5] {
            let mut out = vec![T::narrow(f64::NAN); expected.len()];
            compute(Means { kernel, threads }, out.as_mut_ptr());
            for (i, (got, want)) in out.iter().zip(expected).enumerate() {
                let error = (got.exact() - want).abs();
                assert!(
                    error <= T::TOLERANCE * size,
                    "{name} {} threads {threads}: {i} is {} for {want}, {s:?}",
                    kernel.name,
                    got.exact()
                );
            }
            let same = first.as_ref().is_none_or(|f| *f == out);
            assert!(same, "{name}: threads disagree, {s:?}");
            first.get_or_insert(out);
        }
    }
}

fn check<T: Float>(s: &ConvShape) {
    let (inputs, pixels) = (s.in_channels / s.groups, s.output[0] * s.output[1]);
    let fill = |count: usize, seed| -> Vec<T> { numbers(count, seed).into_iter().map(T::narrow).collect() };
    let x = fill(s.batch * s.in_channels * s.input[0] * s.input[1], 1);
    let w = fill(s.out_channels * inputs * s.kernel[0] * s.kernel[1], 2);
    let g = fill(s.batch * s.out_channels * pixels, 3);
    let (mut y, mut dx, mut dw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    each_product(s, |xi, wi, yi| {
        y[yi] += x[xi].exact() * w[wi].exact();
        dx[xi] += g[yi].exact() * w[wi].exact();
        dw[wi] += g[yi].exact() * x[xi].exact();
    });
    compare::<T>("forward", s, &y, |means, out| {
        let seen = Mutex::new(vec![0; y.len()]);
        let done = |range: Range<usize>| {
            seen.lock().unwrap()[range].iter_mut().for_each(|count| *count += 1);
        };
        // SAFETY: the buffers have the sizes of the shape.
        unsafe { forward::run(means, s, x.as_ptr(), w.as_ptr(), out, &done) };
        assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1), "stretches of y, {s:?}");
    });
    compare::<T>("input_grad", s, &dx, |means, out| {
        // SAFETY: as above.
        unsafe { input_grad::run(means, s, g.as_ptr(), w.as_ptr(), out) };
    });
    compare::<T>("weight_grad", s, &dw, |means, out| {
        // SAFETY: as above.
        unsafe { weight_grad::run(means, s, x.as_ptr(), g.as_ptr(), out) };
    });
}

#[test]
fn all_directions_in_f32() {
    cases().iter().for_each(check::<f32>);
}

#[test]
fn all_directions_in_f64() {
    cases().iter().for_each(check::<f64>);
}
