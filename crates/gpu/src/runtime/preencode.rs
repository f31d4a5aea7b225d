//! The dispatches of a plan, and commands of them that are encoded before they are asked for: while the host waits for a
//! device, it encodes once more what ran. A step that finds its memory where an earlier one did only submits.

use super::pipeline::Pipeline;
use super::profile::Stopwatch;
use crate::device::idle_queue::IdleWork;
use crate::lower::DispatchSpec;
use crate::memory::readback_prefetch::PrefetchedReadbacks;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of all pieces of memory that a plan's dispatches are bound to.
pub(crate) type BufferIds = SmallVec<[u64; 32]>;

/// Bindings of a plan that are known, at most: a step's results may lie in a few buffers by turns.
const MAX_BOUND: usize = 4;

pub(crate) struct BoundDispatch {
    pub pipeline: Arc<Pipeline>,
    pub spec: DispatchSpec,
    pub remembered: Mutex<Vec<(SmallVec<[u64; 12]>, wgpu::BindGroup)>>,
}

pub(crate) struct DispatchList {
    pub ready: Vec<BoundDispatch>,
    /// Dispatches that a new submission starts with if none is to take long.
    boundaries: Vec<usize>,
    bound: Mutex<Vec<Bound>>,
}

/// What the dispatches were bound to in a run.
pub(crate) struct Bound {
    pieces: BufferIds,
    pub groups: Vec<wgpu::BindGroup>,
    /// Whether they were bound to it more than once.
    pub again: bool,
    /// Copies of results for the host.
    pub copies: PrefetchedReadbacks,
    /// Commands with these bindings, one for each submission, if they were encoded ahead.
    pub commands: Vec<wgpu::CommandBuffer>,
}

/// The bindings to these pieces, made if they are not known.
pub(crate) fn find(
    all: &mut Vec<Bound>,
    pieces: BufferIds,
    bind: impl FnOnce() -> Vec<wgpu::BindGroup>,
) -> &mut Bound {
    let known = all.iter().position(|bound| bound.pieces == pieces);
    let place = known.unwrap_or_else(|| {
        if all.len() == MAX_BOUND {
            all.remove(0);
        }
        let (groups, again, copies, commands) = (bind(), false, PrefetchedReadbacks::default(), Vec::new());
        all.push(Bound { pieces, groups, again, copies, commands });
        all.len() - 1
    });
    all[place].again = known.is_some();
    &mut all[place]
}

impl DispatchList {
    pub fn new(ready: Vec<BoundDispatch>, boundaries: Vec<usize>) -> Arc<DispatchList> {
        Arc::new(DispatchList { ready, boundaries, bound: Mutex::default() })
    }

    pub fn bound(&self) -> MutexGuard<'_, Vec<Bound>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the commands of some dispatches; with a stopwatch, each is a pass of its own.
    pub fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        some: Range<usize>,
        groups: &[wgpu::BindGroup],
        stopwatch: Option<&Stopwatch>,
    ) {
        let mut pass = None;
        for k in some {
            let ready = &self.ready[k];
            let writes = stopwatch.map(|s| s.writes(k));
            if pass.is_none() || writes.is_some() {
                drop(pass.take());
                let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes: writes };
                pass = Some(encoder.begin_compute_pass(&descriptor).forget_lifetime());
            }
            let pass = pass.as_mut().expect("begun above");
            pass.set_pipeline(ready.pipeline.get().expect("checked before the run"));
            pass.set_bind_group(0, &groups[k], &[]);
            pass.dispatch_workgroups(ready.spec.groups[0], ready.spec.groups[1], 1);
        }
    }
}

/// Commands with the bindings of this run, encoded in the time that the host waits for it.
impl IdleWork for DispatchList {
    fn work(&self, device: &wgpu::Device) {
        for bound in self.bound().iter_mut().filter(|bound| bound.again && bound.commands.is_empty()) {
            for some in ranges(&self.boundaries, self.ready.len()) {
                let mut encoder = device.create_command_encoder(&Default::default());
                let last = some.end == self.ready.len();
                self.encode(&mut encoder, some, &bound.groups, None);
                if last {
                    bound.copies.encode(&mut encoder);
                }
                bound.commands.push(encoder.finish());
            }
        }
    }
}

/// The dispatches of each submission, of `count` in all.
pub(crate) fn ranges(boundaries: &[usize], count: usize) -> impl Iterator<Item = Range<usize>> {
    let ends = boundaries.iter().copied().chain([count]);
    std::iter::once(0).chain(boundaries.iter().copied()).zip(ends).map(|(first, end)| first..end)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    #[test]
    fn submissions_have_all_dispatches_in_order() {
        assert!(ranges(&[], 3).eq(std::iter::once(0..3)));
        assert_eq!(ranges(&[1, 4], 6).collect::<Vec<_>>(), [0..1, 1..4, 4..6]);
    }
}
