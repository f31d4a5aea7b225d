//! The order of a line that no kernel sees as a whole. It is cut into blocks of which a kernel sorts two at a time: blocks that
//! are neighbours, first the even ones with those behind them, then the odd ones, and so on. As many rounds as there are
//! blocks put all in order (odd-even transposition, with blocks for elements). After the first two, every block is in order,
//! and neighbours are only joined. The kernel's order is stable, and what is equal never passes each other between
//! neighbours: so the order of the line is stable, too.

use super::loops::CHUNK_ALIGNMENT;
use super::staging::{KernelSequence, copied, written};
use std::ops::Range;
use volta_ir::dtype::DType;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::{Access, Instruction, KernelBody, LoopLevel, NativeKernel, Operand, Slot, Step};
use volta_ir::plan::memory::DeviceLimits;
use volta_ir::plan::view::Affine;
use volta_ir::shape::Shape;

/// Memory that a dispatch of the kernel sees, with the length of what it sorts: keys and positions, before a pass and after it.
const SEEN: usize = 4;

/// The most elements of a type that a kernel sorts at once in memory of its own.
pub(crate) fn max_sortable_length(dtype: DType, rules: &DeviceLimits) -> usize {
    let pieces = (rules.slots / SEEN).max(1);
    let elements = pieces * (rules.block / dtype.size().max(4));
    (elements / (2 * CHUNK_ALIGNMENT) * 2 * CHUNK_ALIGNMENT).max(2 * CHUNK_ALIGNMENT)
}

/// The positions that put the single line of `x` in order, into the single line of `output`, by kernels that sort at most
/// `max_sortable_length` elements. Slots are added from `first` on.
pub(crate) fn lower_external_sort(
    x: &Operand,
    output: &Operand,
    axis: usize,
    descending: bool,
    max_sortable_length: usize,
    first: Slot,
) -> KernelSequence {
    let (x, output) = (line(x, axis), line(output, axis));
    let blocks = blocks(x.shape[0], max_sortable_length / 2);
    let most = blocks.windows(2).map(|pair| pair[1].end - pair[0].start).max().unwrap_or(0);
    // Values as far as they are in order; and of two blocks their values, their positions, and the order of those.
    let values = Operand { slot: first, ..x.alone() };
    let of_two = |number: usize, like: &Operand| Operand { slot: first + number, ..like.alone() };
    let (some_values, some_positions, order) = (of_two(1, &x), of_two(2, &output), of_two(3, &output));
    let slots = [&some_values, &some_positions, &order].map(|two| (two.dtype, most));
    let mut works = vec![copied(&x, &values), counted(&output)];
    for (round, [one, two]) in rounds(blocks.len()) {
        let range = blocks[one].start..blocks[two].end;
        let [some_values, some_positions, order] =
            [&some_values, &some_positions, &order].map(|two| two.narrowed(0, 0..range.len()));
        let [values, output] = [&values, &output].map(|all| all.narrowed(0, range.clone()));
        let sorted = if round < 2 { 1 } else { blocks[one].len() };
        let sort = NativeKernel {
            op: NativeOp::ArgSort { axis: 0, descending, sorted },
            operands: vec![some_values.clone()],
            output: order.clone(),
            prologues: Vec::new(),
            epilogue: None,
        };
        works.extend([
            copied(&values, &some_values),
            copied(&output, &some_positions),
            KernelBody::Native(Box::new(sort)),
            taken(&some_values, &order, &values),
            taken(&some_positions, &order, &output),
        ]);
    }
    KernelSequence { works, slots: [(values.dtype, x.shape[0])].into_iter().chain(slots).collect() }
}

/// A view that is long along one axis only, as a line.
fn line(operand: &Operand, axis: usize) -> Operand {
    let shape = Shape::of(&[operand.shape[axis]]);
    Operand { shape, strides: vec![operand.strides[axis]], ..operand.clone() }
}

/// The ranges of about equal blocks of at most so many elements.
fn blocks(count: usize, most: usize) -> Vec<Range<usize>> {
    let each = count.div_ceil(count.div_ceil(most).max(1)).next_multiple_of(CHUNK_ALIGNMENT);
    (0..count).step_by(each.max(1)).map(|start| start..(start + each).min(count)).collect()
}

/// The neighbours that are sorted together, in every round, so that all of so many blocks are in order.
fn rounds(blocks: usize) -> impl Iterator<Item = (usize, [usize; 2])> {
    let of_round = move |round| (round % 2 + 1..blocks).step_by(2).map(move |two| (round, [two - 1, two]));
    (0..blocks).flat_map(of_round)
}

/// What writes to every element its position.
fn counted(to: &Operand) -> KernelBody {
    let step = Step::Iota(Affine::index(1, 0));
    written(vec![Instruction { step, dtype: to.dtype, rank: LoopLevel::Full }], to)
}

/// What takes elements of a line, in an order, to another.
fn taken(from: &Operand, order: &Operand, to: &Operand) -> KernelBody {
    let mut code = order.as_map().code;
    let access = Access { slot: from.slot, position: Affine::constant(1, from.offset) };
    let step = Step::Gather { access, index: 0, stride: from.strides[0], extent: from.shape[0] };
    code.push(Instruction { step, dtype: from.dtype, rank: LoopLevel::Full });
    written(code, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_a_line_once_and_none_is_too_long() {
        for (count, most) in [(1000, 64), (12_000, 1024), (12_001, 1024), (257, 128), (1 << 20, 65_536)] {
            let blocks = blocks(count, most);
            assert_eq!(blocks.iter().cloned().flatten().count(), count);
            assert!(
                blocks.iter().all(|b| b.len() <= most && b.start.is_multiple_of(CHUNK_ALIGNMENT)),
                "{blocks:?}"
            );
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(blocks.len() <= count.div_ceil(most));
        }
    }

    #[test]
    fn rounds_of_neighbours_sort_blocks_and_keep_what_is_equal_in_place() {
        for count in 3..12 {
            // Blocks of three, backwards as far as they can be, with what is equal in many of them.
            let mut all: Vec<(usize, usize)> = (0..3 * count).map(|k| ((3 * count - k) / 5, k)).collect();
            let mut sorted = all.clone();
            sorted.sort();
            for (round, [one, two]) in rounds(count) {
                assert_eq!(one + 1, two);
                for block in [one, two].into_iter().filter(|_| round >= 2) {
                    assert!(all[3 * block..3 * (block + 1)].is_sorted_by_key(|&(key, _)| key));
                }
                all[3 * one..3 * (two + 1)].sort_by_key(|&(key, _)| key);
            }
            assert_eq!(all, sorted);
        }
        assert_eq!(rounds(3).collect::<Vec<_>>(), [(0, [0, 1]), (1, [1, 2]), (2, [0, 1])]);
    }

    #[test]
    fn a_kernel_sorts_as_much_as_it_sees() {
        let sizes = DType::ALL.map(DType::size);
        let rules = DeviceLimits { slots: 8, block: 4096, sizes, ..crate::snapshots::rules() };
        assert_eq!(max_sortable_length(DType::F32, &rules), 2048);
        assert_eq!(max_sortable_length(DType::F16, &rules), 2048);
        assert_eq!(max_sortable_length(DType::I64, &rules), 1024);
    }
}
