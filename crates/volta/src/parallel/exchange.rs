//! Gradients on their way between ranks: a thread of its own sends one bucket while the next one is computed.

use super::summation::Summation;
use super::world::World;
use crate::clock::Instant;
use crate::error::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How ranks exchange gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeOptions {
    /// Sends gradients as f16 and adds them in f32: half the bytes.
    pub half: bool,
    /// Gradients that are sent at once.
    pub bucket_bytes: usize,
}

/// As large as those of others: smaller ones cost more messages, larger ones hide less.
const BUCKET_BYTES: usize = 16 << 20;

impl Default for ExchangeOptions {
    fn default() -> Self {
        ExchangeOptions { half: false, bucket_bytes: BUCKET_BYTES }
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
    /// Bytes of gradients that this rank gave.
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

type Summed = Result<(Vec<f32>, Duration)>;

/// A thread that adds up vectors with other ranks, in the order in which it gets them.
pub(crate) struct Exchange {
    way: Way,
    pub cost: ExchangeCost,
}

enum Way {
    /// There is nobody else.
    Alone(VecDeque<Vec<f32>>),
    Thread(Sender<(Vec<f32>, Summation)>, Receiver<Summed>),
}

impl Exchange {
    pub fn new(world: Arc<dyn World>) -> Result<Exchange> {
        let way = if world.size() == 1 { Way::Alone(VecDeque::new()) } else { start(world)? };
        Ok(Exchange { way, cost: ExchangeCost::default() })
    }

    /// Begins to add up what this rank has with what the others have.
    pub fn send(&mut self, numbers: Vec<f32>, summation: Summation) -> Result<()> {
        match &mut self.way {
            Way::Alone(queue) => queue.push_back(numbers),
            Way::Thread(jobs, _) => {
                self.cost.bytes += (numbers.len() * summation.bytes_a_number()) as u64;
                jobs.send((numbers, summation)).map_err(|_| gone())?;
            }
        }
        Ok(())
    }

    /// Waits for the sum that was begun first.
    pub fn receive(&mut self) -> Result<Vec<f32>> {
        match &mut self.way {
            Way::Alone(queue) => queue.pop_front().ok_or_else(gone),
            Way::Thread(_, done) => {
                let started = Instant::now();
                let (numbers, time) = done.recv().map_err(|_| gone())??;
                self.cost.waited += started.elapsed();
                self.cost.under_way += time;
                Ok(numbers)
            }
        }
    }
}

fn start(world: Arc<dyn World>) -> Result<Way> {
    let (jobs, queue) = channel::<(Vec<f32>, Summation)>();
    let (report, done) = channel::<Summed>();
    let work = move || {
        for (mut numbers, summation) in queue {
            let started = Instant::now();
            let summed = summation.sum(&*world, &mut numbers).map(|()| (numbers, started.elapsed()));
            if report.send(summed).is_err() {
                break;
            }
        }
    };
    let thread = std::thread::Builder::new().name("volta-exchange".into()).spawn(work);
    thread.map_err(|e| Error::new(ErrorKind::Io, format!("cannot start a thread: {e}")))?;
    Ok(Way::Thread(jobs, done))
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
            Ok((sums, exchange.cost))
        });
        for result in results {
            let (sums, cost) = result.unwrap();
            assert_eq!(sums[..2], [vec![3.0], vec![6.0; 2]]);
            assert_eq!((sums[3].clone(), cost.bytes), (vec![12.0; 4], 40));
            assert!((0.0..=1.0).contains(&cost.hidden()));
        }
    }
}
