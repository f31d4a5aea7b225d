//! Times of dispatches, measured by the device: a pass of its own for each, with a timestamp at both ends.

use super::context::Context;
use crate::error::Result;
use std::time::Duration;

pub(super) struct Stopwatch {
    queries: wgpu::QuerySet,
    count: u32,
}

impl Stopwatch {
    /// For `count` dispatches; none where the adapter has no timestamps.
    pub fn new(context: &Context, count: usize) -> Option<Stopwatch> {
        /// The most queries that a set may hold.
        const MOST: usize = 4096;
        if !context.timestamps || count == 0 || 2 * count > MOST {
            return None;
        }
        let count = 2 * count as u32;
        let queries = context.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        Some(Stopwatch { queries, count })
    }

    /// The writes at both ends of the pass of dispatch `k`.
    pub fn writes(&self, k: usize) -> wgpu::ComputePassTimestampWrites<'_> {
        let first = 2 * k as u32;
        wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
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
        encoder.resolve_query_set(&self.queries, 0..self.count, &times, 0);
        times
    }
}

/// When each dispatch began, from the first one on, and how long it took.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn read(context: &Context, times: &wgpu::Buffer) -> Result<Vec<(Duration, Duration)>> {
    let bytes = super::transfer::read_raw(context, times)?;
    let ticks: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    let period = f64::from(context.queue.get_timestamp_period());
    let began = ticks.first().copied().unwrap_or(0);
    let between = |a: u64, b: u64| Duration::from_nanos((b.saturating_sub(a) as f64 * period) as u64);
    let pair = |t: &[u64; 2]| (between(began, t[0]), between(t[0], t[1]));
    Ok(ticks.as_chunks::<2>().0.iter().map(pair).collect())
}

/// A tab cannot wait for times.
#[cfg(target_arch = "wasm32")]
pub(super) fn read(_: &Context, _: &wgpu::Buffer) -> Result<Vec<(Duration, Duration)>> {
    Ok(Vec::new())
}
