//! Times of dispatches, measured by the device: a pass of its own for each, with a timestamp at both ends.

use super::context::Context;
use std::sync::Arc;
use std::time::Duration;
use volta_ir::error::Result;

/// The most queries that a set may hold.
const MAX_QUERIES: u32 = 4096;

pub(crate) struct Stopwatch {
    sets: Vec<wgpu::QuerySet>,
    count: u32,
}

impl Stopwatch {
    /// For `count` dispatches; none where the adapter has no timestamps.
    pub fn new(context: &Context, count: usize) -> Option<Stopwatch> {
        if !context.timestamps || count == 0 {
            return None;
        }
        let count = 2 * count as u32;
        let set = |first: u32| {
            context.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: MAX_QUERIES.min(count - first),
            })
        };
        Some(Stopwatch { sets: (0..count).step_by(MAX_QUERIES as usize).map(set).collect(), count })
    }

    /// The writes at both ends of the pass of dispatch `k`.
    pub fn writes(&self, k: usize) -> wgpu::ComputePassTimestampWrites<'_> {
        let first = 2 * k as u32;
        wgpu::ComputePassTimestampWrites {
            query_set: &self.sets[(first / MAX_QUERIES) as usize],
            beginning_of_pass_write_index: Some(first % MAX_QUERIES),
            end_of_pass_write_index: Some(first % MAX_QUERIES + 1),
        }
    }

    /// Lets the times be copied to where the host reads them.
    pub fn resolve(&self, context: &Context, encoder: &mut wgpu::CommandEncoder) -> wgpu::Buffer {
        let times = context.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(self.count) * 8,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        for (set, first) in self.sets.iter().zip((0..self.count).step_by(MAX_QUERIES as usize)) {
            encoder.resolve_query_set(
                set,
                0..MAX_QUERIES.min(self.count - first),
                &times,
                u64::from(first) * 8,
            );
        }
        times
    }
}

/// When each dispatch began, from the first one on, and how long it took.
pub(crate) fn read(
    context: &Arc<Context>,
    times: &wgpu::Buffer,
) -> impl Future<Output = Result<Vec<(Duration, Duration)>>> + use<> {
    let period = f64::from(context.queue.get_timestamp_period());
    let bytes = crate::memory::transfer::read_raw(&context.memory, times);
    async move {
        let bytes = bytes.await?;
        let ticks: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
        let began = ticks.first().copied().unwrap_or(0);
        let between = |a: u64, b: u64| Duration::from_nanos((b.saturating_sub(a) as f64 * period) as u64);
        let pair = |t: &[u64; 2]| (between(began, t[0]), between(t[0], t[1]));
        Ok(ticks.as_chunks::<2>().0.iter().map(pair).collect())
    }
}
