//! Makes random programs: elementwise ops, views, reductions, products, diamonds of shared values.

use crate::program::{OnArrays, OnTensors, Program, Step};
use crate::random::Random;
use crate::reference::{Array, common_shape, sigmoid};
use crate::tables::{KINKED, PAIRS, SMOOTH};
use volta::{Range, Tensor};

/// How large the tensors of a program are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// What extents are chosen from.
    extents: &'static [usize],
    /// The most elements of one tensor.
    most: usize,
}

pub const SMALL: Sizes = Sizes { extents: &[1, 2, 3, 4, 5, 7], most: 300 };

/// Rows and columns that are walked over in parts, or shared out among threads and workgroups.
pub const LARGE: Sizes =
    Sizes { extents: &[1, 3, 4, 64, 128, 130, 1000, 2048, 2050, 3000, 4096], most: 300_000 };

pub struct Maker<'a> {
    random: &'a mut Random,
    sizes: Sizes,
    shapes: Vec<Vec<usize>>,
    program: Program,
    kinks: bool,
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

impl Maker<'_> {
    /// A program of about `length` steps; without corners if its gradient is to be compared in f32.
    pub fn make(random: &mut Random, sizes: Sizes, length: usize, kinks: bool) -> Program {
        let program = Program { leaves: vec![], steps: vec![], outputs: vec![], detaches: false };
        let mut maker = Maker { random, sizes, shapes: vec![], program, kinks };
        for _ in 0..2 + maker.random.below(3) {
            let rank = maker.random.below(4);
            let mut shape: Vec<usize> =
                (0..rank).map(|_| sizes.extents[maker.random.below(sizes.extents.len())]).collect();
            while count(&shape) > sizes.most {
                shape.pop();
            }
            maker.shapes.push(shape.clone());
            maker.program.leaves.push(shape);
        }
        while maker.program.steps.len() < length {
            maker.step();
        }
        // What nobody uses, and some of what somebody does.
        let used: Vec<usize> = maker.program.steps.iter().flat_map(|s| s.inputs.clone()).collect();
        for k in maker.program.leaves.len()..maker.shapes.len() {
            if !used.contains(&k) || maker.random.below(10) == 0 {
                maker.program.outputs.push(k);
            }
        }
        maker.program
    }

    /// A value: most often a recent one.
    fn pick(&mut self) -> usize {
        let all = self.shapes.len();
        if self.random.below(3) > 0 {
            all - 1 - self.random.below(all.min(4))
        } else {
            self.random.below(all)
        }
    }

    fn pick_of_rank(&mut self, least: usize) -> Option<usize> {
        for _ in 0..8 {
            let k = self.pick();
            if self.shapes[k].len() >= least {
                return Some(k);
            }
        }
        None
    }

    fn pick_with_axes(&mut self) -> Option<usize> {
        self.pick_of_rank(1)
    }

    fn push(
        &mut self,
        name: impl Into<String>,
        inputs: &[usize],
        shape: Vec<usize>,
        tensor: impl Fn(&[&Tensor]) -> Tensor + 'static,
        array: impl Fn(&[&Array]) -> Array + 'static,
    ) -> usize {
        let name = format!("{} {shape:?}", name.into());
        self.shapes.push(shape);
        let (tensor, array): (OnTensors, OnArrays) = (Box::new(tensor), Box::new(array));
        self.program.steps.push(Step { name, inputs: inputs.to_vec(), tensor, array });
        self.shapes.len() - 1
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=4 => self.unary(),
            5..=8 => self.binary(),
            9..=12 => self.movement(),
            13..=15 => self.reduction(),
            16 => self.product(),
            17 => self.pattern(),
            18 => self.indexing(),
            _ => self.choice(),
        }
    }

    fn unary(&mut self) {
        let x = self.pick();
        let all = SMOOTH.len() + if self.kinks { KINKED.len() } else { 0 };
        let (name, tensor, array) =
            *SMOOTH.iter().chain(KINKED).nth(self.random.below(all)).expect("one of them");
        self.push(name, &[x], self.shapes[x].clone(), move |x| tensor(x[0]), move |x| x[0].map(array));
    }

    /// Another value that broadcasts with the first, in a shape that is not too large.
    fn partner(&mut self, x: usize) -> usize {
        for _ in 0..8 {
            let y = self.pick();
            let (a, b) = (self.shapes[x].clone(), self.shapes[y].clone());
            let fits = a.iter().rev().zip(b.iter().rev()).all(|(&m, &n)| m == n || m == 1 || n == 1);
            if fits && count(&common_shape(&a, &b)) <= self.sizes.most {
                return y;
            }
        }
        x
    }

    fn binary(&mut self) {
        let x = self.pick();
        let y = self.partner(x);
        let (name, tensor, array) = PAIRS[self.random.below(PAIRS.len())];
        let shape = common_shape(&self.shapes[x], &self.shapes[y]);
        self.push(name, &[x, y], shape, move |x| tensor(x[0], x[1]), move |x| x[0].zip(x[1], array));
    }

    fn movement(&mut self) {
        let Some(x) = self.pick_with_axes() else { return self.unary() };
        let shape = self.shapes[x].clone();
        let (rank, axis) = (shape.len(), self.random.below(shape.len()));
        let (k, extent) = (axis as isize, shape[axis]);
        let with = |e: usize| {
            let mut s = shape.clone();
            s[axis] = e;
            s
        };
        match self.random.below(7) {
            0 => {
                let order = self.random.order(rank);
                let to: Vec<usize> = order.iter().map(|&o| shape[o]).collect();
                let naive = order.clone();
                self.push(
                    format!("permute {order:?}"),
                    &[x],
                    to,
                    move |x| x[0].permute(&order),
                    move |x| x[0].permute(&naive),
                );
            }
            1 => {
                let mut to = vec![count(&shape)];
                for divisor in [2, 3] {
                    if to[0].is_multiple_of(divisor) && self.random.below(2) == 0 {
                        to[0] /= divisor;
                        to.push(divisor);
                    }
                }
                let naive = to.clone();
                self.push(
                    "reshape",
                    &[x],
                    to.clone(),
                    move |x| x[0].reshape(&to),
                    move |x| x[0].reshape(&naive),
                );
            }
            2 if rank < 4 && count(&shape) * 3 <= self.sizes.most => {
                let mut one = shape.clone();
                one.insert(axis, 1);
                let mut to = one.clone();
                to[axis] = 3;
                let naive = to.clone();
                self.push(
                    "unsqueeze and expand",
                    &[x],
                    to.clone(),
                    move |x| x[0].unsqueeze(k).expand(&to),
                    move |x| x[0].reshape(&one).broadcast_to(&naive),
                );
            }
            3 => {
                let start = self.random.below(extent);
                let step = 1 + self.random.below(2);
                let kept = (extent - start).div_ceil(step);
                let ranges = move || -> Vec<Range> {
                    let mut all = vec![Range::from(..); axis];
                    all.push(Range::by(start as isize.., step));
                    all
                };
                self.push(
                    format!("slice {axis} from {start} by {step}"),
                    &[x],
                    with(kept),
                    move |x| x[0].slice(ranges()),
                    move |x| x[0].slice(axis, start, step, kept),
                );
            }
            4 if count(&with(extent + 2)) <= self.sizes.most => {
                let mut pads = vec![(0, 0); rank];
                pads[axis] = [(1, 1), (2, 0), (0, 2)][self.random.below(3)];
                let naive = pads.clone();
                self.push(
                    format!("pad {pads:?}"),
                    &[x],
                    with(extent + 2),
                    move |x| x[0].pad(&pads, 0.375),
                    move |x| x[0].pad(&naive, 0.375),
                );
            }
            5 if extent >= 3 && rank < 4 && count(&shape) * 2 <= self.sizes.most => {
                let mut to = with(extent - 1);
                to.push(2);
                let naive = to.clone();
                self.push(
                    format!("unfold {axis}"),
                    &[x],
                    to,
                    move |x| x[0].unfold(k, 2, 1),
                    move |x| {
                        Array::from_fn(&naive, |at| {
                            let (last, own) = at.split_last().expect("an axis");
                            let mut own = own.to_vec();
                            own[axis] += last;
                            x[0].at(&own)
                        })
                    },
                );
            }
            _ => {
                self.push(
                    format!("flip {axis}"),
                    &[x],
                    shape,
                    move |x| x[0].flip(k),
                    move |x| x[0].flip(&[axis]),
                );
            }
        }
    }

    fn reduction(&mut self) {
        let Some(x) = self.pick_with_axes() else { return self.unary() };
        let shape = self.shapes[x].clone();
        let axes: Vec<usize> = (0..shape.len()).filter(|_| self.random.below(2) == 0).collect();
        let axes = if axes.is_empty() { vec![shape.len() - 1] } else { axes };
        let keepdim = self.random.below(2) == 0;
        let folded: usize = axes.iter().map(|&a| shape[a]).product();
        let to: Vec<usize> = (0..shape.len())
            .filter(|k| keepdim || !axes.contains(k))
            .map(|k| if axes.contains(&k) { 1 } else { shape[k] })
            .collect();
        let (over, naive) = (axes.clone(), axes.clone());
        let scale = 1.0 / folded as f64;
        let root = scale.sqrt();
        match self.random.below(if self.kinks { 5 } else { 4 }) {
            0 => self.push(
                format!("mean {axes:?}"),
                &[x],
                to,
                move |x| x[0].mean_dim(&over, keepdim),
                move |x| x[0].mean_of(&naive, keepdim),
            ),
            1 => self.push(
                format!("√-scaled sum {axes:?}"),
                &[x],
                to,
                move |x| x[0].sum_dim(&over, keepdim) * root,
                move |x| x[0].sum_of(&naive, keepdim).map(|v| v * root),
            ),
            2 if folded <= 12 => self.push(
                format!("prod {axes:?}"),
                &[x],
                to,
                move |x| (x[0].sigmoid() + 0.5).prod_dim(&over, keepdim),
                move |x| x[0].map(|v| sigmoid(v) + 0.5).fold(&naive, keepdim, |g| g.iter().product()),
            ),
            4 => {
                // Far apart by what is added, so that no two are equal but for rounding.
                let spread = Array::from_fn(&shape, |at| {
                    at.iter().zip(&shape).fold(0, |place, (i, e)| place * e + i) as f64 * 0.618_034 % 1.0
                });
                let tensor = spread.clone();
                self.push(
                    format!("max {axes:?}"),
                    &[x],
                    to,
                    move |x| {
                        let spread = crate::tensor(tensor.data.clone(), &tensor.shape, x[0].dtype());
                        (x[0] * 0.5 + spread).max_dim(&over, keepdim)
                    },
                    move |x| {
                        x[0].map(|v| v * 0.5)
                            .add(&spread)
                            .fold(&naive, keepdim, |g| g.iter().copied().fold(f64::NEG_INFINITY, f64::max))
                    },
                )
            }
            _ => self.push(
                format!("mean of squares {axes:?}"),
                &[x],
                to,
                move |x| x[0].square().mean_dim(&over, keepdim),
                move |x| x[0].mul(x[0]).mean_of(&naive, keepdim),
            ),
        };
    }

    fn product(&mut self) {
        let Some(x) = self.pick_of_rank(2) else { return self.unary() };
        let shape = self.shapes[x].clone();
        let inner = shape[shape.len() - 1];
        let scale = 1.0 / inner as f64;
        // With another value if one fits, else with itself transposed.
        let fits = |s: &Vec<usize>| s.len() == 2 && s[0] == inner;
        let rows = count(&shape[..shape.len() - 1]);
        if rows * shape[shape.len() - 2] > self.sizes.most {
            return self.unary();
        }
        let small = |s: &Vec<usize>| rows * s[1] <= self.sizes.most;
        let other = (0..self.shapes.len()).rev().find(|&k| fits(&self.shapes[k]) && small(&self.shapes[k]));
        if let Some(y) = other.filter(|_| self.random.below(3) > 0) {
            let mut to = shape.clone();
            *to.last_mut().expect("an axis") = self.shapes[y][1];
            self.push(
                "matmul",
                &[x, y],
                to,
                move |x| x[0].matmul(x[1]) * scale,
                move |x| x[0].matmul(x[1]).map(|v| v * scale),
            );
        } else {
            let mut to = shape.clone();
            *to.last_mut().expect("an axis") = shape[shape.len() - 2];
            self.push(
                "matmul by its transpose",
                &[x],
                to,
                move |x| x[0].matmul(&x[0].t()) * scale,
                move |x| x[0].matmul(&x[0].t()).map(|v| v * scale),
            );
        }
    }

    /// Shapes of computation that planners look for: softmax and normalization, written out.
    fn pattern(&mut self) {
        let Some(x) = self.pick_with_axes() else { return self.unary() };
        let shape = self.shapes[x].clone();
        let axis = self.random.below(shape.len());
        let k = axis as isize;
        if self.random.below(2) == 0 {
            let softmax = move |x: &[&Tensor]| {
                let e = (x[0] - x[0].detach().max_dim(k, true)).exp();
                &e / e.sum_dim(k, true)
            };
            self.push(format!("softmax {axis}"), &[x], shape, softmax, move |x| x[0].softmax(axis));
        } else {
            let norm = move |x: &[&Tensor]| {
                let centred = x[0] - x[0].mean_dim(k, true);
                &centred * (centred.square().mean_dim(k, true) + 0.1).rsqrt()
            };
            self.push(format!("normalized {axis}"), &[x], shape, norm, move |x| {
                let centred = x[0].sub(&x[0].mean_of(&[axis], true));
                let spread = centred.mul(&centred).mean_of(&[axis], true).map(|v| (v + 0.1).sqrt());
                centred.div(&spread)
            });
        }
    }

    fn indexing(&mut self) {
        let Some(x) = self.pick_with_axes() else { return self.unary() };
        let shape = self.shapes[x].clone();
        let axis = self.random.below(shape.len());
        let (k, extent) = (axis as isize, shape[axis]);
        if self.random.below(2) == 0 {
            let scale = 1.0 / extent as f64;
            self.push(
                format!("cumsum {axis}"),
                &[x],
                shape,
                move |x| x[0].cumsum(k) * scale,
                move |x| {
                    x[0].along(axis, |line| {
                        let mut sum = 0.0;
                        line.iter()
                            .map(|v| {
                                sum += v;
                                sum * scale
                            })
                            .collect()
                    })
                },
            );
        } else {
            let index: Vec<i32> = (0..3).map(|_| self.random.below(extent) as i32).collect();
            let naive = index.clone();
            let mut to = shape.clone();
            to[axis] = 3;
            if count(&to) > self.sizes.most {
                return self.unary();
            }
            self.push(
                format!("index_select {axis} {index:?}"),
                &[x],
                to.clone(),
                move |x| x[0].index_select(k, &Tensor::from_slice(&index, [3])),
                move |x| {
                    Array::from_fn(&to, |at| {
                        let mut own = at.to_vec();
                        own[axis] = naive[at[axis]] as usize;
                        x[0].at(&own)
                    })
                },
            );
        }
    }

    /// Two values by a fixed mask, two joined, or one cut from the tape.
    fn choice(&mut self) {
        let x = self.pick();
        let shape = self.shapes[x].clone();
        let twins: Vec<usize> = (0..self.shapes.len()).filter(|&k| self.shapes[k] == shape).collect();
        let y = twins[self.random.below(twins.len())];
        match self.random.below(5) {
            0 => {
                self.program.detaches = true;
                self.push("detach", &[x], shape, |x| x[0].detach(), |x| x[0].clone());
            }
            1 | 2 if !shape.is_empty() && 2 * count(&shape) <= self.sizes.most => {
                let axis = self.random.below(shape.len());
                let mut to = shape.clone();
                to[axis] *= 2;
                let extent = shape[axis];
                self.push(
                    format!("cat {axis}"),
                    &[x, y],
                    to.clone(),
                    move |x| Tensor::cat(&[x[0], x[1]], axis as isize),
                    move |x| {
                        Array::from_fn(&to, |at| {
                            let mut own = at.to_vec();
                            own[axis] %= extent;
                            x[at[axis] / extent].at(&own)
                        })
                    },
                );
            }
            _ => {
                let mask: Vec<bool> = (0..count(&shape)).map(|_| self.random.below(2) == 0).collect();
                let (naive, extents) = (mask.clone(), shape.clone());
                self.push(
                    "where",
                    &[x, y],
                    shape,
                    move |x| Tensor::from_slice(&mask, &extents[..]).where_(x[0], x[1]),
                    move |x| {
                        let data = (0..naive.len())
                            .map(|k| if naive[k] { x[0].data[k] } else { x[1].data[k] })
                            .collect();
                        Array::new(&x[0].shape, data)
                    },
                );
            }
        }
    }
}
