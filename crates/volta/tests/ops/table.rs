//! The table's rows: an op, how to call it, what it should give, and what to try it on.

use crate::random::Random;
use crate::reference::Array;
use volta::{DType, Tensor};

pub const FLOATS: &[DType] = &[DType::F64, DType::F32, DType::F16, DType::BF16];
pub const WIDE_FLOATS: &[DType] = &[DType::F64, DType::F32];
pub const INTS: &[DType] = &[DType::I32, DType::I64, DType::U8, DType::U32];
pub const NUMBERS: &[DType] =
    &[DType::F64, DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8, DType::U32];
pub const ALL: &[DType] = &DType::ALL;

/// How an input's elements are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    Between(f64, f64),
    /// Of either sign, with a magnitude in this range.
    AwayFromZero(f64, f64),
    /// No two alike, and far enough apart for finite differences.
    Apart,
    /// Few different ones, so that many are alike.
    Ties,
    /// Never nearer than a tenth to an integer or to a half.
    OffIntegers,
    /// Positions below a bound, as i32 (or another integer type).
    Index(usize),
    IndexAs(usize, DType),
    Truth,
}
pub use Values::*;

impl Values {
    /// The input's type where the row is tried with `dtype`.
    pub fn dtype(self, dtype: DType) -> DType {
        match self {
            Index(_) => DType::I32,
            IndexAs(_, fixed) => crate::driver::available(fixed),
            Truth => DType::Bool,
            _ => dtype,
        }
    }

    /// Whether the input is of the type that is tried, so that a gradient may flow into it.
    pub fn is_free(self) -> bool {
        !matches!(self, Index(_) | IndexAs(..) | Truth)
    }

    pub fn draw(self, shape: &[usize], dtype: DType, random: &mut Random) -> Array {
        let count: usize = shape.iter().product();
        let whole = !self.dtype(dtype).is_float();
        let one = |random: &mut Random| match self {
            Between(low, high) if whole => {
                let number = low.ceil() + random.below((high.floor() - low.ceil()) as usize + 1) as f64;
                // The reference could not tell the product of two of u32's large numbers.
                if dtype == DType::U32 { number.abs() } else { number }
            }
            Between(low, high) => random.between(low, high),
            AwayFromZero(near, far) => {
                let size = random.between(near, far);
                let size = if whole { size.round().max(1.0) } else { size };
                if random.below(2) == 0 { size } else { -size }
            }
            Ties => random.below(3) as f64 - 1.0,
            OffIntegers => {
                let half = random.below(13) as f64 - 6.0;
                half / 2.0 + random.between(0.1, 0.4)
            }
            Index(n) | IndexAs(n, _) => random.below(n) as f64,
            Truth => random.below(2) as f64,
            Apart => unreachable!("drawn together"),
        };
        let data: Vec<f64> = match self {
            Apart => {
                let step = if whole { 1.0 } else { 0.25f64.min(16.0 / count.max(1) as f64) };
                let middle = (count / 2) as f64 - 0.5;
                let shift = if whole { 0.5 } else { 0.0 };
                random.order(count).iter().map(|&k| (k as f64 - middle) * step + shift).collect()
            }
            _ => (0..count).map(|_| one(random)).collect(),
        };
        Array::new(shape, data.into_iter().map(|x| stored(x, self.dtype(dtype))).collect())
    }
}

/// What is left of a number in a type's storage.
pub fn stored(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F64 => x,
        DType::F32 => f64::from(x as f32),
        DType::F16 => volta::f16::from_f64(x).to_f64(),
        DType::BF16 => volta::bf16::from_f64(x).to_f64(),
        DType::I32 => f64::from(x as i64 as i32),
        DType::I64 => x as i64 as f64,
        DType::U8 => f64::from(x as i64 as u8),
        DType::U32 => f64::from(x as i64 as u32),
        DType::Bool => f64::from(u8::from(x != 0.0)),
    }
}

/// The array as a tensor.
pub fn tensor(array: &Array, dtype: DType) -> Tensor {
    let (data, shape) = (&array.data, &array.shape[..]);
    fn make<T: volta::Element>(data: &[f64], shape: &[usize], one: impl Fn(f64) -> T) -> Tensor {
        Tensor::from_vec(data.iter().map(|&x| one(x)).collect(), shape)
    }
    match dtype {
        DType::F64 => make(data, shape, |x| x),
        DType::F32 => make(data, shape, |x| x as f32),
        DType::F16 => make(data, shape, volta::f16::from_f64),
        DType::BF16 => make(data, shape, volta::bf16::from_f64),
        DType::I32 => make(data, shape, |x| x as i64 as i32),
        DType::I64 => make(data, shape, |x| x as i64),
        DType::U8 => make(data, shape, |x| x as i64 as u8),
        DType::U32 => make(data, shape, |x| x as i64 as u32),
        DType::Bool => make(data, shape, |x| x != 0.0),
    }
}

/// The tensor as an array; every type is read as itself, so that no cast stands between.
pub fn array(tensor: &Tensor) -> Array {
    let data: Vec<f64> = match tensor.dtype() {
        DType::F64 => tensor.to_vec::<f64>(),
        DType::F32 => tensor.to_vec::<f32>().into_iter().map(f64::from).collect(),
        DType::F16 => tensor.to_vec::<volta::f16>().into_iter().map(|x| x.to_f64()).collect(),
        DType::BF16 => tensor.to_vec::<volta::bf16>().into_iter().map(|x| x.to_f64()).collect(),
        DType::I32 => tensor.to_vec::<i32>().into_iter().map(f64::from).collect(),
        DType::I64 => tensor.to_vec::<i64>().into_iter().map(|x| x as f64).collect(),
        DType::U8 => tensor.to_vec::<u8>().into_iter().map(f64::from).collect(),
        DType::U32 => tensor.to_vec::<u32>().into_iter().map(f64::from).collect(),
        DType::Bool => tensor.to_vec::<bool>().into_iter().map(|x| f64::from(u8::from(x))).collect(),
    };
    Array::new(&tensor.shape(), data)
}

/// The type of a row's result, given the type that is tried.
#[derive(Clone, Copy, Debug)]
pub enum Gives {
    Same,
    /// Floats stay; everything else becomes f32.
    Float,
    /// Floats stay; everything else becomes i64.
    Wide,
    Always(DType),
}

impl Gives {
    pub fn dtype(self, tried: DType) -> DType {
        match self {
            Gives::Always(dtype) => dtype,
            Gives::Float if !tried.is_float() => DType::F32,
            Gives::Wide if !tried.is_float() => crate::driver::summed(tried),
            _ => tried,
        }
    }
}

type Call = Box<dyn Fn(&[Tensor]) -> Tensor>;
type Reference = Box<dyn Fn(&[Array]) -> Array>;

/// One op of the table.
pub struct Row {
    pub name: String,
    pub call: Call,
    pub reference: Reference,
    /// Shapes of all inputs, several times.
    pub cases: Vec<Vec<Vec<usize>>>,
    /// How each input is drawn; the last one counts for those that follow.
    pub values: Vec<Values>,
    pub dtypes: &'static [DType],
    pub gives: Gives,
    /// How much more than one rounding an error may be.
    pub slack: f64,
    pub differentiable: bool,
    /// Fused and unfused give the same bits.
    pub exact: bool,
    /// How much longer than others its shaders take to compile.
    pub shader_cost: usize,
}

/// A row of floats that can be differentiated; the rest is said by the methods.
pub fn row(
    name: impl Into<String>,
    call: impl Fn(&[Tensor]) -> Tensor + 'static,
    reference: impl Fn(&[Array]) -> Array + 'static,
) -> Row {
    Row {
        name: name.into(),
        call: Box::new(call),
        reference: Box::new(reference),
        cases: vec![],
        values: vec![Between(-2.0, 2.0)],
        dtypes: FLOATS,
        gives: Gives::Same,
        slack: 1.0,
        shader_cost: 1,
        differentiable: true,
        exact: false,
    }
}

impl Row {
    /// Adds a case: the shape of every input.
    pub fn case(mut self, shapes: &[&[usize]]) -> Row {
        self.cases.push(shapes.iter().map(|s| s.to_vec()).collect());
        self
    }

    pub fn cases(self, cases: &[&[&[usize]]]) -> Row {
        cases.iter().fold(self, |row, case| row.case(case))
    }

    pub fn values(mut self, values: &[Values]) -> Row {
        self.values = values.to_vec();
        self
    }

    pub fn dtypes(mut self, dtypes: &'static [DType]) -> Row {
        self.dtypes = dtypes;
        self
    }

    pub fn gives(mut self, gives: Gives) -> Row {
        self.gives = gives;
        self
    }

    pub fn slack(mut self, slack: f64) -> Row {
        self.slack = slack;
        self
    }

    /// A software adapter tries layouts and fusion so many times as seldom.
    pub fn shader_cost(mut self, cost: usize) -> Row {
        self.shader_cost = cost;
        self
    }

    /// Without a gradient.
    pub fn flat(mut self) -> Row {
        self.differentiable = false;
        self
    }

    pub fn exact(mut self) -> Row {
        self.exact = true;
        self
    }

    pub fn values_of(&self, input: usize) -> Values {
        self.values[input.min(self.values.len() - 1)]
    }

    /// The inputs of a case, the same every time.
    pub fn inputs(&self, case: &[Vec<usize>], dtype: DType) -> Vec<Array> {
        let seed = self.name.bytes().fold(17u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let mut random = Random::new(seed);
        let draw = |(k, shape): (usize, &Vec<usize>)| self.values_of(k).draw(shape, dtype, &mut random);
        case.iter().enumerate().map(draw).collect()
    }

    /// The type of an input where the row is tried with `dtype`.
    pub fn dtype_of(&self, input: usize, dtype: DType) -> DType {
        self.values_of(input).dtype(dtype)
    }

    pub fn tensors(&self, inputs: &[Array], dtype: DType) -> Vec<Tensor> {
        inputs.iter().enumerate().map(|(k, x)| tensor(x, self.dtype_of(k, dtype))).collect()
    }
}
