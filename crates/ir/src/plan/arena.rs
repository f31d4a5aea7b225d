//! Memory for values that are in use at different times.

use super::kernel::Slot;
use super::memory::DeviceLimits;
use std::collections::{BTreeMap, BTreeSet};

/// A value that lives from one wave of kernels to another, both included.
#[derive(Clone)]
pub(super) struct Allocation {
    pub slot: Slot,
    pub bytes: usize,
    pub from: usize,
    pub to: usize,
    /// The region it belongs in.
    pub region: usize,
}

struct Placed {
    start: usize,
    end: usize,
    from: usize,
    to: usize,
}

/// Gives every allocation its place in its region. Tells the places, and gives the bytes of the blocks.
pub(super) fn place(
    pieces: Vec<Allocation>,
    rules: &DeviceLimits,
    mut tell: impl FnMut(Slot, usize),
) -> Vec<usize> {
    let mut regions: Vec<Vec<Allocation>> = (0..rules.regions).map(|_| Vec::new()).collect();
    pieces.into_iter().for_each(|piece| regions[piece.region].push(piece));
    let mut blocks = Vec::new();
    for (region, pieces) in regions.into_iter().enumerate() {
        let bytes = fill(pieces, rules, |slot, at| tell(slot, rules.address(region, at)));
        rules.count_blocks(region, bytes, &mut blocks);
    }
    blocks
}

/// Gives every allocation its place in this region, whatever theirs is. Tells the places, and gives the bytes of the blocks.
pub(super) fn place_in(
    region: usize,
    pieces: Vec<Allocation>,
    rules: &DeviceLimits,
    mut tell: impl FnMut(Slot, usize),
) -> Vec<usize> {
    let mut blocks = Vec::new();
    let bytes = fill(pieces, rules, |slot, at| tell(slot, rules.address(region, at)));
    rules.count_blocks(region, bytes, &mut blocks);
    blocks
}

/// Allocations in a region for which it is worth looking at all others.
const MAX_BEST_FIT_ALLOCATIONS: usize = 8192;

/// Gives every allocation of a region a place. Tells the places, and gives the bytes of all.
fn fill(pieces: Vec<Allocation>, rules: &DeviceLimits, tell: impl FnMut(Slot, usize)) -> usize {
    if pieces.len() <= MAX_BEST_FIT_ALLOCATIONS {
        fill_closely(pieces, rules, tell)
    } else {
        fill_in_turn(pieces, rules, tell)
    }
}

/// The bytes that a piece takes.
fn room(piece: &Allocation, rules: &DeviceLimits) -> usize {
    piece.bytes.max(1).next_multiple_of(rules.alignment)
}

/// Gives every allocation the first place that is free as long as it lives, the largest one first: the small ones,
/// of which some live long, then fill what is left between the large ones.
fn fill_closely(
    mut pieces: Vec<Allocation>,
    rules: &DeviceLimits,
    mut tell: impl FnMut(Slot, usize),
) -> usize {
    pieces.sort_by_key(|piece| (std::cmp::Reverse(piece.bytes), piece.from));
    // In the order of their places.
    let mut placed: Vec<Placed> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let bytes = room(&piece, rules);
        let Allocation { slot, from, to, .. } = piece;
        let mut at = 0;
        for other in &placed {
            // Nor is any of those behind it in the way.
            if at + bytes <= other.start && inside_of_a_block(at, bytes, rules.block) + bytes <= other.start {
                break;
            }
            if other.from <= to && from <= other.to {
                at = inside_of_a_block(at, bytes, rules.block);
                if at + bytes <= other.start {
                    break;
                }
                at = at.max(other.end);
            }
        }
        at = inside_of_a_block(at, bytes, rules.block);
        tell(slot, at);
        let behind = placed.partition_point(|other| other.start < at);
        placed.insert(behind, Placed { start: at, end: at + bytes, from, to });
    }
    placed.iter().map(|piece| piece.end).max().unwrap_or(0)
}

/// Gives every allocation a place when its life begins: the smallest of those that are free then. Takes little time for however
/// many pieces, and somewhat more memory.
fn fill_in_turn(
    mut pieces: Vec<Allocation>,
    rules: &DeviceLimits,
    mut tell: impl FnMut(Slot, usize),
) -> usize {
    pieces.sort_by_key(|piece| (piece.from, std::cmp::Reverse(piece.bytes)));
    let (mut free, mut end) = (Free::default(), 0);
    // What is in use, by the end of its life.
    let mut used: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    for piece in pieces {
        let bytes = room(&piece, rules);
        while let Some(&(to, start, bytes)) = used.first()
            && to < piece.from
        {
            used.pop_first();
            free.give(start, bytes);
        }
        let at = free.take(bytes, rules.block).unwrap_or_else(|| {
            let at = inside_of_a_block(end, bytes, rules.block);
            if at > end {
                free.give(end, at - end);
            }
            end = at + bytes;
            at
        });
        tell(piece.slot, at);
        used.insert((piece.to, at, bytes));
    }
    end
}

/// Memory that is free: where each part begins and its bytes, and the same by their bytes.
#[derive(Default)]
struct Free {
    by_start: BTreeMap<usize, usize>,
    by_bytes: BTreeSet<(usize, usize)>,
}

impl Free {
    fn add(&mut self, start: usize, bytes: usize) {
        if bytes > 0 {
            self.by_start.insert(start, bytes);
            self.by_bytes.insert((bytes, start));
        }
    }

    fn remove(&mut self, start: usize, bytes: usize) {
        self.by_start.remove(&start);
        self.by_bytes.remove(&(bytes, start));
    }

    /// Joins what is free again with what is free beside it.
    fn give(&mut self, mut start: usize, mut bytes: usize) {
        if let Some((&before, &more)) = self.by_start.range(..start).next_back()
            && before + more == start
        {
            self.remove(before, more);
            (start, bytes) = (before, bytes + more);
        }
        if let Some(&more) = self.by_start.get(&(start + bytes)) {
            self.remove(start + bytes, more);
            bytes += more;
        }
        self.add(start, bytes);
    }

    /// A place for a piece in the smallest part where it fits.
    fn take(&mut self, bytes: usize, block: usize) -> Option<usize> {
        /// Parts that are large enough, but lie across blocks.
        const MAX_TRIES: usize = 64;
        let parts = self.by_bytes.range((bytes, 0)..).take(MAX_TRIES);
        let mut places = parts.map(|&(room, start)| (inside_of_a_block(start, bytes, block), start, room));
        let (at, start, room) = places.find(|&(at, start, room)| at + bytes <= start + room)?;
        self.remove(start, room);
        self.add(start, at - start);
        self.add(at + bytes, start + room - at - bytes);
        Some(at)
    }
}

/// The first place from `at` on where a piece may start.
fn inside_of_a_block(at: usize, bytes: usize, block: usize) -> usize {
    let left = block - at % block;
    if bytes <= left || left == block { at } else { at + left }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::plan::memory::Rates;
    use crate::plan::size_class::SizeClasses;

    const RULES: DeviceLimits = DeviceLimits {
        alignment: 64,
        block: usize::MAX,
        regions: 1,
        slots: 8,
        max_fused_row: 0,
        min_rows_unsplit: 0,
        columns: false,
        prologues: false,
        horizontal_fusion: false,
        sizes: [4; DType::ALL.len()],
        size_classes: SizeClasses { smallest: 64, largest_step: 1 << 20 },
        rates: Rates { flops_per_byte: 16, kernel_bytes: 0, host_byte: 0 },
    };

    /// Places and the bytes of all, for pieces of (bytes, from, to).
    fn placed(block: usize, pieces: &[(usize, usize, usize)]) -> (Vec<usize>, usize) {
        let rules = DeviceLimits { block, ..RULES };
        let of = |(slot, &(bytes, from, to)): (usize, &(usize, usize, usize))| Allocation {
            slot,
            bytes,
            from,
            to,
            region: 0,
        };
        let mut places = vec![0; pieces.len()];
        let all = fill(pieces.iter().enumerate().map(of).collect(), &rules, |slot, at| places[slot] = at);
        (places, all)
    }

    #[test]
    fn shelves_have_blocks_of_their_own() {
        let rules = DeviceLimits { block: 1024, regions: 2, ..RULES };
        let piece = |slot, bytes, region| Allocation { slot, bytes, from: 0, to: 0, region };
        let mut places = [0; 4];
        let pieces = vec![piece(0, 640, 0), piece(1, 640, 1), piece(2, 640, 0), piece(3, 64, 1)];
        let blocks = place(pieces, &rules, |slot, at| places[slot] = at);
        // Of every three blocks, the last is for what kernels set aside.
        assert_eq!(places, [0, 1024, 3 * 1024, 1024 + 640]);
        assert_eq!(blocks, [1024, 704, 0, 640]);
    }

    #[test]
    fn pieces_share_memory_if_they_do_not_live_at_once() {
        let (places, all) = placed(usize::MAX, &[(100, 0, 1), (10, 0, 3), (64, 2, 3), (64, 2, 2), (1, 3, 3)]);
        assert_eq!((places, all), (vec![0, 128, 0, 64, 64], 192));
    }

    #[test]
    fn pieces_that_are_placed_in_turn_are_apart_and_take_little_more() {
        let rules = DeviceLimits { block: 4096, ..RULES };
        // As in a step: some live until the way back, most are soon done.
        let all = |count: usize| {
            let piece = |slot: usize| {
                let (bytes, to) = (
                    64 * (1 + slot * 7 % 5),
                    if slot.is_multiple_of(3) { 2 * count - slot } else { slot + 2 },
                );
                Allocation { slot, bytes, from: slot, to, region: 0 }
            };
            (0..count).map(piece).collect::<Vec<Allocation>>()
        };
        let mut places = vec![0; 300];
        let closely = fill_closely(all(300), &rules, |_, _| ());
        let in_turn = fill_in_turn(all(300), &rules, |slot, at| places[slot] = at);
        assert!(in_turn <= closely + closely / 4, "{in_turn} and {closely}");
        for (a, b) in all(300).iter().flat_map(|a| all(300).into_iter().map(move |b| (a.clone(), b))) {
            let meet = a.from <= b.to && b.from <= a.to;
            let apart =
                places[a.slot] + a.bytes <= places[b.slot] || places[b.slot] + b.bytes <= places[a.slot];
            assert!(a.slot == b.slot || !meet || apart);
            assert!(places[a.slot] / 4096 == (places[a.slot] + a.bytes - 1) / 4096);
        }
    }

    #[test]
    fn a_small_piece_that_lives_long_stands_in_nobodys_way() {
        // In the order of their lives, the small one would come to lie where the last one needs all room.
        let (places, all) = placed(usize::MAX, &[(128, 0, 1), (64, 1, 9), (192, 2, 3)]);
        assert_eq!((places, all), (vec![0, 192, 0], 256));
    }

    #[test]
    fn no_piece_lies_across_blocks_unless_it_is_larger_than_one() {
        let (places, all) =
            placed(1024, &[(640, 0, 9), (640, 0, 9), (384, 0, 9), (3000, 0, 9), (1024, 0, 9)]);
        assert_eq!(places, [4096, 5120, 4736, 0, 3072]);
        assert_eq!(all, 5760);
    }
}
