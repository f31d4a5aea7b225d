//! Weighted sums of neighbours along an axis: products with a matrix that is zero outside of a band. Only the band is read, so
//! that an infinity reaches no sum that it has no weight in. The gradient is the product with the transposed matrix, which has
//! a band, too.

use super::Tensor;
use super::custom_gradient::{CustomGradient, with_own_gradient};
use crate::default_device::with_device;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::no_grad;
use crate::op::ReduceOp;
use crate::shape::Shape;
use std::sync::Arc;

/// A band of at most so many columns is summed by as many additions in one kernel.
const MAX_UNROLLED: usize = 8;

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

/// For every row of a matrix, the columns it has weights in: as many for each, row by row behind each other.
struct Columns {
    width: usize,
    /// The columns of all rows, first those that come first.
    index: Vec<i32>,
    weight: Vec<f64>,
    /// Whether some row has no weights.
    has_empty_rows: bool,
}

impl Columns {
    /// Of rows that list their columns and weights. A row with fewer than the others names its last column again, and shares
    /// the weight: halves of it add up to the same number, and nothing is multiplied by 0.
    fn of(mut rows: Vec<Vec<(usize, f64)>>) -> Columns {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let has_empty_rows = rows.iter().any(Vec::is_empty);
        for row in &mut rows {
            if row.is_empty() {
                row.push((0, 0.0));
            }
            while row.len() < width {
                let last = row.len() - 1;
                row[last].1 /= 2.0;
                row.push(row[last]);
            }
        }
        let each = |k: usize| rows.iter().map(move |row| row[k]);
        let index = (0..width).flat_map(|k| each(k).map(|(column, _)| column as i32)).collect();
        let weight = (0..width).flat_map(|k| each(k).map(|(_, weight)| weight)).collect();
        Columns { width, index, weight, has_empty_rows }
    }
}

impl Band {
    /// Every new place as a sum of old ones.
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        recorded(x, *self, false)
    }

    /// The old places that new place `o` is made of, with their weights.
    fn row(&self, o: usize) -> Vec<(usize, f64)> {
        match self.weights {
            Weights::Linear { step, offset } => {
                let place = (o as f64 * step + offset).clamp(0.0, (self.from - 1) as f64);
                let (below, part) = (place.floor() as usize, place.fract());
                let both = [(below, 1.0 - part), (below + 1, part)];
                both.into_iter().filter(|&(_, weight)| weight > 0.0).collect()
            }
            Weights::Mean => {
                let (start, end) = (o * self.from / self.to, ((o + 1) * self.from).div_ceil(self.to));
                (start..end).map(|i| (i, 1.0 / (end - start) as f64)).collect()
            }
        }
    }

    fn columns(&self, transposed: bool) -> Columns {
        let rows: Vec<_> = (0..self.to).map(|o| self.row(o)).collect();
        if !transposed {
            return Columns::of(rows);
        }
        let mut columns = vec![Vec::new(); self.from];
        for (o, row) in rows.iter().enumerate() {
            row.iter().for_each(|&(i, weight)| columns[i].push((o, weight)));
        }
        Columns::of(columns)
    }

    fn product(&self, x: &Tensor, transposed: bool) -> Result<Tensor> {
        let (axis, shape) = (self.axis, x.shape());
        let rows = if transposed { self.from } else { self.to };
        let Columns { width, index, weight, has_empty_rows } = self.columns(transposed);
        let (index, weight) = with_device(x.device(), || {
            let weight = match x.dtype() {
                DType::F64 => Tensor::try_from_slice(&weight, [width * rows])?,
                _ => {
                    let narrow: Vec<f32> = weight.iter().map(|&w| w as f32).collect();
                    Tensor::try_from_slice(&narrow, [width * rows])?
                }
            };
            Ok::<_, crate::Error>((Tensor::try_from_slice(&index, [width * rows])?, weight))
        })?;
        let weighed = |taken: &Tensor, weight: &Tensor| {
            let product = taken.try_mul(weight)?;
            // Nothing times infinity is not nothing.
            if has_empty_rows { weight.try_ne(0.0)?.try_where_(&product, 0.0) } else { Ok(product) }
        };
        let mut view = vec![1; shape.rank()];
        view[axis] = rows;
        if width <= MAX_UNROLLED {
            let view = Shape::of(&view);
            let part = |k: usize| {
                let taken = x.pick(axis, &index.try_narrow(0, k * rows, rows)?)?;
                weighed(&taken, &weight.try_narrow(0, k * rows, rows)?.reshape_to(view)?)
            };
            return (1..width).try_fold(part(0)?, |sum, k| sum.try_add(&part(k)?));
        }
        let taken = x.pick(axis, &index)?;
        let mut extents = shape.to_vec();
        extents[axis] = width;
        extents.insert(axis + 1, rows);
        view.insert(axis, width);
        let taken = taken.reshape_to(Shape::new(&extents)?)?;
        let parts = weighed(&taken, &weight.reshape_to(Shape::of(&view))?)?;
        extents.remove(axis);
        parts.reduce_mask(ReduceOp::Sum, 1 << axis)?.reshape_to(Shape::of(&extents))
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

impl CustomGradient for Product {
    fn gradients(&self, _: &[Tensor], _: &Tensor, gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(recorded(gradient, self.band, !self.transposed)?)])
    }
}
