//! Matrices of which products ask for the largest magnitudes of rows or columns: whoever writes one in the same plan notes
//! them in memory beside the plan's.

use super::{Builder, ScratchSlot};
use crate::chunking::loops::ChunkLayout;
use crate::codegen;
use crate::dispatch::{AbsMax, Memory};
use crate::kernels::select;
use std::collections::HashMap;
use volta_ir::dtype::DType;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::{KernelBody, MapKernel, NativeKernel, Operand, Slot};

/// A matrix with its writer's program, and the lists of its rows' and its columns' largest.
pub(super) struct AbsMaxMatrix {
    pub matrix: Slot,
    pub program: codegen::AbsMaxProducer,
    pub lists: [Option<Slot>; 2],
}

/// The program that writes each slot by itself.
type Writers<'p> = HashMap<Slot, &'p MapKernel>;

/// Whose largest are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    Rows,
    Columns,
}

/// The lanes of a product's operand, and the matrix they are the rows or columns of, if it is a matrix by itself.
fn lanes_of(operand: &Operand, number: usize) -> Option<(Lanes, [usize; 2])> {
    let rank = operand.shape.rank();
    let alone = operand.offset == 0 && operand.shape[..rank - 2].iter().all(|&items| items == 1);
    let [lane, k] = if number == 0 { [rank - 2, rank - 1] } else { [rank - 1, rank - 2] };
    let (lanes, depth) = (operand.shape[lane], operand.shape[k]);
    match (operand.strides[lane], operand.strides[k]) {
        _ if !alone => None,
        (step, 1) if step == depth as isize => Some((Lanes::Rows, [lanes, depth])),
        (1, step) if step == lanes as isize => Some((Lanes::Columns, [depth, lanes])),
        _ => None,
    }
}

impl Builder<'_> {
    /// Finds the matrices, and sets memory for their lists aside.
    pub(super) fn find_absmax(&mut self) {
        let mut writers = Writers::new();
        for kernel in &self.plan.kernels {
            if let KernelBody::Map(maps) = &kernel.body
                && let [map] = &maps[..]
            {
                for store in &map.stores {
                    writers.entry(store.access.slot).or_insert(map);
                }
            }
        }
        for kernel in &self.plan.kernels {
            let KernelBody::Native(s) = &kernel.body else { continue };
            let needed =
                select::needs_absmax(s, self.target.caps, self.target.selections.of(s, self.target.caps));
            for (number, operand) in s.operands.iter().enumerate().take(2).filter(|(n, _)| needed[*n]) {
                if let Some((lanes, shape)) = lanes_of(operand, number) {
                    self.note(&writers, operand.slot, lanes, shape);
                }
            }
        }
    }

    /// Has lanes of a matrix noted, if its writer can.
    fn note(&mut self, writers: &Writers, matrix: Slot, lanes: Lanes, shape: [usize; 2]) {
        let known = self.noted.iter().position(|noted| noted.matrix == matrix);
        let Some(n) = known.or_else(|| {
            let program = self.writer(writers, matrix, shape)?;
            self.noted.push(AbsMaxMatrix { matrix, program, lists: [None; 2] });
            Some(self.noted.len() - 1)
        }) else {
            return;
        };
        if self.noted[n].program.shape() != shape {
            return;
        }
        let which = lanes as usize;
        if self.noted[n].lists[which].is_none() {
            let bytes = self.noted[n].program.bytes()[which];
            let scratch = self.place_scratch(&[bytes as u64], 0);
            self.scratch_bytes = self.scratch_bytes.max(scratch.end);
            self.noted[n].lists[which] = Some(self.slots());
            self.scratch_slots.push(ScratchSlot { at: scratch.places[0].0, bytes, dtype: DType::I32 });
        }
    }

    /// The program that writes a matrix, if it can note its largest, notes none of another one, and sees few enough pieces of
    /// memory then.
    fn writer(&self, writers: &Writers, matrix: Slot, shape: [usize; 2]) -> Option<codegen::AbsMaxProducer> {
        let writer = *writers.get(&matrix)?;
        let busy = |noted: &AbsMaxMatrix| writer.stores.iter().any(|s| s.access.slot == noted.matrix);
        if self.noted.iter().any(busy) {
            return None;
        }
        let program = codegen::AbsMaxProducer::of(writer, matrix, shape)?;
        let block = self.target.rules.block;
        let lists: usize = program.bytes().iter().map(|bytes| bytes.div_ceil(block)).sum();
        let others: usize = program.slots().into_iter().map(|slot| self.count(slot)).sum();
        let asserts = usize::from(program.asserts());
        (lists + others + asserts <= self.target.rules.slots).then_some(program)
    }

    /// What is known of a product's operands.
    pub(super) fn known_of(&self, s: &NativeKernel) -> [Option<AbsMax>; 2] {
        let known = |number: usize| {
            let operand = s.operands.get(number).filter(|_| s.op == NativeOp::Matmul)?;
            let noted = self.noted.iter().find(|noted| noted.matrix == operand.slot)?;
            let (lanes, shape) = lanes_of(operand, number)?;
            let list = noted.lists[lanes as usize].filter(|_| noted.program.shape() == shape)?;
            Some(AbsMax { memory: Memory::Slot(list), parts: noted.program.lists()[lanes as usize] })
        };
        [known(0), known(1)]
    }
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::snapshots::{shaders, validate};
    use volta::with_last_plan;
    use volta::{Tensor, realize_all};

    /// The texts of all shaders of what `f` runs.
    fn texts(caps: &Caps, f: impl FnOnce()) -> Vec<String> {
        let texts: Vec<String> = shaders(caps, f).into_iter().map(|shader| shader.source).collect();
        for text in &texts {
            validate(text, naga::valid::Capabilities::all());
        }
        texts
    }

    fn made(shape: [usize; 2]) -> Tensor {
        Tensor::rand(shape).realize().clone()
    }

    #[test]
    fn writers_note_what_products_ask_for() {
        for [rows, columns] in [[1024, 4098], [1030, 4096]] {
            // A matrix that differs from row to row in what is taken away, and both products with it.
            let multiply = || {
                let (x, level) = (made([rows, columns]), made([rows, 1]));
                let (a, b) = (made([columns, 256]), made([rows, 256]));
                let matrix = (&x - &level).exp();
                realize_all(&[matrix.matmul(&a), matrix.t().matmul(&b), matrix]);
            };
            let all = texts(&Caps::FULL, multiply);
            assert!(all[0].contains("most_0") && all[0].contains("subgroupMax"), "{}", all[0]);
            // The other operands' largest are looked for, and not the matrix's.
            let contain = |part: &str| all.iter().any(|text| text.contains(part));
            assert!(contain("largest_b") && contain("noted_a") && !contain("largest_a"));
            assert!(texts(&Caps::MINIMAL, multiply).iter().all(|text| !text.contains("most_0")));
        }
    }

    #[test]
    fn of_two_matrices_that_a_kernel_writes_one_is_noted() {
        let all = texts(&Caps::FULL, || {
            let (x, level) = (made([1024, 4098]), made([1024, 1]));
            let (a, b) = (made([4098, 256]), made([4098, 256]));
            let first = &x - &level;
            let second = first.exp();
            realize_all(&[first.matmul(&a), second.matmul(&b), first, second]);
        });
        assert_eq!(with_last_plan(|plan| plan.kernels.len()), 3);
        // The other product does not trust lists that nobody writes: it looks for itself.
        let contain = |part: &str| all.iter().any(|text| text.contains(part));
        assert!(contain("noted_a") && contain("largest_a"));
    }
}
