//! Indexing by tensors of positions: gathering, scattering, sorting, running sums.

use super::Tensor;
use super::record::record;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::op::{NativeOp, Op};
use crate::shape::Shape;
use volta_derive::op;

fn check_index(index: &Tensor) -> Result<()> {
    if !index.dtype().is_int() {
        bail!(DType, "the index is {}: it must be an integer type", index.dtype());
    }
    Ok(())
}

/// Positions without the conversion to i64 that Python's have: kernels read them as they were found.
fn narrowed(index: &Tensor) -> Tensor {
    let node = index.node();
    let is_widened = matches!(node.op, Op::Cast) && node.dtype == DType::I64;
    let source = if is_widened { node.sources().first().cloned() } else { None };
    match source {
        Some(source) if source.dtype == DType::I32 => Tensor::from_node(source),
        _ => index.clone(),
    }
}

impl Tensor {
    /// Gathers where index has the output's shape and every axis but `axis` fits the table's.
    pub(crate) fn gather_primitive(&self, axis: usize, index: &Tensor) -> Result<Tensor> {
        record(Op::Gather { axis: axis as u8 }, &[self, index], index.shape(), self.dtype())
    }

    /// Slices of an axis at the positions of a vector.
    pub(crate) fn pick(&self, axis: usize, positions: &Tensor) -> Result<Tensor> {
        let mut extents = vec![1; self.rank()];
        extents[axis] = positions.numel();
        let spread = positions.reshape_to(Shape::of(&extents))?;
        let mut wanted = self.shape().to_vec();
        wanted[axis] = positions.numel();
        self.gather_primitive(axis, &spread.expand_to(Shape::of(&wanted))?)
    }

    /// Sums `self` into zeros of `shape` at `index` along `axis`.
    pub(crate) fn scatter_primitive(&self, axis: usize, index: &Tensor, shape: Shape) -> Result<Tensor> {
        record(Op::Native(NativeOp::ScatterAdd { axis }), &[index, self], shape, self.dtype())
    }

    /// The same where `rows`, a column, names whole rows of `shape`, and only few of them: their sums, and who looks for a row
    /// finds its sum or nothing. So the zeros of all other rows take no memory until somebody asks for them: a capture keeps the
    /// sums instead, which it recognizes by these ops.
    pub(crate) fn scatter_rows(&self, rows: &Tensor, shape: Shape) -> Result<Tensor> {
        let (count, extent) = (rows.numel(), shape[0]);
        let column = |rows: usize| {
            let mut extents = vec![1; shape.rank()];
            extents[0] = rows;
            Shape::of(&extents)
        };
        let rows = rows.reshape_to(Shape::of(&[count]))?;
        let rows = rows.cast(rows.dtype().of_positions())?;
        let firsts = record(Op::Native(NativeOp::FirstPosition), &[&rows], Shape::of(&[extent]), DType::I32)?;
        // A row is summed where it is named first; one outside, nowhere.
        let places = rows.in_bounds_mask(extent)?.try_where_(firsts.gather_primitive(0, &rows)?, -1)?;
        let places = places.reshape_to(column(count))?.expand_to(self.shape())?;
        let sums = self.scatter_primitive(0, &places, self.shape())?;
        let firsts = firsts.reshape_to(column(extent))?;
        let found = sums.gather_primitive(0, &firsts.try_maximum(0)?.expand_to(shape)?)?;
        firsts.try_ge(0)?.try_where_(found, 0.0)
    }

    /// Which indices name a place of so many.
    pub(crate) fn in_bounds_mask(&self, extent: usize) -> Result<Tensor> {
        let index = self.cast(self.dtype().of_positions())?;
        index.try_ge(0)?.try_logical_and(&index.try_lt(extent as i64)?)
    }

    fn check_same_rank(&self, index: &Tensor) -> Result<()> {
        check_index(index)?;
        if self.rank() != index.rank() {
            bail!(
                Shape,
                "the index has shape {}, the tensor {}: they need as many axes",
                index.shape(),
                self.shape()
            );
        }
        Ok(())
    }
}

impl Tensor {
    /// Picks along an axis: `out[i][j] = self[index[i][j]][j]` for axis 0. The index may be smaller than the
    /// tensor along the other axes. An index out of bounds is an error: at once where it is known, else of whoever waits for the
    /// device next, and it reads NaN (0 for integers).
    #[op]
    pub fn try_gather(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        self.check_same_rank(index)?;
        let index = &narrowed(index);
        let (shape, wanted) = (self.shape(), index.shape());
        let k = shape.axis(axis)?;
        if shape.rank() == 0 {
            let index = index.in_bounds(1)?.try_unsqueeze(0)?;
            return self.try_unsqueeze(0)?.gather_primitive(0, &index)?.try_squeeze(0);
        }
        let mut parts: Vec<(usize, usize, usize)> = shape.iter().map(|&e| (0, 1, e)).collect();
        for j in (0..shape.rank()).filter(|&j| j != k) {
            if wanted[j] > shape[j] {
                bail!(Shape, "index shape {wanted} is larger than the tensor's {shape} on axis {j}");
            }
            parts[j].2 = wanted[j];
        }
        self.slice_parts(&parts)?.gather_primitive(k, &index.in_bounds(shape[k])?)
    }

    /// A copy with `values` added at `index` along an axis; repeated indices add up, in a fixed order. An
    /// index out of bounds is an error, as for [`gather`](Self::gather), and adds nothing.
    #[op]
    pub fn try_scatter_add(&self, axis: isize, index: &Tensor, values: &Tensor) -> Result<Tensor> {
        self.check_same_rank(index)?;
        self.check_same_rank_of(values)?;
        let index = &narrowed(index);
        let (shape, wanted, from) = (self.shape(), index.shape(), values.shape());
        let k = shape.axis(axis)?;
        if let Some((this, values)) = self.promoted_with(values)? {
            return this.try_scatter_add(axis, index, &values);
        }
        if self.dtype() == DType::Bool {
            // A sum of bools is or, however many there are.
            let number = |t: &Tensor| t.cast(DType::I32);
            return number(self)?.try_scatter_add(axis, index, &number(values)?)?.try_ne(0);
        }
        if shape.rank() == 0 {
            let flat = |t: &Tensor| t.try_unsqueeze(0);
            return flat(self)?.try_scatter_add(0, &flat(index)?, &flat(values)?)?.try_squeeze(0);
        }
        let mut parts = Vec::new();
        let mut pads = vec![(0, 0); shape.rank()];
        let mut target = shape.to_vec();
        for j in 0..shape.rank() {
            if wanted[j] > from[j] || (j != k && wanted[j] > shape[j]) {
                bail!(
                    Shape,
                    "index shape {wanted} is larger than the values' {from} or the tensor's {shape} on axis {j}"
                );
            }
            parts.push((0, 1, wanted[j]));
            if j != k {
                pads[j].1 = shape[j] - wanted[j];
                target[j] = wanted[j];
            }
        }
        let values = values.slice_parts(&parts)?;
        let index = index.in_bounds(shape[k])?;
        let scattered = values.scatter_primitive(k, &index, Shape::of(&target))?;
        self.try_add(&scattered.pad_with(&pads, 0.0.into())?)
    }

    /// A copy with the slices of `values` added along an axis where a vector of positions says; repeated positions add up,
    /// in a fixed order.
    ///
    /// ```
    /// use volta::Tensor;
    /// let rows = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    /// let sums = Tensor::zeros([2, 2]).index_add(0, &Tensor::from_vec(vec![1i32, 0, 1], [3]), &rows);
    /// assert_eq!(sums.to_vec::<f32>(), [3.0, 4.0, 6.0, 8.0]);
    /// ```
    #[op]
    pub fn try_index_add(&self, axis: isize, index: &Tensor, values: &Tensor) -> Result<Tensor> {
        check_index(index)?;
        let index = &narrowed(index);
        let shape = self.shape();
        let k = shape.axis(axis)?;
        if index.rank() > 1 {
            bail!(Shape, "the index has shape {}: it must be a vector", index.shape());
        }
        let mut wanted = shape.to_vec();
        if let Some(extent) = wanted.get_mut(k) {
            *extent = index.numel();
        }
        if values.shape() != wanted || (shape.rank() == 0 && index.numel() != 1) {
            bail!(
                Shape,
                "the values have shape {}: {} positions along axis {axis} of {shape} need {wanted:?}",
                values.shape(),
                index.numel()
            );
        }
        if shape.rank() == 0 {
            return self.try_scatter_add(0, &index.reshape_to(shape)?, values);
        }
        let mut extents = vec![1; shape.rank()];
        extents[k] = index.numel();
        let spread = index.reshape_to(Shape::of(&extents))?.expand_to(values.shape())?;
        self.try_scatter_add(axis, &spread, values)
    }

    /// Whole slices of an axis, picked by a vector of positions. One that is out of bounds is an error, as for
    /// [`gather`](Self::gather).
    #[op]
    pub fn try_index_select(&self, axis: isize, index: &Tensor) -> Result<Tensor> {
        check_index(index)?;
        let index = &narrowed(index);
        let shape = self.shape();
        let k = shape.axis(axis)?;
        if index.rank() != 1 || shape.rank() == 0 {
            bail!(Shape, "the index has shape {}: it must be a vector", index.shape());
        }
        self.pick(k, &index.in_bounds(shape[k])?)
    }

    /// Rows of this table, one for every index: the index's shape with the row's behind it. An index out of bounds is an
    /// error, as for [`gather`](Self::gather).
    #[op]
    pub fn try_embedding(&self, index: &Tensor) -> Result<Tensor> {
        check_index(index)?;
        let index = &narrowed(index);
        let (table, wanted) = (self.shape(), index.shape());
        if table.rank() != 2 {
            bail!(Shape, "the table has shape {table}: it must be a matrix");
        }
        let flat = index.in_bounds(table[0])?.reshape_to(Shape::of(&[index.numel()]))?;
        let rows = self.pick(0, &flat)?;
        rows.reshape_to(Shape::new(&[&wanted[..], &[table[1]]].concat())?)
    }

    /// The positions, as i32, that put an axis in order; equal elements keep theirs, NaN counts as the largest.
    #[op]
    pub fn try_argsort(&self, axis: isize, descending: bool) -> Result<Tensor> {
        let k = self.shape().axis(axis)?;
        if self.rank() == 0 {
            return Ok(self.constant(0, self.shape(), DType::I32));
        }
        let sort = NativeOp::ArgSort { axis: k, descending, sorted: 1 };
        record(Op::Native(sort), &[self], self.shape(), DType::I32)
    }

    /// The running sum along an axis; integers are summed as i64.
    #[op]
    pub fn try_cumsum(&self, axis: isize) -> Result<Tensor> {
        let k = self.shape().axis(axis)?;
        let x = if self.dtype().is_float() { self.upcast()? } else { self.try_to_dtype(self.sum_type())? };
        if x.rank() == 0 {
            return Ok(x);
        }
        record(Op::Native(NativeOp::Cumsum { axis: k }), &[&x], x.shape(), x.dtype())
    }
}

impl Tensor {
    /// This tensor and the values that are added to it in one type, if they are not: under autocast that of the two which
    /// holds the other, otherwise an error.
    fn promoted_with(&self, values: &Tensor) -> Result<Option<(Tensor, Tensor)>> {
        let (a, b) = (self.dtype(), values.dtype());
        if a == b {
            return Ok(None);
        }
        if self.autocast_dtype().is_none() || !a.is_float() || !b.is_float() {
            bail!(DType, "cannot add {b} to {a}: convert one with to_dtype");
        }
        let dtype = a.promote(b);
        Ok(Some((self.cast(dtype)?, values.cast(dtype)?)))
    }

    fn check_same_rank_of(&self, values: &Tensor) -> Result<()> {
        if self.rank() != values.rank() {
            bail!(
                Shape,
                "the values have shape {}, the tensor {}: they need as many axes",
                values.shape(),
                self.shape()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_scattered_as_they_are_found() {
        let shape = Shape::of(&[9, 2, 3]);
        for dtype in [DType::I32, DType::I64, DType::U32, DType::U8] {
            let outside = if matches!(dtype, DType::I32 | DType::I64) { -2 } else { 200 };
            let rows = Tensor::from_vec(vec![4i32, 0, outside, 4, 9, 8, 4], [7, 1, 1]).to_dtype(dtype);
            let values = Tensor::arange(1, 43).to_dtype(DType::F32).reshape([7, 2, 3]);
            let spread = rows.expand_to(values.shape()).unwrap();
            let scattered = values.scatter_primitive(0, &spread, shape).unwrap();
            let found = values.scatter_rows(&rows, shape).unwrap();
            assert_eq!(found.to_vec::<f32>(), scattered.to_vec::<f32>(), "{dtype}");
            assert_eq!(found.to_vec::<f32>()[4 * 6], 1.0 + 19.0 + 37.0);
        }
    }
}
