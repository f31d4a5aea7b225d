//! Runs the kernels on the inputs of a test, in a choice of layouts.

use super::super::backward::Backward;
use super::super::float::Float;
use super::super::forward::Forward;
use super::super::isa::Level;
use super::super::{AttentionShape, Rows};
use super::reference::{Inputs, Outputs};

/// How a `[batch, heads, rows, columns]` input lies in memory.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    Contiguous,
    /// `[batch, rows, heads, columns]`.
    HeadsInside,
    /// `[batch, heads, columns, rows]`.
    ColumnMajor,
    /// The last row first: a negative stride.
    Reversed,
}

/// Which dimensions of the mask are passed on with a stride of 0.
pub type Broadcast = [bool; 4];

/// An element that shows up in no sane result: outputs start out as this.
const POISON: f64 = -12345.0;

struct Stored<T> {
    data: Vec<T>,
    start: usize,
    strides: [isize; 4],
}

impl<T: Float> Stored<T> {
    fn new(x: &[f64], sizes: [usize; 4], layout: Layout) -> Self {
        let [_, heads, rows, cols] = sizes.map(|n| n as isize);
        let batch = heads * rows * cols;
        let (strides, start) = match layout {
            Layout::Contiguous => ([batch, rows * cols, cols, 1], 0),
            Layout::HeadsInside => ([batch, cols, heads * cols, 1], 0),
            Layout::ColumnMajor => ([batch, rows * cols, 1, rows], 0),
            Layout::Reversed => ([batch, rows * cols, -cols, 1], (rows - 1).max(0) * cols),
        };
        let mut data = vec![T::ZERO; x.len()];
        for (i, &value) in x.iter().enumerate() {
            let mut rest = i;
            let mut at = start;
            for d in (0..4).rev() {
                at += (rest % sizes[d]) as isize * strides[d];
                rest /= sizes[d];
            }
            data[at as usize] = T::from_f64(value);
        }
        Self { data, start: start as usize, strides }
    }

    fn rows(&self) -> Rows<T> {
        let [batch, head, row, col] = self.strides;
        Rows { data: self.data.as_ptr().wrapping_add(self.start), batch, head, row, col }
    }
}

/// A gradient that is written: dense, or with three of them, one row of all heads each, side by side.
struct Written<T> {
    data: Vec<T>,
    sizes: [usize; 4],
    strides: [usize; 4],
}

impl<T: Float + Into<f64>> Written<T> {
    fn new(sizes: [usize; 4], layout: Layout) -> Self {
        let [batch, heads, rows, cols] = sizes;
        let row = 3 * heads * cols;
        let (strides, count) = match layout {
            Layout::HeadsInside => ([rows * row, cols, row, 1], batch * rows * row),
            _ => ([heads * rows * cols, rows * cols, cols, 1], batch * heads * rows * cols),
        };
        Self { data: vec![T::from_f64(POISON); count], sizes, strides }
    }

    fn rows(&mut self) -> Rows<T> {
        let [batch, head, row, col] = self.strides.map(|n| n as isize);
        Rows { data: self.data.as_mut_ptr().cast_const(), batch, head, row, col }
    }

    /// Its elements in order. Nothing else may have been written.
    fn plain(mut self) -> Vec<f64> {
        let mut out = Vec::new();
        for i in 0..self.sizes.iter().product() {
            let (mut rest, mut at) = (i, 0);
            for d in (0..4).rev() {
                at += rest % self.sizes[d] * self.strides[d];
                rest /= self.sizes[d];
            }
            out.push(std::mem::replace(&mut self.data[at], T::from_f64(POISON)).into());
        }
        assert!(self.data.iter().all(|&x| x.into() == POISON), "written between the rows");
        out
    }
}

pub fn sizes(s: &AttentionShape) -> [[usize; 4]; 5] {
    let of = |rows, cols| [s.batch, s.heads, rows, cols];
    [
        of(s.queries, s.width),
        of(s.keys, s.width),
        of(s.keys, s.value_width),
        of(s.queries, s.value_width),
        of(s.queries, s.keys),
    ]
}

/// Runs forward and backward. With `broadcast`, the mask must not vary there.
pub fn run<T: Float + Into<f64>>(
    x: &Inputs,
    level: Level,
    threads: usize,
    layout: Layout,
    broadcast: Broadcast,
) -> Outputs {
    let s = &x.shape;
    let sizes = sizes(s);
    let q = Stored::<T>::new(&x.q, sizes[0], layout);
    let k = Stored::<T>::new(&x.k, sizes[1], layout);
    let v = Stored::<T>::new(&x.v, sizes[2], layout);
    let grad = Stored::<T>::new(&x.grad, sizes[3], layout);
    let mut mask = x.mask.as_ref().map(|m| Stored::<T>::new(m, sizes[4], layout));
    if let Some(mask) = &mut mask {
        for (stride, zero) in mask.strides.iter_mut().zip(broadcast) {
            if zero {
                *stride = 0;
            }
        }
        if broadcast[2] && matches!(layout, Layout::Reversed) {
            mask.start = 0;
        }
    }
    let mask = mask.as_ref().map(Stored::rows);
    let new = |len: usize| vec![T::from_f64(POISON); len];
    let (heads, kept) = (s.batch * s.heads, super::super::kept(mask.is_some()));
    let (mut out, mut lse) = (new(x.grad.len()), new(heads * s.queries * kept));
    let [head, row] = [s.queries * s.value_width, s.value_width].map(|n| n as isize);
    let written =
        Rows { data: out.as_mut_ptr().cast_const(), batch: head * s.heads as isize, head, row, col: 1 };
    level.with(Forward {
        shape: s,
        threads,
        q: q.rows(),
        k: k.rows(),
        v: v.rows(),
        mask,
        out: written,
        lse: lse.as_mut_ptr(),
    });
    let [mut dq, mut dk, mut dv] = [0, 1, 2].map(|k| Written::<T>::new(sizes[k], layout));
    let mut dmask = new(heads * s.queries * s.keys);
    let plain = |x: &[T]| x.iter().map(|&x| x.into()).collect::<Vec<f64>>();
    let stored = Stored::<T>::new(&plain(&out), sizes[3], layout);
    let grad_lse: Option<Vec<T>> = x.grad_lse.as_ref().map(|g| g.iter().map(|&g| T::from_f64(g)).collect());
    level.with(Backward {
        shape: s,
        threads,
        q: q.rows(),
        k: k.rows(),
        v: v.rows(),
        mask,
        out: stored.rows(),
        lse: lse.as_ptr(),
        grad: grad.rows(),
        grad_lse: grad_lse.as_ref().map(|g| g.as_ptr()),
        dq: dq.rows(),
        dk: dk.rows(),
        dv: dv.rows(),
        dmask: Some(dmask.as_mut_ptr()),
    });
    Outputs {
        out: plain(&out),
        lse: plain(&lse).into_iter().step_by(kept).collect(),
        dq: dq.plain(),
        dk: dk.plain(),
        dv: dv.plain(),
        dmask: plain(&dmask),
    }
}
