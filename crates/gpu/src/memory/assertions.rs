//! Assertions that failed on a GPU. A kernel that computes an integer it must not compute with notes that in a few words of the
//! device's memory, of all kernels the first. Nobody waits for that: the words come to the host with the next read, which
//! waits anyway, or with whoever waits for the device, and are the error of that call. Then they are cleared.

use super::device_memory::DeviceMemory;
use super::pool::{PooledBuffer, create};
use super::readback_prefetch::{HostMemory, host_memory};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use volta_ir::error::{Error, ErrorKind, Result};
use volta_ir::plan::assertion::Sites;

/// Bytes that are read: a flag, the number of the assertion, the low and the high word of the number it does not hold of.
pub(crate) const BYTES: u64 = 16;

/// Plans whose calls can be named: those that are in use, and at least so many of the last ones.
const MIN_REMEMBERED_PLANS: usize = 1024;

/// What is on its way to the host: whether it was reported since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// Runs after somebody waited for the device in which the words are copied at the end: whoever waits after every step submits
/// nothing for that.
const COPIED_RUNS: u32 = 64;

/// Where whoever waits for the device finds the words.
#[derive(Default)]
pub(crate) enum Latest {
    /// Nothing was asserted since somebody waited.
    #[default]
    Known,
    /// In memory of the host, when all that was submitted is done.
    Copied(HostMemory, Epoch),
    /// On the device.
    OnDevice,
}

#[derive(Default)]
struct State {
    sites: Vec<Arc<Sites>>,
    /// Failures that were reported.
    reported: u64,
    latest: Latest,
    /// Further runs in which the words are copied.
    patience: u32,
}

/// Of one device.
#[derive(Default)]
pub(crate) struct Assertions {
    memory: OnceLock<PooledBuffer>,
    state: Mutex<State>,
}

impl Assertions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where failures are noted, if any plan of the device asserts something.
    pub fn memory(&self) -> Option<&PooledBuffer> {
        self.memory.get()
    }

    /// Gets ready for a plan that asserts something.
    pub fn expect(&self, gpu: &DeviceMemory, sites: &Arc<Sites>) -> Result<()> {
        let mut state = self.state();
        if self.memory.get().is_none() {
            // Others wait for the lock.
            let _ = self.memory.set(create(gpu, BYTES)?);
        }
        if state.sites.iter().any(|known| Arc::ptr_eq(known, sites)) {
            return Ok(());
        }
        if state.sites.len() >= 2 * MIN_REMEMBERED_PLANS {
            let last = state.sites.len() - MIN_REMEMBERED_PLANS;
            let mut place = 0..;
            state.sites.retain(|sites| place.next() >= Some(last) || Arc::strong_count(sites) > 1);
        }
        state.sites.push(sites.clone());
        Ok(())
    }

    /// Before a run that asserts something: the memory that the words are copied to at its end, if they are. Whether it is the
    /// same as before.
    pub fn begin_run(&self, gpu: &DeviceMemory, memory: &mut Option<HostMemory>) -> bool {
        let mut state = self.state();
        // What this lets go of is older than what this run will find.
        state.latest = Latest::OnDevice;
        if state.patience == 0 {
            return memory.take().is_none();
        }
        state.patience -= 1;
        // Whoever else has it is looking at it.
        let free = memory.as_ref().is_some_and(|memory| Arc::strong_count(memory) == 1);
        if !free {
            *memory = Some(host_memory(gpu, BYTES));
        }
        free
    }

    /// After that, with when it began.
    pub fn end_run(&self, memory: Option<&HostMemory>, epoch: Epoch) {
        let copied = memory.map(|memory| Latest::Copied(memory.clone(), epoch));
        self.state().latest = copied.unwrap_or(Latest::OnDevice);
    }

    /// Where the words are for somebody who waits for the device.
    pub fn look(&self) -> Latest {
        let mut state = self.state();
        state.patience = COPIED_RUNS;
        std::mem::take(&mut state.latest)
    }

    /// To be asked for before the words are copied.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.state().reported)
    }

    /// The error that these words tell, which were copied in that epoch, if nobody was told yet; and the number of the
    /// assertion.
    pub fn report(&self, gpu: &DeviceMemory, words: &[u8], epoch: Epoch) -> Option<(u32, Error)> {
        let [failed, site, low, high] = [0, 1, 2, 3].map(|k| word(words, k));
        let mut state = self.state();
        if failed == 0 || epoch != Epoch(state.reported) {
            return None;
        }
        state.reported += 1;
        if let Some(memory) = self.memory() {
            gpu.queue.write_buffer(&memory.buffer, 0, &[0; BYTES as usize]);
        }
        let number = (u64::from(high) << 32 | u64::from(low)) as i64;
        let named = state.sites.iter().find_map(|sites| Some(sites.all[sites.place(site)?].error(number)));
        Some((site, named.unwrap_or_else(forgotten)))
    }
}

fn word(words: &[u8], k: usize) -> u32 {
    words.as_chunks::<4>().0.get(k).map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

/// Of a plan that is gone, and many others since.
fn forgotten() -> Error {
    let message = "an index was out of bounds, or an integer divided by zero, long before";
    Error::new(ErrorKind::Index, message)
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::snapshots::{shaders, validate};
    use naga::valid::Capabilities;
    use volta::Tensor;
    use volta::{CrossEntropyOptions, DType, cross_entropy_with};

    fn numbers(count: usize, dtype: DType) -> Tensor {
        Tensor::ones([count]).to_dtype(dtype).realize().clone()
    }

    #[test]
    fn kernels_report_what_they_assert_in_text_that_all_plans_share() {
        let table = || Tensor::ones([9, 4]).realize().clone();
        type Run<'a> = &'a dyn Fn(DType);
        let all: [(Run, &str); 3] = [
            (&|dtype| drop(table().embedding(&numbers(7, dtype)).try_realize()), "< 9u"),
            (&|dtype| drop((numbers(64, dtype) + 3).remainder(numbers(64, dtype)).try_realize()), "(0)"),
            (
                &|dtype| {
                    let target = numbers(9, dtype).maximum(0);
                    drop(cross_entropy_with(&table(), &target, CrossEntropyOptions::default()).try_realize());
                },
                "< 4u",
            ),
        ];
        for (run, condition) in all {
            for dtype in [DType::I32, DType::U8, DType::U32, DType::I64] {
                for caps in [Caps::MINIMAL, Caps::FULL].iter().filter(|caps| caps.i64 || dtype != DType::I64)
                {
                    let [first, second] = [(); 2].map(|()| shaders(caps, || run(dtype)));
                    let texts = first.iter().zip(&second).map(|(a, b)| (&a.source, &b.source));
                    assert!(texts.clone().all(|(a, b)| a == b), "the plans' own numbers are arguments");
                    let asserts =
                        |text: &&String| text.contains("fn assertion_failed(") && text.contains(condition);
                    assert_eq!(texts.map(|(a, _)| a).filter(asserts).count(), 1, "{dtype}");
                    for shader in &first {
                        validate(&shader.source, Capabilities::all());
                        let bindings = shader.source.matches("var<storage").count();
                        assert_eq!(shader.writable.len(), bindings);
                    }
                }
            }
        }
    }
}
