//! Tensors and numbers of a call, read one after the other.

use crate::error::{Thrown, argument};
use volta::{Operand, Reduction, Scalar, Tensor};

/// What an op is given.
pub struct Arguments<'a> {
    pub name: &'a str,
    pub tensors: &'a [Tensor],
    numbers: &'a [f64],
    next: usize,
}

/// A number of JavaScript, which knows no integers: a whole number counts as one, as it takes any type.
pub fn scalar(x: f64) -> Scalar {
    if x.fract() == 0.0 && x.abs() < 9e15 { Scalar::from(x as i64) } else { Scalar::from(x) }
}

impl<'a> Arguments<'a> {
    pub fn new(name: &'a str, tensors: &'a [Tensor], numbers: &'a [f64]) -> Self {
        Arguments { name, tensors, numbers, next: 0 }
    }

    fn error(&self, what: &str) -> wasm_bindgen::JsValue {
        argument(&format!("{}: {what}", self.name))
    }

    /// An operand that is a tensor.
    pub fn tensor(&self, k: usize) -> Thrown<&'a Tensor> {
        self.tensors.get(k).ok_or_else(|| {
            self.error(&format!("it takes {} tensors or more, and got {}", k + 1, self.tensors.len()))
        })
    }

    /// An operand that may be left out.
    pub fn optional(&self, k: usize) -> Option<&'a Tensor> {
        self.tensors.get(k)
    }

    /// The tensor at a place, or else the next number.
    pub fn operand(&mut self, k: usize) -> Thrown<Operand> {
        match self.tensors.get(k) {
            Some(tensor) => Ok(Operand::from(tensor)),
            None => Ok(Operand::Scalar(scalar(self.number()?))),
        }
    }

    /// The next number.
    pub fn number(&mut self) -> Thrown<f64> {
        let Some(&number) = self.numbers.get(self.next) else {
            return Err(self.error(&format!("number {} is missing", self.next + 1)));
        };
        self.next += 1;
        Ok(number)
    }

    /// The next number as yes or no.
    pub fn flag(&mut self) -> Thrown<bool> {
        Ok(self.number()? != 0.0)
    }

    /// The next number, which must be whole and fit.
    pub fn whole(&mut self) -> Thrown<isize> {
        let x = self.number()?;
        if x.fract() != 0.0 || x.abs() > f64::from(i32::MAX) {
            return Err(self.error(&format!("{x} is given where a whole number belongs")));
        }
        Ok(x as isize)
    }

    /// The next number, which must be whole and not negative.
    pub fn count(&mut self) -> Thrown<usize> {
        let x = self.whole()?;
        usize::try_from(x).map_err(|_| self.error(&format!("{x} is given where a number from 0 on belongs")))
    }

    /// Two such numbers.
    pub fn pair(&mut self) -> Thrown<[usize; 2]> {
        Ok([self.count()?, self.count()?])
    }

    /// A number, or none where it is NaN.
    pub fn maybe(&mut self) -> Thrown<Option<f64>> {
        Ok(Some(self.number()?).filter(|x| !x.is_nan()))
    }

    /// All numbers that are left, as axes or extents.
    pub fn rest(&mut self) -> Thrown<Vec<isize>> {
        let left = self.numbers.len() - self.next;
        (0..left).map(|_| self.whole()).collect()
    }

    /// All numbers that are left, as sizes.
    pub fn counts(&mut self) -> Thrown<Vec<usize>> {
        let left = self.numbers.len() - self.next;
        (0..left).map(|_| self.count()).collect()
    }

    /// How a loss is reduced.
    pub fn reduction(&mut self) -> Thrown<Reduction> {
        Ok(match self.count()? {
            0 => Reduction::Mean,
            1 => Reduction::Sum,
            2 => Reduction::None,
            3 => Reduction::BatchMean,
            other => return Err(self.error(&format!("no reduction has the number {other}"))),
        })
    }
}
