//! Gradients on their way between ranks: a thread of its own sends one bucket while the next one is computed.

use super::local_steps::LocalSteps;
use super::sharding::Sharding;
use super::summation::Summation;
use super::world::World;
use crate::clock::Instant;
use crate::error::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How ranks exchange gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeOptions {
    /// Sends gradients as f16 and adds them in f32: half the bytes.
    pub half: bool,
    /// Gradients that are sent at once.
    pub bucket_bytes: usize,
    /// What each rank has only its share of.
    pub sharding: Sharding,
    /// Has every rank make steps by itself, and exchanges parameters now and then instead of gradients.
    pub local_steps: Option<LocalSteps>,
}

/// As large as those of others: smaller ones cost more messages, larger ones hide less.
const BUCKET_BYTES: usize = 16 << 20;

impl Default for ExchangeOptions {
    fn default() -> Self {
        ExchangeOptions {
            half: false,
            bucket_bytes: BUCKET_BYTES,
            sharding: Sharding::Nothing,
            local_steps: None,
        }
    }
}

impl ExchangeOptions {
    /// Which sums there are, with gradient parts or without.
    pub(crate) fn summation(&self, has_parts: bool) -> Summation {
        match (self.half, has_parts) {
            (true, _) => Summation::Half,
            (false, true) => Summation::Tree,
            (false, false) => Summation::AnyOrder,
        }
    }
}

/// What the exchange of gradients has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeCost {
    /// Bytes of gradients and parameters that this rank gave.
    pub bytes: u64,
    /// The time that sums were under way.
    pub under_way: Duration,
    /// The part of it that steps waited for.
    pub waited: Duration,
}

impl ExchangeCost {
    /// The share of the time under way that nobody waited for.
    pub fn hidden(&self) -> f64 {
        if self.under_way.is_zero() {
            return 0.0;
        }
        1.0 - (self.waited.as_secs_f64() / self.under_way.as_secs_f64()).min(1.0)
    }
}

type Done = Result<(Vec<f32>, Duration)>;

/// What is done with numbers that all ranks have.
enum Job {
    /// All get the sums.
    Sum(Vec<f32>, Summation),
    /// Each gets its part of the sums.
    Scatter(Vec<f32>, Summation),
    /// All get what each has, one behind the other, and somebody waits for it.
    Gather(Vec<f32>, Sender<Done>),
}

/// A thread that exchanges vectors with other ranks, in the order in which it gets them.
pub(crate) struct Exchange {
    gatherer: Gatherer,
    /// Sums, in the order in which they were begun.
    done: Sums,
}

enum Sums {
    /// There is nobody else.
    Alone(VecDeque<Vec<f32>>),
    Thread(Receiver<Done>),
}

/// Gathers what all ranks have, between the sums of an exchange.
#[derive(Clone)]
pub(crate) struct Gatherer {
    /// None without others.
    jobs: Option<Sender<Job>>,
    cost: Arc<Mutex<ExchangeCost>>,
}

impl Gatherer {
    fn cost(&self) -> MutexGuard<'_, ExchangeCost> {
        self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to gather what all ranks have.
    pub fn begin(&self, mine: Vec<f32>) -> Result<Gathering> {
        let (report, done) = channel();
        match &self.jobs {
            None => report.send(Ok((mine, Duration::ZERO))).map_err(|_| gone())?,
            Some(jobs) => {
                self.cost().bytes += 4 * mine.len() as u64;
                jobs.send(Job::Gather(mine, report)).map_err(|_| gone())?;
            }
        }
        Ok(Gathering { gatherer: self.clone(), done })
    }

    /// What all ranks have, one behind the other.
    pub fn gather(&self, mine: Vec<f32>) -> Result<Vec<f32>> {
        self.begin(mine)?.wait()
    }

    fn receive(&self, done: &Receiver<Done>) -> Result<Vec<f32>> {
        let started = Instant::now();
        let (numbers, time) = done.recv().map_err(|_| gone())??;
        let mut cost = self.cost();
        cost.waited += started.elapsed();
        cost.under_way += time;
        Ok(numbers)
    }
}

/// What is being gathered.
pub(crate) struct Gathering {
    gatherer: Gatherer,
    done: Receiver<Done>,
}

impl Gathering {
    pub fn wait(self) -> Result<Vec<f32>> {
        self.gatherer.receive(&self.done)
    }
}

impl Exchange {
    pub fn new(world: Arc<dyn World>) -> Result<Exchange> {
        let (jobs, done) = if world.size() == 1 {
            (None, Sums::Alone(VecDeque::new()))
        } else {
            let (jobs, done) = start(world)?;
            (Some(jobs), Sums::Thread(done))
        };
        Ok(Exchange { gatherer: Gatherer { jobs, cost: Arc::default() }, done })
    }

    /// What it has cost so far.
    pub fn cost(&self) -> ExchangeCost {
        *self.gatherer.cost()
    }

    /// Gathers between the sums.
    pub fn gatherer(&self) -> &Gatherer {
        &self.gatherer
    }

    /// Begins to add up what this rank has with what the others have.
    pub fn send(&mut self, numbers: Vec<f32>, summation: Summation) -> Result<()> {
        self.begin(numbers, summation, Job::Sum)
    }

    /// The same, and each rank gets its part of the sums: as many as there are ranks, one behind the other.
    pub fn scatter(&mut self, numbers: Vec<f32>, summation: Summation) -> Result<()> {
        self.begin(numbers, summation, Job::Scatter)
    }

    fn begin(
        &mut self,
        numbers: Vec<f32>,
        summation: Summation,
        job: fn(Vec<f32>, Summation) -> Job,
    ) -> Result<()> {
        match (&mut self.done, &self.gatherer.jobs) {
            (Sums::Thread(_), Some(jobs)) => {
                self.gatherer.cost().bytes += (numbers.len() * summation.bytes_a_number()) as u64;
                jobs.send(job(numbers, summation)).map_err(|_| gone())?;
            }
            (Sums::Alone(queue), _) => queue.push_back(numbers),
            _ => return Err(gone()),
        }
        Ok(())
    }

    /// Waits for the sum that was begun first.
    pub fn receive(&mut self) -> Result<Vec<f32>> {
        match &mut self.done {
            Sums::Alone(queue) => queue.pop_front().ok_or_else(gone),
            Sums::Thread(done) => self.gatherer.receive(done),
        }
    }
}

fn start(world: Arc<dyn World>) -> Result<(Sender<Job>, Receiver<Done>)> {
    let (jobs, queue) = channel::<Job>();
    let (report, done) = channel::<Done>();
    let work = move || {
        let mut spare = Vec::new();
        for job in queue {
            let started = Instant::now();
            let timed = |numbers: Vec<f32>| (numbers, started.elapsed());
            let is_heard = match job {
                // What came of the last bucket is where the next one is summed: no new memory, and no copy.
                Job::Sum(numbers, Summation::AnyOrder) => {
                    let mut sums = std::mem::take(&mut spare);
                    sums.resize(numbers.len(), 0.0);
                    let summed = world.all_reduce_into(&numbers, &mut sums);
                    spare = numbers;
                    report.send(summed.map(|()| timed(sums))).is_ok()
                }
                Job::Sum(mut numbers, summation) => {
                    let summed = summation.sum(&*world, &mut numbers);
                    report.send(summed.map(|()| timed(numbers))).is_ok()
                }
                Job::Scatter(numbers, summation) => {
                    report.send(summation.scatter(&*world, numbers).map(timed)).is_ok()
                }
                Job::Gather(mine, report) => {
                    let mut all = vec![0.0; mine.len() * world.size()];
                    let gathered =
                        world.all_gather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all));
                    report.send(gathered.map(|()| timed(all))).is_ok()
                }
            };
            if !is_heard {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("volta-exchange".into()).spawn(work);
    thread.map_err(|e| Error::new(ErrorKind::Io, format!("cannot start a thread: {e}")))?;
    Ok((jobs, done))
}

/// How long ranks take to add up so many numbers in buckets, as a trainer does when a backward pass takes no time.
pub fn time_exchange(
    world: &Arc<dyn World>,
    summation: Summation,
    count: usize,
    bucket_bytes: usize,
) -> Result<Duration> {
    let mut exchange = Exchange::new(world.clone())?;
    let length = (bucket_bytes / 4).max(1);
    let buckets: Vec<Vec<f32>> =
        (0..count).step_by(length).map(|begin| vec![1.0; length.min(count - begin)]).collect();
    // A trainer's exchange has sent others before, and has memory for them.
    exchange.send(vec![0.0; length.min(count)], summation)?;
    exchange.receive()?;
    let (started, sent) = (Instant::now(), buckets.len());
    buckets.into_iter().try_for_each(|numbers| exchange.send(numbers, summation))?;
    (0..sent).try_for_each(|_| exchange.receive().map(drop))?;
    Ok(started.elapsed())
}

fn gone() -> Error {
    Error::new(ErrorKind::Io, "the exchange of gradients has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::ThreadWorld;

    #[test]
    fn sums_come_in_the_order_in_which_they_were_begun() {
        let results = ThreadWorld::run(3, |world| {
            let mut exchange = Exchange::new(world.clone())?;
            (1..=4).try_for_each(|k| exchange.send(vec![k as f32; k], Summation::AnyOrder))?;
            let sums = (0..4).map(|_| exchange.receive()).collect::<Result<Vec<_>>>()?;
            Ok((sums, exchange.cost()))
        });
        for result in results {
            let (sums, cost) = result.unwrap();
            assert_eq!(sums[..2], [vec![3.0], vec![6.0; 2]]);
            assert_eq!((sums[3].clone(), cost.bytes), (vec![12.0; 4], 40));
            assert!((0.0..=1.0).contains(&cost.hidden()));
        }
    }

    #[test]
    fn parts_of_sums_and_what_all_have_come_in_turn() {
        let results = ThreadWorld::run(2, |world| {
            let mut exchange = Exchange::new(world.clone())?;
            let rank = world.rank() as f32;
            for summation in [Summation::AnyOrder, Summation::Tree, Summation::Half] {
                exchange.scatter(vec![1.0, 2.0, 3.0, 4.0 + rank], summation)?;
            }
            let gathered = exchange.gatherer().gather(vec![rank, 5.0])?;
            let sums = (0..3).map(|_| exchange.receive()).collect::<Result<Vec<_>>>()?;
            Ok((gathered, sums))
        });
        for (rank, result) in results.into_iter().enumerate() {
            let (gathered, sums) = result.unwrap();
            assert_eq!(gathered, [0.0, 5.0, 1.0, 5.0]);
            assert!(sums.iter().all(|sum| *sum == [vec![2.0, 4.0], vec![6.0, 9.0]][rank]));
        }
    }
}
