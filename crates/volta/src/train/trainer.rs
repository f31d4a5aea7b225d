//! The loop: batches through a model, gradients into an optimizer, and everything people want to know and keep.
//!
//! Nothing in it blocks: [`Trainer::fit`] waits for it, [`Training`](super::Training) is driven from outside. `ownership` says whose
//! the model and the optimizer are, `checks` what cannot be trained, `learning` makes steps, `parallel` has several devices compute their
//! gradients and `ranks` several processes, `update` is the optimizer's part of them, `validation` looks at data that nothing is learnt
//! from, `saving` begins with checkpoints and makes them (`saving_with_ranks` in shards), `local_steps` has ranks make steps by themselves, `sharding` has them share out what each of
//! them would have, and `recovery` is about numbers that are not finite.

mod checks;
mod learning;
mod local_steps;
mod ownership;
mod parallel;
mod ranks;
mod recovery;
mod saving;
mod saving_with_ranks;
mod sharding;
mod update;
mod validation;

use super::event::Event;
use super::files::{Damaged, RunFiles};
use super::health::Health;
use super::history::{History, Row};
use super::lock::RunLock;
use super::metrics::{Meter, Outcome};
use super::options::{OnNonFinite, TrainerOptions};
use super::progress::Progress;
use crate::call::LayerScope;
use crate::clock::Instant;
use crate::data::{DataLoader, TryBatches};
use crate::error::{Result, bail};
use crate::io::{Checkpoint, Metadata};
use crate::nn::Module;
use crate::optim::{GradScaler, Optimizer, Schedule, Scheduler};
use crate::parallel::DataParallel;
use crate::telemetry::Profiler;
use crate::tensor::Tensor;
use crate::wait::wait_for;
use ownership::{Held, HeldMut};
use ranks::Ranks;
use recovery::Fault;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Trains a model: epochs, validation, metrics, progress, early stopping, checkpoints, logs and curves.
///
/// ```
/// use volta::data::{DataLoader, TensorDataset};
/// use volta::train::{Trainer, TrainerOptions, classified};
/// use volta::{Adam, Linear, Module, Tensor};
///
/// let x = Tensor::randn([256, 2]);
/// let y = (x.narrow(1, 0, 1) - x.narrow(1, 1, 1)).gt(0.0).squeeze(1).to_dtype(volta::DType::I32);
/// let mut data = DataLoader::over(TensorDataset::from_tensors(&x, &y)?, 32).with_shuffle(true);
/// let model = Linear::new(2, 2, true);
/// let mut adam = Adam::new(model.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
/// let options = TrainerOptions { epochs: 5, progress: false, ..TrainerOptions::default() };
/// let history = Trainer::new(&model, &mut adam, options)
///     .fit(&mut data, None, |x, y| Ok(classified(&model.try_forward(x)?, y)))?;
/// assert!(history.last("train/accuracy").unwrap() > 0.9);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Trainer<'t> {
    model: Held<'t>,
    optimizer: HeldMut<'t>,
    options: TrainerOptions,
    /// What it goes on from, without a folder.
    checkpoint: Option<Checkpoint>,
    scheduler: Option<Scheduler>,
    scaler: Option<GradScaler>,
    /// Several devices, or several parts of each batch.
    parallel: Option<DataParallel>,
    observers: Vec<Observer<'t>>,
    stop: Arc<AtomicBool>,
    /// What every checkpoint keeps besides, by name.
    notes: Vec<(String, String)>,
    /// Makes the metadata of the best model's file.
    describe_best: Option<DescribeBest<'t>>,
    /// The lock of the run's folder, if the caller has it.
    lock: Option<&'t RunLock>,
    /// The other ranks, if it trains as one of several.
    ranks: Option<Ranks>,
    /// Steps that [`fit`](Self::fit) made, and the time they took.
    done: (u64, Duration),
    /// What they learnt from.
    units: u64,
}

/// Computes the outcome of a batch.
pub(super) type Step<'s> = dyn FnMut(&Tensor, &Tensor) -> Result<Outcome> + 's;
type Observer<'t> = Box<dyn FnMut(&Event<'_>) -> Result<()> + 't>;
type DescribeBest<'t> = Box<dyn Fn(&History) -> Metadata + 't>;

/// The name of the row that counts steps whose gradients were not finite.
pub(super) const SKIPPED: &str = "skipped_steps";

/// Where a training stands.
#[derive(Default)]
pub(super) struct Run {
    pub(super) step: u64,
    /// The step that this process started from.
    first: u64,
    /// Whether that was a checkpoint's.
    resumed: bool,
    /// The epoch in which the loader stood when the training began.
    first_epoch: u64,
    /// What is left of the epoch.
    batches: Option<TryBatches<'static>>,
    /// Whether the last step is made, and all is read and saved that follows it.
    closed: bool,
    /// The learning rate of the last step.
    pub(super) rate: f64,
    /// The lowest validation loss, and the validations since.
    best: Option<f64>,
    since_best: u64,
    pub(super) history: History,
    files: Option<RunFiles>,
    /// The lock of the folder, if the caller has none.
    _lock: Option<RunLock>,
    /// Checkpoints that were passed over.
    damaged: Vec<Damaged>,
    meter: Meter,
    health: Health,
    /// The values that the buffers had before the step under way, if it may be skipped.
    buffers: Vec<(Tensor, Tensor)>,
    /// How often the run went back to a checkpoint: in all, and since the last was saved.
    went_back: (u32, u32),
    /// What is not finite, and in which step, when that ends a walk through the data.
    fault: Option<Fault>,
    /// Units since the last reading, and when that was; no time before the first step, and behind a fault.
    units: usize,
    since: Option<Instant>,
    /// Batches since the last step, and how many the next one takes.
    waiting: usize,
    group: usize,
    /// The rows of those batches, where several devices compute them.
    rows: usize,
    /// Of the step under way, if it is profiled, with the time it has taken so far.
    profiler: Option<(Profiler, Duration)>,
}

impl Run {
    /// How many times the data was walked through.
    fn epochs(&self, train: &DataLoader) -> u64 {
        train.epoch().saturating_sub(self.first_epoch)
    }

    /// What was found not to be finite, to be dealt with.
    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    /// Whether what is done every so many steps is done after this one.
    fn is_due(&self, every: u64) -> bool {
        self.step.is_multiple_of(every.max(1))
    }
}

impl<'t> Trainer<'t> {
    /// Trains `model` with `optimizer`, which holds its parameters.
    pub fn new(
        model: &'t dyn Module,
        optimizer: &'t mut dyn Optimizer,
        options: TrainerOptions,
    ) -> Trainer<'t> {
        Trainer::of(Held::Lent(model), HeldMut::Lent(optimizer), options)
    }

    /// [`new`](Self::new) with an optimizer of its own, and a model that others may hold too: such a trainer can be kept.
    pub fn owning(
        model: Arc<dyn Module>,
        optimizer: Box<dyn Optimizer>,
        options: TrainerOptions,
    ) -> Trainer<'static> {
        Trainer::of(Held::Shared(model), HeldMut::Owned(optimizer), options)
    }

    fn of(model: Held<'t>, optimizer: HeldMut<'t>, options: TrainerOptions) -> Trainer<'t> {
        let scaler = options.precision.map(|_| GradScaler::new());
        Trainer {
            model,
            optimizer,
            options,
            checkpoint: None,
            scheduler: None,
            scaler,
            parallel: None,
            observers: Vec::new(),
            stop: Arc::default(),
            notes: Vec::new(),
            describe_best: None,
            lock: None,
            ranks: None,
            done: (0, Duration::ZERO),
            units: 0,
        }
    }

    /// Lets the learning rate follow a schedule, counted in steps.
    ///
    /// One that looks at how well training goes, such as [`ReduceLROnPlateau`](crate::optim::ReduceLROnPlateau), is
    /// told the loss of every validation, so that its patience is counted in validations. [`fit`](Self::fit) refuses it
    /// without validation data, and if it takes larger metrics for better ones.
    #[must_use]
    pub fn with_schedule(mut self, schedule: impl Schedule + 'static) -> Trainer<'t> {
        self.scheduler = Some(Scheduler::new(schedule, &mut *self.optimizer));
        self
    }

    /// Calls `observer` with everything that happens; its error ends the training.
    #[must_use]
    pub fn with_observer(mut self, observer: impl FnMut(&Event<'_>) -> Result<()> + 't) -> Trainer<'t> {
        self.observers.push(Box::new(observer));
        self
    }

    /// Keeps a text in every checkpoint of the run, as its value of this name: what whoever goes on from there should
    /// know. Names of the trainer's own values are not free.
    #[must_use]
    pub fn with_note(mut self, name: &str, text: &str) -> Trainer<'t> {
        self.notes.push((name.to_string(), text.to_string()));
        self
    }

    /// Goes on from a checkpoint that is in memory, where there is no folder that holds one.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Checkpoint) -> Trainer<'t> {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Puts metadata into the file of the best model, made of what was measured so far.
    #[must_use]
    pub fn with_best_metadata(mut self, describe: impl Fn(&History) -> Metadata + 't) -> Trainer<'t> {
        self.describe_best = Some(Box::new(describe));
        self
    }

    /// Trains in the folder that the caller has locked. Otherwise [`fit`](Self::fit) locks it, for as long as it runs.
    #[must_use]
    pub fn with_lock(mut self, lock: &'t RunLock) -> Trainer<'t> {
        self.lock = Some(lock);
        self
    }

    /// A switch for other threads and signal handlers: once it is true, the step is finished, a checkpoint written, and
    /// training ends.
    pub fn stop_switch(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// How many steps the last [`fit`](Self::fit) made, and the time they took: with their data, and without
    /// validations, checkpoints and observers.
    pub fn speed(&self) -> (u64, Duration) {
        self.done
    }

    /// How much the last [`fit`](Self::fit) learnt from, in the units of its [outcomes](Outcome::units): samples unless
    /// they say otherwise.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Trains on `train`, and validates on `validation` if it is given. `step` computes the loss of a batch and what
    /// else is worth knowing about it. In a browser's tab, where nobody may wait for a GPU, [`fit_async`](Self::fit_async) does.
    #[track_caller]
    pub fn fit(
        &mut self,
        train: &mut DataLoader,
        validation: Option<&mut DataLoader>,
        mut step: impl FnMut(&Tensor, &Tensor) -> Result<Outcome>,
    ) -> Result<History> {
        // What the trainer finds wrong names the line that called it.
        let _scope = LayerScope::enter(None);
        let is_on_gpu = || self.model.parameters().iter().any(|p| p.device().is_gpu());
        if cfg!(target_arch = "wasm32") && is_on_gpu() {
            bail!(
                Device,
                "a trainer waits for losses, and a browser's tab cannot wait for a GPU: use `Trainer::fit_async`, or \
                 `Trainer::begin` for one step at a time"
            );
        }
        wait_for(pin!(self.run(train, validation, &mut step)))
    }

    /// [`fit`](Self::fit) that blocks nobody while it waits for the device.
    pub async fn fit_async(
        &mut self,
        train: &mut DataLoader,
        validation: Option<&mut DataLoader>,
        mut step: impl FnMut(&Tensor, &Tensor) -> Result<Outcome>,
    ) -> Result<History> {
        self.run(train, validation, &mut step).await
    }

    /// A whole training.
    async fn run(
        &mut self,
        train: &mut DataLoader,
        mut validation: Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<History> {
        let mut run = self.start(train, validation.is_some()).await?;
        let watching = self.observers.len();
        let shows = self.ranks.as_ref().is_none_or(Ranks::is_first);
        if self.options.progress && shows {
            let mut progress = Progress::new(self.total_steps(train.len() as u64), run.step);
            self.observers.push(Box::new(move |event| {
                progress.see(event);
                Ok(())
            }));
        }
        let finished = self.train(&mut run, train, &mut validation, step).await;
        self.observers.truncate(watching);
        // An error within a step that was profiled.
        run.profiler.take().map(|(profiler, _)| profiler.end());
        finished.map(|()| run.history)
    }

    /// All that is left of a run.
    async fn train(
        &mut self,
        run: &mut Run,
        train: &mut DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<()> {
        self.tell_beginning(run, train)?;
        if !run.resumed && matches!(self.options.on_non_finite, OnNonFinite::GoBack { .. }) {
            // There must be something to go back to.
            self.save(run, train).await?;
        }
        while self.advance(run, train, validation, step).await? {}
        self.finish(run, train, validation, step).await
    }

    /// Tells what a run begins with.
    pub(super) fn tell_beginning(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        self.tell_damaged(&std::mem::take(&mut run.damaged))?;
        if run.resumed {
            self.tell(&Event::Resumed { step: run.step, epoch: run.epochs(train) })?;
        }
        Ok(())
    }

    /// The next step with all that is due after it; false if there is none, once everything is read and saved. What is not
    /// finite ends the run, or takes it back to its last checkpoint.
    pub(super) async fn advance(
        &mut self,
        run: &mut Run,
        train: &mut DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<bool> {
        loop {
            let advanced = self.try_advance(run, train, validation, step).await;
            if advanced.is_err() {
                run.batches = None;
            }
            let Some(fault) = run.fault.take() else { return advanced };
            self.recover(run, train, &fault)?;
        }
    }

    async fn try_advance(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<bool> {
        if run.since.is_none() {
            self.model.train();
            self.optimizer.zero_grad();
            run.since = Some(Instant::now());
        }
        while !self.is_over(run, train) {
            if self.step(run, train, validation, step).await? {
                return Ok(true);
            }
        }
        self.close(run, train).await.map(|()| false)
    }

    /// Reads and saves what the last step leaves.
    async fn close(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        run.batches = None;
        if std::mem::replace(&mut run.closed, true) {
            return Ok(());
        }
        self.synchronize(run)?;
        // This reading is out of turn: a run that goes on from here has the row that it would have had.
        // Steps that were skipped are counted once.
        let (meter, meters) = (run.meter.clone(), self.ranks.as_ref().map(|ranks| ranks.meters.clone()));
        if !run.resumed || run.step > run.first {
            self.log(run, train).await?;
        }
        run.meter = meter;
        if let (Some(ranks), Some(meters)) = (&mut self.ranks, meters) {
            ranks.meters = meters;
        }
        match run.files.is_some() || self.saves_with_ranks() {
            true => self.save(run, train).await,
            false => self.check_parameters(run).await.map(drop),
        }
    }

    /// What comes after the last step.
    pub(super) async fn finish(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<()> {
        // A run that goes on from this checkpoint has not made a validation out of turn.
        let validated = run.history.series("validation/loss").last().map(|&(step, _)| step);
        if self.options.validate_every.is_some() && validated != Some(run.step) {
            self.validate(run, train, validation, step).await?;
        }
        self.make_whole()?;
        if let Some(files) = &mut run.files {
            files.finish(&run.history)?;
        }
        self.tell(&Event::Finished { step: run.step, history: &run.history })
    }

    /// Waits for steps that were asked for and are not done yet, where somebody waits anyway: that time is theirs.
    fn settle(&mut self) -> Result<()> {
        #[cfg(not(target_arch = "wasm32"))]
        if crate::wait::may_wait()
            && let Some(parameter) = self.optimizer.parameters().first()
        {
            let started = Instant::now();
            parameter.device().synchronize()?;
            self.done.1 += started.elapsed();
        }
        Ok(())
    }

    /// Reads what the training measured since it was read last.
    async fn log(&mut self, run: &mut Run, train: &DataLoader) -> Result<()> {
        let has_measured = self.ranks.as_ref().map_or(run.meter.samples() > 0, Ranks::has_measured);
        if !has_measured {
            return Ok(());
        }
        let started = Instant::now();
        let counters = run.health.counters();
        let (means, counters) = match &mut self.ranks {
            Some(ranks) => ranks.read(&counters).await?,
            None => run.meter.read_with(&counters).await?,
        };
        // A device works while the host goes on; here the host waits for it.
        self.done.1 += started.elapsed();
        let seconds = run.since.replace(Instant::now()).map_or(f64::NAN, |t| t.elapsed().as_secs_f64());
        let speed = std::mem::take(&mut run.units) as f64 / seconds;
        let mut measured: Vec<(String, f64)> =
            means.into_iter().map(|(name, v)| (format!("train/{name}"), v)).collect();
        measured.push(("learning_rate".into(), run.rate));
        measured.push(("per_second".into(), speed));
        let verdict = run.health.verdict(&counters);
        if self.skips() {
            measured.push((SKIPPED.into(), verdict.skipped as f64));
        }
        let rows = keep(run, train, measured)?;
        self.tell(&Event::Measured { step: run.step, rows: &rows })?;
        let judged = self.judge(run, &verdict);
        run.health.restart(&verdict);
        judged
    }

    /// Reads the training's metrics every so many steps from here on.
    pub(super) fn set_log_every(&mut self, steps: u64) {
        self.options.log_every = steps;
    }

    pub(super) fn is_over(&self, run: &Run, train: &DataLoader) -> bool {
        run.epochs(train) >= self.options.epochs
            || self.options.steps.is_some_and(|n| run.step >= n)
            || self.options.patience.is_some_and(|n| run.since_best >= n.max(1))
            || self.is_stopped()
    }

    /// How many steps it will be at most.
    pub(super) fn total_steps(&self, batches: u64) -> u64 {
        let accumulate = self.options.accumulate.max(1) as u64;
        let all = self.options.epochs.saturating_mul(batches.div_ceil(accumulate));
        self.options.steps.map_or(all, |n| n.min(all))
    }

    fn tell_damaged(&mut self, damaged: &[Damaged]) -> Result<()> {
        let mut all = damaged.iter();
        all.try_for_each(|one| self.tell(&Event::PassedOver { path: &one.path, reason: one.reason() }))
    }

    fn tell(&mut self, event: &Event<'_>) -> Result<()> {
        let _outside = LayerScope::leave();
        self.observers.iter_mut().try_for_each(|observer| observer(event))
    }
}

/// Puts measured numbers into the history and the files.
fn keep(run: &mut Run, train: &DataLoader, measured: Vec<(String, f64)>) -> Result<Vec<Row>> {
    // At the end of an epoch the loader counts it as done.
    let epoch = run.epochs(train) + u64::from(train.position() > 0);
    let (step, epoch) = (run.step, epoch.max(1));
    let rows: Vec<Row> = measured.into_iter().map(|(name, value)| Row { step, epoch, name, value }).collect();
    if let Some(files) = &mut run.files {
        files.log(&rows)?;
    }
    run.history.rows.extend(rows.iter().cloned());
    Ok(rows)
}
