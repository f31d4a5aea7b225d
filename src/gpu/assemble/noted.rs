//! Matrices of which products ask for the largest magnitudes of rows or columns: whoever writes one in the same plan notes
//! them in memory beside the plan's.

use super::{Builder, Slice};
use crate::dtype::DType;
use crate::gpu::dispatch::{Largest, Memory};
use crate::gpu::map;
use crate::gpu::pieces::Pieces;
use crate::gpu::special;
use crate::plan::kernel::{Operand, Slot, Special, SpecialKernel, Work};

/// A matrix with its writer's program, and the lists of its rows' and its columns' largest.
pub(super) struct Noted {
    pub matrix: Slot,
    pub program: map::Noted,
    pub lists: [Option<Slot>; 2],
}

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
    pub(super) fn find_noted(&mut self) {
        for kernel in &self.plan.kernels {
            let Work::Special(s) = &kernel.work else { continue };
            let asks = special::asks(s, self.target.caps, self.target.choices.of(s, self.target.caps));
            for (number, operand) in s.operands.iter().enumerate().take(2).filter(|(n, _)| asks[*n]) {
                if let Some((lanes, shape)) = lanes_of(operand, number) {
                    self.note(operand.slot, lanes, shape);
                }
            }
        }
    }

    /// Has lanes of a matrix noted, if its writer can.
    fn note(&mut self, matrix: Slot, lanes: Lanes, shape: [usize; 2]) {
        let known = self.noted.iter().position(|noted| noted.matrix == matrix);
        let Some(n) = known.or_else(|| {
            let program = self.writer(matrix, shape)?;
            self.noted.push(Noted { matrix, program, lists: [None; 2] });
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
            self.aside.push(Slice { at: scratch.places[0].0, bytes, dtype: DType::I32 });
        }
    }

    /// The program that writes a matrix, if it can note its largest, notes none of another one, and sees few enough pieces of
    /// memory then.
    fn writer(&self, matrix: Slot, shape: [usize; 2]) -> Option<map::Noted> {
        let mut maps = self.plan.kernels.iter().filter_map(|kernel| match &kernel.work {
            Work::Map(maps) if maps.len() == 1 => Some(&maps[0]),
            _ => None,
        });
        let writer = maps.find(|map| map.stores.iter().any(|s| s.access.slot == matrix))?;
        let busy = |noted: &Noted| writer.stores.iter().any(|s| s.access.slot == noted.matrix);
        if self.noted.iter().any(busy) {
            return None;
        }
        let program = map::Noted::of(writer, matrix, shape)?;
        let block = self.target.rules.block;
        let lists: usize = program.bytes().iter().map(|bytes| bytes.div_ceil(block)).sum();
        let others: usize = program.slots().into_iter().map(|slot| self.count(slot)).sum();
        (lists + others <= self.target.rules.slots).then_some(program)
    }

    /// What is known of a product's operands.
    pub(super) fn known_of(&self, s: &SpecialKernel) -> [Option<Largest>; 2] {
        let known = |number: usize| {
            let operand = s.operands.get(number).filter(|_| s.special == Special::Matmul)?;
            let noted = self.noted.iter().find(|noted| noted.matrix == operand.slot)?;
            let (lanes, shape) = lanes_of(operand, number)?;
            let list = noted.lists[lanes as usize].filter(|_| noted.program.shape() == shape)?;
            Some(Largest { memory: Memory::Slot(list), parts: noted.program.lists()[lanes as usize] })
        };
        [known(0), known(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::super::assemble;
    use crate::engine::with_last_plan;
    use crate::gpu::dispatch::Caps;
    use crate::gpu::snapshots::{rules, validate};
    use crate::gpu::tune::Choices;
    use crate::plan::Plan;
    use crate::tensor::{Tensor, realize_all};
    use crate::{Device, with_device};

    /// A matrix that differs from row to row in what is taken away, and both products with it.
    fn plan(rows: usize, columns: usize) -> Plan {
        with_device(Device::Cpu, || {
            let made = |shape: [usize; 2]| Tensor::rand(shape).realize().clone();
            let (x, level, a, b) =
                (made([rows, columns]), made([rows, 1]), made([columns, 256]), made([rows, 256]));
            let matrix = (&x - &level).exp();
            realize_all(&[matrix.matmul(&a), matrix.t().matmul(&b), matrix]);
        });
        with_last_plan(Plan::clone)
    }

    fn shaders(plan: &Plan, caps: &Caps) -> Vec<String> {
        let (rules, choices) = (rules(), Choices::default());
        let target = Target { who: "a GPU of the tests", caps, rules: &rules, choices: &choices };
        let assembly = assemble(plan, &target, false).expect("the plan has shaders");
        let texts: Vec<String> = assembly.shaders.into_iter().map(|shader| shader.source).collect();
        for text in &texts {
            validate(text, naga::valid::Capabilities::all());
        }
        texts
    }

    #[test]
    fn writers_note_what_products_ask_for() {
        for [rows, columns] in [[1024, 4098], [1030, 4096]] {
            let plan = plan(rows, columns);
            let texts = shaders(&plan, &Caps::MOST);
            assert!(texts[0].contains("most_0") && texts[0].contains("subgroupMax"), "{}", texts[0]);
            // The other operands' largest are looked for, and not the matrix's.
            let contain = |part: &str| texts.iter().any(|text| text.contains(part));
            assert!(contain("largest_b") && contain("noted_a") && !contain("largest_a"));
            assert!(shaders(&plan, &Caps::LEAST).iter().all(|text| !text.contains("most_0")));
        }
    }
}
