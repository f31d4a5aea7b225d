//! A rank of MPI.

use mpi::collective::{CommunicatorCollectives, Root, SystemOperation};
use mpi::topology::{Communicator, SimpleCommunicator};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use volta::Result;
use volta::parallel::{World, check_parts, check_root, check_same};

/// This process among all that the launcher has started. An error of MPI ends all of them, as MPI has it unless told otherwise.
pub struct MpiWorld {
    rank: usize,
    size: usize,
    local: (usize, usize),
    host: String,
    /// Collective calls come one after the other.
    turn: Mutex<()>,
    waiting: AtomicUsize,
}

/// The most elements of one message, with those of all ranks: MPI counts them in 31 bits.
const MAX_ELEMENTS: usize = 1 << 30;

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl MpiWorld {
    /// Of the processes of a session that has begun.
    pub(crate) fn new() -> MpiWorld {
        let all = world();
        let machine = all.split_shared(all.rank());
        MpiWorld {
            rank: all.rank() as usize,
            size: all.size() as usize,
            local: (machine.rank() as usize, machine.size() as usize),
            host: mpi::environment::processor_name()
                .unwrap_or_else(|_| "a machine without a name".to_string()),
            turn: Mutex::new(()),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Calls MPI, which waits for other ranks.
    fn call<T>(&self, call: impl FnOnce(&SimpleCommunicator) -> T) -> T {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = call(&world());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// The ranges of a part that MPI can count, with those of all ranks.
    fn pieces(&self, length: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let most = (MAX_ELEMENTS / self.size).max(1);
        (0..length).step_by(most).map(move |begin| begin..(begin + most).min(length))
    }
}

/// The same range of every rank's part, one behind the other.
fn cut<T: Clone>(whole: &[T], length: usize, range: &Range<usize>) -> Vec<T> {
    whole.chunks(length).flat_map(|part| part[range.clone()].iter().cloned()).collect()
}

/// Puts what is one behind the other into the same range of every rank's part.
fn put(whole: &mut [u8], length: usize, range: &Range<usize>, pieces: &[u8]) {
    let parts = whole.chunks_mut(length).zip(pieces.chunks(range.len()));
    parts.for_each(|(part, piece)| part[range.clone()].copy_from_slice(piece));
}

impl World for MpiWorld {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local_rank(&self) -> usize {
        self.local.0
    }

    fn local_size(&self) -> usize {
        self.local.1
    }

    fn host(&self) -> String {
        self.host.clone()
    }

    fn barrier(&self) -> Result<()> {
        self.call(|all| all.barrier());
        Ok(())
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        check_root(root, self.size)?;
        for piece in bytes.chunks_mut(MAX_ELEMENTS) {
            self.call(|all| all.process_at_rank(root as i32).broadcast_into(piece));
        }
        Ok(())
    }

    fn all_reduce(&self, numbers: &mut [f32]) -> Result<()> {
        let mut sums = vec![0f32; numbers.len()];
        self.all_reduce_into(numbers, &mut sums)?;
        numbers.copy_from_slice(&sums);
        Ok(())
    }

    fn all_reduce_into(&self, numbers: &[f32], sums: &mut [f32]) -> Result<()> {
        check_same(numbers.len(), sums.len(), 1)?;
        for (piece, sums) in numbers.chunks(MAX_ELEMENTS).zip(sums.chunks_mut(MAX_ELEMENTS)) {
            self.call(|all| all.all_reduce_into(piece, sums, SystemOperation::sum()));
        }
        Ok(())
    }

    fn reduce_scatter(&self, numbers: &[f32], mine: &mut [f32]) -> Result<()> {
        check_parts(numbers.len(), mine.len(), self.size)?;
        let length = mine.len();
        for range in self.pieces(length) {
            if range.len() == length {
                self.call(|all| all.reduce_scatter_block_into(numbers, mine, SystemOperation::sum()));
            } else {
                let piece = cut(numbers, length, &range);
                let sums = &mut mine[range];
                self.call(|all| all.reduce_scatter_block_into(&piece[..], sums, SystemOperation::sum()));
            }
        }
        Ok(())
    }

    fn all_gather(&self, mine: &[u8], whole: &mut [u8]) -> Result<()> {
        check_parts(whole.len(), mine.len(), self.size)?;
        let length = mine.len();
        for range in self.pieces(length) {
            if range.len() == length {
                self.call(|all| all.all_gather_into(mine, whole));
            } else {
                let mut pieces = vec![0; range.len() * self.size];
                self.call(|all| all.all_gather_into(&mine[range.clone()], &mut pieces[..]));
                put(whole, length, &range, &pieces);
            }
        }
        Ok(())
    }

    fn all_to_all(&self, outgoing: &[u8], incoming: &mut [u8]) -> Result<()> {
        check_same(outgoing.len(), incoming.len(), self.size)?;
        let length = outgoing.len() / self.size;
        for range in self.pieces(length) {
            if range.len() == length {
                self.call(|all| all.all_to_all_into(outgoing, incoming));
            } else {
                let piece = cut(outgoing, length, &range);
                let mut pieces = vec![0; piece.len()];
                self.call(|all| all.all_to_all_into(&piece[..], &mut pieces[..]));
                put(incoming, length, &range, &pieces);
            }
        }
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn abort(&self, code: i32) {
        // Not through `call`: whoever waits there never returns.
        world().abort(code);
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, put};

    #[test]
    fn pieces_of_every_part_come_back_to_their_places() {
        let whole: Vec<u8> = (0..12).collect();
        let mut copy = vec![0; 12];
        for range in [0..3, 3..4] {
            let pieces = cut(&whole, 4, &range);
            put(&mut copy, 4, &range, &pieces);
        }
        assert_eq!(copy, whole);
        assert_eq!(cut(&whole, 4, &(3..4)), [3, 7, 11]);
    }
}
