//! Whether the steps of a training go well: counted on the device, and read with the loss, which is read anyway.

use crate::autograd::no_grad;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::optim::try_all_finite;
use crate::tensor::Tensor;
use crate::train::Outcome;

/// A training whose steps are skipped this often in a row is not going anywhere: a loss scale of 65536 is 2⁻¹⁶ by then.
pub(super) const MAX_SKIPPED_IN_A_ROW: u64 = 32;

/// What the device counts since it was read last.
#[derive(Clone, Default)]
pub(super) struct Health {
    /// Whether all losses of the step under way are finite.
    losses: Option<Tensor>,
    /// Steps since the last reading.
    steps: u64,
    /// How many of them came before the first whose loss or gradient is not finite.
    good: Option<Tensor>,
    /// How many of them were skipped; what a checkpoint says of those before.
    skipped: Option<Tensor>,
    skipped_before: u64,
    /// How many were skipped in a row, up to the last one, and up to the last reading.
    streak: Option<Tensor>,
    streak_before: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// The first step that was not finite, counted from 1 since the reading before.
    pub first_bad: Option<u64>,
    /// Steps that were skipped since the reading before; of the last ones, how many in a row.
    pub skipped: u64,
    pub streak: u64,
}

impl Health {
    /// Goes on from a checkpoint that has these counts.
    pub fn after(skipped: u64, streak: u64) -> Health {
        Health { skipped_before: skipped, streak_before: streak, ..Health::default() }
    }

    /// Counts the steps that are skipped from here on.
    pub fn forget_skipped(&mut self) {
        self.skipped_before = 0;
    }

    /// Takes in the loss of a batch; whether it is finite, or a mean over nothing, which does no harm.
    pub fn add_loss(&mut self, outcome: &Outcome) -> Result<Tensor> {
        let finite = no_grad(|| {
            let finite = is_finite(&outcome.loss)?;
            match &outcome.counted {
                Some(counted) => finite.try_logical_or(&counted.try_le(0.0)?.try_to_device(finite.device())?),
                None => Ok(finite),
            }
        })?;
        self.losses = Some(match self.losses.take() {
            Some(before) => before.try_logical_and(&finite)?,
            None => finite.clone(),
        });
        Ok(finite)
    }

    /// Whether all losses of the step under way are finite, as far as they have come in.
    pub fn losses(&self) -> Option<&Tensor> {
        self.losses.as_ref()
    }

    /// Says whether they are, of all ranks.
    pub fn set_losses(&mut self, finite: Tensor) {
        self.losses = Some(finite);
    }

    /// Takes in a step: whether it was finite, and whether it was made, where it may have been skipped.
    pub fn add_step(&mut self, finite: Option<&Tensor>, made: Option<&Tensor>) -> Result<()> {
        no_grad(|| {
            if let Some(finite) = finite {
                let good = match &self.good {
                    // What comes after the first bad step does not count.
                    Some(good) => {
                        let all_so_far = good.try_ge(self.steps as f64)?;
                        let finite = finite.try_to_device(good.device())?.try_logical_and(&all_so_far)?;
                        good.try_add(&finite.try_to_dtype(DType::F32)?)?
                    }
                    None => finite.try_to_dtype(DType::F32)?,
                };
                set(&mut self.good, good)?;
            }
            if let Some(made) = made {
                let device = self.skipped.as_ref().map_or(made.device(), Tensor::device);
                let missed = made.try_to_device(device)?.try_logical_not()?.try_to_dtype(DType::F32)?;
                let streak = match &self.streak {
                    Some(streak) => missed.try_mul(&streak.try_add(1.0)?)?,
                    None => missed.try_mul(self.streak_before as f64 + 1.0)?,
                };
                let skipped = match &self.skipped {
                    Some(skipped) => skipped.try_add(&missed)?,
                    None => missed.try_add(self.skipped_before as f64)?,
                };
                set(&mut self.streak, streak)?;
                set(&mut self.skipped, skipped)?;
            }
            Ok(())
        })?;
        self.losses = None;
        self.steps += 1;
        Ok(())
    }

    /// What is to be read, each a number on the device.
    pub fn counters(&self) -> Vec<Tensor> {
        [&self.good, &self.skipped, &self.streak].into_iter().flatten().cloned().collect()
    }

    /// What the [counters](Self::counters) say that were read as `numbers`.
    pub fn verdict(&self, numbers: &[f64]) -> Verdict {
        let mut numbers = numbers.iter().map(|&n| n as u64);
        let mut next = |counter: &Option<Tensor>| counter.as_ref().and_then(|_| numbers.next());
        let good = next(&self.good);
        Verdict {
            first_bad: good.filter(|&good| good < self.steps).map(|good| good + 1),
            skipped: next(&self.skipped).unwrap_or(self.skipped_before),
            streak: next(&self.streak).unwrap_or(self.streak_before),
        }
    }

    /// Starts counting anew behind a reading.
    pub fn restart(&mut self, verdict: &Verdict) {
        *self = Health::after(0, verdict.streak);
    }

    /// How many steps were counted since the last reading.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Whether one number is finite.
pub(super) fn is_finite(number: &Tensor) -> Result<Tensor> {
    // Zero times anything finite is zero, of anything else NaN.
    number.detach().try_mul(0.0)?.try_eq(0.0)
}

/// Whether all numbers of all tensors are, which may be on several devices.
pub(super) async fn are_finite(tensors: &[Tensor]) -> Result<bool> {
    let mut devices: Vec<Device> = Vec::new();
    for tensor in tensors {
        if !devices.contains(&tensor.device()) {
            devices.push(tensor.device());
        }
    }
    for device in devices {
        let there: Vec<Tensor> = tensors.iter().filter(|t| t.device() == device).cloned().collect();
        if let Some(finite) = no_grad(|| try_all_finite(&there))?
            && finite.to_vec_async::<bool>().await? != [true]
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives a counter its next value.
fn set(counter: &mut Option<Tensor>, value: Tensor) -> Result<()> {
    match counter {
        Some(counter) => counter.try_assign(&value),
        None => {
            *counter = Some(value.variable());
            Ok(())
        }
    }
}
