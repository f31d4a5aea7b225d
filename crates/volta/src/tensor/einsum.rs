//! Einstein's summation: products and sums written as an equation of axis names.

use super::Tensor;
use super::record::run_op;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::fmt;

/// The name of an axis: a letter, or its place from the end among those that `...` stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// Sorted so that the axis farthest from the end comes first, and all before the letters.
    Rest(Reverse<usize>),
    Letter(char),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Letter(c) => write!(f, "axis {c:?}"),
            Label::Rest(_) => f.write_str("an axis of ..."),
        }
    }
}

/// One side of a comma: letters before and after `...`, if that is there.
struct Subscript {
    before: Vec<char>,
    after: Option<Vec<char>>,
}

impl Subscript {
    fn parse(text: &str, equation: &str) -> Result<Subscript> {
        let letters = |s: &str| -> Result<Vec<char>> {
            if let Some(c) = s.chars().find(|c| !c.is_ascii_alphabetic()) {
                bail!(Argument, "{c:?} in {equation:?}: axes are named by letters, others by ...");
            }
            Ok(s.chars().collect())
        };
        match text.split_once("...") {
            None => Ok(Subscript { before: letters(text)?, after: None }),
            Some((before, after)) => Ok(Subscript { before: letters(before)?, after: Some(letters(after)?) }),
        }
    }

    fn letters(&self) -> impl Iterator<Item = char> + '_ {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }

    /// Labels of all axes, where `...` stands for `rest` of them.
    fn labels(&self, rest: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.before.iter().map(|&c| Label::Letter(c)).collect();
        if let Some(after) = &self.after {
            labels.extend((0..rest).rev().map(|k| Label::Rest(Reverse(k))));
            labels.extend(after.iter().map(|&c| Label::Letter(c)));
        }
        labels
    }
}

/// An operand whose axes have names, none twice.
struct Term {
    value: Tensor,
    labels: Vec<Label>,
}

impl Term {
    fn extent(&self, label: Label) -> usize {
        self.value.shape()[self.place(label)]
    }

    fn place(&self, label: Label) -> usize {
        self.labels.iter().position(|&l| l == label).expect("a label of this term")
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    /// The axes in the order of `labels`, which names each once.
    fn ordered(&self, labels: &[Label]) -> Result<Tensor> {
        let order: Vec<usize> = labels.iter().map(|&l| self.place(l)).collect();
        self.value.permute_order(&order)
    }

    /// Takes the diagonal of axes that share a name: every (n + 1)-th element of the two as one.
    fn diagonals(mut self, equation: &str) -> Result<Term> {
        while let Some((i, j)) = first_twins(&self.labels) {
            let shape = self.value.shape();
            if shape[i] != shape[j] {
                bail!(
                    Shape,
                    "an axis of {shape} is named twice in {equation:?} with extents {} and {}",
                    shape[i],
                    shape[j]
                );
            }
            let n = shape[i];
            let mut order: Vec<usize> = (0..shape.rank()).filter(|&k| k != i && k != j).collect();
            let mut labels: Vec<Label> = order.iter().map(|&k| self.labels[k]).collect();
            let mut extents: Vec<usize> = order.iter().map(|&k| shape[k]).collect();
            labels.push(self.labels[i]);
            order.extend([i, j]);
            extents.push(n * n);
            let flat = self.value.permute_order(&order)?.reshape_to(Shape::new(&extents)?)?;
            let mut parts: Vec<_> = extents.iter().map(|&e| (0, 1, e)).collect();
            *parts.last_mut().expect("an axis") = (0, n + 1, n);
            self = Term { value: flat.slice_parts(&parts)?, labels };
        }
        Ok(self)
    }

    /// Without axes of extent 1 that stand for more elsewhere: their values are the same all along.
    fn without_broadcast(mut self, sizes: &[(Label, usize)]) -> Result<Term> {
        let size = |l: Label| sizes.iter().find(|s| s.0 == l).expect("a known label").1;
        let shape = self.value.shape();
        let kept: Vec<usize> = (0..shape.rank()).filter(|&k| shape[k] == size(self.labels[k])).collect();
        let extents: Vec<usize> = kept.iter().map(|&k| shape[k]).collect();
        self.labels = kept.iter().map(|&k| self.labels[k]).collect();
        self.value = self.value.reshape_to(Shape::of(&extents))?;
        Ok(self)
    }

    /// Sums the axes whose labels nobody asks for.
    fn summed(mut self, wanted: impl Fn(Label) -> bool) -> Result<Term> {
        let axes: Vec<isize> =
            (0..self.labels.len()).filter(|&k| !wanted(self.labels[k])).map(|k| k as isize).collect();
        if !axes.is_empty() {
            let dtype = self.value.dtype();
            self.value = self.value.try_sum_dim(&axes[..], false)?.try_to_dtype(dtype)?;
            self.labels.retain(|&l| wanted(l));
        }
        Ok(self)
    }
}

fn first_twins(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|j| labels[..j].iter().position(|&l| l == labels[j]).map(|i| (i, j)))
}

/// The product of two terms, summed over what both have and nobody asks for.
fn contract(a: Term, b: Term, wanted: &impl Fn(Label) -> bool) -> Result<Term> {
    let a = a.summed(|l| wanted(l) || b.has(l))?;
    let b = b.summed(|l| wanted(l) || a.has(l))?;
    let pick = |from: &Term, test: &dyn Fn(Label) -> bool| -> Vec<Label> {
        from.labels.iter().copied().filter(|&l| test(l)).collect()
    };
    let batch = pick(&a, &|l| b.has(l) && wanted(l));
    let inner = pick(&a, &|l| b.has(l) && !wanted(l));
    let rows = pick(&a, &|l| !b.has(l));
    let columns = pick(&b, &|l| !a.has(l));
    let extents =
        |t: &Term, labels: &[Label]| -> Vec<usize> { labels.iter().map(|&l| t.extent(l)).collect() };
    let count = |t: &Term, labels: &[Label]| -> usize { extents(t, labels).iter().product() };
    let labels = [&batch[..], &rows, &columns].concat();
    let shape = Shape::new(&[extents(&a, &batch), extents(&a, &rows), extents(&b, &columns)].concat())?;
    let (m, k, n, outer) = (count(&a, &rows), count(&a, &inner), count(&b, &columns), count(&a, &batch));
    let left = a.ordered(&[&batch[..], &rows, &inner].concat())?;
    let right = b.ordered(&[&batch[..], &inner, &columns].concat())?;
    let value = if inner.is_empty() {
        // Nothing to sum: the elementwise product fuses with its neighbours.
        let right = right.reshape_to(Shape::of(&[outer, 1, n]))?;
        left.reshape_to(Shape::of(&[outer, m, 1]))?.try_mul(&right)?
    } else if rows.is_empty() && columns.is_empty() {
        let flat = Shape::of(&[outer, k]);
        let product = left.reshape_to(flat)?.try_mul(&right.reshape_to(flat)?)?;
        product.try_sum_dim(1, false)?.try_to_dtype(a.value.dtype())?
    } else if batch.is_empty() {
        left.reshape_to(Shape::of(&[m, k]))?.try_matmul(&right.reshape_to(Shape::of(&[k, n]))?)?
    } else {
        left.reshape_to(Shape::of(&[outer, m, k]))?
            .try_matmul(&right.reshape_to(Shape::of(&[outer, k, n]))?)?
    };
    Ok(Term { value: value.reshape_to(shape)?, labels })
}

/// The extent of every label, which operands of extent 1 follow.
fn sizes_of(terms: &[Term], equation: &str) -> Result<Vec<(Label, usize)>> {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for term in terms {
        for (&label, &extent) in term.labels.iter().zip(term.value.shape().iter()) {
            match sizes.iter_mut().find(|s| s.0 == label) {
                None => sizes.push((label, extent)),
                Some(known) if known.1 == 1 => known.1 = extent,
                Some(known) if known.1 != extent && extent != 1 => {
                    let all: Vec<Shape> = terms.iter().map(|t| t.value.shape()).collect();
                    bail!(
                        Shape,
                        "{label} of {equation:?} has extents {} and {extent} in shapes {all:?}",
                        known.1
                    );
                }
                Some(_) => {}
            }
        }
    }
    Ok(sizes)
}

/// The labels of the result: as written, or every letter that appears once in alphabetical order.
fn output_of(
    written: Option<&str>,
    inputs: &[Subscript],
    terms: &[Term],
    equation: &str,
) -> Result<Vec<Label>> {
    let known = |l: Label| terms.iter().any(|t| t.has(l));
    let rest = (0..).take_while(|&k| known(Label::Rest(Reverse(k)))).count();
    let Some(text) = written else {
        let mut labels: Vec<Label> = (0..rest).map(|k| Label::Rest(Reverse(k))).collect();
        let all: Vec<char> = inputs.iter().flat_map(Subscript::letters).collect();
        labels.extend(
            all.iter().filter(|&c| all.iter().filter(|d| *d == c).count() == 1).map(|&c| Label::Letter(c)),
        );
        labels.sort();
        return Ok(labels);
    };
    let labels = Subscript::parse(text, equation)?.labels(rest);
    if let Some(&l) = labels.iter().find(|&&l| !known(l)) {
        bail!(Argument, "the result of {equation:?} names {l}, which no operand has");
    }
    if first_twins(&labels).is_some() {
        bail!(Argument, "the result of {equation:?} names an axis twice");
    }
    Ok(labels)
}

impl Tensor {
    /// Products and sums by Einstein's convention: every operand's axes get letters, letters that are missing
    /// from the result are summed over. Without `->` the result has the letters that appear once, in
    /// alphabetical order; `...` stands for axes that broadcast. More than two operands are taken from the left.
    ///
    /// ```
    /// use volta::Tensor;
    /// let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 4]));
    /// assert_eq!(Tensor::einsum("ij,jk->ki", &[&a, &b]).shape()[..], [4, 2]);
    /// assert_eq!(Tensor::einsum("ii", &[&Tensor::eye(3)]).item::<f32>(), 3.0);
    /// ```
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[impl Borrow<Tensor>]) -> Tensor {
        Tensor::try_einsum(equation, operands).unwrap_or_else(|e| e.raise())
    }

    /// [`einsum`](Self::einsum) that returns its error.
    #[track_caller]
    pub fn try_einsum(equation: &str, operands: &[impl Borrow<Tensor>]) -> Result<Tensor> {
        run_op("einsum", || {
            let plain: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
            let (inputs, written) = match plain.split_once("->") {
                Some((inputs, output)) => (inputs, Some(output)),
                None => (&plain[..], None),
            };
            let inputs: Vec<Subscript> =
                inputs.split(',').map(|s| Subscript::parse(s, equation)).collect::<Result<_>>()?;
            if inputs.len() != operands.len() {
                bail!(
                    Argument,
                    "{equation:?} names {} operands, and {} are given",
                    inputs.len(),
                    operands.len()
                );
            }
            let dtype = operands[0].borrow().dtype();
            let mut terms = Vec::new();
            for (subscript, value) in inputs.iter().zip(operands) {
                let value: &Tensor = value.borrow();
                if value.dtype() != dtype || dtype == DType::Bool {
                    bail!(
                        DType,
                        "operands are {dtype} and {}: all must be the same type of number",
                        value.dtype()
                    );
                }
                let (named, rank) = (subscript.letters().count(), value.rank());
                if named > rank || (named < rank && subscript.after.is_none()) {
                    bail!(Shape, "{equation:?} names {named} axes of an operand of shape {}", value.shape());
                }
                let labels = subscript.labels(rank - named);
                terms.push(Term { value: value.clone(), labels }.diagonals(equation)?);
            }
            let sizes = sizes_of(&terms, equation)?;
            let output = output_of(written, &inputs, &terms, equation)?;
            let mut queue =
                terms.into_iter().map(|t| t.without_broadcast(&sizes)).collect::<Result<Vec<_>>>()?;
            let mut result = queue.remove(0);
            while !queue.is_empty() {
                let next = queue.remove(0);
                result = contract(result, next, &|l| output.contains(&l) || queue.iter().any(|t| t.has(l)))?;
            }
            result.summed(|l| output.contains(&l))?.ordered(&output)
        })
    }
}
