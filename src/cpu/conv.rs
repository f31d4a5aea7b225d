//! tmp naive
use std::ops::Range;
pub struct ConvShape {
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
pub trait F: Copy + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + Default {}
impl F for f32 {}
impl F for f64 {}
unsafe fn each(s: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let (ig, og) = (s.in_channels / s.groups, s.out_channels / s.groups);
    for n in 0..s.batch {
        for o in 0..s.out_channels {
            let g = o / og;
            for y in 0..s.output[0] {
                for x in 0..s.output[1] {
                    for c in 0..ig {
                        for a in 0..s.kernel[0] {
                            for b in 0..s.kernel[1] {
                                let iy =
                                    (y * s.stride[0] + a * s.dilation[0]) as isize - s.padding[0] as isize;
                                let ix =
                                    (x * s.stride[1] + b * s.dilation[1]) as isize - s.padding[1] as isize;
                                if iy < 0 || ix < 0 || iy >= s.input[0] as isize || ix >= s.input[1] as isize
                                {
                                    continue;
                                }
                                f(
                                    ((n * s.in_channels + g * ig + c) * s.input[0] + iy as usize)
                                        * s.input[1]
                                        + ix as usize,
                                    ((o * ig + c) * s.kernel[0] + a) * s.kernel[1] + b,
                                    ((n * s.out_channels + o) * s.output[0] + y) * s.output[1] + x,
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
pub unsafe fn forward<T: F>(
    s: &ConvShape,
    x: *const T,
    w: *const T,
    y: *mut T,
    done: &(dyn Fn(Range<usize>) + Sync),
) {
    unsafe {
        let n = s.batch * s.out_channels * s.output[0] * s.output[1];
        for i in 0..n {
            *y.add(i) = T::default();
        }
        each(s, |a, b, c| {
            *y.add(c) = *y.add(c) + *x.add(a) * *w.add(b);
        });
        done(0..n);
    }
}
pub unsafe fn input_grad<T: F>(s: &ConvShape, g: *const T, w: *const T, dx: *mut T) {
    unsafe {
        let n = s.batch * s.in_channels * s.input[0] * s.input[1];
        for i in 0..n {
            *dx.add(i) = T::default();
        }
        each(s, |a, b, c| {
            *dx.add(a) = *dx.add(a) + *g.add(c) * *w.add(b);
        });
    }
}
pub unsafe fn weight_grad<T: F>(s: &ConvShape, x: *const T, g: *const T, dw: *mut T) {
    unsafe {
        let n = s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1];
        for i in 0..n {
            *dw.add(i) = T::default();
        }
        each(s, |a, b, c| {
            *dw.add(b) = *dw.add(b) + *g.add(c) * *x.add(a);
        });
    }
}
