//! Validation: what the model makes of data that nothing is learnt from.

use super::{Run, Step, Trainer, keep};
use crate::autograd::no_grad;
use crate::clock::Instant;
use crate::data::DataLoader;
use crate::error::{Result, bail};
use crate::train::event::Event;
use crate::train::metrics::{Means, Meter};

impl Trainer<'_> {
    /// Measures the validation data, and keeps the model if it is the best so far.
    pub(super) async fn validate(
        &mut self,
        run: &mut Run,
        train: &DataLoader,
        validation: &mut Option<&mut DataLoader>,
        step: &mut Step<'_>,
    ) -> Result<()> {
        let Some(loader) = validation else { return Ok(()) };
        self.synchronize(run)?;
        self.settle()?;
        let started = Instant::now();
        self.make_whole()?;
        let means = self.measure(loader, step).await?;
        let loss = means[0].1;
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.observe(loss, &mut *self.optimizer);
        }
        let better = loss.is_finite() && run.best.is_none_or(|best| loss < best);
        run.since_best = if better { 0 } else { run.since_best + 1 };
        if better {
            run.best = Some(loss);
        }
        // A run that was stopped may have ended with a better one, which was not in its turn.
        let is_best =
            better && run.history.series("validation/loss").iter().all(|&(_, l)| !l.is_finite() || loss < l);
        let measured = means.into_iter().map(|(name, v)| (format!("validation/{name}"), v)).collect();
        let rows = keep(run, train, measured)?;
        if is_best && let Some(files) = &run.files {
            let metadata = self.describe_best.as_ref().map(|describe| describe(&run.history));
            files.save_best(&*self.model, &metadata.unwrap_or_default())?;
        }
        self.make_absent_again();
        // The time of a validation is not the training's.
        run.since = run.since.map(|since| since + started.elapsed());
        self.tell(&Event::Validated { step: run.step, rows: &rows, better })
    }

    /// What the model makes of the validation data; the loss comes first.
    pub(in crate::train) async fn measure(
        &self,
        loader: &mut DataLoader,
        step: &mut Step<'_>,
    ) -> Result<Means> {
        self.model.eval();
        let means = match self.ranks {
            Some(_) => self.means_of_ranks(loader, step).await,
            None => self.means(loader, step).await,
        };
        self.model.train();
        let means = means?;
        if means.is_empty() {
            bail!(Argument, "the validation data has no batch of {} samples", loader.batch_size());
        }
        Ok(means)
    }

    async fn means(&self, loader: &mut DataLoader, step: &mut Step<'_>) -> Result<Means> {
        loader.restart(0);
        let mut meter = Meter::new();
        for batch in loader.try_iter() {
            let (x, y) = batch?;
            no_grad(|| {
                meter.add(&self.outcome(&x, &y, step)?, x.size(0));
                meter.realize()
            })?;
        }
        meter.read_async().await
    }
}
