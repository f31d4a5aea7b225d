//! A world of threads in one process: what tests of ranks run on, without MPI.

use super::world::{World, check_parts, check_root, check_same};
use crate::error::{Result, bail};
use crate::tensor::{RngScope, RngState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// One rank of a world of threads.
///
/// ```
/// use volta::parallel::{ThreadWorld, World};
///
/// let sums = ThreadWorld::run(4, |world| {
///     let mut numbers = [world.rank() as f32];
///     world.all_reduce(&mut numbers)?;
///     Ok(numbers[0])
/// });
/// assert!(sums.into_iter().all(|sum| sum.unwrap() == 6.0));
/// ```
pub struct ThreadWorld {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    size: usize,
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

/// What all ranks bring along, and then take.
#[derive(Default)]
struct Meeting {
    /// How many meetings there were.
    round: u64,
    brought: Vec<Option<Vec<u8>>>,
    /// What the last meeting was about, until all have left.
    result: Arc<Vec<Vec<u8>>>,
    aborted: Option<i32>,
}

impl ThreadWorld {
    /// Runs `work` as so many ranks; what each of them came to. A rank that fails aborts the others. Each draws random numbers of its own,
    /// and all the same, as processes do that were started alike.
    pub fn run<T: Send>(size: usize, work: impl Fn(Arc<dyn World>) -> Result<T> + Sync) -> Vec<Result<T>> {
        let meeting = Meeting { brought: vec![None; size], ..Meeting::default() };
        let shared = Arc::new(Shared { size, meeting: Mutex::new(meeting), changed: Condvar::new() });
        let random = RngState::save();
        std::thread::scope(|scope| {
            let work = &work;
            let ranks: Vec<_> = (0..size)
                .map(|rank| {
                    let world: Arc<dyn World> = Arc::new(ThreadWorld { rank, shared: shared.clone() });
                    scope.spawn(move || {
                        let _random = RngScope::from(random);
                        let aborts = AbortOnPanic(world.clone());
                        let result = work(world.clone());
                        std::mem::forget(aborts);
                        if result.is_err() {
                            world.abort(1);
                        }
                        result
                    })
                })
                .collect();
            let panicked = |panic| std::panic::resume_unwind(panic);
            ranks.into_iter().map(|rank| rank.join().unwrap_or_else(panicked)).collect()
        })
    }

    /// What every rank has brought, in order.
    fn meet(&self, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut meeting = self.lock();
        let round = meeting.round;
        meeting.brought[self.rank] = Some(mine);
        if meeting.brought.iter().all(Option::is_some) {
            meeting.result = Arc::new(meeting.brought.iter_mut().filter_map(Option::take).collect());
            meeting.round += 1;
            self.shared.changed.notify_all();
        }
        // The next meeting cannot be over before this rank has come to it, so that the result is this one's.
        while meeting.round == round && meeting.aborted.is_none() {
            meeting = self.shared.changed.wait(meeting).unwrap_or_else(PoisonError::into_inner);
        }
        if meeting.round == round {
            bail!(Io, "another rank has ended");
        }
        Ok(meeting.result.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Meeting> {
        self.shared.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other ranks do not wait for one that panics.
struct AbortOnPanic(Arc<dyn World>);

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        self.0.abort(1);
    }
}

impl World for ThreadWorld {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn local_rank(&self) -> usize {
        self.rank
    }

    fn local_size(&self) -> usize {
        self.shared.size
    }

    fn host(&self) -> String {
        "a thread".to_string()
    }

    fn barrier(&self) -> Result<()> {
        self.meet(Vec::new()).map(drop)
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        check_root(root, self.size())?;
        let all = self.meet(if self.rank == root { bytes.to_vec() } else { Vec::new() })?;
        check_parts(all[root].len(), bytes.len(), 1)?;
        bytes.copy_from_slice(&all[root]);
        Ok(())
    }

    fn all_reduce(&self, numbers: &mut [f32]) -> Result<()> {
        let all = self.meet(bytemuck::cast_slice(numbers).to_vec())?;
        numbers.fill(0.0);
        for part in all.iter() {
            check_parts(part.len(), 4 * numbers.len(), 1)?;
            add(numbers, part);
        }
        Ok(())
    }

    fn reduce_scatter(&self, numbers: &[f32], mine: &mut [f32]) -> Result<()> {
        check_parts(numbers.len(), mine.len(), self.size())?;
        let all = self.meet(bytemuck::cast_slice(numbers).to_vec())?;
        let bytes = 4 * mine.len();
        mine.fill(0.0);
        all.iter().for_each(|part| add(mine, &part[self.rank * bytes..][..bytes]));
        Ok(())
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        check_parts(all.len(), mine.len(), self.size())?;
        let brought = self.meet(mine.to_vec())?;
        all.copy_from_slice(&brought.concat());
        Ok(())
    }

    fn all_to_all(&self, outgoing: &[u8], incoming: &mut [u8]) -> Result<()> {
        check_same(outgoing.len(), incoming.len(), self.size())?;
        let all = self.meet(outgoing.to_vec())?;
        let length = outgoing.len() / self.size();
        if length > 0 {
            for (part, from) in incoming.chunks_mut(length).zip(all.iter()) {
                part.copy_from_slice(&from[self.rank * length..][..length]);
            }
        }
        Ok(())
    }

    fn abort(&self, code: i32) {
        self.lock().aborted.get_or_insert(code);
        self.shared.changed.notify_all();
    }
}

fn add(sums: &mut [f32], bytes: &[u8]) {
    let (numbers, _) = bytes.as_chunks::<4>();
    sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += f32::from_ne_bytes(*number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_gets_what_is_meant_for_it() {
        let results = ThreadWorld::run(3, |world| {
            let rank = world.rank() as u8;
            let mut gathered = [0; 3];
            world.all_gather(&[rank], &mut gathered)?;
            assert_eq!(gathered, [0, 1, 2]);
            let mut exchanged = [0; 3];
            world.all_to_all(&[10 * rank, 10 * rank + 1, 10 * rank + 2], &mut exchanged)?;
            assert_eq!(exchanged, [rank, 10 + rank, 20 + rank]);
            let mut sum = [0.0];
            world.reduce_scatter(&[1.0, 2.0, 3.0], &mut sum)?;
            assert_eq!(sum, [3.0 * (f32::from(rank) + 1.0)]);
            assert_eq!(world.gather_texts(&"x".repeat(usize::from(rank)))?, ["", "x", "xx"]);
            assert_eq!(world.broadcast_text(2, &format!("from {rank}"))?, "from 2");
            for _ in 0..100 {
                world.barrier()?;
            }
            Ok(())
        });
        results.into_iter().for_each(Result::unwrap);
    }

    #[test]
    fn a_rank_that_fails_ends_those_that_wait_for_it() {
        let results = ThreadWorld::run(3, |world| match world.rank() {
            1 => bail!(Data, "on purpose"),
            _ => world.barrier(),
        });
        let messages: Vec<String> =
            results.into_iter().map(|r| r.unwrap_err().message().to_string()).collect();
        assert_eq!(messages, ["another rank has ended", "on purpose", "another rank has ended"]);
    }
}
