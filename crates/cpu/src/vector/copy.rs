//! Gathering one strided run of memory into a block.

use super::isa::leveled;

/// out[i] = src[i * stride].
///
/// # Safety
/// For every i below `out.len()`, `src.offset(i * stride)` must be readable, properly aligned,
/// within one allocation, and not part of `out`.
pub(crate) unsafe fn copy_strided<T: Copy>(src: *const T, stride: isize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    match stride {
        // SAFETY: lane 0 exists and is readable.
        0 => out.fill(unsafe { *src }),
        // SAFETY: with stride one the run is a slice of `out.len()` readable lanes.
        1 => out.copy_from_slice(unsafe { std::slice::from_raw_parts(src, out.len()) }),
        _ => gather(Run { src, stride }, out),
    }
}

/// A run that `copy_strided` has vouched for.
#[derive(Clone, Copy)]
struct Run<T> {
    src: *const T,
    stride: isize,
}

/// Copies a run whose stride is known where this is inlined, so that it becomes shuffles.
#[inline(always)]
fn fixed<T: Copy>(src: *const T, stride: isize, out: &mut [T]) {
    for (i, o) in out.iter_mut().enumerate() {
        // SAFETY: lane i of the run is readable, which `copy_strided` asks of its caller.
        *o = unsafe { *src.offset(i as isize * stride) };
    }
}

leveled! {
    fn gather[T: Copy](run: Run<T>, out: &mut [T]) {
        match run.stride {
            -1 => fixed(run.src, -1, out),
            2 => fixed(run.src, 2, out),
            3 => fixed(run.src, 3, out),
            4 => fixed(run.src, 4, out),
            stride => fixed(run.src, stride, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stride() {
        let x: Vec<i32> = (0..2000).collect();
        for n in [0usize, 1, 7, 100] {
            for stride in -9isize..=9 {
                let mut out = vec![-1; n];
                // SAFETY: lane 1000 lies more than 9 * 100 lanes from either end.
                unsafe { copy_strided(x.as_ptr().add(1000), stride, &mut out) };
                assert!(out.iter().enumerate().all(|(i, &o)| o as isize == 1000 + i as isize * stride));
            }
        }
    }
}
