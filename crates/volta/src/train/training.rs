//! A training that is driven from outside: one step at a time, without a folder, and nobody is blocked.

use super::history::History;
use super::metrics::{Means, Outcome};
use super::trainer::{Run, Step, Trainer};
use crate::data::DataLoader;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Checkpoint;
use crate::tensor::Tensor;

/// A training under way, made by [`Trainer::begin`]: the same loop as [`Trainer::fit`], whose steps are asked for one by one. Everything
/// waits for the device without blocking, so it works in a browser's tab.
///
/// ```
/// use std::sync::Arc;
/// use volta::data::{DataLoader, TensorDataset};
/// use volta::train::{Trainer, TrainerOptions, classified};
/// use volta::{Adam, Checkpoint, Linear, Module, Tensor};
///
/// let x = Tensor::randn([64, 2]);
/// let y = (x.narrow(1, 0, 1) - x.narrow(1, 1, 1)).gt(0.0).squeeze(1).to_dtype(volta::DType::I32);
/// let data = DataLoader::over(TensorDataset::from_tensors(&x, &y)?, 32).with_shuffle(true);
/// let model = Arc::new(Linear::new(2, 2, true));
/// let adam = Box::new(Adam::new(model.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0));
/// let options = TrainerOptions { epochs: 5, log_every: 1, ..TrainerOptions::default() };
/// let trainer = Trainer::owning(model.clone(), adam, options);
/// let losses = async {
///     let mut training = trainer.begin(data, None, move |x, y| Ok(classified(&model.try_forward(x)?, y))).await?;
///     while training.step().await? {}
///     let saved: Vec<u8> = training.checkpoint().await?.to_bytes_async().await?;
///     assert_eq!(Checkpoint::from_bytes(saved)?.int("step")?, 10);
///     Ok::<_, volta::Error>(training.history().series("train/loss"))
/// };
/// assert_eq!(pollster::block_on(losses)?.len(), 10);
/// # Ok::<(), volta::Error>(())
/// ```
pub struct Training<'t> {
    trainer: Trainer<'t>,
    run: Run,
    train: DataLoader,
    validation: Option<DataLoader>,
    step: Box<Step<'t>>,
}

impl<'t> Trainer<'t> {
    /// Begins a training on `train` that is validated on `validation` if it is given, or goes on from a
    /// [checkpoint](Self::with_checkpoint). `step` computes the loss of a batch and what else is worth knowing about it. There is no
    /// progress bar.
    pub async fn begin(
        mut self,
        mut train: DataLoader,
        validation: Option<DataLoader>,
        step: impl FnMut(&Tensor, &Tensor) -> Result<Outcome> + 't,
    ) -> Result<Training<'t>> {
        let mut run = self.start(&mut train, validation.is_some()).await?;
        self.tell_beginning(&mut run, &train)?;
        Ok(Training { trainer: self, run, train, validation, step: Box::new(step) })
    }
}

impl Training<'_> {
    /// Makes the next step, and what is due after it: readings, validations, checkpoints. False if there is none left; then everything
    /// is read, and nothing more happens.
    pub async fn step(&mut self) -> Result<bool> {
        let Training { trainer, run, train, validation, step } = self;
        trainer.advance(run, train, &mut validation.as_mut(), step).await
    }

    /// Whether no step is left.
    pub fn is_over(&self) -> bool {
        self.trainer.is_over(&self.run, &self.train)
    }

    /// Reads the training's metrics every so many steps from here on; 1 reads all of them.
    pub fn set_log_every(&mut self, steps: u64) {
        self.trainer.set_log_every(steps);
    }

    /// The batch of the next step, without taking it.
    pub fn peek(&self) -> Result<Option<(Tensor, Tensor)>> {
        self.train.peek()
    }

    /// Ends the training behind its last step: with the validation that is due then, if it is not made.
    pub async fn finish(&mut self) -> Result<()> {
        let Training { trainer, run, train, validation, step } = self;
        trainer.finish(run, train, &mut validation.as_mut(), step).await
    }

    /// What the model makes of the validation data now, the loss first. The training goes on as if nobody had looked.
    pub async fn validate(&mut self) -> Result<Means> {
        let Some(validation) = &mut self.validation else {
            return Err(Error::new(ErrorKind::Argument, "there is no validation data to look at"));
        };
        self.trainer.measure(validation, &mut self.step).await
    }

    /// Everything that it takes to go on from here: what [`Trainer::fit`] writes into its folder. Numbers that are not finite are an error.
    pub async fn checkpoint(&mut self) -> Result<Checkpoint> {
        let Training { trainer, run, train, .. } = self;
        let checked = trainer.check_parameters(run).await;
        if let Some(fault) = run.take_fault() {
            trainer.recover(run, train, &fault)?;
        }
        Ok(trainer.checkpoint_of(run, train, &checked?))
    }

    /// How many steps are made, with those before the checkpoint that it went on from.
    pub fn steps(&self) -> u64 {
        self.run.step
    }

    /// How many steps it will be at most.
    pub fn total_steps(&self) -> u64 {
        self.trainer.total_steps(self.train.len() as u64)
    }

    /// The learning rate of the last step; 0 before the first of this run.
    pub fn learning_rate(&self) -> f64 {
        self.run.rate
    }

    /// All that was measured, since the checkpoint if it went on from one.
    pub fn history(&self) -> &History {
        &self.run.history
    }
}
