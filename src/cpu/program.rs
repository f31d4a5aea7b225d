//! A plan on this processor: memory for its slots, then its kernels one after the other.

use super::map::{Bindings, Faults, Map, SlotPointer};
use super::pool::HostBuffer;
use super::{block, special};
use crate::dtype::{DType, Scalar};
use crate::engine::{is_profiled, record_time};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Storage;
use crate::plan::Plan;
use crate::plan::executor::{Argument, Program};
use crate::plan::kernel::{Kernel, Part, Slot, Step, Work};
use crate::plan::memory::Place;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct CpuProgram {
    kernels: Vec<Ready>,
}

enum Ready {
    Maps(Vec<Map>),
    Special(Box<Option<Map>>),
}

impl CpuProgram {
    pub fn new(plan: &Plan) -> CpuProgram {
        let places = &plan.layout.places;
        let overwrites = |slot: Slot| match places[slot] {
            Place::Output(k) => plan.layout.outputs[k].over.is_some(),
            _ => false,
        };
        let ready = |kernel: &Kernel| match &kernel.work {
            Work::Map(maps) => Ready::Maps(maps.iter().map(|m| Map::new(m, overwrites)).collect()),
            Work::Special(s) => {
                let on_product = |slot: Slot| overwrites(slot) || places[slot] == places[s.output.slot];
                Ready::Special(Box::new(s.epilogue.as_ref().map(|m| Map::new(m, on_product))))
            }
        };
        CpuProgram { kernels: plan.kernels.iter().map(ready).collect() }
    }
}

impl Program for CpuProgram {
    fn run(
        &self,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        guarded: bool,
    ) -> Result<Vec<Storage>> {
        let layout = &plan.layout;
        let arena = HostBuffer::new(layout.arena_bytes)?;
        let mut outputs: Vec<Storage> = Vec::with_capacity(layout.outputs.len());
        for output in &layout.outputs {
            outputs.push(match output.over {
                Some(input) => inputs[input].clone(),
                None => Arc::new(HostBuffer::new(output.bytes)?),
            });
        }
        let pointer = |place: &Place| match *place {
            Place::Nowhere => std::ptr::null_mut(),
            Place::Input(k) => HostBuffer::of(&*inputs[k]).as_ptr(),
            Place::Output(k) => HostBuffer::of(&*outputs[k]).as_ptr(),
            // SAFETY: the layout's pieces lie inside the arena.
            Place::Arena(at) => unsafe { arena.as_ptr().add(at) },
        };
        let slots: Vec<SlotPointer> = layout.places.iter().map(|p| SlotPointer(pointer(p))).collect();
        let faults = Faults::default();
        let bind = Bindings { slots: &slots, arguments, faults: &faults };
        let profiled = is_profiled();
        for (kernel, ready) in plan.kernels.iter().zip(&self.kernels) {
            let start = profiled.then(Instant::now);
            match (ready, &kernel.work) {
                (Ready::Maps(maps), _) => maps.iter().for_each(|m| m.run(bind)),
                (Ready::Special(epilogue), Work::Special(s)) => special::run(s, (**epilogue).as_ref(), bind)?,
                _ => unreachable!("prepared from the same plan"),
            }
            if let Some(start) = start {
                record_time(kernel, start.elapsed());
            }
            if guarded {
                check(kernel, plan, bind)?;
            }
        }
        Ok(outputs)
    }
}

/// An error if the kernel met an index out of bounds, or made NaN or infinity of finite numbers.
fn check(kernel: &Kernel, plan: &Plan, bind: Bindings) -> Result<()> {
    let part = kernel.parts.last().expect("a kernel computes something");
    if let Some((index, extent)) = bind.faults.found() {
        let message =
            format!("index {index} is out of bounds for an axis of {extent} ({} {})", part.op, part.shape);
        return Err(Error::at(ErrorKind::Index, message, part.origin));
    }
    let bad = |slot: Slot, dtype: DType| nonfinite(bind.slots[slot], plan.slot_bytes[slot], dtype);
    let made: Vec<&Part> = kernel.parts.iter().filter(|p| p.stored && bad(p.slot, p.dtype) > 0).collect();
    let Some(part) = made.first() else { return Ok(()) };
    let came_in = kernel
        .reads()
        .iter()
        .any(|&slot| !kernel.parts.iter().any(|p| p.slot == slot) && bad(slot, plan.slot_dtypes[slot]) > 0);
    if came_in || uses_nonfinite_constant(kernel, bind.arguments) {
        return Ok(());
    }
    let (count, total) = (bad(part.slot, part.dtype), part.shape.numel());
    let message = format!(
        "{} of shape {} gave NaN or infinity in {count} of {total} elements, from finite inputs",
        part.op, part.shape
    );
    Err(Error::at(ErrorKind::NonFinite, message, part.origin))
}

fn uses_nonfinite_constant(kernel: &Kernel, arguments: &[Argument]) -> bool {
    let infinite = |step: &Step| match step {
        Step::Argument(k) => matches!(arguments[*k], Argument::Number(Scalar::Float(x)) if !x.is_finite()),
        Step::Literal(x) | Step::Load { fill: x, .. } => !x.is_finite(),
        _ => false,
    };
    kernel.maps().any(|m| m.code.iter().any(|i| infinite(&i.step)))
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
        DType::F32 => block::count_nonfinite(all::<f32>(slot, bytes)),
        DType::F64 => block::count_nonfinite(all::<f64>(slot, bytes)),
        DType::F16 => all::<half::f16>(slot, bytes).iter().filter(|x| !x.is_finite()).count(),
        DType::BF16 => all::<half::bf16>(slot, bytes).iter().filter(|x| !x.is_finite()).count(),
        _ => 0,
    }
}
