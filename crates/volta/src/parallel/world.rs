//! What the processes of a run are to each other, and how they exchange what they have.

use crate::error::{Result, bail};

/// The processes of a run, the ranks, as each of them sees it. All ranks call the same functions in the same order: each waits for the
/// others.
///
/// ```
/// use volta::parallel::{Single, World};
///
/// let world = Single;
/// assert_eq!((world.rank(), world.size()), (0, 1));
/// let mut numbers = [1.0, 2.0];
/// world.all_reduce(&mut numbers)?;
/// assert_eq!(numbers, [1.0, 2.0]);
/// # Ok::<(), volta::Error>(())
/// ```
pub trait World: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// The number of this process among those of its machine.
    fn local_rank(&self) -> usize;

    /// How many processes this machine has.
    fn local_size(&self) -> usize;

    /// What this machine is called.
    fn host(&self) -> String;

    /// Waits until all ranks are here.
    fn barrier(&self) -> Result<()>;

    /// Gives all ranks the bytes of one.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<()>;

    /// Gives all ranks the sums of what they have, each number by itself. Their order is not fixed: the last bits depend on how many
    /// ranks there are.
    fn all_reduce(&self, numbers: &mut [f32]) -> Result<()>;

    /// The same, into `sums`, which is as long: `numbers` need not be copied.
    fn all_reduce_into(&self, numbers: &[f32], sums: &mut [f32]) -> Result<()> {
        sums.copy_from_slice(numbers);
        self.all_reduce(sums)
    }

    /// Gives each rank its part of the sums: `numbers` has as many parts as there are ranks, each as long as `mine`.
    fn reduce_scatter(&self, numbers: &[f32], mine: &mut [f32]) -> Result<()>;

    /// Gives all ranks what each has, in the order of their numbers: `all` has as many parts as there are ranks, each as long as `mine`.
    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// Sends part `r` of `outgoing` to rank `r`, and puts what rank `r` has for this one into part `r` of `incoming`. Parts are equally
    /// long.
    fn all_to_all(&self, outgoing: &[u8], incoming: &mut [u8]) -> Result<()>;

    /// Whether this rank waits for others right now, as a watchdog asks.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Ends all ranks, whatever they are doing. With MPI it does not return.
    fn abort(&self, code: i32);
}

impl dyn World + '_ {
    /// What each rank has, in the order of their numbers; it need not be equally long.
    pub fn gather_bytes(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut lengths = vec![0; 8 * self.size()];
        self.all_gather(&(mine.len() as u64).to_le_bytes(), &mut lengths)?;
        let (eights, _) = lengths.as_chunks::<8>();
        let lengths: Vec<usize> = eights.iter().map(|bytes| u64::from_le_bytes(*bytes) as usize).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); self.size()]);
        }
        let mut padded = mine.to_vec();
        padded.resize(longest, 0);
        let mut all = vec![0; longest * self.size()];
        self.all_gather(&padded, &mut all)?;
        Ok(all.chunks(longest).zip(lengths).map(|(part, length)| part[..length].to_vec()).collect())
    }

    /// The text of each rank, in the order of their numbers.
    pub fn gather_texts(&self, mine: &str) -> Result<Vec<String>> {
        let all = self.gather_bytes(mine.as_bytes())?;
        Ok(all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
    }

    /// The text of one rank.
    pub fn broadcast_text(&self, root: usize, text: &str) -> Result<String> {
        let mut length = (text.len() as u64).to_le_bytes();
        self.broadcast(root, &mut length)?;
        let mut bytes = if self.rank() == root { text.as_bytes().to_vec() } else { Vec::new() };
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast(root, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `rank 2 on node7`.
    pub fn name(&self) -> String {
        format!("rank {} on {}", self.rank(), self.host())
    }
}

/// A process by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl World for Single {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn local_rank(&self) -> usize {
        0
    }

    fn local_size(&self) -> usize {
        1
    }

    fn host(&self) -> String {
        "this machine".to_string()
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, root: usize, _: &mut [u8]) -> Result<()> {
        check_root(root, 1)
    }

    fn all_reduce(&self, _: &mut [f32]) -> Result<()> {
        Ok(())
    }

    fn reduce_scatter(&self, numbers: &[f32], mine: &mut [f32]) -> Result<()> {
        check_parts(numbers.len(), mine.len(), 1)?;
        mine.copy_from_slice(numbers);
        Ok(())
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        check_parts(all.len(), mine.len(), 1)?;
        all.copy_from_slice(mine);
        Ok(())
    }

    fn all_to_all(&self, outgoing: &[u8], incoming: &mut [u8]) -> Result<()> {
        check_same(outgoing.len(), incoming.len(), 1)?;
        incoming.copy_from_slice(outgoing);
        Ok(())
    }

    fn abort(&self, code: i32) {
        std::process::exit(code);
    }
}

/// An error unless there is such a rank.
pub fn check_root(root: usize, size: usize) -> Result<()> {
    if root < size {
        return Ok(());
    }
    bail!(Argument, "there is no rank {root} among {size}")
}

/// An error unless `all` has a part as long as `mine` for every rank.
pub fn check_parts(all: usize, mine: usize, size: usize) -> Result<()> {
    if all == mine * size {
        return Ok(());
    }
    bail!(Argument, "{size} parts of {mine} are {}, and there is room for {all}", mine * size)
}

/// An error unless both sides are equally long and have an equal part for every rank.
pub fn check_same(outgoing: usize, incoming: usize, size: usize) -> Result<()> {
    if outgoing == incoming && outgoing.is_multiple_of(size) {
        return Ok(());
    }
    bail!(Argument, "{outgoing} bytes to send and {incoming} to receive are no equal parts for {size} ranks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_process_gathers_what_it_has_itself() {
        let world: &dyn World = &Single;
        assert_eq!(world.gather_texts("a").unwrap(), ["a"]);
        assert_eq!(world.gather_texts("").unwrap(), [""]);
        assert_eq!(world.broadcast_text(0, "b").unwrap(), "b");
        assert!(world.broadcast_text(1, "b").is_err());
    }

    #[test]
    fn parts_that_do_not_fit_are_errors() {
        assert!(Single.all_gather(&[1], &mut [0; 2]).is_err());
        assert!(Single.reduce_scatter(&[1.0, 2.0], &mut [0.0]).is_err());
        assert!(Single.all_to_all(&[1], &mut [0; 2]).is_err());
    }
}
