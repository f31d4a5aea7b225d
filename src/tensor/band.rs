//! Weighted sums of neighbours along an axis: products with a matrix that is zero outside of a band. Only the band is read, so
//! that an infinity reaches no sum that it has no weight in. The gradient is the product with the transposed matrix, which has
//! a band, too.

use super::Tensor;
use crate::autograd::{no_grad, with_own_gradient};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{OwnGradient, ReduceOp};
use crate::shape::Shape;
use std::sync::Arc;

/// The matrix of an axis on its way to another extent: a row for every new place, a column for every old one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub axis: usize,
    pub from: usize,
    pub to: usize,
    pub weights: Weights,
}

/// What stands in the band.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weights {
    /// New place `o` lies at `step`·o + `offset`, held between the first and the last old one, and is made of the two old
    /// ones beside it.
    Linear { step: f64, offset: f64 },
    /// The axis is cut into as many parts as there are new places, which may differ by one old place and then overlap; each is
    /// the mean of its part.
    Mean,
}

/// The columns that a row may have weights in: `width` of them from the `first` on, which each row has its own of.
struct Window {
    first: Tensor,
    width: usize,
}

/// The first of `of` places that part `row` of `parts` has, and the one behind its last.
fn part(row: &Tensor, parts: usize, of: usize) -> Result<(Tensor, Tensor)> {
    // Whole places for every part, and the rest shared out: the product of both extents may not be an i32.
    let (each, rest) = (of / parts, of % parts);
    let start = row.try_mul(each)?.try_add(row.try_mul(rest)?.try_floor_divide(parts)?)?;
    let next = row.try_add(1)?;
    let shared = next.try_mul(rest)?.try_add(parts - 1)?.try_floor_divide(parts)?;
    Ok((start, next.try_mul(each)?.try_add(shared)?))
}

/// The most places that a part has.
fn longest_part(parts: usize, of: usize) -> usize {
    (0..parts).map(|k| ((k + 1) * of).div_ceil(parts) - k * of / parts).max().unwrap_or(0)
}

impl Band {
    /// Every new place as a sum of old ones.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        recorded(x, *self, false)
    }

    /// Where new places `o` lie among the old ones.
    fn place(&self, o: &Tensor, dtype: DType, step: f64, offset: f64) -> Result<Tensor> {
        let place = o.try_to_dtype(dtype)?.try_mul(step)?.try_add(offset)?;
        place.try_clamp(Some(0.0), Some((self.from - 1) as f64))
    }

    /// The weight of old places `i` in new places `o`.
    fn weight(&self, o: &Tensor, i: &Tensor, dtype: DType) -> Result<Tensor> {
        match self.weights {
            Weights::Linear { step, offset } => {
                // A hat of width 2 around the place.
                let away = self.place(o, dtype, step, offset)?.try_sub(&i.try_to_dtype(dtype)?)?.try_abs()?;
                (1.0 - away).try_relu()
            }
            Weights::Mean => {
                let (start, end) = part(o, self.to, self.from)?;
                let inside = i.try_ge(&start)?.try_logical_and(&i.try_lt(&end)?)?;
                inside.try_where_(&end.try_sub(&start)?.try_to_dtype(dtype)?.try_recip()?, 0.0)
            }
        }
    }

    /// The old places that each new place is made of; transposed, the new places that each old one is part of.
    fn window(&self, row: &Tensor, dtype: DType, transposed: bool) -> Result<Window> {
        let (rows, columns) = if transposed { (self.from, self.to) } else { (self.to, self.from) };
        let (first, width) = match self.weights {
            Weights::Mean => (part(row, rows, columns)?.0, longest_part(rows, columns)),
            Weights::Linear { step, offset } if !transposed => {
                (self.place(row, dtype, step, offset)?.try_floor()?.try_to_dtype(DType::I32)?, 2)
            }
            Weights::Linear { step, offset } if step > 0.0 => {
                // Those less than 1 away; one more at the end, since what is nearly whole may round down.
                let low = row.try_to_dtype(dtype)?.try_sub(1.0 + offset)?.try_div(step)?;
                (low.try_floor()?.try_to_dtype(DType::I32)?, (2.0 / step).ceil() as usize + 2)
            }
            Weights::Linear { .. } => (row.clone(), columns),
        };
        if width >= columns {
            return Ok(Window { first: first.zeros_like(), width: columns });
        }
        Ok(Window { first, width })
    }

    fn product(&self, x: &Tensor, transposed: bool) -> Result<Tensor> {
        let (rows, columns) = if transposed { (self.from, self.to) } else { (self.to, self.from) };
        let (axis, shape, dtype) = (self.axis, x.shape(), x.dtype());
        let window = self.window(&x.index_rule(0, Shape::new(&[rows, 1])?, DType::I32), dtype, transposed)?;
        let grid = Shape::new(&[rows, window.width])?;
        let column = window.first.expand_to(grid)?.try_add(x.index_rule(1, grid, DType::I32))?;
        let exists = column.try_ge(0)?.try_logical_and(&column.try_lt(columns)?)?;
        let row = x.index_rule(0, grid, DType::I32);
        let (o, i) = if transposed { (&column, &row) } else { (&row, &column) };
        let weight = exists.try_where_(&self.weight(o, i, dtype)?, 0.0)?;
        let column = column.try_maximum(0)?.try_minimum(columns - 1)?;

        let taken = x.try_index_select(axis as isize, &column.reshape_to(Shape::of(&[grid.numel()]))?)?;
        let mut extents = shape.to_vec();
        extents[axis] = rows;
        extents.insert(axis + 1, window.width);
        let taken = taken.reshape_to(Shape::new(&extents)?)?;
        let mut view = vec![1; extents.len()];
        view[axis..axis + 2].copy_from_slice(&grid);
        let weight = weight.reshape_to(Shape::of(&view))?;
        // Nothing times infinity is not nothing.
        let parts = weight.try_ne(0.0)?.try_where_(&taken.try_mul(&weight)?, 0.0)?;
        extents.remove(axis + 1);
        parts.reduce_mask(ReduceOp::Sum, 1 << (axis + 1))?.reshape_to(Shape::of(&extents))
    }
}

/// The product, which knows its gradient.
fn recorded(x: &Tensor, band: Band, transposed: bool) -> Result<Tensor> {
    let value = no_grad(|| band.product(&x.detach(), transposed))?;
    Ok(with_own_gradient(&value, std::slice::from_ref(x), Arc::new(Product { band, transposed })))
}

struct Product {
    band: Band,
    transposed: bool,
}

impl OwnGradient for Product {
    fn gradients(&self, _: &[Tensor], _: &Tensor, gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(recorded(gradient, self.band, !self.transposed)?)])
    }
}
