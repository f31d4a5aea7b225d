//! Plain arrays on the host: what samples are made of.

use crate::dtype::{DType, Element};
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::Tensor;
use half::{bf16, f16};
use std::borrow::Cow;

macro_rules! elements {
    ($($variant:ident($ty:ty)),*) => {
        /// Elements of one type, borrowed from a dataset or owned.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Elements<'a> {$(
            #[doc = concat!("As `", stringify!($ty), "`.")]
            $variant(Cow<'a, [$ty]>),
        )*}

        $(
            impl From<Vec<$ty>> for Elements<'_> {
                fn from(elements: Vec<$ty>) -> Self {
                    Elements::$variant(Cow::Owned(elements))
                }
            }

            impl<'a> From<&'a [$ty]> for Elements<'a> {
                fn from(elements: &'a [$ty]) -> Self {
                    Elements::$variant(Cow::Borrowed(elements))
                }
            }
        )*

        impl Elements<'_> {
            /// How many there are.
            pub fn len(&self) -> usize {
                match self {$( Elements::$variant(e) => e.len(), )*}
            }

            /// Their type.
            pub fn dtype(&self) -> DType {
                match self {$( Elements::$variant(_) => <$ty as Element>::DTYPE, )*}
            }

            /// Those from `start` up to, not including, `end`.
            fn slice(&self, start: usize, end: usize) -> Elements<'_> {
                match self {$( Elements::$variant(e) => Elements::$variant(Cow::Borrowed(&e[start..end])), )*}
            }

            /// None of the same type, with room for `count`.
            pub(super) fn empty(&self, count: usize) -> Elements<'static> {
                match self {$( Elements::$variant(_) => Elements::$variant(Cow::Owned(Vec::with_capacity(count))), )*}
            }

            /// Adds what `more` has at the end, if it is of the same type.
            pub(super) fn append(&mut self, more: &Elements<'_>) -> bool {
                match (self, more) {
                    $( (Elements::$variant(all), Elements::$variant(more)) => {
                        all.to_mut().extend_from_slice(more);
                        true
                    } )*
                    _ => false,
                }
            }

            /// What `how` makes of them, in the same type.
            pub(super) fn rearranged(&self, how: &impl Rearrange) -> Elements<'static> {
                match self {$( Elements::$variant(e) => Elements::$variant(Cow::Owned(how.run(e))), )*}
            }

            fn into_owned(self) -> Elements<'static> {
                match self {$( Elements::$variant(e) => Elements::$variant(Cow::Owned(e.into_owned())), )*}
            }

            /// A tensor of them on the default device.
            pub(super) fn upload(&self, shape: Shape) -> Result<Tensor> {
                match self {$( Elements::$variant(e) => Tensor::try_from_slice(e, shape), )*}
            }

            fn of_tensor(tensor: &Tensor) -> Result<Elements<'static>> {
                match tensor.dtype() {$( <$ty as Element>::DTYPE => Ok(tensor.try_to_vec::<$ty>()?.into()), )*}
            }
        }
    };
}
elements!(F32(f32), F64(f64), F16(f16), BF16(bf16), I32(i32), I64(i64), U8(u8), Bool(bool), U32(u32));

/// A change of places that works for elements of any type.
pub(super) trait Rearrange {
    fn run<T: Element>(&self, elements: &[T]) -> Vec<T>;
}

impl Elements<'_> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Elements with a shape, on the host.
///
/// ```
/// use volta::data::Array;
/// let image = Array::new(vec![0u8; 12], &[3, 2, 2]);
/// assert_eq!((image.shape().to_vec(), image.dtype()), (vec![3, 2, 2], volta::DType::U8));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Array<'a> {
    elements: Elements<'a>,
    shape: Shape,
}

impl<'a> Array<'a> {
    /// Elements in row-major order: a `Vec` or a slice that the dataset keeps.
    #[track_caller]
    pub fn new(elements: impl Into<Elements<'a>>, shape: &[usize]) -> Array<'a> {
        Array::try_new(elements, shape).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(elements: impl Into<Elements<'a>>, shape: &[usize]) -> Result<Array<'a>> {
        let (elements, shape) = (elements.into(), Shape::new(shape)?);
        if elements.len() != shape.numel() {
            bail!(
                Shape,
                "{} elements do not fill shape {shape}, which has {}",
                elements.len(),
                shape.numel()
            );
        }
        Ok(Array { elements, shape })
    }

    /// One number, without axes: a class, for example.
    pub fn scalar<T>(value: T) -> Array<'static>
    where
        Elements<'static>: From<Vec<T>>,
    {
        Array { elements: vec![value].into(), shape: Shape::of(&[]) }
    }

    /// A tensor's values, copied to the host.
    pub fn from_tensor(tensor: &Tensor) -> Result<Array<'static>> {
        Ok(Array { elements: Elements::of_tensor(tensor)?, shape: tensor.shape() })
    }

    /// The extents of all axes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.elements.dtype()
    }

    /// The elements in row-major order.
    pub fn elements(&self) -> &Elements<'a> {
        &self.elements
    }

    /// The elements themselves, to change or to take.
    pub fn into_elements(self) -> Elements<'a> {
        self.elements
    }

    /// The same with its own copy of the elements, if they were borrowed.
    pub fn into_owned(self) -> Array<'static> {
        Array { elements: self.elements.into_owned(), shape: self.shape }
    }

    /// The `index`-th along the first axis.
    pub(super) fn row(&self, index: usize) -> Array<'_> {
        let shape = Shape::of(&self.shape[1..]);
        let size = shape.numel();
        Array { elements: self.elements.slice(index * size, (index + 1) * size), shape }
    }
}
