//! What a device must be able to do: hold memory, and run plans.

use super::Plan;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::graph::{Buffer, Storage};

/// A value that may differ from run to run without changing the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Number(Scalar),
    Key([u32; 2]),
}

pub(crate) trait Executor: Send + Sync {
    /// Copies bytes to the device.
    fn upload(&self, bytes: &[u8]) -> Result<Storage>;

    /// Copies a buffer's first `out.len()` bytes to the host.
    fn read(&self, buffer: &dyn Buffer, out: &mut [u8]) -> Result<()>;

    /// Makes a plan ready to run many times.
    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Program>>;
}

/// A plan made ready by its executor.
pub(crate) trait Program: Send + Sync {
    /// Runs it; the result holds the plan's outputs in order.
    fn run(
        &self,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        guarded: bool,
    ) -> Result<Vec<Storage>>;
}
