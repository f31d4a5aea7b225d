//! The slots that a shader uses: numbered in the order they are met, so that equal kernels have equal text.

use crate::dispatch::{Binding, ComputeType, Memory};
use std::sync::{Mutex, PoisonError};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::Slot;

/// `s0`, `s1`, …: names live as long as the program, since bindings of templates have fixed ones.
fn name(k: usize) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    while names.len() <= k {
        let next = format!("s{}", names.len());
        names.push(next.leak());
    }
    names[k]
}

#[derive(Default)]
pub(crate) struct Slots {
    pub bindings: Vec<Binding>,
}

impl Slots {
    fn find(&mut self, memory: Memory, dtype: DType) -> &mut Binding {
        let k = self.bindings.iter().position(|b| b.memory == memory).unwrap_or_else(|| {
            let name = name(self.bindings.len());
            let lane = ComputeType::of(dtype);
            self.bindings.push(Binding { name, memory, dtype, lane, width: 1, reads: false, writes: false });
            self.bindings.len() - 1
        });
        &mut self.bindings[k]
    }

    /// The name to read a slot by.
    pub fn read(&mut self, slot: Slot, dtype: DType) -> &'static str {
        self.read_memory(Memory::Slot(slot), dtype)
    }

    pub fn read_memory(&mut self, memory: Memory, dtype: DType) -> &'static str {
        let binding = self.find(memory, dtype);
        binding.reads = true;
        binding.name
    }

    /// The name to write a slot by.
    pub fn write(&mut self, slot: Slot, dtype: DType) -> &'static str {
        self.write_memory(Memory::Slot(slot), dtype)
    }

    pub fn write_memory(&mut self, memory: Memory, dtype: DType) -> &'static str {
        let binding = self.find(memory, dtype);
        binding.writes = true;
        binding.name
    }

    /// Four neighbours of the slot are accessed at once.
    pub fn widen(&mut self, slot: Slot) {
        self.widen_memory(Memory::Slot(slot));
    }

    pub fn widen_memory(&mut self, memory: Memory) {
        self.widen_to(memory, 4);
    }

    /// The slot is written in eights.
    pub fn widen_to_eights(&mut self, slot: Slot) {
        self.widen_to(Memory::Slot(slot), 8);
    }

    fn widen_to(&mut self, memory: Memory, width: u32) {
        if let Some(binding) = self.bindings.iter_mut().find(|b| b.memory == memory) {
            binding.width = binding.width.max(width);
        }
    }
}
