//! Tensors in more pieces of memory than a dispatch may add_range: programs over loops are cut along their rows, until every
//! part sees few enough.

use std::collections::BTreeSet;
use volta_ir::plan::kernel::{Access, MapKernel, Slot, Step};

/// The pieces that a part sees of each slot, in order.
pub(crate) type VisibleChunks = Vec<(Slot, BTreeSet<usize>)>;

/// Parts start at multiples of this, so that no invocation works on the elements of two.
pub(crate) const CHUNK_ALIGNMENT: usize = 64;

/// How slots lie in pieces.
pub(crate) trait ChunkLayout {
    /// Elements of a piece.
    fn elements(&self, slot: Slot) -> usize;
    /// Pieces in all.
    fn count(&self, slot: Slot) -> usize;
}

/// Adds the pieces of a slot from one position to another. Padding lies outside, and is not read.
pub(crate) fn add_range(
    windows: &mut VisibleChunks,
    slot: Slot,
    (low, high): (isize, isize),
    pieces: &impl ChunkLayout,
) {
    let (elements, last) = (pieces.elements(slot) as isize, pieces.count(slot) as isize - 1);
    let piece = |at: isize| at.div_euclid(elements).clamp(0, last) as usize;
    let seen = piece(low)..piece(high) + 1;
    match windows.iter_mut().find(|(known, _)| *known == slot) {
        Some((_, known)) => known.extend(seen),
        None => windows.push((slot, seen.collect())),
    }
}

/// The pieces that a program sees.
pub(crate) fn windows(map: &MapKernel, pieces: &impl ChunkLayout) -> VisibleChunks {
    let mut windows: VisibleChunks = Vec::new();
    let mut add_range = |Access { slot, position }: &Access, further: isize| {
        let (low, high) = position.reach(&map.extents);
        let ends = (position.offset + low + further.min(0), position.offset + high + further.max(0));
        add_range(&mut windows, *slot, ends, pieces);
    };
    for instruction in &map.code {
        match &instruction.step {
            Step::Load { access, .. } => add_range(access, 0),
            Step::Gather { access, stride, extent, .. } => {
                add_range(access, stride * (extent.max(&1) - 1) as isize);
            }
            _ => {}
        }
    }
    map.stores.iter().for_each(|store| add_range(&store.access, 0));
    windows
}

/// All the pieces that are seen.
pub(crate) fn number(windows: &VisibleChunks) -> usize {
    windows.iter().map(|(_, seen)| seen.len()).sum()
}

/// Where a loop is cut in two.
pub(crate) fn middle(extent: usize) -> usize {
    let half = extent / 2;
    match extent {
        0..=4 => half.max(1),
        5..=CHUNK_ALIGNMENT => half.next_multiple_of(4),
        _ => half.next_multiple_of(CHUNK_ALIGNMENT),
    }
}

/// The program in parts that add_range at most `most` pieces each; none if even a single row sees more.
pub(crate) fn fitting(map: &MapKernel, most: usize, pieces: &impl ChunkLayout) -> Option<Vec<MapKernel>> {
    let parts = cut_down(map, most, pieces)?;
    if parts.len() == 1 { Some(parts) } else { Some(parts.iter().flat_map(without_overhang).collect()) }
}

/// A part that would end with less than four elements of a line has them by themselves: four at once would reach into what
/// is behind it, and was perhaps written by another part.
pub(crate) fn without_overhang(part: &MapKernel) -> Vec<MapKernel> {
    let flat = part.simplified();
    let whole = flat.iterations() / 4 * 4;
    if flat.extents.len() != 1 || flat.outer != 1 || whole == 0 || whole == flat.extents[0] {
        return vec![part.clone()];
    }
    vec![flat.part(0, 0..whole), flat.part(0, whole..flat.extents[0])]
}

fn cut_down(map: &MapKernel, most: usize, pieces: &impl ChunkLayout) -> Option<Vec<MapKernel>> {
    if number(&windows(map, pieces)) <= most {
        return Some(vec![map.clone()]);
    }
    let folds_rows = map.code.iter().any(|i| matches!(i.step, Step::GlobalReduce(..)));
    let halves = |l: usize| {
        let (extent, middle) = (map.extents[l], middle(map.extents[l]));
        [map.part(l, 0..middle), map.part(l, middle..extent)]
    };
    let cost = |halves: &[MapKernel; 2]| halves.iter().map(|half| number(&windows(half, pieces))).max();
    let cut = (0..map.outer).filter(|&l| map.extents[l] > 1 && !folds_rows).map(halves).min_by_key(cost)?;
    let mut parts = Vec::new();
    for half in &cut {
        parts.extend(cut_down(half, most, pieces)?);
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volta_ir::dtype::{DType, Scalar};
    use volta_ir::op::BinaryOp;
    use volta_ir::plan::kernel::{Instruction, LoopLevel, Store};
    use volta_ir::plan::view::Affine;

    /// A hundred elements a piece.
    struct Hundreds(usize);

    impl ChunkLayout for Hundreds {
        fn elements(&self, _: Slot) -> usize {
            100
        }
        fn count(&self, _: Slot) -> usize {
            self.0
        }
    }

    fn access(slot: Slot, coefficients: &[isize], offset: isize) -> Access {
        Access { slot, position: Affine { coefficients: coefficients.iter().copied().collect(), offset } }
    }

    /// slot 2 = slot 0 + slot 1, over rows of ten.
    fn sum(rows: usize) -> MapKernel {
        let load =
            |slot| Step::Load { access: access(slot, &[10, 1], 0), checks: vec![], fill: Scalar::Int(0) };
        let full = |step| Instruction { step, dtype: DType::F32, rank: LoopLevel::Full };
        MapKernel {
            extents: vec![rows, 10],
            outer: 2,
            code: vec![full(load(0)), full(load(1)), full(Step::Binary(BinaryOp::Add, 0, 1))],
            stores: vec![Store { value: 2, access: access(2, &[10, 1], 0) }],
        }
    }

    #[test]
    fn parts_see_few_pieces_and_cover_everything_once() {
        let map = sum(1000);
        assert_eq!(number(&windows(&map, &Hundreds(100))), 300);
        let parts = fitting(&map, 30, &Hundreds(100)).expect("it can be cut");
        let mut next = 0;
        for part in &parts {
            let seen = windows(part, &Hundreds(100));
            assert!(number(&seen) <= 30, "{seen:?}");
            let start = part.stores[0].access.position.offset as usize;
            assert_eq!(start, next);
            assert!((start / 10).is_multiple_of(CHUNK_ALIGNMENT) || part.extents[0] <= CHUNK_ALIGNMENT);
            next = start + part.iterations();
        }
        assert_eq!(next, 10_000);
    }

    #[test]
    fn no_part_reaches_into_another_four_at_a_time() {
        let mut map = sum(2);
        map.extents = vec![2, 5002];
        let forms = map.code.iter_mut().filter_map(|i| match &mut i.step {
            Step::Load { access, .. } => Some(access),
            _ => None,
        });
        for access in forms.chain(map.stores.iter_mut().map(|s| &mut s.access)) {
            access.position.coefficients[0] = 5002;
        }
        let parts = fitting(&map, 30, &Hundreds(101)).expect("it can be cut");
        let lengths = parts.iter().map(|part| part.simplified().extents[0]);
        assert_eq!(lengths.clone().sum::<usize>(), 2 * 5002);
        assert!(lengths.clone().all(|n| n < 4 || n.is_multiple_of(4)), "{:?}", lengths.collect::<Vec<_>>());
    }

    #[test]
    fn what_fits_is_left_whole() {
        assert_eq!(fitting(&sum(100), 30, &Hundreds(10)), Some(vec![sum(100)]));
    }

    #[test]
    fn a_row_that_sees_too_much_cannot_be_cut() {
        let mut map = sum(50);
        map.extents = vec![1, 10_000];
        map.outer = 1;
        assert_eq!(fitting(&map, 30, &Hundreds(100)), None);
    }
}
