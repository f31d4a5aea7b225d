//! Images laid out so that windows can be read from them without looking at borders or strides.

use super::ConvShape;
use super::columns::push_run;
use crate::gemm::Accumulator;
use crate::gemm::kernel::{Kernel, Run};
use std::ops::Range;

/// How the channels of a group are laid out for reading along output rows: padded, and with the
/// columns sorted by their remainder modulo the stride, so that a row of outputs reads neighbours.
pub(super) struct Planes {
    /// The image is read where it is.
    pub in_place: bool,
    plane: usize,
    pitch: usize,
    /// Columns of each remainder.
    phase: usize,
    /// Remainders that some kernel column has.
    phases: Vec<usize>,
    /// Rows of the padded input that some kernel row has, relative to an output row.
    rows: usize,
}

impl Planes {
    /// The layout for reading `out_rows` rows of output.
    pub fn new(s: &ConvShape, out_rows: usize) -> Planes {
        let rows = (out_rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
        // The padding may be 0 and the windows still pass the border, in a transposed problem.
        let inside = s.padding == [0, 0] && (0..2).all(|axis| s.reach(axis) <= s.input[axis]);
        if inside && s.stride[1] == 1 {
            let (plane, pitch) = (s.in_pixels(), s.input[1]);
            return Planes { in_place: true, plane, pitch, phase: pitch, phases: vec![0], rows };
        }
        let mut phases: Vec<usize> = (0..s.kernel[1]).map(|kw| kw * s.dilation[1] % s.stride[1]).collect();
        phases.sort_unstable();
        phases.dedup();
        let phase = s.output[1] + (s.kernel[1] - 1) * s.dilation[1] / s.stride[1];
        let pitch = phase * phases.len();
        Planes { in_place: false, plane: rows * pitch, pitch, phase, phases, rows }
    }

    /// Elements of the layout of a group.
    pub fn len(&self, s: &ConvShape) -> usize {
        if self.in_place { 0 } else { self.plane * s.inputs() }
    }

    /// Where the input of each (channel, kernel row, kernel column) is, for the first output.
    pub fn taps(&self, s: &ConvShape) -> Vec<isize> {
        let mut taps = Vec::with_capacity(s.inputs() * s.taps());
        for c in 0..s.inputs() {
            for kh in 0..s.kernel[0] {
                for kw in 0..s.kernel[1] {
                    let (column, remainder) =
                        (kw * s.dilation[1] / s.stride[1], kw * s.dilation[1] % s.stride[1]);
                    let phase = self.phases.iter().position(|&p| p == remainder).unwrap_or(0);
                    let row = kh * s.dilation[0];
                    let at = c * self.plane + row * self.pitch + phase * self.phase + column;
                    taps.push(at as isize);
                }
            }
        }
        taps
    }

    /// How far apart the inputs of consecutive output rows are.
    pub fn row_stride(&self, s: &ConvShape) -> usize {
        s.stride[0] * self.pitch
    }

    /// How far apart the layouts of consecutive images are.
    pub fn image_stride(&self, s: &ConvShape) -> usize {
        if self.in_place { s.in_channels * s.in_pixels() } else { self.len(s) }
    }

    /// Where the outputs of some rows of some images are, relative to the first.
    pub fn outputs(&self, s: &ConvShape, images: usize, out_rows: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        for image in 0..images {
            for row in 0..out_rows {
                let at = image * self.image_stride(s) + row * s.stride[0] * self.pitch;
                push_run(&mut runs, s.output[1], at as isize);
            }
        }
        runs
    }

    /// Copies what the given output rows read from the group's channels `x` into the layout.
    ///
    /// # Safety
    /// `x` is readable, and `dst` takes `len` elements.
    pub unsafe fn fill<T: Accumulator>(
        &self,
        s: &ConvShape,
        x: *const T,
        out_rows: Range<usize>,
        dst: *mut T,
    ) {
        let [height, width] = s.input;
        let [top, left] = s.padding;
        let stride = s.stride[1];
        let first = out_rows.start * s.stride[0];
        let rows = (out_rows.len() - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
        debug_assert!(rows <= self.rows);
        for c in 0..s.inputs() {
            for row in 0..rows {
                let at = dst.wrapping_add(c * self.plane + row * self.pitch);
                // SAFETY: the row lies inside the layout.
                let line = unsafe { std::slice::from_raw_parts_mut(at, self.pitch) };
                let from = first + row;
                if from < top || from >= top + height {
                    line.fill(T::default());
                    continue;
                }
                if !self.is_read(s, row, out_rows.len()) {
                    continue;
                }
                let start = c * height * width + (from - top) * width;
                // SAFETY: the row lies inside the image.
                let source = unsafe { std::slice::from_raw_parts(x.add(start), width) };
                for (part, &remainder) in line.chunks_exact_mut(self.phase).zip(&self.phases) {
                    // Column q holds input column q * stride + remainder - left.
                    let low = left.saturating_sub(remainder).div_ceil(stride).min(self.phase);
                    let high = (width + left).saturating_sub(remainder).div_ceil(stride);
                    let high = high.clamp(low, self.phase);
                    part[..low].fill(T::default());
                    part[high..].fill(T::default());
                    if low == high {
                        continue;
                    }
                    let source = &source[low * stride + remainder - left..];
                    if stride == 1 {
                        part[low..high].copy_from_slice(&source[..high - low]);
                    } else {
                        for (slot, &v) in part[low..high].iter_mut().zip(source.iter().step_by(stride)) {
                            *slot = v;
                        }
                    }
                }
            }
        }
    }

    /// Whether some output row reads a row of the layout.
    fn is_read(&self, s: &ConvShape, row: usize, out_rows: usize) -> bool {
        s.stride[0] == 1
            || (0..s.kernel[0]).any(|kh| {
                let shift = kh * s.dilation[0];
                row >= shift
                    && (row - shift).is_multiple_of(s.stride[0])
                    && (row - shift) / s.stride[0] < out_rows
            })
    }
}

/// How some channels are laid out for reading all channels of a pixel at once: padded, rows of
/// pixels, channels innermost.
pub(super) struct Pixels {
    channels: usize,
    rows: usize,
    columns: usize,
}

impl Pixels {
    pub fn new(s: &ConvShape, channels: usize) -> Pixels {
        let size = |axis| s.reach(axis).max(s.padding[axis] + s.input[axis]);
        Pixels { channels, rows: size(0), columns: size(1) }
    }

    pub fn len(&self) -> usize {
        self.rows * self.columns * self.channels
    }

    /// Where the (kernel row, kernel column, channel)s of a window are, relative to its first.
    pub fn taps(&self, s: &ConvShape) -> Vec<Run> {
        let mut runs = Vec::new();
        for kh in 0..s.kernel[0] {
            for kw in 0..s.kernel[1] {
                let pixel = kh * s.dilation[0] * self.columns + kw * s.dilation[1];
                push_run(&mut runs, self.channels, (pixel * self.channels) as isize);
            }
        }
        runs
    }

    /// Where the window of each output of some images starts, their layouts following each other.
    pub fn outputs(&self, s: &ConvShape, images: usize) -> Vec<isize> {
        let mut starts = Vec::with_capacity(images * s.out_pixels());
        for image in 0..images {
            for oh in 0..s.output[0] {
                for ow in 0..s.output[1] {
                    let pixel = oh * s.stride[0] * self.columns + ow * s.stride[1];
                    starts.push((image * self.len() + pixel * self.channels) as isize);
                }
            }
        }
        starts
    }

    /// Clears the layouts of some images; the padding then stays as it is.
    ///
    /// # Safety
    /// `dst` takes `len` elements for each.
    pub unsafe fn clear<T: Accumulator>(&self, dst: *mut T, images: usize) {
        // SAFETY: passed on from the caller.
        unsafe { std::slice::from_raw_parts_mut(dst, self.len() * images).fill(T::default()) };
    }

    /// Copies the channels at `x` into the layout.
    ///
    /// # Safety
    /// `x` is readable, and `dst` takes `len` elements.
    pub unsafe fn fill<T: Accumulator>(&self, kernel: &Kernel<T>, s: &ConvShape, x: *const T, dst: *mut T) {
        let [height, width] = s.input;
        for row in 0..height {
            let pixel = (row + s.padding[0]) * self.columns + s.padding[1];
            // SAFETY: the row lies inside the image, and its place inside the layout.
            unsafe {
                (kernel.transpose)(
                    x.add(row * width),
                    (height * width) as isize,
                    self.channels,
                    width,
                    dst.add(pixel * self.channels),
                    self.channels,
                );
            }
        }
    }
}
