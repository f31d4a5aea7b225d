//! One model, several devices: each computes the gradients of some parts of a batch.

use super::devices::check_devices;
use super::gradient_parts::{GradientParts, TreeSum};
use super::replicas::Replicas;
use super::shares::Speeds;
use super::times::Times;
use crate::autograd::no_grad;
use crate::call::{Call, LayerScope};
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine::{begin_independent, executor};
use crate::error::{Result, bail};
use crate::graph::Node;
use crate::nn::Module;
use crate::optim::GradScaler;
use crate::random::threefry;
use crate::shape::Shape;
use crate::tensor::{RngScope, RngState, Tensor, compute_only, copied_to, next_key};
use std::ops::Range;
use std::sync::Arc;

/// Computes gradients on several devices, for one optimizer.
///
/// The model, its optimizer and everything that is saved stay on the first device. A batch is cut into parts along its first axis; each
/// device has the model's values as they are, and computes the loss and the gradients of some parts. The parameters get the gradient of the
/// mean over the batch, in which a part counts by its rows. Without [`with_gradient_parts`](Self::with_gradient_parts) each device has one
/// part. With it, devices of one kind give the same bits, however many there are.
///
/// Random numbers, such as those of dropout, depend on the part. What a forward pass changes, such as the running statistics of batch norm,
/// is the mean of what the parts have made of it; each part is normalised by its own statistics. No gradient flows to the batch.
///
/// ```
/// use volta::{Device, Linear, Module, SGD, Tensor, mse_loss, parallel::DataParallel};
///
/// let model = Linear::new(3, 1, true);
/// let mut sgd = SGD::new(model.parameters(), 0.1, 0.0, 0.0);
/// let mut parallel = DataParallel::new(&model, &[Device::Cpu])?.with_gradient_parts(4)?;
/// let (x, y) = (Tensor::rand([8, 3]), Tensor::rand([8, 1]));
/// let loss = parallel.try_backward(&x, &y, |x, y| Ok(mse_loss(&model.try_forward(x)?, y)))?;
/// sgd.step();
/// assert!(loss.item::<f32>() > 0.0);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct DataParallel {
    replicas: Replicas,
    parts: GradientParts,
    /// Whether the parts are those that were asked for, and not one for each device.
    has_fixed_parts: bool,
    /// How many parts each device has.
    counts: Vec<usize>,
    speeds: Option<Speeds>,
    /// Steps that were made, where speeds are measured.
    steps: u64,
    /// What each part has collected since gradients were added up last.
    collected: Vec<Collected>,
}

/// Steps whose time is not that of those that follow.
const WARM_UP_STEPS: u64 = 2;

/// What a part has collected.
#[derive(Clone, Default)]
struct Collected {
    gradients: Vec<Option<Tensor>>,
    /// The buffers that it has changed.
    buffers: Vec<Option<Arc<Node>>>,
    sums: Option<Tensor>,
}

/// What the step of a part gives.
pub(crate) struct PartOutput {
    /// A mean over the part's rows, to be made smaller.
    pub loss: Tensor,
    /// Numbers to be summed over all parts.
    pub sums: Vec<Tensor>,
}

/// How a batch counts, and what is done with it.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'s> {
    /// What the batch counts in the step, which may have more than one.
    pub factor: f64,
    /// What losses are multiplied by before they are differentiated, one number.
    pub scale: Option<&'s Tensor>,
    /// Whether gradients are added up behind it.
    pub is_last: bool,
}

/// The values of a branch of the tree, all on one device.
type Values = Vec<Option<Tensor>>;

impl DataParallel {
    /// Computes with `model`, which must be on the first of the devices.
    #[track_caller]
    pub fn new(model: &(impl Module + ?Sized), devices: &[Device]) -> Result<DataParallel> {
        let _call = Call::enter("DataParallel::new");
        DataParallel::with_replicas(Replicas::new(model, devices))
    }

    /// Computes with these parameters and buffers of a model, each of which is given once.
    #[track_caller]
    pub fn of_tensors(
        parameters: Vec<Tensor>,
        buffers: Vec<Tensor>,
        devices: &[Device],
    ) -> Result<DataParallel> {
        let _call = Call::enter("DataParallel::new");
        DataParallel::with_replicas(Replicas::of(parameters, buffers, devices))
    }

    fn with_replicas(replicas: Replicas) -> Result<DataParallel> {
        check_devices(&replicas.devices)?;
        // One that is not there is an error here.
        replicas.devices.iter().try_for_each(|device| executor(*device)?.rules().map(drop))?;
        replicas.check()?;
        let count = replicas.devices.len();
        let parts = GradientParts::new(count)?;
        let (counts, collected) = (vec![1; count], Vec::new());
        Ok(DataParallel {
            replicas,
            parts,
            has_fixed_parts: false,
            counts,
            speeds: None,
            steps: 0,
            collected,
        })
    }

    /// Cuts batches into so many parts, at least one for each device, whose gradients are added in a tree that depends on their number
    /// alone. A device computes its parts one after the other, so more of them take less memory at a time.
    #[track_caller]
    pub fn with_gradient_parts(mut self, parts: usize) -> Result<DataParallel> {
        let _call = Call::enter("with_gradient_parts");
        let devices = self.replicas.devices.len();
        if parts < devices {
            bail!(Argument, "{parts} gradient parts do not give each of {devices} devices one");
        }
        self.parts = GradientParts::new(parts)?;
        self.counts = (0..devices).map(|k| self.parts.equal_share(devices, k).len()).collect();
        self.has_fixed_parts = true;
        Ok(self)
    }

    /// Gives devices shares of a batch that suit how fast they are, measured while they run. Measuring waits for the devices once a step.
    /// With fixed [gradient parts](Self::with_gradient_parts) only who computes them changes; without, the parts do, and the last bits of
    /// results differ from run to run.
    #[must_use]
    pub fn with_shares_by_speed(mut self) -> DataParallel {
        self.speeds = Some(Speeds::new(self.replicas.devices.len()));
        self
    }

    /// The devices, the model's own first.
    pub fn devices(&self) -> &[Device] {
        &self.replicas.devices
    }

    /// How many parts a batch has.
    pub fn parts(&self) -> GradientParts {
        self.parts
    }

    /// The share of a batch that each device has now: its parts if these are fixed, else its part of all rows in 1000.
    pub fn shares(&self) -> Result<Vec<usize>> {
        match (&self.speeds, self.has_fixed_parts) {
            (Some(speeds), true) => speeds.shares(self.parts.count()),
            (Some(speeds), false) => speeds.shares(1000.max(self.counts.len())),
            _ => Ok(self.counts.clone()),
        }
    }

    /// Adds the gradient of a batch's mean loss to what the parameters have collected, and gives that loss. `step` computes the mean loss
    /// of some rows of the batch with the model; it is called once for each part.
    #[track_caller]
    pub fn try_backward(
        &mut self,
        x: &Tensor,
        y: &Tensor,
        step: impl FnMut(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        // What goes wrong in here names the line that called it.
        let _scope = LayerScope::enter(None);
        self.backward(x, y, None, step)
    }

    /// [`try_backward`](Self::try_backward) of the loss times the scaler's scale, for half precision: the scaler unscales the gradients
    /// before it steps. The loss that is given is not scaled.
    #[track_caller]
    pub fn try_backward_scaled(
        &mut self,
        scaler: &GradScaler,
        x: &Tensor,
        y: &Tensor,
        step: impl FnMut(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let _scope = LayerScope::enter(None);
        self.backward(x, y, Some(scaler.scale_in_use()), step)
    }

    fn backward(
        &mut self,
        x: &Tensor,
        y: &Tensor,
        scale: Option<&Tensor>,
        mut step: impl FnMut(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let rows = x.shape().first().copied().unwrap_or(0);
        let mut weighed = |x: &Tensor, y: &Tensor| {
            let outside = LayerScope::leave();
            let loss = step(x, y)?;
            drop(outside);
            let share = x.size(0) as f64 / rows as f64;
            let sum = no_grad(|| loss.detach().try_to_dtype(DType::F32)?.try_mul(share))?;
            Ok(PartOutput { loss, sums: vec![sum] })
        };
        let pass = Pass { factor: 1.0, scale, is_last: true };
        let sums = self.run(x, y, pass, &mut weighed)?;
        let sums = sums.expect("the last batch gives them");
        no_grad(|| sums.try_reshape(Shape::of(&[])))
    }

    /// Computes all parts of a batch. If it is the last of a step, the parameters then have its gradients, and the sums that the parts gave
    /// are returned as one vector, added up over all batches since the last time.
    pub(crate) fn run(
        &mut self,
        x: &Tensor,
        y: &Tensor,
        pass: Pass<'_>,
        step: &mut dyn FnMut(&Tensor, &Tensor) -> Result<PartOutput>,
    ) -> Result<Option<Tensor>> {
        let done = self.run_parts(x, y, pass, step);
        if done.is_err() || pass.is_last {
            self.collected.clear();
        }
        done
    }

    fn run_parts(
        &mut self,
        x: &Tensor,
        y: &Tensor,
        pass: Pass<'_>,
        step: &mut dyn FnMut(&Tensor, &Tensor) -> Result<PartOutput>,
    ) -> Result<Option<Tensor>> {
        let batch = self.checked_rows(x, y)?;
        let owners = self.share_out()?;
        let rows = self.rows(batch)?;
        no_grad(|| self.replicas.update())?;
        let (inputs, scales) = no_grad(|| self.inputs(x, y, pass.scale, &owners, &rows))?;
        self.collected.resize(self.parts.count(), Collected::default());
        let key = next_key();
        let mut sums: Vec<TreeSum<Values>> = owners.iter().map(|_| TreeSum::new(self.parts)).collect();
        let mut times = Times::new(&self.replicas.devices);
        for (k, part) in in_turns(&self.replicas.devices, &owners) {
            let weight = rows[part].len() as f64 / batch as f64;
            let [low, high] = threefry(key, [part as u32, 0]);
            let seed = u64::from(high) << 32 | u64::from(low);
            let scale = scales.as_ref().map(|scales| &scales[k]);
            times.begin(k);
            let collected =
                self.compute(k, part, &inputs[part], (weight * pass.factor, scale), seed, step)?;
            if pass.is_last {
                self.collected[part] = Collected::default();
                let values = no_grad(|| self.values(collected, weight))?;
                no_grad(|| sums[k].add(part..part + 1, values, joined))?;
            } else {
                self.collected[part] = collected;
            }
            times.end(k, rows[part].len());
        }
        if !pass.is_last {
            return Ok(None);
        }
        if let Some(speeds) = &mut self.speeds {
            // The first steps compile their kernels.
            if self.steps >= WARM_UP_STEPS {
                times.measure(&sums_on_devices(&sums), speeds)?;
            }
            self.steps += 1;
        }
        no_grad(|| self.finish(sums)).map(Some)
    }

    /// How many rows a batch has, if it can be computed.
    #[track_caller]
    fn checked_rows(&self, x: &Tensor, y: &Tensor) -> Result<usize> {
        let _call = Call::enter("DataParallel::backward");
        let rows = rows_of(x, y)?;
        self.parts.check(rows)?;
        self.replicas.check()?;
        Ok(rows)
    }

    /// Forgets what parts have collected for a step that is not made.
    pub(crate) fn forget(&mut self) {
        self.collected.clear();
    }

    /// The parts of each device.
    fn share_out(&mut self) -> Result<Vec<Range<usize>>> {
        // What was collected stays where it is.
        if let Some(speeds) = &self.speeds
            && self.has_fixed_parts
            && self.collected.is_empty()
        {
            self.counts = speeds.shares(self.parts.count())?;
        }
        Ok((0..self.counts.len()).map(|k| self.parts.own(&self.counts, k)).collect())
    }

    /// The rows of each part.
    fn rows(&self, batch: usize) -> Result<Vec<Range<usize>>> {
        match &self.speeds {
            Some(speeds) if !self.has_fixed_parts => {
                let mut first = 0;
                let part = |count: usize| {
                    first += count;
                    first - count..first
                };
                Ok(speeds.shares(batch)?.into_iter().map(part).collect())
            }
            _ => Ok((0..self.parts.count()).map(|part| self.parts.rows(batch, part)).collect()),
        }
    }

    /// The rows of every part, and the scale, where they are needed.
    #[expect(clippy::type_complexity, reason = "a pair of lists")]
    fn inputs(
        &self,
        x: &Tensor,
        y: &Tensor,
        scale: Option<&Tensor>,
        owners: &[Range<usize>],
        rows: &[Range<usize>],
    ) -> Result<(Vec<(Tensor, Tensor)>, Option<Vec<Tensor>>)> {
        let devices = &self.replicas.devices;
        let mut wanted = Vec::new();
        for (k, own) in owners.iter().enumerate() {
            for rows in &rows[own.clone()] {
                for tensor in [x, y] {
                    wanted.push((tensor.detach().try_narrow(0, rows.start, rows.len())?, devices[k]));
                }
            }
        }
        wanted.extend(scale.into_iter().flat_map(|scale| devices.iter().map(|d| (scale.detach(), *d))));
        let moved = copied_to(wanted.iter().map(|(tensor, device)| (tensor, *device)))?;
        // Also what stays where it is gets memory of its own, as what was moved has.
        compute_only(&moved)?;
        let pairs = 2 * rows.len();
        let inputs = moved[..pairs].chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        Ok((inputs, scale.map(|_| moved[pairs..].to_vec())))
    }

    /// Computes a part on device `k`. The plans of it depend on nothing but the part.
    fn compute(
        &self,
        k: usize,
        part: usize,
        (x, y): &(Tensor, Tensor),
        (weight, scale): (f64, Option<&Tensor>),
        seed: u64,
        step: &mut dyn FnMut(&Tensor, &Tensor) -> Result<PartOutput>,
    ) -> Result<Collected> {
        let before = &self.collected[part];
        let _random = RngScope::from(RngState::new(seed, 0));
        let swapped = self.replicas.enter(k, &before.gradients, &before.buffers);
        begin_independent();
        let output = with_device(self.replicas.devices[k], || step(x, y))?;
        if output.loss.device() != self.replicas.devices[k] {
            bail!(
                Device,
                "the loss of a part that {} computes is on {}: compute it with what the step is given",
                self.replicas.devices[k],
                output.loss.device()
            );
        }
        let mut loss = output.loss.widened()?.try_mul(weight)?;
        if let Some(scale) = scale {
            loss = loss.try_mul(scale)?;
        }
        let sums = no_grad(|| packed(&output.sums, before.sums.as_ref()))?;
        loss.try_backward()?;
        let (gradients, mut buffers) = (swapped.gradients(), swapped.buffers());
        drop(swapped);
        buffers.iter_mut().zip(&before.buffers).for_each(|(now, before)| {
            if now.is_none() {
                *now = before.clone();
            }
        });
        let collected = Collected { gradients, buffers, sums: Some(sums) };
        let nodes = collected.buffers.iter().flatten().cloned().map(Tensor::from_node);
        let all: Vec<Tensor> =
            nodes.chain(collected.gradients.iter().chain([&collected.sums]).flatten().cloned()).collect();
        compute_only(&all)?;
        Ok(collected)
    }

    /// What of a part is added up: gradients, what the part's buffers count in their mean, and sums.
    fn values(&self, collected: Collected, weight: f64) -> Result<Values> {
        let share = |node: Arc<Node>| -> Result<Tensor> {
            let buffer = Tensor::from_node(node);
            if buffer.dtype().is_float() { buffer.try_mul(weight) } else { Ok(buffer) }
        };
        let mut values = collected.gradients;
        for buffer in collected.buffers {
            values.push(buffer.map(share).transpose()?);
        }
        values.push(collected.sums);
        compute_only(values.iter().flatten())?;
        Ok(values)
    }

    /// Adds up what the devices have, and gives it to the model; the sums.
    fn finish(&mut self, sums: Vec<TreeSum<Values>>) -> Result<Tensor> {
        let mut branches: Vec<(Range<usize>, usize, Values)> = Vec::new();
        for (k, sum) in sums.into_iter().enumerate() {
            branches.extend(sum.into_branches().into_iter().map(|(branch, values)| (branch, k, values)));
        }
        while branches.len() > 1 {
            branches = self.joined_across(branches)?;
        }
        let Some((_, _, mut values)) = branches.pop() else { bail!(Argument, "no part was computed") };
        let sums = values.pop().flatten().expect("every part has sums");
        let buffers = values.split_off(self.replicas.parameters.len());
        for (parameter, gradient) in self.replicas.parameters.iter().zip(values) {
            let Some(gradient) = gradient else { continue };
            let sum = match parameter.grad() {
                Some(before) => before.try_add(&gradient)?,
                None => gradient,
            };
            parameter.set_grad(Some(sum));
        }
        for (buffer, value) in self.replicas.buffers.iter().zip(buffers) {
            if let Some(value) = value {
                buffer.try_assign(&value)?;
            }
        }
        Ok(sums)
    }

    /// One level of the tree: all branches whose sibling is there are added to it, where the left one of both is.
    fn joined_across(
        &self,
        branches: Vec<(Range<usize>, usize, Values)>,
    ) -> Result<Vec<(Range<usize>, usize, Values)>> {
        let (mut alone, mut pairs) = (Vec::new(), Vec::new());
        let mut rest = branches.into_iter().peekable();
        while let Some((branch, k, values)) = rest.next() {
            match self.parts.sibling(&branch) {
                Some((sibling, both)) if rest.peek().is_some_and(|(next, ..)| *next == sibling) => {
                    let (_, _, right) = rest.next().expect("it was looked at");
                    pairs.push((both, k, values, right));
                }
                _ => alone.push((branch, k, values)),
            }
        }
        // What several devices give comes by turns, so that none of them waits for another's.
        let count = pairs.first().map_or(0, |(.., right)| right.len());
        let places: Vec<(usize, usize)> =
            (0..count).flat_map(|v| (0..pairs.len()).map(move |p| (v, p))).collect();
        let there =
            |&(v, p): &(usize, usize)| Some((pairs[p].3[v].as_ref()?, self.replicas.devices[pairs[p].1]));
        let mut moved = copied_to(places.iter().filter_map(there))?.into_iter();
        for (v, p) in places {
            if pairs[p].3[v].is_some() {
                pairs[p].3[v] = moved.next();
            }
        }
        for (both, k, left, right) in pairs {
            alone.push((both, k, joined(left, right)?));
        }
        alone.sort_by_key(|(branch, ..)| branch.start);
        Ok(alone)
    }
}

/// How many rows a batch has.
fn rows_of(x: &Tensor, y: &Tensor) -> Result<usize> {
    match (x.shape().first(), y.shape().first()) {
        (Some(rows), Some(others)) if rows == others => Ok(*rows),
        _ => bail!(
            Shape,
            "a batch is cut along the first axis of its inputs and its targets, and these have shapes {} and {}",
            x.shape(),
            y.shape()
        ),
    }
}

/// The sum of two branches, in a plan of its own: nothing of what they were made of is computed with it, which might round otherwise.
/// Numbers that are no floats, such as how many batches a layer has seen, are those of the first part.
fn joined(left: Values, right: Values) -> Result<Values> {
    let sum = |(left, right): (Option<Tensor>, Option<Tensor>)| match (left, right) {
        (Some(left), Some(right)) if left.dtype().is_float() => left.try_add(&right).map(Some),
        (left, right) => Ok(left.or(right)),
    };
    let sums = left.into_iter().zip(right).map(sum).collect::<Result<Values>>()?;
    compute_only(sums.iter().flatten())?;
    Ok(sums)
}

/// Numbers as one vector, added to an earlier one.
fn packed(sums: &[Tensor], before: Option<&Tensor>) -> Result<Tensor> {
    let flat = |sum: &Tensor| sum.detach().try_to_dtype(DType::F32)?.try_reshape([1]);
    let all = Tensor::try_cat(&sums.iter().map(flat).collect::<Result<Vec<_>>>()?, 0)?;
    before.map_or_else(|| Ok(all.clone()), |before| before.try_add(&all))
}

/// The order in which parts are begun, with their devices: the first of each device, then the second. Devices that compute while the host
/// goes on are begun with before those that do not.
fn in_turns(devices: &[Device], owners: &[Range<usize>]) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, usize)> =
        owners.iter().enumerate().flat_map(|(k, own)| own.clone().map(move |part| (k, part))).collect();
    order.sort_by_key(|&(k, part)| (part - owners[k].start, !devices[k].is_gpu(), k));
    order
}

/// A small result of the last part of each device.
fn sums_on_devices(sums: &[TreeSum<Values>]) -> Vec<Option<Tensor>> {
    sums.iter().map(|sum| sum.last().and_then(|values| values.last().cloned().flatten())).collect()
}
