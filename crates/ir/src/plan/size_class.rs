//! The sizes in which memory pools give memory.

/// How a pool rounds sizes, so that nearly equal ones share memory: to a sixteenth of the next power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClasses {
    /// Bytes that everything takes at least.
    pub smallest: usize,
    /// The most bytes between two sizes.
    pub largest_step: usize,
}

impl SizeClasses {
    /// The bytes that are given to whoever asks for so many.
    pub fn round(self, bytes: usize) -> usize {
        let bytes = bytes.max(self.smallest);
        let step = (bytes.next_power_of_two() / 16).clamp(self.smallest, self.largest_step);
        bytes.next_multiple_of(step)
    }
}
