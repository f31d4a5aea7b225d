//! Memory for values that are in use at different times.

use super::kernel::Slot;
use super::memory::MemoryRules;

/// A value that lives from one turn of kernels to another, both included.
pub(super) struct Piece {
    pub slot: Slot,
    pub bytes: usize,
    pub from: usize,
    pub to: usize,
    /// The shelf it belongs on.
    pub shelf: usize,
}

struct Placed {
    start: usize,
    end: usize,
    from: usize,
    to: usize,
}

/// Gives every piece its place on its shelf. Tells the places, and gives the bytes of the blocks.
pub(super) fn place(
    pieces: Vec<Piece>,
    rules: &MemoryRules,
    mut tell: impl FnMut(Slot, usize),
) -> Vec<usize> {
    let mut shelves: Vec<Vec<Piece>> = (0..rules.shelves).map(|_| Vec::new()).collect();
    pieces.into_iter().for_each(|piece| shelves[piece.shelf].push(piece));
    let mut blocks = Vec::new();
    for (shelf, pieces) in shelves.into_iter().enumerate() {
        let bytes = fill(pieces, rules, |slot, at| tell(slot, rules.address(shelf, at)));
        rules.count_blocks(shelf, bytes, &mut blocks);
    }
    blocks
}

/// Gives every piece of a shelf the first place that is free as long as it lives, the largest one first: the small ones,
/// of which some live long, then fill what is left between the large ones. Tells the places, and gives the bytes of all.
fn fill(mut pieces: Vec<Piece>, rules: &MemoryRules, mut tell: impl FnMut(Slot, usize)) -> usize {
    pieces.sort_by_key(|piece| (std::cmp::Reverse(piece.bytes), piece.from));
    // In the order of their places.
    let mut placed: Vec<Placed> = Vec::with_capacity(pieces.len());
    for Piece { slot, bytes, from, to, .. } in pieces {
        let bytes = bytes.max(1).next_multiple_of(rules.alignment);
        let mut at = 0;
        for other in placed.iter().filter(|other| other.from <= to && from <= other.to) {
            at = inside_of_a_block(at, bytes, rules.block);
            if at + bytes <= other.start {
                break;
            }
            at = at.max(other.end);
        }
        at = inside_of_a_block(at, bytes, rules.block);
        tell(slot, at);
        let behind = placed.partition_point(|other| other.start < at);
        placed.insert(behind, Placed { start: at, end: at + bytes, from, to });
    }
    placed.iter().map(|piece| piece.end).max().unwrap_or(0)
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

    /// Places and the bytes of all, for pieces of (bytes, from, to).
    fn placed(block: usize, pieces: &[(usize, usize, usize)]) -> (Vec<usize>, usize) {
        let sizes = DType::ALL.map(DType::size);
        let rules = MemoryRules {
            alignment: 64,
            block,
            shelves: 1,
            slots: 8,
            longest_row: 0,
            few_rows: 0,
            columns: false,
            prologues: false,
            beside: false,
            sizes,
        };
        let of = |(slot, &(bytes, from, to)): (usize, &(usize, usize, usize))| Piece {
            slot,
            bytes,
            from,
            to,
            shelf: 0,
        };
        let mut places = vec![0; pieces.len()];
        let all = fill(pieces.iter().enumerate().map(of).collect(), &rules, |slot, at| places[slot] = at);
        (places, all)
    }

    #[test]
    fn shelves_have_blocks_of_their_own() {
        let sizes = DType::ALL.map(DType::size);
        let rules = MemoryRules {
            alignment: 64,
            block: 1024,
            shelves: 2,
            slots: 8,
            longest_row: 0,
            few_rows: 0,
            columns: false,
            prologues: false,
            beside: false,
            sizes,
        };
        let piece = |slot, bytes, shelf| Piece { slot, bytes, from: 0, to: 0, shelf };
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
