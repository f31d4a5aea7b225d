//! A plan on this processor: memory for its slots, then its kernels one after the other.

use super::buffer_pool::HostBuffer;
use super::interpreter::{Bindings, Failures, Map, SlotPointer};
use super::{native_kernels, vector};
use volta_ir::clock::Instant;
use volta_ir::dtype::DType;
use volta_ir::interrupt::{check_interrupt, is_interruptible};

use std::cell::Cell;
use std::sync::Arc;
use volta_ir::buffer::Storage;
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::executor::{Argument, Outcome, Program};
use volta_ir::plan::guard;
use volta_ir::plan::kernel::{Kernel, KernelBody, Slot};
use volta_ir::plan::memory::SlotMemory;
use volta_ir::telemetry::{is_profiled, record_time, trace_kernel};

pub(super) struct CpuProgram {
    kernels: Vec<PreparedKernel>,
    /// The first kernel that writes into the memory of an input.
    overwrites: Option<usize>,
    guarded: bool,
}

enum PreparedKernel {
    Maps(Vec<Map>),
    Native(Box<Option<Map>>),
}

impl CpuProgram {
    pub fn new(plan: &Plan, guarded: bool) -> CpuProgram {
        let places = &plan.layout.places;
        let overwrites = |slot: Slot| match places[slot] {
            SlotMemory::Output(k) => plan.layout.outputs[k].over.is_some(),
            _ => false,
        };
        let ready = |kernel: &Kernel| match &kernel.body {
            KernelBody::Map(maps) | KernelBody::Rows(maps) => {
                // A result may take the place of what it is made of.
                let read = kernel.reads();
                let in_place = |slot: Slot| {
                    overwrites(slot) || read.iter().any(|&r| r != slot && places[r] == places[slot])
                };
                PreparedKernel::Maps(maps.iter().map(|m| Map::new(m, in_place)).collect())
            }
            KernelBody::Native(s) => {
                let on_product = |slot: Slot| overwrites(slot) || places[slot] == places[s.output.slot];
                PreparedKernel::Native(Box::new(s.epilogue.as_ref().map(|m| Map::epilogue(m, on_product))))
            }
        };
        let kernels = plan.kernels.iter().map(ready).collect();
        CpuProgram { kernels, overwrites: plan.overwrites().position(|overwrites| overwrites), guarded }
    }
}

impl Program for CpuProgram {
    fn scratch_bytes(&self, plan: &Plan) -> usize {
        let native = plan.kernels.iter().filter_map(|kernel| match &kernel.body {
            KernelBody::Native(s) => Some(native_kernels::scratch_bytes(s)),
            _ => None,
        });
        native.max().unwrap_or(0)
    }

    fn run(
        &self,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        begun: &Cell<bool>,
    ) -> Result<Outcome> {
        let layout = &plan.layout;
        let arena = HostBuffer::new(layout.arena_bytes())?;
        let mut outputs: Vec<Storage> = Vec::with_capacity(layout.outputs.len());
        for output in &layout.outputs {
            outputs.push(match output.over {
                Some(input) => inputs[input].clone(),
                None => Arc::new(HostBuffer::new(output.bytes)?),
            });
        }
        let pointer = |place: &SlotMemory| match *place {
            SlotMemory::Nowhere => std::ptr::null_mut(),
            SlotMemory::Input(k) => HostBuffer::of(&*inputs[k]).as_ptr(),
            SlotMemory::Output(k) => HostBuffer::of(&*outputs[k]).as_ptr(),
            // SAFETY: the layout's pieces lie inside the arena.
            SlotMemory::Arena(at) => unsafe { arena.as_ptr().add(at) },
        };
        let slots: Vec<SlotPointer> = layout.places.iter().map(|p| SlotPointer(pointer(p))).collect();
        let failures = Failures::default();
        let bind = Bindings { slots: &slots, arguments, failures: &failures };
        let mut bad = vec![0; if self.guarded { slots.len() } else { 0 }];
        let count = |slot: Slot| nonfinite(slots[slot], plan.slot_bytes[slot], plan.slot_dtypes[slot]) as u64;
        if self.guarded {
            guard::inputs(plan).for_each(|slot| bad[slot] = count(slot));
        }
        let profiled = is_profiled();
        let interruptible = is_interruptible();
        for (k, (kernel, ready)) in plan.kernels.iter().zip(&self.kernels).enumerate() {
            if self.overwrites == Some(k) {
                begun.set(true);
            }
            if interruptible && !begun.get() {
                check_interrupt()?;
            }
            let start = profiled.then(Instant::now);
            match (ready, &kernel.body) {
                (PreparedKernel::Maps(maps), _) => maps.iter().for_each(|m| m.run(bind)),
                (PreparedKernel::Native(epilogue), KernelBody::Native(s)) => {
                    native_kernels::run(s, (**epilogue).as_ref(), bind)?
                }
                _ => unreachable!("prepared from the same plan"),
            }
            if let Some(start) = start {
                let time = start.elapsed();
                record_time(kernel, time);
                trace_kernel(kernel, start, time);
            }
            if self.guarded {
                guard::results(kernel).for_each(|slot| bad[slot] = count(slot));
                let failed = failures.take().map(|(site, number)| plan.sites.all[site].error(number));
                guard::verdict(kernel, arguments, failed, |slot| bad[slot])?;
            }
        }
        let failed = failures.take().map(|(site, number)| plan.sites.all[site].error(number));
        Ok(Outcome { outputs, failed })
    }
}

fn nonfinite(slot: SlotPointer, bytes: usize, dtype: DType) -> usize {
    fn all<T>(slot: SlotPointer, bytes: usize) -> &'static [T] {
        // SAFETY: the slot holds `bytes` of this type, and no kernel is running.
        unsafe { std::slice::from_raw_parts(slot.0.cast(), bytes / size_of::<T>()) }
    }
    if slot.0.is_null() {
        return 0;
    }
    match dtype {
        DType::F32 => vector::count_nonfinite(all::<f32>(slot, bytes)),
        DType::F64 => vector::count_nonfinite(all::<f64>(slot, bytes)),
        DType::F16 => all::<half::f16>(slot, bytes).iter().filter(|x| !x.is_finite()).count(),
        DType::BF16 => all::<half::bf16>(slot, bytes).iter().filter(|x| !x.is_finite()).count(),
        _ => 0,
    }
}
