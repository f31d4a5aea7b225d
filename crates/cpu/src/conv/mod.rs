//! Two-dimensional convolution on the CPU: forward and both gradients, as matrix products whose
//! operands are gathered from the images while they are packed.

mod columns;
mod depthwise;
mod forward;
mod image;
mod input_grad;
#[cfg(test)]
mod tests;
mod weight_grad;

use super::gemm::{Accumulator, kernel::Kernel};
use crate::threads;
use std::ops::Range;

/// The sizes of a convolution; channels are totals over all groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvShape {
    pub batch: usize,
    pub groups: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub input: [usize; 2],
    pub kernel: [usize; 2],
    pub output: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

impl ConvShape {
    /// Input channels of a group.
    fn inputs(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of a group.
    fn outputs(&self) -> usize {
        self.out_channels / self.groups
    }

    /// Positions of the kernel.
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Pixels of an output plane.
    fn out_pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Pixels of an input plane.
    fn in_pixels(&self) -> usize {
        self.input[0] * self.input[1]
    }

    /// Whether a dimension that all sums run over, or the output itself, is empty.
    fn is_empty(&self) -> bool {
        self.batch * self.in_channels * self.out_channels * self.taps() == 0
            || self.in_pixels() * self.out_pixels() == 0
    }

    /// Rows (or columns, for axis 1) of the padded input that the windows cover.
    fn reach(&self, axis: usize) -> usize {
        (self.output[axis] - 1) * self.stride[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    /// Whether every output channel sees a single input channel, and few do the same one.
    fn is_depthwise(&self) -> bool {
        self.inputs() == 1 && self.outputs() <= 2
    }
}

/// How the work is done; tests try all ways.
#[derive(Clone, Copy)]
struct Means<T: 'static> {
    kernel: &'static Kernel<T>,
    threads: usize,
}

impl<T: Accumulator> Means<T> {
    fn best() -> Means<T> {
        Means { kernel: T::kernel(), threads: threads::count() }
    }

    /// Runs tasks on the pool, or inline.
    fn each(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if self.threads <= 1 {
            (0..tasks).for_each(f);
        } else {
            threads::parallel_for(tasks, f);
        }
    }
}

/// Computes y from x (both NCHW, contiguous) and w (`[O, I/groups, KH, KW]`). `done` is called once
/// for every finished stretch of y, from the thread that finished it; they are disjoint and cover y,
/// and none crosses from one image to the next.
///
/// # Safety
/// x and w are readable, y is writable, and their sizes are those of the shape.
pub(crate) unsafe fn forward<T: Accumulator>(
    s: &ConvShape,
    x: *const T,
    w: *const T,
    y: *mut T,
    done: &(dyn Fn(Range<usize>) + Sync),
) {
    // SAFETY: passed on from the caller.
    unsafe { forward::run(Means::best(), s, x, w, y, done) }
}

/// Computes the gradient dx of the input from g, that of the output. Inputs that no window reaches
/// get 0.
///
/// # Safety
/// g and w are readable, dx is writable, and their sizes are those of the shape.
pub(crate) unsafe fn input_grad<T: Accumulator>(s: &ConvShape, g: *const T, w: *const T, dx: *mut T) {
    // SAFETY: passed on from the caller.
    unsafe { input_grad::run(Means::best(), s, g, w, dx) }
}

/// Computes the gradient dw of the weights from the input x and the gradient g of the output.
///
/// # Safety
/// x and g are readable, dw is writable, and their sizes are those of the shape.
pub(crate) unsafe fn weight_grad<T: Accumulator>(s: &ConvShape, x: *const T, g: *const T, dw: *mut T) {
    // SAFETY: passed on from the caller.
    unsafe { weight_grad::run(Means::best(), s, x, g, dw) }
}
