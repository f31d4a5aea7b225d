//! The guards on a GPU: after every kernel, small dispatches count NaN and infinity in what it wrote and look for
//! indices out of bounds. They note what they find in one buffer, which is read after the plan has run.

use super::context::Context;
use super::memory::{Piece, create};
use super::storage::Stored;
use crate::dtype::DType;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::executor::Argument;
use crate::plan::guard::{self, Index};
use crate::plan::kernel::Kernel;

/// Counts the elements that are not finite in one piece of memory. The first argument is the number of elements,
/// the second the word to add to; then a mask of the exponent of a word's element, and of its second one, if any.
pub(super) const COUNT_NONFINITE: &str = "\
@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> arguments: array<vec4<u32>, 2>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, \
@builtin(local_invocation_index) lane: u32) {
    let count = arguments[0].x;
    let low = arguments[1].x;
    let high = arguments[1].z;
    let words = select(count, count - count / 2u, high != 0u);
    var here = 0u;
    for (var i = wg.x * 256u + lane; i < words; i += nwg.x * 256u) {
        let word = values[i];
        if ((word & low) == low) { here++; }
        if (high != 0u && (word & high) == high && 2u * i + 1u < count) { here++; }
    }
    if (here > 0u) { atomicAdd(&found[arguments[0].z], here); }
}
";

/// Workgroups that count together.
const MOST_GROUPS: usize = 1024;

/// Words that a check of an index notes its finding in.
const INDEX_WORDS: usize = 4;

/// The exponents of a word's elements: none are looked at where the type has none.
pub(super) fn masks(dtype: DType, f16: bool) -> [u32; 2] {
    match Stored::of(dtype, f16) {
        Stored::F32 => [0x7f80_0000, 0],
        Stored::F16 => [0x7c00, 0x7c00_0000],
        Stored::F16Word => [0x7c00, 0],
        Stored::Bf16Word => [0x7f80, 0],
        Stored::I32 | Stored::I64 | Stored::U32 | Stored::Word => unreachable!("integers are finite"),
    }
}

/// Workgroups for so many elements.
pub(super) fn groups(count: usize) -> u32 {
    count.div_ceil(1024).clamp(1, MOST_GROUPS) as u32
}

/// Where a plan's checks note what they find: a word a slot, and a few for every index.
pub(super) struct Notes {
    slots: usize,
    /// The kernel and the extent of every index that is checked.
    indices: Vec<(usize, usize)>,
}

impl Notes {
    pub fn of(plan: &Plan) -> Notes {
        let of_kernel = |(k, kernel): (usize, &Kernel)| -> Vec<(usize, usize)> {
            guard::indices(kernel).iter().map(|index| (k, index.extent)).collect()
        };
        let indices: Vec<_> = plan.kernels.iter().enumerate().flat_map(of_kernel).collect();
        Notes { slots: plan.slot_bytes.len(), indices }
    }

    /// The indices of kernel `k`, each with its first word.
    pub fn indices_of(&self, k: usize, kernel: &Kernel) -> Vec<(Index, u32)> {
        let first = self.indices.iter().take_while(|(other, _)| *other < k).count();
        let word = |n: usize| (self.slots + INDEX_WORDS * (first + n)) as u32;
        guard::indices(kernel).into_iter().enumerate().map(|(n, index)| (index, word(n))).collect()
    }

    fn bytes(&self) -> u64 {
        4 * (self.slots + INDEX_WORDS * self.indices.len()) as u64
    }
}

/// The memory of the notes.
pub(super) struct Guard {
    pub memory: Piece,
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "a tab cannot wait for what is noted"))]
    notes: Notes,
}

impl Guard {
    pub fn new(context: &Context, notes: Notes) -> Result<Guard> {
        Ok(Guard { memory: create(context, notes.bytes())?, notes })
    }

    /// The first error that the checks of a run have found.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn verdict(&self, context: &Context, plan: &Plan, arguments: &[Argument]) -> Result<()> {
        let bytes = super::transfer::read_raw(context, &self.memory.buffer)?;
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
        let Notes { slots, indices } = &self.notes;
        let mut bad: Vec<Option<(i64, usize)>> = vec![None; plan.kernels.len()];
        for (n, &(k, extent)) in indices.iter().enumerate() {
            let [hit, low, high] = [0, 1, 2].map(|w| words[slots + INDEX_WORDS * n + w]);
            if hit != 0 {
                bad[k].get_or_insert(((u64::from(high) << 32 | u64::from(low)) as i64, extent));
            }
        }
        for (kernel, bad_index) in plan.kernels.iter().zip(bad) {
            guard::verdict(kernel, arguments, bad_index, |slot| u64::from(words[slot]))?;
        }
        Ok(())
    }

    /// A tab cannot wait for what they find.
    #[cfg(target_arch = "wasm32")]
    pub fn verdict(&self, context: &Context, _: &Plan, _: &[Argument]) -> Result<()> {
        super::transfer::wait(context)
    }
}
