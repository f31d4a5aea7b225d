//! `+ - * /` and unary minus, between tensors and numbers on either side, owned or borrowed.

use super::Tensor;
use super::elementwise::scalar_left;
use super::record::FinishOp;
use crate::call::Call;
use crate::op::BinaryOp;
use std::ops::{Add, Div, Mul, Neg, Sub};

macro_rules! operators {
    ($($trait:ident $method:ident $name:literal $op:ident;)*) => {$(
        impl $trait<&Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                Tensor::$method(self, other)
            }
        }
        impl $trait<Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$method(self, &other)
            }
        }
        impl $trait<&Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                Tensor::$method(&self, other)
            }
        }
        impl $trait<Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$method(&self, &other)
            }
        }
        // One float and one integer type only, so that literals need no suffix.
        operators!(@scalar $trait $method $name $op: f64 i32);
    )*};
    (@scalar $trait:ident $method:ident $name:literal $op:ident: $($number:ty)*) => {$(
        impl $trait<$number> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: $number) -> Tensor {
                Tensor::$method(self, other)
            }
        }
        impl $trait<$number> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: $number) -> Tensor {
                Tensor::$method(&self, other)
            }
        }
        impl $trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                let _call = Call::enter($name);
                scalar_left(self.into(), other, BinaryOp::$op).finish().unwrap_or_else(|e| e.raise())
            }
        }
        impl $trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                $trait::$method(self, &other)
            }
        }
    )*};
}

operators! {
    Add add "add" Add;
    Sub sub "sub" Sub;
    Mul mul "mul" Mul;
    Div div "div" Div;
}

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}
