//! Values from and to memory: loads through views, gathering by index, random numbers by counter, stores.

use super::eval::{LaneBroadcast, Machine, by_class, scalar_lane};
use super::lanes::{Lanes, read, write};
use super::lower::{CHUNK, Class};
use crate::vector::{self, Cast, Operand};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use volta_ir::dtype::{DType, Scalar};
use volta_ir::op::RandomKind;
use volta_ir::plan::kernel::{Access, Value};
use volta_ir::plan::view::{Affine, Check};
use volta_ir::random::threefry;

impl Machine<'_> {
    /// # Safety
    /// Positions that pass the checks lie inside the slot.
    pub(super) unsafe fn load(
        &mut self,
        v: Value,
        slot: *mut u8,
        access: &Access,
        checks: &[Check],
        fill: Scalar,
        lanes: &Lanes,
    ) {
        let (dtype, n) = (self.low.code[v].dtype, lanes.count);
        if dtype.is_half() {
            let raw = self.register(2 * self.low.registers);
            // SAFETY: a register of its own, for values on the way.
            let raw: &mut [u16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
            let bits = match dtype {
                DType::F16 => half::f16::from_f64(fill.to_f64()).to_bits(),
                _ => half::bf16::from_f64(fill.to_f64()).to_bits(),
            };
            // SAFETY: promised by the caller.
            unsafe { read(slot.cast::<u16>(), &access.position, checks, bits, lanes, raw) };
            if dtype == DType::F16 {
                // SAFETY: `f16` is two bytes without invalid patterns.
                let raw = unsafe { from_raw_parts(raw.as_ptr().cast(), n) };
                vector::load_f16(raw, self.lanes_mut(v, n));
            } else {
                // SAFETY: `bf16` is two bytes without invalid patterns.
                let raw = unsafe { from_raw_parts(raw.as_ptr().cast(), n) };
                vector::load_bf16(raw, self.lanes_mut(v, n));
            }
            return;
        }
        by_class!(Class::of(dtype), T => {
            let fill = scalar_lane::<T>(fill, dtype);
            // SAFETY: promised by the caller.
            unsafe { read(slot.cast::<T>(), &access.position, checks, fill, lanes, self.lanes_mut(v, n)) };
        });
    }

    pub(super) fn gather(
        &mut self,
        v: Value,
        access: &Access,
        index: Value,
        (stride, extent): (isize, usize),
        lanes: &Lanes,
        spread: LaneBroadcast,
    ) {
        let (dtype, rank, n) = (self.low.code[v].dtype, self.low.code[v].rank, lanes.count);
        // Indices as i64, whatever they came as.
        let raw = self.register(2 * self.low.registers);
        // SAFETY: a register of its own, for values on the way.
        let indices: &mut [i64] = unsafe { from_raw_parts_mut(raw.cast(), n) };
        by_class!(self.class(index), S => match self.operand::<S>(index, rank, n, spread) {
            Operand::Block(x) => vector::convert::<S, i64>(x, indices),
            Operand::Scalar(x) => indices.fill(Cast::<i64>::cast(x)),
        });
        let slot = self.bind.slots[access.slot].0;
        let storage = dtype;
        macro_rules! pick {
            ($stored:ty, $lane:ty, $widen:expr, $missing:expr) => {{
                let out = self.lanes_mut::<$lane>(v, n);
                let widen: fn($stored) -> $lane = $widen;
                lanes.runs(|run| {
                    let (start, step) = run.at(&access.position);
                    let indices = &indices[run.lane..run.lane + run.count];
                    for (k, (lane, &i)) in
                        out[run.lane..run.lane + run.count].iter_mut().zip(indices).enumerate()
                    {
                        *lane = if (0..extent as i64).contains(&i) {
                            let position = start + k as isize * step + i as isize * stride;
                            // SAFETY: the index was checked, the other coordinates are the view's.
                            widen(unsafe { *slot.cast::<$stored>().offset(position) })
                        } else {
                            $missing
                        };
                    }
                });
            }};
        }
        match storage {
            DType::F32 => pick!(f32, f32, |x| x, f32::NAN),
            DType::F64 => pick!(f64, f64, |x| x, f64::NAN),
            DType::F16 => pick!(half::f16, f32, |x| x.to_f32(), f32::NAN),
            DType::BF16 => pick!(half::bf16, f32, |x| x.to_f32(), f32::NAN),
            DType::I32 => pick!(i32, i32, |x| x, 0),
            DType::I64 => pick!(i64, i64, |x| x, 0),
            DType::U32 => pick!(u32, u32, |x| x, 0),
            DType::U8 | DType::Bool => pick!(u8, u8, |x| x, 0),
        }
    }

    pub(super) fn random(
        &mut self,
        v: Value,
        kind: RandomKind,
        key: [u32; 2],
        counter: &Affine,
        lanes: &Lanes,
    ) {
        let n = lanes.count;
        let words = self.register(2 * self.low.registers);
        // SAFETY: two registers of their own behind the others, for values on the way.
        let (first, second): (&mut [u32], &mut [u32]) =
            unsafe { (from_raw_parts_mut(words.cast(), n), from_raw_parts_mut(words.add(CHUNK).cast(), n)) };
        lanes.runs(|run| {
            let (start, step) = run.at(counter);
            let span = run.lane..run.lane + run.count;
            if step == 1 {
                vector::threefry_block(key, start as u64, &mut first[span.clone()], &mut second[span]);
            } else {
                for (k, lane) in span.enumerate() {
                    let c = (start + k as isize * step) as u64;
                    [first[lane], second[lane]] = threefry(key, [c as u32, (c >> 32) as u32]);
                }
            }
        });
        let uniform = |words: &[u32], out: &mut [f32]| {
            for (lane, &w) in out.iter_mut().zip(words) {
                *lane = (w >> 8) as f32 * (1.0 / (1 << 24) as f32);
            }
        };
        match kind {
            RandomKind::Uniform => uniform(first, self.lanes_mut(v, n)),
            RandomKind::UniformSecond => uniform(second, self.lanes_mut(v, n)),
            RandomKind::Bits => {
                for (lane, &w) in self.lanes_mut::<i32>(v, n).iter_mut().zip(first.iter()) {
                    *lane = (w >> 1) as i32;
                }
            }
        }
    }

    pub(super) fn store(&mut self, k: usize, lanes: &Lanes) {
        let store = &self.low.stores[k];
        let (v, n) = (store.value, lanes.count);
        let dtype = self.low.code[v].dtype;
        let slot = self.bind.slots[store.access.slot].0;
        let position = &store.access.position;
        let raw = self.register(2 * self.low.registers);
        // A store's positions lie inside its slot, each lane's apart from all others', and the plan lets nobody
        // else use the slot meanwhile.
        match dtype {
            DType::F16 => {
                // SAFETY: a register of its own, for values on the way.
                let out: &mut [half::f16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
                vector::store_f16(self.lanes(v, n), out);
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, out) };
            }
            DType::BF16 => {
                // SAFETY: a register of its own, for values on the way.
                let out: &mut [half::bf16] = unsafe { from_raw_parts_mut(raw.cast(), n) };
                vector::store_bf16(self.lanes(v, n), out);
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, out) };
            }
            _ => by_class!(Class::of(dtype), T => {
                // SAFETY: see above.
                unsafe { write(slot.cast(), position, lanes, self.lanes::<T>(v, n)) }
            }),
        }
    }
}
