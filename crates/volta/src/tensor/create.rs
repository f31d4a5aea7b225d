//! Making tensors: from data, by rules, at random.

use super::Tensor;
use super::mask::reachable;
use super::record::{require, run_op, source};
use crate::call::LayerScope;
use crate::default_device::{default_device, with_device};
use crate::device::Device;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Result, bail};
use crate::graph::Node;
use crate::op::{Op, RandomKind};
use crate::shape::{Dims, Shape};
use std::cell::Cell;
use std::sync::Mutex;

/// The state of the random numbers: a seed and how many tensors were drawn since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngState {
    seed: u64,
    drawn: u64,
}

static RNG: Mutex<RngState> = Mutex::new(RngState { seed: 0, drawn: 0 });

/// Starts the random numbers anew: the same seed gives the same numbers, bit for bit, on every device.
pub fn manual_seed(seed: u64) {
    RngState { seed, drawn: 0 }.restore();
}

impl RngState {
    pub(crate) const fn new(seed: u64, drawn: u64) -> RngState {
        RngState { seed, drawn }
    }

    /// The seed, and how many tensors were drawn since.
    pub(crate) const fn parts(self) -> (u64, u64) {
        (self.seed, self.drawn)
    }

    /// The state now, to go on from later.
    pub fn save() -> RngState {
        with_rng(|rng| *rng)
    }

    /// Goes on from here.
    pub fn restore(self) {
        with_rng(|rng| *rng = self);
    }

    fn draw(&mut self) -> [u32; 2] {
        let stream = self.drawn;
        self.drawn += 1;
        crate::random::threefry(
            [self.seed as u32, (self.seed >> 32) as u32],
            [stream as u32, (stream >> 32) as u32],
        )
    }
}

thread_local! {
    /// What this thread draws from instead of the program's random numbers.
    static ASIDE: Cell<Option<RngState>> = const { Cell::new(None) };
}

/// While it lives, this thread draws random numbers that do not count; other threads draw as ever.
pub(crate) struct RngScope(Option<RngState>);

impl RngScope {
    pub(crate) fn enter() -> RngScope {
        RngScope::from(RngState { seed: 0, drawn: 0 })
    }
}

impl From<RngState> for RngScope {
    fn from(begin: RngState) -> RngScope {
        RngScope(ASIDE.replace(Some(begin)))
    }
}

impl Drop for RngScope {
    fn drop(&mut self) {
        ASIDE.set(self.0);
    }
}

/// What `f` makes of the state that this thread draws from.
fn with_rng<R>(f: impl FnOnce(&mut RngState) -> R) -> R {
    let Some(mut aside) = ASIDE.get() else {
        return f(&mut RNG.lock().expect("no panic while the generator is held"));
    };
    let result = f(&mut aside);
    ASIDE.set(Some(aside));
    result
}

/// A key for one tensor of random numbers, or for a loader; its elements count under it.
pub(crate) fn next_key() -> [u32; 2] {
    with_rng(RngState::draw)
}

/// Numbers in [0, 1) with no more bits than `dtype` holds: rounded to halves, some would be 1.
fn cut(uniform: Tensor, dtype: DType) -> Tensor {
    let steps = match dtype {
        DType::F16 => 2048.0,
        DType::BF16 => 256.0,
        _ => return uniform,
    };
    (uniform * steps).floor() / steps
}

macro_rules! creators {
    ($($(#[$meta:meta])* fn $name:ident | $try_name:ident ($($arg:ident : $ty:ty),* $(,)?) $body:block)*) => {
        impl Tensor {$(
            $(#[$meta])*
            #[track_caller]
            pub fn $name($($arg: $ty),*) -> Tensor {
                Tensor::$try_name($($arg),*).unwrap_or_else(|e| e.raise())
            }

            #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), ") that returns its error.")]
            #[track_caller]
            pub fn $try_name($($arg: $ty),*) -> Result<Tensor> {
                run_op(stringify!($name), move || $body).map(|t: Tensor| Tensor::variable_of(t.node()))
            }
        )*}
    };
}

fn rule(op: Op, shape: Shape, dtype: DType) -> Tensor {
    source(op, shape, dtype, default_device())
}

fn constant(value: Scalar, shape: Shape, dtype: DType) -> Tensor {
    rule(Op::Const(value), shape, dtype)
}

fn index_along(axis: usize, shape: Shape, dtype: DType) -> Tensor {
    rule(Op::Iota { axis: axis as u8 }, shape, dtype)
}

/// The column in which every row of a matrix has its `diagonal`-th diagonal.
fn on_diagonal(shape: Shape, diagonal: i64) -> Result<Tensor> {
    index_along(0, shape, DType::I32).try_add(reachable(diagonal))
}

/// Numbers `step` apart, computed in f64: a GPU, which has none, gets them from the host.
fn spaced(start: f64, step: f64, shape: Shape) -> Result<Tensor> {
    if default_device() != Device::Cpu {
        let numbers: Vec<f32> = (0..shape.numel()).map(|k| (k as f64 * step + start) as f32).collect();
        return Tensor::from_elements(&numbers, shape);
    }
    index_along(0, shape, DType::F64).try_mul(step)?.try_add(start)?.try_to_dtype(DType::F32)
}

fn uniform(shape: Shape, key: [u32; 2], kind: RandomKind) -> Tensor {
    rule(Op::Random { kind, key }, shape, DType::F32)
}

creators! {
    /// A tensor of `data` in row-major order.
    fn from_vec | try_from_vec(data: Vec<impl Element>, shape: impl Into<Dims>) {
        Tensor::from_elements(&data, shape.into().extents()?)
    }

    /// A tensor of a slice's elements in row-major order.
    fn from_slice | try_from_slice(data: &[impl Element], shape: impl Into<Dims>) {
        Tensor::from_elements(data, shape.into().extents()?)
    }

    /// `value` everywhere; the type follows the value: f32, i32 or bool. As of Rust's own literals, an integer is an i32
    /// unless it is too large for that.
    fn full | try_full(shape: impl Into<Dims>, value: impl Into<Scalar>) {
        let value = value.into();
        Ok(constant(value, shape.into().extents()?, value.natural_dtype()))
    }

    /// `value` everywhere, in a type of choice. A number that an integer type does not reach is an error.
    fn full_of | try_full_of(shape: impl Into<Dims>, value: impl Into<Scalar>, dtype: DType) {
        require(default_device(), dtype)?;
        Ok(constant(value.into().checked(dtype)?, shape.into().extents()?, dtype))
    }

    /// Zeros, f32.
    fn zeros | try_zeros(shape: impl Into<Dims>) {
        Ok(constant(0.0.into(), shape.into().extents()?, DType::F32))
    }

    /// Ones, f32.
    fn ones | try_ones(shape: impl Into<Dims>) {
        Ok(constant(1.0.into(), shape.into().extents()?, DType::F32))
    }

    /// The integers from `start` up to, not including, `end`, as i32.
    fn arange | try_arange(start: i64, end: i64) {
        if i32::try_from(start).is_err() || i32::try_from(end).is_err() {
            bail!(Argument, "{start}..{end} does not fit i32");
        }
        let count = (end - start).max(0) as usize;
        let index = index_along(0, Shape::new(&[count])?, DType::I32);
        if start == 0 { Ok(index) } else { index.try_add(start) }
    }

    /// Numbers from `start` up to, not including, `end`, `step` apart, as f32.
    fn arange_step | try_arange_step(start: f64, end: f64, step: f64) {
        if step == 0.0 || !(end - start).is_finite() || !step.is_finite() {
            bail!(Argument, "no numbers from {start} to {end} by {step}");
        }
        let count = ((end - start) / step).ceil().max(0.0) as usize;
        spaced(start, step, Shape::new(&[count])?)
    }

    /// `count` numbers evenly spaced from `start` to `end`, both included, as f32.
    fn linspace | try_linspace(start: f64, end: f64, count: usize) {
        let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
        spaced(start, step, Shape::new(&[count])?)
    }

    /// The identity matrix, f32.
    fn eye | try_eye(n: usize) {
        let shape = Shape::new(&[n, n])?;
        index_along(0, shape, DType::I32).try_eq(index_along(1, shape, DType::I32))?.try_to_dtype(DType::F32)
    }

    /// True on and below the `diagonal`-th diagonal.
    fn tril_mask | try_tril_mask(rows: usize, columns: usize, diagonal: i64) {
        let shape = Shape::new(&[rows, columns])?;
        index_along(1, shape, DType::I32).try_le(&on_diagonal(shape, diagonal)?)
    }

    /// True on and above the `diagonal`-th diagonal.
    fn triu_mask | try_triu_mask(rows: usize, columns: usize, diagonal: i64) {
        let shape = Shape::new(&[rows, columns])?;
        index_along(1, shape, DType::I32).try_ge(&on_diagonal(shape, diagonal)?)
    }

    /// Uniform in [0, 1), f32.
    fn rand | try_rand(shape: impl Into<Dims>) {
        Ok(uniform(shape.into().extents()?, next_key(), RandomKind::Uniform))
    }

    /// Normal with mean 0 and deviation 1, f32.
    fn randn | try_randn(shape: impl Into<Dims>) {
        let (shape, key) = (shape.into().extents()?, next_key());
        // Box and Muller: 1 - u lies in (0, 1], where the logarithm is finite.
        let radius = (1.0 - uniform(shape, key, RandomKind::Uniform)).try_log()?.try_mul(-2.0)?.try_sqrt()?;
        let angle = uniform(shape, key, RandomKind::UniformSecond).try_mul(std::f64::consts::TAU)?;
        radius.try_mul(&angle.try_cos()?)
    }

    /// Uniform integers from `low` up to, not including, `high`, as i32.
    fn randint | try_randint(low: i64, high: i64, shape: impl Into<Dims>) {
        let fits = i32::try_from(low).is_ok() && i32::try_from(high).is_ok() && low < high;
        if !fits || high - low > i64::from(i32::MAX) {
            bail!(Argument, "no i32 numbers from {low} up to {high}");
        }
        let bits = rule(Op::Random { kind: RandomKind::Bits, key: next_key() }, shape.into().extents()?, DType::I32);
        bits.try_remainder(high - low)?.try_add(low)
    }

    /// True with probability `p`.
    fn bernoulli | try_bernoulli(p: f64, shape: impl Into<Dims>) {
        if !(0.0..=1.0).contains(&p) {
            bail!(Argument, "{p} is not a probability");
        }
        uniform(shape.into().extents()?, next_key(), RandomKind::Uniform).try_lt(p)
    }
}

impl Tensor {
    /// A vector of numbers.
    #[track_caller]
    pub fn vector(data: &[f32]) -> Tensor {
        Tensor::from_slice(data, [data.len()])
    }

    /// Numbers in row-major order, collecting gradients or not: `Tensor::new(vec![1.0, 2.0], &[2], true)`.
    #[track_caller]
    pub fn new(data: Vec<f32>, shape: &[usize], requires_grad: bool) -> Tensor {
        Tensor::from_vec(data, shape).requires_grad(requires_grad)
    }

    /// [`new`](Self::new) on a device of choice.
    #[track_caller]
    pub fn new_on_device(data: Vec<f32>, shape: &[usize], requires_grad: bool, device: Device) -> Tensor {
        let _scope = LayerScope::enter(None);
        with_device(device, || Tensor::new(data, shape, requires_grad))
    }

    /// A single number, without axes.
    pub fn scalar(value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        Tensor::variable_of(constant(value, Shape::of(&[]), value.natural_dtype()).node())
    }

    fn from_elements<T: Element>(data: &[T], shape: Shape) -> Result<Tensor> {
        if data.len() != shape.numel() {
            bail!(Shape, "{} elements do not fill shape {shape}, which has {}", data.len(), shape.numel());
        }
        Tensor::from_bytes(T::DTYPE, bytes_of(data), shape, default_device())
    }

    /// A tensor of elements as they lie in the host's memory, as many as `shape` has; a truth value is 0 or 1.
    pub(crate) fn from_bytes(dtype: DType, bytes: &[u8], shape: Shape, device: Device) -> Result<Tensor> {
        debug_assert_eq!(bytes.len(), shape.numel() * dtype.size());
        require(device, dtype)?;
        let storage = crate::engine::executor(device)?.upload(dtype, bytes)?;
        Ok(Tensor::from_node(Node::realized(shape, dtype, device, storage)))
    }

    /// What `make` makes, on this tensor's device and in its type.
    #[track_caller]
    fn like(&self, make: impl FnOnce() -> Tensor) -> Tensor {
        Tensor::variable_of(with_device(self.device(), make).to_dtype(self.dtype()).node())
    }

    /// Zeros of this tensor's shape and type.
    pub fn zeros_like(&self) -> Tensor {
        Tensor::variable_of(self.constant_like(0.0).node())
    }

    /// Ones of this tensor's shape and type.
    pub fn ones_like(&self) -> Tensor {
        Tensor::variable_of(self.constant_like(1.0).node())
    }

    /// `value` in this tensor's shape and type. A number that an integer type does not reach is an error.
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Tensor {
        self.try_full_like(value).unwrap_or_else(|e| e.raise())
    }

    /// [`full_like`](Self::full_like) that returns its error.
    #[track_caller]
    pub fn try_full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let full = || Ok(self.constant_like(value.into().checked(self.dtype())?));
        run_op("full_like", full).map(|t: Tensor| Tensor::variable_of(t.node()))
    }

    /// [`rand`](Self::rand) of this tensor's shape and type.
    pub fn rand_like(&self) -> Tensor {
        self.like(|| cut(Tensor::rand(self.shape()), self.dtype()))
    }

    /// [`randn`](Self::randn) of this tensor's shape and type.
    pub fn randn_like(&self) -> Tensor {
        self.like(|| Tensor::randn(self.shape()))
    }

    /// [`randint`](Self::randint) of this tensor's shape and type.
    #[track_caller]
    pub fn randint_like(&self, low: i64, high: i64) -> Tensor {
        self.like(|| Tensor::randint(low, high, self.shape()))
    }
}

/// Elements as they lie in memory.
pub(crate) fn bytes_of<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: every `Element` is a plain number (or bool, a byte of 0 or 1) without padding; the trait is sealed.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}
