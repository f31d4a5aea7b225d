//! How long devices take, told apart though they work at the same time.

use super::shares::Speeds;
use super::threads::on_each;
use crate::clock::Instant;
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// How long each device takes for its parts.
pub(super) struct Times {
    /// Whether it computes while the host goes on.
    is_async: Vec<bool>,
    begun: Vec<Option<Instant>>,
    /// The host's own time, for a device that it waits for.
    seconds: Vec<f64>,
    started: Option<Instant>,
    rows: Vec<usize>,
}

impl Times {
    pub fn new(devices: &[Device]) -> Times {
        let count = devices.len();
        Times {
            is_async: devices.iter().map(|device| device.is_gpu()).collect(),
            begun: vec![None; count],
            seconds: vec![0.0; count],
            started: None,
            rows: vec![0; count],
        }
    }

    pub fn begin(&mut self, k: usize) {
        let now = Instant::now();
        self.begun[k].get_or_insert(now);
        self.started = Some(now);
    }

    pub fn end(&mut self, k: usize, rows: usize) {
        self.rows[k] += rows;
        self.seconds[k] += self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
    }

    /// Waits until each device has computed its `results`, all of them at once.
    pub fn measure(self, results: &[Option<Tensor>], speeds: &mut Speeds) -> Result<()> {
        let Times { is_async, begun, seconds, rows, .. } = self;
        let wait = |k: usize| -> Result<f64> {
            let (Some(result), Some(begun), true) = (&results[k], begun[k], is_async[k]) else {
                return Ok(seconds[k]);
            };
            result.try_to_vec::<f32>()?;
            Ok(begun.elapsed().as_secs_f64())
        };
        let times = on_each(results.len(), &wait);
        for (k, time) in times.into_iter().enumerate() {
            speeds.add(k, rows[k], time?);
        }
        Ok(())
    }
}
