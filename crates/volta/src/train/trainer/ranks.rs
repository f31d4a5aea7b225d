//! Training as one of several ranks: this rank's part of each batch, and the exchange of gradients.

use super::local_steps::Outer;
use super::sharding::Shards;
use super::{Run, Step, Trainer};
use crate::autograd::no_grad;
use crate::data::DataLoader;
use crate::default_device::with_device;
use crate::device::Device;
use crate::dtype::DType;
use crate::engine::begin_independent;
use crate::error::{Result, bail};
use crate::parallel::{
    Buckets, Exchange, ExchangeCost, ExchangeOptions, GradientParts, Reading, Sharding, Summation, TreeSum,
    World, agree, join,
};
use crate::random::threefry;
use crate::state::{State, Stateful};
use crate::telemetry::span;
use crate::tensor::{RngScope, RngState, Tensor, compute_only, next_key, try_realize_all};
use crate::train::metrics::{Means, Meter, Outcome, Totals, read_together};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a trainer knows of the other ranks.
pub(super) struct Ranks {
    pub world: Arc<dyn World>,
    pub options: ExchangeOptions,
    /// The parts of a batch, and which of them this rank has.
    parts: GradientParts,
    own: Range<usize>,
    /// Since training began.
    pub exchange: Option<Exchange>,
    /// Since the first backward pass.
    buckets: Option<Buckets>,
    /// Sums of gradients that were begun, and those that are here, of the step under way.
    sums: (usize, usize),
    /// What is shared out, if anything is.
    pub shards: Option<Shards>,
    /// The outer optimizer, if ranks make steps by themselves.
    pub outer: Option<Outer>,
    /// Gradients of the batches of a step so far: by part and bucket.
    collected: Vec<Vec<Vec<f32>>>,
    /// The buffers when the step began, and as each part has left them.
    buffers_before: Vec<Tensor>,
    buffers_after: Vec<Vec<Tensor>>,
    /// What was measured since the last reading, by part.
    pub meters: Vec<Meter>,
    /// What all ranks had in those meters, for a checkpoint.
    totals: Vec<Totals>,
    /// What this rank has learnt from since the last exchange.
    units: usize,
    /// Whether all ranks stop behind this step.
    pub is_stopped: bool,
    /// The step of the last checkpoint.
    pub saved: Option<u64>,
}

/// Buckets that are sent and not received yet, where gradients are shared out.
const MAX_UNDER_WAY: usize = 2;

/// Numbers behind all gradients and buffers: losses that are not finite, ranks that are asked to stop, units.
const EXTRAS: usize = 3;

impl<'t> Trainer<'t> {
    /// Trains as one of the ranks of a world, which share each batch: every rank calls this with a model, an optimizer, data and options
    /// that are alike, and with a folder that all of them see. The first rank's parameters count, and it alone writes files and shows
    /// progress. Losses, validations and speeds are those of all.
    ///
    /// ```
    /// use volta::data::{DataLoader, TensorDataset};
    /// use volta::parallel::{ExchangeOptions, ThreadWorld};
    /// use volta::train::{Trainer, TrainerOptions};
    /// use volta::{Linear, Module, SGD, Tensor, mse_loss};
    ///
    /// let weights = ThreadWorld::run(2, |world| {
    ///     let x = Tensor::arange(0, 8).to_dtype(volta::DType::F32).reshape([8, 1]) / 8.0;
    ///     let mut data = DataLoader::over(TensorDataset::from_tensors(&x, &(&x * 2.0))?, 4).with_seed(0);
    ///     let model = Linear::new(1, 1, true);
    ///     let mut sgd = SGD::new(model.parameters(), 0.5, 0.0, 0.0);
    ///     let options = TrainerOptions { epochs: 100, progress: false, ..TrainerOptions::default() };
    ///     let mut trainer = Trainer::new(&model, &mut sgd, options).with_world(world, ExchangeOptions::default());
    ///     trainer.fit(&mut data, None, |x, y| Ok(mse_loss(&model.try_forward(x)?, y).into()))?;
    ///     drop(trainer);
    ///     Ok(model.parameters()[0].to_vec::<f32>())
    /// });
    /// let [first, second] = [0, 1].map(|rank| weights[rank].clone().unwrap());
    /// assert!(first == second && (first[0] - 2.0).abs() < 0.1);
    /// ```
    #[must_use]
    pub fn with_world(mut self, world: Arc<dyn World>, options: ExchangeOptions) -> Trainer<'t> {
        // One process has nothing to exchange, and does what each rank does if it is asked for what they share out.
        let is_wanted =
            world.size() > 1 || options.sharding != Sharding::Nothing || options.local_steps.is_some();
        self.ranks = is_wanted.then(|| Ranks::new(world, options));
        self
    }

    /// What the exchange of gradients has cost in the last [`fit`](Self::fit), if there was any.
    pub fn exchange_cost(&self) -> Option<ExchangeCost> {
        let ranks = self.ranks.as_ref().filter(|ranks| ranks.world.size() > 1)?;
        Some(ranks.exchange.as_ref()?.cost())
    }

    /// Whether training ends behind this step: as all ranks have agreed, if there are several.
    pub(super) fn is_stopped(&self) -> bool {
        self.ranks.as_ref().map_or_else(|| self.stop.load(Ordering::Relaxed), |ranks| ranks.is_stopped)
    }

    /// Sees to it that all ranks want the same, and takes the first one's parameters.
    pub(super) fn begin_with_ranks(&mut self, train: &mut DataLoader, is_new: bool) -> Result<()> {
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        let (rank, size) = (ranks.world.rank(), ranks.world.size());
        let (options, loader) = (&self.options, train.state());
        let shapes = self.optimizer.parameters().iter().map(|p| format!("{} {}", p.dtype(), p.shape()));
        agree(
            &*ranks.world,
            &[
                ("Volta's version", env!("CARGO_PKG_VERSION").to_string()),
                ("the model", shapes.collect::<Vec<_>>().join(", ")),
                ("the number of training samples", train.dataset().len().to_string()),
                ("the batch size", train.batch_size().to_string()),
                ("the loader's seed", loader.int("seed")?.to_string()),
                ("steps", format!("{:?} in {} epochs", options.steps, options.epochs)),
                ("accumulate", options.accumulate.to_string()),
                ("clip", format!("{:?}", options.clip)),
                ("precision", format!("{:?}", options.precision)),
                ("log_every", options.log_every.to_string()),
                ("validate_every", format!("{:?}", options.validate_every)),
                ("checkpoint_every", format!("{:?}", options.checkpoint_every)),
                ("patience", format!("{:?}", options.patience)),
                ("on_non_finite", format!("{:?}", options.on_non_finite)),
                ("resume", options.resume.to_string()),
                ("gradient_parts", format!("{:?}", options.gradient_parts)),
                ("the exchange", format!("{:?}", ranks.options)),
            ],
        )?;
        if let Some(ranks) = &self.ranks {
            self.check_local_steps(ranks)?;
        }
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        if self.options.devices.len() > 1 {
            bail!(
                Argument,
                "each of several ranks has one device: start a rank for each of TrainerOptions::devices"
            );
        }
        let count = self.options.gradient_parts.unwrap_or(size);
        let each = count / size;
        if count != each * size || !each.is_power_of_two() {
            bail!(
                Argument,
                "{count} gradient parts cannot be shared out among {size} ranks: each must have one, two, four, … of them"
            );
        }
        ranks.parts = GradientParts::new(count)?;
        ranks.own = rank * each..(rank + 1) * each;
        ranks.parts.check(train.samples_of(train.len() - 1))?;
        ranks.meters = (0..each).map(|_| Meter::new()).collect();
        ranks.is_stopped = false;
        train.set_shard(rank, size);
        let mut base = [0; 16];
        let (seed, drawn) = RngState::save().parts();
        base[..8].copy_from_slice(&seed.to_le_bytes());
        base[8..].copy_from_slice(&drawn.to_le_bytes());
        ranks.world.broadcast(0, &mut base)?;
        let [seed, drawn] = [0, 1].map(|k| u64::from_le_bytes(base.as_chunks::<8>().0[k]));
        RngState::new(seed, drawn).restore();
        if is_new {
            let parameters = self.optimizer.parameters().iter().cloned();
            take_from_first(&*ranks.world, parameters.chain(self.model.buffers()))?;
        }
        let exchange = Exchange::new(ranks.world.clone())?;
        let gatherer = exchange.gatherer().clone();
        ranks.exchange = Some(exchange);
        if let Some(mut ranks) = self.ranks.take() {
            let shards = Shards::new(self, &ranks, ranks.options.sharding, gatherer);
            let local = ranks.options.local_steps;
            ranks.outer = local.map(|local| Outer::new(local, self.optimizer.parameters())).transpose()?;
            ranks.shards = shards?;
            self.ranks = Some(ranks);
        }
        Ok(())
    }

    /// The forward and the backward passes of this rank's parts of a batch, and the beginning of the exchange if it is the last of a step.
    pub(super) fn batch_of_rank(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        (x, y): (&Tensor, &Tensor),
        step: &mut Step<'_>,
    ) -> Result<()> {
        let Some(mut ranks) = self.ranks.take() else { return Ok(()) };
        let learnt = self.learn_parts(&mut ranks, run, train, (x, y), step);
        self.ranks = Some(ranks);
        learnt
    }

    fn learn_parts(
        &mut self,
        ranks: &mut Ranks,
        run: &mut Run,
        train: &DataLoader,
        (x, y): (&Tensor, &Tensor),
        step: &mut Step<'_>,
    ) -> Result<()> {
        self.remember_buffers(run);
        // The batch is handed out already.
        let samples = train.samples_of(train.position().saturating_sub(1));
        let first_row = ranks.parts.rows(samples, ranks.own.start).start;
        let is_last = run.waiting + 1 == run.group;
        // All ranks draw the same key, as a single process does.
        let key = next_key();
        let mut forward = |ranks: &Ranks, trainer: &Self, part: usize| -> Result<Outcome> {
            begin_independent();
            let rows = ranks.parts.rows(samples, part);
            let rows = rows.start - first_row..rows.end - first_row;
            let _random = random_numbers(key, part);
            trainer.outcome(&cut(x, &rows)?, &cut(y, &rows)?, step)
        };
        if run.waiting == 0 {
            ranks.buffers_before = self.model.buffers().iter().map(Tensor::detach).collect();
            ranks.buffers_after.clear();
        }
        for (k, part) in ranks.own.clone().enumerate() {
            // Each part begins with the buffers that the step began with, or as it has left them itself.
            let buffers = ranks.buffers_after.get(k).unwrap_or(&ranks.buffers_before);
            no_grad(|| {
                self.model.buffers().iter().zip(buffers).try_for_each(|(now, then)| now.try_assign(then))
            })?;
            let mut outcome = forward(ranks, self, part)?;
            let rows = ranks.parts.rows(samples, part).len();
            let units = outcome.units.map_or(rows, |(_, n)| n);
            let finite = run.health.add_loss(&outcome)?;
            // Of ranks that make steps by themselves, each learns from the mean over its own rows.
            let share = if ranks.outer.is_some() { 1.0 } else { ranks.parts.weight(samples, part) };
            let weight = share * (1.0 / run.group as f64);
            let loss = outcome.loss.widened()?.try_mul(weight)?;
            if self.skips() {
                outcome.counted = Some(no_grad(|| match &outcome.counted {
                    Some(counted) => finite.try_where_(counted, 0.0),
                    None => finite.try_to_dtype(DType::F32)?.try_mul(rows as f64),
                })?);
            }
            ranks.meters[k].add(&outcome, rows);
            ranks.units += units;
            match &self.scaler {
                Some(scaler) => scaler.scale(&loss).try_backward()?,
                None => loss.try_backward()?,
            }
            drop((loss, outcome));
            self.hand_over(ranks, run, k, is_last)?;
            let buffers = self.model.buffers().iter().map(Tensor::detach).collect();
            match ranks.buffers_after.get_mut(k) {
                Some(after) => *after = buffers,
                None => ranks.buffers_after.push(buffers),
            }
        }
        run.waiting += 1;
        if is_last && ranks.outer.is_none() { self.send_rest(ranks, run, samples) } else { Ok(()) }
    }

    /// Sends what is no gradient: the buffers' share in their mean, and what all ranks must know.
    fn send_rest(&self, ranks: &mut Ranks, run: &Run, samples: usize) -> Result<()> {
        let mut tree = TreeSum::new(GradientParts::new(ranks.own.len())?);
        for (k, after) in ranks.buffers_after.iter().enumerate() {
            let weight = ranks.parts.weight(samples, ranks.own.start + k);
            let mut numbers = Vec::new();
            for (buffer, before) in after.iter().zip(&ranks.buffers_before) {
                if is_averaged(buffer, before) {
                    numbers.extend(
                        no_grad(|| buffer.try_to_dtype(DType::F32)?.try_mul(weight))?.try_to_vec::<f32>()?,
                    );
                }
            }
            tree.add(k..k + 1, numbers, join)?;
        }
        let mut rest = tree.total()?;
        let is_finite = run.health.losses().map_or(Ok(true), Tensor::try_item::<bool>)?;
        let stops = self.stop.load(Ordering::Relaxed);
        let units = std::mem::take(&mut ranks.units);
        rest.extend([f32::from(u8::from(!is_finite)), f32::from(u8::from(stops)), units as f32]);
        let Some(exchange) = &mut ranks.exchange else { return Ok(()) };
        // Never as f16, which holds neither these nor running means well.
        let has_parts = self.options.gradient_parts.is_some();
        exchange.send(rest, if has_parts { Summation::Tree } else { Summation::AnyOrder })
    }

    /// Takes the gradients of part `k` of a batch, and sends the sums of all parts behind the last one.
    fn hand_over(&self, ranks: &mut Ranks, run: &Run, k: usize, is_last: bool) -> Result<()> {
        let parameters = self.optimizer.parameters();
        if ranks.outer.is_some() && run.group == 1 {
            return Ok(());
        }
        let scatters = ranks.shards.as_ref().is_some_and(Shards::scatters);
        let stay = !is_last || ranks.outer.is_some();
        if stay && self.options.gradient_parts.is_none() && !scatters {
            // They are added where they are; the graph of a batch goes before the next one comes.
            let gradients = parameters.iter().filter_map(Tensor::grad).chain(run.health.losses().cloned());
            return try_realize_all(&gradients.collect::<Vec<_>>());
        }
        let Some(exchange) = &mut ranks.exchange else { return Ok(()) };
        let buckets =
            ranks.buckets.get_or_insert_with(|| Buckets::new(parameters, ranks.options.bucket_bytes));
        let sends = is_last && k + 1 == ranks.own.len();
        let summation = ranks.options.summation(self.options.gradient_parts.is_some());
        ranks.collected.resize_with(ranks.own.len(), Vec::new);
        // What this rank has in bucket `b` goes into the tree, or waits for the other parts.
        let mut taken = |b: usize, mut numbers: Vec<f32>| -> Result<()> {
            let own = &mut ranks.collected[k];
            match own.get_mut(b) {
                Some(sum) => {
                    sum.iter_mut().zip(&numbers).for_each(|(sum, number)| *sum += number);
                    numbers = std::mem::take(sum);
                    own[b] = numbers;
                }
                None => own.push(numbers),
            }
            if !sends {
                return Ok(());
            }
            let mut tree = TreeSum::new(GradientParts::new(ranks.own.len())?);
            for (part, collected) in ranks.collected.iter_mut().enumerate() {
                tree.add(part..part + 1, std::mem::take(&mut collected[b]), join)?;
            }
            let total = tree.total()?;
            let Some(shards) = ranks.shards.as_mut().filter(|shards| shards.scatters()) else {
                return exchange.send(total, summation);
            };
            exchange.scatter(shards.layout.by_rank(buckets.parameters(b), &total), summation)?;
            ranks.sums.0 = b + 1;
            // Nobody is to have many whole sums at once.
            while ranks.sums.0 - ranks.sums.1 > MAX_UNDER_WAY {
                shards.take(buckets.parameters(ranks.sums.1), exchange.receive()?);
                ranks.sums.1 += 1;
            }
            Ok(())
        };
        let mut on_the_way = Vec::new();
        for b in 0..buckets.len() {
            match buckets.take(parameters, b)? {
                Reading::Here(numbers) => taken(b, numbers)?,
                // A device goes on with the next bucket while this one is read.
                reading => on_the_way.push(reading),
            }
        }
        on_the_way.into_iter().enumerate().try_for_each(|(b, reading)| taken(b, reading.wait()?))?;
        if sends {
            ranks.collected.clear();
        }
        Ok(())
    }

    /// Waits for the sums of all ranks, and gives them to the parameters.
    pub(super) fn receive_gradients(&mut self, run: &mut Run) -> Result<()> {
        let Some(ranks) = &mut self.ranks else { return Ok(()) };
        if ranks.outer.is_some() {
            // All have as many rows, up to one.
            let units = std::mem::take(&mut ranks.units) * ranks.world.size();
            run.units += units;
            self.units += units as u64;
            ranks.buffers_after.clear();
            return Ok(());
        }
        let (Some(exchange), Some(buckets)) = (&mut ranks.exchange, &ranks.buckets) else { return Ok(()) };
        let _span = span("exchange");
        let parameters = self.optimizer.parameters();
        let (_, received) = std::mem::take(&mut ranks.sums);
        for b in received..buckets.len() {
            let sums = exchange.receive()?;
            match ranks.shards.as_mut().filter(|shards| shards.scatters()) {
                Some(shards) => shards.take(buckets.parameters(b), sums),
                None => buckets.give(parameters, b, &sums)?,
            }
        }
        let mut rest = exchange.receive()?;
        let extras = rest.split_off(rest.len() - EXTRAS);
        let device = parameters.first().map_or(Device::Cpu, Tensor::device);
        let bad = with_device(device, || Tensor::scalar(extras[0]));
        run.health.set_losses(no_grad(|| bad.try_eq(0.0))?);
        ranks.is_stopped |= extras[1] > 0.0;
        run.units += extras[2] as usize;
        self.units += extras[2] as u64;
        let mut rest = &rest[..];
        for (buffer, before) in self.model.buffers().iter().zip(&ranks.buffers_before) {
            if is_averaged(buffer, before) {
                let (own, others) = rest.split_at(buffer.numel());
                rest = others;
                let mean =
                    with_device(buffer.device(), || Tensor::try_from_vec(own.to_vec(), &buffer.shape()[..]))?;
                no_grad(|| buffer.try_assign(&mean.try_to_dtype(buffer.dtype())?))?;
            }
        }
        ranks.buffers_after.clear();
        Ok(())
    }

    /// What the model makes of the validation data: each rank looks at some of the batches.
    pub(super) async fn means_of_ranks(&self, loader: &mut DataLoader, step: &mut Step<'_>) -> Result<Means> {
        let Some(ranks) = &self.ranks else { return Ok(Means::new()) };
        let (rank, size) = (ranks.world.rank(), ranks.world.size());
        loader.restart(0);
        let mut mine = Vec::new();
        // Who has none looks at the first one, and counts it not: it knows then what is measured.
        let numbers = (rank..loader.len()).step_by(size).chain((rank >= loader.len()).then_some(0));
        for number in numbers.take_while(|&number| number < loader.len()) {
            let (x, y) = loader.try_batch(number)?;
            let mut meter = Meter::new();
            no_grad(|| {
                meter.add(&self.outcome(&x, &y, step)?, x.size(0));
                meter.realize()
            })?;
            mine.push((number, meter.totals().await?));
        }
        let Some(like) = mine.first().map(|(_, totals)| totals.clone()) else { return Ok(Means::new()) };
        if rank >= loader.len() {
            mine.clear();
        }
        // Added in the order of the batches, whoever looked at them.
        Ok(Totals::means(&ranks.gather(&mine, &like)?))
    }
}

impl Ranks {
    fn new(world: Arc<dyn World>, options: ExchangeOptions) -> Ranks {
        Ranks {
            world,
            options,
            parts: GradientParts::new(1).expect("one part"),
            own: 0..1,
            exchange: None,
            buckets: None,
            sums: (0, 0),
            shards: None,
            outer: None,
            collected: Vec::new(),
            buffers_before: Vec::new(),
            buffers_after: Vec::new(),
            meters: Vec::new(),
            totals: Vec::new(),
            units: 0,
            is_stopped: false,
            saved: None,
        }
    }

    /// Whether this rank writes files.
    pub fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// The totals of all ranks, in the order of the numbers that stand with them.
    fn gather(&self, mine: &[(usize, Totals)], like: &Totals) -> Result<Vec<Totals>> {
        let record = |(number, totals): &(usize, Totals)| {
            let mut numbers = totals.to_numbers();
            numbers.insert(0, *number as f64);
            numbers
        };
        let length = like.to_numbers().len() + 1;
        let bytes = mine.iter().flat_map(record).flat_map(f64::to_le_bytes).collect::<Vec<u8>>();
        let mut all: Vec<(usize, Totals)> = Vec::new();
        for bytes in self.world.gather_bytes(&bytes)? {
            for record in numbers_of(&bytes).collect::<Vec<_>>().chunks(length) {
                all.push((record[0] as usize, like.like(&record[1..])?));
            }
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, totals)| totals).collect())
    }

    /// What all ranks have measured since the last reading, by part.
    async fn totals(&self) -> Result<Vec<Totals>> {
        let mut mine = Vec::new();
        for (part, meter) in self.own.clone().zip(&self.meters) {
            mine.push((part, meter.totals().await?));
        }
        let like = mine.first().map(|(_, totals)| totals.clone()).unwrap_or_default();
        self.gather(&mine, &like)
    }

    /// Whether anything was measured since the last reading.
    pub fn has_measured(&self) -> bool {
        self.meters.iter().any(|meter| meter.samples() > 0)
    }

    /// The means over all ranks since the last reading, with numbers that are the same everywhere.
    pub async fn read(&mut self, others: &[Tensor]) -> Result<(Means, Vec<f64>)> {
        let totals = self.totals().await?;
        self.meters.iter_mut().for_each(|meter| *meter = Meter::new());
        Ok((Totals::means(&totals), read_together(others).await?))
    }

    /// Gets ready for [`state`](Self::state).
    pub async fn collect_totals(&mut self) -> Result<()> {
        self.totals = if self.has_measured() { self.totals().await? } else { Vec::new() };
        Ok(())
    }

    /// What was measured since the last reading, by part, for a checkpoint.
    pub fn state(&self) -> Option<State> {
        let parts = self.totals.iter().enumerate();
        let state = parts
            .fold(State::new(), |state, (part, totals)| state.with_part(&part.to_string(), &totals.state()));
        (!self.totals.is_empty()).then(|| state.with("parts", self.totals.len() as i64))
    }

    /// Goes on from what [`state`](Self::state) gave, if the parts are the same.
    pub fn load(&mut self, state: &State) -> Result<()> {
        let (own, count) = (self.own.clone(), self.parts.count());
        if state.int("parts")? == count as i64 {
            for (part, meter) in own.zip(&mut self.meters) {
                meter.load(&state.part(&part.to_string()))?;
            }
        }
        Ok(())
    }

    /// Forgets what was measured since the last reading.
    pub fn forget(&mut self) {
        self.meters.iter_mut().for_each(|meter| *meter = Meter::new());
    }
}

/// Whether a buffer is a mean over all parts: one of floats that the forward pass has changed.
fn is_averaged(after: &Tensor, before: &Tensor) -> bool {
    after.dtype().is_float() && after.node().id != before.node().id
}

/// Random numbers of their own for a part of a batch, whoever has it.
fn random_numbers(key: [u32; 2], part: usize) -> RngScope {
    let [low, high] = threefry(key, [part as u32, 0]);
    RngScope::from(RngState::new(u64::from(high) << 32 | u64::from(low), 0))
}

fn numbers_of(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

/// Rows of a batch, with memory of their own: what is computed of them is then the same plan for any number of parts.
fn cut(batch: &Tensor, rows: &Range<usize>) -> Result<Tensor> {
    if *rows == (0..batch.size(0)) {
        return Ok(batch.clone());
    }
    let part = batch.try_narrow(0, rows.start, rows.len())?;
    compute_only([&part])?;
    Ok(part)
}

/// Gives all ranks the values that the first one has.
fn take_from_first(world: &dyn World, tensors: impl Iterator<Item = Tensor>) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    for tensor in tensors {
        // f64 holds what any type but that of large integers does.
        let own = tensor.detach().try_to_device(Device::Cpu)?;
        let value = if matches!(tensor.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            let mut numbers = own.try_to_dtype(DType::F32)?.try_to_vec::<f32>()?;
            world.broadcast(0, bytemuck::cast_slice_mut(&mut numbers))?;
            with_device(Device::Cpu, || Tensor::try_from_vec(numbers, &tensor.shape()[..]))?
        } else {
            let mut numbers = own.try_to_dtype(DType::F64)?.try_to_vec::<f64>()?;
            world.broadcast(0, bytemuck::cast_slice_mut(&mut numbers))?;
            with_device(Device::Cpu, || Tensor::try_from_vec(numbers, &tensor.shape()[..]))?
        };
        if world.rank() > 0 {
            no_grad(|| {
                tensor.try_assign(&value.try_to_dtype(tensor.dtype())?.try_to_device(tensor.device())?)
            })?;
        }
    }
    Ok(())
}
