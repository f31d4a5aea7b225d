//! Memory of some device.

use std::any::Any;
use std::sync::Arc;

/// Memory of some device, shared by the nodes that name it.
pub trait Buffer: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    /// Whether its values were lost, with their device or in a run that failed.
    fn is_gone(&self) -> bool {
        false
    }

    /// Whether somebody else was given its memory, and may have written it.
    fn is_exported(&self) -> bool {
        false
    }

    /// Whether the memory is somebody else's, who lends it: it is read and never written.
    fn is_foreign(&self) -> bool {
        false
    }
}

/// A node's values: a whole buffer, row-major.
pub type Storage = Arc<dyn Buffer>;
