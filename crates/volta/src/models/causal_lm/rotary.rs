//! The frequencies of rotary positions, and how they are stretched for contexts longer than a model was first trained with.

use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::f64::consts::TAU;
use std::sync::Mutex;

/// How frequencies are stretched.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum RotaryScaling {
    /// Not at all.
    #[default]
    None,
    /// All by one factor.
    Linear {
        /// What they are divided by.
        factor: f64,
    },
    /// Llama 3's: low frequencies by a factor, high ones not at all, those between by a mixture.
    Llama3 {
        /// What low frequencies are divided by.
        factor: f64,
        /// Wavelengths beyond the context over this are divided.
        low: f64,
        /// Wavelengths below the context over this stay.
        high: f64,
        /// The context of the first training.
        context: f64,
    },
    /// YaRN (Peng et al., 2023).
    Yarn {
        /// What low frequencies are divided by.
        factor: f64,
        /// The context of the first training.
        context: f64,
        /// From so many turns within that context on, a frequency stays.
        beta_fast: f64,
        /// Up to so many turns, it is divided.
        beta_slow: f64,
        /// What queries and keys are multiplied by.
        attention: f64,
        /// Whether the ends of the mixture are whole numbers.
        truncate: bool,
    },
    /// Each frequency by a factor of its own, as GGUF files have them.
    Factors(Vec<f32>),
}

/// Rotations of the first `width` elements of each head's queries and keys, in pairs half of that apart.
#[derive(Clone, Debug, PartialEq)]
pub struct RotaryOptions {
    /// The base of the frequencies.
    pub base: f64,
    /// How many elements of a head are rotated.
    pub width: usize,
    /// How frequencies are stretched.
    pub scaling: RotaryScaling,
}

impl RotaryOptions {
    /// Frequencies as they are.
    pub fn new(base: f64, width: usize) -> RotaryOptions {
        RotaryOptions { base, width, scaling: RotaryScaling::None }
    }

    pub(super) fn check(&self, head_width: usize) -> Result<()> {
        let RotaryOptions { base, width, .. } = *self;
        if width == 0 || !width.is_multiple_of(2) || width > head_width {
            bail!(
                Argument,
                "{width} of the {head_width} elements of a head cannot be rotated: an even number is needed"
            );
        }
        if !(base > 1.0 && base.is_finite()) {
            bail!(Argument, "a rotary base of {base} must be more than 1 and finite");
        }
        let numbers: &[(&str, f64)] = match &self.scaling {
            RotaryScaling::None => &[],
            RotaryScaling::Linear { factor } => &[("factor", *factor)],
            RotaryScaling::Llama3 { factor, low, high, context } => {
                if low >= high {
                    bail!(Argument, "a rotary low_freq_factor of {low} must be below the high one, {high}");
                }
                &[("factor", *factor), ("low_freq_factor", *low), ("original context", *context)]
            }
            RotaryScaling::Yarn { factor, context, beta_fast, beta_slow, attention, .. } => &[
                ("factor", *factor),
                ("original context", *context),
                ("beta_fast", *beta_fast),
                ("beta_slow", *beta_slow),
                ("attention_factor", *attention),
            ],
            RotaryScaling::Factors(factors) => {
                if factors.len() != width / 2 || factors.iter().any(|f| !(*f > 0.0 && f.is_finite())) {
                    let count = factors.len();
                    bail!(Argument, "{count} rotary factors: {} that are more than 0 are needed", width / 2);
                }
                &[]
            }
        };
        match numbers.iter().find(|(_, x)| !(*x > 0.0 && x.is_finite())) {
            Some((name, x)) => bail!(Argument, "a rotary {name} of {x} must be more than 0 and finite"),
            None => Ok(()),
        }
    }

    /// What a position is multiplied by for each pair, and what both sides are multiplied by.
    pub(super) fn frequencies(&self) -> (Vec<f32>, f64) {
        let half = self.width / 2;
        let plain = |k: usize| self.base.powf(-2.0 * k as f64 / self.width as f64);
        let each = |f: &dyn Fn(usize, f64) -> f64| (0..half).map(|k| f(k, plain(k)) as f32).collect();
        match &self.scaling {
            RotaryScaling::None => (each(&|_, w| w), 1.0),
            RotaryScaling::Linear { factor } => (each(&|_, w| w / factor), 1.0),
            RotaryScaling::Factors(factors) => (each(&|k, w| w / f64::from(factors[k])), 1.0),
            &RotaryScaling::Llama3 { factor, low, high, context } => {
                let stretch = |_, w: f64| {
                    // How often it turns within the first context.
                    let turns = context * w / TAU;
                    let share = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    w / factor * (1.0 - share) + w * share
                };
                (each(&stretch), 1.0)
            }
            &RotaryScaling::Yarn { factor, context, beta_fast, beta_slow, attention, truncate } => {
                let width = self.width as f64;
                let place = |turns: f64| width * (context / (turns * TAU)).ln() / (2.0 * self.base.ln());
                let (mut first, mut last) = (place(beta_fast), place(beta_slow));
                if truncate {
                    (first, last) = (first.floor(), last.ceil());
                }
                (first, last) = (first.max(0.0), last.min(width - 1.0));
                if first == last {
                    last += 0.001;
                }
                let mixed = |k: usize, w: f64| {
                    let ramp = ((k as f64 - first) / (last - first)).clamp(0.0, 1.0);
                    w / factor * ramp + w * (1.0 - ramp)
                };
                (each(&mixed), attention)
            }
        }
    }
}

/// The frequencies of a model, on the device that last asked for them.
pub(super) struct Frequencies {
    options: RotaryOptions,
    table: Mutex<Option<Tensor>>,
}

/// Cosines and sines of (length, pairs), or of (batch, 1, 1, pairs).
pub(super) struct Rotation {
    cos: Tensor,
    sin: Tensor,
}

impl Frequencies {
    pub fn new(options: RotaryOptions) -> Frequencies {
        Frequencies { options, table: Mutex::new(None) }
    }

    fn table(&self, device: Device) -> Result<Tensor> {
        let mut table = self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(table) = table.as_ref().filter(|t| t.device() == device) {
            return Ok(table.clone());
        }
        let values = self.options.frequencies().0;
        let shape = [1, values.len()];
        Ok(table.insert(with_device(device, || Tensor::try_from_vec(values, shape))?).clone())
    }

    /// The rotations of `length` positions from `start` on. The position is an argument of the plan.
    pub fn rotation(&self, device: Device, start: usize, length: usize) -> Result<Rotation> {
        let table = self.table(device)?;
        let positions = table.index_rule(0, Shape::of(&[length, 1]), DType::F32).try_add(start as f64)?;
        self.turned(&positions, &table)
    }

    /// The rotations of one position each of a batch, of (batch, 1, 1, 1).
    pub fn rotation_at(&self, places: &Tensor) -> Result<Rotation> {
        self.turned(&places.try_to_dtype(DType::F32)?, &self.table(places.device())?)
    }

    fn turned(&self, positions: &Tensor, table: &Tensor) -> Result<Rotation> {
        let angle = positions.try_mul(table)?;
        let factor = self.options.frequencies().1;
        let scaled = |t: Tensor| if factor == 1.0 { Ok(t) } else { t.try_mul(factor) };
        Ok(Rotation { cos: scaled(angle.try_cos()?)?, sin: scaled(angle.try_sin()?)? })
    }
}

impl Rotation {
    /// Turns `x` of (batch, heads, length, width of a head).
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (half, width) = (self.cos.size(-1), x.size(-1));
        x.in_wide(|x| {
            let (a, b) = (x.try_narrow(-1, 0, half)?, x.try_narrow(-1, half, half)?);
            let first = a.try_mul(&self.cos)?.try_sub(&b.try_mul(&self.sin)?)?;
            let second = b.try_mul(&self.cos)?.try_add(&a.try_mul(&self.sin)?)?;
            if width == 2 * half {
                return Tensor::try_cat(&[first, second], -1);
            }
            Tensor::try_cat(&[first, second, x.try_narrow(-1, 2 * half, width - 2 * half)?], -1)
        })
    }
}
